"""The parts of the loop by themselves: schedule, policies, statistics, traces, set-up; and what a run retains."""

from __future__ import annotations

import gc
import math
import os
import sys
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmms.base.contract import MODES, UNDEFINED, MissPolicy, OverrunPolicy, StepOutcome
from rtmms.base.errors import ModelError
from rtmms.loop import machine as scheduling
from rtmms.loop.clock import FakeClock, MonotonicClock, Schedule, deadline_s, quantile
from rtmms.loop.loop import Loop, LoopServices
from rtmms.loop.machine import shortest_wait_s
from rtmms.loop.miss_policies import extrapolate, move_home, take_complete
from rtmms.loop.modes import External, Free, Lockstep, Realtime
from rtmms.loop.pace import Pace
from rtmms.loop.policies import OVERRUN_POLICIES, Policies, abort, catch_up, skip, slip
from rtmms.loop.ports import Applied, Exchange
from rtmms.loop.row_kernels import BINS, MAX_TIMED_NS, place, values_of
from rtmms.loop.statistics import Statistics
from rtmms.loop.step_outcome import FallbackMemory
from rtmms.loop.trace import CommandTrace, Recent, Trace
from rtmms.loop.trial import COLD_STEPS, StepTime, cold_trial, trial
from rtmms.plant.protocol import Channel
from tests.pendulum import Pendulum


def test_the_names_on_the_command_line_are_the_policies_there_are() -> None:
    assert set(OVERRUN_POLICIES) == set(OverrunPolicy)
    assert set(MODES) == {Realtime.mode, Lockstep.mode, Free.mode, External.mode}


@pytest.mark.parametrize(("plant_us", "expected_us"), [(20, 900), (100, 850), (300, 650), (450, 500), (2000, 500)])
def test_the_deadline_leaves_the_plant_its_time_within_limits(plant_us: float, expected_us: float) -> None:
    assert deadline_s(1e-3, plant_us * 1e-6) * 1e6 == pytest.approx(expected_us)


@pytest.mark.parametrize("asked", [0.0, -1e-3, 1.1e-3, math.nan])
def test_a_deadline_outside_the_period_is_refused(asked: float) -> None:
    with pytest.raises(ModelError, match=r"deadline: must be > 0 and at most the period of 0\.001 s"):
        deadline_s(1e-3, 0, asked)


def test_quantile_is_the_smallest_that_enough_do_not_exceed() -> None:
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile(list(range(1000)), 0.999) == 998
    assert quantile([5], 0.999) == 5


@given(behind=st.floats(1e-6, 1e4), limit=st.integers(1, 20))
def test_overrun_policies_never_start_early_and_skip_keeps_phase(behind: float, limit: int) -> None:
    assert skip(behind, limit) == int(skip(behind, limit)) >= behind
    assert slip(behind, limit) == behind
    owed = behind - catch_up(behind, limit)
    assert owed <= limit
    assert catch_up(behind, limit) == int(catch_up(behind, limit)) >= 0
    assert abort(behind, limit) == math.inf


@given(
    values=st.lists(st.floats(-1, 1), min_size=2, max_size=2), missing=st.lists(st.booleans(), min_size=2, max_size=2)
)
@settings(max_examples=50)
def test_home_never_passes_neutral_nor_touches_what_is_not_missing(values: list[float], missing: list[bool]) -> None:
    miss = FallbackMemory((Channel("a", lower=-1, upper=1), Channel("b", lower=-1, upper=1, neutral=0.25)), 1e-2)
    miss.command[:], miss.actuators["missing"] = values, missing
    move_home(miss.actuators, miss.command, 1)
    for before, after, neutral, gone in zip(values, miss.command, miss.actuators["neutral"], missing, strict=True):
        if gone:
            assert abs(after - neutral) <= abs(before - neutral)
            assert (after - neutral) * (before - neutral) >= 0
            assert abs(after - before) <= 0.0126
        else:
            assert after == before


def test_an_actuator_without_limits_goes_home_at_one_unit_a_second() -> None:
    assert FallbackMemory((Channel("a"),), 1e-2).actuators["home_step"] == pytest.approx([1e-2])


def test_extrapolate_keeps_within_limits() -> None:
    miss = FallbackMemory((Channel("a", lower=-1, upper=1),), 1e-2)
    miss.view.policy = MissPolicy.EXTRAPOLATE
    for value in (0.0, 0.8):
        miss.command[0] = value
        take_complete(0, miss.fallbacks, miss.actuators, miss.command)
    miss.actuators["missing"] = True
    extrapolate(miss.actuators, miss.command)
    assert miss.command[0] == 1.0


# --- statistics ------------------------------------------------------------------------------------------------------


def _recorded(values: list[int], capacity: int, rows: int) -> Statistics:
    statistics = Statistics(capacity)
    for value in values:
        statistics.record(UNDEFINED, value, value, 0)
        if rows:
            statistics.drain(rows)
    return statistics


@pytest.mark.parametrize(("capacity", "rows"), [(8192, 0), (8192, 2), (16, 0)])
def test_quantiles_do_not_depend_on_when_the_ring_is_emptied(capacity: int, rows: int) -> None:
    values = np.random.default_rng(1).gamma(3, 20_000, 3000).astype(int).tolist()
    timing = _recorded(values, capacity, rows).timing_us()
    exact = np.sort(values)
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        assert timing["plant"][name] == pytest.approx(exact[math.ceil(share * 3000) - 1] * 1e-3, rel=4e-3)
    assert timing["plant"]["max"] == pytest.approx(exact[-1] * 1e-3, rel=2e-3)
    assert timing["wake"] == {"p50": None, "p99": None, "p999": None, "max": None}
    assert timing["slack"]["max"] == 0.0


def test_the_histogram_holds_every_step() -> None:
    statistics = _recorded([1000, 1000, 5000], 16, 0)
    values, counts = statistics.histogram("plant")
    assert counts.sum() == 3
    assert values[-1] == pytest.approx(5.0, rel=2e-3)


def test_recent_looks_at_the_last_rows_only() -> None:
    statistics = _recorded([10_000] * 50 + [20_000] * 50, 256, 0)
    assert statistics.recent("plant", 0.99, rows=50) == 20.0
    assert statistics.recent("plant", 0.4, rows=100) == 10.0
    assert statistics.recent("wake", 0.5) is None


def test_counters() -> None:
    statistics = Statistics(16)
    o = StepOutcome
    for outcome in (o.APPLIED, o.MISSED, o.MISSED, o.APPLIED, o.MISSED, o.UNCLAIMED, o.REUSED):
        statistics.count(outcome)
    assert statistics.counters() == {
        "steps": 7, "applied": 2, "stale": 0, "misses": 3, "unclaimed": 1, "reused": 1, "max_consecutive": 2,
        "overruns": 0, "skipped": 0,
    }  # fmt: skip
    statistics.clear()
    assert not any(statistics.counters().values())


# --- traces ----------------------------------------------------------------------------------------------------------

OUTPUTS = (Channel("x"), Channel("v", shape=(3,)))


def _run(observer: Any, steps: int) -> Any:
    state = lambda k: {"x": np.array(float(k)), "v": np.full(3, -float(k))}
    observer.start(state(0))
    for k in range(steps):
        if observer.due <= k:
            observer.after_step(k, (k + 1) * 0.5, state(k + 1), np.zeros(0), Applied())
    return observer


@given(steps=st.integers(0, 3000))
@settings(max_examples=60)
def test_a_trace_of_unknown_length_is_evenly_spaced_from_the_start_to_the_end(steps: int) -> None:
    trace = _run(Trace(OUTPUTS, ("x", "v"), 0.5, None, capacity=16), steps)
    time, stored = trace.read()
    assert len(time) <= 16
    assert len(time) >= min(steps + 1, 8)
    assert time[0] == 0
    assert np.all(np.diff(time) == trace.stride * 0.5)
    assert steps * 0.5 - time[-1] < trace.stride * 0.5
    assert np.array_equal(stored["x"], time / 0.5)
    assert np.array_equal(stored["v"], np.repeat(-time[:, None] / 0.5, 3, axis=1))


@pytest.mark.parametrize("steps", [0, 1, 14, 15, 16, 100, 1000])
def test_a_trace_of_known_length_never_doubles(steps: int) -> None:
    trace = Trace(OUTPUTS, ("x",), 0.5, steps, capacity=16)
    stride = trace.stride
    time, _ = _run(trace, steps).read()
    assert trace.stride == stride
    assert steps * 0.5 - time[-1] < stride * 0.5


def test_recent_keeps_the_end() -> None:
    recent = Recent(OUTPUTS, ("v",), 0.5, seconds=10, rows=5)
    time, stored = _run(recent, 100).read()
    assert recent.stride == 4
    assert time.tolist() == [42.0, 44.0, 46.0, 48.0, 50.0]
    assert stored["v"][-1].tolist() == [-100.0] * 3


def test_a_trace_can_be_cleared_and_used_again() -> None:
    for observer in (Trace(OUTPUTS, ("x",), 0.5, None, capacity=16), Recent(OUTPUTS, ("x",), 0.5, seconds=4, rows=8)):
        _run(observer, 8)
        observer.clear()
        time, stored = _run(observer, 3).read()
        assert time[-1] == 1.5
        assert stored["x"][-1] == 3


def test_a_command_trace_that_does_not_fit_is_refused_with_what_would() -> None:
    with pytest.raises(
        ModelError, match=r"10000000 steps need \d+ MiB, more than the limit of 1 MiB; expected at most"
    ):
        CommandTrace(OUTPUTS, OUTPUTS, 10_000_000, limit=1 << 20)


# --- set-up ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"), [("auto", (80, False)), ("off", (None, False)), ("1", (1, True)), ("99", (99, True))]
)
def test_priority_words(text: str, expected: tuple[int | None, bool]) -> None:
    assert scheduling.parse_priority(text) == expected


@pytest.mark.parametrize("text", ["0", "100", "-1", "high", "", "1.5"])
def test_other_priority_words_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match="expected auto, off or a whole number from 1 to 99"):
        scheduling.parse_priority(text)


@pytest.mark.skipif(sys.platform != "linux", reason="the set-up is Linux's")
def test_what_is_not_permitted_is_reported_with_what_to_do_and_is_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    class Libc:
        def prctl(self, *_: int) -> int:
            return -1

        def mlockall(self, _: int) -> int:
            return -1

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(scheduling.ctypes, "CDLL", lambda *_, **__: Libc())
    ready = scheduling.prepare(80)
    scheduling.finish(ready)
    ready.close()
    assert [text.partition(":")[0] for text in ready.failed] == [
        "timer slack", "power states", "memory lock", "SCHED_FIFO 80",
    ]  # fmt: skip
    assert "limits.conf" in ready.failed[-1]
    report = ready.report()
    assert (report["scheduler"], report["priority"], report["memory_locked"]) == ("SCHED_OTHER", 0, False)


def test_priority_off_touches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling.ctypes, "CDLL", lambda *_, **__: pytest.fail("touched"))
    ready = scheduling.prepare(None)
    scheduling.finish(ready)
    assert ready.failed == []


def test_the_clock_does_not_return_early() -> None:
    clock = MonotonicClock()
    instant = clock.now() + 2_000_000
    clock.sleep_until(instant)
    assert clock.now() >= instant
    clock.sleep_until(instant)  # past: at once


def test_the_trial_leaves_the_plant_at_its_start() -> None:
    plant = Pendulum()
    plant.reset(3)
    before = plant.snapshot()
    measured = trial(plant, 3, steps=20)
    assert 0.0 < measured.p99_s <= measured.p999_s
    assert plant.snapshot() == before


def test_the_trial_of_a_plant_that_diverges_sends_nothing_and_leaves_it_at_its_start() -> None:
    plant = Pendulum()
    plant.diverge_at = 0.0
    assert trial(plant, 0) == StepTime(0.0, 0.0)
    assert plant.state[2] == 0.0


# --- what a run retains ----------------------------------------------------------------------------------------------


class Quiet(Exchange):
    """An exchange in which every command is there at once."""

    def __init__(self, n: int) -> None:
        self.claimed, self.fresh = np.ones(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
        self.renewed = np.zeros(n, dtype=np.bool_)
        self.applied = Applied()

    def publish(self, *_: Any) -> None: ...

    def collect(self, step: int, command: Any, until_ns: int) -> bool:
        command[0] = 0.1
        return step % 7 != 0  # now and then a miss, so that the policies run too

    def serve(self, until_ns: int) -> None: ...

    def waiting_for(self) -> tuple[str, ...]:
        return ()


class Blocks:
    """Counts the interpreter's allocated blocks at three steps."""

    def __init__(self) -> None:
        self.steps, self.counts, self.due = (1000, 2500, 4000), [0, 0, 0], 1000

    def start(self, outputs: Any) -> None: ...
    def clear(self) -> None: ...

    def after_step(self, step: int, *_: Any) -> None:
        at = self.steps.index(step)
        self.counts[at] = sys.getallocatedblocks()
        self.due = self.steps[at + 1] if at < 2 else 1 << 40


@pytest.mark.parametrize("mode", ["realtime", "lockstep", "free"])
def test_the_loop_retains_no_objects(mode: str) -> None:
    plant, clock = Pendulum(), FakeClock()
    pace: Pace = {"realtime": lambda: Realtime(Schedule(1e6, 500_000)), "lockstep": Lockstep, "free": Free}[mode]()
    exchange = Quiet(2)
    if mode == "lockstep":
        exchange.collect = lambda step, command, until_ns: True  # type: ignore[method-assign]
    trace = Trace(plant.outputs, plant.trace_outputs, plant.dt, None, capacity=512)
    commands = CommandTrace(plant.actuators, plant.outputs, 4100)
    blocks = Blocks()
    observers = (trace, blocks)
    loop = Loop(plant, exchange, clock, pace, Policies(), Statistics(256), observers, steps=4100,
                services=LoopServices(commands=commands))  # fmt: skip
    loop.run()
    assert gc.isenabled()
    first, second, third = blocks.counts
    # 1500 steps twice, each of which makes and drops dozens; what others keep once is in one of the two
    assert min(abs(second - first), abs(third - second)) < 100


@pytest.mark.parametrize(
    ("period", "asked", "shortest", "expected"),
    [
        (1000, None, 60, 900), (200, None, 5, 140), (200, None, 60, 140), (100, None, 60, 60), (40, None, 60, 40),
        (1000, 30, 60, 60), (1000, 30, 5, 30), (40, 30, 60, 40),
    ],
)  # fmt: skip
def test_a_deadline_is_no_shorter_than_a_wait_and_no_longer_than_the_period(
    period: float, asked: float | None, shortest: float, expected: float
) -> None:
    result = deadline_s(period * 1e-6, 10e-6, None if asked is None else asked * 1e-6, shortest * 1e-6)
    assert result * 1e6 == pytest.approx(expected)


def test_the_shortest_wait_is_positive_and_far_below_a_second() -> None:
    assert 0 < shortest_wait_s() < 0.1


def test_what_follows_a_miss_is_tried_with_the_policy_that_was_asked_for() -> None:
    plant, steps = Pendulum(), []
    step = plant.step
    plant.step = lambda command: (steps.append(command.copy()), step(command))[1]  # type: ignore[method-assign]
    assert 0.0 < cold_trial(plant, Policies(miss="home"), 0) < 1.0
    assert len(steps) == COLD_STEPS
    assert all(float(command[1]) == 0.5 for command in steps), "home is neutral"
    fresh = Pendulum()
    fresh.reset(0)
    assert plant.snapshot() == fresh.snapshot(), "as if nothing had been"


def test_times_fall_into_the_bins_of_the_hdr_histogram() -> None:
    histogram: Any = HdrHistogram(1, MAX_TIMED_NS, 3)
    rng = np.random.default_rng(2)
    values = [0, 1, 2047, 2048, 2049, MAX_TIMED_NS, *(2 ** rng.uniform(0, 41, 500)).astype(int).tolist()]
    for value in values:
        at = place(value)
        assert at == histogram._counts_index_for(value) < BINS
        assert values_of(np.array([at]))[0] == histogram.get_value_from_index(at) <= value
