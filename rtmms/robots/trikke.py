"""The trikke: a rear axle, a front wheel on a fork with trail, and a rider who swings (Chitta and others 2005)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from rtmms.base.parameters import Parameter, build
from rtmms.locomotion.plant import Locomotion
from rtmms.locomotion.travelling import travel
from rtmms.mechanism.plant import TreePlant
from rtmms.model.contacts import Axle, Contact, Plane
from rtmms.model.description import Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import Integrator, Substeps, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled import flat, hinge, joint_actuators, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Trikke:
    """Parameters of the trikke, in SI units and radians; x is forward, and the frame is on the rear axle.

    The model is planar, with our own dimensions. The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Drive of the joints: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    fork: Annotated[str, Parameter(
        "Fork: driven, or passive, which has a spring, a damper and no actuator.", choices=("driven", "passive"),
    )] = "driven"
    frame_kg: Annotated[float, Parameter("Mass of the frame.", "kg")] = 10.0
    frame_kg_m2: Annotated[float, Parameter("Inertia of the frame about z.", "kg m2")] = 0.8
    centre_m: Annotated[float, Parameter(
        "Distance of the frame's centre of mass before the rear axle.", "m", ge=0,
    )] = 0.3
    base_m: Annotated[float, Parameter("Distance from the rear axle to the fork's axis.", "m")] = 0.9
    trail_m: Annotated[float, Parameter("Distance from the fork's axis back to its wheel.", "m", ge=0)] = 0.05
    fork_kg: Annotated[float, Parameter("Mass of the fork, at the wheel.", "kg")] = 1.5
    fork_kg_m2: Annotated[float, Parameter("Inertia of the fork about z.", "kg m2")] = 0.02
    fork_n_m: Annotated[float, Parameter("Stiffness of the passive fork's spring.", "N m/rad", ge=0)] = 5.0
    fork_n_m_s: Annotated[float, Parameter("Damping of the passive fork.", "N m s/rad", ge=0)] = 0.5
    rider_kg_m2: Annotated[float, Parameter("Inertia of the rider's swing about z.", "kg m2")] = 2.0
    rider_rad: Annotated[float, Parameter("Limit of the rider's commanded angle.", "rad")] = math.pi / 2
    fork_rad: Annotated[float, Parameter("Limit of the fork's commanded angle.", "rad", le=1.5)] = 1.2
    torque_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m")] = 50.0
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).", "rad/s",
    )] = 30.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on


def describe(p: Trikke) -> Mechanism:
    """Return the frame with two joints: rider, fork.

    Parameters
    ----------
    p : Trikke
        Parameters of the trikke.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    bodies = [
        flat("frame", p.frame_kg, p.frame_kg_m2, p.centre_m), flat("rider", 0.0, p.rider_kg_m2),
        flat("fork", p.fork_kg, p.fork_kg_m2, -p.trail_m),
    ]  # fmt: skip
    passive = p.fork == "passive"
    held = {"stiffness": p.fork_n_m, "damping": p.fork_n_m_s} if passive else {}
    joints = [
        hinge("rider", "frame", "rider", p.centre_m, p.drive),
        hinge("fork", "frame", "fork", p.base_m, "torque" if passive else p.drive, **held),
    ]  # fmt: skip
    contacts: list[Contact] = [Plane("frame"), Axle("frame"), Axle("fork", at(-p.trail_m))]
    return Mechanism("trikke", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2), contacts=contacts)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the trikke plant (entry point 'trikke').

    Actuators: rider.angle, fork.angle (rad); rider.torque, fork.torque (N m) with drive=torque. With fork=passive the
    fork has no actuator.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Trikke`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Trikke = build(Trikke, values, preset=preset)
    joint_limits = {"rider": p.rider_rad} | ({"fork": p.fork_rad} if p.fork == "driven" else {})
    return TreePlant(
        describe(p), step_of("trikke", dt, 1e-3),
        actuators=joint_actuators(joint_limits, p.drive, p.bandwidth_rad_s, p.torque_n_m),
        parameters=p, method=p.integrator, substeps=p.substeps, summary=summary, medium="ground",
        locomotion=Locomotion("nonholonomic", GAITS["trikke"], travel=travel),
    )  # fmt: skip
