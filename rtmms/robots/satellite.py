"""A satellite with two reaction wheels left, which turns about all axes nevertheless (docs/shape_robots.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.errors import UnknownNameError
from rtmms.locomotion.abilities import Locomotion
from rtmms.mechanism.actuators import JointMotion, JointTorque
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import build, step_of
from rtmms.robots.shape_gaits import GAITS, NOTES

CONTROLLER = "shape"


@dataclass(frozen=True)
class Satellite:
    """Parameters.

    mass_kg, ixx_kg_m2, iyy_kg_m2, izz_kg_m2      of the hub, about its centre
    wheel_kg, axial_kg_m2, transverse_kg_m2       of each wheel, about its centre
    arm_m                 of the x wheel along x, of the y wheel along y; the z wheel has failed
    drive                 'motion': the wheels' angles are imposed and torques follow; 'torque': torques are given
    bandwidth_rad_s       of commanded angles; torque_limit_n_m of commanded torques
    integrator, substeps  the method, its steps in a plant's step
    """

    mass_kg: float = 10.0
    ixx_kg_m2: float = 1.2
    iyy_kg_m2: float = 1.0
    izz_kg_m2: float = 0.9
    wheel_kg: float = 0.5
    axial_kg_m2: float = 0.05
    transverse_kg_m2: float = 0.03
    arm_m: float = 0.2
    drive: str = "motion"
    bandwidth_rad_s: float = 20.0
    torque_limit_n_m: float = 1.0
    integrator: str = "rk4"
    substeps: int = 1


def describe(p: Satellite) -> Mechanism:
    """Base in the hub's centre."""
    hub = Body("hub", p.mass_kg, inertia=np.diag([p.ixx_kg_m2, p.iyy_kg_m2, p.izz_kg_m2]))
    x, y = np.diag([1.0, 0.0, 0.0]), np.diag([0.0, 1.0, 0.0])
    own = p.transverse_kg_m2 * np.eye(3)
    more = p.axial_kg_m2 - p.transverse_kg_m2
    bodies = [
        hub,
        Body("wheel_x", p.wheel_kg, inertia=own + more * x),
        Body("wheel_y", p.wheel_kg, inertia=own + more * y),
    ]
    joints = [
        Joint("wheel_x", "hub", "wheel_x", placement=at(p.arm_m), axis=(1.0, 0.0, 0.0), drive=p.drive),
        Joint("wheel_y", "hub", "wheel_y", placement=at(0.0, p.arm_m), axis=(0.0, 1.0, 0.0), drive=p.drive),
    ]
    return Mechanism("satellite", bodies, joints, gravity=(0.0, 0.0, 0.0))


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The satellite as a plant (entry point 'satellite'). Parameters: see Satellite; no presets.

    Actuators: wheel_x.angle, wheel_y.angle (rad), or with drive=torque wheel_x.torque, wheel_y.torque (N m).
    """
    if preset is not None:
        raise UnknownNameError("satellite preset", preset, ())
    choices = {"drive": ("motion", "torque"), "integrator": tuple(METHODS)}
    p: Satellite = build(Satellite, given, choices, set(), set(), {"bandwidth_rad_s": 1e5})
    names = ("wheel_x", "wheel_y")
    actuators: list[Any] = [JointMotion(name, bandwidth=p.bandwidth_rad_s) for name in names]
    if p.drive == "torque":
        actuators = [JointTorque(name, p.torque_limit_n_m) for name in names]
    return TreePlant(
        describe(p), step_of("satellite", dt, 1e-3), actuators=actuators, parameters=p, method=p.integrator,
        substeps=p.substeps, recent_outputs=("joint_position", "joint_torque"),
        locomotion=Locomotion("mechanical", GAITS["satellite"], NOTES["satellite"], goal="turn", shape=5.0),
    )  # fmt: skip
