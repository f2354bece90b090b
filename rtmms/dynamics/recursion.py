"""The three passes of the hybrid recursion: any tree, any joint given by its motion or by its torque, any base.

Featherstone's hybrid dynamics in the notation of Porez 2014 (eqs 2-12 and section III); the inverse and the direct
models of Khalil 2007 (eqs 17-43) are its cases. Inertias are full symmetric 6 x 6 matrices. Twists and wrenches are
[linear; angular] in body frames; accelerations are component derivatives. Columns: rtmms.model.layout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.carry import add_inertia, add_wrench, axis_column, into_child, packed
from rtmms.jit import kernel
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
)  # fmt: skip
from rtmms.spatial import PACKED, PACKED_SIZE, cross, quaternion_columns, scalar, times


@kernel
def configure(topology: Any, constant: Any, orientation: Any, gravity: Any, q: Any, s: Any) -> None:
    """Joint transforms at q, and gravity in every body's frame.

    orientation (4,) base to world, gravity (3,) m/s2 world, q (n,); writes S_ROT, S_POS, S_GRAVITY.
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
    """World poses of all bodies, after `configure`: writes S_WORLD_POS, S_WORLD_ROT."""
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
    """First pass: eta_j and zeta_j, and no outside wrench yet (S_WRENCH = 0). After `configure`.

    twist (6,) of the base, base frame; qd (n,)
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
    """M*_j = M_j and beta*_j = -ad_eta^T M_j eta - (weight less buoyancy) - outside wrench (eqs 8, 9, 11, 12)."""
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
    """What spring, damper and Coulomb friction of joint j take: k (q - rest) + c qd + F_s sign(qd)."""
    force = constant[j, C_STIFFNESS] * (q - constant[j, C_REST]) + constant[j, C_DAMPING] * qd
    if qd.real > 0.0:
        force += constant[j, C_COULOMB]
    elif qd.real < 0.0:
        force -= constant[j, C_COULOMB]
    return force


@kernel
def inward(topology: Any, constant: Any, imposed: Any, drive: Any, q: Any, qd: Any, implicit: float, s: Any) -> None:
    """Second pass, tips to base: the inertia and bias that each body shows its parent (section III-C).

    imposed   (n,) bool   True: drive[j] is the acceleration; False: it is the torque (or force)
    implicit  s           > 0 treats springs and dampers linearly implicitly over that step: H + h c + h^2 k, and
                          h k qd joins the spring's force; 0 for the plain equations. A servo's part of H is
                          what stands in S_HELD
    """
    n = s.shape[0] - 1
    for j in range(n, 0, -1):
        i = topology[j, T_PARENT]
        revolute = topology[j, T_KIND] == REVOLUTE
        u0, u1, u2, u3, u4, u5 = axis_column(s, j, revolute)  # U = M* S
        own, left = (u5, s[j, S_BIAS + 5]) if revolute else (u2, s[j, S_BIAS + 2])
        s[j, S_U], s[j, S_U + 1], s[j, S_U + 2] = u0, u1, u2
        s[j, S_U + 3], s[j, S_U + 4], s[j, S_U + 5] = u3, u4, u5
        z0, z1, z2 = s[j, S_ZETA], s[j, S_ZETA + 1], s[j, S_ZETA + 2]
        z3, z4, z5 = s[j, S_ZETA + 3], s[j, S_ZETA + 4], s[j, S_ZETA + 5]
        f0, f1, f2, f3, f4, f5 = times(s, j, S_INERTIA, z0, z1, z2, z3, z4, z5)
        if imposed[j - 1]:  # alpha = beta* + M* (zeta + S qdd), K = M*
            inverse, push = 0.0 * own, drive[j - 1]
            s[j, S_FORCE] = left
        else:  # alpha = beta* + K zeta + U (tau - S^T beta*) / H, K = M* - U U^T / H
            k, c = constant[j, C_STIFFNESS], constant[j, C_DAMPING]
            inverse = 1.0 / (own + constant[j, C_ROTOR] + implicit * (c + implicit * k) + s[j, S_HELD])
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
    """(10) eta_0' = -M*_0^-1 beta*_0 by Cholesky's method; work (6, 6). NaN where M*_0 is not positive."""
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
    """Third pass, base to tips: accelerations of the driven joints, torques of the imposed ones (section III-D).

    qdd (n,) and torque (n,) are written for every joint.
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
            own = s[j, u + 5] if revolute else s[j, u + 2]
            # tau = S^T (M* eta' + beta*) + rotor qdd + what friction takes
            torque[j - 1] = (
                pull + (own + constant[j, C_ROTOR]) * acceleration + s[j, S_FORCE]
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
    """The recursion after `configure`, `outward` and whatever adds to S_WRENCH.

    base_mode   BASE_FREE: eta_0' follows. Otherwise s[0, S_ACCELERATION] holds the given one, and the wrench that it
                takes is left in s[0, S_BIAS] (base frame, on the base from outside).
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
