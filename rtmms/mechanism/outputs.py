"""Which outputs a plant that is a tree has: of its base and joints, and of any body asked for by 'BODY.quantity'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.errors import ModelError, UnknownNameError
from rtmms.mechanism.account import (
    O_TORQUE,
    P_ANGULAR,
    P_FORCE,
    P_POSITION,
    P_QUATERNION,
    P_VELOCITY,
    POINT_OUT,
    POINT_WIDTH,
)
from rtmms.mechanism.audit import WORKS
from rtmms.model.compiled import Model
from rtmms.model.layout import BASE_FREE, PRISMATIC, T_KIND
from rtmms.plant import Channel
from rtmms.spatial import Array

OF_A_BODY = {
    "position": ("m", 3, "world", P_POSITION), "quaternion": ("", 4, "world", P_QUATERNION),
    "velocity": ("m/s", 3, "body", P_VELOCITY), "angular_velocity": ("rad/s", 3, "body", P_ANGULAR),
    "specific_force": ("m/s2", 3, "body", P_FORCE),
}  # fmt: skip
"""What any body tells: unit, size, frame, where it stands among its numbers (rtmms.mechanism.account)."""


@dataclass(frozen=True, eq=False)
class Observed:
    """channels in order; points (m, POINT_WIDTH) bodies that `account` tells of; slices of `out` by output."""

    channels: tuple[Channel, ...]
    points: Array
    slices: dict[str, slice]
    chosen: frozenset[str] | None


def observed(model: Model, names: Sequence[str] | None, motors: int, audited: bool = False) -> Observed:
    """Resolve the names of outputs; None for all of base and joints. motors: actuators on bodies.

    ModelError, UnknownNameError for what there is not.
    """
    known = {channel.name: channel for channel in (*_of_the_tree(model, motors), *_of_the_audit(audited))}
    if names is None:
        return Observed(tuple(known.values()), np.zeros((0, POINT_WIDTH)), {}, None)
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{model.name}: outputs: expected a list of names, got {names!r}")
    bodies: list[str] = []
    channels: list[Channel] = []
    slices: dict[str, slice] = {}
    for name in names:
        if name in slices or any(channel.name == name for channel in channels):
            raise ModelError(f"{model.name}: outputs: '{name}' is named twice")
        if name in known:
            channels.append(known[name])
            continue
        body, _, quantity = name.rpartition(".")
        if body not in model.body_names or quantity not in OF_A_BODY:
            whole = [*known, *(f"{one}.{what}" for one in model.body_names for what in OF_A_BODY)]
            raise UnknownNameError(f"output of {model.name}", name, whole)
        if body not in bodies:
            bodies.append(body)
        unit, size, frame, at = OF_A_BODY[quantity]
        first = O_TORQUE + model.n + POINT_OUT * bodies.index(body) + at
        channels.append(Channel(name, unit, (size,), frame))
        slices[name] = slice(first, first + size)
    points = np.zeros((len(bodies), POINT_WIDTH))
    for row, body in zip(points, bodies, strict=True):
        k = model.body(body)
        row[0], row[1:10], row[10:] = model.carrier[k], model.offset_rotation[k].ravel(), model.offset_position[k]
    return Observed(tuple(channels), points, slices, frozenset(names))


def _of_the_tree(model: Model, motors: int) -> tuple[Channel, ...]:
    n = model.n
    kinds = {int(kind) for kind in model.topology[1 : n + 1, T_KIND]}
    angle, torque = ("m", "N") if kinds == {PRISMATIC} else ("rad, m", "N m, N") if len(kinds) > 1 else ("rad", "N m")
    rate = ", ".join(f"{unit}/s" for unit in angle.split(", "))
    joints: tuple[Any, ...] = () if n == 0 else (
        Channel("joint_position", angle, (n,)), Channel("joint_velocity", rate, (n,)),
        Channel("joint_torque", torque, (n,)),
    )  # fmt: skip
    return (
        Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
        Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
        *joints, Channel("power", "W"), Channel("work", "J"), Channel("energy", "J"),
        *(() if model.base_mode == BASE_FREE else (Channel("base_wrench", "N, N m", (6,), "body"),)),
        *(() if motors == 0 else (Channel("motor", "", (motors,)),)),
        *_of_the_ground(len(model.ground.rows)),
    )  # fmt: skip


def _of_the_ground(rows: int) -> tuple[Channel, ...]:
    return (Channel("reaction", "N, N m", (rows,)), Channel("lost", "J")) if rows else ()


def _of_the_audit(audited: bool) -> tuple[Channel, ...]:
    stored = tuple(Channel(f"{name}_energy", "J") for name in ("kinetic", "elastic", "fluid"))
    works = ((Channel(f"{name}_power", "W"), Channel(f"{name}_work", "J")) for name in WORKS)
    return (*stored, *(channel for pair in works for channel in pair)) if audited else ()
