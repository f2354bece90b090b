"""Compute the hybrid dynamics of a tree with contacts: three passes with rows of contact, and the base's rows.

Each body has a set of constraint rows on its acceleration, E a = -g, with E orthonormal: at most six rows, whatever its
descendants are. A body passes its parent, beside its inertia and bias, the rows of the ground. Rows are added one by
one (Gram and Schmidt, twice where much is removed). A row that earlier rows imply adds nothing, and its contradiction
is recorded. Angular parts are divided by a length, so that rows are comparable.

eta' = a_p + H (H^T M H)^-1 H^T (F - M a_p), a_p = -A^+ (gamma + B rdd), H = ker A (Boyer 2015, eqs 17-20, corrected),
of nu = (eta, passive joints), is Gauss's principle: of all accelerations that the rows allow, it is the one of least
constraint. On a tree it needs no large matrix. Inwards, each body passes its parent an inertia, a bias and at most six
rows. A passive joint in these rows is decided by one of them, qdd = alpha . a_parent + kappa, and the joint is
eliminated from the others; any other joint is as in `recursion`. At the base A has at most six rows, all independent.

room (n + 2, R_WIDTH) has one line for each body; the last line is scratch, and has (RANKED ... WORST_ROW).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import PACKED, cross, times
from rtmms.dynamics.recursion import add_inertia, add_wrench, axis_column, into_child, into_parent, packed
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
)

MIN_NEW_PART = 1e-9
"""Smallest new part of a row that counts; a row with less adds nothing."""
MAX_ROWS = 7
"""Largest number of rows that a joint passes on: six of the body behind it, and its wheel's."""

R_COUNT = 0
R_E = 1  # (6, 6) by rows, orthonormal
R_G = 37  # (6,)
R_MIX = 43  # (6, 6) of the row that came in, along those before it
R_SIZE = 79  # (6,) what was new of it
R_SOURCE = 85  # (6,) where it came from: a row of contact, or -1 - (8 joint + place among what the joint passes on)
R_FORCE = 91  # (6,) multipliers
R_UP = 97  # how many rows the joint passes on
R_UP_E = 98  # (7, 6) on the parent's acceleration
R_UP_B = 140  # (7,) on the joint's
R_UP_G = 147  # (7,)
R_UP_SIZE = 154  # (7,) how large the row was before anything was taken from it
R_UP_FORCE = 161  # (7,)
R_PIVOT = 168  # the one that decides the joint's acceleration, or -1
R_ALPHA = 169  # (6,) and R_KAPPA: qdd = alpha . a_parent + kappa
R_KAPPA = 175
R_WIDTH = 180

# in the last line
R_ROW = 0  # (6,) a row on its way in
R_ALONG = 6  # (6,)
R_KERNEL = 12  # (6, 6)
R_REDUCED = 48  # (6, 6)
R_RIGHT = 84  # (6,)
R_BASE = 90  # (6,) the base's acceleration, scaled
# rank, least part of a row that was new, worst contradiction, which row of contact
RANKED = 100
MIN_PART = 101
WORST = 102
WORST_ROW = 103


@kernel
def clear(room: Any) -> None:
    """Remove all rows.

    Parameters
    ----------
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    """
    last = room.shape[0] - 1
    for j in range(last):
        room[j, R_COUNT] = 0.0
        room[j, R_UP] = 0.0
        room[j, R_PIVOT] = -1.0
        for k in range(6):
            room[j, R_FORCE + k] = 0.0
        for k in range(MAX_ROWS):
            room[j, R_UP_FORCE + k] = 0.0
    room[last, RANKED], room[last, MIN_PART], room[last, WORST], room[last, WORST_ROW] = 0.0, 1.0, 0.0, -1.0


@kernel
def take_in(room: Any, i: Any, g: Any, size: Any, source: Any) -> None:
    """Add the row in R_ROW of the last line to those of a body.

    Parameters
    ----------
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    i : int
        Row of the body.
    g : float
        Right-hand side of the row.
    size : float
        Size for comparisons.
    source : float
        See R_SOURCE.
    """
    w = room.shape[0] - 1
    count = int(room[i, R_COUNT].real)
    for l in range(count):
        room[w, R_ALONG + l] = 0.0
    square = 0.0 * g
    for _ in range(2):
        for l in range(count):
            e = R_E + 6 * l
            c = room[w, R_ROW] * room[i, e]
            for k in range(1, 6):
                c += room[w, R_ROW + k] * room[i, e + k]
            room[w, R_ALONG + l] += c
            for k in range(6):
                room[w, R_ROW + k] -= c * room[i, e + k]
        square = room[w, R_ROW] * room[w, R_ROW]
        for k in range(1, 6):
            square += room[w, R_ROW + k] * room[w, R_ROW + k]
        if square.real > 0.25 * (size * size).real:
            break  # little was taken away: once is enough
    left, remaining = np.sqrt(square), g
    for l in range(count):
        remaining -= room[w, R_ALONG + l] * room[i, R_G + l]
    part = left.real / size.real if size.real > 0.0 else 0.0
    if count < 6 and part > MIN_NEW_PART:
        if part < room[w, MIN_PART].real:
            room[w, MIN_PART] = part
        for k in range(6):
            room[i, R_E + 6 * count + k] = room[w, R_ROW + k] / left
        for l in range(count):
            room[i, R_MIX + 6 * count + l] = room[w, R_ALONG + l]
        room[i, R_G + count] = remaining / left
        room[i, R_SIZE + count] = left
        room[i, R_SOURCE + count] = source
        room[i, R_COUNT] = count + 1.0
        return
    wrong = abs(remaining.real) / size.real if size.real > 0.0 else abs(remaining.real)
    if wrong > room[w, WORST].real:
        room[w, WORST], room[w, WORST_ROW] = wrong, source


@kernel
def hand_out(room: Any, i: Any, reaction: Any) -> None:
    """Distribute the multipliers of a body's rows (R_FORCE) to the rows of which they were made.

    A row that added nothing has no multiplier.

    Parameters
    ----------
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    i : int
        Row of the body.
    reaction : (m,) array
        Reactions of the rows of contact; added to.
    """
    for k in range(int(room[i, R_COUNT].real) - 1, -1, -1):
        force = room[i, R_FORCE + k] / room[i, R_SIZE + k]
        for l in range(k):
            room[i, R_FORCE + l] -= room[i, R_MIX + 6 * k + l] * force
        source = int(room[i, R_SOURCE + k].real)
        if source >= 0:
            reaction[source] += force
        else:
            source = -1 - source
            room[source // 8, R_UP_FORCE + source % 8] += force


@kernel
def own_rows(ground: Any, j: int, offset: Any, room: Any) -> None:
    """Add a body's own rows of contact to its set.

    Parameters
    ----------
    ground : Record
        Record of `GROUND`.
    j : int
        Row of the model.
    offset : (m,) array
        Right-hand sides g of the rows; 0 for accelerations.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    """
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
    """Transform a body's rows to its parent's acceleration and the joint's.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    ground : Record
        Record of `rtmms.dynamics.ground.GROUND`.
    j : int
        Row of the body.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    offset : (m,) array
        Right-hand sides g of the rows.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.

    Notes
    -----
    E a_j + g = (E X) a_i + (E S) qdd + E zeta + g.
    """
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
    """Return the row with the largest coefficient of a joint, and eliminate the joint from the other rows.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    ground : Record
        Record of `GROUND`.
    j : int
        Row of the model.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.

    Returns
    -------
    int
        Index of the row; -1 where no row has the joint.
    """
    count, best, maximum = int(room[j, R_UP].real), -1, 0.0
    unit = ground.length if topology[j, T_KIND] == REVOLUTE else 1.0
    for l in range(count):
        b = abs(room[j, R_UP_B + l].real)
        if b > maximum and b > MIN_NEW_PART * (room[j, R_UP_SIZE + l].real * unit + b):
            best, maximum = l, b
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
    """Add the remaining rows to the parent's set.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    """
    i, w = topology[j, T_PARENT], room.shape[0] - 1
    for l in range(int(room[j, R_UP].real)):
        if l != int(room[j, R_PIVOT].real):
            for k in range(6):
                room[w, R_ROW + k] = room[j, R_UP_E + 6 * l + k]
            take_in(room, i, room[j, R_UP_G + l], room[j, R_UP_SIZE + l], -1.0 - (8.0 * j + l))


@kernel
def condense(topology: Any, j: int, held: bool, joint_input: Any, soft: Any, s: Any) -> Any:
    """Add a body's inertia and bias to its parent's, as in `inward`.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    held : bool
        Whether `joint_input` is the joint's acceleration; otherwise it is its drive.
    joint_input : float
        Acceleration or drive.
    soft : float
        Inertia added to the joint's own, for a driven joint.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Returns
    -------
    (float, float)
        Own inertia, and S^T (M zeta + beta).
    """
    revolute = topology[j, T_KIND] == REVOLUTE
    u0, u1, u2, u3, u4, u5 = axis_column(s, j, revolute)
    joint_inertia, left = (u5, s[j, S_BIAS + 5]) if revolute else (u2, s[j, S_BIAS + 2])
    s[j, S_U], s[j, S_U + 1], s[j, S_U + 2] = u0, u1, u2
    s[j, S_U + 3], s[j, S_U + 4], s[j, S_U + 5] = u3, u4, u5
    z0, z1, z2 = s[j, S_ZETA], s[j, S_ZETA + 1], s[j, S_ZETA + 2]
    z3, z4, z5 = s[j, S_ZETA + 3], s[j, S_ZETA + 4], s[j, S_ZETA + 5]
    f0, f1, f2, f3, f4, f5 = times(s, j, S_INERTIA, z0, z1, z2, z3, z4, z5)
    along = u0 * z0 + u1 * z1 + u2 * z2 + u3 * z3 + u4 * z4 + u5 * z5
    if held:
        inverse, push = 0.0 * joint_inertia, joint_input
        s[j, S_FORCE] = left
    else:
        inverse = 1.0 / (joint_inertia + soft)
        s[j, S_FORCE] = joint_input - left
        push = inverse * (joint_input - left - along)
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
    return joint_inertia, left + along


@kernel
def decide(topology: Any, j: int, total: Any, force: Any, s: Any, room: Any) -> None:
    """Add the terms of a joint decided by its pivot, after `condense` with qdd = kappa.

    M_i += U alpha^T + alpha U^T + H alpha alpha^T, beta_i += alpha force. U is in S_U and is transformed to the
    parent's frame here.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    total : float
        H, own inertia and its additions.
    force : float
        S^T (M zeta + beta) + H kappa - torque.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
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
    """Compute the second pass.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    ground : Record
        Record of `GROUND`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of an imposed joint, else its total drive.
    soft : (n,) array
        See `condense`.
    offset : (m,) array
        Right-hand sides g of the rows.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    """
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
            joint_inertia, force = condense(topology, j, True, kappa, soft[j - 1], s)
            total = joint_inertia + soft[j - 1]
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
    """Compute the third pass: accelerations, torques of imposed joints (S^T (M a + beta) - B^T lambda), and reactions.

    Among rows that depend on others, the first ones have the reaction. Torques of passive joints are not written.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    ground : Record
        Record of `GROUND`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive, soft : (n,) array
        As for `inward_on_ground`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    qdd, torque : (n,) array
        Results.
    reaction : (m,) array
        Result, N or N m.
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
        pivot, joint_inertia = int(room[j, R_PIVOT].real), s[j, u + 5] if revolute else s[j, u + 2]
        borne = 0.0 * pull
        for l in range(int(room[j, R_UP].real)):
            if l != pivot:
                borne += room[j, R_UP_B + l] * room[j, R_UP_FORCE + l]
        if imposed[j - 1]:
            qdd[j - 1] = drive[j - 1]
            torque[j - 1] = pull + joint_inertia * drive[j - 1] + s[j, S_FORCE] - borne
        elif pivot >= 0:
            value = room[j, R_KAPPA]
            for k in range(6):
                value += room[j, R_ALPHA + k] * s[i, S_ACCELERATION + k]
            qdd[j - 1] = value
            # sum_l b_l lambda_l = S^T (M a + beta) + soft qdd - torque, lambda_l of the others as they stand
            needed = pull + (joint_inertia + soft[j - 1]) * value + s[j, S_FORCE] - drive[j - 1]
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


@kernel
def span_kernel(room: Any, d: int) -> None:
    """Write H (6, d) of the base's rows, by columns in R_KERNEL: the least constrained unit vectors, made orthonormal.

    Parameters
    ----------
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    d : int
        Dimension of the kernel.
    """
    w = room.shape[0] - 1
    count = 6 - d
    for c in range(d):
        best, maximum = 0, -1.0
        for k in range(6):
            left = 1.0
            for l in range(count):
                left -= (room[0, R_E + 6 * l + k] * room[0, R_E + 6 * l + k]).real
            for l in range(c):
                left -= (room[w, R_KERNEL + 6 * l + k] * room[w, R_KERNEL + 6 * l + k]).real
            if left > maximum:
                best, maximum = k, left
        new = R_KERNEL + 6 * c
        for k in range(6):
            room[w, new + k] = 0.0
        room[w, new + best] = 1.0
        for _ in range(2):
            for l in range(count + c):
                row, at = (0, R_E + 6 * l) if l < count else (w, R_KERNEL + 6 * (l - count))
                along = room[row, at] * room[w, new]
                for k in range(1, 6):
                    along += room[row, at + k] * room[w, new + k]
                for k in range(6):
                    room[w, new + k] -= along * room[row, at + k]
        square = room[w, new] * room[w, new]
        for k in range(1, 6):
            square += room[w, new + k] * room[w, new + k]
        for k in range(6):
            room[w, new + k] /= np.sqrt(square)


@kernel
def base_column(s: Any, room: Any, length: Any, k: int) -> Any:
    """Return component k of M a + beta at the base, scaled, with a in R_BASE.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    length : float
        Divisor of angular parts, m.
    k : int
        Component, 0 to 5.

    Returns
    -------
    float
        N.
    """
    w = room.shape[0] - 1
    total = s[0, S_BIAS + k]
    for b in range(6):
        total += s[0, S_INERTIA + PACKED[k, b]] * (room[w, R_BASE + b] if b < 3 else room[w, R_BASE + b] / length)
    return total if k < 3 else total / length


@kernel
def solve_base_on_ground(s: Any, room: Any, length: Any) -> None:
    """Solve for the base's acceleration: a_p = -E^T g, then the free part by Cholesky's method.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    length : float
        Divisor of angular parts, m.

    Notes
    -----
    The result is NaN where a free motion moves no inertia.
    """
    w, count = room.shape[0] - 1, int(room[0, R_COUNT].real)
    d = 6 - count
    for k in range(6):
        total = 0.0 * room[w, R_BASE]
        for l in range(count):
            total -= room[0, R_E + 6 * l + k] * room[0, R_G + l]
        room[w, R_BASE + k] = total
    if d > 0:
        span_kernel(room, d)
        for k in range(6):
            room[w, R_ROW + k] = base_column(s, room, length, k)
        for a in range(d):
            total = 0.0 * room[w, R_ROW]
            for k in range(6):
                total -= room[w, R_KERNEL + 6 * a + k] * room[w, R_ROW + k]
            room[w, R_RIGHT + a] = total
            for k in range(6):  # M h_a, scaled
                total = 0.0 * room[w, R_ROW]
                for b in range(6):
                    h = room[w, R_KERNEL + 6 * a + b]
                    total += s[0, S_INERTIA + PACKED[k, b]] * (h if b < 3 else h / length)
                room[w, R_ALONG + k] = total if k < 3 else total / length
            for b in range(a, d):
                total = 0.0 * room[w, R_ROW]
                for k in range(6):
                    total += room[w, R_KERNEL + 6 * b + k] * room[w, R_ALONG + k]
                room[w, R_REDUCED + 6 * b + a] = total
        reduce_and_solve(room, d)
        for k in range(6):
            for a in range(d):
                room[w, R_BASE + k] += room[w, R_KERNEL + 6 * a + k] * room[w, R_RIGHT + a]
    for k in range(6):
        s[0, S_ACCELERATION + k] = room[w, R_BASE + k] if k < 3 else room[w, R_BASE + k] / length
    for l in range(count):  # E^T lambda = M a + beta
        room[0, R_FORCE + l] = 0.0
    for k in range(6):
        value = base_column(s, room, length, k)
        for l in range(count):
            room[0, R_FORCE + l] += room[0, R_E + 6 * l + k] * value


@kernel
def reduce_and_solve(room: Any, d: int) -> None:
    """Compute R_RIGHT = (H^T M H)^-1 R_RIGHT, by Cholesky's factors of the lower triangle in R_REDUCED.

    Parameters
    ----------
    room : (rows + 1, R_WIDTH) array
        Rows of each body, columns R_*; the last line is scratch.
    d : int
        Dimension of the kernel.
    """
    w, n, f = room.shape[0] - 1, R_REDUCED, R_RIGHT
    for a in range(d):
        total = room[w, n + 7 * a]
        for k in range(a):
            total -= room[w, n + 6 * a + k] * room[w, n + 6 * a + k]
        pivot = np.sqrt(total)
        room[w, n + 7 * a] = pivot
        for b in range(a + 1, d):
            total = room[w, n + 6 * b + a]
            for k in range(a):
                total -= room[w, n + 6 * b + k] * room[w, n + 6 * a + k]
            room[w, n + 6 * b + a] = total / pivot
    for a in range(d):
        total = room[w, f + a]
        for k in range(a):
            total -= room[w, n + 6 * a + k] * room[w, f + k]
        room[w, f + a] = total / room[w, n + 7 * a]
    for a in range(d - 1, -1, -1):
        total = room[w, f + a]
        for k in range(a + 1, d):
            total -= room[w, n + 6 * k + a] * room[w, f + k]
        room[w, f + a] = total / room[w, n + 7 * a]
