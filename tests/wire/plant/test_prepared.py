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


@pytest.mark.parametrize("budget_ns", [0, 1, 127, 65_535, 65_536, 899_999, 0xFFFFFFFF, 0x100000000, -5])
@pytest.mark.parametrize("deadline_ns", [0, 123_456_789])
def test_a_prepared_state_is_the_one_packed_at_its_instant(deadline_ns: int, budget_ns: int) -> None:
    ahead, then, applied = Selection(CHANNELS), Selection(CHANNELS), Applied(seq=4, step=6, policy="hold")
    ahead.prepare(7, 0.007, deadline_ns, OUTPUTS, applied)
    item = ahead.due(7, 0.007, deadline_ns, budget_ns, {}, Applied())
    assert item == then.packed(7, 0.007, deadline_ns, budget_ns, OUTPUTS, applied)


def test_a_state_for_a_newcomer_does_not_change_the_prepared_one() -> None:
    mine, applied = Selection(CHANNELS), Applied(policy="extrapolate", clamped=True)
    mine.prepare(7, 0.007, 1000, OUTPUTS, applied)
    assert mine.ready(7, 1000) is not None
    for step in (-10, -9):
        mine.packed(step, 0.0, 0, 0, {"depth": np.array(0.0), "speed": np.zeros(3)}, Applied())
    assert mine.ready(7, 1000) is None  # its memory has another state
    assert mine.due(7, 0.007, 1000, 5, {}, Applied()) == Selection(CHANNELS).packed(7, 0.007, 1000, 5, OUTPUTS, applied)


def test_another_step_or_deadline_is_packed_anew() -> None:
    mine, applied = Selection(CHANNELS), Applied()
    mine.prepare(7, 0.007, 1000, OUTPUTS, applied)
    other = {"depth": np.array(9.0), "speed": np.zeros(3)}
    assert decode_from_plant(mine.due(8, 0.008, 1000, 5, other, applied))["outputs"]["depth"] == 9.0
    assert decode_from_plant(mine.due(7, 0.007, 2000, 5, other, applied))["outputs"]["depth"] == 9.0
    assert decode_from_plant(mine.due(7, 0.007, 1000, 5, other, applied))["outputs"]["depth"] == 1.5
    mine.prepare(-1, 0.0, 0, {}, applied)
    assert decode_from_plant(mine.due(7, 0.007, 1000, 5, other, applied))["outputs"]["depth"] == 9.0


def test_the_loop_prepares_the_next_state_in_the_slack_and_discards_it_when_the_state_is_altered(monkeypatch) -> None:
    prepared: list[tuple[int, float]] = []

    class Preparing(World):
        prepares = True

        def prepare(self, step: int, time: float, deadline_ns: int, outputs: Any, applied: Any) -> None:
            prepared.append((step, round((deadline_ns - self.t0) / US) if step >= 0 else 0))

    monkeypatch.setattr("tests.loop.bench.World", Preparing)
    restored = [Happening(1200, op="restore", args={"state": "MC4wIDA="})]
    Bench(steps=4, arrivals=on_time(4), happenings=restored)
    # step 2 is not prepared, for a request waits that may change it; what may have been prepared is forgotten
    assert prepared == [(1, PERIOD_US + 500), (-1, 0), (3, 3 * PERIOD_US + 500), (4, 4 * PERIOD_US + 500)]
