"""A few steps before the run, which compile and warm the code of a step, and measure its time."""

from __future__ import annotations

from time import monotonic_ns, sleep
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rtmms.base.contract import Applied
from rtmms.base.errors import DivergedError
from rtmms.base.override import override
from rtmms.loop.clock import MonotonicClock, quantile
from rtmms.loop.ports import Exchange
from rtmms.loop.step_outcome import Fallback

if TYPE_CHECKING:
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Flags
    from rtmms.plant.protocol import Plant

STEPS = 2000
MAX_TRIAL_NS = 150_000_000
COLD_STEPS = 40
COLD_S = 5e-3


class StepTime(NamedTuple):
    """Percentiles of a step with its observation, s of wall time; 0 if no step was taken.

    Attributes
    ----------
    p99_s, p999_s : float, default 0.0
        p99 and p99.9, s.
    """

    p99_s: float = 0.0
    p999_s: float = 0.0


def trial(plant: Plant, seed: int, steps: int = STEPS) -> StepTime:
    """Step the plant at neutral, then reset it, and return how long a step takes.

    It ends early after 0.15 s, or if the plant diverges (the run will report it).

    Parameters
    ----------
    plant : Plant
        The plant.
    seed : int
        Seed of the resets.
    steps : int, default STEPS
        Most steps.

    Returns
    -------
    StepTime
        Percentiles of a step.
    """
    command = np.array([channel.neutral for channel in plant.actuators], dtype=np.float64)
    durations_ns: list[int] = []
    plant.reset(seed)
    try:
        plant.step(command)
        plant.observe()
        end = monotonic_ns() + MAX_TRIAL_NS
        for _ in range(steps):
            begun = monotonic_ns()
            plant.step(command)
            plant.observe()
            durations_ns.append(monotonic_ns() - begun)
            if begun > end:
                break
    except DivergedError:
        pass
    plant.reset(seed)
    return (
        StepTime(quantile(durations_ns, 0.99) * 1e-9, quantile(durations_ns, 0.999) * 1e-9)
        if durations_ns
        else StepTime()
    )


def cold_trial(plant: Plant, policies: Policies, seed: int) -> float:
    """Return the p97 of the time after a missed deadline, then reset the plant.

    It covers the miss policy, the plant's step and its observation. All run from caches that a wait has left cold,
    because misses are rare.

    Parameters
    ----------
    plant : Plant
        The plant.
    policies : Policies
        Policies of the run.
    seed : int
        Seed of the resets.

    Returns
    -------
    float
        Time, s.
    """
    silent = _SilentExchange(len(plant.actuators))
    stand_in = Fallback(plant, silent, MonotonicClock(), policies, lambda *_: None, free=False)
    stand_in.claims.refresh()
    stand_in.start_at(monotonic_ns())
    durations_ns: list[int] = []
    plant.reset(seed)
    try:
        for k in range(COLD_STEPS):
            sleep(COLD_S)
            begun = monotonic_ns()
            stand_in.resolve(k, False, begun)
            plant.step(stand_in.command)
            plant.observe()
            durations_ns.append(monotonic_ns() - begun)
    except DivergedError:
        pass
    plant.reset(seed)
    return quantile(durations_ns, 0.97) * 1e-9 if durations_ns else 0.0


class _SilentExchange(Exchange):
    """Exchange with one peer that holds all actuators and sends nothing."""

    def __init__(self, n: int) -> None:
        self.claimed: Flags = np.ones(n, dtype=np.bool_)
        self.fresh: Flags = np.zeros(n, dtype=np.bool_)
        self.renewed: Flags = np.zeros(n, dtype=np.bool_)
        self.applied = Applied()

    @override
    def publish(self, *_: object) -> None: ...

    @override
    def collect(self, *_: object) -> bool:
        return False

    @override
    def serve(self, until_ns: int) -> None: ...

    @override
    def waiting_for(self) -> tuple[str, ...]:
        return ()

    @override
    def report(self) -> dict[str, object]:
        return {}
