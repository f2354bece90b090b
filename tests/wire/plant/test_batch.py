"""Many steps in one compiled call, in the modes without a clock: the same as one after the other."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from rtmms.loop.modes import Free, Lockstep
from rtmms.loop.trace import Trace
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.plant.fast_path import WireFastPath
from tests.wire.plant.compiled_plant import Observed, Run
from tests.wire.plant.test_fast_path import UNUSUAL, program

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="Linux, and numba's compiler")
ANSWERS = (
    "values = {name: 0.3 * state['speed'] + 0.1 * state['position'][0] + 0.01 * i for i, name in enumerate(names)}"
)


def lockstep(what: str, steps: int = 600, **more: Any) -> tuple[Run, tuple[Any, ...]]:
    run = Run(Lockstep, steps=steps, plant=Observed(), program=program(what), **more)
    message = run.server.report()
    # which of the last refusals the plant still read at the end is a matter of time; how many there were is not
    peer = {key: value for key, value in message["peers"][0].items() if key not in ("late", "state", "refusal")}
    applied = run.server.applied
    return run, (run.plant.state.tolist(), run.statistics.counters(), message["rejected"], peer, applied)


@pytest.mark.full
@pytest.mark.parametrize("what", [ANSWERS, *(UNUSUAL[k] for k in UNUSUAL if k != "two at once")])
def test_lockstep_is_the_same_whatever_a_peer_sends(what: str, monkeypatch: Any) -> None:
    """What it sends follows from what it receives, so that one state that is wrong would show."""
    compiled, here = lockstep(what)
    monkeypatch.setattr(WireFastPath, "bind", lambda *_: False)
    general, there = lockstep(what)
    assert compiled.statistics.applied == general.statistics.applied == 600
    assert general.batches == 0
    assert compiled.batches > (400 if what in (ANSWERS, "pass") else -1)
    assert here == there


@pytest.mark.full
def test_observers_see_every_step_that_they_ask_for(monkeypatch: Any) -> None:
    def traced() -> tuple[Run, Any, Any]:
        toy = Observed()
        trace = Trace(toy.outputs, ("speed", "position"), toy.dt, 500, apart_s=7e-3)
        run = Run(Lockstep, steps=500, plant=toy, program=program(ANSWERS), observers=[trace])
        return run, *trace.read()

    compiled, time_s, result = traced()
    monkeypatch.setattr(WireFastPath, "bind", lambda *_: False)
    _, expected_s, expected = traced()
    assert compiled.batches > 300
    assert (time_s == expected_s).all()
    assert all((result[name] == expected[name]).all() for name in expected)


@pytest.mark.full
def test_a_step_that_fails_in_a_row_of_them_is_the_last() -> None:
    toy = Observed()
    with pytest.raises(RuntimeError, match="status 7"):
        Run(Lockstep, steps=600, plant=toy, program=program("values[names[0]] = 1.1 if k == 400 else 0.0"))
    assert toy.state[4] == pytest.approx(0.4)


@pytest.mark.full
def test_several_claimants_and_telemetry_go_on() -> None:
    run = Run(Lockstep, ("left.*", "right.front", "right.back"), steps=600, plant=Observed())
    assert run.statistics.applied == 600
    assert run.batches > 400
    assert [peer["commands"] for peer in run.server.report()["peers"]] == [600] * 3


@pytest.mark.full
def test_free_takes_what_is_there_and_never_waits() -> None:
    still = "values = {n: 0.1 * i for i, n in enumerate(names)}"

    def enough(run: Run) -> bool:
        return run.loop.step >= 60_000 and run.statistics.applied > 100

    run = Run(Free, steps=10**10, plant=Observed(), program=program(still), until=enough)
    s, result = run.statistics, run.server.report()
    assert 60_000 <= s.steps == s.applied + s.reused
    assert run.batches > s.steps // 2
    assert s.applied <= result["peers"][0]["commands"] <= s.applied + result["late"] + 200
    assert result["rejected"] == {}
    assert np.diff(run.plant.state[:4]) == pytest.approx(0.1)
    assert run.server.applied.policy in ("", "hold")


class Impatient(Run):
    """It waits for a peer for 0.3 s from step 300 on; before, a busy machine may take longer."""

    def __init__(self, monkeypatch: Any, *text: Any, **more: Any) -> None:
        self._monkeypatch = monkeypatch
        super().__init__(*text, **more)

    def _watch_codes(self) -> None:
        super()._watch_codes()
        threading.Thread(target=self._lose_patience, daemon=True).start()

    def _lose_patience(self) -> None:
        while self.loop.step < 300:
            time.sleep(0.01)
        self._monkeypatch.setattr("rtmms.loop.modes.SILENT_NS", 300_000_000)


@pytest.mark.full
def test_a_silent_peer_ends_lockstep_by_name(monkeypatch: Any) -> None:
    what = "if k == 300: import time; time.sleep(3)"
    run = Impatient(monkeypatch, Lockstep, steps=600, plant=Observed(), program=program(what))
    assert run.outcome.ended == "peer"
    assert "p0 sent no command for step 300" in run.outcome.message
    assert run.outcome.steps == 300


@pytest.mark.full
def test_what_was_refused_of_a_silent_peer_is_reported_in_a_sentence(monkeypatch: Any) -> None:
    what = "if k == 300: values = {names[0]: float('nan')}"
    run = Impatient(monkeypatch, Lockstep, steps=600, plant=Observed(), program=program(what))
    assert run.outcome.ended == "peer"
    assert "refused so far: not_finite 1; the last of p0: command" in run.outcome.message
    assert "nan" in run.outcome.message
