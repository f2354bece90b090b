"""The wheeled snake of Hirose's ACM kind: links in a row, each on a passive axle, no link slips to its side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from rtmms.base.parameters import Parameter, build
from rtmms.mechanism.actuators import JointMotion, JointServo, JointSpeed, JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.contacts import Axle, Contact, Plane, Wheel
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import Integrator, Substeps, step_of
from rtmms.robots.wheeled import flat, hinge, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Snake:
    """Parameters of the snake, in SI units and radians; the base is the head, x forward, its frame on its axle.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Drive of the snake. leader: a wheel under the head and the first joint move; the axles lead the other joints. "
        "torque: torques on all joints, no driven wheel. servo: servos on all joints, no driven wheel.",
        choices=("leader", "torque", "servo"),
    )] = "leader"
    links: Annotated[int, Parameter("Number of links.", le=500, ge=2)] = 8
    half_length_m: Annotated[float, Parameter(
        "Half the length of a link, whose axle is in its middle.", "m", le=100,
    )] = 0.1
    mass_kg: Annotated[float, Parameter(
        "Mass of a link; its inertia is that of a rod, m L^2 / 12.", "kg", le=100000,
    )] = 0.5
    servo_n_m: Annotated[float, Parameter("Stiffness of a servo, drive=servo.", "N m/rad")] = 4.0
    servo_n_m_s: Annotated[float, Parameter("Damping of a servo, drive=servo.", "N m s/rad", ge=0)] = 0.2
    torque_n_m: Annotated[float, Parameter(
        "Limit of a servo's torque (drive=servo), and of commanded torques.", "N m",
    )] = 5.0
    damping_n_m_s: Annotated[float, Parameter(
        "Damping of every joint whose motion is not imposed.", "N m s/rad", ge=0,
    )] = 0.0
    wheel_m: Annotated[float, Parameter("Radius of the driven wheel under the head, drive=leader.", "m")] = 0.05
    angle_rad: Annotated[float, Parameter("Limit of commanded angles.", "rad", le=math.pi)] = 1.2
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which joints follow commanded angles (second order, critically damped), and the wheel its speed "
        "(first order).",
        "rad/s",
    )] = 20.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on

    @property
    def inertia_kg_m2(self) -> float:
        """Inertia of a link about z through its middle, kg m2."""
        return self.mass_kg * (2.0 * self.half_length_m) ** 2 / 12.0


def describe(p: Snake) -> Mechanism:
    """Return a row of links; link1 is the head, and joint j1 is between link1 and link2.

    Frames of the other links are at their joints.

    Parameters
    ----------
    p : Snake
        Parameters of the snake.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    h = p.half_length_m
    names = [f"link{k + 1}" for k in range(p.links)]
    bodies = [flat(name, p.mass_kg, p.inertia_kg_m2, -h if k else 0.0) for k, name in enumerate(names)]
    joints: list[Joint] = []
    for k in range(1, p.links):
        drive, end = "motion" if p.drive == "leader" and k == 1 else "torque", -h if k == 1 else -2.0 * h
        joints.append(hinge(f"j{k}", names[k - 1], names[k], end, drive, damping=p.damping_n_m_s))
    axles = [Axle(name, at(-h if k else 0.0)) for k, name in enumerate(names)]
    contacts: list[Contact] = [Plane("link1"), *axles]
    if p.drive == "leader":
        bodies.append(Body("wheel"))
        wheel = Joint("wheel", "link1", "wheel", placement=at(z=p.wheel_m), axis=(0, 1, 0), drive="motion")
        joints.append(wheel)
        contacts.append(Wheel("wheel", p.wheel_m, lateral=False))
    return Mechanism("snake", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2), contacts=contacts)


def _actuators(p: Snake) -> list[Any]:
    joints = [f"j{k}" for k in range(1, p.links)]
    if p.drive == "torque":
        return [JointTorque(name, p.torque_n_m) for name in joints]
    maximum, w = p.angle_rad, p.bandwidth_rad_s
    if p.drive == "leader":
        return [JointSpeed("wheel", -50.0, 50.0, w), JointMotion("j1", -maximum, maximum, w)]
    return [JointServo(name, p.servo_n_m, p.servo_n_m_s, p.torque_n_m, -maximum, maximum, w) for name in joints]


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the wheeled snake plant (entry point 'snake').

    Actuators: wheel.speed (rad/s) and j1.angle (rad); with drive=torque j1.torque ... (N m); with drive=servo j1.angle
    ... of all joints.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Snake`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Snake = build(Snake, values, preset=preset)
    return TreePlant(
        describe(p), step_of("snake", dt, 1e-3), actuators=_actuators(p), parameters=p, method=p.integrator,
        substeps=p.substeps, summary=summary, medium="ground",
    )  # fmt: skip
