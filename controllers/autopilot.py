"""Holds depth, heading, speed, roll and pitch of the manta, from its sensors or from the truth.

rtmms run manta --sensors typical --controller autopilot:depth_m=1,heading_deg=30
rtmms set autopilot.depth_m=2 autopilot.depth_p=4
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import radians
from typing import Any

import rtmms

from .helm import Helm, checked_gains, checked_most
from .pilot import Aim, Gains
from .rods import checked

SET_POINTS = {"depth_m": 1e4, "heading_deg": 360.0, "speed_m_s": 1.0, "roll_deg": 10.0, "pitch_deg": 0.25}
_GAINS = Gains()


@dataclass
class Autopilot(rtmms.Controller):
    """Cascades over the coupled oscillators (pilot.py); every set-point and gain may change while it runs.

    depth_m        positive down;  heading_deg  counted to the left from world x;  speed_m_s  over the ground
    roll_deg       > 0: right side down.  pitch_deg  > 0: nose down, 0.25 at most: the fins' bias can do no more
    turn           how the inner fin loses thrust: phase, amplitude or both
    frequency_hz, amplitude_deg   of the stroke, and its amplitude at full thrust
    depth_p ... steady_s2_m2      gains, see pilot.py

    Each fifth step, with one sample of delay. Falls back where a sensor is silent or the estimate lost; docs say how.
    """

    depth_m: float = 0.5
    heading_deg: float = 0.0
    speed_m_s: float = 0.4
    roll_deg: float = 0.0
    pitch_deg: float = 0.0
    turn: str = "phase"
    frequency_hz: float = 0.8
    amplitude_deg: float = 30.0
    depth_p: float = _GAINS.depth_p
    depth_i: float = _GAINS.depth_i
    climb_d: float = _GAINS.climb_d
    heading_p: float = _GAINS.heading_p
    turn_p: float = _GAINS.turn_p
    turn_i: float = _GAINS.turn_i
    roll_p: float = _GAINS.roll_p
    roll_i: float = _GAINS.roll_i
    roll_d: float = _GAINS.roll_d
    pitch_i: float = _GAINS.pitch_i
    pitch_d: float = _GAINS.pitch_d
    speed_p: float = _GAINS.speed_p
    speed_i: float = _GAINS.speed_i
    steady_s2_m2: float = _GAINS.steady_s2_m2

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    every = 5
    interpolation = "linear"
    tracks = tuple(SET_POINTS)
    settable = (*SET_POINTS, "turn", "frequency_hz", *(one.name for one in fields(Gains)))

    def __post_init__(self) -> None:
        for name, most in SET_POINTS.items():
            checked("autopilot", name, getattr(self, name), -most, most)
        checked("autopilot", "frequency_hz", self.frequency_hz, 0.1, 3.0)
        strokes = checked_most("autopilot", self.amplitude_deg, self.turn)
        self._helm = Helm("autopilot", checked_gains("autopilot", self), strokes, self.frequency_hz)
        self._take_up()

    def prepare(self) -> None:
        """See rtmms.Controller."""
        self._helm.senses.prepare()

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Look how the plant can be sensed, and that its rods can do the stroke."""
        self._helm.start(plant)

    def change(self, values: Mapping[str, Any]) -> None:
        """Other set-points or gains from now on."""
        super().change(values)
        self._take_up()

    @property
    def stuck(self) -> tuple[str, ...]:
        """Rods that do not follow their commands."""
        return self._helm.following.stuck

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Rod angles in rad."""
        return self._helm.steer(self._aim, self._helm.hear(state))

    def _take_up(self) -> None:
        helm = self._helm
        helm.pilot.tune(checked_gains("autopilot", self))
        helm.pilot.most, helm.frequency_hz = checked_most("autopilot", self.amplitude_deg, self.turn), self.frequency_hz
        self._aim = Aim(
            self.depth_m, radians(self.pitch_deg), radians(self.roll_deg), radians(self.heading_deg), self.speed_m_s
        )
