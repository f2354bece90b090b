"""One direction of an impaired link, and the bookkeeping of both: drawn by the message, counted, never twice."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from rtmms.loop.impairment import Counts, Direction, ImpairedLink, Impairment, impaired_links

DT = 1e-3


def arrivals(steps: int, seed: int = 1, **terms: Any) -> tuple[dict[int, int], dict[str, Any]]:
    """The step at which each state came, of those that count, and the report."""
    link = ImpairedLink([Impairment("one", **terms)], DT, seed)
    came: dict[int, int] = {}
    for step in range(steps):
        if link.sends(step):
            link.states.put(step, step, None, step)
        result = link.states.take(step)
        if result is not None:
            came[result[0]] = step
    return came, link.report()


def test_without_terms_each_message_is_there_at_once() -> None:
    came, result = arrivals(50)
    assert came == {k: k for k in range(50)}
    assert (result["sent"], result["lost"], result["delayed"], result["mean_delay_ms"]) == (50, 0, 0, 0.0)


@pytest.mark.parametrize(("delay_ms", "steps"), [(20.0, 20), (20.4, 21), (0.3, 1), (0.0, 0)])
def test_a_delay_is_whole_steps_and_never_shorter(delay_ms: float, steps: int) -> None:
    came, result = arrivals(100, delay_ms=delay_ms)
    assert came == {k: k + steps for k in range(100 - steps)}
    assert result["mean_delay_ms"] == pytest.approx(steps)


def test_jitter_is_spread_evenly_around_the_delay_and_what_is_overtaken_counts_for_nothing() -> None:
    came, result = arrivals(5000, delay_ms=20.0, jitter_ms=5.0)
    used = [came[k] - k for k in came]
    assert min(used) == 16
    assert max(used) <= 25
    assert list(came) == sorted(came), "a receiver never goes back"
    assert result["overtaken"] > 1000
    assert result["mean_delay_ms"] == pytest.approx(20.5, abs=0.15)  # rounded up to whole steps
    assert result["lost"] == result["reordered"] == result["duplicated"] == 0


def test_chances_are_kept() -> None:
    _, result = arrivals(20_000, loss=0.1, duplicate=0.2, reorder=0.3, delay_ms=2.0)
    assert result["lost"] == pytest.approx(0.1 * 1.2 * 20_000, rel=0.1)
    assert result["duplicated"] == pytest.approx(0.2 * 20_000, rel=0.1)
    assert result["reordered"] == pytest.approx(0.3 * 0.9 * 1.2 * 20_000, rel=0.1)
    copies = result["sent"] + result["duplicated"] - result["lost"]
    assert result["delayed"] + result["reordered"] == copies


def test_a_second_copy_saves_what_the_first_one_lost() -> None:
    came, _ = arrivals(20_000, loss=0.5, duplicate=1.0)
    assert len(came) == pytest.approx(0.75 * 20_000, rel=0.03)


def test_all_is_lost_and_nothing_comes() -> None:
    came, result = arrivals(100, loss=1.0)
    assert came == {}
    assert (result["lost"], result["mean_delay_ms"]) == (100, None)


def test_a_fate_is_of_the_seed_the_name_and_the_direction() -> None:
    terms = {"loss": 0.5, "delay_ms": 3.0, "jitter_ms": 2.0}
    assert arrivals(500, **terms) == arrivals(500, **terms)
    assert arrivals(500, seed=2, **terms)[0] != arrivals(500, **terms)[0]
    links = impaired_links([Impairment("one", **terms), Impairment("two", **terms)], DT, 1)  # type: ignore[arg-type]
    fates = []
    for route in (links["one"].states, links["one"].commands, links["two"].states):
        for step in range(200):
            route.put(step, step, None, step)
        fates.append(tuple(sorted((number, at) for at, number, *_ in route._under_way)))
    assert len(set(fates)) == 3


@pytest.mark.parametrize(("rate", "gaps"), [(50.0, {20}), (30.0, {33, 34}), (1000.0, {1}), (5000.0, {1})])
def test_a_rate_holds_in_the_mean(rate: float, gaps: set[int]) -> None:
    came, result = arrivals(3000, rate_hz=rate)
    steps = list(came)
    assert {b - a for a, b in itertools.pairwise(steps)} == gaps
    assert len(steps) == math.ceil(3.0 * min(rate, 1000.0))
    assert result["withheld"] == 3000 - len(steps)


def test_a_rate_thins_what_a_slow_controller_is_asked() -> None:
    link = ImpairedLink([Impairment("one", rate_hz=30.0)], DT, 0)
    asked = [step for step in range(0, 1000, 20) if link.sends(step, 20)]
    assert len(asked) == 30
    assert asked[0] == 0


def test_it_holds_within_its_times_alone() -> None:
    windows = [Impairment("one", loss=1.0, until_s=0.01), Impairment("one", delay_ms=5.0, from_s=0.02, until_s=0.03)]
    route, came = Direction(windows, DT, 7, Counts()), {}
    for step in range(40):
        route.put(step, step, None, step)
        result = route.take(step)
        if result is not None:
            came[step] = result[0]
    assert list(came) == [*range(10, 20), *range(25, 40)]
    assert came[25] == 20
    assert came[30] == 30, "what set out at 0.025 s was overtaken by what set out when the delay had ended"


def test_a_link_that_went_back_has_nothing_under_way() -> None:
    link = ImpairedLink([Impairment("one", delay_ms=5.0)], DT, 0)
    link.states.put(7, 7, None, 7)
    link.asked(3, 4)
    link.forget()
    assert link.states.take(100) is None
    assert not link.owes(4)
    link.states.put(0, 0, None, 0)
    assert link.states.take(5) == (0, None)


def test_answers_of_one_who_never_answers_are_forgotten() -> None:
    link = ImpairedLink([Impairment("one", loss=0.5)], DT, 0)
    for step in range(10_000):
        link.asked(step, step)
    assert len(link._owed) <= 128
    assert link.answered(9_999) == 9_999
    assert link.answered(0) == -1


def test_a_second_copy_of_the_newest_is_no_news_and_was_not_overtaken() -> None:
    came, result = arrivals(100, duplicate=1.0)
    assert came == {k: k for k in range(100)}
    assert (result["duplicated"], result["overtaken"]) == (100, 0)


def test_messages_under_way_do_not_count_in_the_mean_delay() -> None:
    counts = Counts()
    line = Direction([Impairment("a", delay_ms=5.0)], DT, 1, counts)
    for step in range(4):
        line.put(step, step, None, step)
        assert line.take(step) is None
    assert counts.timed == 0
    for step in range(4, 7):
        line.take(step)
    assert (counts.timed, counts.steps) == (2, 10)
