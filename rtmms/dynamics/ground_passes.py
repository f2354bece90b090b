"""Hybrid dynamics of a tree that the ground holds: the same three passes, and rows of contact with them.

eta' = a_p + H (H^T M H)^-1 H^T (F - M a_p), a_p = -A^+ (gamma + B rdd), H = ker A (Boyer 2015, eqs 17-20, corrected),
of nu = (eta, passive joints), is Gauss's principle: of all accelerations that the rows allow, the one of least
constraint. On a tree it needs no large matrix. Going in, each body shows its parent an inertia, a bias and at most six
rows; a passive joint that the rows feel is decided by one of them, qdd = alpha . a_parent + kappa, and the others are
freed of it; any other joint is as in `recursion`. At the base A has at most six rows, all independent.

ground  a record of rtmms.dynamics.ground.GROUND
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.carry import add_inertia, add_wrench, axis_column, into_child, into_parent, packed
from rtmms.dynamics.row_sets import (
    R_ALPHA,
    R_COUNT,
    R_E,
    R_FORCE,
    R_G,
    R_KAPPA,
    R_PIVOT,
    R_ROW,
    R_UP,
    R_UP_B,
    R_UP_E,
    R_UP_FORCE,
    R_UP_G,
    R_UP_SIZE,
    RANK,
    RANKED,
    clear,
    hand_out,
    take_in,
)  # fmt: skip
from rtmms.jit import kernel
from rtmms.model.contact_rows import G_GAIN, G_JOINT, G_ROW
from rtmms.model.layout import (
    REVOLUTE,
    S_ACCELERATION,
    S_BIAS,
    S_FORCE,
    S_INERTIA,
    S_INVERSE,
    S_POS,
    S_U,
    S_ZETA,
    T_KIND,
    T_PARENT,
)  # fmt: skip
from rtmms.spatial import PACKED, cross, times


@kernel
def own_rows(ground: Any, j: int, offset: Any, room: Any) -> None:
    """Body j's own rows of contact into its set. offset (m,): the rows' g, 0 for accelerations."""
    rows, first, length, active = ground.rows, ground.first, ground.length, ground.active
    w = room.shape[0] - 1
    for r in range(first[j], first[j + 1]):
        if rows[r, G_JOINT] > 0.0 or active[r] == 0.0:
            continue  # it goes with its wheel's joint, or is open
        square = 0.0 * room[w, R_ROW]
        for k in range(6):
            value = rows[r, G_ROW + k] if k < 3 else rows[r, G_ROW + k] / length
            room[w, R_ROW + k] = value
            square += value * value
        take_in(room, j, offset[r], np.sqrt(square), float(r))


@kernel
def carry_rows(topology: Any, ground: Any, j: int, s: Any, offset: Any, room: Any) -> None:
    """Body j's rows on its parent's acceleration and on joint j's: E a_j + g = (E X) a_i + (E S) qdd + E zeta + g."""
    rows, joint, length = ground.rows, ground.joint, ground.length
    count = int(room[j, R_COUNT].real)
    axis = 5 if topology[j, T_KIND] == REVOLUTE else 2
    for l in range(count):
        e = R_E + 6 * l
        fx, fy, fz = room[j, e], room[j, e + 1], room[j, e + 2]
        mx, my, mz = room[j, e + 3] * length, room[j, e + 4] * length, room[j, e + 5] * length
        room[j, R_UP_B + l] = mz if axis == 5 else fz
        room[j, R_UP_G + l] = room[j, R_G + l] + (
            fx * s[j, S_ZETA] + fy * s[j, S_ZETA + 1] + fz * s[j, S_ZETA + 2]
            + mx * s[j, S_ZETA + 3] + my * s[j, S_ZETA + 4] + mz * s[j, S_ZETA + 5]
        )  # fmt: skip
        fx, fy, fz = into_parent(s, j, fx, fy, fz)
        mx, my, mz = into_parent(s, j, mx, my, mz)
        tx, ty, tz = cross(s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2], fx, fy, fz)
        u = R_UP_E + 6 * l
        room[j, u], room[j, u + 1], room[j, u + 2] = fx, fy, fz
        room[j, u + 3], room[j, u + 4], room[j, u + 5] = (mx + tx) / length, (my + ty) / length, (mz + tz) / length
    if joint[j] >= 0:
        r, u = joint[j], R_UP_E + 6 * count
        for k in range(6):
            room[j, u + k] = rows[r, G_ROW + k] if k < 3 else rows[r, G_ROW + k] / length
        room[j, R_UP_B + count] = rows[r, G_GAIN]
        room[j, R_UP_G + count] = offset[r]
        count += 1
    for l in range(count):
        u = R_UP_E + 6 * l
        square = room[j, u] * room[j, u]
        for k in range(1, 6):
            square += room[j, u + k] * room[j, u + k]
        room[j, R_UP_SIZE + l] = np.sqrt(square)
    room[j, R_UP] = count


@kernel
def choose_pivot(topology: Any, ground: Any, j: int, room: Any) -> int:
    """The row that feels joint j most, or -1 where none does; the others are freed of the joint."""
    count, best, most = int(room[j, R_UP].real), -1, 0.0
    unit = ground.length if topology[j, T_KIND] == REVOLUTE else 1.0
    for l in range(count):
        b = abs(room[j, R_UP_B + l].real)
        if b > most and b > RANK * (room[j, R_UP_SIZE + l].real * unit + b):
            best, most = l, b
    room[j, R_PIVOT] = best
    if best < 0:
        return -1
    p = R_UP_E + 6 * best
    for l in range(count):
        if l != best:
            c, u = room[j, R_UP_B + l] / room[j, R_UP_B + best], R_UP_E + 6 * l
            for k in range(6):
                room[j, u + k] -= c * room[j, p + k]
            room[j, R_UP_G + l] -= c * room[j, R_UP_G + best]
            room[j, R_UP_SIZE + l] += abs(c.real) * room[j, R_UP_SIZE + best]
    # qdd = alpha . a_i + kappa
    for k in range(6):
        part = -room[j, p + k] / room[j, R_UP_B + best]
        room[j, R_ALPHA + k] = part if k < 3 else part * ground.length
    room[j, R_KAPPA] = -room[j, R_UP_G + best] / room[j, R_UP_B + best]
    return best


@kernel
def pass_on(topology: Any, j: int, room: Any) -> None:
    """The rows that are left into the parent's set."""
    i, w = topology[j, T_PARENT], room.shape[0] - 1
    for l in range(int(room[j, R_UP].real)):
        if l != int(room[j, R_PIVOT].real):
            for k in range(6):
                room[w, R_ROW + k] = room[j, R_UP_E + 6 * l + k]
            take_in(room, i, room[j, R_UP_G + l], room[j, R_UP_SIZE + l], -1.0 - (8.0 * j + l))


@kernel
def condense(topology: Any, j: int, held: bool, given: Any, soft: Any, s: Any) -> Any:
    """What body j shows its parent: inertia and bias, as in `inward`. Returns U (6,), own inertia, S^T (M zeta + beta).

    held  given is the joint's acceleration; else it is what drives it, and soft is added to its own inertia
    """
    revolute = topology[j, T_KIND] == REVOLUTE
    u0, u1, u2, u3, u4, u5 = axis_column(s, j, revolute)
    own, left = (u5, s[j, S_BIAS + 5]) if revolute else (u2, s[j, S_BIAS + 2])
    s[j, S_U], s[j, S_U + 1], s[j, S_U + 2] = u0, u1, u2
    s[j, S_U + 3], s[j, S_U + 4], s[j, S_U + 5] = u3, u4, u5
    z0, z1, z2 = s[j, S_ZETA], s[j, S_ZETA + 1], s[j, S_ZETA + 2]
    z3, z4, z5 = s[j, S_ZETA + 3], s[j, S_ZETA + 4], s[j, S_ZETA + 5]
    f0, f1, f2, f3, f4, f5 = times(s, j, S_INERTIA, z0, z1, z2, z3, z4, z5)
    along = u0 * z0 + u1 * z1 + u2 * z2 + u3 * z3 + u4 * z4 + u5 * z5
    if held:
        inverse, push = 0.0 * own, given
        s[j, S_FORCE] = left
    else:
        inverse = 1.0 / (own + soft)
        s[j, S_FORCE] = given - left
        push = inverse * (given - left - along)
    s[j, S_INVERSE] = inverse
    i = topology[j, T_PARENT]
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
    return own, left + along


@kernel
def decide(topology: Any, j: int, total: Any, force: Any, s: Any, room: Any) -> None:
    """A joint decided by its pivot: M_i += U alpha^T + alpha U^T + H alpha alpha^T, beta_i += alpha force.

    After `condense` with qdd = kappa. total  H, own inertia and what is added to it; force  S^T (M zeta + beta) +
    H kappa - torque; U stands in S_U and is carried to the parent's frame here
    """
    i = topology[j, T_PARENT]
    fx, fy, fz = into_parent(s, j, s[j, S_U], s[j, S_U + 1], s[j, S_U + 2])
    mx, my, mz = into_parent(s, j, s[j, S_U + 3], s[j, S_U + 4], s[j, S_U + 5])
    tx, ty, tz = cross(s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2], fx, fy, fz)
    w = room.shape[0] - 1
    room[w, R_ROW], room[w, R_ROW + 1], room[w, R_ROW + 2] = fx, fy, fz
    room[w, R_ROW + 3], room[w, R_ROW + 4], room[w, R_ROW + 5] = mx + tx, my + ty, mz + tz
    for a in range(6):
        x = room[j, R_ALPHA + a]
        s[i, S_BIAS + a] += x * force
        for b in range(a, 6):
            y = room[j, R_ALPHA + b]
            s[i, S_INERTIA + PACKED[a, b]] += room[w, R_ROW + a] * y + x * room[w, R_ROW + b] + total * x * y


@kernel
def inward_on_ground(
    topology: Any, ground: Any, imposed: Any, drive: Any, soft: Any, offset: Any, s: Any, room: Any
) -> None:  # fmt: skip
    """Second pass. drive (n,) the acceleration of an imposed joint, else all that drives it; soft (n,) see `condense`;
    offset (m,) the rows' g."""
    clear(room)
    for j in range(s.shape[0] - 1, 0, -1):
        own_rows(ground, j, offset, room)
        carry_rows(topology, ground, j, s, offset, room)
        if imposed[j - 1]:
            for l in range(int(room[j, R_UP].real)):
                room[j, R_UP_G + l] += room[j, R_UP_B + l] * drive[j - 1]
            condense(topology, j, True, drive[j - 1], soft[j - 1], s)
        elif choose_pivot(topology, ground, j, room) >= 0:
            kappa = room[j, R_KAPPA]
            own, force = condense(topology, j, True, kappa, soft[j - 1], s)
            total = own + soft[j - 1]
            decide(topology, j, total, force + total * kappa - drive[j - 1], s, room)
        else:
            condense(topology, j, False, drive[j - 1], soft[j - 1], s)
        pass_on(topology, j, room)
    own_rows(ground, 0, offset, room)
    rank, last = room[0, R_COUNT], room.shape[0] - 1
    for j in range(1, last):
        if room[j, R_PIVOT].real >= 0.0:
            rank += 1.0
    room[last, RANKED] = rank


@kernel
def respond_on_ground(
    topology: Any, ground: Any, imposed: Any, drive: Any, soft: Any, s: Any, room: Any, qdd: Any, torque: Any,
    reaction: Any,
) -> None:  # fmt: skip
    """Third pass: accelerations, what each imposed joint takes (S^T (M a + beta) - B^T lambda), reactions of the rows.

    Of rows that depend on others, those that came first bear the reaction. Of passive joints torque is not written.
    """
    for r in range(reaction.shape[0]):
        reaction[r] = 0.0
    hand_out(room, 0, reaction)
    for j in range(1, topology.shape[0]):
        i = topology[j, T_PARENT]
        wx, wy, wz = s[i, S_ACCELERATION + 3], s[i, S_ACCELERATION + 4], s[i, S_ACCELERATION + 5]
        cx, cy, cz = cross(wx, wy, wz, s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2])
        vx, vy, vz = into_child(
            s, j, s[i, S_ACCELERATION] + cx, s[i, S_ACCELERATION + 1] + cy, s[i, S_ACCELERATION + 2] + cz
        )
        wx, wy, wz = into_child(s, j, wx, wy, wz)
        vx, vy, vz = vx + s[j, S_ZETA], vy + s[j, S_ZETA + 1], vz + s[j, S_ZETA + 2]
        wx, wy, wz = wx + s[j, S_ZETA + 3], wy + s[j, S_ZETA + 4], wz + s[j, S_ZETA + 5]
        u = S_U
        pull = s[j, u] * vx + s[j, u + 1] * vy + s[j, u + 2] * vz
        pull += s[j, u + 3] * wx + s[j, u + 4] * wy + s[j, u + 5] * wz
        revolute = topology[j, T_KIND] == REVOLUTE
        pivot, own = int(room[j, R_PIVOT].real), s[j, u + 5] if revolute else s[j, u + 2]
        borne = 0.0 * pull
        for l in range(int(room[j, R_UP].real)):
            if l != pivot:
                borne += room[j, R_UP_B + l] * room[j, R_UP_FORCE + l]
        if imposed[j - 1]:
            qdd[j - 1] = drive[j - 1]
            torque[j - 1] = pull + own * drive[j - 1] + s[j, S_FORCE] - borne
        elif pivot >= 0:
            value = room[j, R_KAPPA]
            for k in range(6):
                value += room[j, R_ALPHA + k] * s[i, S_ACCELERATION + k]
            qdd[j - 1] = value
            # sum_l b_l lambda_l = S^T (M a + beta) + soft qdd - torque, lambda_l of the others as they stand
            needed = pull + (own + soft[j - 1]) * value + s[j, S_FORCE] - drive[j - 1]
            room[j, R_UP_FORCE + pivot] = (needed - borne) / room[j, R_UP_B + pivot]
        else:
            qdd[j - 1] = s[j, S_INVERSE] * (s[j, S_FORCE] - pull)
        count = int(room[j, R_COUNT].real)
        for l in range(count):
            room[j, R_FORCE + l] = room[j, R_UP_FORCE + l]
        if ground.joint[j] >= 0:
            reaction[ground.joint[j]] += room[j, R_UP_FORCE + count]
        hand_out(room, j, reaction)
        if revolute:
            wz += qdd[j - 1]
        else:
            vz += qdd[j - 1]
        s[j, S_ACCELERATION], s[j, S_ACCELERATION + 1], s[j, S_ACCELERATION + 2] = vx, vy, vz
        s[j, S_ACCELERATION + 3], s[j, S_ACCELERATION + 4], s[j, S_ACCELERATION + 5] = wx, wy, wz
