"""Muscles for the fish: a travelling wave of torques along its tail, softly started.

The torque of joint j at X_j is

    tau_j(t) = A (1 - X_j / l) sin 2 pi (X_j / lambda - t / T)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sin
from typing import Annotated

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .rods import SoftStart


@dataclass
class FishWave(rtmms.Controller):
    """Swims a fish by torques on its joints.

    The declaration of each field has its meaning, unit and range.
    """

    torque_n_m: Annotated[float, Parameter("Amplitude A of the torque at the head's end.", "N m", ge=0)] = 0.02
    wavelength_m: Annotated[float, Parameter("Wavelength lambda.", "m", ge=1e-3)] = 0.2
    period_s: Annotated[float, Parameter("Period T of the wave.", "s", ge=1e-3)] = 0.5
    bias_n_m: Annotated[
        float,
        Parameter(
            "Torque that is added to every joint, which turns the fish.",
            "N m",
            signed=True,
        ),
    ] = 0.0
    ramp_s: Annotated[float, Parameter("Duration of the soft start.", "s", ge=0)] = 0.5

    robots = ("fish",)
    claim = ("bend*.torque",)
    outputs = ("none",)

    def __post_init__(self) -> None:
        """Check the parameters, and compute the wave's numbers."""
        check_parameters("controller 'fish_wave': ", self)
        self._k = 2.0 * pi / self.wavelength_m
        self._omega = 2.0 * pi / self.period_s
        self._strength = SoftStart(self.ramp_s)
        self._joints: list[tuple[str, float, float]] = []

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the joints' positions from the plant.

        Raises
        ------
        ModelError
            It has no such joints.
        """
        parameters = plant.parameters
        names = [channel.name for channel in plant.actuators if channel.name.startswith("bend")]
        if not names:
            raise rtmms.ModelError("controller 'fish_wave': expected actuators 'bend1.torque' ...; run it with a fish")
        length, head = float(parameters.get("length_m", 0.2)), float(parameters.get("head", 0.3))
        piece = length * (1.0 - head) / len(names)
        self._joints = []
        for j, name in enumerate(names):
            x = head * length + piece * (j + 0.5)
            self._joints.append((name, self._k * x, self.torque_n_m * (1.0 - x / length)))

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the torques at state.time, N m."""
        strength, phase = self._strength(state.time), self._omega * state.time
        return {name: strength * (self.bias_n_m + size * sin(at - phase)) for name, at, size in self._joints}
