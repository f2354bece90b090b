"""Lockstep and free on the fake clock; requests between steps; divergence."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from rtmms.base.contract import OUTCOME_WORDS
from rtmms.base.errors import DivergedError, ModelError
from rtmms.loop import modes
from rtmms.loop.trace import CommandTrace
from rtmms.plant.protocol import Channel
from tests.loop import bench as bench_module
from tests.loop.bench import Arrival, Bench, Happening, on_time


def test_lockstep_waits_as_long_as_it_takes_and_never_misses() -> None:
    bench = Bench("lockstep", steps=2, arrivals=[Arrival(3_000, 0, {0: 0.1}), Arrival(900_000, 1, {0: 0.2})])
    assert bench.counts == (2, 0, 0, 0)
    assert bench.events == [
        ("publish", 0, 0.0), ("step", 0, (0.1, 0.25)), ("publish", 1, 3010.0), ("step", 1, (0.2, 0.25)),
    ]  # fmt: skip
    assert bench.world.published[0][2:4] == (0, 0)  # no deadline, no budget


def test_lockstep_sees_a_dead_child_within_a_slice() -> None:
    bench = Bench("lockstep", steps=9, arrivals=on_time(1), happenings=[Happening(200, dead="gait ended (exit 3)")])
    assert bench.outcome.ended == "peer"
    assert bench.outcome.message == "gait ended (exit 3); mode lockstep needs its commands, so the run ends (step 1)"
    assert bench.clock.ns - bench.world.t0 <= 51_000_000


def test_lockstep_ends_after_five_seconds_of_silence_and_names_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "SILENT_NS", 5_000_000_000)
    bench = Bench("lockstep", steps=9, claimed={"left": (0,), "right": (1,)}, arrivals=[
        Arrival(10, 0, {0: 0.1}, peer="left"), Arrival(20, 0, {1: 0.1}, peer="right"),
        Arrival(1_010, 1, {0: 0.1}, peer="left"),
    ])  # fmt: skip
    assert bench.outcome.ended == "peer"
    assert bench.outcome.message == "right sent no command for step 1 within 5 s"
    assert 5.0 <= (bench.clock.ns - bench.world.t0) * 1e-9 < 5.1


def test_lockstep_stops_waiting_for_one_that_sends_bye() -> None:
    bench = Bench("lockstep", steps=3, arrivals=on_time(1), happenings=[Happening(300_000, release=(0, 1))])
    assert bench.outcome.ended == "duration"
    assert bench.counts == (1, 0, 2, 0)


def test_a_stop_ends_a_wait_in_lockstep() -> None:
    bench = Bench("lockstep", steps=3, arrivals=on_time(1), happenings=[Happening(300_000, op="stop")])
    assert (bench.outcome.ended, bench.outcome.steps) == ("stop", 1)


def test_lockstep_answers_one_who_asks_before_the_next_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever drives may wait for the answer first; what stops time or moves it waits for the end of the step."""

    class Tuned(bench_module.Plant):
        def set(self, **changes: float) -> None:
            self.log.append(("set", changes))

    monkeypatch.setattr(bench_module, "Plant", Tuned)
    parts = (("set", {"mass": 2.0}), ("status", {}), ("resume", {}))
    asked = [Happening(300_000, op=op, args=args) for op, args in parts]
    arrivals = [*on_time(1), Arrival(900_000, 1, {0: 0.2}), Arrival(900_010, 2, {0: 0.3})]
    bench = Bench("lockstep", steps=3, arrivals=arrivals, happenings=asked)
    assert [op for op, *_ in bench.world.replies] == ["set", "status", "resume"]
    assert bench.world.replies[0] == ("set", {"step": 1}, None)
    assert bench.world.replies[2][1] == {"step": 2}
    order = [event[:2] for event in bench.events if event[0] != "step" or event[1] == 1]
    assert order.index(("publish", 1)) < order.index(("set", {"mass": 2.0})) < order.index(("step", 1))
    assert bench.loop.changes == [{"run": 0, "step": 1, "op": "set", "args": {"mass": 2.0}}]


def test_lockstep_without_claims_just_runs() -> None:
    bench = Bench("lockstep", steps=1000, claimed={})
    assert bench.counts == (0, 0, 1000, 0)


def test_free_takes_the_newest_and_counts_the_rest_as_reused() -> None:
    bench = Bench("free", steps=10, arrivals=[Arrival(25, 2, {0: 0.1}), Arrival(70, 7, {0: 0.2})])
    assert bench.counts == (2, 0, 0, 8)
    assert [command[0] for command in bench.plant.commands] == [0, 0, 0, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2]
    assert bench.statistics.timing_us()["wake"]["p50"] is None


def test_free_sends_a_state_when_the_last_was_answered_or_is_a_millisecond_old() -> None:
    bench = Bench("free", steps=250, arrivals=[Arrival(25, 0, {0: 0.1}), Arrival(75, 3, {0: 0.2})])
    assert [step for step, *_ in bench.world.published] == [0, 4, 9, 109, 209]


def test_free_without_peers_observes_only_for_the_telemetry() -> None:
    bench = Bench("free", steps=2000, claimed={})  # 10 us each: 20 ms
    assert bench.counts == (0, 0, 2000, 0)
    assert len(bench.world.published) == bench.plant.observed == 4


def test_free_a_value_that_is_too_old_goes_home_there_too() -> None:
    bench = Bench("free", steps=60_000, arrivals=[Arrival(5, 0, {0: 0.9})])
    assert bench.plant.commands[40_000][0] == 0.9
    assert bench.plant.commands[59_000][0] < 0.9


@pytest.mark.parametrize("mode", ["realtime", "lockstep"])
def test_each_state_is_observed_once(mode: str) -> None:
    assert Bench(mode, steps=5, arrivals=on_time(5)).plant.observed == 6


def test_the_same_commands_give_the_same_bits_in_every_mode() -> None:
    realtime = Bench("realtime", steps=50, arrivals=on_time(50))
    lockstep = Bench("lockstep", steps=50, arrivals=on_time(50))
    assert realtime.plant.snapshot() == lockstep.plant.snapshot()
    assert realtime.plant.commands == lockstep.plant.commands


def test_pause_stops_the_plant_and_resume_takes_up_the_schedule() -> None:
    bench = Bench(steps=4, claimed={}, happenings=[Happening(500, op="pause"), Happening(40_000, op="resume")])
    starts = [event[2] for event in bench.log if event[0] == "publish"]
    assert starts[0] == 0.0
    assert 35_000 <= starts[1] <= 50_000  # serve sees what comes within its 5 ms
    assert np.diff(starts[1:]) == pytest.approx([1000, 1000])
    assert bench.statistics.overruns == 0
    assert [op for op, *_ in bench.world.replies] == ["pause", "resume"]


def test_single_steps_while_paused() -> None:
    bench = Bench(steps=9, claimed={}, happenings=[
        Happening(500, op="step", args={"count": 2}), Happening(90_000, op="stop"),
    ])  # fmt: skip
    assert (bench.outcome.ended, bench.outcome.steps) == ("stop", 3)


def test_a_single_step_ends_at_the_duration() -> None:
    bench = Bench(steps=2, claimed={}, happenings=[Happening(500, op="step", args={"count": 50})])
    assert (bench.outcome.ended, bench.outcome.steps) == ("duration", 2)


def test_requests_are_answered_while_many_single_steps_are_taken() -> None:
    """However many were asked for: the next request waits for one step, and may end them."""
    bench = Bench(steps=200, claimed={}, happenings=[
        Happening(500, op="step", args={"count": 2**62}), Happening(20_000, op="status"), Happening(40_000, op="stop"),
    ])  # fmt: skip
    assert [op for op, *_ in bench.world.replies] == ["step", "status", "stop"]
    assert bench.outcome.ended == "stop"
    assert bench.outcome.steps < 200


def test_reset_starts_from_the_beginning() -> None:
    bench = Bench(steps=3, claimed={}, happenings=[Happening(1500, op="reset", args={"seed": 7})])
    assert [event[1] for event in bench.log if event[0] == "publish"] == [0, 1, 0, 1, 2]
    assert bench.outcome.steps == bench.statistics.steps == 3
    assert bench.outcome.final["sum"] == pytest.approx(7 + 3 * 0.25)


def test_snapshot_and_restore_by_request() -> None:
    blob = base64.b64encode(b"100.0 1").decode()
    bench = Bench(steps=3, claimed={}, happenings=[
        Happening(500, op="snapshot"), Happening(1500, op="restore", args={"state": blob}),
    ])  # fmt: skip
    assert bench.world.replies[0] == ("snapshot", {"step": 1, "state": base64.b64encode(b"0.25 1").decode()}, None)
    assert bench.outcome.final["sum"] == pytest.approx(100.25)


@pytest.mark.parametrize(
    ("op", "args", "text"),
    [
        ("reset", {"seed": "x"}, "seed must be a whole number"),
        ("step", {"count": 0}, "count must be"),
        ("reset", {"seed": -1}, "reset: seed must be a whole number >= 0, got -1"),
        ("reset", {"seed": True}, "seed must be a whole number"),
        ("reset", {"sed": 7}, "unknown argument of the request reset 'sed'; did you mean seed?"),
        ("step", {"foo": 1}, "unknown argument of the request step 'foo'; known: count"),
        ("pause", {"foo": 1}, "unknown argument of the request pause 'foo'; there is none"),
        ("restore", {}, "restore: state: expected the base64 text that a snapshot returned, got none"),
        ("restore", {"state": 3}, "got int"),
        ("restore", {"state": "%%"}, "got text that is not base64"),
        ("restore", {"state": ""}, "got empty text"),
        ("set", {"mass": 1}, "no parameters that can be changed"),
        ("paus", {}, "did you mean pause"),
        ("note", {str(k): 1 for k in range(17)}, "note: expected at most 16 names, got 17"),
        ("note", {"grants": {"a": 1}}, "note: grants: expected numbers or texts, 1024 at most"),
        ("note", {"grants": [0.0] * 1025}, "note: grants: expected numbers or texts, 1024 at most"),
    ],
)
def test_a_request_that_cannot_be_done_is_answered_and_the_run_goes_on(op: str, args: dict, text: str) -> None:
    bench = Bench(steps=3, claimed={}, happenings=[Happening(500, op=op, args=args)])
    assert bench.outcome.ended == "duration"
    (_, result, error) = bench.world.replies[0]
    assert result is None
    assert text in (error or "")


def test_divergence_ends_with_the_last_good_state() -> None:
    from tests.loop import bench as module

    class Plant(module.Plant):
        def step(self, command: np.ndarray) -> None:
            if self.count == 2:
                raise DivergedError(3e-3, "sum", {"sum": np.array(1.5)})
            super().step(command)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Plant", Plant)
        bench = Bench(steps=9, arrivals=on_time(9))
    assert bench.outcome.ended == "diverged"
    assert bench.outcome.message == "the simulation diverged at t = 0.003 s: sum is not finite"
    assert (bench.outcome.steps, bench.outcome.final["sum"]) == (2, 1.5)
    assert sum(bench.counts) == bench.statistics.steps == 2


def test_an_interrupt_ends_after_the_present_step() -> None:
    def status(loop: object) -> None:
        if loop.step >= 60:  # type: ignore[attr-defined]
            loop.end("interrupt")  # type: ignore[attr-defined]

    bench = Bench(steps=None, claimed={}, status=status)
    assert bench.outcome.ended == "interrupt"
    assert 60 <= bench.outcome.steps < 120


def test_the_command_trace_keeps_what_the_plant_got() -> None:
    trace = CommandTrace((Channel("a"), Channel("b")), (Channel("sum"),), 4)
    bench = Bench(steps=4, arrivals=on_time(2), commands=trace)
    assert [tuple(row) for row in trace.command] == bench.plant.commands
    assert [OUTCOME_WORDS[code] for code in trace.outcome] == ["applied", "applied", "missed", "missed"]
    assert trace.seq.tolist() == [0, 1, 1, 1]
    assert trace.check[:, 0] == pytest.approx(np.cumsum([sum(c) for c in bench.plant.commands]))
    assert (trace.steps, trace.altered, trace.columns()) == (4, [], ["sum"])


@pytest.mark.parametrize(("requests", "altered"), [(("set", "reset"), [0]), (("reset", "set"), [1]), (("reset",), [])])
def test_a_reset_keeps_in_the_trace_that_a_parameter_was_set(requests: tuple[str, ...], altered: list[int]) -> None:
    class Plant(bench_module.Plant):
        def set(self, **changes: float) -> None:
            self.log.append(("set", changes))

    trace = CommandTrace((Channel("a"), Channel("b")), (Channel("sum"),), 8)
    arguments: dict[str, dict[str, Any]] = {"set": {"mass": 2.0}, "reset": {"seed": 7}}
    happenings = [Happening(1_050 * k, op=op, args=arguments[op]) for k, op in enumerate(requests, 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_module, "Plant", Plant)
        bench = Bench(steps=8, arrivals=on_time(8), commands=trace, happenings=happenings)
    assert [error for _, _, error in bench.world.replies] == [None] * len(requests)
    assert trace.altered == altered


def test_a_request_that_takes_longer_than_the_slack_costs_periods_and_no_overrun() -> None:
    class Slow(bench_module.Plant):
        def set(self, **changes: float) -> None:
            self.clock.advance(2_700_000)
            self.log.append(("set", changes))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_module, "Plant", Slow)
        bench = Bench(
            steps=3, arrivals=[Arrival(us, k, {0: 0.1}) for k, us in enumerate((10, 3_010, 4_010))], overrun="abort",
            happenings=[Happening(50, op="set", args={"mass": 2.0})],
        )  # fmt: skip
    # step 0 ends at 20 us, the request at 2720: periods 1 and 2 are gone
    assert [event[2] for event in bench.events if event[0] == "publish"] == [0.0, 3000.0, 4000.0]
    assert ("set", {"mass": 2.0}) in bench.log
    assert bench.world.replies == [("set", {"step": 1}, None)]
    assert (bench.counts, bench.statistics.overruns, bench.statistics.skipped) == ((3, 0, 0, 0), 0, 2)
    assert bench.loop.alterations == 1


def test_of_two_values_the_one_that_was_taken_is_kept_for_a_replay() -> None:
    """A plant that does not state what it takes, and refuses the second when it has taken the first."""

    class Choosy(bench_module.Plant):
        def set(self, **changes: float) -> None:
            for name in changes:
                if name != "mass":
                    raise ModelError(f"{name} cannot change")
                self.log.append(("set", dict(changes)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_module, "Plant", Choosy)
        asked = Happening(50, op="set", args={"mass": 2.0, "nosuch": 1.0})
        bench = Bench(steps=3, arrivals=[Arrival(10 + 1000 * k, k, {0: 0.1}) for k in range(3)], happenings=[asked])
    assert ("set", {"mass": 2.0}) in bench.log
    assert [change["args"] for change in bench.loop.changes] == [{"mass": 2.0}]
    assert "nosuch cannot change" in str(bench.world.replies[0][2])


@pytest.mark.parametrize("mode", ["realtime", "lockstep", "free", "external"])
def test_every_request_is_done_in_every_mode(mode: str) -> None:
    blob = base64.b64encode(b"100.0 1").decode()
    asked = [
        ("pause", {}), ("snapshot", {}), ("restore", {"state": blob}), ("step", {"count": 2}), ("resume", {}),
        ("reset", {"seed": 3}), ("set", {"mass": 1}), ("stop", {}),
    ]  # fmt: skip
    happenings = [Happening(20_000 * (k + 1), op=op, args=args) for k, (op, args) in enumerate(asked)]
    ticks = [1000.0 * k for k in range(400)] if mode == "external" else []
    bench = Bench(mode, steps=None, claimed={}, happenings=happenings, ticks=ticks)
    assert bench.outcome.ended == "stop"
    assert [op for op, *_ in bench.world.replies] == [op for op, _ in asked]
    assert [op for op, _, error in bench.world.replies if error] == ["set"]
    assert bench.world.replies[2][1] is not None
