"""The flapping-wing vehicle of Boyer et al. (2017): a thorax and two wings that twist, by modes of a floating frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from rtmms.analysis.chart import rise, whole_periods
from rtmms.base.parameters import Parameter, build, settable
from rtmms.base.spatial import Array, rotation_z
from rtmms.mechanism.joint_laws import GAIN, OFFSET, Actuator, Law
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, Modal, facing
from rtmms.model.elements import Blade
from rtmms.model.modal import sections_along, stiffness_of, twisting
from rtmms.model.solids import Ellipsoid, Placement, at
from rtmms.plant.protocol import Channel
from rtmms.robots.moth import pitch
from rtmms.robots.parameters import Integrator, step_of

FORWARD = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
"""Forward (n), left (-s) and up (a) in the frame of the description: s to the right, n forward, a up."""
ADDED = {"none": 0.0, "flat": 0.25}
SIDES = (("right", 0.0, 1.0), ("left", math.pi, -1.0))


@dataclass(frozen=True)
class ModalMoth:
    """Parameters of the vehicle, in SI units and radians.

    The declaration of each field has its meaning, unit and range, and states which values are not in the paper
    (docs/modal_moth.md).
    """

    # fmt: off
    thorax: Annotated[str, Parameter(
        "Whether the thorax moves (free) or is held (fixed).", choices=("free", "fixed"),
    )] = "free"
    added_mass: Annotated[str, Parameter(
        "Added mass of the wings: none, as in the paper's run (steady forces alone), or flat (rho pi c^2 / 4).",
        choices=tuple(ADDED),
    )] = "none"
    modes: Annotated[int, Parameter(
        "Number of twist modes of each wing, sin((2 k - 1) pi X / 2 l); the paper's wing has one.", le=12,
    )] = 1
    sections: Annotated[int, Parameter("Number of Gauss points along a wing.", le=100)] = 8
    thorax_kg: Annotated[float, Parameter("Mass of the thorax.", "kg", le=10)] = 1.5e-3
    wing_kg: Annotated[float, Parameter("Mass of a wing.", "kg", le=10)] = 47e-6
    span_m: Annotated[float, Parameter("Span l of a wing.", "m", le=10)] = 48.5e-3
    chord_m: Annotated[float, Parameter("Chord c of a wing.", "m", le=10)] = 18.3e-3
    thorax_radius_m: Annotated[float, Parameter(
        "Half-axes of the thorax to the front and to the sides; not in the paper.", "m", le=10,
    )] = 5e-3
    thorax_height_m: Annotated[float, Parameter(
        "Half-axis of the thorax upwards; not in the paper.", "m", le=10,
    )] = 18e-3
    hinge: Annotated[float, Parameter(
        "Height of the hinges above the thorax's centre, as a share of thorax_height_m; not in the paper.", ge=0, le=10,
    )] = 0.5
    frequency_hz: Annotated[float, Parameter("Frequency omega / 2 pi of the strokes.", "Hz", le=10000)] = 26.0
    flap_rad: Annotated[float, Parameter(
        "Amplitude A of the flapping A cos omega t.", "rad", ge=0, le=math.pi, live=True,
    )] = 55.0 * math.pi / 180.0
    feather_rad: Annotated[float, Parameter(
        "Amplitude B of the feathering B sin omega t.", "rad", ge=0, le=math.pi, live=True,
    )] = 35.0 * math.pi / 180.0
    twist_rigidity_n_m2: Annotated[float, Parameter(
        "Torsional rigidity G I of a wing; not in the paper.", "N m2", le=1000, live=True,
    )] = 3e-5
    damping_ratio: Annotated[float, Parameter(
        "Damping ratio of a wing's modes; not in the paper.", ge=0, le=10, live=True,
    )] = 0.02
    pressure: Annotated[float, Parameter(
        "Place at which the air acts, in chords behind the leading edge.", ge=0, le=1, live=True,
    )] = 0.25
    air_density_kg_m3: Annotated[float, Parameter("Density of the air.", "kg/m3", ge=0, le=20000)] = 1.2
    gravity_m_s2: Annotated[float, Parameter(
        "Gravity, along -z of the world.", "m/s2", ge=0, le=1000, live=True,
    )] = 9.81
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the wings follow commanded offsets and gains (second order, critically damped).",
        "rad/s", le=1e6, live=True,
    )] = 60.0
    integrator: Integrator = "rk4"
    step_s: Annotated[float, Parameter(
        "Longest step of the integration method; dt is divided into equal steps.", "s", le=1,
    )] = 2.5e-4
    # fmt: on


PRESETS: dict[str, dict[str, Any]] = {
    "fixed": {"thorax": "fixed"},
    "stiff": {"twist_rigidity_n_m2": 1e-3, "step_s": 5e-5},
}


def wing(p: ModalMoth, name: str) -> Body:
    """Return a flat plate from the leading edge, x, back to -c z, that twists about x; each section keeps its chord.

    Parameters
    ----------
    p : ModalMoth
        Parameters of the vehicle.
    name : str
        Name of the body.

    Returns
    -------
    Body
        Modal body with blades.
    """
    waves = [(2 * k + 1) * math.pi / (2.0 * p.span_m) for k in range(p.modes)]
    shapes = {f"twist{k + 1}": twisting(_sine(wave)) for k, wave in enumerate(waves)}
    slopes = [_cosine(wave) for wave in waves]

    def section(title: str, x: float, share: float) -> Body:
        m, c = p.wing_kg * share / p.span_m, p.chord_m
        blade = Blade(share, c, p.air_density_kg_m3, p.pressure, ADDED[p.added_mass], at(-0.5 * share))
        inertia = m * c * c / 12.0 * np.diag([1.0, 1.0, 0.0])
        return Body.about_centre(title, m, np.array([0.0, 0.0, -0.5 * c]), inertia, elements=[blade])

    stiffness = np.diag(stiffness_of(slopes, lambda x: p.twist_rigidity_n_m2, p.span_m))
    mass = p.wing_kg * p.chord_m**2 / 3.0 / 2.0  # int of the sections' inertia about x times sin^2
    damping = 2.0 * p.damping_ratio * np.sqrt(stiffness * mass)
    pieces = sections_along(name, p.span_m, p.sections, section, shapes)
    return Body(name, modal=Modal(list(shapes), stiffness, pieces, damping))


def _sine(wave: float) -> Any:
    return lambda x: math.sin(wave * x)


def _cosine(wave: float) -> Any:
    return lambda x: wave * math.cos(wave * x)


def describe(p: ModalMoth) -> Mechanism:
    """Return the mechanism in the frame (s to the right, n forward, a up) at the thorax's centre.

    A wing flaps about a, then feathers about its leading edge; the left wing's root is Rot(a, pi).

    Parameters
    ----------
    p : ModalMoth
        Parameters of the vehicle.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    r, h = p.thorax_radius_m, p.thorax_height_m
    volume = 4.0 / 3.0 * math.pi * r * r * h
    bodies = [Body("thorax", solids=[Ellipsoid(r, r, h, p.thorax_kg / volume)])]
    joints = []
    for side, turn, _ in SIDES:
        root = Placement(rotation_z(turn), np.array([0.0, 0.0, p.hinge * h]))
        bodies += [Body(f"{side}.root"), wing(p, f"{side}.wing")]
        joints += [
            Joint(f"{side}.flap", "thorax", f"{side}.root", placement=root, drive="motion"),
            Joint(f"{side}.feather", f"{side}.root", f"{side}.wing", axis=(1.0, 0.0, 0.0), drive="motion"),
        ]
    base = "free" if p.thorax == "free" else "fixed"
    return Mechanism("modal_moth", bodies, joints, base=base, gravity=(0.0, 0.0, -p.gravity_m_s2))


def stroke(p: ModalMoth, model: Model) -> Law:
    """Return the law of flap A cos omega t and feather B sin omega t, mirrored on the left.

    The signs are such that the leading edge leads.

    Parameters
    ----------
    p : ModalMoth
        Parameters of the vehicle.
    model : Model
        Compiled model, for the joints' indices.

    Returns
    -------
    Law
        Motion of the joints.
    """
    motion = np.zeros((model.n, 3))
    for side, _, sign in SIDES:
        motion[model.joint(f"{side}.flap"), 1] = sign * p.flap_rad
        motion[model.joint(f"{side}.feather"), 2] = sign * p.feather_rad
    return Law(motion, 2.0 * math.pi * p.frequency_hz, 0.0, bandwidth=p.bandwidth_rad_s)


def model_of(p: ModalMoth) -> Model:
    """Return the compiled model, with x of its base forward.

    Parameters
    ----------
    p : ModalMoth
        Parameters of the vehicle.

    Returns
    -------
    Model
        The model.
    """
    return compile_model(facing(describe(p), FORWARD))


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the modal moth plant (entry point 'modal_moth').

    Actuators, through a critically damped filter: right.offset, left.offset (rad, added to the flap), right.gain,
    left.gain (its amplitude is A (1 + gain)), right.feather, left.feather (rad, added to the feathering). The output
    tip_twist is the angle, rad, of the right and the left wing's tip about its leading edge.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'fixed' or 'stiff'.
    **values : Any
        Fields of `ModalMoth`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p: ModalMoth = build(ModalMoth, values, robot="modal_moth", preset=preset, presets=PRESETS)
    step = step_of("modal_moth", dt, 1e-3)
    model = model_of(p)
    return TreePlant(
        model, step, stroke(p, model), _actuators(model), method=p.integrator,
        substeps=max(1, math.ceil(step / p.step_s * (1.0 - 1e-9))), nodes={"blade_nodes": 1},
        extra=((Channel("pitch", "rad"), pitch), (Channel("tip_twist", "rad", (2,)), _tips)),
        trace_outputs=("position", "quaternion", "velocity", "power", "work", "pitch", "tip_twist"),
        trim_options={"close": ("z", "vx", "vz", "wy", "pitch", "joints"), "unknown": "amplitude"}, parameters=p,
        settable=settable(ModalMoth), rebuild=_rebuild, summary=_summary, medium="air",
    )  # fmt: skip


def _rebuild(plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
    p: ModalMoth = build(ModalMoth, {**asdict(plant.parameters), **values}, robot="modal_moth")
    model = model_of(p)
    return RebuiltParts(p, model, stroke(p, model), plant.flow)


def _actuators(model: Model) -> tuple[Actuator, ...]:
    built = []
    for side, _, _ in SIDES:
        j, f = model.joint(f"{side}.flap"), model.joint(f"{side}.feather")
        built.append(Actuator(Channel(f"{side}.offset", "rad", lower=-0.5, upper=0.5), OFFSET, j))
        built.append(Actuator(Channel(f"{side}.gain", "", lower=-0.5, upper=0.5), GAIN, j))
        built.append(Actuator(Channel(f"{side}.feather", "rad", lower=-0.5, upper=0.5), OFFSET, f))
    return tuple(built)


def _tips(plant: TreePlant) -> Array:
    """Return the sum of the modes at X = l of each wing, (2,), rad; mode k has the value (-1)^(k - 1) there."""
    model, p = plant.model, plant.parameters
    signs = np.array([(-1.0) ** k for k in range(p.modes)])
    first = [7 + model.joint(f"{side}.wing.twist1") for side, _, _ in SIDES]
    return np.array([signs @ plant.vector[k : k + p.modes] for k in first])


def _summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Return means over the whole strokes in the second half of the run, and the largest twist of a tip."""
    if len(time) < 2:
        return {}
    start, end = whole_periods(plant, time)
    power = rise(time, trace["work"], start, end)
    return {
        "mean_power_w": power, "specific_power_w_kg": power / plant.model.mass,
        "mean_climb_m_s": rise(time, trace["position"][:, 2], start, end),
        "peak_twist_rad": float(np.max(np.abs(trace["tip_twist"][time > start]))),
    }  # fmt: skip
