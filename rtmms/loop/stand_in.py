"""The command of each step: what peers sent, and what the miss policy puts in the place of what they did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rtmms.loop.claims import Claims
from rtmms.loop.commands import APPLIED, MISSED, REUSED, UNCLAIMED
from rtmms.loop.limits import Grace
from rtmms.loop.miss import MISS_POLICIES, Miss

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
    homing    actuators that nobody holds have not all come to neutral yet
    end       called as Loop.end where `abort` ends the run
    """

    def __init__(
        self, plant: Plant, exchange: Exchange, clock: Clock, policies: Policies, end: Callable[[str, str], None],
        *, free: bool,
    ) -> None:  # fmt: skip
        self._exchange, self._end = exchange, end
        self.name = "hold" if free else policies.miss
        self._policy = MISS_POLICIES[self.name]
        self._late = REUSED if free else MISSED
        self._remember = policies.miss == "extrapolate"
        self._oldest_ns = int(policies.oldest_s * 1e9)
        self._miss = Miss(plant.actuators, plant.dt)
        self.command: Array = self._miss.command
        self.claims = Claims(exchange, len(plant.actuators), clock.now)
        self.grace = Grace(int(policies.grace_s * 1e9))
        self.excused = self.homing = False

    def start_at(self, instant_ns: int) -> None:
        """The grace and the age of what is held count from there."""
        self.grace.start(instant_ns)
        self.claims.complete_ns = instant_ns

    def clear(self) -> None:
        """The plant was reset: every actuator at neutral."""
        self.command[:] = self._miss.neutral

    def resolve(self, step: int, complete: bool, now_ns: int) -> int:
        """Bring `command` to what the plant is to get. Returns the outcome's code."""
        if not self.claims.any:
            self._exchange.applied.policy = ""
            outcome = UNCLAIMED
        elif complete:
            self._exchange.applied.policy = ""
            self.claims.complete(now_ns)
            if self._remember:
                self._miss.remember()
            outcome = APPLIED
        else:
            self._replace_missing(step, now_ns)
            outcome = self._late
        if self.homing:
            self._go_home()
        return outcome

    def _replace_missing(self, step: int, now_ns: int) -> None:
        """The policy on the claimed actuators without a fresh value; `home` on those held for too long."""
        miss, applied, claims = self._miss, self._exchange.applied, self.claims
        claims.incomplete(now_ns, miss.missing)
        applied.policy = self.name
        self.excused = now_ns < self.grace.until_ns or claims.none_owed(miss.missing, now_ns)
        if self.name == "abort":
            if not self.excused:
                silent = ", ".join(self._exchange.waiting_for()) or "a peer"
                self._end("policy", f"{silent} sent no command for step {step} in time (miss policy abort)")
                return
            applied.policy = "hold"
        old = miss.missing & claims.older(self._oldest_ns, now_ns)
        if old.any():
            miss.missing &= ~old
            self._policy(miss)
            miss.missing[:] = old
            MISS_POLICIES["home"](miss)
            applied.policy = "home"
        else:
            self._policy(miss)

    def _go_home(self) -> None:
        """Actuators that nobody holds move to neutral at the limited rate."""
        miss = self._miss
        np.logical_not(self.claims.held, out=miss.missing)
        MISS_POLICIES["home"](miss)
        self.homing = bool(np.any(miss.command[miss.missing] != miss.neutral[miss.missing]))
