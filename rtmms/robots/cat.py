"""A falling cat: two bodies and a universal joint, turned by its shape alone (docs/shape_robots.md)."""

from __future__ import annotations

import math
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
class Cat:
    """Parameters.

    mass_kg               of each half
    transverse_kg_m2, axial_kg_m2     its inertia about its centre, across the spine and along it
    arm_m                 from a half's centre to the waist
    drive                 'motion': the waist's angles are imposed and torques follow; 'torque': torques are given
    limit_rad, bandwidth_rad_s    of commanded angles; torque_limit_n_m of commanded torques
    gravity_m_s2          0: in its own fall, seen from a frame that falls with it
    integrator, substeps  the method, its steps in a plant's step
    """

    mass_kg: float = 1.0
    transverse_kg_m2: float = 0.03
    axial_kg_m2: float = 0.01
    arm_m: float = 0.25
    drive: str = "motion"
    limit_rad: float = 0.5 * math.pi
    bandwidth_rad_s: float = 20.0
    torque_limit_n_m: float = 10.0
    gravity_m_s2: float = 0.0
    integrator: str = "rk4"
    substeps: int = 1


def describe(p: Cat) -> Mechanism:
    """Base in the hind half's centre, z along the spine towards the head, x the way its legs point.

    The waist turns the front half about x first (waist.1), then about y (waist.2).
    """
    inertia = np.diag([p.transverse_kg_m2, p.transverse_kg_m2, p.axial_kg_m2])
    hind = Body("hind", p.mass_kg, inertia=inertia)
    front = Body.about_centre("front", p.mass_kg, (0.0, 0.0, p.arm_m), inertia)
    waist = Joint("waist", "hind", "front", type="universal", placement=at(z=p.arm_m), drive=p.drive)
    return Mechanism("cat", [hind, front], [waist], gravity=(0.0, 0.0, -p.gravity_m_s2))


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The cat as a plant (entry point 'cat'). Parameters: see Cat; no presets.

    Actuators: waist.1.angle, waist.2.angle (rad), or with drive=torque waist.1.torque, waist.2.torque (N m): the front
    half turns about x, then about y.
    """
    if preset is not None:
        raise UnknownNameError("cat preset", preset, ())
    choices = {"drive": ("motion", "torque"), "integrator": tuple(METHODS)}
    most = {"limit_rad": 0.5 * math.pi, "bandwidth_rad_s": 1e5, "gravity_m_s2": 1e3}
    p: Cat = build(Cat, given, choices, {"gravity_m_s2"}, set(), most)
    names = ("waist.1", "waist.2")
    actuators: list[Any] = [JointMotion(name, -p.limit_rad, p.limit_rad, p.bandwidth_rad_s) for name in names]
    if p.drive == "torque":
        actuators = [JointTorque(name, p.torque_limit_n_m) for name in names]
    return TreePlant(
        describe(p), step_of("cat", dt, 1e-3), actuators=actuators, parameters=p, method=p.integrator,
        substeps=p.substeps, recent_outputs=("joint_position", "joint_torque"),
        locomotion=Locomotion("mechanical", GAITS["cat"], NOTES["cat"], goal="turn"),
    )  # fmt: skip
