"""Position control of a quadrotor: proportional-derivative laws for its position, and within it for its attitude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import atan2, cos, radians, sin, sqrt
from typing import Annotated

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters
from rtmms.base.terminal import print_text

from .senses import MotionSource

_POSITION_GAINS = (1.5, 2.2)
_ATTITUDE_GAINS = (50.0, 11.0)
_YAW_GAINS = (4.0, 4.0)
_MAX_TILT_RAD = radians(25.0)
_G = 9.81


@dataclass
class Hover(rtmms.Controller):
    """Flies to a place and stays there.

    Where the plant sends its sensors alone, an estimator provides its motion (docs/estimator.md). Rotors front and back
    turn clockwise, left and right counter-clockwise, as those of robot `quadrotor`.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    x_m: Annotated[float, Parameter(
        "Position to hold along x, world frame.", "m", signed=True, le=1e6, live=True,
    )] = 0.0
    y_m: Annotated[float, Parameter(
        "Position to hold along y, world frame.", "m", signed=True, le=1e6, live=True,
    )] = 0.0
    z_m: Annotated[float, Parameter(
        "Position to hold along z, world frame.", "m", signed=True, le=1e6, live=True,
    )] = 1.0
    yaw_deg: Annotated[float, Parameter("Heading to hold, world frame.", "deg", signed=True, le=1e6, live=True)] = 0.0
    mass_kg: Annotated[float, Parameter(
        "Mass of the quadrotor; the plant's value has precedence.", "kg", ge=1e-12,
    )] = 0.5
    ixx_kg_m2: Annotated[float, Parameter(
        "Inertia about x; the plant's value has precedence.", "kg m2", ge=1e-12,
    )] = 2.3e-3
    izz_kg_m2: Annotated[float, Parameter(
        "Inertia about z; the plant's value has precedence.", "kg m2", ge=1e-12,
    )] = 4.0e-3
    arm_m: Annotated[float, Parameter(
        "Distance of a rotor from the centre of mass; the plant's value has precedence.", "m", ge=1e-12,
    )] = 0.17
    thrust_n_s2: Annotated[float, Parameter(
        "Thrust coefficient of a rotor; the plant's value has precedence.", "N s2", ge=1e-12,
    )] = 5.6e-6
    drag_n_m_s2: Annotated[float, Parameter(
        "Drag torque coefficient of a rotor; the plant's value has precedence.", "N m s2", ge=1e-12,
    )] = 1.4e-7
    # fmt: on

    claim = ("front.speed", "left.speed", "back.speed", "right.speed")
    robots = ("quadrotor",)
    setpoints = ("x_m", "y_m", "z_m", "yaw_deg")

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("controller 'hover': ", self)
        self._senses, self._g = MotionSource("hover"), _G

    def prepare(self) -> None:
        """Compile the estimator before the plant waits."""
        self._senses.prepare()

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the plant's own parameters, and find out which outputs give the motion."""
        self._senses.start(plant)
        self._g = max(-plant.gravity[2], 1e-3)
        parameters: Mapping[str, object] = plant.parameters or {}
        unsaid = []
        for name in _PLANT_PARAMETERS:
            value = parameters.get(name)
            if isinstance(value, (int, float)):
                setattr(self, name, float(value))
            else:
                unsaid.append(f"{name}={getattr(self, name):g}")
        if unsaid:
            print_text(
                f"hover: the plant does not send its parameters; these values are used: {', '.join(unsaid)}", err=True
            )

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the speeds of the rotors, rad/s."""
        now = self._senses.read(state)
        roll, pitch, yaw = now.roll, now.pitch, now.yaw
        target = (self.x_m, self.y_m, self.z_m)
        ax, ay, az = (
            _POSITION_GAINS[0] * max(-2.0, min(2.0, goal - at)) - _POSITION_GAINS[1] * v
            for goal, at, v in zip(target, now.position, now.world_velocity, strict=True)
        )
        # tilted forward it accelerates forward, tilted to the right (roll > 0) to the right
        ahead, left = cos(yaw) * ax + sin(yaw) * ay, cos(yaw) * ay - sin(yaw) * ax
        wanted_pitch, wanted_roll = (
            max(-_MAX_TILT_RAD, min(_MAX_TILT_RAD, ahead / self._g)),
            max(-_MAX_TILT_RAD, min(_MAX_TILT_RAD, -left / self._g)),
        )
        turn = atan2(sin(radians(self.yaw_deg) - yaw), cos(radians(self.yaw_deg) - yaw))
        p, q, r = now.rate
        mx = self.ixx_kg_m2 * (_ATTITUDE_GAINS[0] * (wanted_roll - roll) - _ATTITUDE_GAINS[1] * p)
        my = self.ixx_kg_m2 * (_ATTITUDE_GAINS[0] * (wanted_pitch - pitch) - _ATTITUDE_GAINS[1] * q)
        mz = self.izz_kg_m2 * (_YAW_GAINS[0] * turn - _YAW_GAINS[1] * r)
        thrust = self.mass_kg * max(0.0, self._g + az) / max(0.5, cos(roll) * cos(pitch))
        return self._speeds(thrust, mx, my, mz)

    def _speeds(self, thrust: float, mx: float, my: float, mz: float) -> dict[str, float]:
        """Return each rotor's speed: k_t w^2 = thrust / 4 -+ moment / 2 arm +- k_t / 4 k_d times the moment about z."""
        each, about_z = 0.25 * thrust, 0.25 * mz * self.thrust_n_s2 / self.drag_n_m_s2
        forces = {
            "front": each - 0.5 * my / self.arm_m + about_z, "left": each + 0.5 * mx / self.arm_m - about_z,
            "back": each + 0.5 * my / self.arm_m + about_z, "right": each - 0.5 * mx / self.arm_m - about_z,
        }  # fmt: skip
        return {f"{name}.speed": sqrt(max(0.0, force) / self.thrust_n_s2) for name, force in forces.items()}


_PLANT_PARAMETERS = ("mass_kg", "ixx_kg_m2", "izz_kg_m2", "arm_m", "thrust_n_s2", "drag_n_m_s2")
