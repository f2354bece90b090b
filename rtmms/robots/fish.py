"""The dead fish of Boyer et al. (2017): a rigid head and a passive tail, elongated-body theory, a von Karman street."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.parameters import Parameter, build, settable
from rtmms.base.spatial import Array
from rtmms.base.trust import NamesFile
from rtmms.fluids.ambient import Flow, Street
from rtmms.fluids.flow_grid import Grid
from rtmms.mechanism.actuators import JointTorque
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.plant import RebuiltParts, TreePlant
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, facing
from rtmms.model.elements import Tether
from rtmms.model.elongated import elongated_body
from rtmms.model.solids import at
from rtmms.robots.fish_drawing import half_axes, joint_stations
from rtmms.robots.parameters import START_DEPTH_M, Integrator, StartDepth, Substeps, step_of

FORWARD = np.diag([-1.0, -1.0, 1.0])
"""Forward, left and up in the frame of the sections, whose x points from nose to tail."""
SETTLED_S = 3.0
"""Time from which the drift is measured, s."""


@dataclass(frozen=True)
class Fish:
    """Parameters of the fish, in SI units and radians; the declaration of each field has its meaning, unit and range.

    The published parameters are not available: the defaults are those of docs/fish.md.
    """

    # fmt: off
    flow: Annotated[str, Parameter(
        "Flow of the water; the stream runs along +x, and the fish looks against it.",
        choices=("street", "uniform", "accelerating", "shear", "still", "file"),
    )] = "street"
    flow_file: Annotated[str, NamesFile("input"), Parameter(
        "File of the flow, flow=file: .npz or .nc, see rtmms.fluids.flow_grid.",
    )] = ""
    tether: Annotated[str, Parameter(
        "Springs at the nose: across the stream (lateral), across and along it (held), or none.",
        choices=("lateral", "held", "none"),
    )] = "lateral"
    gait: Annotated[str, Parameter(
        "Gait: none, which is passive, or a travelling wave of the tail's rest angles through kp and kd (wave).",
        choices=("none", "wave"),
    )] = "none"
    length_m: Annotated[float, Parameter("Length of the fish.", "m", le=100)] = 0.2
    head: Annotated[float, Parameter("Length of the head as a share of the fish's length.", le=0.9)] = 0.3
    joints: Annotated[int, Parameter("Number of joints of the tail.", le=100)] = 8
    width: Annotated[float, Parameter("Factor on the half-axes a of the sections, to the side.", le=100)] = 1.0
    height: Annotated[float, Parameter("Factor on the half-axes b of the sections, upwards.", le=100)] = 1.0
    density_kg_m3: Annotated[float, Parameter("Density of the body.", "kg/m3", le=30000)] = 1000.0
    water_density_kg_m3: Annotated[float, Parameter("Density of the water.", "kg/m3", le=20000)] = 1000.0
    flexural_stiffness_n_m2: Annotated[float, Parameter(
        "Flexural stiffness EI of the tail, constant along it.", "N m2", le=1e6, live=True,
    )] = 2e-3
    kelvin_voigt_s: Annotated[float, Parameter(
        "Ratio of the tail's damping to its stiffness.", "s", ge=0, le=1000, live=True,
    )] = 2e-3
    friction: Annotated[float, Parameter(
        "Coefficient of the axial drag, on the perimeter.", ge=0, le=100, live=True,
    )] = 0.006
    cross_drag: Annotated[float, Parameter("Coefficient of the drag across the body.", ge=0, le=100, live=True)] = 1.0
    wake: Annotated[int, Parameter("Whether the tail sheds a wake (1) or not (0).", ge=0, le=1)] = 1
    couple: Annotated[int, Parameter(
        "Whether sections have the couple of Boyer 2017, eq. 48 (1), with which energy does not close, or not (0).",
        ge=0, le=1,
    )] = 0
    lateral_n_m: Annotated[float, Parameter(
        "Stiffness of the spring across the stream at the nose.", "N/m", ge=0, le=1e6, live=True,
    )] = 2.0
    along_n_m: Annotated[float, Parameter(
        "Stiffness of the spring along the stream at the nose, tether=held.", "N/m", ge=0, le=1e6, live=True,
    )] = 20.0
    stream_m_s: Annotated[float, Parameter("Velocity U of the stream.", "m/s", signed=True, le=100, live=True)] = 0.5
    acceleration_m_s2: Annotated[float, Parameter(
        "Rate of change of U, flow=accelerating.", "m/s2", signed=True, le=1000, live=True,
    )] = 0.2
    shear_1_s: Annotated[float, Parameter(
        "Shear du/dy of the stream, flow=shear.", "1/s", signed=True, le=1000, live=True,
    )] = 0.5
    cylinder_m: Annotated[float, Parameter(
        "Diameter of the street's cylinder, flow=street (rtmms.fluids.ambient.Street).", "m", le=100,
    )] = 0.05
    strouhal: Annotated[float, Parameter("Strouhal number of the street.", le=10)] = 0.2
    advection: Annotated[float, Parameter("Velocity of the street's vortices as a fraction of U.", le=0.999)] = 0.85
    aspect: Annotated[float, Parameter(
        "Distance of the street's rows over the spacing of their vortices.", le=10,
    )] = 0.281
    core: Annotated[float, Parameter(
        "Radius of the vortices' cores as a fraction of the cylinder's diameter.", ge=0, le=10,
    )] = 0.4
    phase: Annotated[float, Parameter(
        "Advance of the street at t = 0 as a fraction of the vortices' spacing.", signed=True, le=1000,
    )] = 0.0
    amplitude_rad: Annotated[float, Parameter(
        "Amplitude of the wave's angles at the tail's end; it grows linearly from the nose.", "rad", ge=0, le=math.pi,
    )] = 0.2
    wavelength_m: Annotated[float, Parameter("Wavelength of the wave.", "m", le=10000)] = 0.2
    period_s: Annotated[float, Parameter("Period of the wave.", "s", le=10000)] = 0.5
    ramp_s: Annotated[float, Parameter("Duration of the wave's soft start.", "s", ge=0, le=10000)] = 0.5
    kp_n_m: Annotated[float, Parameter("Stiffness of the wave's servo.", "N m/rad", ge=0, le=1e6, live=True)] = 0.5
    kd_n_m_s: Annotated[float, Parameter("Damping of the wave's servo.", "N m s/rad", ge=0, le=1e6, live=True)] = 1e-3
    limit_n_m: Annotated[float, Parameter("Limit of commanded torques.", "N m", le=1e6)] = 0.05
    gravity_m_s2: Annotated[float, Parameter(
        "Gravity, along -z of the world.", "m/s2", ge=0, le=1000, live=True,
    )] = 9.81
    pieces: Annotated[int, Parameter(
        "Number of sections of a link, at Gauss points; the head has three times as many.", le=100,
    )] = 3
    integrator: Integrator = "implicit2"
    substeps: Substeps = 1
    start_depth_m: StartDepth = START_DEPTH_M
    # fmt: on


PRESETS: dict[str, dict[str, Any]] = {
    "dead": {}, "passive": {}, "tethered": {"tether": "held"}, "free": {"tether": "none"},
    "swimming": {"flow": "still", "tether": "none", "gait": "wave"},
}  # fmt: skip


def stations(p: Fish) -> Array:
    """Return the distances of the joints from the nose: (j - 1/2) of a piece of the tail from the head on.

    The end links have half the length.

    Parameters
    ----------
    p : Fish
        Parameters of the fish.

    Returns
    -------
    (joints,) array
        m.
    """
    out: Array = np.array(joint_stations(p.length_m, p.head, p.joints))
    return out


def describe(p: Fish) -> Mechanism:
    """Return the mechanism in the sections' frame: origin at the nose, x towards the tail, z up.

    Parameters
    ----------
    p : Fish
        Parameters of the fish.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    ends = [0.0, *stations(p), p.length_m]
    h = p.length_m * (1.0 - p.head) / p.joints
    stiffness = p.flexural_stiffness_n_m2 / h
    bodies: list[Body] = []
    joints: list[Joint] = []
    for k, (start, end) in enumerate(pairwise(ends)):
        name, last = "head" if k == 0 else f"link{k}", k == p.joints
        pieces = 3 * p.pieces if k == 0 else max(3, p.pieces) if last else p.pieces
        body = elongated_body(
            name, lambda x: half_axes(x, p.length_m, p.width, p.height), start, end, pieces, p.density_kg_m3,
            fluid=p.water_density_kg_m3, friction=p.friction, cross=(p.cross_drag, p.cross_drag),
            wake=last and p.wake > 0, couple=p.couple > 0,
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


def _half_height(p: Fish) -> float:
    """Return the largest half-height of the sections, m."""
    along = np.linspace(0.0, p.length_m, 101)
    return max(half_axes(float(x), p.length_m, p.width, p.height)[1] for x in along)


def _tethers(p: Fish) -> list[Tether]:
    """Return the tether at the nose, towards its place at the start."""
    if p.tether == "none":
        return []
    along = p.along_n_m if p.tether == "held" else 0.0
    return [Tether((along, p.lateral_n_m, 0.0))]


def flow_of(p: Fish) -> Flow:
    """Return the water around the fish.

    Parameters
    ----------
    p : Fish
        Parameters of the fish.

    Returns
    -------
    Flow
        The flow.

    Raises
    ------
    ModelError
        The file of the flow cannot be read, or a parameter does not fit the flow.
    """
    stream = (p.stream_m_s, 0.0, 0.0)
    if p.flow == "street":
        if p.core <= 0.0:
            raise ModelError(f"fish: core: expected a number > 0 with flow=street, got {p.core}")
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
    """Return angles A (X/l) sin 2 pi (X / lambda - t / T) of the joints, and the servo that represents muscles.

    Parameters
    ----------
    p : Fish
        Parameters of the fish.

    Returns
    -------
    Law
        Motion of the joints; none with gait=none.
    """
    motion, x = np.zeros((p.joints, 3)), stations(p)
    swims = p.gait == "wave"
    if swims:
        size, k = p.amplitude_rad * x / p.length_m, 2.0 * math.pi / p.wavelength_m
        motion[:, 1], motion[:, 2] = size * np.sin(k * x), -size * np.cos(k * x)
    kp, kd = (p.kp_n_m, p.kd_n_m_s) if swims else (0.0, 0.0)
    return Law(motion, 2.0 * math.pi / p.period_s, p.ramp_s, kp, kd)


def model_of(p: Fish) -> Model:
    """Return the compiled model, with x of its base forward.

    Parameters
    ----------
    p : Fish
        Parameters of the fish.

    Returns
    -------
    Model
        The model.
    """
    return compile_model(facing(describe(p), FORWARD))


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> TreePlant:
    """Build the fish plant (entry point 'fish').

    Actuators: bend1.torque, bend2.torque, ... (N m, muscles about the tail's joints). A positive torque turns the part
    behind the joint counter-clockwise, seen from above. 'position' is the nose. Energy is reported term by term.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'dead' (the default), 'passive', 'tethered', 'free' or 'swimming'.
    **values : Any
        Fields of `Fish`.

    Returns
    -------
    TreePlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    p = _built(values, preset)
    model = model_of(p)
    start = model.state()
    start.orientation = np.array([0.0, 0.0, 0.0, 1.0])  # it looks against the stream
    torques = [JointTorque(name, p.limit_n_m) for name in model.joint_names]
    return TreePlant(
        model, step_of("fish", dt, 1e-3), gait(p), actuators=torques, flow=flow_of(p), method=p.integrator,
        substeps=p.substeps, nodes={"strip_nodes": 1}, initial=start, parameters=p, settable=settable(Fish),
        rebuild=_rebuild, audited=True, summary=_summary, medium="water", half_span_m=_half_height(p),
        density=p.water_density_kg_m3,
        trace_outputs=("position", "quaternion", "velocity", "power", "work", "energy", "flow_work", "wake_work",
                       "drag_work", "damping_work"),
        recent_outputs=("joint_position", "velocity"),
    )  # fmt: skip


def _built(values: dict[str, Any], preset: str | None = None) -> Fish:
    p: Fish = build(Fish, values, preset=preset, presets=PRESETS)
    if not isinstance(p.flow_file, str):
        raise ModelError(f"fish: flow_file must be the name of a file, got {p.flow_file!r}")
    return p


def _rebuild(plant: TreePlant, values: Mapping[str, Any]) -> RebuiltParts:
    p = _built({**asdict(plant.parameters), **values})
    return RebuiltParts(p, model_of(p), gait(p), flow_of(p))


def _summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Return the mean velocity along the stream (drift_m_s, upstream negative) and mean powers.

    They are means from 3 s on, or from the middle of a shorter run.
    """
    if len(time) < 2:
        return {}
    start = SETTLED_S if time[-1] > SETTLED_S + 0.5 else 0.5 * float(time[0] + time[-1])
    end = float(time[-1])

    def rate(values: Array) -> float:
        first, last = np.interp([start, end], time, values)
        return float(last - first) / (end - start)

    powers = {f"mean_{name}_power_w": rate(trace[f"{name}_work"]) for name in ("flow", "wake", "drag", "damping")}
    return {"drift_m_s": rate(trace["position"][:, 0]), "mean_power_w": rate(trace["work"]), **powers}
