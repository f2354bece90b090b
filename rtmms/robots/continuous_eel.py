"""The continuous eel of Boyer and Porez (2015, section 8): a Cosserat body with imposed curvature in the water."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.parameters import Parameter, build, settable
from rtmms.base.spatial import Array
from rtmms.continuum.body import CosseratBody, Section
from rtmms.continuum.field import (
    PHASE,
    PITCH_GAIN,
    PITCH_OFFSET,
    YAW_GAIN,
    YAW_OFFSET,
    Field,
    nodes_field,
    wave_field,
)
from rtmms.continuum.plant import CosseratPlant, RebuiltParts
from rtmms.plant.protocol import Channel
from rtmms.robots.parameters import START_DEPTH_M, StartDepth, Substeps, step_of


@dataclass(frozen=True)
class ContinuousEel:
    """Parameters of the continuous eel (docs/continuous_eel.md), in SI units and radians.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    drive: Annotated[str, Parameter(
        "Commands: the parameters of a wave of curvature (wave), or curvatures along the body (nodes).",
        choices=("wave", "nodes"),
    )] = "wave"
    length_m: Annotated[float, Parameter("Length l of the body.", "m", le=100)] = 2.08
    half_width_m: Annotated[float, Parameter("Half-axis a of the section, along e2, to the side.", "m", le=100)] = 0.065
    half_height_m: Annotated[float, Parameter("Half-axis b of the section, along e3, upwards.", "m", le=100)] = 0.09
    density_kg_m3: Annotated[float, Parameter("Density of the body.", "kg/m3", le=30000)] = 1000.0
    water_density_kg_m3: Annotated[float, Parameter("Density of the water.", "kg/m3", ge=0, le=20000)] = 1000.0
    c1: Annotated[float, Parameter("Coefficient of the axial drag.", ge=0, le=100, live=True)] = 0.01
    c2: Annotated[float, Parameter("Coefficient of the lateral drag.", ge=0, le=100, live=True)] = 1.0
    c3: Annotated[float, Parameter("Coefficient of the vertical drag.", ge=0, le=100, live=True)] = 1.0
    c4: Annotated[float, Parameter("Coefficient of the rolling drag.", ge=0, le=100, live=True)] = 1.0
    c5: Annotated[float, Parameter("Coefficient of the lateral added mass.", ge=0, le=100)] = 1.0
    c6: Annotated[float, Parameter("Coefficient of the vertical added mass.", ge=0, le=100)] = 1.0
    c7: Annotated[float, Parameter("Coefficient of the rolling added mass.", ge=0, le=100)] = 1.0
    wake: Annotated[str, Parameter("Whether the tail sheds a wake.", choices=("on", "off"))] = "on"
    yaw_rad_m: Annotated[float, Parameter(
        "Amplitude `yaw` of the curvature K_z at the head. K_z = s(t) [(yaw + growth X) sin 2 pi (t / period - X / "
        "wavelength) + offset].",
        "rad/m", signed=True, le=1000, live=True,
    )] = 0.3
    yaw_growth_rad_m2: Annotated[float, Parameter(
        "Growth of the amplitude of K_z along the body.", "rad/m2", signed=True, le=1000, live=True,
    )] = 1.2 / 2.08
    yaw_offset_rad_m: Annotated[float, Parameter("Offset of the curvature K_z.", "rad/m", signed=True, le=1000)] = 0.0
    pitch_rad_m: Annotated[float, Parameter(
        "Amplitude of the curvature K_y at the head; K_y has the form of K_z, and its sine is ahead by the lead.",
        "rad/m", signed=True, le=1000, live=True,
    )] = 0.0
    pitch_growth_rad_m2: Annotated[float, Parameter(
        "Growth of the amplitude of K_y along the body.", "rad/m2", signed=True, le=1000, live=True,
    )] = 0.0
    pitch_offset_rad_m: Annotated[float, Parameter("Offset of the curvature K_y.", "rad/m", signed=True, le=1000)] = 0.0
    pitch_lead_rad: Annotated[float, Parameter(
        "Phase lead of the sine of K_y over that of K_z.", "rad", signed=True, le=2.0 * math.pi,
    )] = math.pi / 3.0
    wavelength_m: Annotated[float, Parameter("Wavelength of the wave.", "m", le=10000)] = 2.08
    period_s: Annotated[float, Parameter("Period of the wave.", "s", le=10000)] = 1.0
    ramp_s: Annotated[float, Parameter("Duration of the wave's soft start s(t), a quintic.", "s", ge=0, le=10000)] = 1.0
    curvature_nodes: Annotated[int, Parameter(
        "Number of commanded curvatures from head to tail, drive=nodes.", le=200, ge=2,
    )] = 7
    pitched: Annotated[str, Parameter(
        "Whether curvatures about e2 are commanded as well.", choices=("on", "off"),
    )] = "off"
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth at which the body follows commands (second order, critically damped; the frequency: first order).",
        "rad/s", le=100000, live=True,
    )] = 20.0
    current_x_m_s: Annotated[float, Parameter(
        "Uniform current along x, world frame.", "m/s", signed=True, le=100, live=True,
    )] = 0.0
    current_y_m_s: Annotated[float, Parameter(
        "Uniform current along y, world frame.", "m/s", signed=True, le=100, live=True,
    )] = 0.0
    current_z_m_s: Annotated[float, Parameter(
        "Uniform current along z, world frame.", "m/s", signed=True, le=100, live=True,
    )] = 0.0
    gravity_m_s2: Annotated[float, Parameter(
        "Gravity, along -z of the world.", "m/s2", ge=0, le=1000, live=True,
    )] = 9.81
    nodes: Annotated[int, Parameter(
        "Number of nodes along the body; at least 24, 24 a wavelength, or 6 a curvature node, to which the default "
        "rises.",
        le=100_000,
    )] = 64
    points: Annotated[int, Parameter(
        "Gauss-Lobatto points of a cell; their integrals over it are of order 2 points - 2.", le=5,
    )] = 4
    substeps: Substeps = 1
    start_depth_m: StartDepth = START_DEPTH_M
    # fmt: on


SPATIAL = {
    "yaw_offset_rad_m": 0.05, "pitch_rad_m": 0.1, "pitch_growth_rad_m2": 0.3 / 2.08, "pitch_offset_rad_m": 0.08,
    "pitched": "on",
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {"planar": {}, "spatial": SPATIAL}


def body_of(p: ContinuousEel) -> CosseratBody:
    """Return the body, of one elliptic section.

    Parameters
    ----------
    p : ContinuousEel
        Parameters of the eel.

    Returns
    -------
    CosseratBody
        Body with its added mass and drag.
    """
    section = Section(
        p.half_width_m, p.half_height_m, p.density_kg_m3, (p.c1, p.c2, p.c3), p.c4, (p.c7, p.c5, p.c6)
    )  # fmt: skip
    return CosseratBody("continuous_eel", p.length_m, section, p.water_density_kg_m3)


def drive_of(p: ContinuousEel) -> tuple[Field, tuple[Channel, ...]]:
    """Return the strain field of the body, and its actuators.

    Parameters
    ----------
    p : ContinuousEel
        Parameters of the eel.

    Returns
    -------
    (Field, tuple of Channel)
        Field of curvatures, and the channels that command it.
    """
    pitched = p.pitched == "on" or p.pitch_rad_m != 0.0 or p.pitch_growth_rad_m2 != 0.0 or p.pitch_offset_rad_m != 0.0
    if p.drive == "nodes":
        names = [f"yaw{i + 1}.curvature" for i in range(p.curvature_nodes)]
        names += [f"pitch{i + 1}.curvature" for i in range(p.curvature_nodes)] if pitched else []
        channels = tuple(Channel(name, "rad/m", lower=-10.0, upper=10.0) for name in names)
        return nodes_field(p.length_m, p.curvature_nodes, pitched), channels
    values = np.array([
        1.0 / p.period_s, 1.0, p.yaw_offset_rad_m, 1.0, p.pitch_offset_rad_m, p.yaw_rad_m, p.yaw_growth_rad_m2,
        p.pitch_rad_m, p.pitch_growth_rad_m2, p.pitch_lead_rad, p.wavelength_m, p.ramp_s,
    ])  # fmt: skip
    maximum = 10.0 / p.period_s
    added = [
        (PHASE, Channel("frequency", "Hz", lower=-maximum, upper=maximum, neutral=1.0 / p.period_s)),
        (YAW_GAIN, Channel("yaw.gain", "", lower=-3.0, upper=3.0, neutral=1.0)),
        (YAW_OFFSET, Channel("yaw.offset", "rad/m", lower=-3.0, upper=3.0, neutral=p.yaw_offset_rad_m)),
    ]
    if pitched:
        added += [
            (PITCH_GAIN, Channel("pitch.gain", "", lower=-3.0, upper=3.0, neutral=1.0)),
            (PITCH_OFFSET, Channel("pitch.offset", "rad/m", lower=-3.0, upper=3.0, neutral=p.pitch_offset_rad_m)),
        ]
    return wave_field(values, [k for k, _ in added]), tuple(channel for _, channel in added)


def load(dt: float | None = None, preset: str | None = None, **values: Any) -> CosseratPlant:
    """Build the continuous eel plant (entry point 'continuous_eel').

    Actuators: `frequency`, `yaw.gain`, `yaw.offset` and, spatial, `pitch.gain`, `pitch.offset` of the wave. With
    drive=nodes they are `yaw1.curvature` and so on, rad/m. In the plant's body frame x is forward, y left, z up.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'planar' (the default) or 'spatial'.
    **values : Any
        Fields of `ContinuousEel`.

    Returns
    -------
    CosseratPlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    return _plant(_meshed(_checked(preset, values), values), dt, ahead=True)


def in_paper_frame(dt: float | None = None, preset: str | None = None, **values: Any) -> CosseratPlant:
    """Build the same plant with e1 from head to tail as its x: it swims towards -x.

    Any number of nodes is permitted.

    Parameters
    ----------
    dt : float, optional
        Step, s; None for the robot's default.
    preset : str, optional
        'planar' (the default) or 'spatial'.
    **values : Any
        Fields of `ContinuousEel`.

    Returns
    -------
    CosseratPlant
        The plant at t = 0.

    Raises
    ------
    ModelError, UnknownNameError
        The preset, a parameter or the step is wrong; the message names it.
    """
    return _plant(_checked(preset, {"start_depth_m": 0.0, **values}), dt, ahead=False)


def _checked(preset: str | None, values: dict[str, Any]) -> ContinuousEel:
    p: ContinuousEel = build(ContinuousEel, values, robot="continuous_eel", preset=preset, presets=PRESETS)
    return p


def _meshed(p: ContinuousEel, values: Mapping[str, Any]) -> ContinuousEel:
    """Return the parameters with as many nodes as the curvatures need: with fewer the work is off by more than 1 %."""
    waves = 6 * p.curvature_nodes if p.drive == "nodes" else math.ceil(24.0 * p.length_m / p.wavelength_m)
    least = max(24, waves)
    if p.nodes >= least:
        return p
    if "nodes" in values:
        raise ModelError(
            f"continuous_eel: nodes: expected at least {least} for this wavelength or these curvature nodes, got "
            f"{p.nodes}"
        )
    return replace(p, nodes=least)


def _plant(p: ContinuousEel, dt: float | None, ahead: bool) -> CosseratPlant:
    field, channels = drive_of(p)
    return CosseratPlant(
        body_of(p), field, channels, step_of("continuous_eel", dt, 2e-3), p.substeps, p.nodes, p.points,
        (p.current_x_m_s, p.current_y_m_s, p.current_z_m_s), p.gravity_m_s2, p.wake == "on", p.bandwidth_rad_s, ahead,
        p, settable(ContinuousEel), _rebuild, _summary, half_span_m=max(p.half_width_m, p.half_height_m),
    )  # fmt: skip


def _rebuild(plant: CosseratPlant, values: Mapping[str, Any]) -> RebuiltParts:
    p: ContinuousEel = build(ContinuousEel, {**asdict(plant.parameters), **values}, robot="continuous_eel")
    field, channels = drive_of(p)
    if len(channels) != len(plant.actuators):
        raise ModelError("set: continuous_eel: a pitching wave needs a robot built with pitched=on")
    current = (p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)
    return RebuiltParts(p, body_of(p), field, current, p.gravity_m_s2, p.bandwidth_rad_s)


def _summary(plant: CosseratPlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Return means over the whole periods that fit into the second half of the run."""
    if len(time) < 2:
        return {}
    period, half = float(plant.parameters.period_s), float(time[-1] - time[0]) / 2.0
    whole = math.floor(half / period * (1.0 + 1e-9)) * period
    start, end = float(time[-1]) - (whole if whole > 0.0 else half), float(time[-1])
    speed = float(np.mean(np.asarray(trace["velocity"])[time > start, 0]))
    first, last = np.interp([start, end], time, trace["work"])
    power = float(last - first) / (end - start)
    weight = plant.mass * 9.81
    return {
        "mean_speed_m_s": speed,
        "mean_power_w": power,
        "cost_of_transport": power / (weight * speed) if speed > 1e-6 else None,
    }
