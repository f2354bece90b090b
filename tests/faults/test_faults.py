"""Every fault of the harness, on a small plant at 100 Hz: what must hold, holds.

How many steps a fault costs is not judged.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.cases import CASES, NONE, Case, problems
from tests.faults.trial import Windows, trial

pytestmark = [pytest.mark.full, pytest.mark.skipif(sys.platform != "linux", reason="stops processes and reads /proc")]
ROOT = Path(__file__).resolve().parents[2]
ROBOT = ("rods", "--priority", "off")
QUICK = {"drop", "killed", "closing", "not_finite", "truncated", "full_disk"}
LONG = {
    "busy", "strangers", "noise", "stopped_subscriber", "killed_observer", "hollow", "hollow_flood", "patterns",
    "subscriptions", "deaf",
}  # fmt: skip


@pytest.fixture(autouse=True)
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plant, and a runtime directory of the test's own."""
    path = [str(ROOT / "tests" / "plugins"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def tried(case: Case, seconds: float) -> dict[str, Any]:
    result = trial(case, ROBOT, seconds)
    assert problems(case, result) == []
    return result


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.full)
        for case in CASES
        if case.name not in LONG
    ],
)
def test_the_plant_handles_it(case: Case) -> None:
    result = tried(case, 1.2)
    assert result["steps"] > 0
    if case.right != "steady" and result["rejected"]:
        faulty = [peer for peer in result["peers"] if peer["name"] == case.right]
        assert sum(peer["rejected"] for peer in faulty) == sum(result["rejected"].values())


@pytest.mark.parametrize("case", [case for case in CASES if case.name in LONG], ids=lambda case: case.name)
def test_those_that_hold_no_claim_change_nothing(case: Case) -> None:
    result = tried(case, 3.0)
    assert result["steps"] > 0
    assert result["steps_without"] > 0
    assert set(result["rejected"]) <= {"token", "malformed", "unknown_type", "wrong_type", "busy", "stranger"}
    assert result["more_lost_percent"] is not None


def test_a_fault_that_was_not_handled_is_reported() -> None:
    good = {
        "status": 0, "ended": "stop", "traceback": False, "sum_holds": True, "finite": True, "growth_mib": 0.0,
        "log": {"whole": True, "dropped": 0}, "log_has_all": True, "steps": 100,
        "peers": [{"name": "steady", "commands": 99, "rejected": 0}],
    }  # fmt: skip
    assert problems(NONE, good) == []
    for key, value in (
        ("status", 1), ("ended", "diverged"), ("traceback", True), ("sum_holds", False), ("finite", False),
        ("growth_mib", 9.0), ("log", {"whole": False}), ("log_has_all", False), ("peers", []),
    ):  # fmt: skip
        assert len(problems(NONE, good | {key: value})) == 1, key


def test_names_are_not_used_twice() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


def test_instants_are_of_one_window_or_none() -> None:
    windows = Windows(on=[(1.0, 2.0), (3.0, 4.0)], off=[(2.0, 3.0)])
    assert [windows.of(at) for at in (0.5, 1.0, 1.99, 2.0, 3.5, 4.0)] == ["", "on", "on", "off", "on", ""]
