"""`rtmms bench guards`: a small grid has no wrong cell without a word and no right one that is stopped."""

from __future__ import annotations

import json

import pytest

from rtmms_benchmarks import guards


@pytest.mark.parametrize(
    ("path", "power", "output", "fate"),
    [
        (0.011, 0.0, "fine", "silent"), (0.0, 0.06, "fine", "silent"), (0.011, 0.0, "doubtful", ""),
        (5e-4, 5e-4, "diverged", "refused though right"), (5e-4, 5e-4, "doubtful", "doubted though right"),
        (5e-3, 1e-2, "diverged", ""), (float("nan"), 0.0, "fine", "silent"), (None, None, "error", ""),
    ],
)  # fmt: skip
def test_judge(path: float | None, power: float | None, output: str, fate: str) -> None:
    assert guards.judge(path, power, output) == fate


@pytest.mark.full  # a minute of runs
def test_a_small_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert guards.main(True, small=True) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts["cells"] > 30
    assert counts["fine"] > 5
    assert counts["doubtful"] > 5
    assert counts["silent wrongs"] == counts["false refusals"] == counts["no reference"] == 0
