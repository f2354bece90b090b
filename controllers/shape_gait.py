"""A gait of the shape: sines of time on the actuators of a robot that its shape's motion drives (shape_gaits.py)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, pi, radians, sin

import rtmms
from rtmms_controllers.rods import SoftStart, checked
from rtmms_controllers.shape_gaits import GAITS, Wave


@dataclass
class ShapeGait(rtmms.Controller):
    """Plays a robot's own gait.

    gait          its name; without one, the first that the robot has actuators for
    frequency_hz  of its base; without one, the gait's own
    amplitude     times the gait's own
    steer         added to what steers, rad or rad/s: > 0 to the left
    ramp_s        time of the soft start
    """

    gait: str = ""
    frequency_hz: float | None = None
    amplitude: float = 1.0
    steer: float = 0.0
    ramp_s: float = 1.0

    claim = ("*",)
    outputs = ("velocity",)
    robots = ("snake", "unicycle", "snakeboard", "roller_racer", "trikke")
    settable = ("amplitude", "steer")

    def __post_init__(self) -> None:
        checked("shape_gait", "amplitude", self.amplitude, -inf, inf)
        checked("shape_gait", "steer", self.steer, -inf, inf)
        self._strength = SoftStart(checked("shape_gait", "ramp_s", self.ramp_s, 0.0, inf))
        if self.frequency_hz is not None:
            checked("shape_gait", "frequency_hz", self.frequency_hz, 0.0, 50.0)
        self._omega = 0.0
        self._moves: list[tuple[str, Wave, float]] = []

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Choose the gait and spread its waves over the plant's actuators; ModelError where they do not fit."""
        known = GAITS.get(plant.robot)
        if known is None:
            raise rtmms.ModelError(f"controller 'shape_gait': it has gaits of {', '.join(GAITS)}, got '{plant.robot}'")
        names = [channel.name for channel in plant.actuators]
        if self.gait and self.gait not in known:
            raise rtmms.UnknownNameError(f"gait of {plant.robot}", self.gait, known)
        fitting = [name for name in known if self._spread(known[name].waves, names)]
        chosen = self.gait or (fitting[0] if fitting else "")
        if chosen not in fitting:
            wanted = ", ".join(wave.channel for wave in known[chosen or next(iter(known))].waves)
            raise rtmms.ModelError(f"controller 'shape_gait': expected actuators {wanted}, got {', '.join(names)}")
        own = known[chosen]
        self._moves = self._spread(own.waves, names)
        self._omega = 2.0 * pi * (own.frequency_hz if self.frequency_hz is None else self.frequency_hz)

    @staticmethod
    def _spread(waves: tuple[Wave, ...], names: list[str]) -> list[tuple[str, Wave, float]]:
        """(actuator, its wave, its phase in rad); [] where an actuator is missing."""
        moves: list[tuple[str, Wave, float]] = []
        for wave in waves:
            before, star, after = wave.channel.partition("*")
            every = [f"{before}{k}{after}" for k in range(1, len(names) + 1)] if star else [wave.channel]
            there = [name for name in every if name in names]
            if not there:
                return []
            for k, name in enumerate(there):
                moves.append((name, wave, radians(wave.phase_deg) + 2.0 * pi * wave.lag_turns * k / len(there)))
        return moves

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Values of the actuators at state.time."""
        strength, cycle = self._strength(state.time), self._omega * state.time
        return {
            name: strength
            * (
                wave.offset
                + self.amplitude * wave.amplitude * sin(wave.harmonic * cycle + phase)
                + wave.steer * self.steer
            )
            for name, wave, phase in self._moves
        }
