"""The dead fish of Boyer et al. (2017): a rigid head and a passive tail, elongated-body theory, a von Karman street."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from rtmms.errors import ModelError, UnknownNameError
from rtmms.fluids.ambient import Flow
from rtmms.fluids.flow_grid import Grid
from rtmms.fluids.vortex_row import Street
from rtmms.mechanism.actuators import JointTorque
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import Remade, TreePlant
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, facing
from rtmms.model.elements import Tether
from rtmms.model.elongated import elongated_body
from rtmms.model.solids import at
from rtmms.robots.parameters import build, step_of
from rtmms.spatial import Array
from rtmms.trust import NamesFile

FORWARD = np.diag([-1.0, -1.0, 1.0])
"""Forward, left and up in the frame of the sections, whose x points from nose to tail."""
SETTLED_S = 3.0
"""From when on the drift is taken."""


@dataclass(frozen=True)
class Fish:
    """Parameters. SI and radians. The published ones are not to be had: these are docs/fish.md's.

    flow           'street', 'uniform', 'accelerating', 'shear', 'still' or 'file'; the stream runs along +x and the
                   fish looks against it
    flow_file      of 'file': .npz or .nc, see rtmms.fluids.flow_grid
    tether         'lateral' (a spring across the stream at the nose), 'held' (along it too) or 'none'
    gait           'none' (passive) or 'wave' (a travelling wave of the tail's rest angles, through kp and kd)
    length_m, head (of the length), joints (of the tail)
    width, height  factors on the section's half-axes a (across) and b (up)
    density_kg_m3, water_density_kg_m3
    flexural_stiffness_n_m2    EI of the tail, the same all along;  kelvin_voigt_s  damping over stiffness
    friction, cross_drag       coefficients of axial and lateral drag;  wake  0 or 1: what the tail sheds
    couple         0 or 1: the couple of (48), with which energy does not close
    lateral_n_m, along_n_m     N/m of the springs at the nose
    stream_m_s, acceleration_m_s2, shear_1_s       U, its rate (accelerating), du/dy (shear)
    cylinder_m, strouhal, advection, aspect, core, phase      of the street (rtmms.fluids.vortex_row.Street)
    amplitude_rad, wavelength_m, period_s, ramp_s, kp_n_m, kd_n_m_s      of the wave: angle of a joint, servo
    limit_n_m      of commanded torques;  gravity_m_s2
    pieces         sections a link, at Gauss points; the head has three times as many
    integrator, substeps   the method, its steps in a plant's step
    """

    flow: str = "street"
    flow_file: Annotated[str, NamesFile("input")] = ""
    tether: str = "lateral"
    gait: str = "none"
    length_m: float = 0.2
    head: float = 0.3
    joints: int = 8
    width: float = 1.0
    height: float = 1.0
    density_kg_m3: float = 1000.0
    water_density_kg_m3: float = 1000.0
    flexural_stiffness_n_m2: float = 2e-3
    kelvin_voigt_s: float = 2e-3
    friction: float = 0.006
    cross_drag: float = 1.0
    wake: int = 1
    couple: int = 0
    lateral_n_m: float = 2.0
    along_n_m: float = 20.0
    stream_m_s: float = 0.5
    acceleration_m_s2: float = 0.2
    shear_1_s: float = 0.5
    cylinder_m: float = 0.05
    strouhal: float = 0.2
    advection: float = 0.85
    aspect: float = 0.281
    core: float = 0.4
    phase: float = 0.0
    amplitude_rad: float = 0.2
    wavelength_m: float = 0.2
    period_s: float = 0.5
    ramp_s: float = 0.5
    kp_n_m: float = 0.5
    kd_n_m_s: float = 1e-3
    limit_n_m: float = 0.05
    gravity_m_s2: float = 9.81
    pieces: int = 3
    integrator: str = "implicit2"
    substeps: int = 1


PRESETS: dict[str, dict[str, Any]] = {
    "dead": {}, "passive": {}, "tethered": {"tether": "held"}, "free": {"tether": "none"},
    "swimming": {"flow": "still", "tether": "none", "gait": "wave"},
}  # fmt: skip
CHOICES = {
    "flow": ("street", "uniform", "accelerating", "shear", "still", "file"),
    "tether": ("lateral", "held", "none"),
    "gait": ("none", "wave"),
    "integrator": tuple(METHODS),
}
_SIGNED = {"stream_m_s", "acceleration_m_s2", "shear_1_s", "phase"}
_MAY_VANISH = {
    "kelvin_voigt_s", "friction", "cross_drag", "wake", "couple", "lateral_n_m", "along_n_m", "amplitude_rad", "ramp_s",
    "kp_n_m", "kd_n_m_s", "gravity_m_s2", "core",
}  # fmt: skip
_MOST: dict[str, float] = {
    "length_m": 100.0, "head": 0.9, "joints": 100, "width": 100.0, "height": 100.0, "density_kg_m3": 3e4,
    "water_density_kg_m3": 2e4, "flexural_stiffness_n_m2": 1e6, "kelvin_voigt_s": 1e3, "friction": 100.0,
    "cross_drag": 100.0, "wake": 1, "couple": 1, "lateral_n_m": 1e6, "along_n_m": 1e6, "stream_m_s": 100.0,
    "acceleration_m_s2": 1e3, "shear_1_s": 1e3, "cylinder_m": 100.0, "strouhal": 10.0, "advection": 0.999,
    "aspect": 10.0, "core": 10.0, "phase": 1e3, "amplitude_rad": math.pi, "wavelength_m": 1e4, "period_s": 1e4,
    "ramp_s": 1e4, "kp_n_m": 1e6, "kd_n_m_s": 1e6, "limit_n_m": 1e6, "gravity_m_s2": 1e3, "pieces": 100,
    "substeps": 10_000,
}  # fmt: skip


def half_axes(p: Fish, x: float) -> tuple[float, float]:
    """(a, b) m, s = x / l: a / .06 l = 1.92 sqrt(s) (1 - s)^.8 + .08 s, b / l = .228 sqrt(s) (1 - s) + .1 s^6."""
    l = p.length_m
    s = min(max(x / l, 0.0), 1.0)
    a = 0.06 * l * (1.92 * math.sqrt(s) * (1.0 - s) ** 0.8 + 0.08 * s)
    b = 0.228 * l * math.sqrt(s) * (1.0 - s) + 0.1 * l * s**6
    return p.width * a, p.height * b


def stations(p: Fish) -> Array:
    """(joints,) m: where the joints stand, (j - 1/2) of a piece of the tail from the head on: half-length end links."""
    h = p.length_m * (1.0 - p.head) / p.joints
    out: Array = p.head * p.length_m + h * (np.arange(float(p.joints)) + 0.5)
    return out


def describe(p: Fish) -> Mechanism:
    """The mechanism in the sections' frame: origin at the nose, x towards the tail, z up."""
    ends = [0.0, *stations(p), p.length_m]
    h = p.length_m * (1.0 - p.head) / p.joints
    stiffness = p.flexural_stiffness_n_m2 / h
    bodies: list[Body] = []
    joints: list[Joint] = []
    for k, (start, end) in enumerate(pairwise(ends)):
        name, last = "head" if k == 0 else f"link{k}", k == p.joints
        pieces = 3 * p.pieces if k == 0 else max(3, p.pieces) if last else p.pieces
        body = elongated_body(
            name, lambda x: half_axes(p, x), start, end, pieces, p.density_kg_m3, fluid=p.water_density_kg_m3,
            friction=p.friction, cross=(p.cross_drag, p.cross_drag), wake=last and p.wake > 0,
            couple=p.couple > 0,
        )  # fmt: skip
        if k > 0:
            before = bodies[-1].name
            joints.append(Joint(
                f"bend{k}", before, name, placement=at(start - ends[k - 1]), stiffness=stiffness,
                damping=p.kelvin_voigt_s * stiffness,
            ))  # fmt: skip
        else:
            body = replace(body, elements=[*body.elements, *_tethers(p)])
        bodies.append(body)
    return Mechanism("fish", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2))


def _tethers(p: Fish) -> list[Tether]:
    """At the nose, towards where it starts."""
    if p.tether == "none":
        return []
    along = p.along_n_m if p.tether == "held" else 0.0
    return [Tether((along, p.lateral_n_m, 0.0))]


def flow_of(p: Fish) -> Flow:
    """The water around it. ModelError for a file that cannot be read."""
    stream = (p.stream_m_s, 0.0, 0.0)
    if p.flow == "street":
        if p.core <= 0.0:
            raise ModelError(f"fish: core must be > 0 in a street, got {p.core}")
        street = Street(p.cylinder_m, p.stream_m_s, p.strouhal, p.advection, p.aspect, p.core, p.phase)
        return Flow.street(street)
    if p.flow == "accelerating":
        return Flow(stream, acceleration=(p.acceleration_m_s2, 0.0, 0.0))
    if p.flow == "shear":
        slope = np.zeros((3, 3))
        slope[0, 1] = p.shear_1_s
        return Flow(stream, slope)
    if p.flow == "file":
        if not p.flow_file:
            raise ModelError("fish: flow=file needs flow_file, a .npz or .nc file")
        return Flow(grid=Grid.load(p.flow_file))
    return Flow(stream if p.flow == "uniform" else (0.0, 0.0, 0.0))


def gait(p: Fish) -> Law:
    """Angles A (X/l) sin 2 pi (X / lambda - t / T) of the joints, and the servo that stands for muscles."""
    motion, x = np.zeros((p.joints, 3)), stations(p)
    swims = p.gait == "wave"
    if swims:
        size, k = p.amplitude_rad * x / p.length_m, 2.0 * math.pi / p.wavelength_m
        motion[:, 1], motion[:, 2] = size * np.sin(k * x), -size * np.cos(k * x)
    kp, kd = (p.kp_n_m, p.kd_n_m_s) if swims else (0.0, 0.0)
    return Law(motion, 2.0 * math.pi / p.period_s, p.ramp_s, kp, kd)


def model_of(p: Fish) -> Model:
    """Compiled, x of its base forward."""
    return compile_model(facing(describe(p), FORWARD))


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The fish as a plant (entry point 'fish'). Parameters: see Fish; presets: dead (the default), passive, tethered,
    free, swimming.

    Actuators: bend1.torque, bend2.torque, ... (N m, muscles about the tail's joints; positive turns what
    is behind the joint counter-clockwise seen from above). 'position' is the nose. Energy is told term by term.
    """
    if preset is not None and preset not in PRESETS:
        raise UnknownNameError("fish preset", preset, PRESETS)
    p = _built({**PRESETS.get(preset or "", {}), **given})
    model = model_of(p)
    start = model.state()
    start.orientation = np.array([0.0, 0.0, 0.0, 1.0])  # it looks against the stream
    torques = [JointTorque(name, p.limit_n_m) for name in model.joint_names]
    return TreePlant(
        model, step_of("fish", dt, 1e-3), gait(p), actuators=torques, flow=flow_of(p), method=p.integrator,
        substeps=p.substeps, nodes={"strip_nodes": 1}, initial=start, parameters=p, settable=SETTABLE, remake=_remake,
        audited=True, summary=_summary, medium="water", density=p.water_density_kg_m3,
        trace_outputs=("position", "quaternion", "velocity", "power", "work", "energy", "flow_work", "wake_work",
                       "drag_work", "damping_work"),
        recent_outputs=("joint_position", "velocity"),
    )  # fmt: skip


def _built(given: dict[str, Any]) -> Fish:
    p: Fish = build(Fish, given, CHOICES, _MAY_VANISH, _SIGNED, _MOST)
    if not isinstance(p.flow_file, str):
        raise ModelError(f"fish: flow_file must be the name of a file, got {p.flow_file!r}")
    return p


SETTABLE = (
    "flexural_stiffness_n_m2", "kelvin_voigt_s", "friction", "cross_drag", "lateral_n_m", "along_n_m", "stream_m_s",
    "acceleration_m_s2", "shear_1_s", "kp_n_m", "kd_n_m_s", "gravity_m_s2",
)  # fmt: skip
"""What `set` may change while it runs."""


def _remake(plant: TreePlant, given: Mapping[str, Any]) -> Remade:
    p = _built({**asdict(plant.parameters), **given})
    return Remade(p, model_of(p), gait(p), flow_of(p))


def _summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """drift_m_s: mean velocity along the stream from 3 s on (from the middle of a shorter run), upstream negative."""
    if len(time) < 2:
        return {}
    start = SETTLED_S if time[-1] > SETTLED_S + 0.5 else 0.5 * float(time[0] + time[-1])
    end = float(time[-1])

    def rate(values: Array) -> float:
        first, last = np.interp([start, end], time, values)
        return float(last - first) / (end - start)

    powers = {f"mean_{name}_power_w": rate(trace[f"{name}_work"]) for name in ("flow", "wake", "drag", "damping")}
    return {"drift_m_s": rate(trace["position"][:, 0]), "mean_power_w": rate(trace["work"]), **powers}
