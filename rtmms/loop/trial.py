"""A few steps before the run: they compile and warm what a step uses, and show how long one takes."""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING

import numpy as np

from rtmms.errors import DivergedError
from rtmms.loop.schedule import quantile

if TYPE_CHECKING:
    from rtmms.plant import Plant

STEPS = 2000
LONGEST_NS = 150_000_000


def trial(plant: Plant, seed: int, steps: int = STEPS) -> float:
    """Step the plant at neutral, then reset it. Returns the p99.9 of step and observation together, in s.

    Ends early after 0.15 s, or when the plant diverges (the run will say so in earnest).
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
    return quantile(taken, 0.999) * 1e-9 if taken else 0.0
