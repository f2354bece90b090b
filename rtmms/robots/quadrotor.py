"""A quadrotor: one body, four rotors; of the size of the AscTec Hummingbird (docs/trees.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rtmms.errors import UnknownNameError
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.actuators import Rotor
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import Remade, TreePlant
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Mechanism
from rtmms.model.elements import Strip
from rtmms.model.solids import at
from rtmms.robots.parameters import build, step_of

CONTROLLER = "hover"


@dataclass(frozen=True)
class Quadrotor:
    """Parameters. Mass, arm and coefficients are about those of the robots of Michael and others (2010).

    mass_kg, ixx_kg_m2, iyy_kg_m2, izz_kg_m2    about the centre of mass
    arm_m                  from there to each rotor: front (+x), left (+y), back, right
    thrust_n_s2, drag_n_m_s2    k_t, k_d: thrust k_t w^2, drag torque k_d w^2 of a rotor at w rad/s
    motor_s                s, lag of a motor
    max_speed_rad_s        rad/s
    drag_area_m2           m2, drag coefficient times area, from any side
    air_density_kg_m3      kg/m3
    wind_x_m_s, wind_y_m_s, wind_z_m_s     m/s, a uniform wind, world frame
    gravity_m_s2           m/s2
    integrator, substeps   the method, its steps in a plant's step
    """

    mass_kg: float = 0.5
    ixx_kg_m2: float = 2.3e-3
    iyy_kg_m2: float = 2.3e-3
    izz_kg_m2: float = 4.0e-3
    arm_m: float = 0.17
    thrust_n_s2: float = 5.6e-6
    drag_n_m_s2: float = 1.4e-7
    motor_s: float = 0.05
    max_speed_rad_s: float = 800.0
    drag_area_m2: float = 0.01
    air_density_kg_m3: float = 1.2
    wind_x_m_s: float = 0.0
    wind_y_m_s: float = 0.0
    wind_z_m_s: float = 0.0
    gravity_m_s2: float = 9.81
    integrator: str = "rk4"
    substeps: int = 1

    @property
    def hover_rad_s(self) -> float:
        """Speed of each rotor at which the four carry the weight."""
        return math.sqrt(self.mass_kg * self.gravity_m_s2 / (4.0 * self.thrust_n_s2))


ROTORS = {"front": (1.0, 0.0, -1), "left": (0.0, 1.0, 1), "back": (-1.0, 0.0, -1), "right": (0.0, -1.0, 1)}
"""Where each stands in arms along x and y, and which way it turns: 1 counter-clockwise, seen from above."""
_LENGTH = 0.1


def describe(p: Quadrotor) -> Mechanism:
    """One body at its centre of mass: x forward, y left, z up."""
    d = 0.5 * p.air_density_kg_m3 * p.drag_area_m2 / _LENGTH
    body = Body(
        "hull",
        p.mass_kg,
        inertia=np.diag([p.ixx_kg_m2, p.iyy_kg_m2, p.izz_kg_m2]),
        elements=[Strip(_LENGTH, (d, d, d))],
    )
    return Mechanism("quadrotor", [body], gravity=(0.0, 0.0, -p.gravity_m_s2))


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The quadrotor as a plant (entry point 'quadrotor'). Parameters: see Quadrotor; no presets.

    Actuators: front.speed, left.speed, back.speed, right.speed, rad/s.
    """
    if preset is not None:
        raise UnknownNameError("quadrotor preset", preset, ())
    p = _checked(given)
    rotors = [
        Rotor(
            "hull", at(x * p.arm_m, y * p.arm_m), p.thrust_n_s2, p.drag_n_m_s2, spin, p.motor_s, p.max_speed_rad_s, name
        )
        for name, (x, y, spin) in ROTORS.items()
    ]
    return TreePlant(
        describe(p), step_of("quadrotor", dt, 2e-3), actuators=rotors, parameters=p, method=p.integrator,
        substeps=p.substeps, flow=Flow((p.wind_x_m_s, p.wind_y_m_s, p.wind_z_m_s)), nodes={"strip_nodes": 1},
        recent_outputs=("motor", "angular_velocity"), medium="air", settable=SETTABLE, remake=_remake,
    )  # fmt: skip


_WIND = ("wind_x_m_s", "wind_y_m_s", "wind_z_m_s")
SETTABLE = (*_WIND, "drag_area_m2", "gravity_m_s2")
"""Parameters that `set` may change while it runs."""


def _remake(plant: TreePlant, given: Mapping[str, Any]) -> Remade:
    """Return the parts of a plant with some parameters changed; all but the wind needs the model compiled anew."""
    p = _checked({**asdict(plant.parameters), **given})
    model = plant.model if set(_WIND).issuperset(given) else compile_model(describe(p))
    return Remade(p, model, plant.law, Flow((p.wind_x_m_s, p.wind_y_m_s, p.wind_z_m_s)))


def _checked(given: dict[str, Any]) -> Quadrotor:
    found: Quadrotor = build(
        Quadrotor, given, {"integrator": tuple(METHODS)},
        {"motor_s", "drag_area_m2", "air_density_kg_m3", "gravity_m_s2"}, set(_WIND),
    )  # fmt: skip
    return found
