"""The unicycle: a platform on two driven wheels that share an axle. Its wheels' angles are its shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.errors import UnknownNameError
from rtmms.locomotion.abilities import Locomotion
from rtmms.mechanism.actuators import JointSpeed, JointTorque
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import TreePlant
from rtmms.model.contacts import Contact, Plane, Wheel
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import build, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled.parts import flat, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Unicycle:
    """Parameters; SI and radians. x forward, the frame between the wheels at the axle's height.

    drive              'motion': the wheels turn as commanded; 'torque'
    wheel_m, half_track_m         radius of a wheel, half the distance between them
    mass_kg, inertia_kg_m2, ahead_m   of the platform, about its centre of mass, which stands that far before the axle
    wheel_kg           of each wheel, a disc
    speed_rad_s, torque_n_m, bandwidth_rad_s   most of a command, and how fast a commanded speed is followed
    """

    drive: str = "motion"
    wheel_m: float = 0.05
    half_track_m: float = 0.15
    mass_kg: float = 2.0
    inertia_kg_m2: float = 0.03
    ahead_m: float = 0.0
    wheel_kg: float = 0.1
    speed_rad_s: float = 40.0
    torque_n_m: float = 1.0
    bandwidth_rad_s: float = 20.0
    gravity_m_s2: float = 9.81
    integrator: str = "rk4"
    substeps: int = 1


CHOICES = {"drive": ("motion", "torque"), "integrator": tuple(METHODS)}
WHEELS = {"left": 1.0, "right": -1.0}


def describe(p: Unicycle) -> Mechanism:
    """A positive turn of either wheel drives it forward."""
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


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The unicycle as a plant (entry point 'unicycle'). Parameters: see Unicycle; no presets.

    Actuators: left.speed, right.speed (rad/s); left.torque, right.torque (N m) with drive=torque.
    """
    if preset is not None:
        raise UnknownNameError("unicycle preset", preset, ())
    p: Unicycle = build(Unicycle, given, CHOICES, {"gravity_m_s2", "inertia_kg_m2"}, {"ahead_m"}, {"substeps": 10_000})
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
