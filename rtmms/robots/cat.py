"""A falling cat: two bodies and a universal joint, turned by its shape alone (docs/shape_robots.md)."""

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
from rtmms.robots.parameters import Integrator, Substeps, step_of
from rtmms.robots.shape_gaits import GAITS, NOTES

CONTROLLER = "shape"


@dataclass(frozen=True)
class Cat:
    """Parameters of the cat; the declaration of each field has its meaning, unit and range."""

    # fmt: off
    mass_kg: Annotated[float, Parameter("Mass of each half.", "kg")] = 1.0
    transverse_kg_m2: Annotated[float, Parameter(
        "Inertia of a half about its centre, across the spine.", "kg m2",
    )] = 0.03
    axial_kg_m2: Annotated[float, Parameter("Inertia of a half about its centre, along the spine.", "kg m2")] = 0.01
    arm_m: Annotated[float, Parameter("Distance from a half's centre to the waist.", "m")] = 0.25
    drive: Annotated[str, Parameter(
        "Drive of the waist: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    limit_rad: Annotated[float, Parameter("Limit of commanded angles.", "rad", le=0.5 * math.pi)] = 0.5 * math.pi
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).", "rad/s", le=100000,
    )] = 20.0
    torque_limit_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m")] = 10.0
    gravity_m_s2: Annotated[float, Parameter(
        "Gravity, along -z of the world; 0: the fall, seen from a frame that falls with the cat.",
        "m/s2", ge=0, le=1000,
    )] = 0.0
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on


def describe(p: Cat) -> Mechanism:
    """Return two bodies on a universal joint, the base in the hind half's centre.

    z is along the spine towards the head, x the direction of its legs. The waist turns the front half about x first
    (waist.1), then about y (waist.2).

    Parameters
    ----------
    p : Cat
        Parameters of the cat.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    inertia = np.diag([p.transverse_kg_m2, p.transverse_kg_m2, p.axial_kg_m2])
    hind = Body("hind", p.mass_kg, inertia=inertia)
    front = Body.about_centre("front", p.mass_kg, (0.0, 0.0, p.arm_m), inertia)
    waist = Joint("waist", "hind", "front", type="universal", placement=at(z=p.arm_m), drive=p.drive)
    return Mechanism("cat", [hind, front], [waist], gravity=(0.0, 0.0, -p.gravity_m_s2))


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the cat plant (entry point 'cat').

    Actuators: waist.1.angle, waist.2.angle (rad), or with drive=torque waist.1.torque, waist.2.torque (N m). The front
    half turns about x, then about y.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Cat`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Cat = build(Cat, values, preset=preset)
    names = ("waist.1", "waist.2")
    actuators: list[Any] = [JointMotion(name, -p.limit_rad, p.limit_rad, p.bandwidth_rad_s) for name in names]
    if p.drive == "torque":
        actuators = [JointTorque(name, p.torque_limit_n_m) for name in names]
    return TreePlant(
        describe(p), step_of("cat", dt, 1e-3), actuators=actuators, parameters=p, method=p.integrator,
        substeps=p.substeps, recent_outputs=("joint_position", "joint_torque"),
        locomotion=Locomotion("mechanical", GAITS["cat"], NOTES["cat"], goal="turn"),
    )  # fmt: skip
