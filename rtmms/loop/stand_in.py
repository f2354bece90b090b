"""The command of each step: what peers sent, and what the miss policy puts in the place of what they did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rtmms.loop.claims import Claims
from rtmms.loop.commands import APPLIED, MISSED, REUSED, UNCLAIMED
from rtmms.loop.kernels import memory as at
from rtmms.loop.kernels.stand_in import note_missing, replace_missing, take_complete
from rtmms.loop.limits import Grace
from rtmms.loop.miss import CODES, NAMES, Miss, home

if TYPE_CHECKING:
    from rtmms.loop.clock import Clock
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Array, Exchange
    from rtmms.plant import Plant


class StandIn:
    """Makes each step's command complete.

    command   (n_actuators,) rewritten in place: values in hand, then those that stand in
    claims    who owes what
    grace     time in which `abort` does not act
    excused   the last miss counts for nothing: within the grace, or of peers that joined just now
    miss      the memory of it all
    late      the outcome of a step whose commands are not all there
    homing    actuators that nobody holds have not all come to neutral yet
    end       called as Loop.end where `abort` ends the run
    """

    def __init__(
        self, plant: Plant, exchange: Exchange, clock: Clock, policies: Policies, end: Callable[[str, str], None],
        *, free: bool,
    ) -> None:  # fmt: skip
        self._exchange, self._end = exchange, end
        self.name = "hold" if free else policies.miss
        self.late = REUSED if free else MISSED
        self.miss = miss = Miss(plant.actuators, plant.dt)
        self.command: Array = miss.command
        self.claims = Claims(exchange, miss, clock.now)
        self.grace = Grace(int(policies.grace_s * 1e9))
        miss.words[at.POLICY], miss.words[at.OLDEST_NS] = CODES[self.name], int(policies.oldest_s * 1e9)
        miss.words[at.REMEMBER] = policies.miss == "extrapolate"
        self.homing = False
        _warm(Miss(plant.actuators, plant.dt))

    @property
    def excused(self) -> bool:
        return bool(self.miss.words[at.EXCUSED])

    def start_at(self, instant_ns: int) -> None:
        """The grace and the age of what is held count from there."""
        self.grace.start(instant_ns)
        self.miss.words[at.COMPLETE_NS], self.miss.words[at.GRACE_UNTIL_NS] = instant_ns, self.grace.until_ns

    def clear(self) -> None:
        """The plant was reset: every actuator at neutral."""
        self.command[:] = self.miss.neutral

    def resolve(self, step: int, complete: bool, now_ns: int) -> int:
        """Bring `command` to what the plant is to get. Returns the outcome's code."""
        miss = self.miss
        if not self.claims.any:
            self._exchange.applied.policy = ""
            outcome = UNCLAIMED
        elif complete:
            self._exchange.applied.policy = ""
            take_complete(now_ns, miss.numbers, miss.flags, miss.words)
            outcome = APPLIED
        else:
            self._replace_missing(step, now_ns)
            outcome = self.late
        if self.homing:
            self._go_home()
        return outcome

    def resolved(self, complete: bool) -> int:
        """The same, where compiled code has done it already: what it came to."""
        self._exchange.applied.policy = NAMES[self.miss.words[at.STOOD_IN]]
        return APPLIED if complete else self.late

    def _replace_missing(self, step: int, now_ns: int) -> None:
        """The policy on the claimed actuators without a fresh value; `home` on those held for too long."""
        miss = self.miss
        self.claims.incomplete(now_ns)
        if self.name == "abort" and not self.excused:
            silent = ", ".join(self._exchange.waiting_for()) or "a peer"
            self._exchange.applied.policy = self.name
            self._end("policy", f"{silent} sent no command for step {step} in time (miss policy abort)")
            return
        replace_missing(now_ns, miss.numbers, miss.instants, miss.flags, miss.words)
        self._exchange.applied.policy = NAMES[miss.words[at.STOOD_IN]]

    def _go_home(self) -> None:
        """Actuators that nobody holds move to neutral at the limited rate."""
        miss = self.miss
        np.logical_not(self.claims.held, out=miss.missing)
        home(miss)
        self.homing = bool(np.any(miss.command[miss.missing] != miss.neutral[miss.missing]))


def _warm(scratch: Miss) -> None:
    """Compile, or fetch from the cache, what the first step must not wait for."""
    none = np.zeros(len(scratch.command), dtype=np.uint8)
    note_missing(0, scratch.instants, scratch.flags, none, none, scratch.words)
    for policy in CODES.values():
        scratch.words[at.POLICY] = policy
        replace_missing(0, scratch.numbers, scratch.instants, scratch.flags, scratch.words)
    take_complete(0, scratch.numbers, scratch.flags, scratch.words)
    home(scratch)
