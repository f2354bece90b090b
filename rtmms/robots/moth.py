"""The flapping-wing moth of Porez, Boyer and Belkhiri (2014): a thorax and two wings of twisting and bending blades."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np

from rtmms.analysis.chart import rise, whole_periods
from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.parameters import Parameter, build, in_model, settable
from rtmms.base.spatial import Array, rotation_z
from rtmms.base.terminal import print_text
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.joint_laws import GAIN, OFFSET, TORQUE, Actuator, Law
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.mechanism.running import state_of_vector
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, facing
from rtmms.model.elements import Blade
from rtmms.model.solids import Box, Ellipsoid, Placement
from rtmms.plant.protocol import Channel
from rtmms.robots.moth_orbits import ORBITS
from rtmms.robots.parameters import Integrator, step_of

ADDED = {"none": 0.0, "flat": 0.25, "paper": 1.0}
FORWARD = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
"""Forward (n), left (-s) and up (a) in the paper's frame F_0."""


@dataclass(frozen=True)
class Moth:
    """Parameters of the moth, in SI units and radians; the declaration of each field has its meaning, unit and range.

    The defaults are the paper's table I (with l = S / M).
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Drive of the strokes: an imposed motion (motion), or torques with a servo about the stroke (torque).",
        choices=("motion", "torque"),
    )] = "motion"
    thorax: Annotated[str, Parameter(
        "Whether the thorax moves (free) or is held (fixed).", choices=("free", "fixed"),
    )] = "free"
    added_mass: Annotated[str, Parameter(
        "Added mass of the wings. none; flat: rho pi c^2 / 4, a flat plate's; paper: rho pi c^2, as printed, four "
        "times that.",
        choices=tuple(ADDED),
    )] = "flat"
    start: Annotated[str, Parameter(
        "State at the start. hover: on the hovering orbit, with the amplitude it needs; rest: at rest at the stroke's "
        "end, with amplitude_rad.",
        choices=("hover", "rest"),
    )] = "hover"
    sections: Annotated[int, Parameter("Number M of sections of a wing.", le=100)] = 4
    span_m: Annotated[float, Parameter("Span S of a wing.", "m", le=10)] = 70e-3
    chord_m: Annotated[float, Parameter("Chord C of a wing.", "m", le=10)] = 31.5e-3
    thickness_m: Annotated[float, Parameter("Thickness e of a wing.", "m", le=10)] = 0.1e-3
    thorax_a_m: Annotated[float, Parameter("Half-axis a of the thorax along s, to the right.", "m", le=10)] = 8.5e-3
    thorax_b_m: Annotated[float, Parameter("Half-axis b of the thorax along n, forwards.", "m", le=10)] = 8.5e-3
    thorax_c_m: Annotated[float, Parameter("Half-axis c of the thorax along a, upwards.", "m", le=10)] = 28e-3
    hinge: Annotated[float, Parameter(
        "Height alpha of the hinges above the thorax's centre, as a share of its half-axis c.", ge=0, le=10,
    )] = 0.65
    thorax_density_kg_m3: Annotated[float, Parameter("Density of the thorax.", "kg/m3", le=30000)] = 800.0
    wing_density_kg_m3: Annotated[float, Parameter("Density of a wing.", "kg/m3", le=30000)] = 1400.0
    air_density_kg_m3: Annotated[float, Parameter("Density of the air.", "kg/m3", ge=0, le=20000)] = 1.22
    amplitude_rad: Annotated[float, Parameter(
        "Amplitude A of the stroke r1 = A cos omega t; with start=hover, the start of its search.",
        "rad", ge=0, le=math.pi,
    )] = 41.3 * math.pi / 180.0
    omega_rad_s: Annotated[float, Parameter(
        "Angular frequency omega of the stroke.", "rad/s", le=100000,
    )] = 50.0 * math.pi
    twist_root_n_m: Annotated[float, Parameter(
        "Stiffness k_t^1 against twist at the root; it changes linearly along the wing.", "N m/rad", le=1e6, live=True,
    )] = 3e-3
    twist_tip_n_m: Annotated[float, Parameter(
        "Stiffness k_t^2 against twist at the tip; it changes linearly along the wing.", "N m/rad", le=1e6, live=True,
    )] = 9e-3
    bend_root_n_m: Annotated[float, Parameter(
        "Stiffness k_b^1 against bending at the root; it changes linearly along the wing.",
        "N m/rad", le=1e6, live=True,
    )] = 36e-3
    bend_tip_n_m: Annotated[float, Parameter(
        "Stiffness k_b^2 against bending at the tip; it changes linearly along the wing.", "N m/rad", le=1e6, live=True,
    )] = 9e-3
    damping_n_m_s: Annotated[float, Parameter(
        "Damping mu of twist and bending.", "N m s/rad", ge=0, le=1000, live=True,
    )] = 1e-5
    pressure: Annotated[float, Parameter(
        "Place at which the air acts, in chords behind the leading edge.", ge=0, le=1, live=True,
    )] = 0.4
    kp_n_m: Annotated[float, Parameter(
        "Stiffness of the servo about the stroke, drive=torque.", "N m/rad", ge=0, le=1e6, live=True, in_model=False,
    )] = 0.5
    kd_n_m_s: Annotated[float, Parameter(
        "Damping of the servo about the stroke, drive=torque.", "N m s/rad", ge=0, le=1e6, live=True, in_model=False,
    )] = 4e-4
    rotor_kg_m2: Annotated[float, Parameter(
        "Inertia of each stroke's motor, drive=torque; the wing's root itself has no mass.", "kg m2", le=1000,
    )] = 1e-7
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the wings follow commanded offsets and gains (second order, critically damped).",
        "rad/s", le=1e6, live=True, in_model=False,
    )] = 60.0
    wind_x_m_s: Annotated[float, Parameter(
        "Uniform wind along x, world frame.", "m/s", signed=True, le=100, live=True, in_model=False,
    )] = 0.0
    wind_y_m_s: Annotated[float, Parameter(
        "Uniform wind along y, world frame.", "m/s", signed=True, le=100, live=True, in_model=False,
    )] = 0.0
    wind_z_m_s: Annotated[float, Parameter(
        "Uniform wind along z, world frame.", "m/s", signed=True, le=100, live=True, in_model=False,
    )] = 0.0
    gravity_m_s2: Annotated[float, Parameter(
        "Gravity, along -z of the world.", "m/s2", ge=0, le=1000, live=True,
    )] = 9.81
    integrator: Integrator = "rk4"
    step_s: Annotated[float, Parameter(
        "Longest step of the integration method; dt is divided into equal steps.", "s", le=1,
    )] = 1e-4
    nodes: Annotated[int, Parameter(
        "Gauss nodes of a blade.", le=1000, ge=2, why="with which path and work are right to 0.1 %",
    )] = 6
    # fmt: on


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"added_mass": "paper"},
    "fit": {"added_mass": "none", "twist_tip_n_m": 3e-3},
    "quasi-steady": {"added_mass": "none"},
}
HOVER = ("z", "roll", "pitch", "yaw", "vx", "vy", "vz", "wx", "wy", "wz", "joints")


def describe(p: Moth) -> Mechanism:
    """Return the mechanism in the paper's frame: F_0 = (s to the right, n forward, a up) at the thorax's centre.

    Joint 1 turns about a (stroke). The blade axes are x outwards along the leading edge, z from the trailing to the
    leading edge (up at rest), y normal. In each section twist (x) comes before bending (z) at the same point; the first
    section has no twist. The left wing's root is Rot(a, pi).

    Parameters
    ----------
    p : Moth
        Parameters of the moth.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    thorax = Body("thorax", solids=[Ellipsoid(p.thorax_a_m, p.thorax_b_m, p.thorax_c_m, p.thorax_density_kg_m3)])
    bodies, joints = [thorax], []
    for side, turn in (("right", 0.0), ("left", math.pi)):
        parent = "thorax"
        placement = Placement(rotation_z(turn), np.array([0.0, 0.0, p.hinge * p.thorax_c_m]))
        for k in range(p.sections):
            x = k / p.sections  # X / S at the section's root
            blade = f"{side}.blade{k + 1}"
            if k == 0:
                root = Joint(
                    f"{side}.stroke",
                    parent,
                    f"{side}.root",
                    placement=placement,
                    drive=p.drive,
                    rotor=p.rotor_kg_m2 if p.drive == "torque" else 0.0,
                )
                bodies.append(Body(f"{side}.root"))
            else:
                stiffness = p.twist_root_n_m + x * (p.twist_tip_n_m - p.twist_root_n_m)
                root = Joint(
                    f"{side}.twist{k + 1}", parent, f"{side}.root{k + 1}", placement=placement, axis=(1.0, 0.0, 0.0),
                    stiffness=stiffness, damping=p.damping_n_m_s,
                )  # fmt: skip
                bodies.append(Body(f"{side}.root{k + 1}"))
            bend = p.bend_root_n_m + x * (p.bend_tip_n_m - p.bend_root_n_m)
            bending = Joint(f"{side}.bend{k + 1}", root.child, blade, stiffness=bend, damping=p.damping_n_m_s)
            bodies.append(_blade(p, blade, p.chord_m * math.sqrt(1.0 - x * x)))
            joints += [root, bending]
            parent, placement = blade, Placement(np.eye(3), np.array([p.span_m / p.sections, 0.0, 0.0]))
    base = "free" if p.thorax == "free" else "fixed"
    return Mechanism("moth", bodies, joints, base=base, gravity=(0.0, 0.0, -p.gravity_m_s2))


def _blade(p: Moth, name: str, chord: float) -> Body:
    length = p.span_m / p.sections
    middle = Placement(np.eye(3), np.array([length / 2.0, 0.0, -chord / 2.0]))
    box = Box(length, p.thickness_m, chord, p.wing_density_kg_m3, middle)
    element = Blade(length, chord, p.air_density_kg_m3, p.pressure, ADDED[p.added_mass])
    return Body(name, solids=[box], elements=[element])


def stroke(p: Moth, model: Model) -> Law:
    """Return the law r1 = A cos omega t on the right wing, and its negative on the left.

    Parameters
    ----------
    p : Moth
        Parameters of the moth.
    model : Model
        Compiled model, for the joints' indices.

    Returns
    -------
    Law
        Motion of the joints, and the servo about the stroke.
    """
    motion = np.zeros((model.n, 3))
    motion[model.joint("right.stroke"), 1] = p.amplitude_rad
    motion[model.joint("left.stroke"), 1] = -p.amplitude_rad
    held = np.zeros(model.n)
    held[[model.joint("right.stroke"), model.joint("left.stroke")]] = 1.0
    return Law(motion, p.omega_rad_s, 0.0, p.kp_n_m * held, p.kd_n_m_s * held, p.bandwidth_rad_s)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the moth plant (entry point 'moth').

    Actuators, through a critically damped filter: right.offset, left.offset (rad, added to the stroke; positive on both
    moves both wings the same way about a) and right.gain, left.gain (the stroke's amplitude is A (1 + gain)). With
    drive=torque also right.torque, left.torque (N m, added to a servo about the stroke). In the plant's body frame x is
    forward, y left, z up; output pitch > 0 is nose up.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'paper', 'fit' or 'quasi-steady'.
    **values : Any
        Fields of `Moth`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p, dt = _checked(preset, values), step_of("moth", dt, 1e-3)
    if p.start == "rest":
        return _plant(p, dt)
    vector, factor = hover(p)
    return _plant(replace(p, amplitude_rad=p.amplitude_rad * factor), dt, to_our_axes(vector, 4 * p.sections))


def in_paper_frame(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the same plant in the paper's frame, for comparison with its figures; start=rest by default.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'paper', 'fit' or 'quasi-steady'.
    **values : Any
        Fields of `Moth`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p, dt = _checked(preset, {"start": "rest", **values}), step_of("moth", dt, 1e-3)
    if p.start == "rest":
        return _plant(p, dt, paper=True)
    vector, factor = hover(p)
    return _plant(replace(p, amplitude_rad=p.amplitude_rad * factor), dt, vector, paper=True)


def _checked(preset: str | None, values: dict[str, Any]) -> Moth:
    if "start" not in values and ("amplitude_rad" in values or values.get("thorax") == "fixed"):
        values["start"] = "rest"
    p: Moth = build(Moth, values, preset=preset, presets=PRESETS)
    if p.start == "hover" and p.thorax == "fixed":
        raise ModelError("moth: start=hover needs thorax=free, got thorax=fixed")
    return p


def model_of(p: Moth, paper: bool = False) -> Model:
    """Return the compiled model.

    Parameters
    ----------
    p : Moth
        Parameters of the moth.
    paper : bool, default False
        Whether the base has the paper's F_0; otherwise its x points forward.

    Returns
    -------
    Model
        The model.
    """
    mechanism = describe(p)
    return compile_model(mechanism if paper else facing(mechanism, FORWARD))


def _plant(p: Moth, dt: float, initial: Array | None = None, paper: bool = False) -> TreePlant:
    model = model_of(p, paper)
    return TreePlant(
        model, dt, stroke(p, model), _actuators(p, model), flow=_wind(p), method=p.integrator,
        substeps=max(1, math.ceil(dt / p.step_s * (1.0 - 1e-9))),
        initial=None if initial is None else state_of_vector(initial, model.n), nodes={"blade_nodes": p.nodes},
        extra=() if paper else ((Channel("pitch", "rad"), pitch),),
        trace_outputs=("position", "quaternion", "velocity", "power", "work", *(() if paper else ("pitch",))),
        trim_options={"close": HOVER, "unknown": "amplitude"}, parameters=p, settable=settable(Moth), rebuild=_rebuild,
        summary=_summary, medium="air",
    )  # fmt: skip


def _rebuild(plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
    """Return the parts of a plant with some parameters changed; the wings need a new compiled model (20 ms)."""
    p: Moth = build(Moth, {**asdict(plant.parameters), **values})
    paper = plant.model.body_names[0] == "thorax"
    model = model_of(p, paper) if in_model(Moth, values) else plant.model
    return RebuiltParts(p, model, stroke(p, model), _wind(p))


def _wind(p: Moth) -> Flow:
    return Flow((p.wind_x_m_s, p.wind_y_m_s, p.wind_z_m_s))


def hover(p: Moth) -> tuple[Array, float]:
    """Return a state on the hovering orbit at t = 0, and the factor on the amplitude that it needs.

    The orbit is stored for the table's parameters; for any others shooting finds it in seconds.

    Parameters
    ----------
    p : Moth
        Parameters of the moth.

    Returns
    -------
    (array, float)
        State vector in the paper's frame, and the factor.

    Raises
    ------
    ModelError
        There is no hovering orbit with these parameters.
    """
    physics = replace(p, added_mass="flat", start="hover", drive="motion", **_NOT_PHYSICS)
    key = {"flat": "flat", "none": "none", "paper": "paper"}[p.added_mass]
    if physics == Moth(**_NOT_PHYSICS):
        return np.array(ORBITS[key][1]), ORBITS[key][0]
    if p.added_mass == "none" and physics == Moth(twist_tip_n_m=3e-3, **_NOT_PHYSICS):
        return np.array(ORBITS["fit"][1]), ORBITS["fit"][0]
    from rtmms.analysis.trim import trim

    period = 2.0 * math.pi / p.omega_rad_s
    calm = replace(p, wind_x_m_s=0.0, wind_y_m_s=0.0, wind_z_m_s=0.0)
    still = replace(calm, start="rest", drive="motion", integrator="rk4")
    print_text("rtmms: searching for the moth's hovering orbit with these parameters; this takes seconds", err=True)
    try:
        result = trim(_plant(still, period / math.ceil(period / 1e-3), paper=True), HOVER, unknown="amplitude")
    except (ModelError, DivergedError) as fault:
        raise ModelError(f"moth: no hovering orbit with these parameters: {fault}; use start=rest") from None
    return symmetric(result.vector, still.sections), result.amplitude


def to_our_axes(vector: Array, n: int) -> Array:
    """Return a state vector of the paper's world and frame F_0 in ours, with x forward in both.

    Parameters
    ----------
    vector : (13 + 2 n,) array
        State vector in the paper's frame.
    n : int
        Number of coordinates.

    Returns
    -------
    (13 + 2 n,) array
        State vector.
    """
    turned = vector.copy()
    for start in (0, 4, 7 + n, 10 + n):  # position, the quaternion's vector, velocity, angular velocity
        turned[start : start + 3] = FORWARD.T @ vector[start : start + 3]
    return turned


def symmetric(vector: Array, sections: int) -> Array:
    """Return the nearest state with mirror symmetry, in the paper's frame.

    Yaw is neutral, so that shooting leaves it at a random value.

    Parameters
    ----------
    vector : (13 + 2 n,) array
        State vector in the paper's frame.
    sections : int
        Sections of a wing.

    Returns
    -------
    (13 + 2 n,) array
        State vector.
    """
    n, wing = 4 * sections, 2 * sections
    mirror = vector.copy()
    mirror[[0, 5, 6, 7 + n, 11 + n, 12 + n]] *= -1.0  # x, the quaternion's y and z, V_x, W_y, W_z
    for start in (7, 13 + n):
        right, left = vector[start : start + wing], vector[start + wing : start + n]
        mirror[start : start + wing], mirror[start + wing : start + n] = -left, -right
    mean: Array = 0.5 * (vector + mirror)
    mean[3:7] /= np.linalg.norm(mean[3:7])
    return mean


_NOT_PHYSICS: dict[str, Any] = {
    name: getattr(Moth(), name)
    for name in (
        "kp_n_m",
        "kd_n_m_s",
        "rotor_kg_m2",
        "bandwidth_rad_s",
        "integrator",
        "step_s",
        "nodes",
        "wind_x_m_s",
        "wind_y_m_s",
        "wind_z_m_s",
    )
}


def _actuators(p: Moth, model: Model) -> tuple[Actuator, ...]:
    built = []
    for side in ("right", "left"):
        j = model.joint(f"{side}.stroke")
        built.append(Actuator(Channel(f"{side}.offset", "rad", lower=-0.5, upper=0.5), OFFSET, j))
        built.append(Actuator(Channel(f"{side}.gain", "", lower=-0.5, upper=0.5), GAIN, j))
        if p.drive == "torque":
            built.append(Actuator(Channel(f"{side}.torque", "N m", lower=-0.05, upper=0.05), TORQUE, j))
    return tuple(built)


def pitch(plant: TreePlant) -> float:
    """Return the angle about s, the right-hand axis of the thorax, for a motion in the plane of symmetry.

    Parameters
    ----------
    plant : TreePlant
        The moth.

    Returns
    -------
    float
        rad, positive nose up.
    """
    w, _, y, _ = plant.vector[3:7]
    return 2.0 * math.atan2(-y, w)


def _summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Return means over the whole strokes that fit into the second half of the run."""
    if len(time) < 2:
        return {}
    # rises, not means of samples: a run keeps four samples of a stroke
    start, end = whole_periods(plant, time)
    power = rise(time, trace["work"], start, end)
    return {
        "mean_power_w": power,
        "specific_power_w_kg": power / plant.model.mass,
        "mean_climb_m_s": rise(time, trace["position"][:, 2], start, end),
    }
