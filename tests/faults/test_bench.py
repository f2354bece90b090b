"""The command around the harness: its object, its table, its exit status."""

from __future__ import annotations

import json
import sys

import pytest

from rtmms.errors import UnknownNameError
from rtmms_benchmarks import fault_cases, faults
from tests.faults.test_faults import ROBOT, plug_ins

pytestmark = [pytest.mark.full, pytest.mark.skipif(sys.platform != "linux", reason="stops processes and reads /proc")]
__all__ = ["plug_ins"]


def test_the_object_has_every_case_with_what_it_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.setattr(faults, "ROBOT", ROBOT)
    assert faults.main(True, 0.5, "none") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["failed"] == []
    (case,) = told["cases"]
    assert case["steps"] > 0
    assert case["steps_without"] > 0
    assert case["more_percent"] == pytest.approx(case["misses_percent"] - case["misses_without_percent"], abs=2e-3)
    assert {"commit", "machine", "load", "robot", "duration_s", "target_percent"} <= set(told)


def test_a_case_that_does_not_hold_is_named_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(faults, "ROBOT", ROBOT)
    monkeypatch.setattr(faults, "trial", lambda case, robot, seconds: {
        "case": case.name, "steps": 10, "misses_percent": 0.0, "misses_without_percent": 0.0, "longest_row": 0,
        "growth_mib": 0.0, "rejected": {}, "policies": {}, "status": 1, "ended": "peer", "traceback": False,
        "sum_holds": True, "finite": True, "log": {"whole": True}, "log_has_all": True,
        "peers": [{"name": "steady", "commands": 9, "rejected": 0}],
    })  # fmt: skip
    assert faults.main(False, 0.5, "double,none") == 1
    out = capsys.readouterr().out
    assert "not as they should be: double, none" in out
    assert "the run ended by 'peer' with exit status 1" in out


def test_an_unknown_fault_is_refused_with_its_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="did you mean drop"):
        faults.main(False, 0.5, "dorp")


def test_names_are_not_used_twice() -> None:
    names = [case.name for case in fault_cases.CASES]
    assert len(names) == len(set(names))
