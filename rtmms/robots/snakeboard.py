"""The snakeboard: two axles that steer, and a rotor whose swing they turn into motion (Ostrowski 1995)."""

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
from rtmms.robots.parameters import Integrator, Substeps, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled import flat, hinge, joint_actuators, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class Snakeboard:
    """Parameters of the snakeboard, in SI units and radians; x is forward, and the frame is in the board's middle.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Drive of the joints: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    mass_kg: Annotated[float, Parameter("Mass of the whole snakeboard.", "kg")] = 6.0
    board_kg_m2: Annotated[float, Parameter("Inertia of the board alone about z.", "kg m2")] = 0.016
    rotor_kg_m2: Annotated[float, Parameter("Inertia of the rotor about z.", "kg m2")] = 0.072
    axle_kg_m2: Annotated[float, Parameter("Inertia of each axle about z.", "kg m2")] = 0.0013
    half_length_m: Annotated[float, Parameter("Distance from the board's middle to an axle.", "m")] = 0.2
    rotor_rad: Annotated[float, Parameter("Limit of the rotor's commanded angle.", "rad")] = math.pi
    axle_rad: Annotated[float, Parameter("Limit of an axle's commanded angle.", "rad", le=1.5)] = 1.4
    torque_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m")] = 5.0
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).", "rad/s",
    )] = 50.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on


def describe(p: Snakeboard) -> Mechanism:
    """Return the board with three joints: rotor, front, back.

    Parameters
    ----------
    p : Snakeboard
        Parameters of the snakeboard.

    Returns
    -------
    Mechanism
        The mechanism.
    """
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


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the snakeboard plant (entry point 'snakeboard').

    Actuators: rotor.angle, front.angle, back.angle (rad); rotor.torque ... (N m) with drive=torque.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Snakeboard`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Snakeboard = build(Snakeboard, values, preset=preset)
    joint_limits = {"rotor": p.rotor_rad, "front": p.axle_rad, "back": p.axle_rad}
    return TreePlant(
        describe(p), step_of("snakeboard", dt, 1e-3),
        actuators=joint_actuators(joint_limits, p.drive, p.bandwidth_rad_s, p.torque_n_m),
        parameters=p, method=p.integrator, substeps=p.substeps, summary=summary, medium="ground",
        locomotion=Locomotion("nonholonomic", GAITS["snakeboard"], travel=travel),
    )  # fmt: skip
