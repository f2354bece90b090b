"""Travelling wave of the eel: each yaw joint has its share of the bend of a wave from head to tail.

    q_i(t) = f(t) (Q(l i, t) - Q(l (i - 1), t) + yaw offset),  Q(s, t) = A exp(alpha s) sin 2 pi (s / lambda - t / T)

as in Khalil 2007, eqs 63 to 65; f is a quintic soft start. Offsets bend the eel's course: yaw to the side, pitch up or
down.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, pi, radians, sin
from typing import Annotated

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .rods import SoftStart


@dataclass
class EelWave(rtmms.Controller):
    """Swims an eel whose own gait is off (gait=none) and whose actuators are angles.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    amplitude_rad: Annotated[float, Parameter("Amplitude A at the head.", "rad", ge=0)] = 0.06
    growth_1_m: Annotated[float, Parameter("Growth alpha of the amplitude.", "1/m", signed=True)] = 1.2
    wavelength_m: Annotated[float, Parameter("Wavelength lambda.", "m", ge=1e-3)] = 1.8
    period_s: Annotated[float, Parameter("Period T of the wave.", "s", ge=1e-3)] = 2.0
    speed_m_s: Annotated[float | None, Parameter(
        "Speed of the wave, lambda / T; if it is given, it determines the period.", "m/s", ge=1e-3,
    )] = None
    yaw_offset_deg: Annotated[float, Parameter(
        "Offset of every yaw joint, which turns the eel.", "deg", signed=True, le=45,
    )] = 0.0
    pitch_offset_deg: Annotated[float, Parameter(
        "Offset of every pitch joint, which lets the eel climb or dive.", "deg", signed=True, le=45,
    )] = 0.0
    ramp_s: Annotated[float, Parameter("Duration of the soft start.", "s", ge=0)] = 2.0
    # fmt: on

    robots = ("eel",)
    claim = ("yaw*.angle", "pitch*.angle")
    outputs = ("none",)

    def __post_init__(self) -> None:
        """Check the parameters, and compute the wave's numbers."""
        check_parameters("controller 'eel_wave': ", self)
        period = self.period_s if self.speed_m_s is None else self.wavelength_m / self.speed_m_s
        self._omega, self._k = 2.0 * pi / period, 2.0 * pi / self.wavelength_m
        self._yaw = radians(self.yaw_offset_deg)
        self._pitch = radians(self.pitch_offset_deg)
        self._strength = SoftStart(self.ramp_s)
        self._stations: list[tuple[float, float]] = []

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the links' length and number from the plant.

        Raises
        ------
        ModelError
            The plant has its own gait, or its actuators are no angles.
        """
        if plant.parameters.get("gait", "none") != "none":
            raise rtmms.ModelError("controller 'eel_wave': the eel's own gait is on; run it with --set gait=none")
        joints = sum(channel.name.startswith("yaw") for channel in plant.actuators)
        if not any(channel.name == "yaw1.angle" for channel in plant.actuators):
            raise rtmms.ModelError(
                "controller 'eel_wave': expected actuators 'yaw1.angle' ...; run the eel with drive=motion, or with "
                "command=angle"
            )
        length = float(plant.parameters.get("link_length_m", 0.14))
        envelope = [(length * i, self.amplitude_rad * exp(self.growth_1_m * length * i)) for i in range(joints + 1)]
        self._stations = envelope

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the joint angles at state.time, rad."""
        strength, phase = self._strength(state.time), self._omega * state.time
        bend = [a * sin(self._k * s - phase) for s, a in self._stations]
        command = {}
        for i in range(1, len(bend)):
            command[f"yaw{i}.angle"] = strength * (bend[i] - bend[i - 1] + self._yaw)
            command[f"pitch{i}.angle"] = strength * self._pitch
        return command
