"""The snakeboard: two axles that steer, and a rotor whose swing they turn into motion (Ostrowski 1995)."""

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
from rtmms.robots.parameters import build, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled.parts import driven, flat, hinge, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Snakeboard:
    """Parameters; SI and radians. x forward, the frame in the board's middle.

    drive                'motion': rotor and axles stand as commanded; 'torque'
    mass_kg              of the whole
    board_kg_m2, rotor_kg_m2, axle_kg_m2   inertias about z: of the board alone, the rotor, each axle
    half_length_m        from the middle to an axle
    rotor_rad, axle_rad, torque_n_m, bandwidth_rad_s   most of a command, and how fast it is followed
    """

    drive: str = "motion"
    mass_kg: float = 6.0
    board_kg_m2: float = 0.016
    rotor_kg_m2: float = 0.072
    axle_kg_m2: float = 0.0013
    half_length_m: float = 0.2
    rotor_rad: float = math.pi
    axle_rad: float = 1.4
    torque_n_m: float = 5.0
    bandwidth_rad_s: float = 50.0
    gravity_m_s2: float = 9.81
    integrator: str = "rk4"
    substeps: int = 1


CHOICES = {"drive": ("motion", "torque"), "integrator": tuple(METHODS)}


def describe(p: Snakeboard) -> Mechanism:
    """Joints: rotor, front, back."""
    l = p.half_length_m
    bodies = [
        flat("board", p.mass_kg, p.board_kg_m2), flat("rotor", 0.0, p.rotor_kg_m2), flat("front", 0.0, p.axle_kg_m2),
        flat("back", 0.0, p.axle_kg_m2),
    ]  # fmt: skip
    joints = [
        hinge("rotor", "board", "rotor", 0.0, p.drive), hinge("front", "board", "front", l, p.drive),
        hinge("back", "board", "back", -l, p.drive),
    ]  # fmt: skip
    contacts: list[Contact] = [Plane("board"), Axle("front"), Axle("back")]
    return Mechanism("snakeboard", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2), contacts=contacts)


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The snakeboard as a plant (entry point 'snakeboard'). Parameters: see Snakeboard; no presets.

    Actuators: rotor.angle, front.angle, back.angle (rad); rotor.torque ... (N m) with drive=torque.
    """
    if preset is not None:
        raise UnknownNameError("snakeboard preset", preset, ())
    p: Snakeboard = build(Snakeboard, given, CHOICES, {"gravity_m_s2"}, set(), {"axle_rad": 1.5, "substeps": 10_000})
    most = {"rotor": p.rotor_rad, "front": p.axle_rad, "back": p.axle_rad}
    return TreePlant(
        describe(p), step_of("snakeboard", dt, 1e-3), actuators=driven(most, p.drive, p.bandwidth_rad_s, p.torque_n_m),
        parameters=p, method=p.integrator, substeps=p.substeps, summary=summary, medium="ground",
        locomotion=Locomotion("nonholonomic", GAITS["snakeboard"], travel=travel),
    )  # fmt: skip
