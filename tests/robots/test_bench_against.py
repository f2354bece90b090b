"""`rtmms bench against REV`: its arithmetic, its order of runs, and how it refuses wrong words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtmms_benchmarks import against
from tests.cli.shell import rtmms


def runs(case: str, values: list[float], bits: str = "a", outputs: str = "position") -> list[dict]:
    return [{case: {"us": value, "bits": bits, "outputs": outputs}} for value in values]


def test_pairs_alternate() -> None:
    assert against.order(3) == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_a_ratio_is_of_the_runs_of_a_pair() -> None:
    result = against.ratios([1.0, 2.0, 8.0, 3.0, 10.0], [1.0, 1.0, 2.0, 1.0, 2.0])
    assert result["ratio"] == 3.0
    assert result["quartiles"] == [2.0, 4.0]
    assert (result["pairs"], result["ours"], result["theirs"]) == (5, 3.0, 1.0)
    assert against.ratios([3.0], [2.0])["quartiles"] == [1.5, 1.5]


def test_a_drift_of_the_machine_does_not_reach_the_ratio() -> None:
    drift = [1.0, 1.1, 1.2, 1.3]
    result = against.ratios([2.0 * f for f in drift], [1.0 * f for f in drift])
    assert result["ratio"] == pytest.approx(2.0)
    assert result["quartiles"] == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize(
    ("ours", "theirs", "bits"),
    [
        (runs("eel", [2.0, 2.0]), runs("eel", [1.0, 1.0]), "same"),
        (runs("eel", [2.0, 2.0]), runs("eel", [1.0, 1.0], "b"), "differ"),
        (runs("eel", [2.0, 2.0]), runs("eel", [1.0, 1.0], "b", "position,velocity"), "other outputs"),
        (runs("eel", [2.0]) + runs("eel", [2.0], "c"), runs("eel", [1.0, 1.0]), "vary"),
    ],
)
def test_whether_the_bits_agree(ours: list, theirs: list, bits: str) -> None:
    (row,) = against.compared({"ours": ours, "theirs": theirs}, "us")
    assert (row["case"], row["unit"], row["ratio"], row["bits"]) == ("eel", "us", 2.0, bits)


def test_a_case_that_one_side_lacks_is_left_out() -> None:
    ours = [{"eel": {"us": 1.0}, "new": {"us": 1.0}}]
    rows = against.compared({"ours": ours, "theirs": [{"eel": {"us": 2.0}}]}, "us")
    assert [(row["case"], row["bits"]) for row in rows] == [("eel", None)]
    assert against.compared({"ours": [{}], "theirs": [{}]}, "us") == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "expected a commit, a tag or a branch"),
        (("no-such-commit",), "of this repository, got 'no-such-commit'"),
        (("--output=x",), "unknown option of bench against"),
        (("HEAD", "--pairs", "0"), "--pairs: expected at least 1, got 0"),
    ],
)
def test_words_that_are_wrong(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    result = rtmms(tmp_path, "bench", "against", *arguments)
    assert (result.status, result.out) == (2, "")
    assert text in result.err
    assert "Traceback" not in result.err


def test_what_is_kept_and_what_is_printed_agree() -> None:
    content = json.loads(against.RESULT_FILE.read_text(encoding="utf-8"))
    assert {row["case"] for row in content["rows"]} >= set(against.STEPS)
    for message in (against.table(content), against.page(content)):
        assert content["against"][:12] in message
        assert all(row["case"] in message for row in content["rows"])
