"""The wheeled snake of Hirose's ACM kind: links in a row, each on a passive axle, no link slips to its side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms.mechanism.actuators import JointMotion, JointServo, JointSpeed, JointTorque
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import TreePlant
from rtmms.model.contacts import Axle, Contact, Plane, Wheel
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import build, step_of
from rtmms.robots.wheeled.parts import flat, hinge, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Snake:
    """Parameters; SI and radians. The base is the head, x forward, its frame on its axle.

    drive          'leader': a wheel under the head is turned and the first joint moved, and the other joints follow
                   where their axles lead; 'torque': torques on all joints, no wheel is driven; 'servo': the same by
                   servos
    links          number of links
    half_length_m, mass_kg    of a link; its inertia is that of a rod, m L^2 / 12; the axle is in its middle
    servo_n_m, servo_n_m_s, torque_n_m    stiffness, damping, most torque of a servo (drive=servo)
    damping_n_m_s             of every joint that follows or takes a torque
    wheel_m                   radius of the driven wheel under the head (drive=leader)
    angle_rad                 greatest commanded angle
    bandwidth_rad_s           how fast commands are followed
    """

    drive: str = "leader"
    links: int = 8
    half_length_m: float = 0.1
    mass_kg: float = 0.5
    servo_n_m: float = 4.0
    servo_n_m_s: float = 0.2
    torque_n_m: float = 5.0
    damping_n_m_s: float = 0.0
    wheel_m: float = 0.05
    angle_rad: float = 1.2
    bandwidth_rad_s: float = 20.0
    gravity_m_s2: float = 9.81
    integrator: str = "rk4"
    substeps: int = 1

    @property
    def inertia_kg_m2(self) -> float:
        """Of a link, about z through its middle."""
        return self.mass_kg * (2.0 * self.half_length_m) ** 2 / 12.0


CHOICES = {"drive": ("leader", "torque", "servo"), "integrator": tuple(METHODS)}
MOST = {"links": 500, "angle_rad": math.pi, "substeps": 10_000, "half_length_m": 100.0, "mass_kg": 1e5}


def describe(p: Snake) -> Mechanism:
    """link1 is the head; joint j1 stands between link1 and link2. Frames of the others are at their joints."""
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
    most, w = p.angle_rad, p.bandwidth_rad_s
    if p.drive == "leader":
        return [JointSpeed("wheel", -50.0, 50.0, w), JointMotion("j1", -most, most, w)]
    return [JointServo(name, p.servo_n_m, p.servo_n_m_s, p.torque_n_m, -most, most, w) for name in joints]


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The wheeled snake as a plant (entry point 'snake'). Parameters: see Snake; no presets.

    Actuators: wheel.speed (rad/s) and j1.angle (rad); with drive=torque j1.torque ... (N m), with drive=servo
    j1.angle ... of all joints.
    """
    if preset is not None:
        raise UnknownNameError("snake preset", preset, ())
    p: Snake = build(Snake, given, CHOICES, {"damping_n_m_s", "servo_n_m_s", "gravity_m_s2"}, set(), MOST)
    if p.links < 2:
        raise ModelError(f"snake: links must be >= 2, got {p.links}")
    return TreePlant(
        describe(p), step_of("snake", dt, 1e-3), actuators=_actuators(p), parameters=p, method=p.integrator,
        substeps=p.substeps, summary=summary, medium="ground",
    )  # fmt: skip
