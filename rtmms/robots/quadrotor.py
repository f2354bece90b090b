"""A quadrotor: one body, four rotors; of the size of the AscTec Hummingbird (docs/trees.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from rtmms.base.parameters import Parameter, build, in_model, settable
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.actuators import Rotor
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.model.compiled import State
from rtmms.model.compiler import compile_model
from rtmms.model.contacts import Floor
from rtmms.model.description import Body, Mechanism
from rtmms.model.elements import Strip
from rtmms.model.solids import at
from rtmms.robots.parameters import Integrator, Substeps, step_of

CONTROLLER = "hover"


@dataclass(frozen=True)
class Quadrotor:
    """Parameters of the quadrotor; the declaration of each field has its meaning, unit and range.

    Mass, arm and coefficients are approximately those of the robots of Michael and others (2010).
    """

    # fmt: off
    mass_kg: Annotated[float, Parameter("Mass of the robot.", "kg")] = 0.5
    ixx_kg_m2: Annotated[float, Parameter("Inertia about x through the centre of mass.", "kg m2")] = 2.3e-3
    iyy_kg_m2: Annotated[float, Parameter("Inertia about y through the centre of mass.", "kg m2")] = 2.3e-3
    izz_kg_m2: Annotated[float, Parameter("Inertia about z through the centre of mass.", "kg m2")] = 4.0e-3
    arm_m: Annotated[float, Parameter(
        "Distance of each rotor from the centre of mass: front (+x), left (+y), back, right.", "m",
    )] = 0.17
    thrust_n_s2: Annotated[float, Parameter(
        "Thrust coefficient k_t of a rotor: thrust k_t w^2 at w rad/s.", "N s2",
    )] = 5.6e-6
    drag_n_m_s2: Annotated[float, Parameter(
        "Drag coefficient k_d of a rotor: drag torque k_d w^2 at w rad/s.", "N m s2",
    )] = 1.4e-7
    motor_s: Annotated[float, Parameter("Time constant of a motor's lag.", "s", ge=0)] = 0.05
    max_speed_rad_s: Annotated[float, Parameter("Limit of a rotor's speed.", "rad/s")] = 800.0
    drag_area_m2: Annotated[float, Parameter(
        "Drag area, coefficient times area, along each body axis.", "m2", ge=0, live=True,
    )] = 0.01
    air_density_kg_m3: Annotated[float, Parameter("Density of the air.", "kg/m3", ge=0)] = 1.2
    wind_x_m_s: Annotated[float, Parameter(
        "Uniform wind along x, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    wind_y_m_s: Annotated[float, Parameter(
        "Uniform wind along y, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    wind_z_m_s: Annotated[float, Parameter(
        "Uniform wind along z, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    floor: Annotated[bool, Parameter(
        "Whether there is a floor at z = 0. At the start the robot stands on it by a foot below each rotor.",
    )] = False
    foot_m: Annotated[float, Parameter("Distance of the feet below the centre of mass, floor=true.", "m")] = 0.05
    floor_friction: Annotated[float, Parameter("Coefficient of friction of the feet on the floor.", ge=0)] = 0.6
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0, live=True)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    # fmt: on

    @property
    def hover_rad_s(self) -> float:
        """Speed of each rotor at which the four carry the weight, rad/s."""
        return math.sqrt(self.mass_kg * self.gravity_m_s2 / (4.0 * self.thrust_n_s2))


ROTORS = {"front": (1.0, 0.0, -1), "left": (0.0, 1.0, 1), "back": (-1.0, 0.0, -1), "right": (0.0, -1.0, 1)}
"""Place of each rotor in arms along x and y, and its sense of rotation: 1 counter-clockwise, seen from above."""
AIRFRAME = "quad_plus"
"""One rotor ahead, one behind, one at each side (rtmms.plant.PlantDescription)."""
_LENGTH = 0.1


def describe(p: Quadrotor) -> Mechanism:
    """Return one body at its centre of mass: x forward, y left, z up.

    Parameters
    ----------
    p : Quadrotor
        Parameters of the quadrotor.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    d = 0.5 * p.air_density_kg_m3 * p.drag_area_m2 / _LENGTH
    body = Body(
        "hull",
        p.mass_kg,
        inertia=np.diag([p.ixx_kg_m2, p.iyy_kg_m2, p.izz_kg_m2]),
        elements=[Strip(_LENGTH, (d, d, d))],
    )
    feet = [(x * p.arm_m, y * p.arm_m, -p.foot_m) for x, y, _ in ROTORS.values()]
    floor = [Floor("hull", feet, friction=p.floor_friction)] if p.floor else []
    return Mechanism("quadrotor", [body], gravity=(0.0, 0.0, -p.gravity_m_s2), contacts=floor)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the quadrotor plant (entry point 'quadrotor').

    Actuators: front.speed, left.speed, back.speed, right.speed, rad/s.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Quadrotor`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Quadrotor = build(Quadrotor, values, preset=preset)
    rotors = [
        Rotor(
            "hull", at(x * p.arm_m, y * p.arm_m), p.thrust_n_s2, p.drag_n_m_s2, spin, p.motor_s, p.max_speed_rad_s, name
        )
        for name, (x, y, spin) in ROTORS.items()
    ]
    return TreePlant(
        describe(p), step_of("quadrotor", dt, 2e-3), actuators=rotors, parameters=p, method=p.integrator,
        substeps=p.substeps, flow=Flow((p.wind_x_m_s, p.wind_y_m_s, p.wind_z_m_s)), nodes={"strip_nodes": 1},
        recent_outputs=("motor", "angular_velocity"), medium="air", airframe=AIRFRAME, settable=settable(Quadrotor),
        rebuild=_rebuild,
        initial=State(np.array([0.0, 0.0, p.foot_m]), np.array([1.0, 0, 0, 0]), np.zeros(0), np.zeros(6), np.zeros(0))
        if p.floor else None,
    )  # fmt: skip


def _rebuild(plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
    """Return the parts of a plant with some parameters changed."""
    p: Quadrotor = build(Quadrotor, {**asdict(plant.parameters), **values})
    model = compile_model(describe(p)) if in_model(Quadrotor, values) else plant.model
    return RebuiltParts(p, model, plant.law, Flow((p.wind_x_m_s, p.wind_y_m_s, p.wind_z_m_s)))
