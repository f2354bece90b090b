"""The manta's usual gait, by commands: sines of the rods, (37) of Qu 2024."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError

Array = npt.NDArray[np.float64]

GAIT = {"amplitude_deg": 40.0, "phase_deg": 40.0, "frequency_hz": 0.6}
"""Parameters and their defaults, as the controller `gait` has them."""


@dataclass(frozen=True, slots=True)
class Flapping:
    """Rod angles alpha_i = A_i sin(w t + phi_i), (37); the back rods have no phase, each front rod leads by its own.

    amplitude_deg, phase_deg  of the left fin, and of the right one where `right_...` is None
    A_1 from the rule that both rod ends reach the same height; ramp_s of soft start.
    """

    amplitude_deg: float
    phase_deg: float
    frequency_hz: float
    right_amplitude_deg: float | None = None
    right_phase_deg: float | None = None
    ramp_s: float = 1.0

    @property
    def period_s(self) -> float:
        """1 / frequency."""
        return 1.0 / self.frequency_hz

    def angles(self, time: Array, ratio: float) -> Array:
        """(k, 4) rad in the order of the plant's actuators at time (k,) s; ratio = r2 / r1."""
        cycle = 2.0 * np.pi * self.frequency_hz * time
        x = np.clip(time / self.ramp_s, 0.0, 1.0) if self.ramp_s > 0.0 else np.ones_like(time)
        strength = x**3 * (10.0 + x * (6.0 * x - 15.0))
        right_amplitude = self.amplitude_deg if self.right_amplitude_deg is None else self.right_amplitude_deg
        right_phase = self.phase_deg if self.right_phase_deg is None else self.right_phase_deg
        rods = []
        for amplitude, phase in ((self.amplitude_deg, self.phase_deg), (right_amplitude, right_phase)):
            back = np.radians(amplitude)
            front = np.arcsin(ratio * np.sin(back))
            rods += [front * np.sin(cycle + np.radians(phase)), back * np.sin(cycle)]
        angles: Array = strength[:, None] * np.stack(rods, axis=1)
        return angles


def usual(gait: Mapping[str, float]) -> Flapping:
    """The usual gait with these parameters in place of its own, without a soft start. ModelError."""
    flapping = Flapping(**{**GAIT, **gait}, ramp_s=0.0)
    if not flapping.frequency_hz > 0.0:
        raise ModelError(f"gait: frequency_hz must be > 0 Hz, got {flapping.frequency_hz}")
    return flapping
