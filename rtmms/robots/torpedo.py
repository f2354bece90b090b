"""A torpedo-shaped vehicle: a slender hull, one propeller, four fins; of the size of a REMUS (docs/trees.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from rtmms.base.parameters import Parameter, build, in_model, settable
from rtmms.base.spatial import Array
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.actuators import JointMotion, Thruster, imposing
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.elements import Blade, Strip
from rtmms.model.solids import EllipticCylinder, Placement, at, inertia_of
from rtmms.robots.parameters import START_DEPTH_M, Integrator, StartDepth, Substeps, step_of


@dataclass(frozen=True)
class Torpedo:
    """Parameters of the torpedo; the declaration of each field has its meaning, unit and range.

    Lengths, masses and the propeller are approximately those of the REMUS of Prestero (2001).
    """

    # fmt: off
    length_m: Annotated[float, Parameter("Length of the hull, which floats: it weighs what it displaces.", "m")] = 1.3
    radius_m: Annotated[float, Parameter("Radius of the hull.", "m")] = 0.095
    weight_below_m: Annotated[float, Parameter(
        "Distance of the centre of mass below the centre of buoyancy, which rights the hull.", "m", ge=0,
    )] = 0.02
    axial_drag_kg_m: Annotated[float, Parameter(
        "Quadratic damping X along x: a force X u times the size of u, against u.", "kg/m", ge=0, live=True,
    )] = 1.6
    cross_drag: Annotated[float, Parameter("Coefficient of the drag across the hull.", ge=0, live=True)] = 1.1
    axial_added_kg: Annotated[float, Parameter("Added mass along the hull.", "kg", ge=0)] = 0.9
    fin_span_m: Annotated[float, Parameter("Span of each fin.", "m")] = 0.15
    fin_chord_m: Annotated[float, Parameter("Chord of each fin.", "m")] = 0.1
    fin_behind_m: Annotated[float, Parameter(
        "Distance of each fin's leading edge behind the hull's middle.", "m",
    )] = 0.5
    fin_limit_rad: Annotated[float, Parameter("Limit of a fin's angle.", "rad")] = 0.35
    fin_bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the fins follow commanded angles (second order, critically damped).", "rad/s",
    )] = 20.0
    propeller_n_s2: Annotated[float, Parameter(
        "Thrust coefficient k of the propeller: thrust k n times the size of n, at n rad/s.", "N s2",
    )] = 1.6e-4
    propeller_moment_m: Annotated[float, Parameter(
        "Moment of the propeller about x per newton of thrust.", "m", signed=True,
    )] = -0.14
    propeller_s: Annotated[float, Parameter("Time constant of the propeller's lag.", "s", ge=0)] = 0.1
    propeller_limit_rad_s: Annotated[float, Parameter("Limit of the propeller's speed.", "rad/s")] = 200.0
    water_density_kg_m3: Annotated[float, Parameter("Density of the water.", "kg/m3")] = 1000.0
    current_x_m_s: Annotated[float, Parameter(
        "Uniform current along x, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    current_y_m_s: Annotated[float, Parameter(
        "Uniform current along y, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    current_z_m_s: Annotated[float, Parameter(
        "Uniform current along z, world frame.", "m/s", signed=True, live=True, in_model=False,
    )] = 0.0
    gravity_m_s2: Annotated[float, Parameter("Gravity, along -z of the world.", "m/s2", ge=0, live=True)] = 9.81
    integrator: Integrator = "rk4"
    substeps: Substeps = 1
    start_depth_m: StartDepth = START_DEPTH_M
    # fmt: on

    @property
    def mass_kg(self) -> float:
        """Mass of the displaced water, which is that of the hull, kg."""
        return self.water_density_kg_m3 * math.pi * self.radius_m**2 * self.length_m


FINS = {"top": 0.0, "left": 90.0, "bottom": 180.0, "right": 270.0}
"""Direction of each fin: degrees about x from z, to the left."""


def describe(p: Torpedo) -> Mechanism:
    """Return the hull at its middle, x forward, y left, z up, with four fins.

    A fin turns about z (top, bottom) or y (left, right).

    Parameters
    ----------
    p : Torpedo
        Parameters of the torpedo.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    m, r = p.mass_kg, p.radius_m
    along = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # own z -> x
    low = np.array([0.0, 0.0, -p.weight_below_m])
    inertia = inertia_of(EllipticCylinder(r, r, p.length_m, p.water_density_kg_m3, Placement(along, low)))
    per_metre = p.water_density_kg_m3 * math.pi * r * r
    across = p.water_density_kg_m3 * p.cross_drag * r
    skin = Strip(
        p.length_m, (p.axial_drag_kg_m / p.length_m, across, across), added=(0.0, per_metre, per_metre),
        displaced=m / p.length_m,
    )  # fmt: skip
    hull = Body(
        "hull",
        m,
        m * low,
        inertia[3:, 3:],
        added=np.diag([p.axial_added_kg, 0, 0, 0, 0, 0]),
        displaced=m,
        elements=[skin],
    )
    bodies, joints = [hull], []
    for name, angle in FINS.items():
        blade = Blade(p.fin_span_m, p.fin_chord_m, p.water_density_kg_m3, 0.25, placement=_fin(p, math.radians(angle)))
        bodies.append(Body(f"fin.{name}", elements=[blade]))
        axis = (0.0, 0.0, 1.0) if name in ("top", "bottom") else (0.0, 1.0, 0.0)
        joints.append(Joint(f"fin.{name}", "hull", f"fin.{name}", placement=at(-p.fin_behind_m), axis=axis))
    return Mechanism("torpedo", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2))


def _fin(p: Torpedo, angle: float) -> Placement:
    """Return the placement of a blade: x outwards, z forward, y normal, at its quarter chord, where lift acts."""
    out: Array = np.array([0.0, math.sin(angle), math.cos(angle)])
    forward = np.array([1.0, 0.0, 0.0])
    axes = np.column_stack([out, np.cross(forward, out), forward])
    return Placement(axes, p.radius_m * out + 0.25 * p.fin_chord_m * forward)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the torpedo plant (entry point 'torpedo').

    Actuators: propeller.command (rad/s), fin.top.angle, fin.left.angle, fin.bottom.angle, fin.right.angle (rad).

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        Not supported by this robot: None.
    **values : Any
        Fields of `Torpedo`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: Torpedo = build(Torpedo, values, preset=preset)
    return TreePlant(
        describe(p), step_of("torpedo", dt, 5e-3), actuators=_actuators(p), parameters=p, method=p.integrator,
        substeps=p.substeps, flow=Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)),
        recent_outputs=("joint_position", "angular_velocity"), medium="water", half_span_m=p.radius_m + p.fin_span_m,
        density=p.water_density_kg_m3, settable=settable(Torpedo), rebuild=_rebuild,
    )  # fmt: skip


def _rebuild(plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
    """Return the parts of a plant with some parameters changed."""
    p: Torpedo = build(Torpedo, {**asdict(plant.parameters), **values})
    changed = in_model(Torpedo, values)
    model = compile_model(imposing(describe(p), _actuators(p))) if changed else plant.model
    return RebuiltParts(p, model, plant.law, Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)))


def _actuators(p: Torpedo) -> list[Thruster | JointMotion]:
    maximum, turn = p.propeller_limit_rad_s, p.fin_limit_rad
    propeller = Thruster(
        "hull", at(-0.5 * p.length_m), p.propeller_n_s2, moment=p.propeller_moment_m, time_constant=p.propeller_s,
        lower=-maximum, upper=maximum, unit="rad/s", name="propeller",
    )  # fmt: skip
    fins = [JointMotion(f"fin.{name}", -turn, turn, p.fin_bandwidth_rad_s) for name in FINS]
    return [propeller, *fins]
