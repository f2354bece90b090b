"""The unicycle: a platform on two driven wheels that share an axle. Its wheels' angles are its shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from rtmms.base.parameters import Parameter, build
from rtmms.locomotion.plant import Locomotion
from rtmms.mechanism.actuators import JointSpeed, JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.contacts import Contact, Plane, Wheel
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import Integrator, Substeps, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled import flat, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Unicycle:
    """Parameters of the unicycle, in SI units and radians; x is forward, and the frame is between the wheels.

    The frame is at the height of the axle. The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Drive of the wheels: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    wheel_m: Annotated[float, Parameter("Radius of a wheel.", "m")] = 0.05
    half_track_m: Annotated[float, Parameter("Half the distance between the wheels.", "m")] = 0.15
    mass_kg: Annotated[float, Parameter("Mass of the platform.", "kg")] = 2.0
    inertia_kg_m2: Annotated[float, Parameter(
        "Inertia of the platform about z through its centre of mass.", "kg m2", ge=0,
    )] = 0.03
    ahead_m: Annotated[float, Parameter(
        "Distance of the platform's centre of mass before the axle.", "m", signed=True,
    )] = 0.0
    wheel_kg: Annotated[float, Parameter("Mass of each wheel, a disc.", "kg")] = 0.1
    speed_rad_s: Annotated[float, Parameter("Limit of commanded speeds.", "rad/s")] = 40.0
    torque_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m")] = 1.0
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the wheels follow commanded speeds (first order).", "rad/s",
    )] = 20.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on


WHEELS = {"left": 1.0, "right": -1.0}


def describe(p: Unicycle) -> Mechanism:
    """Return a platform with two wheels; a positive turn of either wheel drives it forward.

    Parameters
    ----------
    p : Unicycle
        Parameters of the unicycle.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    r = p.wheel_m
    disc = np.diag([0.25, 0.5, 0.25]) * p.wheel_kg * r * r
    bodies = [flat("platform", p.mass_kg, p.inertia_kg_m2, p.ahead_m)]
    joints = []
    for name, side in WHEELS.items():
        bodies.append(Body(name, p.wheel_kg, inertia=disc))
        place = at(y=side * p.half_track_m)
        joints.append(Joint(name, "platform", name, placement=place, axis=(0, 1, 0), drive=p.drive))
    contacts: list[Contact] = [Plane("platform"), *(Wheel(name, r) for name in WHEELS)]
    return Mechanism("unicycle", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2), contacts=contacts)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the unicycle plant (entry point 'unicycle').

    Actuators: left.speed, right.speed (rad/s); left.torque, right.torque (N m) with drive=torque.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Unicycle`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Unicycle = build(Unicycle, values, preset=preset)
    wheels: list[Any] = [
        JointSpeed(name, -p.speed_rad_s, p.speed_rad_s, p.bandwidth_rad_s) if p.drive == "motion"
        else JointTorque(name, p.torque_n_m)
        for name in WHEELS
    ]  # fmt: skip
    return TreePlant(
        describe(p), step_of("unicycle", dt, 1e-3), actuators=wheels, parameters=p, method=p.integrator,
        substeps=p.substeps, summary=summary, medium="ground",
        locomotion=Locomotion("nonholonomic", GAITS["unicycle"]),
    )  # fmt: skip
