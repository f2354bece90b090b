"""What a plant that is a tree tells of a state: energy, torques, and where described bodies are and how they move.

out  energy (J), wrench on a held base (6,), torques (n,), then POINT_OUT numbers a body: position (3,), quaternion (4,)
     to world, velocity and angular velocity (3,) each in its own frame, specific force (3,) m/s2 in its own frame (what
     an ideal accelerometer at its origin reads); then, if there is room, AUDIT numbers of rtmms.mechanism.audit
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.balance import energies
from rtmms.dynamics.recursion import place
from rtmms.jit import kernel
from rtmms.mechanism.audit import A_ELASTIC, A_FLUID, A_KINETIC, AUDIT, audit
from rtmms.mechanism.engage import engage_all
from rtmms.mechanism.equations import evaluate
from rtmms.model.layout import S_ACCELERATION, S_BIAS, S_GRAVITY, S_TWIST, S_WORLD_POS, S_WORLD_ROT
from rtmms.spatial import cross, scalar

O_ENERGY, O_WRENCH, O_TORQUE = 0, 1, 7
P_POSITION, P_QUATERNION, P_VELOCITY, P_ANGULAR, P_FORCE, POINT_OUT = 0, 3, 7, 10, 13, 16
POINT_WIDTH = 13
"""Of a body: row of the model, rotation by rows (9) and position (3) of its frame in the row's."""


@kernel(merged=True)
def account(system: Any, state: Any, rate: Any, points: Any, out: Any) -> None:
    """Evaluate the equations of motion at the state, and write `out`. rate (12 + 2 n,) scratch."""
    tree, law, hold, fluid, work = system
    topology, constant, gravity = tree[0], tree[1], tree[3]
    s, torque, q, qd = work[0], work[3], work[4], work[5]
    n = q.shape[0]
    engage_all(tree, system, state, hold[4], rate)
    evaluate(tree, law, hold, fluid, work, state, hold[4], 0.0, rate)
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
        body(s, points[i], out[first : first + POINT_OUT])
    first = O_TORQUE + n + POINT_OUT * points.shape[0]
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
def body(s: Any, point: Any, out: Any) -> None:
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
