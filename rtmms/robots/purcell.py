"""Purcell's three-link swimmer: three rods in a creeping fluid, without inertia (docs/shape_robots.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from rtmms.base.parameters import Parameter, build
from rtmms.locomotion.plant import ConnectionPlant, Locomotion
from rtmms.mechanism.actuators import JointMotion
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.elements import rod_resistance
from rtmms.model.solids import at
from rtmms.robots.parameters import START_DEPTH_M, StartDepth, step_of
from rtmms.robots.shape_gaits import GAITS, NOTES
from rtmms.robots.wheeled import summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Purcell:
    """Parameters of the swimmer; the declaration of each field has its meaning, unit and range."""

    # fmt: off
    length_m: Annotated[float, Parameter("Length of each rod.", "m")] = 1.0
    tangential_n_s_m2: Annotated[float, Parameter(
        "Resistance c_t along a rod: force per metre and m/s.", "N s/m2",
    )] = 1.0
    normal_n_s_m2: Annotated[float, Parameter("Resistance c_n across a rod: force per metre and m/s.", "N s/m2")] = 2.0
    limit_rad: Annotated[float, Parameter(
        "Limit of each joint's angle. Beyond 2 pi / 3 on one side the rods may meet, and the model does not prevent "
        "it.",
        "rad", le=math.pi,
    )] = math.pi
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).", "rad/s", le=100000,
    )] = 20.0
    start_depth_m: StartDepth = START_DEPTH_M
    # fmt: on


def describe(p: Purcell) -> Mechanism:
    """Return three rods, the base in the middle rod's middle, x along it.

    The angle `left` belongs to the rod behind (-x), `right` to the one ahead.

    Parameters
    ----------
    p : Purcell
        Parameters of the swimmer.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    half = 0.5 * p.length_m

    def rod(name: str, middle: float) -> Body:
        drag = rod_resistance(p.length_m, p.tangential_n_s_m2, p.normal_n_s_m2, at(middle))
        return Body(name, viscous=drag)

    joints = [
        Joint("left", "middle", "left", placement=at(-half), drive="motion"),
        Joint("right", "middle", "right", placement=at(half), drive="motion"),
    ]
    bodies = [rod("middle", 0.0), rod("left", -half), rod("right", half)]
    return Mechanism("purcell", bodies, joints, base="prescribed", gravity=(0.0, 0.0, 0.0))


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> ConnectionPlant:
    """Build Purcell's swimmer (entry point 'purcell').

    Actuators: left.angle, right.angle (rad). Positive angles turn a rod counter-clockwise, seen from above.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Purcell`.

    Returns
    -------
    ConnectionPlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Purcell = build(Purcell, values, preset=preset)
    joints = [JointMotion(name, -p.limit_rad, p.limit_rad, p.bandwidth_rad_s) for name in ("left", "right")]
    moves = Locomotion("stokes", GAITS["purcell"], NOTES["purcell"])
    return ConnectionPlant(
        describe(p),
        joints,
        step_of("purcell", dt, 1e-3),
        parameters=p,
        locomotion=moves,
        summary=summary,
        half_span_m=0.5 * p.length_m,
    )
