"""The pacer of a bridge whose plant waits for it, called by hand on a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms.wire.protocol.received_state import State
from rtmms_bridges.lines import pacing
from rtmms_bridges.lines.pacing import RESET_S, Pacer
from tests.bridges.by_hand import Desk


class Bridge:
    """What a pacer asks of its bridge."""

    every = 1

    def __init__(self) -> None:
        self.io = Desk()
        self.counts = self
        self.added: list[str] = []

    def add(self, name: str) -> None:
        self.added.append(name)


class Step:
    """A state, of which a pacer reads the step alone."""

    def __init__(self, step: int) -> None:
        self.step = step


def state(step: int) -> State:
    result: Any = Step(step)
    return result


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its one entry is the time in s."""
    now = [100.0]
    monkeypatch.setattr(pacing, "monotonic", lambda: now[0])
    return now


def paced(steps: int) -> tuple[Pacer, Bridge]:
    """A pacer in lockstep whose plant has taken steps."""
    bridge: Any = Bridge()
    pacer = Pacer(bridge, True, "PX4")
    for k in range(steps):
        pacer.on_state(state(k))
    return pacer, bridge


def test_a_reset_is_seen_by_a_step_that_falls(clock: list[float]) -> None:
    pacer, _ = paced(10)
    pacer.reset()
    assert pacer.on_state(state(10)) is None
    assert pacer.resetting
    pacer.on_state(state(0))
    assert not pacer.resetting


def test_a_reset_that_never_comes_is_given_up_while_the_plant_steps_on(clock: list[float]) -> None:
    pacer, bridge = paced(10)
    pacer.reset()
    for k in range(10, 10 + 2 * int(RESET_S)):
        pacer.on_state(state(k))
        pacer.tick(clock[0])
        clock[0] += 1.0
    assert not pacer.resetting
    assert sum("did not carry out the requested reset" in line for line in bridge.io.messages) == 1
    pacer.go(1)
    newest = pacer.newest
    assert newest is not None
    assert pacer.on_state(state(newest.step + 1)) is not None  # the peer has its frame
