"""The trikke: a rear axle, a front wheel on a fork with trail, and a rider who swings (Chitta and others 2005)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rtmms.errors import UnknownNameError
from rtmms.locomotion.abilities import Locomotion
from rtmms.locomotion.travelling import travel
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import TreePlant
from rtmms.model.contacts import Axle, Contact, Plane
from rtmms.model.description import Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import build, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled.parts import driven, flat, hinge, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Trikke:
    """Parameters; SI and radians. x forward, the frame on the rear axle. A planar model with dimensions of our own.

    drive      'motion': rider and fork stand as commanded; 'torque'
    fork       'driven', or 'passive': a spring and a damper hold it, and it has no actuator
    frame_kg, frame_kg_m2, centre_m   mass, inertia about z, centre of mass before the rear axle
    base_m, trail_m      from the rear axle to the fork's axis, from there back to its wheel
    fork_kg, fork_kg_m2, fork_n_m, fork_n_m_s   mass at the wheel, inertia, and the passive fork's spring and damper
    rider_kg_m2          of the rider's swing about z
    rider_rad, fork_rad, torque_n_m, bandwidth_rad_s   most of a command, and how fast it is followed
    """

    drive: str = "motion"
    fork: str = "driven"
    frame_kg: float = 10.0
    frame_kg_m2: float = 0.8
    centre_m: float = 0.3
    base_m: float = 0.9
    trail_m: float = 0.05
    fork_kg: float = 1.5
    fork_kg_m2: float = 0.02
    fork_n_m: float = 5.0
    fork_n_m_s: float = 0.5
    rider_kg_m2: float = 2.0
    rider_rad: float = math.pi / 2
    fork_rad: float = 1.2
    torque_n_m: float = 50.0
    bandwidth_rad_s: float = 30.0
    gravity_m_s2: float = 9.81
    integrator: str = "rk4"
    substeps: int = 1


CHOICES = {"drive": ("motion", "torque"), "fork": ("driven", "passive"), "integrator": tuple(METHODS)}
MAY_VANISH = {"centre_m", "trail_m", "fork_n_m", "fork_n_m_s", "gravity_m_s2"}


def describe(p: Trikke) -> Mechanism:
    """Joints: rider, fork."""
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


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The trikke as a plant (entry point 'trikke'). Parameters: see Trikke; no presets.

    Actuators: rider.angle, fork.angle (rad); rider.torque, fork.torque (N m) with drive=torque; no fork's with
    fork=passive.
    """
    if preset is not None:
        raise UnknownNameError("trikke preset", preset, ())
    p: Trikke = build(Trikke, given, CHOICES, MAY_VANISH, set(), {"fork_rad": 1.5, "substeps": 10_000})
    most = {"rider": p.rider_rad} | ({"fork": p.fork_rad} if p.fork == "driven" else {})
    return TreePlant(
        describe(p), step_of("trikke", dt, 1e-3), actuators=driven(most, p.drive, p.bandwidth_rad_s, p.torque_n_m),
        parameters=p, method=p.integrator, substeps=p.substeps, summary=summary, medium="ground",
        locomotion=Locomotion("nonholonomic", GAITS["trikke"], travel=travel),
    )  # fmt: skip
