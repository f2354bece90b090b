"""The handshake endpoint is looked at at least five times a second, whatever the schedule leaves of the slack."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rtmms.loop.loop import HANDSHAKE_INTERVAL_NS, HANDSHAKE_READ_NS
from tests.loop import bench as module
from tests.loop.bench import US, Bench, World

PERIOD_US = 33.0


class Strict(World):
    """An exchange that has time for newcomers only where it is given 60 us."""

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        self.looks, self.looked, self.forced = 0, [self.clock.now()], 0

    def serve(self, until_ns: int) -> None:
        super().serve(until_ns)
        if until_ns - self.clock.now() > 60 * US:
            self.looks += 1
            self.looked.append(self.clock.now())

    def look(self, until_ns: int) -> None:
        self.looks += 1
        self.forced += 1
        self.looked.append(self.clock.now())
        assert until_ns - self.clock.now() == HANDSHAKE_READ_NS
        self.clock.advance(HANDSHAKE_READ_NS)


@pytest.mark.full
@pytest.mark.parametrize(("policy", "every"), [("skip", 1), ("skip", 2), ("skip", 3), ("slip", 2), ("catchup", 2)])
def test_a_plant_that_overruns_sees_newcomers(policy: str, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each, each second or each third step takes longer than its period, and the others leave no slack to speak of."""
    monkeypatch.setattr(module, "World", Strict)
    steps = 25_000
    costs = {k: 60.0 if k % every == 0 else 29.0 for k in range(steps)}
    bench = Bench(steps=steps, claimed={}, period_us=PERIOD_US, deadline_us=15, cost_us=costs, overrun=policy)
    world = bench.world
    assert isinstance(world, Strict)
    assert bench.statistics.overruns > steps // 4
    gaps = [b - a for a, b in itertools.pairwise(world.looked)]
    assert world.forced >= 5
    assert max(gaps) <= 200_000_000
    assert bench.clock.now() - world.looked[-1] <= 200_000_000
    assert world.forced <= (bench.clock.now() - world.looked[0]) // HANDSHAKE_INTERVAL_NS  # and no oftener than that


def test_what_a_look_takes_is_skipped_and_no_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends at its first overrun goes on."""
    monkeypatch.setattr(module, "World", Strict)
    steps = 10_000
    bench = Bench(steps=steps, claimed={}, period_us=PERIOD_US, deadline_us=15, overrun="abort",
                  cost_us=dict.fromkeys(range(steps), 20.0))  # fmt: skip
    assert isinstance(bench.world, Strict)
    assert (bench.outcome.ended, bench.statistics.overruns) == ("duration", 0)
    assert bench.world.forced >= 2
    assert bench.statistics.skipped >= 2 * HANDSHAKE_READ_NS // (PERIOD_US * US)


def test_where_there_is_slack_nothing_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "World", Strict)
    bench = Bench(steps=2000, claimed={})
    assert isinstance(bench.world, Strict)
    assert bench.world.looks > 1000
    assert bench.world.forced == 0
