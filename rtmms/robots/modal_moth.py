"""The flapping-wing vehicle of Boyer et al. (2017): a thorax and two wings that twist, by modes of a floating frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rtmms.analysis.abilities import rise, whole_periods
from rtmms.errors import UnknownNameError
from rtmms.mechanism.joint_laws import GAIN, OFFSET, Actuator, Law
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import Remade, TreePlant
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, Modal, facing
from rtmms.model.elements import Blade
from rtmms.model.modal import sections_along, stiffness_of, twisting
from rtmms.model.solids import Ellipsoid, Placement, at
from rtmms.plant import Channel
from rtmms.robots.parameters import build, step_of
from rtmms.spatial import Array, rotation_z

FORWARD = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
"""Forward (n), left (-s) and up (a) in the frame of the description: s to the right, n forward, a up."""
ADDED = {"none": 0.0, "flat": 0.25}
SIDES = (("right", 0.0, 1.0), ("left", math.pi, -1.0))


@dataclass(frozen=True)
class ModalMoth:
    """Parameters. SI and radians. What the paper does not tell (docs/modal_moth.md) is marked *.

    thorax         'free' or 'fixed'
    added_mass     'none' (as in the paper's run: steady forces alone) or 'flat' (rho pi c^2 / 4)
    modes          of twist of each wing, sin((2 k - 1) pi X / 2 l); the paper's wing has one
    sections       Gauss points along a wing
    thorax_kg, wing_kg;  span_m l, chord_m c
    thorax_radius_m, thorax_height_m *   half-axes of the thorax;  hinge *  of the height, above its centre
    frequency_hz, flap_rad, feather_rad  flap = A cos omega t, feather = B sin omega t
    twist_rigidity_n_m2 *   G I of a wing;  damping_ratio *  of its modes
    pressure       where the air acts, in chords behind the leading edge
    air_density_kg_m3, gravity_m_s2
    bandwidth_rad_s      rad/s, how fast commanded offsets and gains are followed
    integrator, step_s   the method and its longest step: the plant takes as many equal ones as its dt needs
    """

    thorax: str = "free"
    added_mass: str = "none"
    modes: int = 1
    sections: int = 8
    thorax_kg: float = 1.5e-3
    wing_kg: float = 47e-6
    span_m: float = 48.5e-3
    chord_m: float = 18.3e-3
    thorax_radius_m: float = 5e-3
    thorax_height_m: float = 18e-3
    hinge: float = 0.5
    frequency_hz: float = 26.0
    flap_rad: float = 55.0 * math.pi / 180.0
    feather_rad: float = 35.0 * math.pi / 180.0
    twist_rigidity_n_m2: float = 3e-5
    damping_ratio: float = 0.02
    pressure: float = 0.25
    air_density_kg_m3: float = 1.2
    gravity_m_s2: float = 9.81
    bandwidth_rad_s: float = 60.0
    integrator: str = "rk4"
    step_s: float = 2.5e-4


CHOICES = {"thorax": ("free", "fixed"), "added_mass": tuple(ADDED), "integrator": tuple(METHODS)}
PRESETS: dict[str, dict[str, Any]] = {
    "fixed": {"thorax": "fixed"},
    "stiff": {"twist_rigidity_n_m2": 1e-3, "step_s": 5e-5},
}
_MAY_VANISH = {"flap_rad", "feather_rad", "damping_ratio", "pressure", "air_density_kg_m3", "gravity_m_s2", "hinge"}
_MOST: dict[str, float] = {
    **dict.fromkeys(("span_m", "chord_m", "thorax_radius_m", "thorax_height_m", "thorax_kg", "wing_kg"), 10.0),
    "modes": 12, "sections": 100, "hinge": 10.0, "frequency_hz": 1e4, "flap_rad": math.pi, "feather_rad": math.pi,
    "twist_rigidity_n_m2": 1e3, "damping_ratio": 10.0, "pressure": 1.0, "air_density_kg_m3": 2e4, "gravity_m_s2": 1e3,
    "bandwidth_rad_s": 1e6, "step_s": 1.0,
}  # fmt: skip


def wing(p: ModalMoth, name: str) -> Body:
    """A flat plate from the leading edge, x, back to -c z, that twists about x; each section keeps its chord."""
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
    """In the frame (s to the right, n forward, a up) at the thorax's centre. A wing flaps about a, then feathers about
    its leading edge; the left one's root is Rot(a, pi)."""
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
    """Flap A cos omega t, feather B sin omega t, so that the leading edge leads; mirrored on the left."""
    motion = np.zeros((model.n, 3))
    for side, _, sign in SIDES:
        motion[model.joint(f"{side}.flap"), 1] = sign * p.flap_rad
        motion[model.joint(f"{side}.feather"), 2] = sign * p.feather_rad
    return Law(motion, 2.0 * math.pi * p.frequency_hz, 0.0, bandwidth=p.bandwidth_rad_s)


def model_of(p: ModalMoth) -> Model:
    """Compiled, x of its base forward."""
    return compile_model(facing(describe(p), FORWARD))


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The vehicle as a plant (entry point 'modal_moth'). Parameters: see ModalMoth; presets: 'fixed', 'stiff'.

    Actuators: right.offset, left.offset (rad, added to the flap), right.gain, left.gain (its amplitude: A (1 + gain)),
    right.feather, left.feather (rad, added to the feathering), through a critically damped filter. Output tip_twist:
    rad, of the right and the left wing's tip about its leading edge.
    """
    if preset is not None and preset not in PRESETS:
        raise UnknownNameError("modal_moth preset", preset, PRESETS)
    p, step = _built({**PRESETS.get(preset or "", {}), **given}), step_of("modal_moth", dt, 1e-3)
    model = model_of(p)
    return TreePlant(
        model, step, stroke(p, model), _actuators(model), method=p.integrator,
        substeps=max(1, math.ceil(step / p.step_s * (1.0 - 1e-9))), nodes={"blade_nodes": 1},
        extra=((Channel("pitch", "rad"), _pitch), (Channel("tip_twist", "rad", (2,)), _tips)),
        trace_outputs=("position", "quaternion", "velocity", "power", "work", "pitch", "tip_twist"),
        trimming={"close": ("z", "vx", "vz", "wy", "pitch", "joints"), "unknown": "amplitude"}, parameters=p,
        settable=SETTABLE, remake=_remake, summary=_summary, medium="air",
    )  # fmt: skip


def _built(given: dict[str, Any]) -> ModalMoth:
    p: ModalMoth = build(ModalMoth, given, CHOICES, _MAY_VANISH, set(), _MOST, robot="modal_moth")
    return p


SETTABLE = (
    "twist_rigidity_n_m2", "damping_ratio", "pressure", "gravity_m_s2", "bandwidth_rad_s", "flap_rad", "feather_rad",
)  # fmt: skip
"""What `set` may change while it runs."""


def _remake(plant: TreePlant, given: Mapping[str, Any]) -> Remade:
    p = _built({**asdict(plant.parameters), **given})
    model = model_of(p)
    return Remade(p, model, stroke(p, model), plant.flow)


def _actuators(model: Model) -> tuple[Actuator, ...]:
    made = []
    for side, _, _ in SIDES:
        j, f = model.joint(f"{side}.flap"), model.joint(f"{side}.feather")
        made.append(Actuator(Channel(f"{side}.offset", "rad", lower=-0.5, upper=0.5), OFFSET, j))
        made.append(Actuator(Channel(f"{side}.gain", "", lower=-0.5, upper=0.5), GAIN, j))
        made.append(Actuator(Channel(f"{side}.feather", "rad", lower=-0.5, upper=0.5), OFFSET, f))
    return tuple(made)


def _pitch(plant: TreePlant) -> float:
    """rad about the right-hand axis, of the thorax: nose up."""
    w, _, y, _ = plant.vector[3:7]
    return 2.0 * math.atan2(-y, w)


def _tips(plant: TreePlant) -> Array:
    """(2,) rad: sum of the modes at X = l, where mode k is (-1)^(k - 1)."""
    model, p = plant.model, plant.parameters
    signs = np.array([(-1.0) ** k for k in range(p.modes)])
    first = [7 + model.joint(f"{side}.wing.twist1") for side, _, _ in SIDES]
    return np.array([signs @ plant.vector[k : k + p.modes] for k in first])


def _summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Means over the whole strokes that fit into the second half of the run; the largest twist of a tip."""
    if len(time) < 2:
        return {}
    start, end = whole_periods(plant, time)
    power = rise(time, trace["work"], start, end)
    return {
        "mean_power_w": power, "specific_power_w_kg": power / plant.model.mass,
        "mean_climb_m_s": rise(time, trace["position"][:, 2], start, end),
        "peak_twist_rad": float(np.max(np.abs(trace["tip_twist"][time > start]))),
    }  # fmt: skip
