"""Three ellipses in a perfect fluid at rest, neutrally buoyant: they swim by momentum alone (docs/shape_robots.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from rtmms.base.parameters import Parameter, build
from rtmms.locomotion.plant import Locomotion
from rtmms.mechanism.actuators import JointMotion, JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import START_DEPTH_M, Integrator, StartDepth, Substeps, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled import summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class FluidSwimmer:
    """Parameters for a metre of depth; the declaration of each field has its meaning, unit and range.

    The flow is plane, and no body feels the flow of another.
    """

    # fmt: off
    half_length_m: Annotated[float, Parameter("Half-axis a of each ellipse, along the body.", "m")] = 1.0
    half_width_m: Annotated[float, Parameter("Half-axis b of each ellipse, across the body.", "m")] = 0.1
    gap_m: Annotated[float, Parameter("Distance from an ellipse's end to the joint beside it.", "m")] = 0.1
    density_kg_m3: Annotated[float, Parameter("Density of the bodies and of the fluid.", "kg/m3")] = 1.0
    drive: Annotated[str, Parameter(
        "Drive of the joints: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    limit_rad: Annotated[float, Parameter("Limit of commanded angles.", "rad", le=math.pi)] = math.pi
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).", "rad/s", le=100000,
    )] = 20.0
    torque_limit_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m")] = 10.0
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    start_depth_m: StartDepth = START_DEPTH_M
    # fmt: on


def describe(p: FluidSwimmer) -> Mechanism:
    """Return three ellipses, the base in the middle one, x along it.

    The angle `left` belongs to the ellipse behind (-x), `right` to the one ahead.

    Parameters
    ----------
    p : FluidSwimmer
        Parameters of the swimmer.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    a, b, rho = p.half_length_m, p.half_width_m, p.density_kg_m3
    mass = rho * math.pi * a * b
    inertia = 0.25 * mass * np.diag([b * b, a * a, a * a + b * b])
    # an ellipse in a plane flow: pi b^2 along a, pi a^2 along b, pi (a^2 - b^2)^2 / 8 about z
    across = math.pi * rho * np.array([b * b, a * a, (a * a - b * b) ** 2 / 8.0])
    added = np.diag([across[0], across[1], 0.0, 0.0, 0.0, across[2]])
    reach = a + p.gap_m

    def ellipse(name: str, middle: float) -> Body:
        x = np.eye(6)
        x[1, 5] = -middle  # the body's origin is its joint, the ellipse's middle stands at (middle, 0, 0)
        centre = np.array([middle, 0.0, 0.0])
        moved = np.linalg.inv(x).T @ added @ np.linalg.inv(x)
        return Body.about_centre(
            name, mass, centre, inertia, added=moved, displaced=mass, displaced_moment=mass * centre
        )

    joints = [
        Joint("left", "middle", "left", placement=at(-reach), drive=p.drive),
        Joint("right", "middle", "right", placement=at(reach), drive=p.drive),
    ]
    bodies = [ellipse("middle", 0.0), ellipse("left", -reach), ellipse("right", reach)]
    return Mechanism("fluid_swimmer", bodies, joints, gravity=(0.0, 0.0, 0.0))


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the fluid swimmer plant (entry point 'fluid_swimmer').

    Actuators: left.angle, right.angle (rad), or with drive=torque left.torque, right.torque (N m). Positive values turn
    an ellipse counter-clockwise, seen from above.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `FluidSwimmer`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: FluidSwimmer = build(FluidSwimmer, values, preset=preset, robot="fluid_swimmer")
    names = ("left", "right")
    actuators: list[Any] = [JointMotion(name, -p.limit_rad, p.limit_rad, p.bandwidth_rad_s) for name in names]
    if p.drive == "torque":
        actuators = [JointTorque(name, p.torque_limit_n_m) for name in names]
    return TreePlant(
        describe(p), step_of("fluid_swimmer", dt, 1e-3), actuators=actuators, parameters=p, method=p.integrator,
        substeps=p.substeps, recent_outputs=("joint_position", "joint_torque"), medium="water", density=p.density_kg_m3,
        half_span_m=p.half_length_m,
        summary=summary, locomotion=Locomotion("hydrodynamic", GAITS["fluid_swimmer"], shape=0.5),
    )  # fmt: skip
