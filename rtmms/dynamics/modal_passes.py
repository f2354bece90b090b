"""Compute the recursion's second and third pass on trees with modal bodies (Boyer 2017, eqs 56 to 73, corrected).

A row passes its parent its inertia and bias as in `inward`; a flexible row passes them to the parent's modes too, (62)
to (66). A body with modes is condensed after all its children, (67), (68), the base among them. (73) gives its modes'
accelerations as soon as its own is known, before its children need them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import PACKED, cross, times
from rtmms.dynamics.recursion import (
    add_inertia,
    add_wrench,
    axis_column,
    friction,
    into_child,
    into_parent,
    load,
    packed,
    solve_base,
)
from rtmms.model.layout import (
    BASE_FREE,
    C_DAMPING,
    C_ROTOR,
    C_STIFFNESS,
    MODE,
    REVOLUTE,
    S_ACCELERATION,
    S_BIAS,
    S_FORCE,
    S_HELD,
    S_INERTIA,
    S_INVERSE,
    S_POS,
    S_U,
    S_ZETA,
    SECTION,
    T_KIND,
    T_PARENT,
)  # fmt: skip
from rtmms.model.modal_rows import M_COUNT, M_FIRST, M_MASS, M_PSI, M_SHAPE

# in the room of a row with N modes: M (6 N), m (N N), b (N)


@kernel
def clear_modes(modal: Any) -> None:
    """Set M = 0, m = 0, b = 0 of all bodies.

    Parameters
    ----------
    modal : Record
        Record of `MODAL`.
    """
    book, room = modal.book, modal.room
    for i in range(book.shape[0]):
        count = book[i, M_COUNT]
        for k in range(7 * count + count * count):
            room[book[i, M_MASS] + k] = 0.0


@kernel
def show_modes(modal: Any, i: int, j: int, s: Any) -> None:
    """Add the contribution of row j, whose S_INERTIA and S_BIAS are condensed, to M, m and b of its parent.

    Parameters
    ----------
    modal : Record
        Record of `MODAL`.
    i : int
        Row of the parent.
    j : int
        Row of the model.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.

    Notes
    -----
    Boyer 2017, eqs (63), (64), (66).
    """
    book, room = modal.book, modal.room
    count, psi, mass = book[i, M_COUNT], book[j, M_PSI], book[i, M_MASS]
    square, bias = mass + 6 * count, mass + 6 * count + count * count
    for k in range(count):
        o = psi + 6 * k
        f0, f1, f2, f3, f4, f5 = times(
            s, j, S_INERTIA, room[o], room[o + 1], room[o + 2], room[o + 3], room[o + 4], room[o + 5]
        )
        for m in range(count):
            p = psi + 6 * m
            room[square + count * m + k] += (
                room[p] * f0 + room[p + 1] * f1 + room[p + 2] * f2 + room[p + 3] * f3 + room[p + 4] * f4
                + room[p + 5] * f5
            )  # fmt: skip
        for m in range(6):
            room[bias + k] += room[o + m] * s[j, S_BIAS + m]
        f0, f1, f2 = into_parent(s, j, f0, f1, f2)
        f3, f4, f5 = into_parent(s, j, f3, f4, f5)
        t0, t1, t2 = cross(s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2], f0, f1, f2)
        c = mass + 6 * k
        room[c] += f0
        room[c + 1] += f1
        room[c + 2] += f2
        room[c + 3] += f3 + t0
        room[c + 4] += f4 + t1
        room[c + 5] += f5 + t2


@kernel
def condense(
    modal: Any, constant: Any, imposed: Any, drive: Any, q: Any, qd: Any, implicit: float, i: int, s: Any
) -> None:
    """Eliminate a body's modes from its inertia and bias.

    m becomes its Cholesky factor L, M becomes L^-1 M^T, b becomes L^-1 of the remaining force on the modes. Modes whose
    motion is imposed add their wrench instead.

    Parameters
    ----------
    modal : Record
        Record of `MODAL`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    q, qd : (n,) array
        Joint positions and rates.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    i : int
        Row of the body.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    Boyer 2017, eqs (67), (68).
    """
    book, members, room = modal.book, modal.members, modal.room
    count, first, mass = book[i, M_COUNT], book[i, M_FIRST], book[i, M_MASS]
    if count == 0:
        return
    square, bias = mass + 6 * count, mass + 6 * count + count * count
    if imposed[members[first] - 1]:
        for k in range(count):
            for a in range(6):
                s[i, S_BIAS + a] += room[mass + 6 * k + a] * drive[members[first + k] - 1]
        return
    for k in range(count):
        j = members[first + k]
        stiffness, damping = constant[j, C_STIFFNESS], constant[j, C_DAMPING]
        room[square + count * k + k] += (
            constant[j, C_ROTOR] + implicit * (damping + implicit * stiffness) + s[j, S_HELD]
        )  # fmt: skip
        force = drive[j - 1] - friction(constant, j, q[j - 1], qd[j - 1]) - implicit * stiffness * qd[j - 1]
        room[bias + k] = force - room[bias + k]
    for a in range(count):  # m = L L^T, and L^-1 to the right-hand sides on the way
        for b in range(a):
            total = room[square + count * a + b]
            for k in range(b):
                total -= room[square + count * a + k] * room[square + count * b + k]
            room[square + count * a + b] = total / room[square + count * b + b]
        total = room[square + count * a + a]
        for k in range(a):
            total -= room[square + count * a + k] * room[square + count * a + k]
        pivot = np.sqrt(total)
        room[square + count * a + a] = pivot
        for k in range(a):
            factor = room[square + count * a + k]
            room[bias + a] -= factor * room[bias + k]
            for c in range(6):
                room[mass + 6 * a + c] -= factor * room[mass + 6 * k + c]
        room[bias + a] /= pivot
        for c in range(6):
            room[mass + 6 * a + c] /= pivot
    for k in range(count):
        for a in range(6):
            s[i, S_BIAS + a] += room[mass + 6 * k + a] * room[bias + k]
            for b in range(a + 1):
                s[i, S_INERTIA + PACKED[a, b]] -= room[mass + 6 * k + a] * room[mass + 6 * k + b]


@kernel
def inward_modal(
    topology: Any, constant: Any, modal: Any, imposed: Any, drive: Any, q: Any, qd: Any, implicit: float, s: Any
) -> None:
    """Compute the second pass as `inward`, tips to base; the base's own modes are condensed at the end.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    modal : Record
        Record of `MODAL`.
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
    """
    clear_modes(modal)
    for j in range(topology.shape[0] - 1, 0, -1):
        i, kind = topology[j, T_PARENT], topology[j, T_KIND]
        if kind == MODE:
            continue
        condense(modal, constant, imposed, drive, q, qd, implicit, j, s)
        z0, z1, z2 = s[j, S_ZETA], s[j, S_ZETA + 1], s[j, S_ZETA + 2]
        z3, z4, z5 = s[j, S_ZETA + 3], s[j, S_ZETA + 4], s[j, S_ZETA + 5]
        f0, f1, f2, f3, f4, f5 = times(s, j, S_INERTIA, z0, z1, z2, z3, z4, z5)
        if kind != SECTION:
            revolute = kind == REVOLUTE
            u0, u1, u2, u3, u4, u5 = axis_column(s, j, revolute)
            joint_inertia, left = (u5, s[j, S_BIAS + 5]) if revolute else (u2, s[j, S_BIAS + 2])
            s[j, S_U], s[j, S_U + 1], s[j, S_U + 2] = u0, u1, u2
            s[j, S_U + 3], s[j, S_U + 4], s[j, S_U + 5] = u3, u4, u5
            if imposed[j - 1]:
                inverse, push = 0.0 * joint_inertia, drive[j - 1] + 0.0 * joint_inertia
                s[j, S_FORCE] = left
            else:
                k, c = constant[j, C_STIFFNESS], constant[j, C_DAMPING]
                inverse = 1.0 / (joint_inertia + constant[j, C_ROTOR] + implicit * (c + implicit * k) + s[j, S_HELD])
                torque = drive[j - 1] - friction(constant, j, q[j - 1], qd[j - 1]) - implicit * k * qd[j - 1]
                s[j, S_FORCE] = torque - left
                push = inverse * (torque - left - (u0 * z0 + u1 * z1 + u2 * z2 + u3 * z3 + u4 * z4 + u5 * z5))
            s[j, S_INVERSE] = inverse
            f0, f1, f2 = f0 + u0 * push, f1 + u1 * push, f2 + u2 * push
            f3, f4, f5 = f3 + u3 * push, f4 + u4 * push, f5 + u5 * push
            for a in range(6):  # K = M* - U U^T / H
                for b in range(a + 1):
                    s[j, S_INERTIA + PACKED[a, b]] -= inverse * s[j, S_U + a] * s[j, S_U + b]
        s[j, S_BIAS] += f0
        s[j, S_BIAS + 1] += f1
        s[j, S_BIAS + 2] += f2
        s[j, S_BIAS + 3] += f3
        s[j, S_BIAS + 4] += f4
        s[j, S_BIAS + 5] += f5
        if modal.book[j, M_SHAPE] >= 0:
            show_modes(modal, i, j, s)
        add_wrench(
            s, S_BIAS, i, j, s[j, S_BIAS], s[j, S_BIAS + 1], s[j, S_BIAS + 2], s[j, S_BIAS + 3], s[j, S_BIAS + 4],
            s[j, S_BIAS + 5],
        )  # fmt: skip
        add_inertia(s, i, j, packed(s, j, S_INERTIA))
    condense(modal, constant, imposed, drive, q, qd, implicit, 0, s)


@kernel
def respond_modes(
    modal: Any, constant: Any, imposed: Any, drive: Any, q: Any, qd: Any, i: int, s: Any, qdd: Any, torque: Any
) -> None:
    """Compute the accelerations of a body's modes, or the generalised forces of imposed modes.

    Parameters
    ----------
    modal : Record
        Record of `MODAL`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    q, qd : (n,) array
        Joint positions and rates.
    i : int
        Row of the body.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    qdd, torque : (n,) array
        Results.

    Notes
    -----
    Boyer 2017, eq (73): rdd = m^-1 (Q - M^T eta').
    """
    book, members, room = modal.book, modal.members, modal.room
    count, first, mass = book[i, M_COUNT], book[i, M_FIRST], book[i, M_MASS]
    square, bias = mass + 6 * count, mass + 6 * count + count * count
    if count == 0:
        return
    if imposed[members[first] - 1]:
        for k in range(count):
            j = members[first + k]
            total = room[bias + k] + friction(constant, j, q[j - 1], qd[j - 1]) + constant[j, C_ROTOR] * drive[j - 1]
            for a in range(6):
                total += room[mass + 6 * k + a] * s[i, S_ACCELERATION + a]
            for m in range(count):
                total += room[square + count * k + m] * drive[members[first + m] - 1]
            qdd[j - 1], torque[j - 1] = drive[j - 1], total
        return
    for k in range(count - 1, -1, -1):
        total = room[bias + k]
        for a in range(6):
            total -= room[mass + 6 * k + a] * s[i, S_ACCELERATION + a]
        for m in range(k + 1, count):
            total -= room[square + count * m + k] * qdd[members[first + m] - 1]
        j = members[first + k]
        qdd[j - 1] = total / room[square + count * k + k]
        torque[j - 1] = drive[j - 1]


@kernel
def respond_modal(
    topology: Any, constant: Any, modal: Any, imposed: Any, drive: Any, q: Any, qd: Any, s: Any, qdd: Any, torque: Any
) -> None:
    """Compute the third pass as `respond`, base to tips.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    modal : Record
        Record of `MODAL`.
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
    Boyer 2017, eqs (69) to (73).
    """
    book, members, room = modal.book, modal.members, modal.room
    respond_modes(modal, constant, imposed, drive, q, qd, 0, s, qdd, torque)
    for j in range(1, topology.shape[0]):
        i, kind = topology[j, T_PARENT], topology[j, T_KIND]
        if kind == MODE:
            for k in range(6):
                s[j, S_ACCELERATION + k] = s[i, S_ACCELERATION + k]
            continue
        wx, wy, wz = s[i, S_ACCELERATION + 3], s[i, S_ACCELERATION + 4], s[i, S_ACCELERATION + 5]
        cx, cy, cz = cross(wx, wy, wz, s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2])
        vx, vy, vz = into_child(
            s, j, s[i, S_ACCELERATION] + cx, s[i, S_ACCELERATION + 1] + cy, s[i, S_ACCELERATION + 2] + cz
        )
        wx, wy, wz = into_child(s, j, wx, wy, wz)
        vx, vy, vz = vx + s[j, S_ZETA], vy + s[j, S_ZETA + 1], vz + s[j, S_ZETA + 2]
        wx, wy, wz = wx + s[j, S_ZETA + 3], wy + s[j, S_ZETA + 4], wz + s[j, S_ZETA + 5]
        if book[j, M_SHAPE] >= 0:  # (69) Psi rdd
            for k in range(book[i, M_COUNT]):
                rate, o = qdd[members[book[i, M_FIRST] + k] - 1], book[j, M_PSI] + 6 * k
                vx, vy, vz = vx + room[o] * rate, vy + room[o + 1] * rate, vz + room[o + 2] * rate
                wx, wy, wz = wx + room[o + 3] * rate, wy + room[o + 4] * rate, wz + room[o + 5] * rate
        if kind != SECTION:
            u = S_U
            pull = s[j, u] * vx + s[j, u + 1] * vy + s[j, u + 2] * vz
            pull += s[j, u + 3] * wx + s[j, u + 4] * wy + s[j, u + 5] * wz
            revolute = kind == REVOLUTE
            if imposed[j - 1]:
                acceleration = drive[j - 1] + 0.0 * pull
                joint_inertia = s[j, u + 5] if revolute else s[j, u + 2]
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
        respond_modes(modal, constant, imposed, drive, q, qd, j, s, qdd, torque)


@kernel
def solve_modal(
    topology: Any, constant: Any, modal: Any, base_mode: int, imposed: Any, drive: Any, q: Any, qd: Any,
    implicit: float, s: Any, work: Any, qdd: Any, torque: Any,
) -> None:  # fmt: skip
    """Solve as `solve`; the wrench on a base with given motion is in S_BIAS of row 0.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    modal : Record
        Record of `MODAL`.
    base_mode : int
        BASE_FREE, BASE_PRESCRIBED or BASE_FIXED.
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
    inward_modal(topology, constant, modal, imposed, drive, q, qd, implicit, s)
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
    respond_modal(topology, constant, modal, imposed, drive, q, qd, s, qdd, torque)
