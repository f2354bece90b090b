"""Keywords of a robot's function in a user's file: each value has the type of its annotation, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rtmms

FILE = """
import rtmms
from tests.pendulum import Pendulum

def robot(flag: bool = False, count: int = 1, scale: "float" = 1.0, word: str = "a", row: tuple[float, ...] = (1.0,),
          kept: float | None = None, free=None) -> rtmms.Plant:
    plant = Pendulum()
    plant.got = flag, count, scale, word, row, kept, free
    return plant
"""


@pytest.fixture
def word(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(FILE)
    return f"{tmp_path}/own.py:robot"


@pytest.mark.parametrize(
    ("place", "arguments", "got"),
    [
        (0, {"flag": True}, True), (1, {"count": 3.0}, 3), (2, {"scale": 2}, 2.0), (3, {"word": 3}, "3"),
        (4, {"row": [1, 2]}, (1, 2)), (5, {"kept": 1}, 1.0), (5, {"kept": None}, None), (6, {"free": "no"}, "no"),
    ],
)  # fmt: skip
def test_a_value_has_the_type_of_its_annotation(word: str, place: int, arguments: dict[str, Any], got: Any) -> None:
    plant: Any = rtmms.load(word, **arguments)
    assert (plant.got[place], type(plant.got[place])) == (got, type(got))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"flag": "no"}, "flag: expected true or false, got 'no'"), ({"flag": 1}, "expected true or false, got 1"),
        ({"count": 2.5}, "count: expected a whole number, got 2.5"), ({"count": True}, "a whole number, got True"),
        ({"scale": "big"}, "scale: expected a number, got 'big'"), ({"row": "1,5"}, "row: expected a list in brackets"),
        ({"kept": "x"}, "kept: expected a number, got 'x'"),
    ],
)  # fmt: skip
def test_another_type_is_refused(word: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        rtmms.load(word, **arguments)
