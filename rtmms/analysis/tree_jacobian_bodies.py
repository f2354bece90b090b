"""Slopes of the accelerations of a tree by all that they depend on, at an evaluation that was just made.

The equations of motion in residual form: no force is left at a free joint, nor at a free base, at given accelerations.
Each body's wrench is M a + beta(eta, pose) in its own axes, so that a change adds M da + B deta + P dxi to it.

In the base's axes about its origin, all bodies that joint j carries have the same d xi = s and d eta = ad_eta_i s by
q_j (i: its parent), seen from the moving bodies. Their d a_k is c - ad_eta_k d eta with the same c. So sums of M, B - M
ad_eta and P over the carried bodies suffice (Carpentier and Mansard 2018, Featherstone 2008). The changes of the
fluid's wrench on a body with its twist and its pose come from differences, for all bodies at once.
"""

from __future__ import annotations

import math
from typing import Any

from rtmms.base.jit import kernel
from rtmms.base.memory import FLAG, INTEGER, Layout, model, number, scratch, step_input
from rtmms.base.spatial import PACKED, cross
from rtmms.fluids.immersed import act
from rtmms.mechanism.body_actuators import CHANNEL, LAG, ROW, WRENCH, lag_response, value_of
from rtmms.model.layout import (
    C_DAMPING,
    C_INERTIA,
    C_ROTOR,
    C_STIFFNESS,
    C_WEIGHT,
    C_WEIGHT_MOMENT,
    REVOLUTE,
    S_ACCELERATION,
    S_GRAVITY,
    S_HELD,
    S_POS,
    S_ROT,
    S_TWIST,
    S_WORLD_POS,
    S_WORLD_ROT,
    S_WRENCH,
    T_KIND,
    T_PARENT,
)

# Memory of the derivatives of a tree's step.


POSE, TWIST, JOINTS = 0, 6, 12
"""Rows of tangents: pose error, twist, then q, qd and the drive of each joint, and the lagged commands of actuators on
bodies and their commands.
"""
VALUE, RATE, TARGET, COMMAND = range(4)
FOLLOWED = 8
"""Columns of a joint's reference: value, rate and target of the filter, and command, of its offset and of its gain."""

TREE_JACOBIAN = Layout(
    "TreeJacobian",
    model("place", "n", 2, dtype=INTEGER), model("followed", "n", FOLLOWED, dtype=INTEGER),
    model("torques", "n", dtype=INTEGER), model("motors", "pushes", 2, dtype=INTEGER),
    model("free", "unknown", dtype=INTEGER), model("reach", "commands"),
    model("far", 6), number("base", INTEGER), number("states", INTEGER), number("watered", FLAG),
    step_input("origin", "wide"), step_input("input_commands", "commands"), step_input("reference", 7),
    scratch("a_and_b", "words", "columns"), scratch("start", "rows", "columns"), scratch("at", "rows", "columns"),
    scratch("rates", "stages + 1", "moving", "columns"), scratch("solved", "unknown + 7", "columns"),
    scratch("before", "moving", "columns"), scratch("mixed", "moving", "columns"),
    scratch("turned", "parts", 3, "columns"), scratch("quaternions", "parts", 4),
    scratch("shares", "rows", 6), scratch("chosen", "rows", dtype=INTEGER), scratch("to", 6, dtype=INTEGER),
    scratch("residual", "unknown", "rows"), scratch("inertia", "unknown", "unknown"),
    scratch("index", "n", dtype=INTEGER),
    scratch("saved_rows", "bodies", 18), scratch("by_twist", "bodies", 36), scratch("by_pose", "bodies", 36),
    scratch("frame", "bodies", 12), scratch("eta", "bodies", 6), scratch("axis", "bodies", 6),
    scratch("a", "bodies", 6),
    scratch("m", "bodies", 36), scratch("d", "bodies", 36), scratch("p", "bodies", 36), scratch("f", "bodies", 6),
    scratch("c", "bodies", 6), scratch("z", "bodies", 6), scratch("square", 4, 6, 6), scratch("vector", 4, 6),
    scratch("turn", 4, 9), scratch("slope", 2, 4, 3), scratch("weight", "n", 2), scratch("cut", "commands"),
)  # fmt: skip
"""Record of A and B of a tree's step.

- place: columns of q and qd of each joint, -1 of an imposed one
- free: joint of each unknown
- followed: see FOLLOWED, -1 without a column
- torques: columns of the commands of torques, -1 for none
- motors: columns of the lagged command and of the command of each actuator on a body, -1 for none
- reach, far: displacements of commands and twists (m, rad: poses) to either side
- base: 6 where the base is free, else 0
- watered: whether a fluid acts, or a spinning rotor
- a_and_b: (states, columns) A and B side by side
- start, at, rates: tangents, see POSE
- residual: (unknown, rows) slopes of the unknown accelerations
- inertia: (unknown, unknown) the matrix before them
- m, d, p, f: of each body, then of all that it carries, in the base's axes about its origin: inertia, slopes of the
  wrench by twist and by pose, the wrench
"""


@kernel
def water_slopes(fluid: Any, time: float, s: Any, far: Any, room: Any) -> None:
    """Compute slopes of the fluid's wrench on each body by its own twist and, in a fluid that moves, by its own pose.

    Central differences; s is left as it was.

    Parameters
    ----------
    fluid : Any
        Record of the fluid.
    time : float
        Time, s.
    s : Any
        (bodies, .) rows of the evaluation.
    far : Any
        (6,) displacements of twists and poses.
    room : Any
        Record TREE_JACOBIAN.
    """
    stored, by_twist, by_pose, rows = room.saved_rows, room.by_twist, room.by_pose, s.shape[0]
    for j in range(rows):
        for k in range(6):
            stored[j, k] = s[j, S_WRENCH + k]
    for m in range(6):
        for side in range(2):
            by = far[m] if side == 0 else -far[m]
            for j in range(rows):
                stored[j, 6] = s[j, S_TWIST + m]
                stored[j, 7 + side] = s[j, S_TWIST + m] + by
                s[j, S_TWIST + m] = stored[j, 7 + side]
                for k in range(6):
                    s[j, S_WRENCH + k] = 0.0
            act(fluid, time, s)
            for j in range(rows):
                s[j, S_TWIST + m] = stored[j, 6]
                for k in range(6):
                    by_twist[j, 6 * k + m] = s[j, S_WRENCH + k] if side == 0 else (
                        (by_twist[j, 6 * k + m] - s[j, S_WRENCH + k]) / (stored[j, 7] - stored[j, 8])
                    )  # fmt: skip
    if fluid.moving:
        for m in range(6):
            for side in range(2):
                by = far[m] if side == 0 else -far[m]
                for j in range(rows):
                    for k in range(12):
                        stored[j, 6 + k] = s[j, S_WORLD_POS + k]
                    _displace(s, j, m, by)
                    for k in range(6):
                        s[j, S_WRENCH + k] = 0.0
                act(fluid, time, s)
                for j in range(rows):
                    for k in range(12):
                        s[j, S_WORLD_POS + k] = stored[j, 6 + k]
                    for k in range(6):
                        by_pose[j, 6 * k + m] = s[j, S_WRENCH + k] if side == 0 else (
                            (by_pose[j, 6 * k + m] - s[j, S_WRENCH + k]) / (2.0 * far[m])
                        )  # fmt: skip
    for j in range(rows):
        for k in range(6):
            s[j, S_WRENCH + k] = stored[j, k]


@kernel
def _displace(s: Any, j: int, m: int, by: float) -> None:
    """Displace a body's world pose along or about one of its own axes."""
    r = S_WORLD_ROT
    if m < 3:
        for k in range(3):
            s[j, S_WORLD_POS + k] += by * s[j, r + 3 * k + m]
    else:
        x, y = (m - 2) % 3, (m - 1) % 3
        c, sine = math.cos(by), math.sin(by)
        for k in range(3):
            a, b = s[j, r + 3 * k + x], s[j, r + 3 * k + y]
            s[j, r + 3 * k + x], s[j, r + 3 * k + y] = c * a + sine * b, c * b - sine * a


@kernel
def twist_cross(v: Any, j: int, u: Any, i: int, out: Any, o: int) -> None:
    """Compute out[o] = ad_v[j] u[i].

    Parameters
    ----------
    v, u : Any
        (., 6) twists.
    j, i : int
        Their rows.
    out : Any
        (., 6) result.
    o : int
        Its row.
    """
    a, b, c, x, y, z = v[j, 0], v[j, 1], v[j, 2], v[j, 3], v[j, 4], v[j, 5]
    d, e, f, p, q, r = u[i, 0], u[i, 1], u[i, 2], u[i, 3], u[i, 4], u[i, 5]
    out[o, 0] = y * f - z * e + b * r - c * q
    out[o, 1] = z * d - x * f + c * p - a * r
    out[o, 2] = x * e - y * d + a * q - b * p
    out[o, 3], out[o, 4], out[o, 5] = y * r - z * q, z * p - x * r, x * q - y * p


@kernel
def add_wrench_cross(v: Any, j: int, f: Any, i: int, out: Any, o: int) -> None:
    """Add to a wrench: out[o] += -ad_v[j]^T f[i].

    Parameters
    ----------
    v : Any
        (., 6) twists.
    j : int
        Row of the twist.
    f : Any
        (., 6) wrenches.
    i : int
        Row of the wrench.
    out : Any
        (., 6) result.
    o : int
        Its row.
    """
    a, b, c, x, y, z = v[j, 0], v[j, 1], v[j, 2], v[j, 3], v[j, 4], v[j, 5]
    d, e, g, p, q, r = f[i, 0], f[i, 1], f[i, 2], f[i, 3], f[i, 4], f[i, 5]
    out[o, 0] += y * g - z * e
    out[o, 1] += z * d - x * g
    out[o, 2] += x * e - y * d
    out[o, 3] += y * r - z * q + b * g - c * e
    out[o, 4] += z * p - x * r + c * d - a * g
    out[o, 5] += x * q - y * p + a * e - b * d


@kernel
def _add_product(m: Any, j: int, v: Any, i: int, factor: float, out: Any, o: int) -> None:
    """Compute out[o] += factor m[j] v[i], m (., 36)."""
    for r in range(6):
        total = 0.0
        for k in range(6):
            total += m[j, 6 * r + k] * v[i, k]
        out[o, r] += factor * total


@kernel
def _product_of_transposed(m: Any, j: int, v: Any, i: int, out: Any, o: int) -> None:
    """Compute out[o] = m[j]^T v[i]."""
    for r in range(6):
        out[o, r] = 0.0
    for k in range(6):
        for r in range(6):
            out[o, r] += m[j, 6 * k + r] * v[i, k]


@kernel
def _in_base_axes(frame: Any, j: int, square: Any, out: Any, factor: float) -> None:
    """Compute out[j] += factor T^T X T, X = square[0].

    X is a body's 6 x 6 slope of a wrench by a motion; the result is in the base's axes.
    """
    x, t, half = square[0], square[1], square[2]
    px, py, pz = frame[j, 9], frame[j, 10], frame[j, 11]
    for a in range(3):  # T = (R^T, -R^T p^; 0, R^T)
        rx, ry, rz = frame[j, a], frame[j, 3 + a], frame[j, 6 + a]
        t[a, 0], t[a, 1], t[a, 2] = rx, ry, rz
        t[a, 3], t[a, 4], t[a, 5] = rz * py - ry * pz, rx * pz - rz * px, ry * px - rx * py
        t[3 + a, 0], t[3 + a, 1], t[3 + a, 2] = 0.0, 0.0, 0.0
        t[3 + a, 3], t[3 + a, 4], t[3 + a, 5] = rx, ry, rz
    for a in range(6):
        for b in range(6):
            half[a, b] = 0.0
        for k in range(6):
            for b in range(6):
                half[a, b] += x[a, k] * t[k, b]
    for k in range(6):
        for a in range(6):
            for b in range(6):
                out[j, 6 * a + b] += factor * t[k, a] * half[k, b]


@kernel
def _carried(source: Any, j: int, at: int, frame: Any, out: Any) -> None:
    """Write out[j], a twist or an acceleration of body j, in the base's axes about its origin."""
    for k in range(3):
        a, b, c = frame[j, 3 * k], frame[j, 3 * k + 1], frame[j, 3 * k + 2]
        out[j, k] = a * source[j, at] + b * source[j, at + 1] + c * source[j, at + 2]
        out[j, 3 + k] = a * source[j, at + 3] + b * source[j, at + 4] + c * source[j, at + 5]
    px, py, pz = frame[j, 9], frame[j, 10], frame[j, 11]
    out[j, 0] += py * out[j, 5] - pz * out[j, 4]
    out[j, 1] += pz * out[j, 3] - px * out[j, 5]
    out[j, 2] += px * out[j, 4] - py * out[j, 3]


@kernel
def _bodies(tree: Any, s: Any, moving: bool, watered: bool, room: Any) -> None:
    """Compute each body's m, d, p, f, and frame, eta, axis, a; d is B - M ad_eta."""
    topology, constant, frame, eta, axis, a = tree.topology, tree.constant, room.frame, room.eta, room.axis, room.a
    m, d, p, f, square, vector = room.m, room.d, room.p, room.f, room.square, room.vector
    gx, gy, gz = s[0, S_GRAVITY], s[0, S_GRAVITY + 1], s[0, S_GRAVITY + 2]
    for j in range(s.shape[0]):
        if j == 0:
            for k in range(12):
                frame[0, k] = 1.0 if k == 0 or k == 4 or k == 8 else 0.0
        else:
            i = topology[j, T_PARENT]
            for k in range(3):
                x, y, z = frame[i, 3 * k], frame[i, 3 * k + 1], frame[i, 3 * k + 2]
                for c in range(3):
                    frame[j, 3 * k + c] = x * s[j, S_ROT + c] + y * s[j, S_ROT + 3 + c] + z * s[j, S_ROT + 6 + c]
                frame[j, 9 + k] = frame[i, 9 + k] + x * s[j, S_POS] + y * s[j, S_POS + 1] + z * s[j, S_POS + 2]
            zx, zy, zz = frame[j, 2], frame[j, 5], frame[j, 8]
            px, py, pz = frame[j, 9], frame[j, 10], frame[j, 11]
            if topology[j, T_KIND] == REVOLUTE:
                axis[j, 0], axis[j, 1], axis[j, 2] = py * zz - pz * zy, pz * zx - px * zz, px * zy - py * zx
                axis[j, 3], axis[j, 4], axis[j, 5] = zx, zy, zz
            else:
                axis[j, 0], axis[j, 1], axis[j, 2] = zx, zy, zz
                axis[j, 3] = axis[j, 4] = axis[j, 5] = 0.0
        _carried(s, j, S_TWIST, frame, eta)
        _carried(s, j, S_ACCELERATION, frame, a)
        for k in range(36):
            m[j, k] = d[j, k] = p[j, k] = 0.0
        for r in range(6):
            for c in range(6):
                square[0, r, c] = constant[j, C_INERTIA + PACKED[r, c]]
        _in_base_axes(frame, j, square, m, 1.0)
        if watered:
            for r in range(6):
                for c in range(6):
                    square[0, r, c] = room.by_twist[j, 6 * r + c]
            _in_base_axes(frame, j, square, d, -1.0)
            if moving:
                for r in range(6):
                    for c in range(6):
                        square[0, r, c] = room.by_pose[j, 6 * r + c]
                _in_base_axes(frame, j, square, p, -1.0)
        # K = M ad_eta; -(K + K^T) and what turns with the body's momentum
        vx, vy, vz, wx, wy, wz = eta[j, 0], eta[j, 1], eta[j, 2], eta[j, 3], eta[j, 4], eta[j, 5]
        for r in range(6):
            b, c = m[j, 6 * r : 6 * r + 3], m[j, 6 * r + 3 : 6 * r + 6]
            square[0, r, 0], square[0, r, 1], square[0, r, 2] = (
                b[1] * wz - b[2] * wy, b[2] * wx - b[0] * wz, b[0] * wy - b[1] * wx,
            )  # fmt: skip
            square[0, r, 3] = b[1] * vz - b[2] * vy + c[1] * wz - c[2] * wy
            square[0, r, 4] = b[2] * vx - b[0] * vz + c[2] * wx - c[0] * wz
            square[0, r, 5] = b[0] * vy - b[1] * vx + c[0] * wy - c[1] * wx
        for r in range(6):
            for c in range(6):
                d[j, 6 * r + c] -= square[0, r, c] + square[0, c, r]
        for k in range(6):
            vector[0, k] = f[j, k] = 0.0
        _add_product(m, j, eta, j, 1.0, vector, 0)
        _add_skew(d, j, 3, -1.0, vector[0, 0], vector[0, 1], vector[0, 2])
        _add_skew(d, j, 18, -1.0, vector[0, 0], vector[0, 1], vector[0, 2])
        _add_skew(d, j, 21, -1.0, vector[0, 3], vector[0, 4], vector[0, 5])
        # M a - ad_eta^T M eta - weight - outside wrench
        _add_product(m, j, a, j, 1.0, f, j)
        add_wrench_cross(eta, j, vector, 0, f, j)
        mass = constant[j, C_WEIGHT]
        h = C_WEIGHT_MOMENT
        hx, hy, hz = constant[j, h], constant[j, h + 1], constant[j, h + 2]
        for k in range(3):
            x, y, z = frame[j, 3 * k], frame[j, 3 * k + 1], frame[j, 3 * k + 2]
            vector[1, k] = x * hx + y * hy + z * hz + mass * frame[j, 9 + k]
            vector[2, k] = x * s[j, S_WRENCH] + y * s[j, S_WRENCH + 1] + z * s[j, S_WRENCH + 2]
            vector[2, 3 + k] = x * s[j, S_WRENCH + 3] + y * s[j, S_WRENCH + 4] + z * s[j, S_WRENCH + 5]
        hx, hy, hz = vector[1, 0], vector[1, 1], vector[1, 2]
        fx, fy, fz = vector[2, 0], vector[2, 1], vector[2, 2]
        px, py, pz = frame[j, 9], frame[j, 10], frame[j, 11]
        f[j, 0] -= fx + mass * gx
        f[j, 1] -= fy + mass * gy
        f[j, 2] -= fz + mass * gz
        f[j, 3] -= vector[2, 3] + py * fz - pz * fy + hy * gz - hz * gy
        f[j, 4] -= vector[2, 4] + pz * fx - px * fz + hz * gx - hx * gz
        f[j, 5] -= vector[2, 5] + px * fy - py * fx + hx * gy - hy * gx
        # of the weight in the body's axes: m g x theta, h x (g x theta) = (g h^T - (h . g) 1) theta
        _add_skew(p, j, 3, -mass, gx, gy, gz)
        hg = hx * gx + hy * gy + hz * gz
        for r in range(3):
            g = gx if r == 0 else gy if r == 1 else gz
            p[j, 18 + 6 * r + 3] -= g * hx
            p[j, 18 + 6 * r + 4] -= g * hy
            p[j, 18 + 6 * r + 5] -= g * hz
            p[j, 18 + 6 * r + 3 + r] += hg


@kernel
def _add_skew(m: Any, j: int, at: int, factor: float, x: float, y: float, z: float) -> None:
    """Add factor (x, y, z)^ to the 3 x 3 block of a 6 x 6 matrix m[j] that begins at that number."""
    x, y, z = factor * x, factor * y, factor * z
    m[j, at + 1] -= z
    m[j, at + 2] += y
    m[j, at + 6] += z
    m[j, at + 8] -= x
    m[j, at + 12] -= y
    m[j, at + 13] += x


@kernel
def _dot(a: Any, i: int, b: Any, j: int) -> float:
    total = 0.0
    for k in range(6):
        total += a[i, k] * b[j, k]
    return total


@kernel
def acceleration_slopes(system: Any, room: Any, time: float, implicit: float) -> None:
    """Compute slopes of the unknown accelerations in room.residual: of a free base and of the free joints.

    The call follows an evaluation at that time, with the same `implicit`. Columns: see `POSE` in
    rtmms.analysis.tree_jacobian_bodies; of joints q, qd, and the torque of a free one or the acceleration of an imposed
    one; then the lagged commands.

    Parameters
    ----------
    system : Any
        Record of the tree's step.
    room : Any
        Record TREE_JACOBIAN.
    time : float
        Time, s.
    implicit : float
        Share of the implicit terms, as in the evaluation.
    """
    tree, law, fluid, work, pushes, hold = (
        system.tree,
        system.law,
        system.fluid,
        system.work,
        system.pushes,
        system.hold,
    )
    topology, constant, imposed, s, qd = tree.topology, tree.constant, tree.imposed, work.s, work.qd
    n, base, free, index = qd.shape[0], room.base, room.free, room.index
    m, d, p, f, axis, eta, a, c, z = room.m, room.d, room.p, room.f, room.axis, room.eta, room.a, room.c, room.z
    residual, inertia, vector = room.residual, room.inertia, room.vector
    if room.watered:
        water_slopes(fluid, time, s, room.far, room)
        _spin_slopes(pushes, pushes.momentum, time - hold.start, room.by_twist)
    _bodies(tree, s, fluid.moving, room.watered, room)
    for j in range(n, 0, -1):
        i = topology[j, T_PARENT]
        for k in range(36):
            m[i, k] += m[j, k]
            d[i, k] += d[j, k]
            p[i, k] += p[j, k]
        for k in range(6):
            f[i, k] += f[j, k]
    residual[:] = 0.0
    inertia[:] = 0.0
    for u in range(base, free.shape[0]):
        index[free[u]] = u
    q0, v0, x0 = JOINTS, JOINTS + n, JOINTS + 2 * n
    if base > 0:
        for k in range(6):  # ad_eta e_k
            for r in range(6):
                vector[0, r] = 1.0 if r == k else 0.0
                vector[2, r] = 0.0
            twist_cross(eta, 0, vector, 0, vector, 1)
            _add_product(m, 0, vector, 1, 1.0, vector, 2)
            for r in range(6):
                inertia[r, k] = m[0, 6 * r + k]
                residual[r, k] = p[0, 6 * r + k]
                residual[r, 6 + k] = vector[2, r] + d[0, 6 * r + k]
    for j in range(1, n + 1):
        i = topology[j, T_PARENT]
        twist_cross(eta, i, axis, j, z, j)
        twist_cross(a, i, axis, j, c, j)
        twist_cross(z, j, eta, i, vector, 0)
        for k in range(6):
            c[j, k] -= vector[0, k]
            vector[1, k] = vector[2, k] = vector[3, k] = 0.0
        # what all that it carries then shows: by q, by qd, and by qdd
        _add_product(m, j, c, j, 1.0, vector, 1)
        _add_product(d, j, z, j, 1.0, vector, 1)
        _add_product(p, j, axis, j, 1.0, vector, 1)
        add_wrench_cross(axis, j, f, j, vector, 1)
        _add_product(m, j, z, j, 2.0, vector, 2)
        _add_product(d, j, axis, j, 1.0, vector, 2)
        _add_product(m, j, axis, j, 1.0, vector, 3)
        is_imposed = imposed[j - 1]
        for r in range(base):
            residual[r, q0 + j - 1], residual[r, v0 + j - 1] = vector[1, r], vector[2, r]
            if is_imposed:
                residual[r, x0 + j - 1] = vector[3, r]
            else:
                inertia[r, index[j - 1]] = vector[3, r]
                inertia[index[j - 1], r] = vector[3, r]
        while i > 0:
            if not imposed[i - 1]:
                u = index[i - 1]
                residual[u, q0 + j - 1] = _dot(axis, i, vector, 1)
                residual[u, v0 + j - 1] = _dot(axis, i, vector, 2)
                if is_imposed:
                    residual[u, x0 + j - 1] = _dot(axis, i, vector, 3)
            i = topology[i, T_PARENT]
        if is_imposed:
            continue
        u = index[j - 1]
        _product_of_transposed(d, j, axis, j, vector, 1)
        _product_of_transposed(p, j, axis, j, vector, 2)
        i = j
        while i > 0:
            residual[u, q0 + i - 1] = _dot(vector, 3, c, i) + _dot(vector, 1, z, i) + _dot(vector, 2, axis, i)
            residual[u, v0 + i - 1] = 2.0 * _dot(vector, 3, z, i) + _dot(vector, 1, axis, i)
            by_rate = _dot(vector, 3, axis, i)
            if imposed[i - 1]:
                residual[u, x0 + i - 1] = by_rate
            else:
                inertia[u, index[i - 1]] = by_rate
                inertia[index[i - 1], u] = by_rate
            i = topology[i, T_PARENT]
        if base > 0:
            for k in range(6):
                residual[u, k] = vector[2, k]
                residual[u, 6 + k] = vector[1, k]
            # m^T ad_eta = (ad_eta^T m)^T
            for r in range(6):
                vector[0, r] = 0.0
            add_wrench_cross(eta, 0, vector, 3, vector, 0)
            for k in range(6):
                residual[u, 6 + k] -= vector[0, k]
        k_, c_ = constant[j, C_STIFFNESS] + law.kp[j - 1], constant[j, C_DAMPING] + law.kd[j - 1]
        residual[u, q0 + j - 1] += k_
        residual[u, v0 + j - 1] += c_ + implicit * k_
        residual[u, x0 + j - 1] = -1.0
        inertia[u, u] += (
            constant[j, C_ROTOR] + implicit * (constant[j, C_DAMPING] + implicit * constant[j, C_STIFFNESS])
            + s[j, S_HELD]
        )  # fmt: skip
    _push_slopes(system, pushes.momentum, room, x0 + n, time - hold.start)
    _solve(inertia, residual)


@kernel
def _push_slopes(system: Any, momentum: Any, room: Any, first: int, elapsed: float) -> None:
    """Compute the columns of actuators on bodies, from `first` on.

    They are by the lagged commands, and by those of spinning rotors.

    `momentum` is pushes.momentum, an argument so that it is known when compiled.
    """
    pushes, s, vector = system.pushes, system.work.s, room.vector
    numbers, count = pushes.numbers, pushes.numbers.shape[0]
    for b in range(count):
        j, channel, tau = int(numbers[b, ROW]), int(numbers[b, CHANNEL]), numbers[b, LAG]
        x, by = lag_response(pushes.motor[b], pushes.command[channel], tau, elapsed), room.reach[channel]
        slope = (value_of(numbers, pushes.curve, b, x + by) - value_of(numbers, pushes.curve, b, x - by)) / (2.0 * by)
        for k in range(6):
            vector[0, k] = slope * numbers[b, WRENCH + k]
        if momentum is not None:
            hx, hy, hz = momentum[b, 0], momentum[b, 1], momentum[b, 2]
            if hx != 0.0 or hy != 0.0 or hz != 0.0:  # -x W x h - h x', tau x' = command - x
                cx, cy, cz = cross(s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5], hx, hy, hz)
                vector[0, 3] += hx / tau - cx
                vector[0, 4] += hy / tau - cy
                vector[0, 5] += hz / tau - cz
                for k in range(3):
                    vector[1, k], vector[1, 3 + k] = 0.0, -momentum[b, k] / tau
                _put_column(system, room, j, 1, first + count + b)
        _put_column(system, room, j, 0, first + b)


@kernel
def _put_column(system: Any, room: Any, j: int, which: int, column: int) -> None:
    """Write a column of residual: a wrench room.vector[which] on body j, in its own axes, from outside."""
    topology, imposed, frame, residual, vector = (
        system.tree.topology, system.tree.imposed, room.frame, room.residual, room.vector
    )  # fmt: skip
    for k in range(3):
        x, y, z = frame[j, 3 * k], frame[j, 3 * k + 1], frame[j, 3 * k + 2]
        vector[2, k] = x * vector[which, 0] + y * vector[which, 1] + z * vector[which, 2]
        vector[2, 3 + k] = x * vector[which, 3] + y * vector[which, 4] + z * vector[which, 5]
    px, py, pz = frame[j, 9], frame[j, 10], frame[j, 11]
    vector[2, 3] += py * vector[2, 2] - pz * vector[2, 1]
    vector[2, 4] += pz * vector[2, 0] - px * vector[2, 2]
    vector[2, 5] += px * vector[2, 1] - py * vector[2, 0]
    for r in range(room.base):
        residual[r, column] = -vector[2, r]
    while j > 0:
        if not imposed[j - 1]:
            residual[room.index[j - 1], column] = -_dot(room.axis, j, vector, 2)
        j = topology[j, T_PARENT]


@kernel
def _spin_slopes(pushes: Any, momentum: Any, elapsed: float, by_twist: Any) -> None:
    """Add the effect of spinning rotors to slopes by twist, -x W x h = x h x W; momentum: see `_push_slopes`."""
    if momentum is not None:
        numbers = pushes.numbers
        for b in range(numbers.shape[0]):
            x = lag_response(pushes.motor[b], pushes.command[int(numbers[b, CHANNEL])], numbers[b, LAG], elapsed)
            _add_skew(by_twist, int(numbers[b, ROW]), 21, x, momentum[b, 0], momentum[b, 1], momentum[b, 2])


@kernel
def _solve(matrix: Any, rows: Any) -> None:
    """Compute rows <- -matrix^-1 rows, by Cholesky's method; the matrix's lower half becomes its factor."""
    n = matrix.shape[0]
    for a in range(n):
        total = matrix[a, a]
        for k in range(a):
            total -= matrix[a, k] * matrix[a, k]
        pivot = math.sqrt(total)
        matrix[a, a] = pivot
        for b in range(a + 1, n):
            total = matrix[b, a]
            for k in range(a):
                total -= matrix[b, k] * matrix[a, k]
            matrix[b, a] = total / pivot
    for a in range(n):
        for k in range(a):
            _subtract(matrix[a, k], rows[k], rows[a])
        _scale(1.0 / matrix[a, a], rows[a])
    for a in range(n - 1, -1, -1):
        for k in range(a + 1, n):
            _subtract(-matrix[k, a], rows[k], rows[a])
        _scale(-1.0 / matrix[a, a], rows[a])


@kernel(inline=True)
def _subtract(factor: float, row: Any, out: Any) -> None:
    """Compute out -= factor row, with vector instructions."""
    for m in range(out.shape[0]):
        out[m] -= factor * row[m]


@kernel(inline=True)
def _scale(factor: float, out: Any) -> None:
    for m in range(out.shape[0]):
        out[m] *= factor
