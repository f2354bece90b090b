"""The shortest controller that swims. Copy this file, change it, and register the class in your own pyproject.toml:

    [project.entry-points."rtmms.controllers"]
    mine = "my_package.my_module:Mine"

after which `rtmms control mine:amplitude_deg=30` and `rtmms run manta --controller mine` find it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, radians, sin

import rtmms


@dataclass  # the fields are the parameters: name=value on the command line, read and checked by their types
class Template(rtmms.Controller):
    """Both fins of the manta beat alike, the front rods an eighth of a period ahead of the back ones."""

    amplitude_deg: float = 25.0
    frequency_hz: float = 0.5

    claim = ("left.*", "right.*")  # the actuators to drive; other peers may hold others
    outputs = ("velocity",)  # what each state brings; without this line all but the joints of the fins

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Called once. plant.actuators and plant.outputs are channels with units and limits; plant.dt is the step."""
        self.amplitude = min(radians(self.amplitude_deg), plant.actuator("left.back").upper or pi)

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Called for each state, and to answer within state.budget_s: the angles to hold from state.time on, in rad."""
        angle = 2.0 * pi * self.frequency_hz * state.time
        front, back = self.amplitude * sin(angle + pi / 4.0), self.amplitude * sin(angle)
        return {"left.front": front, "left.back": back, "right.front": front, "right.back": back}
