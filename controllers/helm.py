"""What the manta's controllers that close a loop share: senses, pilot, fins, and the words for a person."""

from __future__ import annotations

from dataclasses import fields
from math import radians
from typing import Any

import rtmms
from rtmms.base.parameters import check_parameters
from rtmms.base.terminal import print_text

from .following import Following
from .mixing import Most
from .pilot import MOST, Aim, Gains, Pilot
from .senses import Motion, Senses
from .strokes import Fins, check_rods
from .watch import Watch


class Helm:
    """Of one controller.  name  its name, for what it refuses and reports;  following  knows which rods are stuck"""

    def __init__(self, name: str, gains: Gains, most: Most, frequency_hz: float) -> None:
        self.name, self.frequency_hz = name, frequency_hz
        self.senses, self.fins, self.pilot = Senses(name), Fins(), Pilot(gains, most)
        self._watch, self.following = Watch(name, print_line), Following(name, print_line)

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Look how the plant can be sensed, and that its rods can do the stroke; begin anew."""
        self.fins.start(plant)
        self.senses.start(plant)
        self.following.start(plant)
        strongest = self.pilot.most.stroke()
        check_rods(self.name, plant, self.fins.ratio, {"left": strongest, "right": strongest})
        self.pilot = Pilot(self.pilot.gains, self.pilot.most)

    def read(self, state: rtmms.State) -> Motion:
        """Where the robot is; what is wrong with that is reported."""
        now = self.senses.read(state)
        self._watch(now)
        self.following.look(state)
        return now

    def steer(self, aim: Aim, now: Motion) -> dict[str, float]:
        """Rod angles in rad."""
        left, right = self.pilot(aim, now)
        self.fins.aim(left, right, self.frequency_hz)
        angles = self.fins.at(now.time)
        self.following.sent(angles)
        return angles


def most_of(amplitude_deg: float, turn: str) -> Most:
    """The strokes of a controller's parameters."""
    return Most(radians(amplitude_deg), MOST.lead, MOST.incidence, MOST.bias, turn)


def checked_gains(controller: str, own: Any) -> Gains:
    """Those among a controller's parameters; ModelError naming the one that makes no sense."""
    gains = Gains(**{one.name: getattr(own, one.name) for one in fields(Gains) if hasattr(own, one.name)})
    check_parameters(f"controller '{controller}': ", gains)
    return gains


def print_line(text: str) -> None:
    """To whoever runs it."""
    print_text(text, err=True)
