"""A satellite with two reaction wheels left, which turns about all axes nevertheless (docs/shape_robots.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from rtmms.base.parameters import Parameter, build
from rtmms.locomotion.plant import Locomotion
from rtmms.mechanism.actuators import JointMotion, JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import Integrator, Substeps, step_of
from rtmms.robots.shape_gaits import GAITS, NOTES

CONTROLLER = "shape"


@dataclass(frozen=True)
class Satellite:
    """Parameters of the satellite; the declaration of each field has its meaning, unit and range."""

    # fmt: off
    mass_kg: Annotated[float, Parameter("Mass of the hub.", "kg")] = 10.0
    ixx_kg_m2: Annotated[float, Parameter("Inertia of the hub about x through its centre.", "kg m2")] = 1.2
    iyy_kg_m2: Annotated[float, Parameter("Inertia of the hub about y through its centre.", "kg m2")] = 1.0
    izz_kg_m2: Annotated[float, Parameter("Inertia of the hub about z through its centre.", "kg m2")] = 0.9
    wheel_kg: Annotated[float, Parameter("Mass of each wheel.", "kg")] = 0.5
    axial_kg_m2: Annotated[float, Parameter("Inertia of each wheel about its axle.", "kg m2")] = 0.05
    transverse_kg_m2: Annotated[float, Parameter(
        "Inertia of each wheel across its axle, about its centre.", "kg m2",
    )] = 0.03
    arm_m: Annotated[float, Parameter(
        "Distance of the x wheel along x, of the y wheel along y; the z wheel has failed.", "m",
    )] = 0.2
    drive: Annotated[str, Parameter(
        "Drive of the wheels: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).", "rad/s", le=100000,
    )] = 20.0
    torque_limit_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m")] = 1.0
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on


def describe(p: Satellite) -> Mechanism:
    """Return the hub, with the base in its centre, and two wheels.

    Parameters
    ----------
    p : Satellite
        Parameters of the satellite.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    hub = Body("hub", p.mass_kg, inertia=np.diag([p.ixx_kg_m2, p.iyy_kg_m2, p.izz_kg_m2]))
    x, y = np.diag([1.0, 0.0, 0.0]), np.diag([0.0, 1.0, 0.0])
    inertia = p.transverse_kg_m2 * np.eye(3)
    more = p.axial_kg_m2 - p.transverse_kg_m2
    bodies = [
        hub,
        Body("wheel_x", p.wheel_kg, inertia=inertia + more * x),
        Body("wheel_y", p.wheel_kg, inertia=inertia + more * y),
    ]
    joints = [
        Joint("wheel_x", "hub", "wheel_x", placement=at(p.arm_m), axis=(1.0, 0.0, 0.0), drive=p.drive),
        Joint("wheel_y", "hub", "wheel_y", placement=at(0.0, p.arm_m), axis=(0.0, 1.0, 0.0), drive=p.drive),
    ]
    return Mechanism("satellite", bodies, joints, gravity=(0.0, 0.0, 0.0))


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the satellite plant (entry point 'satellite').

    Actuators: wheel_x.angle, wheel_y.angle (rad), or with drive=torque wheel_x.torque, wheel_y.torque (N m).

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Satellite`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Satellite = build(Satellite, values, preset=preset)
    names = ("wheel_x", "wheel_y")
    actuators: list[Any] = [JointMotion(name, bandwidth=p.bandwidth_rad_s) for name in names]
    if p.drive == "torque":
        actuators = [JointTorque(name, p.torque_limit_n_m) for name in names]
    return TreePlant(
        describe(p), step_of("satellite", dt, 1e-3), actuators=actuators, parameters=p, method=p.integrator,
        substeps=p.substeps, recent_outputs=("joint_position", "joint_torque"),
        locomotion=Locomotion("mechanical", GAITS["satellite"], NOTES["satellite"], goal="turn", shape=5.0),
    )  # fmt: skip
