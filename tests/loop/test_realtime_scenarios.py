"""Realtime on the fake clock: the exact order of events, and what each kind of lateness leads to."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.loop.policies import Policies
from tests.loop.bench import PERIOD_US, US, Arrival, Bench, Happening, on_time


def test_every_step_publishes_collects_steps_then_serves_in_this_order() -> None:
    bench = Bench(arrivals=on_time(3))
    assert bench.log == [
        ("publish", 0, 0.0), ("step", 0, (0.5, 0.0)), ("serve", 110.0),
        ("publish", 1, 1000.0), ("step", 1, (0.51, 0.0)), ("serve", 1110.0),
        ("publish", 2, 2000.0), ("step", 2, (0.52, 0.0)), ("serve", 2110.0),
    ]  # fmt: skip
    assert bench.counts == (3, 0, 0, 0)
    assert (bench.outcome.ended, bench.outcome.steps, bench.outcome.simulated_s) == ("duration", 3, pytest.approx(3e-3))


def test_the_state_carries_its_deadline_and_the_budget_that_is_left() -> None:
    bench = Bench(arrivals=on_time(2), steps=2, wake_late_us=30, deadline_us=500)
    step, time, deadline, budget, _ = bench.world.published[1]
    assert (step, time) == (1, pytest.approx(1e-3))
    assert deadline == bench.world.at(1500)
    assert budget == 470 * US  # it woke 30 us late


def test_a_command_at_the_deadline_is_in_time() -> None:
    bench = Bench(steps=1, arrivals=[Arrival(500, 0, {0: 0.5})])
    assert bench.counts == (1, 0, 0, 0)
    assert bench.plant.commands == [(0.5, 0.25)]


def test_a_command_one_nanosecond_after_the_deadline_is_missed_then_becomes_the_held_value() -> None:
    bench = Bench(steps=2, arrivals=[Arrival(500.001, 0, {0: 0.5})])
    assert bench.counts == (0, 2, 0, 0)
    assert bench.world.late == 1
    assert bench.plant.commands == [(0.0, 0.25), (0.5, 0.25)]


def test_an_early_command_waits_for_its_step() -> None:
    bench = Bench(steps=2, arrivals=[Arrival(10, 0, {0: 0.1}), Arrival(20, 1, {0: 0.2})])
    assert bench.plant.commands == [(0.1, 0.25), (0.2, 0.25)]
    assert bench.counts == (2, 0, 0, 0)
    assert ("publish", 1, 1000.0) in bench.log  # early is no reason to start early


def test_a_burst_of_commands_leaves_each_for_its_own_step() -> None:
    bench = Bench(steps=4, arrivals=[Arrival(10, k, {0: k / 10}) for k in range(4)])
    assert [command[0] for command in bench.plant.commands] == [0.0, 0.1, 0.2, 0.3]
    assert bench.counts == (4, 0, 0, 0)


def test_a_double_command_counts_once_and_the_first_stands() -> None:
    bench = Bench(steps=1, arrivals=[Arrival(10, 0, {0: 0.1}, seq=1), Arrival(10, 0, {0: 0.9}, seq=1)])
    assert bench.plant.commands == [(0.1, 0.25)]
    assert bench.world.rejected == {"stale": 1}


def test_a_falling_sequence_number_is_not_used() -> None:
    bench = Bench(steps=2, arrivals=[Arrival(10, 0, {0: 0.1}, seq=9), Arrival(1010, 1, {0: 0.9}, seq=3)])
    assert bench.plant.commands == [(0.1, 0.25), (0.1, 0.25)]
    assert bench.counts == (1, 1, 0, 0)


def test_silence_of_one_actuator_within_a_command_means_hold() -> None:
    bench = Bench(steps=2, arrivals=[Arrival(10, 0, {0: 0.1, 1: 0.7}), Arrival(1010, 1, {0: 0.2})])
    assert bench.plant.commands[1] == (0.2, 0.7)
    assert bench.counts == (2, 0, 0, 0)


def test_two_peers_the_step_waits_for_the_slower() -> None:
    arrivals = [Arrival(10, 0, {0: 0.1}, peer="left"), Arrival(400, 0, {1: 0.2}, peer="right")]
    bench = Bench(steps=1, claimed={"left": (0,), "right": (1,)}, arrivals=arrivals)
    assert bench.plant.commands == [(0.1, 0.2)]
    assert bench.statistics.histogram("exchange")[0] == pytest.approx([400.0], rel=2e-3)


def test_two_peers_one_late_only_its_actuator_is_stood_in_for() -> None:
    arrivals = [Arrival(k * 1000 + 10, k, {0: 0.1 * (k + 1)}, peer="left") for k in range(2)]
    arrivals += [Arrival(10, 0, {1: 0.9}, peer="right")]
    bench = Bench(steps=2, claimed={"left": (0,), "right": (1,)}, arrivals=arrivals, miss="home")
    assert bench.plant.commands[1][0] == 0.2
    assert bench.plant.commands[1][1] == pytest.approx(0.9 - 1.25e-3)
    assert bench.counts == (1, 1, 0, 0)


def test_nobody_claims_the_plant_steps_at_once_at_neutral() -> None:
    bench = Bench(steps=2, claimed={})
    assert bench.counts == (0, 0, 2, 0)
    assert bench.plant.commands == [(0.0, 0.25)] * 2
    assert bench.log[2] == ("serve", 10.0)  # it did not wait for the deadline


def test_hold_keeps_the_last_good_value_and_reports_it() -> None:
    bench = Bench(steps=3, arrivals=on_time(1))
    assert bench.plant.commands == [(0.5, 0.0)] * 3
    assert [policy for *_, policy in bench.world.published] == ["", "", "hold"]
    assert bench.statistics.max_consecutive == 2


def test_a_return_clears_the_run_of_misses() -> None:
    bench = Bench(steps=5, arrivals=on_time(range(0, 1)) + on_time(range(3, 5)))
    assert bench.counts == (3, 2, 0, 0)
    assert bench.statistics.max_consecutive == 2
    assert bench.statistics.consecutive == 0
    assert bench.plant.commands[3][0] == 0.53


def test_home_moves_to_neutral_at_the_limited_rate_and_stops_there() -> None:
    bench = Bench(steps=4, arrivals=[Arrival(10, 0, {0: 0.0015, 1: 1.0})], miss="home")
    a, b = zip(*bench.plant.commands, strict=True)
    assert a == pytest.approx((0.0015, 0.0005, 0.0, 0.0))  # from the limit, 1.0, in 1 s: 1e-3 a step
    assert b == pytest.approx((1.0, 1 - 1.25e-3, 1 - 2.5e-3, 1 - 3.75e-3))  # 1.25 from the farther limit


def test_extrapolate_goes_on_with_the_last_change_up_to_the_limit() -> None:
    arrivals = [Arrival(10, 0, {0: 0.2}), Arrival(1010, 1, {0: 0.5})]
    bench = Bench(steps=5, arrivals=arrivals, miss="extrapolate")
    assert [command[0] for command in bench.plant.commands] == pytest.approx([0.2, 0.5, 0.8, 1.0, 1.0])


def test_abort_ends_the_run_at_the_first_miss_and_names_the_peer() -> None:
    bench = Bench(steps=10, arrivals=on_time(2), miss="abort")
    assert (bench.outcome.ended, bench.outcome.steps) == ("policy", 3)
    assert "peer sent no command for step 2" in bench.outcome.message
    assert sum(bench.counts) == 3


def test_a_held_value_older_than_half_a_second_goes_home() -> None:
    bench = Bench(steps=510, arrivals=on_time(1))
    first_home = next(k for k, *_, policy in bench.world.published if policy == "home")
    assert first_home == 501  # state 501 is of step 500, given up 500.4 ms after the last good command
    assert bench.plant.commands[499] == (0.5, 0.0)
    assert bench.plant.commands[500][0] == pytest.approx(0.499)


def test_the_age_counts_for_each_actuator_alone() -> None:
    arrivals = [Arrival(k * 1000 + 10, k, {0: 0.1}, peer="left") for k in range(505)]
    arrivals += [Arrival(10, 0, {1: 1.0}, peer="right")]
    bench = Bench(steps=505, claimed={"left": (0,), "right": (1,)}, arrivals=arrivals)
    assert bench.plant.commands[504][0] == 0.1
    assert bench.plant.commands[504][1] < 1.0


def test_bye_releases_its_actuators_go_home_and_steps_are_unclaimed() -> None:
    bench = Bench(steps=4, arrivals=[Arrival(10, 0, {0: 0.0025})], happenings=[Happening(500, release=(0, 1))])
    assert [command[0] for command in bench.plant.commands] == pytest.approx([0.0025, 0.0015, 0.0005, 0.0])
    assert bench.counts == (1, 0, 3, 0)


def test_a_claim_taken_within_the_run_is_waited_for_from_the_next_step() -> None:
    bench = Bench(
        steps=3, claimed={}, happenings=[Happening(100, claim=(0, 1))],
        arrivals=[Arrival(1300, 1, {0: 0.3}, peer="late"), Arrival(2300, 2, {0: 0.4}, peer="late")],
    )  # fmt: skip
    assert bench.counts == (2, 0, 1, 0)
    assert [command[0] for command in bench.plant.commands] == [0.0, 0.3, 0.4]


def test_death_without_bye_is_a_miss_at_each_step_and_the_run_goes_on() -> None:
    bench = Bench(steps=5, arrivals=on_time(2), happenings=[Happening(1500, dead="peer died")])
    assert bench.counts == (2, 3, 0, 0)
    assert bench.outcome.ended == "duration"


def test_a_late_wake_up_is_measured_and_costs_budget_not_phase() -> None:
    bench = Bench(steps=2, arrivals=[Arrival(0, 0, {0: 0.1}), Arrival(1000, 1, {0: 0.2})], wake_late_us=70)
    assert [event for event in bench.log if event[0] == "publish"] == [("publish", 0, 70.0), ("publish", 1, 1070.0)]
    assert bench.statistics.timing_us()["wake"]["max"] == pytest.approx(70, rel=2e-3)


def test_skip_drops_whole_periods_and_keeps_the_phase() -> None:
    bench = Bench(steps=3, claimed={}, cost_us={0: 2300})
    starts = [event[2] for event in bench.log if event[0] == "publish"]
    assert starts == [0.0, 3000.0, 4000.0]
    assert (bench.statistics.overruns, bench.statistics.skipped) == (1, 2)
    assert bench.outcome.simulated_s == pytest.approx(3e-3)  # simulated time did not advance for them


def test_a_step_that_ends_with_its_period_is_no_overrun() -> None:
    bench = Bench(steps=2, claimed={}, cost_us={0: 1000})
    assert (bench.statistics.overruns, bench.statistics.skipped) == (0, 0)
    assert bench.events[2] == ("publish", 1, 1000.0)


def test_a_step_that_ends_one_nanosecond_after_its_period_is_one() -> None:
    bench = Bench(steps=2, claimed={}, cost_us={0: 1000.001})
    assert (bench.statistics.overruns, bench.statistics.skipped) == (1, 1)
    assert bench.events[2] == ("publish", 1, 2000.0)


def test_slip_starts_at_once_and_moves_the_schedule() -> None:
    bench = Bench(steps=3, claimed={}, cost_us={0: 2300}, overrun="slip")
    assert [event[2] for event in bench.log if event[0] == "publish"] == [0.0, 2300.0, 3300.0]


def test_catchup_runs_back_to_back_until_it_owes_nothing() -> None:
    bench = Bench(steps=5, claimed={}, cost_us={0: 2300}, overrun="catchup")
    assert [event[2] for event in bench.log if event[0] == "publish"] == [0.0, 2300.0, 2310.0, 3000.0, 4000.0]
    assert bench.statistics.skipped == 0


def test_catchup_owes_no_more_than_its_limit() -> None:
    bench = Bench(steps=3, claimed={}, cost_us={0: 9300}, overrun="catchup", catchup=2)
    # 9 steps are due or under way at 9300: 2 are owed, the other 7 dropped
    assert bench.statistics.skipped == 7
    assert [event[2] for event in bench.log if event[0] == "publish"] == [0.0, 9300.0, 9310.0]


def test_overrun_abort_ends_the_run_and_reports_by_how_much() -> None:
    bench = Bench(steps=9, claimed={}, cost_us={1: 1500}, overrun="abort")
    assert (bench.outcome.ended, bench.outcome.steps) == ("policy", 2)
    assert "step 1 ended 500 us after its period" in bench.outcome.message


def test_a_clock_that_jumps_past_periods_in_the_slack_is_taken_up_by_skip() -> None:
    class Stall:
        due = 0

        def start(self, outputs: object) -> None: ...
        def clear(self) -> None: ...

        def after_step(self, step: int, *remaining: object) -> None:
            bench_clock[0].advance(5_400 * US)
            self.due = 1 << 40

    bench_clock: list = []
    stall = Stall()
    original = Bench.__init__

    class Stalled(Bench):
        def __init__(self) -> None:
            original(self, steps=2, claimed={}, observers=(stall,))

    from tests.loop import bench as module

    fake = module.FakeClock

    def remember(*args: int) -> object:
        bench_clock.append(fake(*args))
        return bench_clock[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FakeClock", remember)
        stalled = Stalled()
    assert [event[2] for event in stalled.log if event[0] == "publish"] == [0.0, 6000.0]
    assert stalled.statistics.skipped == 5


def test_without_slack_for_long_requests_are_still_served() -> None:
    bench = Bench(
        steps=1000, claimed={}, cost_us=dict.fromkeys(range(1000), 990), happenings=[Happening(200_000, op="stop")]
    )
    assert bench.outcome.ended == "stop"
    assert 200 <= bench.outcome.steps < 310


def test_the_period_need_not_be_a_whole_number_of_nanoseconds() -> None:
    from rtmms.loop.clock import Schedule

    schedule = Schedule(1e9 / 3, 1000)
    schedule.anchor(0)
    assert schedule.due(3_000_000) == 10**15  # a sum of rounded periods would be 1 ms early


def test_unknown_policies_are_refused_with_the_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="unknown miss policy 'hodl'; did you mean hold"):
        Policies(miss="hodl")
    with pytest.raises(UnknownNameError, match="did you mean skip"):
        Policies(overrun="skp")
    with pytest.raises(ModelError, match="hold_timeout_s must be > 0"):
        Policies(hold_timeout_s=0)


def test_period_of_the_bench_is_what_the_tables_above_assume() -> None:
    assert PERIOD_US == 1000


def test_values_that_are_always_late_are_held_and_do_not_grow_old() -> None:
    arrivals = on_time(1) + [Arrival(k * PERIOD_US + 600, k, {0: 0.5, 1: 0.5}) for k in range(1, 900)]
    bench = Bench(steps=900, arrivals=arrivals)
    assert bench.counts == (1, 899, 0, 0)
    assert bench.world.late > 890
    assert {policy for *_, policy in bench.world.published} == {"", "hold"}
    assert bench.plant.commands[-1] == (0.5, 0.5)


def test_half_a_second_after_the_last_late_one_the_value_goes_home() -> None:
    arrivals = [*on_time(1), Arrival(100 * PERIOD_US + 600, 100, {0: 0.5, 1: 0.5})]
    bench = Bench(steps=650, arrivals=arrivals)
    first_home = next(k for k, *_, policy in bench.world.published if policy == "home")
    assert first_home == 603  # used, and renewed, at step 101; too old at 602


def _end_at(us: float) -> Any:
    """What a signal does, seen when the display is looked after."""

    def status(loop: Any) -> None:
        if loop.clock.now() - loop.started_ns >= us * US:
            loop.end("interrupt")

    return status


def test_a_long_period_is_waited_for_in_slices_so_that_an_interrupt_ends_it() -> None:
    bench = Bench(steps=9, claimed={}, period_us=2e6, status=_end_at(700_000))
    assert (bench.outcome.ended, bench.outcome.steps) == ("interrupt", 1)
    assert 700_000 <= (bench.clock.ns - bench.world.t0) / US < 800_000


def test_a_long_wait_for_commands_is_ended_by_one_too() -> None:
    bench = Bench(steps=9, period_us=2e6, deadline_us=1.8e6, status=_end_at(700_000))
    assert (bench.outcome.ended, bench.outcome.steps) == ("interrupt", 0)
    assert 700_000 <= (bench.clock.ns - bench.world.t0) / US < 800_000


def test_slices_change_nothing_in_when_steps_are_taken() -> None:
    arrivals = [Arrival(k * 2e6 + us, k, {0: 0.1}) for k, us in enumerate((1.7e6, 10, 1.81e6))]
    bench = Bench(steps=3, period_us=2e6, deadline_us=1.8e6, arrivals=arrivals)
    assert [event[2] for event in bench.log if event[0] == "publish"] == [0.0, 2e6, 4e6]
    assert bench.counts == (2, 1, 0, 0)
    assert bench.statistics.overruns == 0
