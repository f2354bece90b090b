"""Gaits as sines of a robot's actuators, of one base frequency; where all are angles, a closed path of shapes too."""

from __future__ import annotations

from math import cos, radians, sin
from typing import NamedTuple

from rtmms.errors import ModelError
from rtmms.locomotion.paths import Path


class Wave(NamedTuple):
    """channel = offset + amplitude sin(harmonic w t + phase) + steer times what the user steers by."""

    channel: str
    amplitude: float = 0.0
    offset: float = 0.0
    harmonic: int = 1
    phase_deg: float = 0.0
    steer: float = 0.0


class Sines(NamedTuple):
    """Base frequency (Hz) and the waves of its actuators, in the order of the robot's joints.

    path_s   s, a cycle as a path of shapes; None: that of the base frequency
    """

    frequency_hz: float
    waves: tuple[Wave, ...]
    path_s: float | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the actuators that it moves."""
        return tuple(wave.channel for wave in self.waves)

    def path(self, name: str, size: int) -> Path:
        """Of `size` angles, without steering; ModelError where the waves are not those of all joints' angles."""
        if len(self.waves) != size or not all(channel.endswith(".angle") for channel in self.channels):
            raise ModelError(
                f"gait '{name}': it moves {', '.join(self.channels)}, which is no closed path of {size} angles"
            )
        last = max(wave.harmonic for wave in self.waves)
        table = [[0.0] * (2 * last + 1) for _ in self.waves]
        for row, wave in zip(table, self.waves, strict=True):
            row[0] = wave.offset
            # sin(h t + phase) = sin(phase) cos(h t) + cos(phase) sin(h t); rounded, so that a quarter turn is one
            row[2 * wave.harmonic - 1] = wave.amplitude * round(sin(radians(wave.phase_deg)), 15)
            row[2 * wave.harmonic] = wave.amplitude * round(cos(radians(wave.phase_deg)), 15)
        return Path.fourier(table).lasting(1.0 / self.frequency_hz if self.path_s is None else self.path_s)


Gait = str | Path | Sines
"""What a robot's own gait may be: a word as `rtmms gaits --gait` takes it, a path, or sines."""
