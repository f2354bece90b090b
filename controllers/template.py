"""The shortest controller that swims.

Copy this file to mine.py, change it, and run it:

    rtmms run manta --controller mine.py:amplitude_deg=30

or `rtmms control mine.py` beside a plant of `rtmms serve manta`. To install it under a name of its own, put it into a
package, with this in the package's pyproject.toml, after which `--controller mine` finds it:

    [project]
    name = "my_package"
    version = "1.0"
    dependencies = ["rtmms"]

    [project.entry-points."rtmms.controllers"]
    mine = "my_package.mine:Template"
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, radians, sin

import rtmms


@dataclass  # the fields are the parameters: name=value on the command line, read and checked by their types
class Template(rtmms.Controller):
    """Both fins of the manta beat alike, the front rods an eighth of a period ahead of the back ones.

    Attributes
    ----------
    amplitude_deg : float, default 25.0
        Amplitude of the rods, deg.
    frequency_hz : float, default 0.5
        Frequency of the beat.
    """

    amplitude_deg: float = 25.0
    frequency_hz: float = 0.5

    robots = ("manta",)  # what it is written for; leave it out where it drives whatever has its actuators
    claim = ("left.*", "right.*")  # the actuators to drive; other peers may hold others
    tunable_parameters = ("amplitude_deg",)  # may change while it runs: rtmms set template.amplitude_deg=20
    outputs = ("velocity",)  # what each state brings; without this line all but the joints of the fins

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the limit of the rods; called once, before the first state.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            Its actuators and outputs are channels with units and limits; plant.dt is the step.
        """
        self.max_angle_rad = plant.actuator("left.back").upper or pi

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the angles to hold from state.time on; called for each state, to answer within state.budget_s.

        Parameters
        ----------
        state : rtmms.State
            The plant's state.

        Returns
        -------
        dict[str, float]
            Rod angles by actuator, rad.
        """
        angle = 2.0 * pi * self.frequency_hz * state.time
        amplitude = min(radians(self.amplitude_deg), self.max_angle_rad)
        front, back = amplitude * sin(angle + pi / 4.0), amplitude * sin(angle)
        return {"left.front": front, "left.back": back, "right.front": front, "right.back": back}
