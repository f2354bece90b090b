"""The eel's travelling wave: each yaw joint takes its share of the bend of a wave that runs from head to tail.

    q_i(t) = f(t) (Q(l i, t) - Q(l (i - 1), t) + yaw offset),  Q(s, t) = A exp(alpha s) sin 2 pi (s / lambda - t / T)

as in Khalil 2007, eqs 63 to 65; f is a quintic soft start. Offsets bend the eel's course: yaw to the side, pitch up
or down.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, pi, radians, sin

import rtmms

from .rods import SoftStart, checked


@dataclass
class EelWave(rtmms.Controller):
    """Swims an eel whose own gait is off (gait=none) and whose actuators are angles.

    amplitude_rad, growth_1_m, wavelength_m, period_s   A, alpha, lambda, T
    speed_m_s         of the wave, lambda / T; given, it decides the period
    yaw_offset_deg    on every yaw joint: turns; pitch_offset_deg on every pitch joint: climbs or dives
    ramp_s            time of the soft start
    """

    amplitude_rad: float = 0.06
    growth_1_m: float = 1.2
    wavelength_m: float = 1.8
    period_s: float = 2.0
    speed_m_s: float | None = None
    yaw_offset_deg: float = 0.0
    pitch_offset_deg: float = 0.0
    ramp_s: float = 2.0

    robots = ("eel",)
    claim = ("yaw*.angle", "pitch*.angle")
    outputs = ("none",)

    def __post_init__(self) -> None:
        for name, lower in (("amplitude_rad", 0.0), ("growth_1_m", -inf), ("wavelength_m", 1e-3), ("period_s", 1e-3)):
            checked("eel_wave", name, getattr(self, name), lower, inf)
        period = self.period_s
        if self.speed_m_s is not None:
            period = self.wavelength_m / checked("eel_wave", "speed_m_s", self.speed_m_s, 1e-3, inf)
        self._omega, self._k = 2.0 * pi / period, 2.0 * pi / self.wavelength_m
        self._yaw = radians(checked("eel_wave", "yaw_offset_deg", self.yaw_offset_deg, -45.0, 45.0))
        self._pitch = radians(checked("eel_wave", "pitch_offset_deg", self.pitch_offset_deg, -45.0, 45.0))
        self._strength = SoftStart(checked("eel_wave", "ramp_s", self.ramp_s, 0.0, inf))
        self._stations: list[tuple[float, float]] = []

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Take the links' length and number from the plant; ModelError where it swims by itself or takes no angles."""
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

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Angles in rad at state.time."""
        strength, phase = self._strength(state.time), self._omega * state.time
        bend = [a * sin(self._k * s - phase) for s, a in self._stations]
        command = {}
        for i in range(1, len(bend)):
            command[f"yaw{i}.angle"] = strength * (bend[i] - bend[i - 1] + self._yaw)
            command[f"pitch{i}.angle"] = strength * self._pitch
        return command
