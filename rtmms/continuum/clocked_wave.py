"""Provide a continuous body's own wave, whose frequency is a command, as a gait: periodic for held commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rtmms.base.override import override
from rtmms.base.spatial import Array
from rtmms.plant.protocol import Channel, TunableGait

FREQUENCY = "frequency"
"""Name of the actuator that sets the wave's frequency, Hz."""


@dataclass(frozen=True)
class ClockedWave(TunableGait):
    """Held commands as a gait (see rtmms.plant.protocol.TunableGait), with each actuator as a parameter.

    Parameters
    ----------
    actuators : sequence of Channel
        Channels of the plant, in order; one of them is FREQUENCY.
    """

    actuators: Sequence[Channel]

    @property
    def gait(self) -> dict[str, float]:
        """Neutral command of each actuator; the frequency is `frequency_hz`."""
        return {_parameter(channel.name): channel.neutral for channel in self.actuators}

    @property
    def gait_ranges(self) -> dict[str, tuple[float, float]]:
        """Limits of actuators that have both; the frequency is from a quarter of the neutral one to its limit."""
        ranges = {}
        for channel in self.actuators:
            if channel.lower is not None and channel.upper is not None:
                lower = 0.25 * channel.neutral if channel.name == FREQUENCY else channel.lower
                ranges[_parameter(channel.name)] = (lower, channel.upper)
        return ranges

    @override
    def gait_period(self, **gait: float) -> float:
        return 1.0 / {**self.gait, **gait}[_parameter(FREQUENCY)]

    @override
    def gait_commands(self, steps: int, **gait: float) -> Array:
        """Return equal commands for one period; the caller chooses `steps` for the frequency's period."""
        values = {**self.gait, **gait}
        return np.tile([values[_parameter(channel.name)] for channel in self.actuators], (steps, 1))


def _parameter(actuator: str) -> str:
    return "frequency_hz" if actuator == FREQUENCY else actuator
