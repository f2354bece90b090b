"""Compute the three passes of the hybrid recursion: any tree, any joint given by its motion or its torque, any base.

The method is Featherstone's hybrid dynamics in the notation of Porez 2014 (eqs 2-12 and section III); the inverse and
the direct models of Khalil 2007 (eqs 17-43) are its cases. Inertias are full symmetric 6 x 6 matrices. Twists and
wrenches are [linear; angular] in body frames; accelerations are component derivatives. Columns: rtmms.model.layout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import Array, kernel
from rtmms.base.spatial import (
    AXX,
    AXY,
    AXZ,
    AYY,
    AYZ,
    AZZ,
    BXX,
    BXY,
    BXZ,
    BYX,
    BYY,
    BYZ,
    BZX,
    BZY,
    BZZ,
    CXX,
    CXY,
    CXZ,
    CYY,
    CYZ,
    CZZ,
    PACKED,
    PACKED_SIZE,
    cross,
    quaternion_columns,
    scalar,
    times,
    unit_quaternion_rows,
)
from rtmms.model.layout import (
    BASE_FREE,
    C_COULOMB,
    C_DAMPING,
    C_INERTIA,
    C_POS,
    C_REST,
    C_ROT,
    C_ROTOR,
    C_STIFFNESS,
    C_WEIGHT,
    C_WEIGHT_MOMENT,
    REVOLUTE,
    S_ACCELERATION,
    S_BIAS,
    S_FORCE,
    S_GRAVITY,
    S_HELD,
    S_INERTIA,
    S_INVERSE,
    S_POS,
    S_ROT,
    S_TWIST,
    S_U,
    S_WORLD_POS,
    S_WORLD_ROT,
    S_WRENCH,
    S_ZETA,
    T_KIND,
    T_PARENT,
)

# Carrying twists, wrenches and inertias between a body and its parent, in scalars. Columns: rtmms.model.layout.


@scalar
def into_child(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """Return R^T (x, y, z): a vector of the parent's frame in the body's frame.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    x, y, z : float
        Components in the parent's frame.

    Returns
    -------
    (float, float, float)
        Components in the body's frame.
    """
    return (
        s[j, S_ROT] * x + s[j, S_ROT + 3] * y + s[j, S_ROT + 6] * z,
        s[j, S_ROT + 1] * x + s[j, S_ROT + 4] * y + s[j, S_ROT + 7] * z,
        s[j, S_ROT + 2] * x + s[j, S_ROT + 5] * y + s[j, S_ROT + 8] * z,
    )


@scalar
def into_parent(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """Return R (x, y, z): a vector of the body's frame in its parent's frame.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    x, y, z : float
        Components in the body's frame.

    Returns
    -------
    (float, float, float)
        Components in the parent's frame.
    """
    return (
        s[j, S_ROT] * x + s[j, S_ROT + 1] * y + s[j, S_ROT + 2] * z,
        s[j, S_ROT + 3] * x + s[j, S_ROT + 4] * y + s[j, S_ROT + 5] * z,
        s[j, S_ROT + 6] * x + s[j, S_ROT + 7] * y + s[j, S_ROT + 8] * z,
    )


@scalar
def packed(m: Any, j: Any, c: Any) -> Any:
    """Return the 21 numbers of an inertia.

    Parameters
    ----------
    m : array
        Array that contains it.
    j, c : int
        Row, and first column.

    Returns
    -------
    tuple of float
        Packed inertia.
    """
    return (
        m[j, c + AXX], m[j, c + AXY], m[j, c + AXZ], m[j, c + AYY], m[j, c + AYZ], m[j, c + AZZ],
        m[j, c + BXX], m[j, c + BXY], m[j, c + BXZ], m[j, c + BYX], m[j, c + BYY], m[j, c + BYZ],
        m[j, c + BZX], m[j, c + BZY], m[j, c + BZZ],
        m[j, c + CXX], m[j, c + CXY], m[j, c + CXZ], m[j, c + CYY], m[j, c + CYZ], m[j, c + CZZ],
    )  # fmt: skip


@scalar
def axis_column(s: Any, j: Any, revolute: Any) -> Any:
    """Return M*_j S: the column of a body's inertia for its joint's axis, z.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    revolute : bool
        Whether the joint is revolute; otherwise it is prismatic.

    Returns
    -------
    tuple of float
        Six numbers.
    """
    m = S_INERTIA
    if revolute:
        return (
            s[j, m + BXZ], s[j, m + BYZ], s[j, m + BZZ], s[j, m + CXZ], s[j, m + CYZ], s[j, m + CZZ],
        )  # fmt: skip
    return s[j, m + AXZ], s[j, m + AYZ], s[j, m + AZZ], s[j, m + BZX], s[j, m + BZY], s[j, m + BZZ]


@scalar
def _turned(r: Any, x: Any) -> Any:
    """Return R X R^T for a symmetric X, packed as xx xy xz yy yz zz."""
    r0, r1, r2, r3, r4, r5, r6, r7, r8 = r
    xx, xy, xz, yy, yz, zz = x
    a, b, c = r0 * xx + r1 * xy + r2 * xz, r0 * xy + r1 * yy + r2 * yz, r0 * xz + r1 * yz + r2 * zz
    d, e, f = r3 * xx + r4 * xy + r5 * xz, r3 * xy + r4 * yy + r5 * yz, r3 * xz + r4 * yz + r5 * zz
    g, h, i = r6 * xx + r7 * xy + r8 * xz, r6 * xy + r7 * yy + r8 * yz, r6 * xz + r7 * yz + r8 * zz
    return (
        a * r0 + b * r1 + c * r2, a * r3 + b * r4 + c * r5, a * r6 + b * r7 + c * r8,
        d * r3 + e * r4 + f * r5, d * r6 + e * r7 + f * r8, g * r6 + h * r7 + i * r8,
    )  # fmt: skip


@scalar
def add_inertia(s: Any, i: Any, j: Any, inertia: Any) -> None:
    """Add an inertia of a body's frame to its parent's: M*_i += Ad^T K Ad.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    i, j : int
        Rows of the parent and of the body.
    inertia : tuple of float
        K in the body's frame, packed.
    """
    a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5, b6, b7, b8, c0, c1, c2, c3, c4, c5 = inertia
    r0, r1, r2 = s[j, S_ROT], s[j, S_ROT + 1], s[j, S_ROT + 2]
    r3, r4, r5 = s[j, S_ROT + 3], s[j, S_ROT + 4], s[j, S_ROT + 5]
    r6, r7, r8 = s[j, S_ROT + 6], s[j, S_ROT + 7], s[j, S_ROT + 8]
    px, py, pz = s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2]
    rotation = (r0, r1, r2, r3, r4, r5, r6, r7, r8)
    a0, a1, a2, a3, a4, a5 = _turned(rotation, (a0, a1, a2, a3, a4, a5))
    c0, c1, c2, c3, c4, c5 = _turned(rotation, (c0, c1, c2, c3, c4, c5))
    # B <- R B R^T
    t0, t1, t2 = r0 * b0 + r1 * b3 + r2 * b6, r0 * b1 + r1 * b4 + r2 * b7, r0 * b2 + r1 * b5 + r2 * b8
    t3, t4, t5 = r3 * b0 + r4 * b3 + r5 * b6, r3 * b1 + r4 * b4 + r5 * b7, r3 * b2 + r4 * b5 + r5 * b8
    t6, t7, t8 = r6 * b0 + r7 * b3 + r8 * b6, r6 * b1 + r7 * b4 + r8 * b7, r6 * b2 + r7 * b5 + r8 * b8
    b0, b1, b2 = t0 * r0 + t1 * r1 + t2 * r2, t0 * r3 + t1 * r4 + t2 * r5, t0 * r6 + t1 * r7 + t2 * r8
    b3, b4, b5 = t3 * r0 + t4 * r1 + t5 * r2, t3 * r3 + t4 * r4 + t5 * r5, t3 * r6 + t4 * r7 + t5 * r8
    b6, b7, b8 = t6 * r0 + t7 * r1 + t8 * r2, t6 * r3 + t7 * r4 + t8 * r5, t6 * r6 + t7 * r7 + t8 * r8
    # C <- C - B^T p^ + p^ (B - A p^), B <- B - A p^
    n0, n1, n2 = b0 - a1 * pz + a2 * py, b1 + a0 * pz - a2 * px, b2 - a0 * py + a1 * px
    n3, n4, n5 = b3 - a3 * pz + a4 * py, b4 + a1 * pz - a4 * px, b5 - a1 * py + a3 * px
    n6, n7, n8 = b6 - a4 * pz + a5 * py, b7 + a2 * pz - a5 * px, b8 - a2 * py + a4 * px
    c0 += -(b3 * pz - b6 * py) + py * n6 - pz * n3
    c1 += -(b6 * px - b0 * pz) + py * n7 - pz * n4
    c2 += -(b0 * py - b3 * px) + py * n8 - pz * n5
    c3 += -(b7 * px - b1 * pz) + pz * n1 - px * n7
    c4 += -(b1 * py - b4 * px) + pz * n2 - px * n8
    c5 += -(b2 * py - b5 * px) + px * n5 - py * n2
    k = S_INERTIA
    s[i, k + AXX] += a0
    s[i, k + AXY] += a1
    s[i, k + AXZ] += a2
    s[i, k + AYY] += a3
    s[i, k + AYZ] += a4
    s[i, k + AZZ] += a5
    s[i, k + BXX] += n0
    s[i, k + BXY] += n1
    s[i, k + BXZ] += n2
    s[i, k + BYX] += n3
    s[i, k + BYY] += n4
    s[i, k + BYZ] += n5
    s[i, k + BZX] += n6
    s[i, k + BZY] += n7
    s[i, k + BZZ] += n8
    s[i, k + CXX] += c0
    s[i, k + CXY] += c1
    s[i, k + CXZ] += c2
    s[i, k + CYY] += c3
    s[i, k + CYZ] += c4
    s[i, k + CZZ] += c5


@scalar
def add_wrench(s: Any, c: Any, i: Any, j: Any, fx: Any, fy: Any, fz: Any, mx: Any, my: Any, mz: Any) -> None:
    """Add a wrench of a body's frame to its parent: s[i, c : c + 6] += Ad^T f.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    c : int
        First column of the sum.
    i, j : int
        Rows of the parent and of the body.
    fx, fy, fz, mx, my, mz : float
        Force, N, and moment, N m, body's frame.
    """
    fx, fy, fz = into_parent(s, j, fx, fy, fz)
    mx, my, mz = into_parent(s, j, mx, my, mz)
    tx, ty, tz = cross(s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2], fx, fy, fz)
    s[i, c] += fx
    s[i, c + 1] += fy
    s[i, c + 2] += fz
    s[i, c + 3] += mx + tx
    s[i, c + 4] += my + ty
    s[i, c + 5] += mz + tz


@kernel
def configure(topology: Any, constant: Any, orientation: Any, gravity: Any, q: Any, s: Any) -> None:
    """Write joint transforms, and gravity in every body's frame: S_ROT, S_POS, S_GRAVITY.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    orientation : (4,) array
        Base to world.
    gravity : (3,) array
        m/s2, world.
    q : (n,) array
        Joint positions.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    r = quaternion_columns(orientation[0], orientation[1], orientation[2], orientation[3])
    for k in range(3):  # g_0 = R_0^T g
        s[0, S_GRAVITY + k] = r[k] * gravity[0] + r[k + 3] * gravity[1] + r[k + 6] * gravity[2]
    for j in range(1, topology.shape[0]):
        i = topology[j, T_PARENT]
        if topology[j, T_KIND] == REVOLUTE:
            sine, cosine = np.sin(q[j - 1]), np.cos(q[j - 1])
            for k in range(0, 9, 3):  # R = R_0 Rz(q)
                x, y = constant[j, C_ROT + k], constant[j, C_ROT + k + 1]
                s[j, S_ROT + k] = x * cosine + y * sine
                s[j, S_ROT + k + 1] = y * cosine - x * sine
                s[j, S_ROT + k + 2] = constant[j, C_ROT + k + 2]
            for k in range(3):
                s[j, S_POS + k] = constant[j, C_POS + k]
        else:
            for k in range(9):
                s[j, S_ROT + k] = constant[j, C_ROT + k]
            for k in range(3):
                s[j, S_POS + k] = constant[j, C_POS + k] + q[j - 1] * constant[j, C_ROT + 3 * k + 2]
        x, y, z = into_child(s, j, s[i, S_GRAVITY], s[i, S_GRAVITY + 1], s[i, S_GRAVITY + 2])
        s[j, S_GRAVITY] = x
        s[j, S_GRAVITY + 1] = y
        s[j, S_GRAVITY + 2] = z


@kernel
def place(topology: Any, position: Any, orientation: Any, s: Any) -> None:
    """Write the world poses of all bodies, after `configure`: S_WORLD_POS, S_WORLD_ROT.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    position : (3,) array
        Origin of the base, m, world.
    orientation : (4,) array
        Base to world.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    r = quaternion_columns(orientation[0], orientation[1], orientation[2], orientation[3])
    for k in range(9):
        s[0, S_WORLD_ROT + k] = r[k]
    for k in range(3):
        s[0, S_WORLD_POS + k] = position[k]
    for j in range(1, topology.shape[0]):
        i = topology[j, T_PARENT]
        for k in range(3):
            a, b, c = s[i, S_WORLD_ROT + 3 * k], s[i, S_WORLD_ROT + 3 * k + 1], s[i, S_WORLD_ROT + 3 * k + 2]
            s[j, S_WORLD_POS + k] = s[i, S_WORLD_POS + k] + a * s[j, S_POS] + b * s[j, S_POS + 1] + c * s[j, S_POS + 2]
            for m in range(3):
                s[j, S_WORLD_ROT + 3 * k + m] = a * s[j, S_ROT + m] + b * s[j, S_ROT + 3 + m] + c * s[j, S_ROT + 6 + m]


@kernel
def outward(topology: Any, twist: Any, qd: Any, s: Any) -> None:
    """Compute the first pass, after `configure`: eta_j and zeta_j; outside wrenches are set to 0 (S_WRENCH).

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    twist : (6,) array
        Twist of the base, base frame, m/s and rad/s.
    qd : (n,) array
        Joint rates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    for k in range(6):
        s[0, S_TWIST + k] = twist[k]
        s[0, S_WRENCH + k] = 0.0
    for j in range(1, topology.shape[0]):
        i = topology[j, T_PARENT]
        wx, wy, wz = s[i, S_TWIST + 3], s[i, S_TWIST + 4], s[i, S_TWIST + 5]
        cx, cy, cz = cross(wx, wy, wz, s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2])
        # (2) eta_j = Ad eta_i + S qd
        vx, vy, vz = into_child(s, j, s[i, S_TWIST] + cx, s[i, S_TWIST + 1] + cy, s[i, S_TWIST + 2] + cz)
        wx, wy, wz = into_child(s, j, wx, wy, wz)
        rate = qd[j - 1]
        # (5) zeta_j = ad_{eta_j} S qd = (V x z, W x z) qd, or (W x z, 0) qd for a prismatic joint
        if topology[j, T_KIND] == REVOLUTE:
            wz += rate
            s[j, S_ZETA], s[j, S_ZETA + 1] = vy * rate, -vx * rate
            s[j, S_ZETA + 3], s[j, S_ZETA + 4] = wy * rate, -wx * rate
        else:
            vz += rate
            s[j, S_ZETA], s[j, S_ZETA + 1] = wy * rate, -wx * rate
            s[j, S_ZETA + 3] = s[j, S_ZETA + 4] = 0.0
        s[j, S_ZETA + 2] = s[j, S_ZETA + 5] = 0.0
        s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2] = vx, vy, vz
        s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5] = wx, wy, wz
        for k in range(6):
            s[j, S_WRENCH + k] = 0.0


@kernel
def load(topology: Any, constant: Any, s: Any) -> None:
    """Set M*_j = M_j and beta*_j = -ad_eta^T M_j eta - (weight less buoyancy) - outside wrench.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    Porez 2014, eqs 8, 9, 11, 12.
    """
    for j in range(topology.shape[0]):
        for k in range(PACKED_SIZE):
            s[j, S_INERTIA + k] = constant[j, C_INERTIA + k]
        vx, vy, vz = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
        wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        px, py, pz, lx, ly, lz = times(constant, j, C_INERTIA, vx, vy, vz, wx, wy, wz)
        # -ad_eta^T (p; l) = (W x p; W x l + V x p)
        ax, ay, az = cross(wx, wy, wz, px, py, pz)
        bx, by, bz = cross(wx, wy, wz, lx, ly, lz)
        cx, cy, cz = cross(vx, vy, vz, px, py, pz)
        gx, gy, gz = s[j, S_GRAVITY], s[j, S_GRAVITY + 1], s[j, S_GRAVITY + 2]
        m = constant[j, C_WEIGHT]
        mx, my, mz = cross(
            constant[j, C_WEIGHT_MOMENT], constant[j, C_WEIGHT_MOMENT + 1], constant[j, C_WEIGHT_MOMENT + 2], gx, gy, gz
        )
        s[j, S_BIAS] = ax - m * gx - s[j, S_WRENCH]
        s[j, S_BIAS + 1] = ay - m * gy - s[j, S_WRENCH + 1]
        s[j, S_BIAS + 2] = az - m * gz - s[j, S_WRENCH + 2]
        s[j, S_BIAS + 3] = bx + cx - mx - s[j, S_WRENCH + 3]
        s[j, S_BIAS + 4] = by + cy - my - s[j, S_WRENCH + 4]
        s[j, S_BIAS + 5] = bz + cz - mz - s[j, S_WRENCH + 5]


@scalar
def friction(constant: Any, j: Any, q: Any, qd: Any) -> Any:
    """Return the force of spring, damper and Coulomb friction of a joint: k (q - rest) + c qd + F_s sign(qd).

    Parameters
    ----------
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    q, qd : float
        Position and rate of the joint.

    Returns
    -------
    float
        N m or N.
    """
    force = constant[j, C_STIFFNESS] * (q - constant[j, C_REST]) + constant[j, C_DAMPING] * qd
    if qd.real > 0.0:
        force += constant[j, C_COULOMB]
    elif qd.real < 0.0:
        force -= constant[j, C_COULOMB]
    return force


@kernel
def inward(topology: Any, constant: Any, imposed: Any, drive: Any, q: Any, qd: Any, implicit: float, s: Any) -> None:
    """Compute the second pass, tips to base: the inertia and bias that each body passes its parent.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    q, qd : (n,) array
        Joint positions and rates.
    implicit : float
        > 0 treats springs and dampers linearly implicitly over that step, s: H + h c + h^2 k, and h k qd joins the
        spring's force; 0 for the plain equations. A servo's part of H is in S_HELD.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    Porez 2014, section III-C.
    """
    n = s.shape[0] - 1
    for j in range(n, 0, -1):
        i = topology[j, T_PARENT]
        revolute = topology[j, T_KIND] == REVOLUTE
        u0, u1, u2, u3, u4, u5 = axis_column(s, j, revolute)  # U = M* S
        joint_inertia, left = (u5, s[j, S_BIAS + 5]) if revolute else (u2, s[j, S_BIAS + 2])
        s[j, S_U], s[j, S_U + 1], s[j, S_U + 2] = u0, u1, u2
        s[j, S_U + 3], s[j, S_U + 4], s[j, S_U + 5] = u3, u4, u5
        z0, z1, z2 = s[j, S_ZETA], s[j, S_ZETA + 1], s[j, S_ZETA + 2]
        z3, z4, z5 = s[j, S_ZETA + 3], s[j, S_ZETA + 4], s[j, S_ZETA + 5]
        f0, f1, f2, f3, f4, f5 = times(s, j, S_INERTIA, z0, z1, z2, z3, z4, z5)
        if imposed[j - 1]:  # alpha = beta* + M* (zeta + S qdd), K = M*
            inverse, push = 0.0 * joint_inertia, drive[j - 1]
            s[j, S_FORCE] = left
        else:  # alpha = beta* + K zeta + U (tau - S^T beta*) / H, K = M* - U U^T / H
            k, c = constant[j, C_STIFFNESS], constant[j, C_DAMPING]
            inverse = 1.0 / (joint_inertia + constant[j, C_ROTOR] + implicit * (c + implicit * k) + s[j, S_HELD])
            torque = drive[j - 1] - friction(constant, j, q[j - 1], qd[j - 1]) - implicit * k * qd[j - 1]
            s[j, S_FORCE] = torque - left
            push = inverse * (torque - left - (u0 * z0 + u1 * z1 + u2 * z2 + u3 * z3 + u4 * z4 + u5 * z5))
        s[j, S_INVERSE] = inverse
        add_wrench(
            s, S_BIAS, i, j,
            s[j, S_BIAS] + f0 + u0 * push, s[j, S_BIAS + 1] + f1 + u1 * push, s[j, S_BIAS + 2] + f2 + u2 * push,
            s[j, S_BIAS + 3] + f3 + u3 * push, s[j, S_BIAS + 4] + f4 + u4 * push, s[j, S_BIAS + 5] + f5 + u5 * push,
        )  # fmt: skip
        w0, w1, w2, w3, w4, w5 = u0 * inverse, u1 * inverse, u2 * inverse, u3 * inverse, u4 * inverse, u5 * inverse
        a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5, b6, b7, b8, c0, c1, c2, c3, c4, c5 = packed(s, j, S_INERTIA)
        condensed = (
            a0 - w0 * u0, a1 - w0 * u1, a2 - w0 * u2, a3 - w1 * u1, a4 - w1 * u2, a5 - w2 * u2,
            b0 - w0 * u3, b1 - w0 * u4, b2 - w0 * u5, b3 - w1 * u3, b4 - w1 * u4, b5 - w1 * u5,
            b6 - w2 * u3, b7 - w2 * u4, b8 - w2 * u5,
            c0 - w3 * u3, c1 - w3 * u4, c2 - w3 * u5, c3 - w4 * u4, c4 - w4 * u5, c5 - w5 * u5,
        )  # fmt: skip
        add_inertia(s, i, j, condensed)


@kernel
def solve_base(s: Any, work: Any) -> None:
    """Solve eta_0' = -M*_0^-1 beta*_0 by Cholesky's method.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    work : (6, 6) array
        Scratch.

    Notes
    -----
    Porez 2014, eq (10). The result is NaN where M*_0 is not positive.
    """
    for a in range(6):
        for b in range(a + 1):
            work[a, b] = s[0, S_INERTIA + PACKED[a, b]]
    for a in range(6):
        total = work[a, a]
        for k in range(a):
            total -= work[a, k] * work[a, k]
        pivot = np.sqrt(total)
        work[a, a] = pivot
        for b in range(a + 1, 6):
            total = work[b, a]
            for k in range(a):
                total -= work[b, k] * work[a, k]
            work[b, a] = total / pivot
    for a in range(6):
        total = -s[0, S_BIAS + a]
        for k in range(a):
            total -= work[a, k] * s[0, S_ACCELERATION + k]
        s[0, S_ACCELERATION + a] = total / work[a, a]
    for a in range(5, -1, -1):
        total = s[0, S_ACCELERATION + a]
        for k in range(a + 1, 6):
            total -= work[k, a] * s[0, S_ACCELERATION + k]
        s[0, S_ACCELERATION + a] = total / work[a, a]


@kernel
def respond(
    topology: Any, constant: Any, imposed: Any, drive: Any, q: Any, qd: Any, s: Any, qdd: Any, torque: Any
) -> None:
    """Compute the third pass, base to tips: accelerations of the driven joints, torques of the imposed ones.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    q, qd : (n,) array
        Joint positions and rates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    qdd, torque : (n,) array
        Results.

    Notes
    -----
    Porez 2014, section III-D.
    """
    for j in range(1, topology.shape[0]):
        i = topology[j, T_PARENT]
        wx, wy, wz = s[i, S_ACCELERATION + 3], s[i, S_ACCELERATION + 4], s[i, S_ACCELERATION + 5]
        cx, cy, cz = cross(wx, wy, wz, s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2])
        vx, vy, vz = into_child(
            s, j, s[i, S_ACCELERATION] + cx, s[i, S_ACCELERATION + 1] + cy, s[i, S_ACCELERATION + 2] + cz
        )
        wx, wy, wz = into_child(s, j, wx, wy, wz)
        # (4) eta_j' = Ad eta_i' + zeta_j + S qdd
        vx, vy, vz = vx + s[j, S_ZETA], vy + s[j, S_ZETA + 1], vz + s[j, S_ZETA + 2]
        wx, wy, wz = wx + s[j, S_ZETA + 3], wy + s[j, S_ZETA + 4], wz + s[j, S_ZETA + 5]
        u = S_U
        pull = s[j, u] * vx + s[j, u + 1] * vy + s[j, u + 2] * vz
        pull += s[j, u + 3] * wx + s[j, u + 4] * wy + s[j, u + 5] * wz
        revolute = topology[j, T_KIND] == REVOLUTE
        if imposed[j - 1]:
            acceleration = drive[j - 1]
            joint_inertia = s[j, u + 5] if revolute else s[j, u + 2]
            # tau = S^T (M* eta' + beta*) + rotor qdd + what friction takes
            torque[j - 1] = (
                pull + (joint_inertia + constant[j, C_ROTOR]) * acceleration + s[j, S_FORCE]
                + friction(constant, j, q[j - 1], qd[j - 1])
            )  # fmt: skip
        else:
            acceleration = s[j, S_INVERSE] * (s[j, S_FORCE] - pull)
            torque[j - 1] = drive[j - 1]
        qdd[j - 1] = acceleration
        if revolute:
            wz += acceleration
        else:
            vz += acceleration
        s[j, S_ACCELERATION], s[j, S_ACCELERATION + 1], s[j, S_ACCELERATION + 2] = vx, vy, vz
        s[j, S_ACCELERATION + 3], s[j, S_ACCELERATION + 4], s[j, S_ACCELERATION + 5] = wx, wy, wz


@kernel
def solve(
    topology: Any, constant: Any, base_mode: int, imposed: Any, drive: Any, q: Any, qd: Any, implicit: float,
    s: Any, work: Any, qdd: Any, torque: Any,
) -> None:  # fmt: skip
    """Compute the recursion after `configure`, `outward` and the outside wrenches.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    base_mode : int
        BASE_FREE: eta_0' is computed. Otherwise s[0, S_ACCELERATION] has the given one, and its wrench on the base from
        outside, base frame, is left in s[0, S_BIAS].
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    q, qd : (n,) array
        Joint positions and rates.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    work : (6, 6) array
        Scratch.
    qdd, torque : (n,) array
        Results.
    """
    load(topology, constant, s)
    inward(topology, constant, imposed, drive, q, qd, implicit, s)
    if base_mode == BASE_FREE:
        solve_base(s, work)
    else:
        f0, f1, f2, f3, f4, f5 = times(
            s, 0, S_INERTIA,
            s[0, S_ACCELERATION], s[0, S_ACCELERATION + 1], s[0, S_ACCELERATION + 2],
            s[0, S_ACCELERATION + 3], s[0, S_ACCELERATION + 4], s[0, S_ACCELERATION + 5],
        )  # fmt: skip
        s[0, S_BIAS] += f0
        s[0, S_BIAS + 1] += f1
        s[0, S_BIAS + 2] += f2
        s[0, S_BIAS + 3] += f3
        s[0, S_BIAS + 4] += f4
        s[0, S_BIAS + 5] += f5
    respond(topology, constant, imposed, drive, q, qd, s, qdd, torque)


# A rigid body's pose in a flat array: how a twist moves it; and the 6 x 6 solve for its acceleration.


@kernel
def rotation_matrix(work: Array, quat: int, out: int) -> None:
    """Write the rotation, body to world, of a unit quaternion.

    Parameters
    ----------
    work : array
        Array with both.
    quat : int
        First index of the quaternion (w, x, y, z).
    out : int
        First index of the result (3, 3).
    """
    rows = unit_quaternion_rows(work[quat], work[quat + 1], work[quat + 2], work[quat + 3])
    for k in range(9):
        work[out + k] = rows[k]


@kernel
def move_pose(pose: Array, p: int, twist: Array, v: int, h: float, out: Array, o: int) -> None:
    """Write g exp(h twist) on SE(3): the exact motion under a constant body twist [V; W].

    Parameters
    ----------
    pose : array
        Array with the pose: position (3,), m, world, and quaternion (4,).
    p : int
        First index of the pose.
    twist : array
        Array with the twist (6,), m/s and rad/s, body.
    v : int
        First index of the twist.
    h : float
        s.
    out : array
        Array of the result; it may be `pose`.
    o : int
        First index of the result.
    """
    vx, vy, vz = h * twist[v + 0], h * twist[v + 1], h * twist[v + 2]
    wx, wy, wz = h * twist[v + 3], h * twist[v + 4], h * twist[v + 5]
    n2 = wx * wx + wy * wy + wz * wz
    if n2 > 1e-8:
        n = np.sqrt(n2)
        a = (1.0 - np.cos(n)) / n2
        b = (n - np.sin(n)) / (n2 * n)
        sh, ch = np.sin(0.5 * n) / n, np.cos(0.5 * n)
    else:
        a = 0.5 - n2 / 24.0
        b = 1.0 / 6.0 - n2 / 120.0
        sh, ch = 0.5 - n2 / 48.0, 1.0 - n2 / 8.0 + n2 * n2 / 384.0
    # left Jacobian of SO(3): p = V + a W x V + b W x (W x V)
    cx, cy, cz = wy * vz - wz * vy, wz * vx - wx * vz, wx * vy - wy * vx
    px = vx + a * cx + b * (wy * cz - wz * cy)
    py = vy + a * cy + b * (wz * cx - wx * cz)
    pz = vz + a * cz + b * (wx * cy - wy * cx)
    w, x, y, z = pose[p + 3], pose[p + 4], pose[p + 5], pose[p + 6]
    # rotate by the quaternion: p + 2 w (u x p) + 2 u x (u x p)
    tx, ty, tz = 2.0 * (y * pz - z * py), 2.0 * (z * px - x * pz), 2.0 * (x * py - y * px)
    out[o + 0] = pose[p + 0] + px + w * tx + (y * tz - z * ty)
    out[o + 1] = pose[p + 1] + py + w * ty + (z * tx - x * tz)
    out[o + 2] = pose[p + 2] + pz + w * tz + (x * ty - y * tx)
    bx, by, bz = sh * wx, sh * wy, sh * wz
    qw = w * ch - x * bx - y * by - z * bz
    qx = w * bx + x * ch + y * bz - z * by
    qy = w * by - x * bz + y * ch + z * bx
    qz = w * bz + x * by - y * bx + z * ch
    n = 1.0 / np.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    out[o + 3], out[o + 4], out[o + 5], out[o + 6] = n * qw, n * qx, n * qy, n * qz


@kernel
def exponential_rate(xi: Array, x: int, twist: Array, v: int, out: Array, o: int) -> None:
    """Write the rate of canonical coordinates: g = g0 exp(xi) moves with body twist eta when xi' is this rate.

    Parameters
    ----------
    xi : array
        Array with xi (6,).
    x : int
        First index of xi.
    twist : array
        Array with eta (6,), m/s and rad/s.
    v : int
        First index of eta.
    out : array
        Array of the result (6,).
    o : int
        First index of the result.

    Notes
    -----
    xi' = eta + 1/2 ad_xi eta + 1/12 ad_xi^2 eta, exact to fourth order in xi.
    """
    ax, ay, az, bx, by, bz = xi[x], xi[x + 1], xi[x + 2], xi[x + 3], xi[x + 4], xi[x + 5]
    vx, vy, vz = twist[v], twist[v + 1], twist[v + 2]
    wx, wy, wz = twist[v + 3], twist[v + 4], twist[v + 5]
    # ad_xi eta = [b x V + a x W; b x W]
    px = by * vz - bz * vy + ay * wz - az * wy
    py = bz * vx - bx * vz + az * wx - ax * wz
    pz = bx * vy - by * vx + ax * wy - ay * wx
    qx, qy, qz = by * wz - bz * wy, bz * wx - bx * wz, bx * wy - by * wx
    out[o] = vx + 0.5 * px + (by * pz - bz * py + ay * qz - az * qy) / 12.0
    out[o + 1] = vy + 0.5 * py + (bz * px - bx * pz + az * qx - ax * qz) / 12.0
    out[o + 2] = vz + 0.5 * pz + (bx * py - by * px + ax * qy - ay * qx) / 12.0
    out[o + 3] = wx + 0.5 * qx + (by * qz - bz * qy) / 12.0
    out[o + 4] = wy + 0.5 * qy + (bz * qx - bx * qz) / 12.0
    out[o + 5] = wz + 0.5 * qz + (bx * qy - by * qx) / 12.0


@kernel
def solve_spd6(work: Array, n: int, f: int, out: Array) -> None:
    """Solve N x = f for a symmetric positive matrix by Cholesky's factors.

    Parameters
    ----------
    work : array
        Array with N and f.
    n : int
        First index of N (6, 6), whose lower triangle is overwritten.
    f : int
        First index of f (6,).
    out : (6,) array
        Result.
    """
    for j in range(6):
        d = work[n + 7 * j]
        for k in range(j):
            d -= work[n + 6 * j + k] * work[n + 6 * j + k]
        d = np.sqrt(d)
        work[n + 7 * j] = d
        inv = 1.0 / d
        for i in range(j + 1, 6):
            s = work[n + 6 * i + j]
            for k in range(j):
                s -= work[n + 6 * i + k] * work[n + 6 * j + k]
            work[n + 6 * i + j] = s * inv
    for i in range(6):
        s = work[f + i]
        for k in range(i):
            s -= work[n + 6 * i + k] * out[k]
        out[i] = s / work[n + 7 * i]
    for i in range(5, -1, -1):
        s = out[i]
        for k in range(i + 1, 6):
            s -= work[n + 6 * k + i] * out[k]
        out[i] = s / work[n + 7 * i]
