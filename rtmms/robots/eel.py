"""The eel-like robot of Khalil, Gallot and Boyer (2007): 13 bodies, 12 spherical joints, Morison's fluid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rtmms.analysis.abilities import rise, whole_periods
from rtmms.errors import ModelError, UnknownNameError
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.joint_laws import OFFSET, TORQUE, Actuator, Law
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import Remade, TreePlant
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, facing, khalil_kleinfinger
from rtmms.model.elements import elliptic_strip
from rtmms.model.solids import EllipticCylinder, HalfEllipsoid, Placement, inertia_of
from rtmms.plant import Channel
from rtmms.robots.parameters import build, step_of
from rtmms.spatial import Array

AXES = ("yaw", "pitch", "roll")
FORWARD = np.diag([-1.0, -1.0, 1.0])
"""Forward, left and up in the paper's frame, whose x0 points from nose to tail."""


@dataclass(frozen=True)
class Eel:
    """Parameters; the defaults are the paper's (section VII), with its table I repaired (docs/eel.md). SI and radians.

    drive          'motion': the shape is imposed and torques follow; 'torque': torques are given
    command        'angle' (added to the gait) or 'torque' (drive=torque only); 'auto': what the drive is named for
    gait           'planar', 'loop' (the paper's two examples) or 'none'
    added_mass     'kirchhoff' (conserves momentum and energy without drag) or 'khalil2007' (the paper's, does not)
    joints         spherical joints
    head_length_m, link_length_m
    half_width_m, half_height_m   a along y, b along z
    nose_length_m, tail_length_m  axial half-axis of the half-ellipsoids at the ends
    density_kg_m3, water_density_kg_m3    kg/m3
    c1 .. c4       axial, lateral, vertical and rolling drag; c5 .. c7 added mass lateral, vertical, rolling
    amplitude_rad, growth_1_m, wavelength_m, period_s, ramp_s
                   A, alpha, lambda, T, t_f of the gait, eqs 63 to 65
    yaw_offset_rad     on every yaw joint (O_ff1); pitch_offset_rad on every pitch joint when gait is 'loop' (O_ff2)
    kp_n_m, kd_n_m_s         N m/rad, N m s/rad, torque drive: a servo about the gait
    bandwidth_rad_s      rad/s, motion drive: how fast commanded angles are followed
    current_x_m_s, current_y_m_s, current_z_m_s    m/s, a uniform current, world frame
    gravity_m_s2        m/s2
    integrator, substeps, nodes       the method, its steps in a plant's step, Gauss nodes a link
    """

    drive: str = "motion"
    command: str = "auto"
    gait: str = "planar"
    added_mass: str = "kirchhoff"
    joints: int = 12
    head_length_m: float = 0.4
    link_length_m: float = 0.14
    half_width_m: float = 0.065
    half_height_m: float = 0.09
    nose_length_m: float = 0.09
    tail_length_m: float = 0.09
    density_kg_m3: float = 1000.0
    water_density_kg_m3: float = 1000.0
    c1: float = 0.01
    c2: float = 1.0
    c3: float = 1.0
    c4: float = 1.0
    c5: float = 1.0
    c6: float = 1.0
    c7: float = 1.0
    amplitude_rad: float = 0.06
    growth_1_m: float = 1.2
    wavelength_m: float = 1.8
    period_s: float = 2.0
    ramp_s: float = 2.0
    yaw_offset_rad: float = 0.0
    pitch_offset_rad: float = math.pi / 40.0
    kp_n_m: float = 20.0
    kd_n_m_s: float = 2.0
    bandwidth_rad_s: float = 20.0
    current_x_m_s: float = 0.0
    current_y_m_s: float = 0.0
    current_z_m_s: float = 0.0
    gravity_m_s2: float = 9.81
    integrator: str = "rk4"
    substeps: int = 1
    nodes: int = 10

    @property
    def length(self) -> float:
        return self.head_length_m + self.joints * self.link_length_m


PRESETS: dict[str, dict[str, Any]] = {"paper": {"added_mass": "khalil2007"}, "loop": {"gait": "loop"}}
CHOICES = {
    "drive": ("motion", "torque"),
    "command": ("auto", "angle", "torque"),
    "gait": ("planar", "loop", "none"),
    "added_mass": ("kirchhoff", "khalil2007"),
    "integrator": tuple(METHODS),
}


def describe(p: Eel) -> Mechanism:
    """The mechanism in the paper's frame: x0 from nose to tail, z0 up; it swims towards -x0."""
    a, b = p.half_width_m, p.half_height_m
    along_x = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # own z -> x0, own x -> y0, own y -> z0
    backwards = np.array([[0.0, 0, -1], [1, 0, 0], [0, -1, 0]])  # own z -> -x0

    def strip(length: float, solids: list[Any], placement: Placement) -> Any:
        mass = sum(float(inertia_of(solid)[0, 0]) for solid in solids)
        made = elliptic_strip(
            a, b, length, p.water_density_kg_m3, placement,
            drag=(p.c1, p.c2, p.c3), roll=p.c4, added=(p.c7, p.c5, p.c6), law=p.added_mass,
        )  # fmt: skip
        # pushed by an accelerating fluid like the solids' own volume, so that a neutral eel goes with it
        return replace(made, displaced=mass * p.water_density_kg_m3 / p.density_kg_m3 / length)

    def column(length: float, placement: Placement) -> EllipticCylinder:
        return EllipticCylinder(a, b, length, p.density_kg_m3, placement)

    straight = p.head_length_m - p.nose_length_m
    shapes: list[Any] = [
        HalfEllipsoid(a, b, p.nose_length_m, p.density_kg_m3, Placement(backwards, np.array([p.nose_length_m, 0, 0]))),
        column(straight, Placement(along_x, np.array([p.nose_length_m + straight / 2, 0, 0]))),
    ]
    skin = strip(p.head_length_m, shapes, Placement(np.eye(3), np.array([p.head_length_m / 2, 0, 0])))
    head = Body("head", solids=shapes, fluid_density=p.water_density_kg_m3, elements=[skin])
    bodies, joints = [head], []
    to_strip = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])  # e1 = z, e2 = x, e3 = y of frame 3 j
    half = math.pi / 2
    for i in range(1, p.joints + 1):
        last, l = i == p.joints, p.link_length_m
        # s runs over (-l, 0) in the frame of the link's distal end
        solids: list[Any] = [column(l, Placement(np.eye(3), np.array([0, 0, -l / 2])))]
        if last:
            c = l - p.tail_length_m
            solids = [
                column(c, Placement(np.eye(3), np.array([0, 0, -l + c / 2]))),
                HalfEllipsoid(
                    a, b, p.tail_length_m, p.density_kg_m3, Placement(np.eye(3), np.array([0, 0, -p.tail_length_m]))
                ),
            ]
        skin = strip(l, solids, Placement(to_strip, np.array([0, 0, -l / 2])))
        link = Body(f"link{i}", solids=solids, fluid_density=p.water_density_kg_m3, elements=[skin])
        bodies += [Body(f"yoke{i}"), Body(f"cross{i}"), link]
        # table I repaired: (alpha, d, q0, r) of joints 3 i - 2, 3 i - 1, 3 i
        table = [
            (0.0, p.head_length_m, 0.0, 0.0) if i == 1 else (half, 0.0, half, 0.0),
            (-half, 0.0, -half, 0.0),
            (-half, 0.0, half, l),
        ]
        parent = "head" if i == 1 else f"link{i - 1}"
        for axis, parameters, child in zip(AXES, table, (f"yoke{i}", f"cross{i}", f"link{i}"), strict=True):
            joints.append(Joint(f"{axis}{i}", parent, child, placement=khalil_kleinfinger(*parameters), drive=p.drive))
            parent = child
    return Mechanism("eel", bodies, joints, gravity=(0.0, 0.0, -p.gravity_m_s2))


def gait(p: Eel) -> Law:
    """The paper's motion law (63) to (66) as offset, cosine and sine of each joint.

    q_{3i-2} = f(t) (Q(l i, t) - Q(l (i - 1), t) + O_ff1), Q = A exp(alpha s) sin 2 pi (s / lambda - t / T)
    """
    motion, k = np.zeros((3 * p.joints, 3)), 2.0 * math.pi / p.wavelength_m
    if p.gait != "none":
        s = p.link_length_m * np.arange(p.joints + 1)
        envelope = p.amplitude_rad * np.exp(p.growth_1_m * s)
        motion[0::3, 0] = p.yaw_offset_rad
        motion[0::3, 1] = np.diff(envelope * np.sin(k * s))  # sin(k s - w t) = sin k s cos w t - cos k s sin w t
        motion[0::3, 2] = -np.diff(envelope * np.cos(k * s))
    if p.gait == "loop":
        motion[1::3, 0] = p.pitch_offset_rad
    return Law(motion, 2.0 * math.pi / p.period_s, p.ramp_s, p.kp_n_m, p.kd_n_m_s, p.bandwidth_rad_s)


def parameters(preset: str | None, given: dict[str, Any]) -> Eel:
    """Check and merge. UnknownNameError or ModelError, naming the parameter."""
    if preset is not None and preset not in PRESETS:
        raise UnknownNameError("eel preset", preset, PRESETS)
    merged: Eel = build(Eel, {**PRESETS.get(preset or "", {}), **given}, CHOICES, _MAY_VANISH, _SIGNED, _MOST)
    return merged


_MAY_VANISH = {
    *(f"c{k}" for k in range(1, 8)), "amplitude_rad", "growth_1_m", "ramp_s", "kp_n_m", "kd_n_m_s", "gravity_m_s2",
    "water_density_kg_m3",
}  # fmt: skip
_SIGNED = {"yaw_offset_rad", "pitch_offset_rad", "current_x_m_s", "current_y_m_s", "current_z_m_s", "growth_1_m"}

_MOST = {
    **dict.fromkeys(("head_length_m", "link_length_m", "half_width_m", "half_height_m", "nose_length_m",
                     "tail_length_m", "current_x_m_s", "current_y_m_s", "current_z_m_s"), 100.0),
    **dict.fromkeys((f"c{k}" for k in range(1, 8)), 100.0),
    "joints": 200, "density_kg_m3": 3e4, "water_density_kg_m3": 2e4, "amplitude_rad": math.pi, "growth_1_m": 100.0,
    "wavelength_m": 1e4, "period_s": 1e4, "ramp_s": 1e4, "yaw_offset_rad": math.pi, "pitch_offset_rad": math.pi,
    "kp_n_m": 1e6, "kd_n_m_s": 1e6, "bandwidth_rad_s": 1e5, "gravity_m_s2": 1e3, "substeps": 10_000, "nodes": 1000,
}  # fmt: skip
"""Beyond these no robot, fluid or servo is; c1 = 3e4 would end in a number that is not finite."""


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The eel as a plant (entry point 'eel'). Parameters: see Eel; presets: 'paper', 'loop'.

    Actuators, 3 for each spherical joint: `yaw1.angle` (rad, added to the gait, through a critically damped filter;
    with drive=torque it is the servo's target); with drive=torque `yaw1.torque` (N m, added to the servo).
    At the face body x is forward, y left, z up.
    """
    return _plant(_checked(preset, given), dt, ahead=True)


def in_paper_frame(dt: float | None = None, preset: str | None = None, **given: Any) -> TreePlant:
    """The same plant in the paper's frame, to be set beside its figures: it swims towards -x."""
    return _plant(_checked(preset, given), dt, ahead=False)


def model_of(p: Eel, ahead: bool = True) -> Model:
    """Compiled: x of its base forward, or the paper's."""
    mechanism = describe(p)
    return compile_model(facing(mechanism, FORWARD) if ahead else mechanism)


def _checked(preset: str | None, given: dict[str, Any]) -> Eel:
    p = parameters(preset, given)
    if p.command == "torque" and p.drive == "motion":
        raise ModelError("eel: command=torque needs drive=torque, got drive=motion, whose torques follow")
    if p.nodes < 2:
        raise ModelError(f"eel: nodes must be >= 2, with which work is right to 0.1 %, got {p.nodes}")
    if p.nose_length_m >= p.head_length_m or p.tail_length_m >= p.link_length_m:
        raise ModelError("eel: nose_length_m and tail_length_m must be shorter than their links")
    return p


def _plant(p: Eel, dt: float | None, ahead: bool) -> TreePlant:
    step, model = step_of("eel", dt, 1e-3), model_of(p, ahead)
    return TreePlant(
        model, step, gait(p), _actuators(p, model), flow=Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)),
        method=p.integrator, substeps=p.substeps, nodes={"strip_nodes": p.nodes},
        trimming={"close": ("vx", "vy", "wz", *(("vz", "wx", "wy") if p.gait == "loop" else ()))}, parameters=p,
        settable=tuple(SETTABLE), remake=_remake, summary=_summary if ahead else None,
        medium="water", density=p.water_density_kg_m3,
    )  # fmt: skip


SETTABLE = (
    "current_x_m_s", "current_y_m_s", "current_z_m_s", "kp_n_m", "kd_n_m_s", "bandwidth_rad_s", "c1", "c2", "c3", "c4",
    "gravity_m_s2",
)  # fmt: skip
"""What `set` may change while it runs."""
_OUTSIDE_MODEL = set(SETTABLE[:6])


def _remake(plant: TreePlant, given: Mapping[str, Any]) -> Remade:
    """The parts of a plant with some parameters changed; drag and gravity need the model compiled anew (20 ms)."""
    p: Eel = build(Eel, {**asdict(plant.parameters), **given}, CHOICES, _MAY_VANISH, _SIGNED, _MOST)
    ahead = plant.model.body_names[0] != "head"
    model = plant.model if _OUTSIDE_MODEL.issuperset(given) else model_of(p, ahead)
    return Remade(p, model, gait(p), Flow((p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)))


def _actuators(p: Eel, model: Model) -> tuple[Actuator, ...]:
    made = []
    for j, name in enumerate(model.joint_names):
        if p.command == "angle" or p.drive == "motion":
            made.append(Actuator(Channel(f"{name}.angle", "rad", lower=-1.5, upper=1.5), OFFSET, j))
        else:
            made.append(Actuator(Channel(f"{name}.torque", "N m", lower=-20.0, upper=20.0), TORQUE, j))
    return tuple(made)


def _summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Means over the whole gait periods that fit into the second half of the run."""
    if len(time) < 2:
        return {}
    start, end = whole_periods(plant, time)
    speed = float(np.mean(trace["velocity"][time > start, 0]))
    power = rise(time, trace["work"], start, end)
    weight = plant.model.mass * 9.81
    return {
        "mean_speed_m_s": speed,
        "mean_power_w": power,
        "cost_of_transport": power / (weight * speed) if speed > 1e-6 else None,
    }
