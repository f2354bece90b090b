"""The list of messages has each error and each line for a person, with its place."""

from __future__ import annotations

import json

import pytest

from rtmms_benchmarks.messages import main, messages

SOURCE = """
def f(x):
    raise ModelError(f"x: expected a number, got {x!r}" + (" or so" if x else " again"))
    print_text("it is late now", err=True)
    raise ValueError("short")
    g("no message at all")
"""


def test_it_finds_what_is_raised_and_printed() -> None:
    assert sorted(messages(SOURCE)) == [
        (3, "x: expected a number, got {x} or so |  again"), (4, "it is late now"),
    ]  # fmt: skip


def test_the_list_of_a_room_has_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(as_json=True, room="rtmms/loop/policies.py") == 0
    result = json.loads(capsys.readouterr().out)["messages"]
    assert all(item["file"] == "rtmms/loop/policies.py" and item["line"] > 0 for item in result)
    assert any("expected a count from 0 to" in item["text"] for item in result)
