"""The three passes of the hybrid recursion: any tree, any joint given by its motion or by its torque, any base.

Featherstone's hybrid dynamics in the notation of Porez 2014 (eqs 2-12 and section III); the inverse and the direct
models of Khalil 2007 (eqs 17-43) are its cases. Inertias are full symmetric 6 x 6 matrices. Twists and wrenches are
[linear; angular] in body frames; accelerations are component derivatives. Columns: rtmms.model.layout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.carry import add_inertia, add_wrench, into_child, times
from rtmms.jit import kernel
from rtmms.model import layout as L
from rtmms.spatial import cross, quaternion_columns, scalar


@kernel
def configure(topology: Any, constant: Any, orientation: Any, gravity: Any, q: Any, s: Any) -> None:
    """Joint transforms at q, and gravity in every body's frame.

    orientation (4,) base to world, gravity (3,) m/s2 world, q (n,); writes S_ROT, S_POS, S_GRAVITY.
    """
    r = quaternion_columns(orientation[0], orientation[1], orientation[2], orientation[3])
    for k in range(3):  # g_0 = R_0^T g
        s[0, L.S_GRAVITY + k] = r[k] * gravity[0] + r[k + 3] * gravity[1] + r[k + 6] * gravity[2]
    for j in range(1, topology.shape[0]):
        i = topology[j, L.T_PARENT]
        if topology[j, L.T_KIND] == L.REVOLUTE:
            sine, cosine = np.sin(q[j - 1]), np.cos(q[j - 1])
            for k in range(0, 9, 3):  # R = R_0 Rz(q)
                x, y = constant[j, L.C_ROT + k], constant[j, L.C_ROT + k + 1]
                s[j, L.S_ROT + k] = x * cosine + y * sine
                s[j, L.S_ROT + k + 1] = y * cosine - x * sine
                s[j, L.S_ROT + k + 2] = constant[j, L.C_ROT + k + 2]
            for k in range(3):
                s[j, L.S_POS + k] = constant[j, L.C_POS + k]
        else:
            for k in range(9):
                s[j, L.S_ROT + k] = constant[j, L.C_ROT + k]
            for k in range(3):
                s[j, L.S_POS + k] = constant[j, L.C_POS + k] + q[j - 1] * constant[j, L.C_ROT + 3 * k + 2]
        x, y, z = into_child(s, j, s[i, L.S_GRAVITY], s[i, L.S_GRAVITY + 1], s[i, L.S_GRAVITY + 2])
        s[j, L.S_GRAVITY] = x
        s[j, L.S_GRAVITY + 1] = y
        s[j, L.S_GRAVITY + 2] = z


@kernel
def place(topology: Any, position: Any, orientation: Any, s: Any) -> None:
    """World poses of all bodies, after `configure`: writes S_WORLD_POS, S_WORLD_ROT."""
    r = quaternion_columns(orientation[0], orientation[1], orientation[2], orientation[3])
    for k in range(9):
        s[0, L.S_WORLD_ROT + k] = r[k]
    for k in range(3):
        s[0, L.S_WORLD_POS + k] = position[k]
    for j in range(1, topology.shape[0]):
        i = topology[j, L.T_PARENT]
        for k in range(3):
            a, b, c = s[i, L.S_WORLD_ROT + 3 * k], s[i, L.S_WORLD_ROT + 3 * k + 1], s[i, L.S_WORLD_ROT + 3 * k + 2]
            s[j, L.S_WORLD_POS + k] = (
                s[i, L.S_WORLD_POS + k] + a * s[j, L.S_POS] + b * s[j, L.S_POS + 1] + c * s[j, L.S_POS + 2]
            )
            for m in range(3):
                s[j, L.S_WORLD_ROT + 3 * k + m] = (
                    a * s[j, L.S_ROT + m] + b * s[j, L.S_ROT + 3 + m] + c * s[j, L.S_ROT + 6 + m]
                )


@kernel
def outward(topology: Any, twist: Any, qd: Any, s: Any) -> None:
    """First pass: eta_j and zeta_j, and no outside wrench yet (S_WRENCH = 0). After `configure`.

    twist (6,) of the base, base frame; qd (n,)
    """
    for k in range(6):
        s[0, L.S_TWIST + k] = twist[k]
        s[0, L.S_WRENCH + k] = 0.0
    for j in range(1, topology.shape[0]):
        i = topology[j, L.T_PARENT]
        wx, wy, wz = s[i, L.S_TWIST + 3], s[i, L.S_TWIST + 4], s[i, L.S_TWIST + 5]
        cx, cy, cz = cross(wx, wy, wz, s[j, L.S_POS], s[j, L.S_POS + 1], s[j, L.S_POS + 2])
        # (2) eta_j = Ad eta_i + S qd
        vx, vy, vz = into_child(s, j, s[i, L.S_TWIST] + cx, s[i, L.S_TWIST + 1] + cy, s[i, L.S_TWIST + 2] + cz)
        wx, wy, wz = into_child(s, j, wx, wy, wz)
        rate = qd[j - 1]
        # (5) zeta_j = ad_{eta_j} S qd = (V x z, W x z) qd, or (W x z, 0) qd for a prismatic joint
        if topology[j, L.T_KIND] == L.REVOLUTE:
            wz += rate
            s[j, L.S_ZETA], s[j, L.S_ZETA + 1] = vy * rate, -vx * rate
            s[j, L.S_ZETA + 3], s[j, L.S_ZETA + 4] = wy * rate, -wx * rate
        else:
            vz += rate
            s[j, L.S_ZETA], s[j, L.S_ZETA + 1] = wy * rate, -wx * rate
            s[j, L.S_ZETA + 3] = s[j, L.S_ZETA + 4] = 0.0
        s[j, L.S_ZETA + 2] = s[j, L.S_ZETA + 5] = 0.0
        s[j, L.S_TWIST], s[j, L.S_TWIST + 1], s[j, L.S_TWIST + 2] = vx, vy, vz
        s[j, L.S_TWIST + 3], s[j, L.S_TWIST + 4], s[j, L.S_TWIST + 5] = wx, wy, wz
        for k in range(6):
            s[j, L.S_WRENCH + k] = 0.0


@kernel
def load(topology: Any, constant: Any, s: Any) -> None:
    """M*_j = M_j and beta*_j = -ad_eta^T M_j eta - (weight less buoyancy) - outside wrench (eqs 8, 9, 11, 12)."""
    for j in range(topology.shape[0]):
        for k in range(21):
            s[j, L.S_INERTIA + k] = constant[j, L.C_INERTIA + k]
        vx, vy, vz = s[j, L.S_TWIST], s[j, L.S_TWIST + 1], s[j, L.S_TWIST + 2]
        wx, wy, wz = s[j, L.S_TWIST + 3], s[j, L.S_TWIST + 4], s[j, L.S_TWIST + 5]
        px, py, pz, lx, ly, lz = times(constant, j, L.C_INERTIA, vx, vy, vz, wx, wy, wz)
        # -ad_eta^T (p; l) = (W x p; W x l + V x p)
        ax, ay, az = cross(wx, wy, wz, px, py, pz)
        bx, by, bz = cross(wx, wy, wz, lx, ly, lz)
        cx, cy, cz = cross(vx, vy, vz, px, py, pz)
        gx, gy, gz = s[j, L.S_GRAVITY], s[j, L.S_GRAVITY + 1], s[j, L.S_GRAVITY + 2]
        m = constant[j, L.C_WEIGHT]
        mx, my, mz = cross(
            constant[j, L.C_WEIGHT_MOMENT],
            constant[j, L.C_WEIGHT_MOMENT + 1],
            constant[j, L.C_WEIGHT_MOMENT + 2],
            gx,
            gy,
            gz,
        )
        s[j, L.S_BIAS] = ax - m * gx - s[j, L.S_WRENCH]
        s[j, L.S_BIAS + 1] = ay - m * gy - s[j, L.S_WRENCH + 1]
        s[j, L.S_BIAS + 2] = az - m * gz - s[j, L.S_WRENCH + 2]
        s[j, L.S_BIAS + 3] = bx + cx - mx - s[j, L.S_WRENCH + 3]
        s[j, L.S_BIAS + 4] = by + cy - my - s[j, L.S_WRENCH + 4]
        s[j, L.S_BIAS + 5] = bz + cz - mz - s[j, L.S_WRENCH + 5]


@scalar
def friction(constant: Any, j: Any, q: Any, qd: Any) -> Any:
    """What spring, damper and Coulomb friction of joint j take: k (q - rest) + c qd + F_s sign(qd)."""
    force = constant[j, L.C_STIFFNESS] * (q - constant[j, L.C_REST]) + constant[j, L.C_DAMPING] * qd
    if qd.real > 0.0:
        force += constant[j, L.C_COULOMB]
    elif qd.real < 0.0:
        force -= constant[j, L.C_COULOMB]
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
        i = topology[j, L.T_PARENT]
        m = L.S_INERTIA
        if topology[j, L.T_KIND] == L.REVOLUTE:  # U = M* S
            u0, u1, u2 = s[j, m + 8], s[j, m + 11], s[j, m + 14]
            u3, u4, u5 = s[j, m + 17], s[j, m + 19], s[j, m + 20]
            own, left = u5, s[j, L.S_BIAS + 5]
        else:
            u0, u1, u2 = s[j, m + 2], s[j, m + 4], s[j, m + 5]
            u3, u4, u5 = s[j, m + 12], s[j, m + 13], s[j, m + 14]
            own, left = u2, s[j, L.S_BIAS + 2]
        s[j, L.S_U], s[j, L.S_U + 1], s[j, L.S_U + 2] = u0, u1, u2
        s[j, L.S_U + 3], s[j, L.S_U + 4], s[j, L.S_U + 5] = u3, u4, u5
        z0, z1, z2 = s[j, L.S_ZETA], s[j, L.S_ZETA + 1], s[j, L.S_ZETA + 2]
        z3, z4, z5 = s[j, L.S_ZETA + 3], s[j, L.S_ZETA + 4], s[j, L.S_ZETA + 5]
        f0, f1, f2, f3, f4, f5 = times(s, j, L.S_INERTIA, z0, z1, z2, z3, z4, z5)
        if imposed[j - 1]:  # alpha = beta* + M* (zeta + S qdd), K = M*
            inverse, push = 0.0 * own, drive[j - 1]
            s[j, L.S_FORCE] = left
        else:  # alpha = beta* + K zeta + U (tau - S^T beta*) / H, K = M* - U U^T / H
            k, c = constant[j, L.C_STIFFNESS], constant[j, L.C_DAMPING]
            inverse = 1.0 / (own + constant[j, L.C_ROTOR] + implicit * (c + implicit * k) + s[j, L.S_HELD])
            torque = drive[j - 1] - friction(constant, j, q[j - 1], qd[j - 1]) - implicit * k * qd[j - 1]
            s[j, L.S_FORCE] = torque - left
            push = inverse * (torque - left - (u0 * z0 + u1 * z1 + u2 * z2 + u3 * z3 + u4 * z4 + u5 * z5))
        s[j, L.S_INVERSE] = inverse
        add_wrench(
            s, L.S_BIAS, i, j,
            s[j, L.S_BIAS] + f0 + u0 * push, s[j, L.S_BIAS + 1] + f1 + u1 * push,
            s[j, L.S_BIAS + 2] + f2 + u2 * push, s[j, L.S_BIAS + 3] + f3 + u3 * push,
            s[j, L.S_BIAS + 4] + f4 + u4 * push, s[j, L.S_BIAS + 5] + f5 + u5 * push,
        )  # fmt: skip
        w0, w1, w2, w3, w4, w5 = u0 * inverse, u1 * inverse, u2 * inverse, u3 * inverse, u4 * inverse, u5 * inverse
        add_inertia(
            s, i, j,
            s[j, m] - w0 * u0, s[j, m + 1] - w0 * u1, s[j, m + 2] - w0 * u2,
            s[j, m + 3] - w1 * u1, s[j, m + 4] - w1 * u2, s[j, m + 5] - w2 * u2,
            s[j, m + 6] - w0 * u3, s[j, m + 7] - w0 * u4, s[j, m + 8] - w0 * u5,
            s[j, m + 9] - w1 * u3, s[j, m + 10] - w1 * u4, s[j, m + 11] - w1 * u5,
            s[j, m + 12] - w2 * u3, s[j, m + 13] - w2 * u4, s[j, m + 14] - w2 * u5,
            s[j, m + 15] - w3 * u3, s[j, m + 16] - w3 * u4, s[j, m + 17] - w3 * u5,
            s[j, m + 18] - w4 * u4, s[j, m + 19] - w4 * u5, s[j, m + 20] - w5 * u5,
        )  # fmt: skip


@kernel
def solve_base(s: Any, work: Any) -> None:
    """(10) eta_0' = -M*_0^-1 beta*_0 by Cholesky's method; work (6, 6). NaN where M*_0 is not positive."""
    m = L.S_INERTIA
    k = 0
    for a in range(3):
        for b in range(a, 3):
            work[b, a] = s[0, m + k]
            work[b + 3, a + 3] = s[0, m + 15 + k]
            k += 1
        for b in range(3):
            work[b + 3, a] = s[0, m + 6 + 3 * a + b]
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
        total = -s[0, L.S_BIAS + a]
        for k in range(a):
            total -= work[a, k] * s[0, L.S_ACCELERATION + k]
        s[0, L.S_ACCELERATION + a] = total / work[a, a]
    for a in range(5, -1, -1):
        total = s[0, L.S_ACCELERATION + a]
        for k in range(a + 1, 6):
            total -= work[k, a] * s[0, L.S_ACCELERATION + k]
        s[0, L.S_ACCELERATION + a] = total / work[a, a]


@kernel
def respond(
    topology: Any, constant: Any, imposed: Any, drive: Any, q: Any, qd: Any, s: Any, qdd: Any, torque: Any
) -> None:
    """Third pass, base to tips: accelerations of the driven joints, torques of the imposed ones (section III-D).

    qdd (n,) and torque (n,) are written for every joint.
    """
    for j in range(1, topology.shape[0]):
        i = topology[j, L.T_PARENT]
        wx, wy, wz = s[i, L.S_ACCELERATION + 3], s[i, L.S_ACCELERATION + 4], s[i, L.S_ACCELERATION + 5]
        cx, cy, cz = cross(wx, wy, wz, s[j, L.S_POS], s[j, L.S_POS + 1], s[j, L.S_POS + 2])
        vx, vy, vz = into_child(
            s, j, s[i, L.S_ACCELERATION] + cx, s[i, L.S_ACCELERATION + 1] + cy, s[i, L.S_ACCELERATION + 2] + cz
        )
        wx, wy, wz = into_child(s, j, wx, wy, wz)
        # (4) eta_j' = Ad eta_i' + zeta_j + S qdd
        vx, vy, vz = vx + s[j, L.S_ZETA], vy + s[j, L.S_ZETA + 1], vz + s[j, L.S_ZETA + 2]
        wx, wy, wz = wx + s[j, L.S_ZETA + 3], wy + s[j, L.S_ZETA + 4], wz + s[j, L.S_ZETA + 5]
        u = L.S_U
        pull = s[j, u] * vx + s[j, u + 1] * vy + s[j, u + 2] * vz
        pull += s[j, u + 3] * wx + s[j, u + 4] * wy + s[j, u + 5] * wz
        revolute = topology[j, L.T_KIND] == L.REVOLUTE
        if imposed[j - 1]:
            acceleration = drive[j - 1]
            own = s[j, u + 5] if revolute else s[j, u + 2]
            # tau = S^T (M* eta' + beta*) + rotor qdd + what friction takes
            torque[j - 1] = (
                pull + (own + constant[j, L.C_ROTOR]) * acceleration + s[j, L.S_FORCE]
                + friction(constant, j, q[j - 1], qd[j - 1])
            )  # fmt: skip
        else:
            acceleration = s[j, L.S_INVERSE] * (s[j, L.S_FORCE] - pull)
            torque[j - 1] = drive[j - 1]
        qdd[j - 1] = acceleration
        if revolute:
            wz += acceleration
        else:
            vz += acceleration
        s[j, L.S_ACCELERATION], s[j, L.S_ACCELERATION + 1], s[j, L.S_ACCELERATION + 2] = vx, vy, vz
        s[j, L.S_ACCELERATION + 3], s[j, L.S_ACCELERATION + 4], s[j, L.S_ACCELERATION + 5] = wx, wy, wz


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
    if base_mode == L.BASE_FREE:
        solve_base(s, work)
    else:
        f0, f1, f2, f3, f4, f5 = times(
            s, 0, L.S_INERTIA,
            s[0, L.S_ACCELERATION], s[0, L.S_ACCELERATION + 1], s[0, L.S_ACCELERATION + 2],
            s[0, L.S_ACCELERATION + 3], s[0, L.S_ACCELERATION + 4], s[0, L.S_ACCELERATION + 5],
        )  # fmt: skip
        s[0, L.S_BIAS] += f0
        s[0, L.S_BIAS + 1] += f1
        s[0, L.S_BIAS + 2] += f2
        s[0, L.S_BIAS + 3] += f3
        s[0, L.S_BIAS + 4] += f4
        s[0, L.S_BIAS + 5] += f5
    respond(topology, constant, imposed, drive, q, qd, s, qdd, torque)
