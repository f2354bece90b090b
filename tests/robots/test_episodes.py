"""No command within the declared limits ends a run, for every robot: episodes of commands drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import rtmms
from rtmms.plant.loading import robots

Array = npt.NDArray[np.float64]
EPISODES = 16
"""Number of episodes of each robot."""
SECONDS = 4.0
"""Duration of an episode."""
HOLD_S = 0.2
"""Time for which each command is held."""


def commands(plant: Any, seed: int, seconds: float, hold: float) -> Array:
    """(steps, n_actuators) uniform within the limits, each held for `hold` s."""
    lower = [-1.0 if actuator.lower is None else actuator.lower for actuator in plant.actuators]
    upper = [1.0 if actuator.upper is None else actuator.upper for actuator in plant.actuators]
    steps, held = max(1, round(seconds / plant.dt)), max(1, round(hold / plant.dt))
    drawn = np.random.default_rng(seed).uniform(lower, upper, (-(-steps // held), len(lower)))
    return np.repeat(drawn, held, axis=0)[:steps]


@pytest.mark.full
@pytest.mark.parametrize("robot", sorted(robots()))
def test_no_command_within_the_limits_ends_a_run(robot: str) -> None:
    plant: Any = rtmms.load(robot)
    provided = np.stack([commands(plant, seed, SECONDS, HOLD_S) for seed in range(EPISODES)])
    with rtmms.Rollout(plant) as pool:
        runs = pool(provided, outputs=tuple(channel.name for channel in plant.outputs), every=round(HOLD_S / plant.dt))
    assert not runs.status.any()
    for name, values in runs.outputs.items():
        assert np.isfinite(values).all(), name
