"""Limits, grace and the start on the fake clock: which step ends the run, and the message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmms.base.errors import ModelError
from rtmms.loop.miss_policies import FIRST_NS
from rtmms.loop.policies import Counts, Limits, Policies, Share, add, exceeded_share, limit_message, parse_limit
from tests.loop.bench import Arrival, Bench, Happening, on_time


def ended(bench: Bench) -> tuple[str, int]:
    return bench.outcome.ended, bench.outcome.steps


# --- the functions by themselves --------------------------------------------------------------------------------------


def test_no_limit_is_never_exceeded() -> None:
    assert limit_message(Limits(), Counts(10**9, 10**9, 10**9, 10**9)) == ""
    assert not Limits().any
    assert Limits(overruns=0).any


@pytest.mark.parametrize("name", ["misses", "misses_in_a_row", "overruns", "overruns_in_a_row", "stale"])
def test_a_limit_is_what_may_be_and_one_more_is_too_many(name: str) -> None:
    limits = Limits(**{name: 3})
    assert limit_message(limits, Counts(**{name: 3})) == ""
    text = limit_message(limits, Counts(**{name: 4}))
    assert text.startswith("4 ")
    assert "3 allowed (--max-" in text


@given(steps=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_counts_are_sums_and_the_length_of_the_last_row(steps: list[tuple[bool, bool]]) -> None:
    counts = Counts()
    for missed, overran in steps:
        add(counts, missed, overran)
    for kind, total, row in (
        (0, counts.misses, counts.misses_in_a_row),
        (1, counts.overruns, counts.overruns_in_a_row),
    ):
        marks = "".join("x" if step[kind] else "." for step in steps)
        assert total == marks.count("x")
        assert row == len(marks) - len(marks.rstrip("x"))


@pytest.mark.parametrize("options", [{"limits": Limits(misses=-1)}, {"grace_s": -1}, {"grace_s": float("inf")}])
def test_limits_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"policies: (limits\.misses|grace_s) must be >= 0"):
        Policies(**options)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("0", 0), (" 12 ", 12), ("0%", Share(0.0)), ("0.1%", Share(0.001)), ("100 %", Share(1.0))],
)
def test_a_limit_is_a_count_or_a_share(text: str, limit: int | Share) -> None:
    assert parse_limit(text) == limit


@pytest.mark.parametrize("text", ["", "-1", "1.5", "101%", "-1%", "nan%", "1%%", "%", "1% 2", "1e3", "2000000000", "x"])
def test_anything_else_is_no_limit(text: str) -> None:
    with pytest.raises(ModelError, match="expected a count from 0 to 1000000000, or a share from 0% to 100%"):
        parse_limit(text)


def test_a_share_is_judged_of_all_steps_and_never_before_the_end() -> None:
    limits = Limits(misses=Share(0.01), stale=Share(0.02))
    assert limits.any
    assert limit_message(limits, Counts(misses=10**6, stale=10**6)) == ""
    assert exceeded_share(limits, Counts(misses=10, stale=20), 1000) == ""
    result = exceeded_share(limits, Counts(misses=11), 1000)
    assert result == "11 misses of 1000 steps (1.1 %), 1 % allowed (--max-misses)"
    assert exceeded_share(limits, Counts(stale=21), 1000).endswith("2 % allowed (--max-stale)")


# --- stale steps ------------------------------------------------------------------------------------------------------


def aging(first_stale: int, steps: int = 20) -> list[Arrival]:
    """Answers to each step in time, stale from one step on."""
    return [Arrival(k * 1000 + 100, k, {0: 0.5}, stale=k >= first_stale) for k in range(steps)]


def test_a_step_with_an_old_value_is_stale_and_neither_applied_nor_missed() -> None:
    bench = Bench(steps=20, arrivals=aging(12))
    assert (bench.counts, bench.statistics.stale) == ((12, 0, 0, 0), 8)
    assert {policy for *_, policy in bench.world.published} == {""}, "no miss policy stands in for it"


def test_a_missing_command_beside_an_old_value_is_a_miss() -> None:
    arrivals = [Arrival(k * 1000 + 100, k, {0: 0.5}, peer="left", stale=True) for k in range(4)]
    bench = Bench(steps=4, claimed={"left": (0,), "right": (1,)}, arrivals=arrivals)
    assert (bench.counts, bench.statistics.stale) == ((0, 4, 0, 0), 0)


@pytest.mark.parametrize("mode", ["realtime", "lockstep", "free"])
def test_a_count_of_stale_steps_ends_the_run_at_one_too_many(mode: str) -> None:
    arrivals = aging(5) if mode == "realtime" else [Arrival(0, k, {0: 0.5}, stale=k >= 5) for k in range(20)]
    bench = Bench(mode, steps=20, arrivals=arrivals, limits=Limits(stale=0))
    if mode == "free":  # takes all at once: the newest of them is old
        assert ended(bench) == ("policy", 1)
        return
    assert ended(bench) == ("policy", 6)
    assert bench.outcome.message == "step 5: 1 stale steps, 0 allowed (--max-stale)"


@pytest.mark.parametrize(("share", "reason"), [(0.4, "duration"), (0.39, "policy")])
def test_a_share_lets_the_run_come_to_its_end(share: float, reason: str) -> None:
    bench = Bench(steps=20, arrivals=aging(12), limits=Limits(stale=Share(share)))
    assert ended(bench) == (reason, 20)
    assert (bench.outcome.message == "") is (reason == "duration")


# --- misses -----------------------------------------------------------------------------------------------------------


def test_the_total_of_misses_ends_the_run_at_one_too_many_and_names_the_peer() -> None:
    answered = [k for k in range(20) if k % 3]
    arrivals = [a for k in answered for a in on_time(range(k, k + 1))]
    arrivals = [Arrival(5, 0, {0: 0.1}), *arrivals]  # step 0 is answered, 3, 6 and 9 are not
    bench = Bench(steps=20, arrivals=arrivals, limits=Limits(misses=2))
    assert ended(bench) == ("policy", 10)
    assert bench.outcome.message == "step 9: 3 misses, 2 allowed (--max-misses); no command from peer"
    assert bench.counts == (7, 3, 0, 0)


def test_misses_in_a_row_begin_anew_after_a_good_step() -> None:
    arrivals = on_time(range(0, 1)) + on_time(range(3, 4))  # 1, 2 missed, 3 good, 4, 5, 6 missed
    bench = Bench(steps=20, arrivals=arrivals, limits=Limits(misses_in_a_row=2))
    assert ended(bench) == ("policy", 7)
    assert "step 6: 3 misses in a row, 2 allowed (--max-consecutive-misses)" in bench.outcome.message


def test_a_limit_of_zero_is_the_first_miss_after_it_was_applied() -> None:
    bench = Bench(steps=20, arrivals=on_time(2), limits=Limits(misses=0))
    assert ended(bench) == ("policy", 3)
    assert len(bench.plant.commands) == 3  # hold stood in for it, as asked


def test_within_the_limit_the_run_goes_on() -> None:
    bench = Bench(steps=5, arrivals=on_time(1), limits=Limits(misses=4, misses_in_a_row=4))
    assert ended(bench) == ("duration", 5)


def test_unclaimed_steps_and_free_mode_have_no_misses_to_limit() -> None:
    assert ended(Bench(steps=5, claimed={}, limits=Limits(misses=0))) == ("duration", 5)
    assert ended(Bench("free", steps=50, limits=Limits(misses=0))) == ("duration", 50)


def test_the_first_limit_reached_is_the_one_that_is_reported() -> None:
    bench = Bench(steps=9, arrivals=on_time(1), limits=Limits(misses=3, misses_in_a_row=1))
    assert "--max-consecutive-misses" in bench.outcome.message


def test_limits_hold_for_ticks_too() -> None:
    bench = Bench("external", ticks=[0, 1000, 2000, 3000], steps=4, arrivals=on_time(1), limits=Limits(misses=1))
    assert ended(bench) == ("policy", 3)


# --- overruns ---------------------------------------------------------------------------------------------------------


def test_the_total_of_overruns_ends_the_run() -> None:
    bench = Bench(steps=9, claimed={}, cost_us={1: 1500, 4: 1500}, limits=Limits(overruns=1))
    assert ended(bench) == ("policy", 5)
    assert bench.outcome.message == "step 4: 2 overruns, 1 allowed (--max-overruns)"


def test_overruns_in_a_row() -> None:
    cost = {1: 1500, 3: 1500, 4: 1500, 5: 1500}
    bench = Bench(steps=9, claimed={}, cost_us=cost, limits=Limits(overruns_in_a_row=2))
    assert ended(bench) == ("policy", 6)
    assert "3 overruns in a row, 2 allowed" in bench.outcome.message


def test_a_step_both_missed_and_overrun_counts_as_each() -> None:
    bench = Bench(steps=9, arrivals=on_time(1), cost_us={1: 600}, limits=Limits(misses=9, overruns=0))
    assert ended(bench) == ("policy", 2)
    assert bench.counts[1] == 1


# --- grace ------------------------------------------------------------------------------------------------------------


def test_in_the_grace_nothing_counts_and_afterwards_all_does() -> None:
    bench = Bench(steps=30, arrivals=on_time(1), limits=Limits(misses=2), grace_s=10e-3)
    # steps 1 to 9 end at 1510 .. 9510 us, within 10 ms of the start; of the later ones 10, 11, 12 are missed
    assert ended(bench) == ("policy", 13)
    assert bench.statistics.misses == 12


def test_in_the_grace_abort_on_a_miss_holds_and_reports_it() -> None:
    bench = Bench(steps=30, arrivals=on_time(1), miss="abort", grace_s=5e-3)
    assert ended(bench) == ("policy", 6)
    assert [policy for *_, policy in bench.world.published][:6] == ["", "", "hold", "hold", "hold", "hold"]
    assert bench.plant.commands[4] == (0.5, 0.0)


def test_the_grace_ends_at_its_instant() -> None:
    cost = {4: 10}
    assert ended(Bench(steps=9, arrivals=on_time(4), miss="abort", grace_s=4.5e-3, cost_us=cost)) == ("policy", 5)
    assert ended(Bench(steps=9, arrivals=on_time(4), miss="abort", grace_s=4.500001e-3, cost_us=cost)) == ("policy", 6)


def test_in_the_grace_abort_on_an_overrun_skips() -> None:
    bench = Bench(steps=9, claimed={}, cost_us={0: 2300, 5: 1500}, overrun="abort", grace_s=4e-3)
    starts = [event[2] for event in bench.log if event[0] == "publish"]
    assert starts[:2] == [0.0, 3000.0]
    assert ended(bench) == ("policy", 6)


def test_a_reset_gives_the_grace_again_and_counts_from_nothing() -> None:
    bench = Bench(
        steps=8, arrivals=on_time(1), limits=Limits(misses=3), happenings=[Happening(3_700, op="reset")]
    )  # fmt: skip
    assert bench.statistics.misses == 4
    assert ended(bench)[0] == "policy"
    again = Bench(
        steps=4, arrivals=on_time(1), limits=Limits(misses=0), grace_s=20e-3, happenings=[Happening(3_700, op="reset")]
    )
    assert ended(again) == ("duration", 4)


# --- the start --------------------------------------------------------------------------------------------------------


def test_a_peer_that_has_never_answered_aborts_nothing_for_a_second() -> None:
    bench = Bench(steps=2000, miss="abort")
    assert bench.outcome.ended == "policy"
    assert bench.outcome.steps == FIRST_NS // 1_000_000  # claimed one period before step 0
    assert "peer sent no command for step" in bench.outcome.message


def test_once_it_has_answered_the_next_miss_aborts() -> None:
    assert ended(Bench(steps=20, arrivals=on_time(range(4, 6)), miss="abort")) == ("policy", 7)


def test_a_newcomer_has_a_second_for_its_first_answer_beside_one_that_answers() -> None:
    arrivals = [Arrival(k * 1000 + 10, k, {0: 0.1}, peer="left") for k in range(12)]
    bench = Bench(
        steps=20, claimed={"left": (0,)}, arrivals=arrivals, happenings=[Happening(2_100, claim=(1,))], miss="abort",
        limits=Limits(misses=0),
    )  # fmt: skip
    assert ended(bench) == ("policy", 13)  # the newcomer's misses do not count, those of the one that stopped do
    assert bench.statistics.misses == 10


def test_the_schedule_begins_when_the_first_commands_are_in_hand() -> None:
    arrivals = [Arrival(2_000, 0, {0: 0.1}), Arrival(4_110, 1, {0: 0.2})]
    bench = Bench(steps=2, arrivals=arrivals, first_us=50_000, miss="abort")
    assert bench.counts == (2, 0, 0, 0)
    # the bench's 0 is one period after the clock's start
    assert bench.events == [
        ("publish", 0, -1000.0), ("step", 0, (0.1, 0.25)), ("publish", 1, 4010.0), ("step", 1, (0.2, 0.25)),
    ]  # fmt: skip
    # the next step begins 2 ms after the end of each of the first five
    assert bench.outcome.wall_s == pytest.approx(4.12e-3)
    assert bench.world.published[0][2:4] == (bench.world.at(49_000), 50_000_000)
    assert bench.statistics.histogram("exchange")[0] == pytest.approx([100.0], rel=2e-3)  # step 0 is none of these


def test_the_first_steps_are_further_apart_and_none_of_them_overruns() -> None:
    arrivals = [Arrival(2_000 * (k + 1) + 30 * k, k, {0: 0.1}) for k in range(9)]
    bench = Bench(steps=9, arrivals=arrivals, first_us=50_000, cost_us={3: 1500})
    begins = np.diff([event[2] for event in bench.events if event[0] == "publish"])
    assert min(begins[1:5]) >= 2000.0
    assert list(begins[5:]) == [1000.0, 1000.0, 1000.0]
    assert bench.statistics.overruns == bench.statistics.skipped == 0


def test_one_that_never_answers_delays_the_start_by_no_more_than_that() -> None:
    bench = Bench(steps=2, first_us=50_000)
    assert bench.counts == (0, 2, 0, 0)
    assert [event[2] for event in bench.events if event[0] == "publish"] == [-1000.0, 49_000.0, 51_510.0]


def test_without_claims_nothing_is_waited_for() -> None:
    bench = Bench(steps=2, claimed={}, first_us=50_000)
    assert [event[2] for event in bench.events if event[0] == "publish"] == [0.0, 1000.0]


def test_a_reset_does_not_wait_again() -> None:
    bench = Bench(steps=2, arrivals=on_time(1, us=0), first_us=50_000, happenings=[Happening(600, op="reset")])
    assert bench.outcome.ended == "duration"
    assert (bench.clock.ns - bench.world.t0) / 1000 < 10_000


def test_a_death_ends_the_wait_for_the_first_commands() -> None:
    bench = Bench(steps=2, first_us=5e6, happenings=[Happening(200_000, dead="peer died")])
    starts = [event[2] for event in bench.events if event[0] == "publish"]
    assert starts[0] == -1000.0
    assert 199_000 <= starts[1] < 300_000
    assert bench.counts == (0, 2, 0, 0)


def test_a_stop_is_received_in_the_wait_for_the_first_commands() -> None:
    bench = Bench(steps=2, first_us=5e6, happenings=[Happening(200_000, op="stop")])
    assert ended(bench) == ("stop", 0)
    assert (bench.clock.ns - bench.world.t0) / 1000 < 300_000
