"""The roller racer: two bodies on an axle each; swinging the small one drives both (Krishnaprasad, Tsakiris 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from rtmms.base.parameters import Parameter, build
from rtmms.locomotion.plant import Locomotion
from rtmms.locomotion.travelling import travel
from rtmms.mechanism.plant import TreePlant
from rtmms.model.contacts import Axle, Contact, Plane
from rtmms.model.description import Mechanism
from rtmms.model.solids import at
from rtmms.robots.parameters import Integrator, Substeps, step_of
from rtmms.robots.shape_gaits import GAITS
from rtmms.robots.wheeled import flat, hinge, joint_actuators, summary

CONTROLLER = "shape"


@dataclass(frozen=True)
class RollerRacer:
    """Parameters of the roller racer, in SI units and radians; x is forward, and the frame is on the seat's axle.

    Centres of mass are on the axles. The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Drive of the joint: an imposed motion, whose torques follow (motion), or commanded torques (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    seat_kg: Annotated[float, Parameter("Mass of the seat.", "kg")] = 1.0
    seat_kg_m2: Annotated[float, Parameter("Inertia of the seat about z.", "kg m2")] = 0.1
    seat_m: Annotated[float, Parameter("Distance from the seat's axle forward to the joint.", "m")] = 0.4
    bar_kg: Annotated[float, Parameter("Mass of the handlebar.", "kg")] = 0.1
    bar_kg_m2: Annotated[float, Parameter("Inertia of the handlebar about z.", "kg m2")] = 0.02
    bar_m: Annotated[float, Parameter("Distance from the joint forward to the handlebar's axle.", "m")] = 0.1
    angle_rad: Annotated[float, Parameter("Limit of commanded angles.", "rad", le=3)] = 1.2
    torque_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m")] = 5.0
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the joints follow commanded angles (second order, critically damped).", "rad/s",
    )] = 50.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on


def describe(p: RollerRacer) -> Mechanism:
    """Return two bodies with one joint, bar, in front of the seat.

    Parameters
    ----------
    p : RollerRacer
        Parameters of the robot.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    bodies = [flat("seat", p.seat_kg, p.seat_kg_m2), flat("bar", p.bar_kg, p.bar_kg_m2, p.bar_m)]
    joints = [hinge("bar", "seat", "bar", p.seat_m, p.drive)]
    contacts: list[Contact] = [Plane("seat"), Axle("seat"), Axle("bar", at(p.bar_m))]
    return Mechanism("roller_racer", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2), contacts=contacts)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the roller racer plant (entry point 'roller_racer').

    Actuators: bar.angle (rad); bar.torque (N m) with drive=torque.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `RollerRacer`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: RollerRacer = build(RollerRacer, values, preset=preset, robot="roller_racer")
    return TreePlant(
        describe(p), step_of("roller_racer", dt, 1e-3), parameters=p, method=p.integrator, substeps=p.substeps,
        actuators=joint_actuators({"bar": p.angle_rad}, p.drive, p.bandwidth_rad_s, p.torque_n_m), summary=summary,
        medium="ground",
        locomotion=Locomotion("nonholonomic", GAITS["roller_racer"], travel=travel),
    )  # fmt: skip
