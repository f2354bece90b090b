"""Autopilot of the manta: holds depth, heading, speed, roll and pitch, from its sensors or from the truth.

Run it, and change a set-point or a gain:

    rtmms run manta --sensors typical --controller autopilot:depth_m=1,heading_deg=30
    rtmms set autopilot.depth_m=2 autopilot.depth_p=4
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import radians
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters, parameters_of

from .helm import Helm, checked_gains, most_of
from .mixing import TURNS
from .pilot import Aim, Gains

SET_POINTS = ("depth_m", "heading_deg", "speed_m_s", "roll_deg", "pitch_deg")
_GAINS = Gains()
_DECLARED = parameters_of(Gains)


@dataclass
class Autopilot(rtmms.Controller):
    """Cascades over the coupled oscillators (pilot.py); every set-point and gain may change while it runs.

    It answers each fifth step, with one sample of delay. It falls back where a sensor is silent or the estimate lost;
    see docs/controllers.md.

    The declaration of each field has its meaning, unit and range.

    Attributes
    ----------
    depth_p : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    depth_i : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    climb_d : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    heading_p : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    turn_p : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    turn_i : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    roll_p : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    roll_i : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    roll_d : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    pitch_i : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    pitch_d : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    speed_p : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    speed_i : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    steady_s2_m2 : float, optional
        Gain, see `rtmms_controllers.pilot.Gains`.
    """

    # fmt: off
    depth_m: Annotated[float, Parameter("Depth, positive down.", "m", ge=0, le=1e4, live=True)] = 2.5
    heading_deg: Annotated[float, Parameter(
        "Heading, counted to the left from world x.", "deg", signed=True, le=360, live=True,
    )] = 0.0
    speed_m_s: Annotated[float, Parameter("Speed over the ground.", "m/s", signed=True, le=1, live=True)] = 0.4
    roll_deg: Annotated[float, Parameter("Roll, > 0: right side down.", "deg", signed=True, le=10, live=True)] = 0.0
    pitch_deg: Annotated[float, Parameter(
        "Pitch, > 0: nose down; the fins' bias can do no more than 0.25.", "deg", signed=True, le=0.25, live=True,
    )] = 0.0
    turn: Annotated[str, Parameter("Method by which the inner fin loses thrust.", choices=TURNS, live=True)] = "phase"
    frequency_hz: Annotated[float, Parameter("Frequency of the stroke.", "Hz", ge=0.1, le=3, live=True)] = 0.8
    amplitude_deg: Annotated[float, Parameter("Amplitude of the stroke at full thrust.", "deg", ge=1, le=45)] = 30.0
    depth_p: Annotated[float, _DECLARED["depth_p"]] = _GAINS.depth_p
    depth_i: Annotated[float, _DECLARED["depth_i"]] = _GAINS.depth_i
    climb_d: Annotated[float, _DECLARED["climb_d"]] = _GAINS.climb_d
    heading_p: Annotated[float, _DECLARED["heading_p"]] = _GAINS.heading_p
    turn_p: Annotated[float, _DECLARED["turn_p"]] = _GAINS.turn_p
    turn_i: Annotated[float, _DECLARED["turn_i"]] = _GAINS.turn_i
    roll_p: Annotated[float, _DECLARED["roll_p"]] = _GAINS.roll_p
    roll_i: Annotated[float, _DECLARED["roll_i"]] = _GAINS.roll_i
    roll_d: Annotated[float, _DECLARED["roll_d"]] = _GAINS.roll_d
    pitch_i: Annotated[float, _DECLARED["pitch_i"]] = _GAINS.pitch_i
    pitch_d: Annotated[float, _DECLARED["pitch_d"]] = _GAINS.pitch_d
    speed_p: Annotated[float, _DECLARED["speed_p"]] = _GAINS.speed_p
    speed_i: Annotated[float, _DECLARED["speed_i"]] = _GAINS.speed_i
    steady_s2_m2: Annotated[float, _DECLARED["steady_s2_m2"]] = _GAINS.steady_s2_m2
    # fmt: on

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    every = 5
    interpolation = "linear"
    setpoints = SET_POINTS

    def __post_init__(self) -> None:
        """Check the parameters, and make the loops."""
        check_parameters("controller 'autopilot': ", self)
        strokes = most_of(self.amplitude_deg, self.turn)
        self._helm = Helm("autopilot", checked_gains("autopilot", self), strokes, self.frequency_hz)
        self._take_up()

    def prepare(self) -> None:
        """Compile the estimator before the plant waits."""
        self._helm.senses.prepare()

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Find out which outputs give the motion, and check that the rods can do the stroke."""
        self._helm.start(plant)

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use other set-points or gains."""
        super().on_parameters_changed(values)
        self._take_up()

    @property
    def stuck(self) -> tuple[str, ...]:
        """Rods that do not follow their commands."""
        return self._helm.following.stuck

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the rod angles, rad."""
        return self._helm.steer(self._aim, self._helm.read(state))

    def _take_up(self) -> None:
        helm = self._helm
        helm.pilot.tune(checked_gains("autopilot", self))
        helm.pilot.max_strokes, helm.frequency_hz = most_of(self.amplitude_deg, self.turn), self.frequency_hz
        self._aim = Aim(
            self.depth_m, radians(self.pitch_deg), radians(self.roll_deg), radians(self.heading_deg), self.speed_m_s
        )
