"""FaultAttribution: each cause on the fake clock, from a scripted world to the count in the report."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms.loop import fault_attribution as causes
from rtmms.loop.fault_attribution import CAUSES, BadStep, FaultAttribution, Setting, Times
from tests.loop.bench import PERIOD_US, US, Arrival, Bench, on_time

START_US = 10**9 // US + PERIOD_US
"""Where the bench's t_0 lies on its clock."""


class Saw:
    """Stalls by script: (begin, length) in us after t_0."""

    def __init__(self, *stalls: tuple[float, float]) -> None:
        self.rows = [(round((START_US + a) * US), round((START_US + a + n) * US), 0) for a, n in stalls]

    def take(self) -> list[causes.Stall]:
        rows, self.rows = self.rows, []
        return rows

    def looked_ns(self) -> int:
        return 1 << 62

    def await_looked(self, until_ns: int) -> None: ...


class Counters:
    """Page faults and switches of the thread: `at` the so manieth reading they jump."""

    def __init__(self, faults_at: int = 0, switches_at: int = 0) -> None:
        self.calls, self.faults_at, self.switches_at = 0, faults_at, switches_at

    def __call__(self) -> tuple[int, int]:
        self.calls += 1
        return int(bool(self.faults_at) and self.calls >= self.faults_at), \
            int(bool(self.switches_at) and self.calls >= self.switches_at)  # fmt: skip


class Silence:
    """One peer that the world lists when commands are missing."""

    def __init__(self, gone: bool, starved: bool = False, refused: bool = False) -> None:
        self.gone, self.starved, self.refused = gone, starved, refused


def judged(
    saw: Saw | None = None, counters: Any = None, **options: Any
) -> tuple[Bench, FaultAttribution, dict[str, int]]:
    attribution = FaultAttribution(PERIOD_US * US, 500 * US, saw, counters or (lambda: (0, 0)))
    bench = Bench(attribution=attribution, **options)
    result = {cause: count for cause, count in attribution.counts().items() if count}
    assert sum(result.values()) == bench.statistics.misses + bench.statistics.overruns
    assert attribution.waiting == 0
    return bench, attribution, result


def test_nothing_is_blamed_on_a_clean_run() -> None:
    _, attribution, result = judged(Saw(), steps=5, arrivals=on_time(5))
    assert result == {}
    assert attribution.report(5)["machine_share"] is None
    assert attribution.listed == []


def test_a_command_that_comes_too_late_is_the_peers_fault() -> None:
    late = [Arrival(1700, 1, {0: 0.5})]
    _, attribution, result = judged(Saw(), steps=3, arrivals=[*on_time(1), *late, *on_time(range(2, 3))])
    assert result == {"peer_late": 1}
    assert [(bad["step"], bad["miss"]) for bad in attribution.listed] == [(1, "peer_late")]


@pytest.mark.parametrize(("gone", "cause"), [(True, "peer_gone"), (False, "peer_late")])
def test_a_peer_that_is_dead_is_gone_even_when_the_machine_stalled(monkeypatch, gone: bool, cause: str) -> None:
    monkeypatch.setattr("tests.loop.bench.World.silent", lambda self: (Silence(gone),))
    _, _, result = judged(Saw((1100, 300)) if gone else Saw(), steps=2, arrivals=on_time(1))
    assert result == {cause: 1}


@pytest.mark.parametrize(("others", "cause"), [((), "peer_starved"), ((False,), "peer_gone")])
def test_a_peer_that_is_connected_and_silent_starves(monkeypatch, others: tuple[bool, ...], cause: str) -> None:
    """Where another one is gone for good, that one is named."""
    peers = tuple(Silence(True, starved) for starved in (True, *others))
    monkeypatch.setattr("tests.loop.bench.World.silent", lambda self: peers)
    _, _, result = judged(Saw(), steps=2, arrivals=on_time(1))
    assert result == {cause: 1}


@pytest.mark.parametrize(("gone", "cause"), [(False, "peer_refused"), (True, "peer_gone")])
def test_a_command_that_was_refused_is_not_late(monkeypatch, gone: bool, cause: str) -> None:
    monkeypatch.setattr("tests.loop.bench.World.silent", lambda self: (Silence(gone, refused=True),))
    assert judged(Saw(), steps=2, arrivals=on_time(1))[2] == {cause: 1}


def test_a_peer_is_still_asked_whether_it_died_when_the_step_is_judged(monkeypatch) -> None:
    silence = Silence(False)

    def silent(world: Any) -> tuple[Silence, ...]:
        return (silence,)

    monkeypatch.setattr("tests.loop.bench.World.silent", silent)
    monkeypatch.setattr(
        FaultAttribution, "finish", lambda self, now: (setattr(silence, "gone", True), self.judge(now, last=True))
    )
    assert judged(Saw(), steps=1)[2] == {"peer_gone": 1}


def test_a_stall_in_the_window_explains_a_miss_and_one_elsewhere_does_not() -> None:
    assert judged(Saw((1100, 300)), steps=2, arrivals=on_time(1))[2] == {"machine": 1}
    assert judged(Saw((600, 300)), steps=2, arrivals=on_time(1))[2] == {"peer_late": 1}


def test_a_stall_too_short_to_cost_the_step_does_not_explain_it() -> None:
    """Deadline 500 us, nothing usual yet: what is below 250 us does not count."""
    assert judged(Saw((1100, 249)), steps=2, arrivals=on_time(1))[2] == {"peer_late": 1}
    assert judged(Saw((1100, 250)), steps=2, arrivals=on_time(1))[2] == {"machine": 1}


def test_a_plant_that_takes_too_long_is_slow_and_a_stall_meanwhile_is_the_machines() -> None:
    slow = {"steps": 2, "arrivals": [*on_time(1), Arrival(2100, 1, {0: 0.1})], "cost_us": {0: 1500}}
    assert judged(Saw(), **slow)[2] == {"plant_slow": 1}
    assert judged(Saw((200, 900)), **slow)[2] == {"machine": 1}


def test_what_a_slow_plant_leaves_too_little_time_for_is_its_fault_too() -> None:
    """catchup: step 1 begins 1.2 periods late, after its deadline."""
    _, attribution, result = judged(
        Saw(), steps=3, arrivals=on_time(3), cost_us={0: 2600}, overrun="catchup", catchup=5, deadline_us=500
    )
    assert attribution.counts()["plant_slow"] == result["plant_slow"] >= 2
    assert set(result) == {"plant_slow"}


def test_a_step_that_wakes_late_with_nobody_to_see_why_is_unknown() -> None:
    assert judged(Saw(), steps=1, wake_late_us=400, arrivals=[])[2] == {"unknown": 1}


def test_page_faults_and_switches_that_are_not_usual_are_blamed_for_a_late_start() -> None:
    late = {"steps": 1, "wake_late_us": 400}
    # readings: when made, when cleared, at the start, at the bad step
    assert judged(Saw(), Counters(faults_at=3), **late)[2] == {"page_fault": 1}
    assert judged(Saw(), Counters(switches_at=3), **late)[2] == {"involuntary_switch": 1}
    assert judged(Saw(), Counters(faults_at=1, switches_at=1), **late)[2] == {"unknown": 1}


def test_slack_that_lasts_beyond_the_next_instant_is_our_own_exchange(monkeypatch) -> None:
    def serve(world: Any, until_ns: int) -> None:
        if world.clock.now() < world.at(1000):
            world.clock.ns = world.at(1400)

    monkeypatch.setattr("tests.loop.bench.World.serve", serve)
    assert judged(Saw(), steps=2, arrivals=[*on_time(1), Arrival(1600, 1, {0: 0.1})])[2] == {"loop_overhead": 1}


def test_observers_that_take_a_period_are_our_own_exchange() -> None:
    class Slow:
        due = 0

        def start(self, outputs: Any) -> None: ...
        def clear(self) -> None: ...
        def after_step(self, step: int, *_: Any) -> None:
            clock.ns += 1200 * US if step == 0 else 0
            self.due = step + 1

    from rtmms.loop import clock as clocks

    built: list[Any] = []

    class Clock(clocks.FakeClock):
        def __init__(self, ns: int) -> None:
            super().__init__(ns)
            built.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.loop.bench.FakeClock", Clock)

        class Lazy:
            def __getattr__(self, name: str) -> Any:
                return getattr(built[0], name)

            def __setattr__(self, name: str, value: Any) -> None:
                setattr(built[0], name, value)

        clock = Lazy()
        _, _, result = judged(Saw(), steps=2, arrivals=[*on_time(1), Arrival(2100, 1, {0: 0.1})], observers=[Slow()])
    assert result == {"loop_overhead": 1}


def test_the_base_rate_counts_each_period_that_a_stall_touches_once() -> None:
    """Deadline 500 us: [100, 400] touches period 0; [1600, 1900] none; [2400, 3100] periods 2 and 3; again 3: once."""
    saw = Saw((100, 300), (1600, 300), (2400, 700), (3050, 300))
    _, attribution, _ = judged(saw, steps=10, arrivals=on_time(10))
    assert attribution.stalled_steps == 3
    report = attribution.report(10)
    assert report["base_rate"] == pytest.approx(0.3)
    assert report["stalls"] == 4
    assert report["longest_stall_us"] == pytest.approx(700)


def test_without_a_stall_detector_shares_are_undefined() -> None:
    report = judged(None, steps=1)[1].report(1)
    assert (report["present"], report["machine_share"], report["base_rate"]) == (False, None, None)


def test_more_bad_steps_than_memory_are_unknown_and_none_is_lost() -> None:
    attribution = FaultAttribution(PERIOD_US * US, 500 * US, Saw(), lambda: (0, 0), capacity=2)
    attribution.look(())
    for step in range(5):
        attribution.keep(step, True, False, Times(0, 0, 0, 500, 500, 510, 510, 500))
    attribution.finish(10**9)
    assert attribution.counts()["unknown"] == 3
    assert sum(attribution.counts().values()) == 5


def test_the_parts_of_a_bad_step_are_all_of_it() -> None:
    attribution = FaultAttribution(PERIOD_US * US, 500 * US, None, lambda: (0, 0))
    attribution.look((Silence(True),))
    attribution.keep(0, True, True, Times(
        due=0, begun=7_000, published=20_000, gathered=500_000, called=530_000, stepped=550_000, ended=1_200_000,
        deadline=500_000,
    ))  # fmt: skip
    attribution.finish(10**9)
    (step,) = attribution.report(1)["bad_steps"]
    parts = [step[f"{name}_us"] for name in ("wake", "exchange", "apply", "plant", "after")]
    assert parts == pytest.approx([7.0, 493.0, 30.0, 20.0, 650.0])
    assert sum(parts) == pytest.approx(step["total_us"])


def test_judgement_waits_until_the_witnesses_have_looked() -> None:
    saw = Saw()
    saw.looked_ns = lambda: 0  # type: ignore[method-assign]
    attribution = FaultAttribution(PERIOD_US * US, 500 * US, saw, lambda: (0, 0))
    attribution.look((Silence(True),))
    attribution.keep(0, True, False, Times(0, 0, 0, 500_000, 500_000, 510_000, 510_000, 500_000))
    attribution.judge(600_000)
    assert attribution.waiting == 1
    attribution.judge(200_000_000)  # they may have died
    assert attribution.waiting == 0


@pytest.mark.parametrize("deadline_us", [160, 500, 900])
def test_the_limit_is_half_of_what_a_usual_exchange_leaves(deadline_us: int) -> None:
    assert causes.limit_ns(deadline_us * US, 80 * US) == max(60, (deadline_us - 80) // 2) * US


def test_every_cause_has_a_name_and_a_rule() -> None:
    assert len(set(CAUSES)) == len(CAUSES) == causes.PEER_REFUSED + 1
    fine = BadStep(1, 1, 0, 0, -1, 0, 10, 500_000, 500_000, 510_000, 510_000, 500_000, 0, 0)
    assert causes.miss_cause(fine, Setting(200_000, 500_000), gone=False, machine=False) == causes.PEER_LATE


def test_a_usual_exchange_is_the_median_of_those_that_were_answered() -> None:
    attribution = FaultAttribution(1e6, 500_000)
    attribution.answered(300_000)  # the first is slow
    for k in range(2000):
        attribution.answered(100_000 + 1000 * (k * 7919 % 21 - 10) + (400_000 if k % 10 == 0 else 0))
    assert attribution.usual_ns == pytest.approx(101_000, abs=8_000)


def test_steps_that_were_missed_do_not_count_as_usual() -> None:
    """Ten answers in 100 us, then silence for 300 steps: a stall of 150 us still costs none of them."""
    stalls = [(1000.0 * k + 100, 150) for k in range(10, 310)]
    _, attribution, result = judged(Saw(*stalls), steps=310, arrivals=on_time(10))
    assert attribution.usual_ns < 110_000
    assert result == {"peer_late": 300}


@pytest.mark.parametrize(
    ("over_us", "missed", "cause"),
    [
        (20, causes.PEER_LATE, "peer_late"),
        (20, causes.PEER_GONE, "peer_gone"),
        (400, causes.PEER_LATE, "loop_overhead"),  # the wait itself ended far too late: that is ours
        (20, causes.NO_CAUSE, "loop_overhead"),
    ],
)
def test_what_waited_for_a_mute_peer_until_the_deadline_overran_because_of_it(
    over_us: int, missed: int, cause: str
) -> None:
    """600 us of waiting, 380 of plant: with 20 more the period is over, and neither part alone is to attribution."""
    gathered = (600 + over_us) * US
    step = BadStep(
        step=7, missed=missed != causes.NO_CAUSE, overran=1, due=0, rested=-100 * US, begun=10 * US, published=15 * US,
        gathered=gathered, called=gathered, stepped=gathered + 380 * US, ended=gathered + 390 * US, deadline=600 * US,
        faults=0, switches=0,
    )  # fmt: skip
    result = causes.overrun_cause(step, Setting(limit_ns=100 * US, room_ns=400 * US), machine=False, missed=missed)
    assert CAUSES[result] == cause
