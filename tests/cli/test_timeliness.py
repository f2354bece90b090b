"""Warnings of a report: a number over a share of the steps, and who is blamed most."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rtmms.cli.running.plan import Plan
from rtmms.cli.running.timing import step_time, warnings_before, warnings_of
from rtmms.loop.trial import StepTime


def report(steps: int = 1000, misses: int = 0, overruns: int = 0, skipped: int = 0, **causes: int) -> dict[str, Any]:
    return {
        "steps": steps, "exchange": {"misses": misses, "rejected": {}, "peers": []}, "final": {}, "mode": "realtime",
        "schedule": {"overruns": overruns, "skipped": skipped, "causes": {"peer_late": 0, "machine": 0} | causes},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "text"),
    [({"misses": 11, "peer_late": 10, "machine": 1},
      "11 of 1000 steps went without a command in time (1.1 %); mostly peer_late"),
     ({"overruns": 11, "machine": 11}, "11 of 1000 steps ended late, 0 periods were skipped; mostly machine"),
     ({"overruns": 2, "skipped": 50}, "2 of 1000 steps ended late, 50 periods were skipped")],
)  # fmt: skip
def test_more_than_one_in_a_hundred_is_a_warning(expected: dict[str, int], text: str) -> None:
    assert warnings_of(report(**expected)) == [text]


@pytest.mark.parametrize("expected", [{}, {"misses": 10}, {"overruns": 10, "skipped": 10}, {"steps": 0, "misses": 5}])
def test_less_is_none(expected: dict[str, int]) -> None:
    assert warnings_of(report(**expected)) == []


def test_stale_steps_are_reported_without_a_cause_that_is_of_other_steps() -> None:
    result = report(misses=11, peer_late=11)
    result["exchange"]["stale"] = 11
    missed, stale = warnings_of(result)
    assert missed.endswith("; mostly peer_late")
    assert stale == "11 of 1000 steps used a value that its sender calls too old (1.1 %)"
    result["exchange"]["stale"] = 10
    assert len(warnings_of(result)) == 1


@pytest.mark.parametrize(
    ("every", "reused", "warned"), [(1, 740, True), (1, 9, False), (5, 805, False), (5, 900, True)]
)
def test_a_free_run_on_earlier_commands_is_reported(every: int, reused: int, warned: bool) -> None:
    result = report() | {"mode": "free"}
    result["exchange"] |= {"reused": reused, "peers": [{"every": every}]}
    lines = warnings_of(result)
    assert bool(lines) == warned
    if warned:
        assert lines[0].startswith(f"{reused} of 1000 steps used an earlier command (")
    assert warnings_of(result | {"mode": "lockstep"}) == []


def test_a_period_without_room_is_refused_with_a_rate_that_would_do() -> None:
    assert warnings_before(Plan("toy"), 1e-3, 5e-4) == []
    assert warnings_before(Plan("toy", rate=100.0, mode="free"), 1e-3, 5e-5) == []
    (line,) = warnings_before(Plan("toy", rate=100.0), 1e-3, 5e-5)
    assert "50 us" in line
    assert "period of 10 us" in line
    assert "--rate 10 " in line


def test_a_plant_whose_step_time_has_no_bound_states_the_measured_time_before_the_run() -> None:
    built: dict[str, Any] = {"schedule": {}}
    varying = SimpleNamespace(step_time_varies="contacts")
    (line,) = step_time(Plan("toy"), 2e-3, varying, StepTime(46e-6, 61e-6), built)  # type: ignore[arg-type]
    assert line.startswith("step: 46 us (p99, measured at neutral commands) of a period of 2000 us; contacts can make")
    assert built["schedule"]["trial_us"] == {"p99": pytest.approx(46.0), "p999": pytest.approx(61.0)}
    for plan, plant in (
        (Plan("toy", mode="lockstep"), varying), (Plan("toy", quiet=True), varying), (Plan("toy"), SimpleNamespace()),
    ):  # fmt: skip
        built = {"schedule": {}}
        assert step_time(plan, 2e-3, plant, StepTime(46e-6, 61e-6), built) == []  # type: ignore[arg-type]
        assert built["schedule"]["trial_us"]["p99"] == pytest.approx(46.0)


def test_refusals_and_outputs_that_are_no_numbers_are_reported() -> None:
    result = report()
    result["exchange"]["rejected"] = {"unknown_actuator": 500, "seq": 1}
    result["final"] = {"angle": [0.0, float("nan")], "rate": 1.0, "speed": float("inf")}
    assert warnings_of(result) == [
        "refused of what peers sent: unknown_actuator 500", "output 'angle' is not finite at the end",
        "output 'speed' is not finite at the end",
    ]  # fmt: skip


@pytest.mark.parametrize(("failed", "output"), [(1.0, "100 %"), (0.25, "25 %"), (0.05, ""), (None, "")])
def test_a_planner_whose_candidates_fail_is_reported(failed: float | None, output: str) -> None:
    result = report()
    result["exchange"]["peers"] = [{"name": "predictive", "every": 5, "metrics": {"failed": failed}}]
    lines = warnings_of(result)
    assert len(lines) == bool(output)
    if output:
        assert lines[0].startswith(f"predictive: {output[:-2]}")
        assert ("no plan was good" in lines[0]) == (failed == 1.0)
