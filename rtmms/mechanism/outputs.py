"""What a plant that is a tree tells of a state: of its base and joints, and any body asked for by 'BODY.quantity'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.dynamics.balance import energies
from rtmms.dynamics.recursion import place
from rtmms.errors import ModelError, UnknownNameError
from rtmms.jit import kernel
from rtmms.mechanism.audit import A_ELASTIC, A_FLUID, A_KINETIC, AUDIT, WORKS, audit
from rtmms.mechanism.body_actuators import spin_energy
from rtmms.mechanism.equations import evaluate
from rtmms.mechanism.tendons import tendon_energy
from rtmms.mechanism.unilateral import choose_contacts
from rtmms.memory import Layout, model, scratch
from rtmms.model.compiled import Model
from rtmms.model.layout import (
    BASE_FREE,
    PRISMATIC,
    S_ACCELERATION,
    S_BIAS,
    S_GRAVITY,
    S_TWIST,
    S_WORLD_POS,
    S_WORLD_ROT,
    T_KIND,
)  # fmt: skip
from rtmms.plant import Channel
from rtmms.spatial import Array, cross, scalar

O_ENERGY, O_WRENCH, O_TORQUE = 0, 1, 7
P_POSITION, P_QUATERNION, P_VELOCITY, P_ANGULAR, P_FORCE, POINT_OUT = 0, 3, 7, 10, 13, 16
POINT_WIDTH = 13
"""Of a body: row of the model, rotation by rows (9) and position (3) of its frame in the row's."""
OUTPUTS = Layout(
    "Outputs", scratch("rate", "12 + 2 * n"), model("points", "points", POINT_WIDTH), scratch("out", "out")
)
"""points: the bodies that are asked for.
out: energy (J), wrench on a held base (6,), torques (n,), then POINT_OUT numbers a body: position (3,), quaternion (4,)
to world, velocity and angular velocity (3,) each in its own frame, specific force (3,) m/s2 in its own frame (what an
ideal accelerometer at its origin reads); then, if there is room, AUDIT numbers of rtmms.mechanism.audit."""
OF_A_BODY = {
    "position": ("m", 3, "world", P_POSITION), "quaternion": ("", 4, "world", P_QUATERNION),
    "velocity": ("m/s", 3, "body", P_VELOCITY), "angular_velocity": ("rad/s", 3, "body", P_ANGULAR),
    "specific_force": ("m/s2", 3, "body", P_FORCE),
}  # fmt: skip
"""What any body tells: unit, size, frame, where it stands among its numbers."""


@dataclass(frozen=True, eq=False)
class Observed:
    """channels in order; points (m, POINT_WIDTH) bodies that `write_outputs` tells of; slices of `out` by output."""

    channels: tuple[Channel, ...]
    points: Array
    slices: dict[str, slice]
    chosen: frozenset[str] | None


def observed(
    model: Model, names: Sequence[str] | None, motors: int, audited: bool = False, limited: bool = False,
    tendons: int = 0,
) -> Observed:  # fmt: skip
    """Resolve the names of outputs; None for all of base and joints. motors: actuators on bodies; limited: joints with
    limits that are never passed.

    ModelError, UnknownNameError for what there is not.
    """
    told = (*_of_the_tree(model, motors, limited), *told_of_tendons(tendons), *_of_the_audit(audited))
    known = {channel.name: channel for channel in told}
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


def _of_the_tree(model: Model, motors: int, limited: bool) -> tuple[Channel, ...]:
    n = model.n
    kinds = {int(kind) for kind in model.topology[1 : n + 1, T_KIND]}
    angle, torque = ("m", "N") if kinds == {PRISMATIC} else ("rad, m", "N m, N") if len(kinds) > 1 else ("rad", "N m")
    rate = ", ".join(f"{unit}/s" for unit in angle.split(", "))
    joints: tuple[Any, ...] = () if n == 0 else (
        Channel("joint_position", angle, (n,)), Channel("joint_velocity", rate, (n,)),
        Channel("joint_torque", torque, (n,)), *((Channel("stop_torque", torque, (n,)),) if limited else ()),
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


def told_of_tendons(tendons: int) -> tuple[Channel, ...]:
    """Outputs of so many tendons."""
    units = {"tendon_length": "m", "tendon_rate": "m/s", "tendon_tension": "N"}
    each = (Channel(name, unit, (tendons,)) for name, unit in units.items())
    return (*each, Channel("tendon_lost", "J")) if tendons else ()


def _of_the_audit(audited: bool) -> tuple[Channel, ...]:
    stored = tuple(Channel(f"{name}_energy", "J") for name in ("kinetic", "elastic", "fluid"))
    works = ((Channel(f"{name}_power", "W"), Channel(f"{name}_work", "J")) for name in WORKS)
    return (*stored, *(channel for pair in works for channel in pair)) if audited else ()


@kernel(merged=True)
def write_outputs(system: Any) -> None:
    """Evaluate the equations of motion at the present state, and write system.outputs.out."""
    tree, work, told, state = system.tree, system.work, system.outputs, system.motion.vector
    topology, constant, gravity, start = tree.topology, tree.constant, tree.gravity, system.hold.start
    s, torque, q, qd = work.s, work.torque, work.q, work.qd
    rate, points, out = told.rate, told.points, told.out
    n = q.shape[0]
    choose_contacts(system, tree.ground, state, start, rate)
    evaluate(system, state, start, 0.0, rate)
    place(topology, state[0:3], state[3:7], s)
    energies(constant, gravity, q, qd, s, out[0:3])
    elastic, weight = out[2], out[1]
    out[O_ENERGY] = (out[0] + out[1]) + out[2]
    for k in range(6):  # from outside on a base that is held
        out[O_WRENCH + k] = s[0, S_BIAS + k]
    for j in range(n):
        out[O_TORQUE + j] = torque[j]
    for i in range(points.shape[0]):
        first = O_TORQUE + n + POINT_OUT * i
        of_body(s, points[i], out[first : first + POINT_OUT])
    first = O_TORQUE + n + POINT_OUT * points.shape[0]
    out[O_ENERGY] += tendon_energy(system.tendons)
    out[O_ENERGY] += spin_energy(system.pushes, system.pushes.momentum, s)
    if out.shape[0] > first:
        audit(system, elastic, out[first : first + AUDIT])
        out[O_ENERGY] = out[first + A_KINETIC] + out[first + A_ELASTIC] + out[first + A_FLUID] + weight


@scalar
def own(point: Any, x: Any, y: Any, z: Any) -> Any:
    """Row frame -> the body's own."""
    return (
        point[1] * x + point[4] * y + point[7] * z,
        point[2] * x + point[5] * y + point[8] * z,
        point[3] * x + point[6] * y + point[9] * z,
    )


@kernel(merged=True)
def of_body(s: Any, point: Any, out: Any) -> None:
    """POINT_OUT numbers of one described body."""
    j = int(point[0])
    px, py, pz = point[10], point[11], point[12]
    for k in range(3):
        r = S_WORLD_ROT + 3 * k
        out[P_POSITION + k] = s[j, S_WORLD_POS + k] + s[j, r] * px + s[j, r + 1] * py + s[j, r + 2] * pz
    quaternion(s, j, point, out)
    wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
    cx, cy, cz = cross(wx, wy, wz, px, py, pz)
    vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
    out[P_VELOCITY], out[P_VELOCITY + 1], out[P_VELOCITY + 2] = own(point, vx, vy, vz)
    out[P_ANGULAR], out[P_ANGULAR + 1], out[P_ANGULAR + 2] = own(point, wx, wy, wz)
    # a - g = V' + W' x p + W x (V + W x p) - g
    ax, ay, az = cross(s[j, S_ACCELERATION + 3], s[j, S_ACCELERATION + 4], s[j, S_ACCELERATION + 5], px, py, pz)
    bx, by, bz = cross(wx, wy, wz, vx, vy, vz)
    fx = s[j, S_ACCELERATION] + ax + bx - s[j, S_GRAVITY]
    fy = s[j, S_ACCELERATION + 1] + ay + by - s[j, S_GRAVITY + 1]
    fz = s[j, S_ACCELERATION + 2] + az + bz - s[j, S_GRAVITY + 2]
    out[P_FORCE], out[P_FORCE + 1], out[P_FORCE + 2] = own(point, fx, fy, fz)


@kernel
def quaternion(s: Any, j: int, point: Any, out: Any) -> None:
    """(w x y z), w >= 0, of the body's attitude in the world: the largest of its four squares first (Shepperd)."""
    w = S_WORLD_ROT
    # columns of the body's axes in the world
    xx, xy, xz = own(point, s[j, w], s[j, w + 1], s[j, w + 2])
    yx, yy, yz = own(point, s[j, w + 3], s[j, w + 4], s[j, w + 5])
    zx, zy, zz = own(point, s[j, w + 6], s[j, w + 7], s[j, w + 8])
    a, b, c, d = 1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz
    if a >= b and a >= c and a >= d:
        e, f, g, h = a, zy - yz, xz - zx, yx - xy
    elif b >= c and b >= d:
        e, f, g, h = zy - yz, b, yx + xy, xz + zx
    elif c >= d:
        e, f, g, h = xz - zx, yx + xy, c, zy + yz
    else:
        e, f, g, h = yx - xy, xz + zx, zy + yz, d
    size = 1.0 / np.sqrt(e * e + f * f + g * g + h * h)
    size = -size if e < 0.0 else size
    q = P_QUATERNION
    out[q], out[q + 1], out[q + 2], out[q + 3] = e * size, f * size, g * size, h * size
