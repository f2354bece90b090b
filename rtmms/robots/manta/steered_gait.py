"""Provide the manta's gait with parameters for each fin, by which `rtmms.trim` finds turns and climbs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.base.override import override
from rtmms.plant.protocol import TunableGait

_SIDES = ("left", "right")


@dataclass(frozen=True)
class SteeredGait(TunableGait):
    """Rod angles alpha_i = A_i sin(w t + phi_i) + delta of each fin, with A_1 by the rule of equal height.

    The parameters have the names of the controller `gait`, so that it plays a gait that was found.

    Parameters
    ----------
    defaults : mapping of str to float
        amplitude_deg, phase_deg and frequency_hz of the default gait.
    ratio : float
        r2 / r1, the length of the back rods over that of the front rods.
    limit_rad : float
        Largest angle of a rod.

    Notes
    -----
    Qu 2024, eq. (37).
    """

    defaults: Mapping[str, float]
    ratio: float
    limit_rad: float

    @property
    def gait(self) -> dict[str, float]:
        """Defaults, with which both fins beat alike."""
        sides = {f"{side}_{name}": self.defaults[name] for side in _SIDES for name in ("amplitude_deg", "phase_deg")}
        return {"frequency_hz": self.defaults["frequency_hz"], **sides, "bias_deg": 0.0}

    @property
    def gait_ranges(self) -> dict[str, tuple[float, float]]:
        """Ranges within which rods keep their limits; thrust falls again beyond a phase of 120 deg."""
        bias = 15.0
        maximum = min(60.0, math.degrees(self.limit_rad) - bias)
        sides: dict[str, tuple[float, float]] = {}
        for side in _SIDES:
            sides |= {f"{side}_amplitude_deg": (0.0, maximum), f"{side}_phase_deg": (-120.0, 120.0)}
        return {"frequency_hz": (0.2, 1.2), **sides, "bias_deg": (-bias, bias)}

    @override
    def gait_period(self, **gait: float) -> float:
        return 1.0 / {**self.gait, **gait}["frequency_hz"]

    @override
    def gait_commands(self, steps: int, **gait: float) -> npt.NDArray[np.float64]:
        """Return the rods' angles, (steps, 4), rad, in the order of the plant's actuators."""
        values = {**self.gait, **gait}
        cycle = 2.0 * np.pi * np.arange(steps) / steps
        bias, rods = math.radians(values["bias_deg"]), []
        for side in _SIDES:
            back, phase = (math.radians(values[f"{side}_{name}"]) for name in ("amplitude_deg", "phase_deg"))
            front = math.asin(max(-1.0, min(1.0, self.ratio * math.sin(back))))
            rods += [front * np.sin(cycle + phase) + bias, back * np.sin(cycle) + bias]
        angles: npt.NDArray[np.float64] = np.stack(rods, axis=1)
        return angles
