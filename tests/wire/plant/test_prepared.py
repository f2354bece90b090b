"""States that are packed before their instant: the same bytes' meaning as those packed at it, and never a stale one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmms.loop.ports import Applied
from rtmms.plant.protocol import Channel
from rtmms.wire.plant.state_message import Selection
from rtmms.wire.protocol.messages import decode_from_plant
from tests.loop.bench import PERIOD_US, US, Bench, Happening, World, on_time

CHANNELS = [Channel("depth"), Channel("speed", shape=(3,))]
OUTPUTS: dict[str, Any] = {"depth": np.array(1.5), "speed": np.array([1.0, 2.0, 3.0])}


@pytest.mark.parametrize("budget_ns", [0, 1, 127, 65_535, 65_536, 899_999, 0xB0D6E7A5, 0xFFFFFFFF, 0x100000000])
def test_a_prepared_state_says_what_one_packed_at_its_instant_says(budget_ns: int) -> None:
    ahead, then, applied = Selection(CHANNELS), Selection(CHANNELS), Applied(seq=4, step=6, policy="hold")
    ahead.prepare(7, 0.007, 123_456_789, OUTPUTS, applied)
    one = ahead.due(7, 0.007, 123_456_789, budget_ns, {}, Applied()) if budget_ns <= 0xFFFFFFFF else \
        ahead.due(7, 0.007, 123_456_789, budget_ns, OUTPUTS, applied)  # fmt: skip
    assert decode_from_plant(one) == decode_from_plant(then.packed(7, 0.007, 123_456_789, budget_ns, OUTPUTS, applied))


def test_another_step_or_deadline_is_packed_anew() -> None:
    mine, applied = Selection(CHANNELS), Applied()
    mine.prepare(7, 0.007, 1000, OUTPUTS, applied)
    other = {"depth": np.array(9.0), "speed": np.zeros(3)}
    assert decode_from_plant(mine.due(8, 0.008, 1000, 5, other, applied))["outputs"]["depth"] == 9.0
    assert decode_from_plant(mine.due(7, 0.007, 2000, 5, other, applied))["outputs"]["depth"] == 9.0
    assert decode_from_plant(mine.due(7, 0.007, 1000, 5, other, applied))["outputs"]["depth"] == 1.5
    mine.prepare(-1, 0.0, 0, {}, applied)
    assert decode_from_plant(mine.due(7, 0.007, 1000, 5, other, applied))["outputs"]["depth"] == 9.0


def test_the_stand_in_for_the_budget_may_also_be_a_deadline() -> None:
    mine, applied = Selection(CHANNELS), Applied()
    mine.prepare(7, 0.007, 0xB0D6E7A5, OUTPUTS, applied)
    said = decode_from_plant(mine.due(7, 0.007, 0xB0D6E7A5, 17, OUTPUTS, applied))
    assert (said["deadline_ns"], said["budget_ns"]) == (0xB0D6E7A5, 17)


def test_the_loop_prepares_the_next_state_in_the_slack_and_forgets_it_when_the_state_is_altered(monkeypatch) -> None:
    prepared: list[tuple[int, float]] = []

    class Preparing(World):  # a class of its own: what isinstance once found in one is kept for good
        def prepare(self, step: int, time: float, deadline_ns: int, outputs: Any, applied: Any) -> None:
            prepared.append((step, round((deadline_ns - self.t0) / US) if step >= 0 else 0))

    monkeypatch.setattr("tests.loop.bench.World", Preparing)
    restored = [Happening(1200, op="restore", args={"state": "MC4wIDA="})]
    Bench(steps=4, arrivals=on_time(4), happenings=restored)
    # step 2 is not prepared, for a request waits that may change it; what may have been prepared is forgotten
    assert prepared == [(1, PERIOD_US + 500), (-1, 0), (3, 3 * PERIOD_US + 500), (4, 4 * PERIOD_US + 500)]
