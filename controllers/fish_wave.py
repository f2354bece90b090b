"""Muscles for the fish: a travelling wave of torques along its tail, softly started.

tau_j(t) = A (1 - X_j / l) sin 2 pi (X_j / lambda - t / T)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, pi, sin

import rtmms

from .rods import SoftStart, checked


@dataclass
class FishWave(rtmms.Controller):
    """Swims a fish by torques on its joints.

    torque_n_m      A, at the head's end; wavelength_m, period_s   lambda, T
    bias_n_m        on every joint: turns;  ramp_s   time of the soft start
    """

    torque_n_m: float = 0.02
    wavelength_m: float = 0.2
    period_s: float = 0.5
    bias_n_m: float = 0.0
    ramp_s: float = 0.5

    robots = ("fish",)
    claim = ("bend*.torque",)
    outputs = ("none",)

    def __post_init__(self) -> None:
        checked("fish_wave", "torque_n_m", self.torque_n_m, 0.0, inf)
        checked("fish_wave", "bias_n_m", self.bias_n_m, -inf, inf)
        self._k = 2.0 * pi / checked("fish_wave", "wavelength_m", self.wavelength_m, 1e-3, inf)
        self._omega = 2.0 * pi / checked("fish_wave", "period_s", self.period_s, 1e-3, inf)
        self._strength = SoftStart(checked("fish_wave", "ramp_s", self.ramp_s, 0.0, inf))
        self._joints: list[tuple[str, float, float]] = []

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Take where the joints stand from the plant; ModelError where it has none."""
        told = plant.parameters
        names = [channel.name for channel in plant.actuators if channel.name.startswith("bend")]
        if not names:
            raise rtmms.ModelError("controller 'fish_wave': expected actuators 'bend1.torque' ...; run it with a fish")
        length, head = float(told.get("length_m", 0.2)), float(told.get("head", 0.3))
        piece = length * (1.0 - head) / len(names)
        self._joints = []
        for j, name in enumerate(names):
            x = head * length + piece * (j + 0.5)
            self._joints.append((name, self._k * x, self.torque_n_m * (1.0 - x / length)))

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Torques in N m at state.time."""
        strength, phase = self._strength(state.time), self._omega * state.time
        return {name: strength * (self.bias_n_m + size * sin(at - phase)) for name, at, size in self._joints}
