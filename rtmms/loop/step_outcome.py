"""Command of each step: values that peers sent, and replacements by the miss policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import MISS_WORDS, MissPolicy, StepOutcome
from rtmms.base.structs import view
from rtmms.loop.miss_policies import ACTUATOR, FALLBACK, move_home, note_missing, replace_missing, take_complete
from rtmms.loop.policies import Grace

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.loop.clock import Clock
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Array, Exchange, Flags
    from rtmms.plant.protocol import Channel, Plant

HOME_S = 1.0
"""Simulated time in which an actuator goes home from its farther limit, s; without limits: 1 unit a second."""


class FallbackMemory:
    """Memory of the miss policies.

    It is created once a run. The arrays are rewritten, never replaced.

    Parameters
    ----------
    actuators : Sequence[Channel]
        The plant's actuators.
    dt : float
        Simulated time of a step, s.

    Attributes
    ----------
    command : (n,) float64 array
        The held values, then those to apply.
    tape : (rows, n) array
        Receives the command of each of the first steps; set before the run.
    actuators : (n,) ACTUATOR array
        Memory of each actuator.
    fallbacks : (1,) FALLBACK array
        Memory of the policy; `view` has the same as attributes.
    """

    __slots__ = ("actuators", "command", "fallbacks", "tape", "view")

    def __init__(self, actuators: Sequence[Channel], dt: float) -> None:
        n = len(actuators)
        self.fallbacks: npt.NDArray[Any] = np.zeros(1, dtype=FALLBACK)
        self.actuators: npt.NDArray[Any] = np.zeros(n, dtype=ACTUATOR)
        self.view = view(self.fallbacks)
        self.command: Array = np.array([channel.neutral for channel in actuators], dtype=np.float64)
        self.tape: Array = np.zeros((0, n))
        known = self.actuators
        known["neutral"] = known["previous"] = self.command
        known["lower"] = [-np.inf if c.lower is None else c.lower for c in actuators]
        known["upper"] = [np.inf if c.upper is None else c.upper for c in actuators]
        span = np.maximum(known["upper"] - known["neutral"], known["neutral"] - known["lower"])
        known["home_step"] = np.where(np.isfinite(span), span, 1.0) * (dt / HOME_S)


class Claims:
    """Claims of the actuators, with the times of the claim and of the last value.

    They are in the memory of the run's fallback.

    Parameters
    ----------
    exchange : Exchange
        The exchange.
    memory : FallbackMemory
        Memory of the fallback.
    now : Callable[[], int]
        Returns the present instant, ns.

    Attributes
    ----------
    held : (n_actuators,) bool array
        Claimed actuators, as the exchange reported last.
    any : bool
        Whether one is claimed.
    """

    __slots__ = ("_actuators", "_exchange", "_now", "_previous_claims", "any", "held")

    def __init__(self, exchange: Exchange, memory: FallbackMemory, now: Callable[[], int]) -> None:
        self._exchange, self._now, self._previous_claims = exchange, now, b""
        self._actuators = memory.actuators
        self.held: Flags = memory.actuators["held"]
        self.any = False

    def refresh(self) -> bool:
        """Read the claims again (35 ns if they have not changed).

        Returns
        -------
        bool
            Whether they have changed.
        """
        claimed = self._exchange.claimed
        claim_bytes = claimed.tobytes()
        if claim_bytes == self._previous_claims:
            return False
        newly_claimed = claimed & ~self.held
        now_ns, known = self._now(), self._actuators
        known["valued_ns"][newly_claimed] = known["since_ns"][newly_claimed] = (
            now_ns  # the age of its value counts from the claim
        )
        known["answered"][newly_claimed] = False
        self.held[:] = claimed
        self._previous_claims, self.any = claim_bytes, bool(claimed.any())
        return True


class Fallback:
    """Completion of each step's command.

    Parameters
    ----------
    plant : Plant
        The plant.
    exchange : Exchange
        The exchange.
    clock : Clock
        Clock of the loop.
    policies : Policies
        Policies of the run.
    end : Callable[[str, str], None]
        Called like Loop.end if `abort` ends the run.
    free : bool
        Whether the mode is free.

    Attributes
    ----------
    command : (n_actuators,) array
        Received values, then with replacements; rewritten in place.
    claims : Claims
        Claimed actuators.
    grace : Grace
        Time in which `abort` does not act.
    excused : bool
        Whether the last miss does not count: it was in the grace, or of peers that joined just now.
    memory : FallbackMemory
        Memory of the policies.
    late : StepOutcome
        Outcome of a step with missing commands.
    homing : bool
        Whether unclaimed actuators are still on their way to neutral.
    """

    def __init__(
        self, plant: Plant, exchange: Exchange, clock: Clock, policies: Policies, end: Callable[[str, str], None],
        *, free: bool,
    ) -> None:  # fmt: skip
        self._exchange, self._end = exchange, end
        self._policy = MissPolicy.HOLD if free else MissPolicy(MISS_WORDS.index(policies.miss))
        self.late = StepOutcome.REUSED if free else StepOutcome.MISSED
        self.memory = memory = FallbackMemory(plant.actuators, plant.dt)
        self.command, self._fallback_view = memory.command, memory.view
        self._fresh, self._renewed = exchange.fresh.view(np.uint8), exchange.renewed.view(np.uint8)
        self.claims = Claims(exchange, memory, clock.now)
        self.grace = Grace(int(policies.grace_s * 1e9))
        memory.view.policy, memory.view.hold_timeout_ns = self._policy, int(policies.hold_timeout_s * 1e9)
        self.homing = False
        _warm(FallbackMemory(plant.actuators, plant.dt))

    @property
    def excused(self) -> bool:
        """Whether the last miss does not count."""
        return bool(self._fallback_view.excused)

    def start_at(self, instant_ns: int) -> None:
        """Count the grace and the ages of held values from an instant.

        Parameters
        ----------
        instant_ns : int
            The instant, ns.
        """
        self.grace.start(instant_ns)
        self._fallback_view.complete_ns, self._fallback_view.grace_until_ns = instant_ns, self.grace.until_ns

    def clear(self) -> None:
        """Set every actuator to neutral, because the plant was reset."""
        self.command[:] = self.memory.actuators["neutral"]

    def resolve(self, step: int, complete: bool, now_ns: int) -> StepOutcome:
        """Complete `command` for the plant.

        Parameters
        ----------
        step : int
            Index of the step.
        complete : bool
            Whether every claimed actuator has its command.
        now_ns : int
            Present instant, ns.

        Returns
        -------
        StepOutcome
            Outcome of the step.
        """
        memory, outcome = self.memory, self.late
        if not self.claims.any:
            self._exchange.applied.policy = ""
            outcome = StepOutcome.UNCLAIMED
        elif complete:
            self._exchange.applied.policy = ""
            take_complete(now_ns, memory.fallbacks, memory.actuators, self.command)
            outcome = self._in_time()
        else:
            self._replace_missing(step, now_ns)
        if self.homing:
            self._move_home()
        return outcome

    def resolved(self, complete: bool) -> StepOutcome:
        """Return the outcome of a step that compiled code has completed.

        Parameters
        ----------
        complete : bool
            Whether every claimed actuator had its command.

        Returns
        -------
        StepOutcome
            The outcome.
        """
        self._exchange.applied.policy = MISS_WORDS[self._fallback_view.stood_in]
        return self._in_time() if complete else self.late

    def _in_time(self) -> StepOutcome:
        """Return the outcome of a step that had all its commands."""
        return StepOutcome.STALE if self._exchange.applied.stale else StepOutcome.APPLIED

    def _replace_missing(self, step: int, now_ns: int) -> None:
        """Apply the policy to claimed actuators without a fresh value.

        Actuators held for too long go home.
        """
        memory = self.memory
        note_missing(now_ns, memory.fallbacks, memory.actuators, self._fresh, self._renewed)
        if self._policy is MissPolicy.ABORT and not self.excused:
            silent = ", ".join(self._exchange.waiting_for()) or "a peer"
            self._exchange.applied.policy = MISS_WORDS[self._policy]
            self._end("policy", f"{silent} sent no command for step {step} in time (miss policy abort)")
            return
        replace_missing(now_ns, memory.fallbacks, memory.actuators, self.command)
        self._exchange.applied.policy = MISS_WORDS[self._fallback_view.stood_in]

    def _move_home(self) -> None:
        """Move unclaimed actuators to neutral at the limited rate."""
        known, free = self.memory.actuators, ~self.claims.held
        known["missing"] = free
        move_home(known, self.command, 1)
        self.homing = bool(np.any(self.command[free] != known["neutral"][free]))


def _warm(scratch: FallbackMemory) -> None:
    """Compile the kernels, or fetch them from the cache, so that the first step need not wait."""
    none = np.zeros(len(scratch.command), dtype=np.uint8)
    note_missing(0, scratch.fallbacks, scratch.actuators, none, none)
    for policy in MissPolicy:
        scratch.view.policy = policy
        replace_missing(0, scratch.fallbacks, scratch.actuators, scratch.command)
        take_complete(0, scratch.fallbacks, scratch.actuators, scratch.command)
    move_home(scratch.actuators, scratch.command, 1)
