"""A few steps before the run: they compile and warm what a step uses, and show how long one takes."""

from __future__ import annotations

from time import monotonic_ns, sleep
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rtmms.base.contract import Applied
from rtmms.base.errors import DivergedError
from rtmms.loop.clock import MonotonicClock, quantile
from rtmms.loop.fallback import Fallback

if TYPE_CHECKING:
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Flags
    from rtmms.plant.protocol import Plant

STEPS = 2000
LONGEST_NS = 150_000_000
COLD_STEPS, COLD_S = 40, 5e-3


class StepTime(NamedTuple):
    """Percentiles of a step and the observation after it, s of wall time; 0 where no step was taken."""

    p99_s: float = 0.0
    p999_s: float = 0.0


def trial(plant: Plant, seed: int, steps: int = STEPS) -> StepTime:
    """Step the plant at neutral, then reset it. Return how long a step takes.

    Ends early after 0.15 s, or when the plant diverges (the run will report it).
    """
    command = np.array([channel.neutral for channel in plant.actuators], dtype=np.float64)
    taken: list[int] = []
    plant.reset(seed)
    try:
        plant.step(command)
        plant.observe()
        end = monotonic_ns() + LONGEST_NS
        for _ in range(steps):
            begun = monotonic_ns()
            plant.step(command)
            plant.observe()
            taken.append(monotonic_ns() - begun)
            if begun > end:
                break
    except DivergedError:
        pass
    plant.reset(seed)
    return StepTime(quantile(taken, 0.99) * 1e-9, quantile(taken, 0.999) * 1e-9) if taken else StepTime()


def cold_trial(plant: Plant, policies: Policies, seed: int) -> float:
    """The p97, in s, of what follows a deadline that was missed: the policy stands in, the plant steps, is observed,
    all from caches that a wait has left cold, as misses come seldom. Then the plant is reset."""
    silent = _Silent(len(plant.actuators))
    stand_in = Fallback(plant, silent, MonotonicClock(), policies, lambda *_: None, free=False)
    stand_in.claims.refresh()
    stand_in.start_at(monotonic_ns())
    taken: list[int] = []
    plant.reset(seed)
    try:
        for k in range(COLD_STEPS):
            sleep(COLD_S)
            begun = monotonic_ns()
            stand_in.resolve(k, False, begun)
            plant.step(stand_in.command)
            plant.observe()
            taken.append(monotonic_ns() - begun)
    except DivergedError:
        pass
    plant.reset(seed)
    return quantile(taken, 0.97) * 1e-9 if taken else 0.0


class _Silent:
    """An exchange with one peer that holds all and sends nothing."""

    def __init__(self, n: int) -> None:
        self.claimed: Flags = np.ones(n, dtype=np.bool_)
        self.fresh: Flags = np.zeros(n, dtype=np.bool_)
        self.renewed: Flags = np.zeros(n, dtype=np.bool_)
        self.applied = Applied()

    def publish(self, *_: object) -> None: ...

    def collect(self, *_: object) -> bool:
        return False

    def serve(self, until_ns: int) -> None: ...

    def waiting_for(self) -> tuple[str, ...]:
        return ()

    def report(self) -> dict[str, object]:
        return {}
