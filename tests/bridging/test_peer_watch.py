"""What a bridge knows of its peer: the age of its value, its period, its silences and losses; on a clock by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import rtmms
from rtmms.bridging.peer_watch import (
    MAX_EVENTS,
    MAX_INTERVALS,
    MIN_PERIOD_S,
    SILENT_PERIODS,
    UNKNOWN_PERIOD_S,
    PeerWatch,
)
from rtmms.bridging.runner import Runner
from rtmms.wire.protocol.peer_values import read_watch
from tests.bridges.harness import plant_info, state

DT = 1e-3


def go(watch: PeerWatch, until: float) -> None:
    """States of a plant of 1 kHz that began at 0, some of them, until an instant."""
    now = watch._state_at or 0.0
    while now < until:
        now = min(until, now + 0.01)
        watch.saw(round(now / DT), now, now, DT)


def receive(watch: PeerWatch, instants: Iterable[float]) -> None:
    """The peer sends at these instants."""
    for now in instants:
        go(watch, now)
        watch.fed(now)


def every(period_s: float, until_s: float, begin_s: float = 0.0) -> list[float]:
    return [begin_s + k * period_s for k in range(round((until_s - begin_s) / period_s))]


@pytest.mark.parametrize("period_s", [0.001, 0.02, 0.1, 1.0])
def test_a_period_is_learned_and_is_at_least_that_of_schedulers(period_s: float) -> None:
    watch = PeerWatch(0.0)
    assert watch.fresh_s == UNKNOWN_PERIOD_S
    receive(watch, every(period_s, 40 * period_s))
    assert watch.fresh_s == pytest.approx(max(MIN_PERIOD_S, period_s))


def test_a_value_of_a_peer_with_jitter_does_not_become_stale_within_its_longest_regular_interval() -> None:
    watch = PeerWatch(0.0)
    receive(watch, [0.1 * k + 0.01 * (k % 3) for k in range(40)])
    assert watch.fresh_s == pytest.approx(0.11)


def test_a_gap_is_not_learned_and_a_new_rate_is() -> None:
    watch = PeerWatch(0.0)
    receive(watch, every(0.1, 2.0))
    receive(watch, every(0.1, 7.0, 5.0))
    assert watch.fresh_s == pytest.approx(0.1)
    receive(watch, every(0.5, 7.0 + 0.5 * MAX_INTERVALS, 7.0))
    assert watch.fresh_s == pytest.approx(0.5)


def test_messages_that_come_together_are_one() -> None:
    watch = PeerWatch(0.0)
    receive(watch, [0.1 * k + 0.001 * j for k in range(20) for j in range(3)])
    assert watch.fresh_s == pytest.approx(0.1, abs=0.002)


def test_a_silence_has_its_begin_and_its_length_and_is_noticed_once() -> None:
    watch = PeerWatch(0.0)
    receive(watch, every(0.1, 3.05))
    last = 2.9
    assert not watch.falls_silent(last + SILENT_PERIODS * 0.1 - 0.001)
    assert watch.until_silent_s(last + 0.1) == pytest.approx((SILENT_PERIODS - 1) * 0.1)
    go(watch, 3.31)
    assert watch.falls_silent(3.31)
    assert not watch.falls_silent(4.0)
    assert watch.report()["silences"] == [[pytest.approx(last), 2900, None]]
    receive(watch, [5.0])
    assert watch.report()["silences"] == [[pytest.approx(last), 2900, pytest.approx(2.1)]]
    assert (watch.counts, watch.silent) == ({"silences": 1, "losses": 0, "restarts": 1}, False)


@pytest.mark.parametrize(
    ("arguments", "fresh_s", "silent_s"),
    [
        ({"period_s": 0.5}, 0.5, 1.5),
        ({"period_s": 0.001}, MIN_PERIOD_S, SILENT_PERIODS * MIN_PERIOD_S),
        ({"silent_after_s": 4.0}, 0.1, 4.0),
        ({"period_s": 0.5, "silent_after_s": 0.2}, 0.5, 0.2),
        ({"steady": False}, 0.0, None),
        ({"steady": False, "period_s": 0.5}, 0.5, 1.5),
        ({"steady": False, "silent_after_s": 4.0}, 0.0, 4.0),
    ],
)
def test_what_is_given_goes_before_what_is_learned(
    arguments: dict[str, Any], fresh_s: float, silent_s: float | None
) -> None:
    watch = PeerWatch(0.0, **arguments)
    receive(watch, every(0.1, 3.0))
    assert watch.fresh_s == pytest.approx(fresh_s)
    assert watch.until_silent_s(2.9) == (None if silent_s is None else pytest.approx(silent_s))
    assert watch.report()["watched"] is (silent_s is not None)
    assert watch.falls_silent(1e6) is (silent_s is not None)


def test_a_peer_that_never_speaks_is_silent_from_the_first_state_on() -> None:
    watch = PeerWatch(0.0)
    watch.saw(7, 0.007, 100.0, DT)
    assert watch.age_s(100.5) == pytest.approx(0.5)
    assert not watch.falls_silent(100.5)
    assert watch.falls_silent(100.0 + SILENT_PERIODS * UNKNOWN_PERIOD_S)
    assert watch.report()["silences"] == [[0.007, 7, None]]
    assert watch.report()["first_s"] is None


def test_a_pause_of_the_plant_is_no_silence_of_its_peer() -> None:
    watch = PeerWatch(0.0)
    receive(watch, every(0.1, 3.0))
    go(watch, 2.95)
    watch.saw(2951, 2.951, 60.0, DT)
    assert watch.age_s(60.0) == pytest.approx(0.05)
    assert not watch.falls_silent(60.1)
    assert watch.falls_silent(60.3)


def test_a_loss_counts_once_until_the_peer_is_back() -> None:
    watch = PeerWatch(0.0)
    receive(watch, every(0.1, 1.0))
    for _ in range(2):
        go(watch, 1.2)
        watch.lost()
    receive(watch, [1.5])
    watch.lost()
    assert watch.report()["losses"] == [1.2, 1.5]
    assert watch.counts == {"silences": 0, "losses": 2, "restarts": 1}


def test_any_number_of_events_fits_into_a_report_that_the_plant_takes() -> None:
    watch = PeerWatch(0.0, period_s=0.02)
    for k in range(MAX_EVENTS + 20):
        receive(watch, [float(k)])
        watch.lost()
        assert watch.falls_silent(k + 0.5)
    result = watch.report()
    assert read_watch({"watch": result}) == result
    assert (len(result["silences"]), result["silences_count"]) == (MAX_EVENTS, MAX_EVENTS + 20)
    assert (len(result["losses"]), result["losses_count"]) == (MAX_EVENTS, MAX_EVENTS + 20)


def test_another_plant_begins_without_the_events_of_the_one_before() -> None:
    watch = PeerWatch(0.0)
    receive(watch, every(0.1, 3.0))
    assert watch.falls_silent(10.0)
    watch.begin()
    result = watch.report()
    assert (result["first_s"], result["silences"], result["losses"]) == (None, [], [])
    assert watch.fresh_s == pytest.approx(0.1), "it is the same peer"


# --- in the loop of a bridge ------------------------------------------------------------------------------------------


@dataclasses.dataclass(kw_only=True)
class Quiet(rtmms.Bridge):
    """A bridge whose peer is the test."""

    def on_state(self, state: rtmms.State) -> None: ...


@dataclasses.dataclass(kw_only=True)
class Eventful(Quiet):
    sends_on_events = True


class Steps:
    """A link that notes the commands and reports of its bridge."""

    ended = ""

    def __init__(self) -> None:
        self.plant = dataclasses.replace(plant_info(), granted=("left.front",))
        self.commands: list[dict[str, Any]] = []
        self.reports: list[Mapping[str, Any]] = []

    def command(self, values: Mapping[str, float], step: int | None = None, **age: float) -> None:
        self.commands.append(age)

    def report_watch(self, watch: Mapping[str, Any]) -> None:
        self.reports.append(watch)


class Bench:
    """A bridge, its runner, and a clock that the test moves."""

    def __init__(self, bridge: rtmms.Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for module in ("runner", "peer_watch", "sending", "bridge"):
            monkeypatch.setattr(f"rtmms.bridging.{module}.monotonic", lambda: self.now, raising=False)
        self.bridge, self.link, self.lines = bridge, Steps(), list[str]()
        self.runner = Runner(bridge, None, "probe", None, self.lines.append)
        self.runner._link, self.runner._opened = self.link, True  # type: ignore[assignment]
        bridge.plant = self.link.plant
        self.step = 0

    def go(self, duration_s: float, sends_every_s: float = 0.0) -> None:
        """So long with a state each 10 ms; the peer sends each so often, 0: never."""
        for k in range(round(duration_s / 0.01)):
            self.now += 0.01
            self.runner._take(self.link, state(self.link.plant, self.step))  # type: ignore[arg-type]
            self.step += 10
            if sends_every_s and k % round(sends_every_s / 0.01) == 0:
                self.bridge.command({"left.front": 0.1 * (k % 3)})
            self.runner._attend_peer(0.0)

    def stale(self) -> list[bool]:
        """Of each command: whether its value is older than it may be."""
        return [command["age_s"] > command["fresh_s"] for command in self.link.commands]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(Quiet(claim=("left.front",)), monkeypatch)


def test_commands_state_the_age_of_what_the_peer_sent(bench: Bench) -> None:
    bench.go(2.0, sends_every_s=0.1)
    assert not any(bench.stale())
    before = len(bench.link.commands)
    bench.go(1.0)
    result = bench.stale()[before:]
    assert result == [False] * result.count(False) + [True] * result.count(True)
    assert 1 <= result.count(False) <= 2, "the last value came a period before, or nearly so"
    ages = [command["age_s"] for command in bench.link.commands[before:]]
    assert ages[-1] - ages[0] == pytest.approx(0.99)


def test_the_plant_gets_the_begin_and_the_length_of_a_silence_and_a_person_a_line(bench: Bench) -> None:
    bench.go(2.0, sends_every_s=0.1)
    received = bench.bridge.peer_watch.report()
    assert (received["first_s"], received["silences"]) == (0.0, [])
    bench.go(3.0)
    (silence,) = bench.link.reports[-1]["silences"]
    assert silence[2] is None
    assert 1.9 * 1000 - 100 <= silence[1] <= 1.9 * 1000
    assert [line for line in bench.lines if "the peer has been silent since t =" in line]
    assert bench.runner.counts["peer_silences"] == 1
    bench.go(1.0, sends_every_s=0.1)
    (silence,) = bench.link.reports[-1]["silences"]
    assert silence[2] == pytest.approx(3.1, abs=0.1)


def test_a_peer_of_events_is_never_stale_or_silent_unless_its_period_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for values, watched in ({}, False), ({"peer_period_s": 0.1}, True):
        bench = Bench(Eventful(claim=("left.front",), **values), monkeypatch)
        bench.go(0.5, sends_every_s=0.1)
        bench.go(2.0)
        assert bench.link.reports[-1]["watched"] is watched
        assert bool(bench.link.reports[-1]["silences"]) is watched
        assert [bool(command) for command in bench.link.commands] == [watched] * len(bench.link.commands)


def test_a_lost_peer_stays_stale_at_neutral_and_is_a_loss_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(Quiet(claim=("left.front",), peer_timeout_s=1.0), monkeypatch)
    bench.go(1.0, sends_every_s=0.1)
    bench.go(3.0)
    assert bench.runner._values == {"left.front": 0.0}
    assert bench.stale()[-150:] == [True] * 150
    assert bench.link.reports[-1]["losses_count"] == 1


def test_in_lockstep_a_peer_for_which_the_plant_waits_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(Quiet(claim=("left.front",)), monkeypatch)
    bench.link.plant = bench.bridge.plant = dataclasses.replace(bench.link.plant, mode="lockstep")
    bench.bridge.waits = True
    bench.go(0.01)
    bench.now += 60.0
    bench.runner._attend_peer(0.0)
    assert bench.bridge.peer_watch.silences == []
    bench.bridge.command({"left.front": 0.5})
    assert [command for command in bench.link.commands if "age_s" in command] == []  # the plant waited for this value
    bench.now += 60.0
    bench.bridge.command({})  # a state that the peer does not get
    assert [command for command in bench.link.commands if "age_s" in command] == []


def test_a_value_is_as_old_as_the_state_that_it_answers() -> None:
    """Of a peer that works through a queue; one that answers within three of its periods is on time."""
    watch = PeerWatch(0.0, period_s=0.02)
    watch.saw(0, 0.0, 10.0, 0.01)
    watch.received(10.0)
    for behind_s, age_s in ((0.0, 0.005), (0.06, 0.005), (0.07, 0.075), (0.0, 0.005)):
        watch.behind_s = behind_s
        assert watch.age_s(10.005) == pytest.approx(age_s)
    watch.behind_s = 1.0
    watch.begin()
    assert watch.behind_s == 0.0
