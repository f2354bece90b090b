"""The mode external on the fake clock: a step for each tick, and the deadline from the tick's coming."""

from __future__ import annotations

import pytest

from tests.loop.bench import US, Arrival, Bench, Happening


def external(ticks: list[float], **options: object) -> Bench:
    steps = options.pop("steps", len(ticks))
    return Bench("external", ticks=ticks, steps=steps, **options)  # type: ignore[arg-type]


def test_each_tick_starts_one_step_in_this_order() -> None:
    bench = external([700, 1234], arrivals=[Arrival(800, 0, {0: 0.1}), Arrival(1300, 1, {0: 0.2})])
    assert bench.events == [
        ("tick", 700.0), ("publish", 0, 700.0), ("step", 0, (0.1, 0.25)),
        ("tick", 1234.0), ("publish", 1, 1234.0), ("step", 1, (0.2, 0.25)),
    ]  # fmt: skip
    assert bench.counts == (2, 0, 0, 0)
    assert bench.outcome.simulated_s == pytest.approx(2e-3)
    assert bench.statistics.timing_us()["slack"]["p50"] is None


def test_the_deadline_runs_from_the_coming_of_the_tick() -> None:
    bench = external([700], wake_late_us=30, deadline_us=500, arrivals=[Arrival(1200, 0, {0: 0.1})])
    (_, _, deadline, budget, _) = bench.world.published[0]
    assert deadline == bench.world.at(1200)
    assert budget == 470 * US
    assert bench.counts == (1, 0, 0, 0)


def test_a_command_one_nanosecond_after_that_is_missed() -> None:
    bench = external([700, 2000], deadline_us=500, arrivals=[Arrival(1200.001, 0, {0: 0.5})])
    assert bench.counts == (0, 2, 0, 0)
    assert bench.world.late == 1
    assert [command[0] for command in bench.plant.commands] == [0.0, 0.5]


def test_the_miss_policy_acts_as_in_realtime() -> None:
    bench = external([0, 900, 2100], miss="home", arrivals=[Arrival(10, 0, {0: 0.0015, 1: 0.25})])
    assert [command[0] for command in bench.plant.commands] == pytest.approx([0.0015, 0.0005, 0.0])
    assert bench.counts == (1, 2, 0, 0)


def test_without_ticks_the_run_waits_and_a_stop_is_still_received() -> None:
    bench = external([100], steps=5, claimed={}, happenings=[Happening(400_000, op="stop")])
    assert (bench.outcome.ended, bench.outcome.steps) == ("stop", 1)
    assert 400_000 <= (bench.clock.ns - bench.world.t0) / US < 411_000


def test_without_ticks_an_interrupt_ends_it() -> None:
    def status(loop: object) -> None:
        loop.end("interrupt")  # type: ignore[attr-defined]

    bench = external([], steps=5, claimed={}, status=status)
    assert (bench.outcome.ended, bench.outcome.steps) == ("interrupt", 0)


def test_a_tick_that_comes_within_a_step_waits_and_counts_as_an_overrun() -> None:
    bench = external([0, 50, 3000], claimed={}, cost_us={0: 200})
    starts = [event[2] for event in bench.log if event[0] == "publish"]
    assert starts == [0.0, 200.0, 3000.0]
    assert (bench.statistics.overruns, bench.statistics.skipped) == (1, 0)
    assert bench.statistics.timing_us()["wake"]["max"] == pytest.approx(150, rel=2e-3)


def test_a_step_that_ends_as_the_next_tick_comes_is_an_overrun_one_that_ends_before_is_none() -> None:
    assert external([0, 10], claimed={}).statistics.overruns == 1
    assert external([0, 10.001], claimed={}).statistics.overruns == 0


def test_two_ticks_at_one_instant_are_two_steps() -> None:
    bench = external([500, 500], claimed={})
    assert [event[2] for event in bench.log if event[0] == "publish"] == [500.0, 510.0]


def test_a_burst_fills_the_queue_and_the_rest_is_surplus() -> None:
    bench = external([0] + [5] * 40 + [9000], steps=18, claimed={})
    assert bench.world.surplus == 40 - 16
    assert bench.outcome.steps == 18  # the first, sixteen that waited, and the last
    assert [event[1] for event in bench.log if event[0] == "tick"][-1] == 9000.0


def test_the_deadline_of_a_tick_that_waited_for_long_is_past_and_the_budget_is_not_negative() -> None:
    bench = external([0, 10], deadline_us=500, cost_us={0: 900}, arrivals=[Arrival(5, 0, {0: 0.1})])
    assert bench.world.published[1][3] == 1
    assert bench.counts == (1, 1, 0, 0)


def test_overrun_policy_abort_ends_the_run() -> None:
    bench = external([0, 50, 100], claimed={}, cost_us={0: 200}, overrun="abort")
    assert (bench.outcome.ended, bench.outcome.steps) == ("policy", 1)
    assert bench.outcome.message == "step 0 ended after the next tick had come (overrun policy abort)"


def test_ticks_while_paused_start_nothing() -> None:
    bench = external([0, 50_000, 51_000, 200_000], steps=2, claimed={}, happenings=[
        Happening(500, op="pause"), Happening(100_000, op="resume"),
    ])  # fmt: skip
    assert [event[2] for event in bench.log if event[0] == "publish"] == [0.0, 200_000.0]
    assert bench.world.surplus == 2


def test_a_single_step_while_paused_needs_no_tick() -> None:
    bench = external([0], steps=3, claimed={}, happenings=[Happening(500, op="step", args={"count": 2})])
    assert (bench.outcome.ended, bench.outcome.steps) == ("duration", 3)


def test_requests_are_answered_while_it_waits() -> None:
    bench = external([0, 90_000], steps=2, claimed={}, happenings=[
        Happening(20_000, op="snapshot"), Happening(40_000, op="reset", args={"seed": 7}),
        Happening(200_000, op="stop"),
    ])  # fmt: skip
    assert [op for op, *_ in bench.world.replies] == ["snapshot", "reset", "stop"]
    assert [event[1] for event in bench.log if event[0] == "publish"] == [0, 0]


def test_a_ticker_that_stops_and_goes_on_costs_nothing_but_wall_time() -> None:
    bench = external([0, 1000, 800_000, 801_000], claimed={})
    assert bench.outcome.steps == 4
    assert bench.statistics.overruns == 0
    assert bench.outcome.simulated_s == pytest.approx(4e-3)
