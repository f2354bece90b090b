"""Holds depth, heading, speed, roll and pitch of the manta, from its sensors or from the truth.

rtmms run manta --sensors typical --controller autopilot:depth_m=1,heading_deg=30
rtmms set autopilot.depth_m=2 autopilot.depth_p=4
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import radians
from typing import Any

import rtmms
from rtmms_controllers.mixing import TURNS, Most
from rtmms_controllers.pilot import MOST, Aim, Gains, Pilot
from rtmms_controllers.rods import checked
from rtmms_controllers.senses import Senses
from rtmms_controllers.strokes import Fins, check_rods
from rtmms_controllers.watch import Watch

SET_POINTS = {"depth_m": 1e4, "heading_deg": 360.0, "speed_m_s": 1.0, "roll_deg": 10.0, "pitch_deg": 0.5}
_GAINS = Gains()


@dataclass
class Autopilot(rtmms.Controller):
    """Cascades over the coupled oscillators (pilot.py); every set-point and gain may change while it runs.

    depth_m        positive down;  heading_deg  counted to the left from world x;  speed_m_s  over the ground
    roll_deg       > 0: right side down.  pitch_deg  > 0: nose down, 0.5 at most: the fins' bias can do no more
    turn           how the inner fin loses thrust: phase, amplitude or both
    frequency_hz, amplitude_deg   of the stroke, and its amplitude at full thrust
    depth_p ... steady_s2_m2      gains, see pilot.py; `rtmms bench gains` computes them

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
    between = "linear"
    settable = (*SET_POINTS, "turn", "frequency_hz", *(one.name for one in fields(Gains)))

    def __post_init__(self) -> None:
        for name, most in SET_POINTS.items():
            checked("autopilot", name, getattr(self, name), -most, most)
        checked("autopilot", "frequency_hz", self.frequency_hz, 0.1, 3.0)
        checked("autopilot", "amplitude_deg", self.amplitude_deg, 1.0, 45.0)
        if self.turn not in TURNS:
            raise rtmms.ModelError(f"controller 'autopilot': turn: {rtmms.UnknownNameError('way', self.turn, TURNS)}")
        self._gains().check("autopilot")
        self._senses, self._fins, self._watch = Senses("autopilot"), Fins(), Watch("autopilot", tell)
        self._pilot = Pilot(self._gains(), self._most())
        self._aim = self._aimed()

    def prepare(self) -> None:
        """See rtmms.Controller."""
        self._senses.prepare()

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Look how the plant can be sensed, and that its rods can do the stroke."""
        self._fins.start(plant)
        self._senses.start(plant)
        most = self._most()
        strongest = most.stroke()
        check_rods("autopilot", plant, self._fins.ratio, {"left": strongest, "right": strongest})
        self._pilot = Pilot(self._gains(), most)

    def change(self, values: Mapping[str, Any]) -> None:
        """Other set-points or gains from now on."""
        super().change(values)
        self._pilot.tune(self._gains())
        self._pilot.most = self._most()
        self._aim = self._aimed()

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Rod angles in rad."""
        now = self._senses.hear(state)
        self._watch(now)
        left, right = self._pilot(self._aim, now)
        self._fins.aim(left, right, self.frequency_hz)
        return self._fins.at(state.time)

    def _gains(self) -> Gains:
        return Gains(**{one.name: getattr(self, one.name) for one in fields(Gains)})

    def _most(self) -> Most:
        return Most(radians(self.amplitude_deg), MOST.lead, MOST.incidence, MOST.bias, self.turn)

    def _aimed(self) -> Aim:
        return Aim(
            self.depth_m, radians(self.pitch_deg), radians(self.roll_deg), radians(self.heading_deg), self.speed_m_s
        )


def tell(text: str) -> None:
    """To whoever runs it."""
    print(text, file=sys.stderr, flush=True)
