"""The continuous eel of Boyer and Porez (2015, section 8): a Cosserat body with imposed curvature in the water."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rtmms.continuum.body import CosseratBody, Section
from rtmms.continuum.field import Field
from rtmms.continuum.plant import CosseratPlant, Remade
from rtmms.continuum.waves import (
    PHASE,
    PITCH_GAIN,
    PITCH_OFFSET,
    YAW_GAIN,
    YAW_OFFSET,
    nodes_field,
    wave_field,
)
from rtmms.errors import ModelError, UnknownNameError
from rtmms.plant import Channel
from rtmms.robots.parameters import build, step_of
from rtmms.spatial import Array


@dataclass(frozen=True)
class ContinuousEel:
    """Parameters (docs/continuous_eel.md). SI and radians.

    drive         'wave': commands are the parameters of a wave of curvature; 'nodes': curvatures along the body
    length_m, half_width_m, half_height_m    l, and the section's half-axes a along e2, b along e3
    density_kg_m3, water_density_kg_m3
    c1 .. c4      axial, lateral, vertical and rolling drag; c5 .. c7 added mass lateral, vertical, rolling
    wake          'on' or 'off': whether the tail sheds one
    yaw_rad_m, yaw_growth_rad_m2, yaw_offset_rad_m
                  K_z = s(t) [(yaw + growth X) sin 2 pi (t / period - X / wavelength) + offset]
    pitch_rad_m, pitch_growth_rad_m2, pitch_offset_rad_m, pitch_lead_rad
                  K_y likewise, its sine ahead by the lead
    wavelength_m, period_s, ramp_s    of the wave and of its quintic start s(t)
    curvature_nodes, pitched          drive=nodes: how many, from head to tail; 'on': about e2 as well
    bandwidth_rad_s    how fast commands are followed, by a critically damped filter (the frequency: of first order)
    current_x_m_s, current_y_m_s, current_z_m_s    m/s, uniform, world
    gravity_m_s2
    nodes, points      along the body (at least 24, 24 a wavelength, or 6 a curvature node; as many as that if they are
                       not given), and of each cell: integrals of order 2 points - 2
    substeps           steps of Runge and Kutta's method in a plant's step
    """

    drive: str = "wave"
    length_m: float = 2.08
    half_width_m: float = 0.065
    half_height_m: float = 0.09
    density_kg_m3: float = 1000.0
    water_density_kg_m3: float = 1000.0
    c1: float = 0.01
    c2: float = 1.0
    c3: float = 1.0
    c4: float = 1.0
    c5: float = 1.0
    c6: float = 1.0
    c7: float = 1.0
    wake: str = "on"
    yaw_rad_m: float = 0.3
    yaw_growth_rad_m2: float = 1.2 / 2.08
    yaw_offset_rad_m: float = 0.0
    pitch_rad_m: float = 0.0
    pitch_growth_rad_m2: float = 0.0
    pitch_offset_rad_m: float = 0.0
    pitch_lead_rad: float = math.pi / 3.0
    wavelength_m: float = 2.08
    period_s: float = 1.0
    ramp_s: float = 1.0
    curvature_nodes: int = 7
    pitched: str = "off"
    bandwidth_rad_s: float = 20.0
    current_x_m_s: float = 0.0
    current_y_m_s: float = 0.0
    current_z_m_s: float = 0.0
    gravity_m_s2: float = 9.81
    nodes: int = 64
    points: int = 4
    substeps: int = 1


SPATIAL = {
    "yaw_offset_rad_m": 0.05, "pitch_rad_m": 0.1, "pitch_growth_rad_m2": 0.3 / 2.08, "pitch_offset_rad_m": 0.08,
    "pitched": "on",
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {"planar": {}, "spatial": SPATIAL}
CHOICES: dict[str, tuple[str, ...]] = {"drive": ("wave", "nodes"), "wake": ("on", "off"), "pitched": ("on", "off")}
_MAY_VANISH = {*(f"c{k}" for k in range(1, 8)), "water_density_kg_m3", "ramp_s", "gravity_m_s2"}
_SIGNED = {
    "yaw_rad_m", "yaw_growth_rad_m2", "yaw_offset_rad_m", "pitch_rad_m", "pitch_growth_rad_m2", "pitch_offset_rad_m",
    "pitch_lead_rad", "current_x_m_s", "current_y_m_s", "current_z_m_s",
}  # fmt: skip
_MOST = {
    **dict.fromkeys(("length_m", "half_width_m", "half_height_m"), 100.0),
    **dict.fromkeys((f"c{k}" for k in range(1, 8)), 100.0),
    **dict.fromkeys(("current_x_m_s", "current_y_m_s", "current_z_m_s"), 100.0),
    **dict.fromkeys(("yaw_rad_m", "yaw_growth_rad_m2", "yaw_offset_rad_m", "pitch_rad_m", "pitch_growth_rad_m2",
                     "pitch_offset_rad_m"), 1e3),
    "pitch_lead_rad": 2.0 * math.pi, "density_kg_m3": 3e4, "water_density_kg_m3": 2e4, "wavelength_m": 1e4,
    "period_s": 1e4, "ramp_s": 1e4, "curvature_nodes": 200, "bandwidth_rad_s": 1e5, "gravity_m_s2": 1e3,
    "nodes": 100_000, "points": 5, "substeps": 10_000,
}  # fmt: skip
SETTABLE = (
    "current_x_m_s", "current_y_m_s", "current_z_m_s", "c1", "c2", "c3", "c4", "gravity_m_s2", "bandwidth_rad_s",
    "yaw_rad_m", "yaw_growth_rad_m2", "pitch_rad_m", "pitch_growth_rad_m2",
)  # fmt: skip
"""What `set` may change while it runs."""


def body_of(p: ContinuousEel) -> CosseratBody:
    """The body, of one elliptic section."""
    section = Section(
        p.half_width_m, p.half_height_m, p.density_kg_m3, (p.c1, p.c2, p.c3), p.c4, (p.c7, p.c5, p.c6)
    )  # fmt: skip
    return CosseratBody("continuous_eel", p.length_m, section, p.water_density_kg_m3)


def drive_of(p: ContinuousEel) -> tuple[Field, tuple[Channel, ...]]:
    """Its strain field and the actuators of it."""
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
    most = 10.0 / p.period_s
    told = [
        (PHASE, Channel("frequency", "Hz", lower=-most, upper=most, neutral=1.0 / p.period_s)),
        (YAW_GAIN, Channel("yaw.gain", "", lower=-3.0, upper=3.0, neutral=1.0)),
        (YAW_OFFSET, Channel("yaw.offset", "rad/m", lower=-3.0, upper=3.0, neutral=p.yaw_offset_rad_m)),
    ]
    if pitched:
        told += [
            (PITCH_GAIN, Channel("pitch.gain", "", lower=-3.0, upper=3.0, neutral=1.0)),
            (PITCH_OFFSET, Channel("pitch.offset", "rad/m", lower=-3.0, upper=3.0, neutral=p.pitch_offset_rad_m)),
        ]
    return wave_field(values, [k for k, _ in told]), tuple(channel for _, channel in told)


def load(dt: float | None = None, preset: str | None = None, **given: Any) -> CosseratPlant:
    """The continuous eel as a plant (entry point 'continuous_eel'). Parameters: see ContinuousEel; presets 'planar'
    (the default) and 'spatial'.

    Actuators: `frequency`, `yaw.gain`, `yaw.offset` and, spatial, `pitch.gain`, `pitch.offset` of the wave; with
    drive=nodes `yaw1.curvature` and so on, rad/m. At the face body x is forward, y left, z up.
    """
    return _plant(_meshed(_checked(preset, given), given), dt, ahead=True)


def in_paper_frame(dt: float | None = None, preset: str | None = None, **given: Any) -> CosseratPlant:
    """The same plant with e1 from head to tail as its x: it swims towards -x. As few nodes as one likes."""
    return _plant(_checked(preset, given), dt, ahead=False)


def _checked(preset: str | None, given: dict[str, Any]) -> ContinuousEel:
    if preset is not None and preset not in PRESETS:
        raise UnknownNameError("continuous_eel preset", preset, PRESETS)
    p: ContinuousEel = build(
        ContinuousEel, {**PRESETS.get(preset or "", {}), **given}, CHOICES, _MAY_VANISH, _SIGNED, _MOST,
        robot="continuous_eel",
    )  # fmt: skip
    if p.curvature_nodes < 2:
        raise ModelError(f"continuous_eel: curvature_nodes must be >= 2, got {p.curvature_nodes}")
    return p


def _meshed(p: ContinuousEel, given: Mapping[str, Any]) -> ContinuousEel:
    """With as many nodes as its curvatures need: with fewer its work is off by more than 1 %."""
    waves = 6 * p.curvature_nodes if p.drive == "nodes" else math.ceil(24.0 * p.length_m / p.wavelength_m)
    least = max(24, waves)
    if p.nodes >= least:
        return p
    if "nodes" in given:
        raise ModelError(f"continuous_eel: nodes must be >= {least} for such curvatures, got {p.nodes}")
    return replace(p, nodes=least)


def _plant(p: ContinuousEel, dt: float | None, ahead: bool) -> CosseratPlant:
    field, channels = drive_of(p)
    return CosseratPlant(
        body_of(p), field, channels, step_of("continuous_eel", dt, 2e-3), p.substeps, p.nodes, p.points,
        (p.current_x_m_s, p.current_y_m_s, p.current_z_m_s), p.gravity_m_s2, p.wake == "on", p.bandwidth_rad_s, ahead,
        p, SETTABLE, _remake, _summary,
    )  # fmt: skip


def _remake(plant: CosseratPlant, given: Mapping[str, Any]) -> Remade:
    p: ContinuousEel = build(
        ContinuousEel, {**asdict(plant.parameters), **given}, CHOICES, _MAY_VANISH, _SIGNED, _MOST,
        robot="continuous_eel",
    )  # fmt: skip
    field, channels = drive_of(p)
    if len(channels) != len(plant.actuators):
        raise ModelError("set: continuous_eel: a pitching wave needs a robot built with pitched=on")
    current = (p.current_x_m_s, p.current_y_m_s, p.current_z_m_s)
    return Remade(p, body_of(p), field, current, p.gravity_m_s2, p.bandwidth_rad_s)


def _summary(plant: CosseratPlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Means over the whole periods that fit into the second half of the run."""
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
