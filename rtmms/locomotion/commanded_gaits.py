"""Provide a robot's own gaits of shapes as periodic commands, with the parameters that `rtmms.trim` changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rtmms.base.override import override
from rtmms.base.spatial import Array
from rtmms.locomotion.paths import Gait, Path, Sines, gait_path
from rtmms.plant.protocol import Channel, TunableGait

PATH_PERIOD_S = 4.0
"""Period of a closed path of shapes, as the controller `shape` plays it, s."""


@dataclass(frozen=True)
class ShapeGait(TunableGait):
    """Periodic commands of one gait (see rtmms.plant.protocol.TunableGait).

    Parameters
    ----------
    shape : Sines or Path
        The gait at amplitude 1.
    actuators : Sequence[Channel]
        Channels of the plant, in order.

    Examples
    --------
    >>> from rtmms.locomotion.commanded_gaits import ShapeGait
    >>> from rtmms.locomotion.paths import Sines, Wave
    >>> from rtmms.plant import Channel
    >>> gait = ShapeGait(Sines(0.5, (Wave("hip.angle", 0.3),)), [Channel("hip.angle", "rad")])
    >>> gait.gait_commands(4).round(2).ravel().tolist()
    [0.0, 0.3, 0.0, -0.3]
    """

    shape: Sines | Path
    actuators: Sequence[Channel]

    @property
    def gait(self) -> dict[str, float]:
        """Parameters with their defaults; `steer` exists only where a wave of the gait steers."""
        if isinstance(self.shape, Path):
            return {"frequency_hz": 1.0 / PATH_PERIOD_S, "amplitude": 1.0}
        steers = {"steer": 0.0} if any(wave.steer for wave in self.shape.waves) else {}
        return {"frequency_hz": self.shape.frequency_hz, "amplitude": 1.0, **steers}

    @property
    def gait_ranges(self) -> dict[str, tuple[float, float]]:
        """Ranges of the parameters within which the actuators keep their limits, one parameter at a time."""
        frequency = self.gait["frequency_hz"]
        ranges = {"frequency_hz": (0.25 * frequency, 4.0 * frequency)}
        largest = steer = math.inf
        if isinstance(self.shape, Path):
            spans = zip(self.actuators, np.abs(self.shape.sampled(720)).max(axis=0).tolist(), strict=True)
            sizes = [(channel, size, 0.0, 0.0) for channel, size in spans]
        else:
            known = {channel.name: channel for channel in self.actuators}
            sizes = [(known[w.channel], abs(w.amplitude), abs(w.offset), abs(w.steer)) for w in self.shape.waves]
        for channel, size, offset, steers in sizes:
            limits = [abs(limit) for limit in (channel.lower, channel.upper) if limit is not None]
            room = min(limits, default=math.inf) - offset
            if size > 0.0:
                largest = min(largest, room / size)
            if steers > 0.0:
                steer = min(steer, (room - size) / steers)
        ranges["amplitude"] = (0.0, max(1.0, min(largest, 3.0)))
        if math.isfinite(steer):
            ranges["steer"] = (-max(0.0, steer), max(0.0, steer))
        return {name: ranges[name] for name in self.gait if name in ranges}

    @override
    def gait_period(self, **gait: float) -> float:
        return 1.0 / {**self.gait, **gait}["frequency_hz"]

    @override
    def gait_commands(self, steps: int, **gait: float) -> Array:
        """Return the commands of one period, evenly spaced in time, in the units of the channels."""
        values = {**self.gait, **gait}
        if isinstance(self.shape, Path):
            shapes: Array = values["amplitude"] * self.shape.sampled(steps)[:-1]
            return shapes
        out = np.tile([channel.neutral for channel in self.actuators], (steps, 1))
        names = [channel.name for channel in self.actuators]
        cycle = 2.0 * math.pi * np.arange(steps) / steps
        for wave in self.shape.waves:
            sine = np.sin(wave.harmonic * cycle + math.radians(wave.phase_deg))
            steer = wave.steer * values.get("steer", 0.0)
            out[:, names.index(wave.channel)] = wave.offset + values["amplitude"] * wave.amplitude * sine + steer
        return out


def commanded_gaits(gaits: Mapping[str, Gait], actuators: Sequence[Channel]) -> dict[str, TunableGait]:
    """Return those of a robot's gaits that its actuators can play: sines of them, or paths of angles.

    Parameters
    ----------
    gaits : Mapping[str, Gait]
        Gaits by name.
    actuators : Sequence[Channel]
        Channels of the robot.

    Returns
    -------
    dict[str, TunableGait]
        Gaits as commands, by name.
    """
    playable: dict[str, TunableGait] = {}
    names = [channel.name for channel in actuators]
    angles = bool(names) and all(name.endswith(".angle") for name in names)
    for name, gait in gaits.items():
        if isinstance(gait, Sines):
            if set(gait.channels) <= set(names):
                playable[name] = ShapeGait(gait, actuators)
        elif angles:
            playable[name] = ShapeGait(gait_path(name, len(names), gaits), actuators)
    return playable
