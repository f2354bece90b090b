"""Controllers live through a recorded run before they go on with it: they see its states, and their commands count for
nothing. So they stand, at its end, where they stood in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rtmms.loop.paces.lockstep import Lockstep

if TYPE_CHECKING:
    from rtmms.loop.chores import Watch
    from rtmms.loop.clock import Clock
    from rtmms.loop.ports import Array, Exchange


class _Past:
    """What the pace sees of it, see rtmms.loop.pace.Run."""

    def __init__(self, exchange: Exchange, clock: Clock, dt: float, watch: Watch) -> None:
        self.exchange, self.clock, self._dt, self._watch = exchange, clock, dt, watch
        self.outputs: Mapping[str, Array] = {}
        self.command = np.zeros(len(exchange.claimed))
        self.dead: Sequence[str] = ()
        self.ended = ""

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        self.exchange.publish(step, step * self._dt, deadline_ns, budget_ns, self.outputs, self.exchange.applied)

    def collect(self, step: int, until_ns: int) -> bool:
        return self.exchange.collect(step, self.command, until_ns)

    def serve(self, until_ns: int) -> None:
        self.exchange.serve(until_ns)

    def answer(self) -> None:
        """What is asked for now is done when the run goes on."""

    def check(self, until_ns: int = 0) -> None:
        """There is no monitor."""

    def watch_now(self) -> None:
        self.dead = self._watch()


def live_through(
    states: Iterator[tuple[int, Mapping[str, Array]]], exchange: Exchange, clock: Clock, dt: float, watch: Watch
) -> None:
    """Show each state, and wait for the answers, as lockstep does.

    states  step, and outputs before it
    watch   says which processes died
    PeerError where a controller dies or is silent.
    """
    past, pace = _Past(exchange, clock, dt, watch), Lockstep()
    pace.bind(past)  # type: ignore[arg-type]
    for step, outputs in states:
        past.outputs = outputs
        pace.gather(step)
        pace.finish(step, clock.now())
