"""Controller of an ROV with thrusters: holds depth and heading, keeps it level, and drives it ahead and sideways.

    rtmms run bluerov2 --controller depth_hold:depth_m=3,heading_deg=90
    rtmms set depth_hold.speed_m_s=0.4

Depth, heading, roll and pitch are cascades. With e the error and M the mass and added mass of the axis:

    rate wanted = w / 2 e, within a limit
    force or moment = 3 M w (rate wanted - rate) + M w^2 int (rate wanted - rate) + damping at the rate wanted

Speeds have the second loop alone. The wrench goes to the thrusters by their pseudo-inverse, within their limits
(allocation.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, radians
from typing import Annotated, Any

import numpy as np

import rtmms
from rtmms.base.attitude import from_euler, rotate, rotate_back, wrap_angle
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters
from rtmms.base.terminal import print_text

from .allocation import AXES, Allocation
from .loops import Loop
from .pilot import FALLBACK
from .senses import Motion, MotionSource
from .watch import Watch

_MAX_SHARE = {"surge": 1.0, "sway": 1.0, "heave": 0.8, "roll": 0.5, "pitch": 0.5, "yaw": 0.6}
"""Largest demand of a loop over the thrusters' authority along its axis."""
_MAX_RATE_RAD_S = 1.0
"""Largest wanted rate of roll and pitch, rad/s."""
_SPEED = "Frequency w of the control loop of {}."


@dataclass
class DepthHold(rtmms.Controller):
    """Holds depth, heading, roll and pitch, and drives at a speed over the ground.

    Where the plant has sensors, the estimate from them is controlled (docs/estimator.md). Without a sensor that a loop
    needs, the loop keeps its integral.

    The declaration of each field has its meaning, unit and range.

    Attributes
    ----------
    depth_rad_s : float, default 1.5
        Frequency w of the control loop of the depth. Unit: rad/s.
    heading_rad_s : float, default 1.5
        Frequency w of the control loop of the heading. Unit: rad/s.
    level_rad_s : float, default 3.0
        Frequency w of the control loop of roll and pitch. Unit: rad/s.
    speed_rad_s : float, default 1.0
        Frequency w of the control loop of the speeds. Unit: rad/s.
    """

    # fmt: off
    depth_m: Annotated[float, Parameter("Depth, positive down.", "m", ge=0, le=1e4, live=True)] = 2.0
    heading_deg: Annotated[float, Parameter(
        "Heading, counted to the left from world x.", "deg", signed=True, le=360, live=True,
    )] = 0.0
    speed_m_s: Annotated[float, Parameter("Speed ahead, over the ground.", "m/s", signed=True, le=3, live=True)] = 0.0
    sway_m_s: Annotated[float, Parameter(
        "Speed to the left, over the ground.", "m/s", signed=True, le=3, live=True,
    )] = 0.0
    roll_deg: Annotated[float, Parameter("Roll, > 0: right side down.", "deg", signed=True, le=60, live=True)] = 0.0
    pitch_deg: Annotated[float, Parameter("Pitch, > 0: nose down.", "deg", signed=True, le=60, live=True)] = 0.0
    depth_rad_s: Annotated[float, Parameter(_SPEED.format("the depth"), "rad/s", le=20, live=True)] = 1.5
    heading_rad_s: Annotated[float, Parameter(_SPEED.format("the heading"), "rad/s", le=20, live=True)] = 1.5
    level_rad_s: Annotated[float, Parameter(_SPEED.format("roll and pitch"), "rad/s", le=20, live=True)] = 3.0
    speed_rad_s: Annotated[float, Parameter(_SPEED.format("the speeds"), "rad/s", le=20, live=True)] = 1.0
    climb_m_s: Annotated[float, Parameter("Largest speed up and down.", "m/s", le=3, live=True)] = 0.4
    turn_deg_s: Annotated[float, Parameter("Largest rate of the heading.", "deg/s", le=360, live=True)] = 45.0
    surge_kg: Annotated[float, Parameter(
        "Mass and added mass along x; the plant's value has precedence.", "kg",
    )] = 19.86
    sway_kg: Annotated[float, Parameter("Mass and added mass along y; the plant's value has precedence.", "kg")] = 20.62
    heave_kg: Annotated[float, Parameter(
        "Mass and added mass along z; the plant's value has precedence.", "kg",
    )] = 32.18
    roll_kg_m2: Annotated[float, Parameter(
        "Inertia with added mass about x; the plant's value has precedence.", "kg m2",
    )] = 0.449
    pitch_kg_m2: Annotated[float, Parameter(
        "Inertia with added mass about y; the plant's value has precedence.", "kg m2",
    )] = 0.365
    yaw_kg_m2: Annotated[float, Parameter(
        "Inertia with added mass about z; the plant's value has precedence.", "kg m2",
    )] = 0.592
    # fmt: on

    robots = ("bluerov2",)
    claim = ("horizontal.*", "vertical.*")
    setpoints = ("depth_m", "heading_deg", "speed_m_s", "roll_deg", "pitch_deg")

    def __post_init__(self) -> None:
        """Check the parameters, and make the loops."""
        check_parameters("controller 'depth_hold': ", self)
        self._senses, self._watch = MotionSource("depth_hold"), Watch("depth_hold", _print)
        self._loops = {axis: Loop(0.0, 0.0, 0.0, inf) for axis in AXES}
        self._damping = dict.fromkeys(AXES, (0.0, 0.0))
        self._time = inf
        self._tune()

    def prepare(self) -> None:
        """Compile the estimator before the plant waits."""
        self._senses.prepare()

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the thrusters, the inertia and the damping that the plant exposes.

        Raises
        ------
        ModelError
            It has no thrusters.
        """
        self._allocation = Allocation(plant, ("heave", "yaw"), "depth_hold")
        self._senses.start(plant)
        known: Mapping[str, Any] = plant.parameters or {}
        for axis, inertia_name in _INERTIA.items():
            parts = [known.get(inertia_name), known.get(f"added_{axis}_{_UNIT[axis]}")]
            if all(isinstance(part, int | float) for part in parts):
                setattr(self, f"{axis}_{_UNIT[axis]}", float(sum(parts)))  # type: ignore[arg-type]
        for axis, unit in _UNIT.items():
            names = f"linear_{axis}_{_LINEAR[unit]}", f"quadratic_{axis}_{_QUADRATIC[unit]}"
            linear, quadratic = (float(known.get(name, 0.0)) for name in names)
            self._damping[axis] = linear, quadratic
        for axis, maximum in zip(AXES, self._allocation.authority, strict=True):
            self._loops[axis].max_output = _MAX_SHARE[axis] * float(maximum)
        self._tune()

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use other set-points or poles; the loops keep their integrals."""
        super().on_parameters_changed(values)
        self._tune()

    def _tune(self) -> None:
        speeds = {"surge": self.speed_rad_s, "sway": self.speed_rad_s, "heave": self.depth_rad_s,
                  "roll": self.level_rad_s, "pitch": self.level_rad_s, "yaw": self.heading_rad_s}  # fmt: skip
        for axis, w in speeds.items():
            loop, mass = self._loops[axis], getattr(self, f"{axis}_{_UNIT[axis]}")
            loop.p, loop.i = 3.0 * mass * w, mass * w**2

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the commands of the thrusters, from -1 to 1."""
        now = self._senses.read(state)
        self._watch(now)
        if now.time < self._time:
            for loop in self._loops.values():
                loop.reset()
            self._time = now.time
        dt, self._time = now.time - self._time, now.time
        hold, push = self._wrenches(now, dt)
        return self._allocation.commands(hold, push)

    def _wrenches(self, now: Motion, dt: float) -> tuple[Any, Any]:
        """Return two wrenches (6,), N and N m, body.

        The first holds depth and attitude, the second drives the robot.
        """
        blind = {loop for doubt in now.doubts for loop in FALLBACK.get(doubt, ())}
        loops, level = self._loops, from_euler(now.roll, now.pitch, 0.0)
        ahead, left, _ = rotate(level, now.velocity)
        held = {}
        for axis, name, w, error, rate, maximum in (
            ("heave", "depth", self.depth_rad_s, -self.depth_m - now.position[2], now.world_velocity[2],
             self.climb_m_s),
            ("roll", "roll", self.level_rad_s, radians(self.roll_deg) - now.roll, now.rate[0], _MAX_RATE_RAD_S),
            ("pitch", "pitch", self.level_rad_s, radians(self.pitch_deg) - now.pitch, now.rate[1], _MAX_RATE_RAD_S),
            ("yaw", "heading", self.heading_rad_s, wrap_angle(radians(self.heading_deg) - now.yaw), now.rate[2],
             radians(self.turn_deg_s)),
        ):  # fmt: skip
            wanted = max(-maximum, min(maximum, 0.5 * w * error))
            held[axis] = loops[axis].hold() if name in blind else loops[axis](
                wanted - rate, 0.0, dt, self._resistance(axis, wanted))  # fmt: skip
        driven = []
        for axis, wanted, speed in (("surge", self.speed_m_s, ahead), ("sway", self.sway_m_s, left)):
            steady = self._resistance(axis, wanted)
            driven.append(loops[axis].hold(steady) if "speed" in blind else loops[axis](
                wanted - speed, 0.0, dt, steady))  # fmt: skip
        hold = np.array([*rotate_back(level, (0.0, 0.0, held["heave"])), held["roll"], held["pitch"], held["yaw"]])
        push = np.array([*rotate_back(level, (driven[0], driven[1], 0.0)), 0.0, 0.0, 0.0])
        return hold, push

    def _resistance(self, axis: str, rate: float) -> float:
        """Return the damping force or moment of an axis at a steady rate, N or N m."""
        linear, quadratic = self._damping[axis]
        return linear * rate + quadratic * abs(rate) * rate


_UNIT = {"surge": "kg", "sway": "kg", "heave": "kg", "roll": "kg_m2", "pitch": "kg_m2", "yaw": "kg_m2"}
_LINEAR = {"kg": "n_s_m", "kg_m2": "n_m_s"}
"""Unit in the name of the plant's linear damping, by the unit of the axis's inertia."""
_QUADRATIC = {"kg": "kg_m", "kg_m2": "kg_m2"}
"""Unit in the name of the plant's quadratic damping, by the unit of the axis's inertia."""
_INERTIA = {"surge": "mass_kg", "sway": "mass_kg", "heave": "mass_kg", "roll": "ixx_kg_m2", "pitch": "iyy_kg_m2",
            "yaw": "izz_kg_m2"}  # fmt: skip
"""Parameter of the plant with the inertia without added mass."""


def _print(text: str) -> None:
    print_text(text, err=True)
