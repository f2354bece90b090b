"""Swims the manta by four words in [-1, 1], thrust, yaw, pitch and roll: what an autopilot or a joystick thinks in.

rtmms run manta --controller mixer:thrust=0.4
rtmms set mixer.yaw=0.1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import radians
from typing import Any

import rtmms

from .mixing import TURNS, Most, mixed
from .rods import checked
from .strokes import Fins, check_rods

WORDS = ("thrust", "yaw", "pitch", "roll")
STROKE = {"amplitude_deg": (0.0, 60.0), "phase_deg": (0.0, 90.0), "frequency_hz": (0.0, 5.0),
          "incidence_deg": (0.0, 30.0)}  # fmt: skip


@dataclass
class Mixer(rtmms.Controller):
    """Words to fins through the coupled oscillators, smooth whatever comes.

    thrust   forward; < 0 swims backward.  yaw  > 0 turns left.  pitch  > 0 lifts: it climbs, if it swims forward
    roll     > 0: the right side goes down
    turn     how the inner fin loses thrust: phase, amplitude or both
    amplitude_deg, phase_deg, frequency_hz   of the stroke at thrust 1;  incidence_deg  of the fins at pitch 1
    """

    thrust: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0
    roll: float = 0.0
    turn: str = "phase"
    amplitude_deg: float = 30.0
    phase_deg: float = 60.0
    frequency_hz: float = 0.8
    incidence_deg: float = 12.0

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    outputs = ("none",)
    settable = (*WORDS, "turn", "frequency_hz")

    def __post_init__(self) -> None:
        for name in WORDS:
            checked("mixer", name, getattr(self, name), -1.0, 1.0)
        for name, (lower, upper) in STROKE.items():
            checked("mixer", name, getattr(self, name), lower, upper)
        if self.turn not in TURNS:
            raise rtmms.ModelError(f"controller 'mixer': turn: {rtmms.UnknownNameError('way', self.turn, TURNS)}")
        self._fins = Fins()

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Rods' lengths and limits from the plant; ModelError for a stroke that they cannot do."""
        self._fins.start(plant)
        left, right = mixed(self._most, 1.0, 0.0, 1.0, 0.0)
        check_rods("mixer", plant, self._fins.ratio, {"left": left, "right": right})
        self._aim()

    def change(self, values: Mapping[str, Any]) -> None:
        """Other words from now on."""
        super().change(values)
        self._aim()

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Rod angles in rad at state.time."""
        return self._fins.at(state.time)

    @property
    def _most(self) -> Most:
        return Most(radians(self.amplitude_deg), radians(self.phase_deg), radians(self.incidence_deg), 0.0, self.turn)

    def _aim(self) -> None:
        left, right = mixed(self._most, self.thrust, self.yaw, self.pitch, self.roll)
        self._fins.aim(left, right, self.frequency_hz)
