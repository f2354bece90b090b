"""The ArduPilot bridge beside an imitation that behaves as the genuine program was measured, on a clock of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from rtmms_bridges.ardupilot import ArduPilot
from rtmms_bridges.lines.pacing import MAX_CATCH_UP_STATES
from tests.bridges.autopilot.imitated_copter import CLIMB_M, ImitatedCopter
from tests.bridges.autopilot.rehearsal import Rehearsal, rehearsals

BOTH = pytest.mark.parametrize("mode", ["lockstep", "realtime"])


@pytest.fixture
def rehearse(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Rehearsal, ImitatedCopter]]]:
    def copter(run: Rehearsal) -> ImitatedCopter:
        bridge = run.bridge
        assert isinstance(bridge, ArduPilot)
        imitated = ImitatedCopter(bridge._socket.getsockname())
        imitated.attend = run.attend
        return imitated

    yield from rehearsals(monkeypatch, partial(ArduPilot, port=0), copter)


@BOTH
@pytest.mark.parametrize("late_s", [0.0, 3.0, 10.0, 60.0])
def test_a_copter_that_starts_later_arms_and_climbs(rehearse: Any, mode: str, late_s: float) -> None:
    run, copter = rehearse(mode)
    run.run(late_s)
    run.start(copter)
    run.run(10.0, until=lambda: copter.armed)
    run.run(5.0, until=lambda: copter.altitude > 1.0)
    assert copter.gyro_hz >= 990.0
    assert run.plant.resets == (mode == "realtime" and late_s > 1.0)
    steps = [b - a for a, b in pairwise(copter.stamps)]
    assert max(steps) < 1.5e-3, "each frame is one step, the pause before the first packet too"


@BOTH
def test_it_holds_its_height_and_does_so_after_a_kill_and_a_restart(rehearse: Any, mode: str) -> None:
    run, copter = rehearse(mode)
    for flight in range(2):
        run.start(copter)
        run.run(20.0, until=lambda: copter.armed)
        run.run(7.0)
        for _ in range(10):
            run.run(0.2)
            assert run.plant.z == pytest.approx(CLIMB_M, abs=0.05)
        assert run.plant.resets == flight
        run.kill()
        run.run(5.0)
    assert not run.stopped


def test_a_silence_in_flight_is_not_the_length_of_a_frame(rehearse: Any) -> None:
    """A debugger stops the autopilot; the rate that it measures by the stamps stays as it was."""
    run, copter = rehearse("lockstep")
    run.start(copter)
    run.run(10.0, until=lambda: copter.altitude > 1.0)
    for _ in range(3):
        copter.silent = True
        run.run(5.0)
        copter.silent = False
        run.run(0.5)
    assert [round(b - a, 6) for a, b in pairwise(copter.stamps)] == [1e-3] * (len(copter.stamps) - 1)
    assert min(copter.rates[-100:]) >= 1000
    assert copter.gyro_hz >= 990.0


def test_in_real_time_a_copter_that_is_late_for_a_moment_loses_no_frame(rehearse: Any) -> None:
    run, copter = rehearse("realtime")
    run.start(copter)
    run.run(1.0)
    for _ in range(200):
        copter.silent = True
        run.run(5e-3)
        copter.silent = False
        run.run(10e-3)
    assert [round(b - a, 6) for a, b in pairwise(copter.stamps)] == [1e-3] * (len(copter.stamps) - 1)
    copter.silent = True
    run.run(0.1)
    copter.silent = False
    run.run(20e-3)
    steps = [b - a for a, b in pairwise(copter.stamps[-60:])]
    assert max(steps) == pytest.approx(0.1 - 1e-3 * (MAX_CATCH_UP_STATES - 1), abs=2.5e-3)
    assert copter.stamps[-1] == pytest.approx(run.plant.step_count * 1e-3, abs=2.5e-3), "it has caught up"


def test_what_the_packets_report_of_the_rate_is_no_request(rehearse: Any) -> None:
    run, copter = rehearse("lockstep")
    run.start(copter)
    run.run(0.5)
    copter.rate_hz = 100.0
    frame, step = copter.frame, run.plant.step_count
    run.run(0.5)
    assert run.plant.step_count - step == copter.frame - frame


def test_frames_are_longer_where_the_configuration_reports_it(rehearse: Any) -> None:
    run, copter = rehearse("lockstep", frame_rate=500.0)
    run.start(copter)
    run.run(8.0)
    assert [round(b - a, 6) for a, b in pairwise(copter.stamps[1:])] == [2e-3] * (len(copter.stamps) - 2)
    assert copter.refusal.startswith("Gyros: ")
    assert any("arm only at 720 Hz or more" in line for line in run.messages)


def test_steps_that_are_too_long_are_reported(rehearse: Any) -> None:
    run, copter = rehearse("lockstep", dt=2e-3)
    run.start(copter)
    run.run(8.0)
    assert not copter.armed
    assert any("--dt 0.001" in line for line in run.messages)
    assert ArduPilot().requirements().max_dt_s < 2e-3
    assert ArduPilot(frame_rate=400.0).requirements().max_dt_s > 2e-3


@pytest.mark.parametrize(("mode", "chosen", "sync"), [
    ("lockstep", None, True), ("realtime", None, False), ("lockstep", False, False), ("realtime", True, True),
])  # fmt: skip
def test_outside_lockstep_it_keeps_no_time_by_itself(rehearse: Any, mode: str, chosen: bool | None, sync: bool) -> None:
    run, copter = rehearse(mode, time_sync=chosen)
    run.start(copter)
    run.run(0.1)
    assert copter.rate_hz == pytest.approx(1000.0, abs=2.0) if sync else copter.rate_hz == 1200.0


@BOTH
def test_a_run_with_a_duration_ends_when_the_copter_has_gone(rehearse: Any, mode: str) -> None:
    run, copter = rehearse(mode)
    run.start(copter)
    run.run(1.0)
    run.kill()
    run.run(29.0)
    assert not run.stopped
    run.run(2.0)
    assert run.stopped
    assert run.bridge.unmet.startswith("ArduPilot has been silent for 30 s (peer_gone_s): the run ended at t = ")
    assert run.bridge.unmet.endswith("of 600 s")


def test_a_restart_within_that_time_goes_on(rehearse: Any) -> None:
    run, copter = rehearse("lockstep", peer_gone_s=10.0)
    run.start(copter)
    run.run(1.0)
    for _ in range(2):
        run.kill()
        run.run(9.0)
        run.start(copter)
        run.run(1.0)
    assert not run.stopped
    assert run.bridge.unmet == ""


@pytest.mark.parametrize(("duration_s", "limit_s"), [(None, 30.0), (600.0, 0.0)])
def test_a_run_without_an_end_waits_for_ever(rehearse: Any, duration_s: float | None, limit_s: float) -> None:
    run, copter = rehearse("lockstep", duration_s=duration_s, peer_gone_s=limit_s)
    run.start(copter)
    run.run(1.0)
    run.kill()
    run.run(60.0)
    assert not run.stopped


def test_one_that_never_came_is_waited_for(rehearse: Any) -> None:
    run, _ = rehearse("lockstep")
    run.run(100.0)
    assert not run.stopped
    assert run.bridge.unmet.startswith("ArduPilot sent nothing to UDP")
