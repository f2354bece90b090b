"""Heading control of the manta, by a difference of phase and amplitude between its fins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, pi, radians
from typing import Annotated, Any

import rtmms
from rtmms.base.attitude import euler, wrap_angle
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .rods import SoftStart, front_amplitude, rod_angles, rod_ratio, within_limits

_PER_RAD = 3.0
_PER_RAD_S = 3.0
_LAG_S = 0.3
_PHASE_SHARE = 1.0
_AMPLITUDE_SHARE = 0.25


def yaw(quaternion: Sequence[float]) -> float:
    """Return the heading of body x in the world's horizontal plane, counted to the left from world x.

    Parameters
    ----------
    quaternion : Sequence[float]
        (w, x, y, z), body to world.

    Returns
    -------
    float
        rad.

    Examples
    --------
    >>> from rtmms_controllers.heading import yaw
    >>> yaw((1.0, 0.0, 0.0, 0.0))
    0.0
    """
    return euler(quaternion)[2]


@dataclass
class Heading(rtmms.Controller):
    """A proportional-derivative law from the heading's error to the fins' difference.

    The stronger fin is the outer one: a stronger left fin turns right. The inner fin loses phase, and with it thrust; a
    little amplitude goes from the inner to the outer fin, which keeps the mean, and so the speed.

    Attributes
    ----------
    heading_deg : float, default 0.0
        Wanted heading in the world, counted to the left from world x. Unit: deg.
    amplitude_deg : float, default 40.0
        Amplitude of the straight gait, as in `gait`. Unit: deg.
    frequency_hz : float, default 0.6
        Frequency of the straight gait, as in `gait`. Unit: Hz.
    phase_deg : float, default 40.0
        Phase of the straight gait, as in `gait`. Unit: deg.
    ramp_s : float, default 1.0
        Duration of the soft start of the straight gait, as in `gait`. Unit: s.
    """

    # fmt: off
    heading_deg: Annotated[float, Parameter(
        "Wanted heading in the world, counted to the left from world x.", "deg", signed=True, le=360, live=True,
    )] = 0.0
    amplitude_deg: Annotated[float, Parameter(
        "Amplitude of the straight gait, as in `gait`.", "deg", ge=0, le=70, live=True,
    )] = 40.0
    frequency_hz: Annotated[float, Parameter("Frequency of the straight gait, as in `gait`.", "Hz", ge=0, le=50)] = 0.6
    phase_deg: Annotated[float, Parameter(
        "Phase of the straight gait, as in `gait`.", "deg", signed=True, le=180, live=True,
    )] = 40.0
    ramp_s: Annotated[float, Parameter(
        "Duration of the soft start of the straight gait, as in `gait`.", "s", ge=0,
    )] = 1.0
    # fmt: on

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    outputs = ("quaternion", "angular_velocity")
    setpoints = ("heading_deg",)

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("controller 'heading': ", self)
        self._omega = 2.0 * pi * self.frequency_hz
        self._take_up()
        self._strength = SoftStart(self.ramp_s)
        self._ratio = rod_ratio({})
        self._turn = self._before = 0.0

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the rods' lengths from the plant, and check that its rods can do the strongest stroke."""
        self._plant, self._ratio = plant, rod_ratio(plant.parameters)
        self._see_to_limits(self.amplitude_deg)

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use another heading or stroke; a stroke beyond the rods' limits is refused."""
        self._see_to_limits(values.get("amplitude_deg", self.amplitude_deg))
        super().on_parameters_changed(values)
        self._take_up()

    def _take_up(self) -> None:
        self._heading = radians(self.heading_deg)
        self._amplitude = radians(self.amplitude_deg)
        self._phase = radians(self.phase_deg)

    def _see_to_limits(self, amplitude_deg: float) -> None:
        strongest = radians(amplitude_deg) * (1.0 + _AMPLITUDE_SHARE)
        for side in ("left", "right"):
            within_limits("heading", self._plant, side, front_amplitude(strongest, self._ratio), strongest)

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the rod angles at state.time, rad."""
        turn = self._steer(state)
        strength = self._strength(state.time)
        command = {}
        for side, outer in (("left", -turn), ("right", turn)):  # > 0: to the left, the right fin is the outer one
            amplitude = self._amplitude * (1.0 + _AMPLITUDE_SHARE * outer)
            phase = self._phase * (1.0 + _PHASE_SHARE * min(outer, 0.0))
            front, back = rod_angles(self._omega * state.time, amplitude, phase, 0.0, self._ratio, strength)
            command[f"{side}.front"], command[f"{side}.back"] = front, back
        return command

    def _steer(self, state: rtmms.State) -> float:
        """Return the strength of the turn, from -1 (right) to 1 (left), smoothed so that no rod jumps."""
        error = wrap_angle(self._heading - yaw(state.outputs["quaternion"]))
        rate = state.outputs["angular_velocity"][2]  # about body z: the manta flies nearly level
        wanted = max(-1.0, min(1.0, _PER_RAD * error - _PER_RAD_S * rate))
        lapse = max(0.0, state.time - self._before)
        self._before = state.time
        self._turn += (wanted - self._turn) * (1.0 - exp(-lapse / _LAG_S))
        return self._turn
