"""Mixer of the manta: thrust, yaw, pitch and roll in [-1, 1], the inputs that an autopilot or a joystick sends.

Run it, and change a word:

    rtmms run manta --controller mixer:thrust=0.4
    rtmms set mixer.yaw=0.1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import radians
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .mixing import TURNS, StrokeLimits, mix
from .strokes import Fins, check_rods


@dataclass
class Mixer(rtmms.Controller):
    """Words to fins through the coupled oscillators, smooth whatever comes.

    The declaration of each field has its meaning, unit and range.
    """

    thrust: Annotated[float, Parameter("Thrust forward; < 0 swims backward.", signed=True, le=1, live=True)] = 0.0
    yaw: Annotated[float, Parameter("Turn; > 0 to the left.", signed=True, le=1, live=True)] = 0.0
    pitch: Annotated[
        float,
        Parameter(
            "Lift; > 0 climbs while the robot swims forward.",
            signed=True,
            le=1,
            live=True,
        ),
    ] = 0.0
    roll: Annotated[float, Parameter("Roll; > 0: the right side goes down.", signed=True, le=1, live=True)] = 0.0
    turn: Annotated[str, Parameter("Method by which the inner fin loses thrust.", choices=TURNS, live=True)] = "phase"
    amplitude_deg: Annotated[float, Parameter("Amplitude of the stroke at thrust 1.", "deg", ge=0, le=60)] = 30.0
    phase_deg: Annotated[float, Parameter("Phase of the stroke at thrust 1.", "deg", ge=0, le=90)] = 60.0
    frequency_hz: Annotated[float, Parameter("Frequency of the stroke at thrust 1.", "Hz", ge=0, le=5, live=True)] = 0.8
    incidence_deg: Annotated[float, Parameter("Incidence of the fins at pitch 1.", "deg", ge=0, le=30)] = 12.0

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    outputs = ("none",)

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("controller 'mixer': ", self)
        self._fins = Fins()

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the rods' lengths and limits from the plant.

        Raises
        ------
        ModelError
            The rods cannot do the stroke.
        """
        self._fins.start(plant)
        left, right = mix(self._max_strokes, 1.0, 0.0, 1.0, 0.0)
        check_rods("mixer", plant, self._fins.ratio, {"left": left, "right": right})
        self._aim()

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use other inputs."""
        super().on_parameters_changed(values)
        self._aim()

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the rod angles at state.time, rad."""
        return self._fins.at(state.time)

    @property
    def _max_strokes(self) -> StrokeLimits:
        return StrokeLimits(
            radians(self.amplitude_deg), radians(self.phase_deg), radians(self.incidence_deg), 0.0, self.turn
        )

    def _aim(self) -> None:
        left, right = mix(self._max_strokes, self.thrust, self.yaw, self.pitch, self.roll)
        self._fins.aim(left, right, self.frequency_hz)
