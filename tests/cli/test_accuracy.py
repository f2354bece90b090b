"""What a run's report states of its accuracy, and what of it the next run prints."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rtmms
import rtmms.base.kernel_cache
from rtmms.cli.running.report import Accuracy, blank, was_disturbed
from rtmms.cli.running.report_table import as_table
from rtmms.plant.monitor import Verdict

PLAN: Any = SimpleNamespace(
    robot="purcell", mode="free", dt=None, rate=None, coupling=None, seed=0, on_miss="hold", on_overrun="skip"
)


def ended(**values: Any) -> dict[str, Any]:
    """A report of a run that went to its end; given: of its exchange, its schedule, or itself."""
    report = blank(PLAN) | {"ended": "duration", "wall_s": 1.0, "simulated_s": 10.0, "steps": 10}
    for name, value in values.items():
        part = next((report[part] for part in ("exchange", "schedule") if name in report[part]), report)
        part[name] = value
    return report


def left(**values: Any) -> Any:
    return SimpleNamespace(alterations=values.pop("alterations", 0))


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({}, False), ({"ended": "stop"}, False), ({"unclaimed": 9}, False), ({"misses": 1}, True), ({"late": 1}, True),
        ({"skipped": 1}, True), ({"overruns": 1}, True), ({"reused": 1}, True), ({"stale": 1}, True),
        ({"alterations": 1}, True), ({"ended": "interrupt"}, True), ({"ended": "diverged"}, True),
    ],
)  # fmt: skip
def test_a_run_is_disturbed_by_what_comes_late_and_by_what_is_changed(arguments: dict[str, Any], output: bool) -> None:
    loop = left(**arguments)
    arguments.pop("alterations", None)
    assert was_disturbed(ended(**arguments), loop) is output


def ran(dt: float, **values: Any) -> tuple[Accuracy, dict[str, Any]]:
    """A run of Purcell's swimmer, its joints to and fro."""
    plant = rtmms.load("purcell", dt=dt)
    plant.reset()
    result = Accuracy(plant, 10, ())
    for k in range(10):
        command = np.array([0.5, -0.5]) * (-1.0) ** k
        plant.step(command)
        assert result.monitor is not None
        result.monitor.after(command)
    report, loop = ended(**values), left(**values)
    result.add(report, loop)
    return result, report


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rtmms.base.kernel_cache, "cache_folder", lambda: tmp_path)
    return tmp_path


def test_what_an_undisturbed_run_measured_is_kept_for_the_next(folder: Path) -> None:
    _, report = ran(1.0, misses=1)
    accuracy = report["accuracy"]
    assert accuracy["verdict"] == "doubtful"
    assert list(accuracy["recommended_step"]) == ["dt"]
    assert report["warnings"] == [accuracy["message"]]
    assert list(folder.iterdir()) == []
    ran(1.0, peers=[{"commands": 3}])  # somebody else's, of whom the next start knows nothing
    assert list(folder.iterdir()) == []
    result, _ = ran(1.0)
    assert len(list(folder.iterdir())) == 1
    assert result.at_start(quiet=True) == []
    again = Accuracy(rtmms.load("purcell", dt=1.0), 10, ())
    assert any("dt = 1 s is known to be inaccurate: use dt <= 0." in line for line in again.at_start(quiet=True))


@pytest.mark.parametrize(
    ("verdict", "warnings"),
    [
        (Verdict("fine", 0.0, 0.0, 0.0, 9), []),
        (Verdict("doubtful", 0.0, 0.1, 0.0, 9, ("dt", 0.1)), ["the path is off by at most 10 % of its length: use dt"]),
        (Verdict("unknown", 0.0, np.nan, np.nan, 0), ["dt = 1 s is known to be inaccurate: use dt"]),
    ],
)  # fmt: skip
def test_what_was_foretold_stands_where_nothing_was_measured(
    folder: Path, verdict: Verdict, warnings: list[str]
) -> None:
    ran(1.0)
    result = Accuracy(rtmms.load("purcell", dt=1.0), 10, ())
    assert result.monitor is not None
    result.monitor.conclude = lambda *_: verdict  # type: ignore[method-assign]
    report = ended()
    result.add(report, left())
    assert len(report["warnings"]) == len(warnings)
    assert all(text in output for text, output in zip(warnings, report["warnings"], strict=True))


def test_the_table_has_the_sentence_once(folder: Path) -> None:
    _, report = ran(1.0)
    report["timing_us"] = {part: dict.fromkeys(("p50", "p99", "p999", "max")) for part in report["timing_us"]}
    text = as_table(report)
    assert text.count("is off by at most") == 1
    assert text.count("use dt <=") == 1


def test_while_it_runs_there_is_doubt_but_no_advice(folder: Path) -> None:
    result = Accuracy(rtmms.load("purcell", dt=1.0), 10, ())
    assert result.news() == []
    result.monitor = SimpleNamespace(  # type: ignore[assignment]
        settled=True, verdict=Verdict("doubtful", 0.2, np.nan, np.nan, 50, ("dt", 0.1))
    )
    (line,) = result.news()
    assert "steps are off by 20 %" in line
    assert "use" not in line
    assert result.news() == []
