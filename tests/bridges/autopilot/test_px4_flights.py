"""The PX4 bridge beside an imitation that behaves as the genuine program was measured, on a clock of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from rtmms_bridges.px4 import Px4
from tests.bridges.autopilot.imitated_px4 import CLIMB_M, ImitatedPx4
from tests.bridges.autopilot.rehearsal import Rehearsal, rehearsals

pytestmark = pytest.mark.full

BOTH = pytest.mark.parametrize("mode", ["lockstep", "realtime"])


@pytest.fixture
def rehearse(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Rehearsal, ImitatedPx4]]]:
    def px4(run: Rehearsal) -> ImitatedPx4:
        bridge = run.bridge
        assert isinstance(bridge, Px4)
        return ImitatedPx4(bridge._peer.address, bridge.home.alt_m)

    yield from rehearsals(monkeypatch, partial(Px4, port=0, field_ned_gauss=(0.2, 0.0, 0.4)), px4, dt=2e-3)


@BOTH
def test_it_holds_its_height_and_does_so_after_a_kill_and_a_restart(rehearse: Any, mode: str) -> None:
    run, px4 = rehearse(mode)
    run.run(3.0)
    for flight in range(2):
        run.start(px4)
        run.run(20.0, until=lambda: px4.armed)
        run.run(10.0)
        for _ in range(5):
            run.run(0.2)
            assert run.plant.z == pytest.approx(CLIMB_M, abs=0.05)
        assert run.plant.resets == flight
        run.kill()
        run.run(5.0)
    assert not run.stopped
    assert run.bridge.counts["unanswered"] == 0


@BOTH
def test_a_late_px4_gets_each_frame_alone_and_holds_its_height(rehearse: Any, mode: str) -> None:
    """The system gives it no time for 60 ms, twice a second. The genuine one fell from 5 m to 0.4 m in real time."""
    run, px4 = rehearse(mode)
    run.start(px4)
    run.run(10.0, until=lambda: px4.altitude > CLIMB_M - 0.1)
    run.run(10.0)
    for _ in range(10):
        run.pilot = None
        run.run(0.06)
        run.pilot = px4
        run.run(0.44)
        assert run.plant.z == pytest.approx(CLIMB_M, abs=0.05)
    assert px4.max_burst == 1
    assert set(np.diff(px4.stamps)) == {4000}


def test_px4s_clock_has_no_gap_where_the_bridge_misses_states(rehearse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives the bridge no time for 60 ms, twice a second. The genuine PX4 fell from 5 m to 1.5 m."""
    run, px4 = rehearse("realtime")
    run.start(px4)
    run.run(10.0, until=lambda: px4.altitude > CLIMB_M - 0.1)
    run.run(10.0)
    for _ in range(10):
        with monkeypatch.context() as patched:
            patched.setattr(run.bridge, "on_state", lambda state: None)
            run.run(0.06)
        run.run(0.44)
        assert run.plant.z == pytest.approx(CLIMB_M, abs=0.05)
    assert set(np.diff(px4.stamps)) == {4000}


@BOTH
def test_a_motor_that_is_asked_to_stop_stops(rehearse: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, px4 = rehearse(mode)
    run.start(px4)
    run.run(10.0, until=lambda: px4.altitude > 1.0)
    monkeypatch.setattr(px4, "_motor", lambda: 0.0)
    run.run(0.1)
    assert px4.armed
    assert set(run._command.values()) == {0.0}
    run.run(5.0)
    assert run.plant.z == 0.0


@BOTH
def test_a_run_with_a_duration_ends_when_px4_has_gone(rehearse: Any, mode: str) -> None:
    run, px4 = rehearse(mode)
    run.start(px4)
    run.run(2.0)
    run.kill()
    run.run(29.0)
    assert not run.stopped
    run.run(2.0)
    assert run.stopped
    assert run.bridge.unmet.startswith("PX4 has been silent for 30 s (peer_gone_s): the run ended at t = ")
