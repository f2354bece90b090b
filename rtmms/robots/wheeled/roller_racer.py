"""The roller racer: two bodies on an axle each; swinging the small one drives both (Krishnaprasad, Tsakiris 2001)."""

from __future__ import annotations

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
class RollerRacer:
    """Parameters; SI and radians. x forward, the frame on the seat's axle.

    drive      'motion': the joint stands as commanded; 'torque'
    seat_kg, seat_kg_m2, seat_m     mass, inertia about z, from its axle forward to the joint
    bar_kg, bar_kg_m2, bar_m        of the handlebar: from the joint forward to its axle. Centres of mass on the axles
    angle_rad, torque_n_m, bandwidth_rad_s   most of a command, and how fast it is followed
    """

    drive: str = "motion"
    seat_kg: float = 1.0
    seat_kg_m2: float = 0.1
    seat_m: float = 0.4
    bar_kg: float = 0.1
    bar_kg_m2: float = 0.02
    bar_m: float = 0.1
    angle_rad: float = 1.2
    torque_n_m: float = 5.0
    bandwidth_rad_s: float = 50.0
    gravity_m_s2: float = 9.81
    integrator: str = "rk4"
    substeps: int = 1


CHOICES = {"drive": ("motion", "torque"), "integrator": tuple(METHODS)}


def describe(p: RollerRacer) -> Mechanism:
    """One joint, bar, in front of the seat."""
    bodies = [flat("seat", p.seat_kg, p.seat_kg_m2), flat("bar", p.bar_kg, p.bar_kg_m2, p.bar_m)]
    joints = [hinge("bar", "seat", "bar", p.seat_m, p.drive)]
    contacts: list[Contact] = [Plane("seat"), Axle("seat"), Axle("bar", at(p.bar_m))]
    return Mechanism("roller_racer", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2), contacts=contacts)


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The roller racer as a plant (entry point 'roller_racer'). Parameters: see RollerRacer; no presets.

    Actuators: bar.angle (rad); bar.torque (N m) with drive=torque.
    """
    if preset is not None:
        raise UnknownNameError("roller_racer preset", preset, ())
    p: RollerRacer = build(
        RollerRacer, given, CHOICES, {"gravity_m_s2"}, set(), {"angle_rad": 3.0, "substeps": 10_000},
        robot="roller_racer",
    )  # fmt: skip
    return TreePlant(
        describe(p), step_of("roller_racer", dt, 1e-3), parameters=p, method=p.integrator, substeps=p.substeps,
        actuators=driven({"bar": p.angle_rad}, p.drive, p.bandwidth_rad_s, p.torque_n_m), summary=summary,
        medium="ground",
        locomotion=Locomotion("nonholonomic", GAITS["roller_racer"], travel=travel),
    )  # fmt: skip
