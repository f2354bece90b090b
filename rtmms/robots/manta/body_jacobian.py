"""Compute the effect of wrenches on a manta's body in a step, and of its own coordinates, by the chain rule.

    a1 = K1^-1 (F(R, v) + u1)
    R2 = R exp(c w^), v2 = v + c a1
    a2 = K2^-1 (F(R2, v2) + u2 + U a1)

v+ = v + dt/2 (a1 + a2), pose+ = pose exp(xi), xi = dt/2 (v + v2), or the other results of `end_body` in step.py. The
derivatives of F, the body's own force, are finite differences. With the monolithic coupling the fins' wrenches depend
on the accelerations, and contribute to K1, K2 and U.
"""

from __future__ import annotations

import math
from typing import Any

from rtmms.analysis.run_batch import coordinates_of, turn
from rtmms.base.jit import Array, kernel
from rtmms.dynamics.recursion import move_pose, rotation_matrix, solve_spd6
from rtmms.robots.manta.body import body_force
from rtmms.robots.manta.jacobian_layout import (
    ACCEL_AT,
    ACCEL_LATER_AT,
    AFTER_FIRST,
    AFTER_LATER,
    AFTER_POSE,
    AFTER_TWIST,
    FORCE_WAYS,
    STAGES,
    WRENCHES,
)
from rtmms.robots.manta.layout import (
    BODY_EULER,
    MONOLITHIC,
    POSITION,
    TWIST,
    W_FORCE,
    W_MATRIX,
    W_POSE,
    W_ROTATION,
    W_TWIST,
    W_WATER,
    W_XI,
)
from rtmms.robots.manta.methods import LEADS, OVER, WEIGHTS


@kernel
def lead(finned: Any) -> float:
    """Return the time from the body's first stage to its second.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.

    Returns
    -------
    float
        s.
    """
    return 0.0 if finned.body_method == BODY_EULER else finned.dt * LEADS[finned.integrator, STAGES - 1]


@kernel
def current_in_body(finned: Any, work: Array) -> None:
    """Write the uniform current in body axes, of the pose W_POSE, to W_WATER, and the rotation to W_ROTATION.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    """
    rotation_matrix(work, W_POSE + 3, W_ROTATION)
    r, c = W_ROTATION, finned.current
    for k in range(3):
        work[W_WATER + k] = work[r + k] * c[0] + work[r + 3 + k] * c[1] + work[r + 6 + k] * c[2]


@kernel
def slopes_of_force(finned: Any, body: Any, memory: Any, room: Any) -> None:
    """Write force_by: the derivatives of the body's own force at each stage by attitude and twist there.

    The body's way over the step, W_XI, is stored in room.xi.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    body : Record
        Record of `body.BODY`.
    memory : Record
        Record of `layout.MANTA`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    state, work, c = memory.state, memory.work, lead(finned)
    for k in range(6):
        room.xi[k] = work[W_XI + k]
    for i in range(STAGES):
        if i == 0:
            for k in range(7):
                work[W_POSE + k] = state[POSITION + k]
        else:
            move_pose(state, POSITION, state, TWIST, c, work, W_POSE)
        for k in range(6):
            work[W_TWIST + k] = state[TWIST + k] + (c * room.accel[0, k] if i > 0 else 0.0)
        w, x, y, z = work[W_POSE + 3], work[W_POSE + 4], work[W_POSE + 5], work[W_POSE + 6]
        for m in range(FORCE_WAYS):
            by = room.by[3 + m]
            for side in range(2):
                e = by if side == 0 else -by
                if m < 3:
                    turn(work, W_POSE + 3, m, e)
                else:
                    before = work[W_TWIST + m - 3]
                    work[W_TWIST + m - 3] += e
                current_in_body(finned, work)
                body_force(body, work, W_ROTATION, W_TWIST, W_WATER, W_FORCE)
                for k in range(6):
                    room.force[side, k] = work[W_FORCE + k]
                if m < 3:
                    work[W_POSE + 3], work[W_POSE + 4], work[W_POSE + 5], work[W_POSE + 6] = w, x, y, z
                else:
                    work[W_TWIST + m - 3] = before
            for k in range(6):
                room.force_by[i, m, k] = 0.5 / by * (room.force[0, k] - room.force[1, k])


@kernel
def slopes_of_attitude(finned: Any, memory: Any, room: Any) -> None:
    """Write attitude_by (6, 3): the attitude at the second stage by that at the first, exp(-c w^), and by w.

    The latter is c times the right Jacobian of SO(3).

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    state, c = memory.state, lead(finned)
    x, y, z = c * state[TWIST + 3], c * state[TWIST + 4], c * state[TWIST + 5]
    n2 = x * x + y * y + z * z
    s, a, b = 1.0 - n2 / 6.0, 0.5 - n2 / 24.0, 1.0 / 6.0 - n2 / 120.0
    if n2 > 1e-6:
        n = math.sqrt(n2)
        s, a, b = math.sin(n) / n, (1.0 - math.cos(n)) / n2, (n - math.sin(n)) / (n2 * n)
    h, u = ((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)), (x, y, z)
    for i in range(3):
        for j in range(3):
            delta = 1.0 if i == j else 0.0
            square = u[i] * u[j] - n2 * delta  # (w^ w^) of i and j
            room.attitude_by[j, i] = delta - s * h[i][j] + a * square
            room.attitude_by[3 + j, i] = c * (delta - a * h[i][j] + b * square)


@kernel
def slopes_of_pose(memory: Any, room: Any) -> None:
    """Write pose_by (12, 6): coordinates of the final pose by those of the initial pose and by xi.

    Parameters
    ----------
    memory : Record
        Record of `layout.MANTA`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    state, work, end, xi = memory.state, memory.work, room.pose[0], room.xi
    for m in range(3):
        for k in range(6):  # R_ref^T R
            t = 0.0
            if k < 3:
                for n in range(3):
                    t += room.frames[1, 3 * n + k] * room.frames[0, 3 * n + m]
            room.pose_by[m, k] = t
    for k in range(7):
        room.pose[1, k] = state[POSITION + k]
    for m in range(3, 12):
        by = room.by[m if m < 6 else m - 6]
        for side in range(2):
            e = by if side == 0 else -by
            for k in range(6):
                work[W_XI + k] = xi[k]
            if m < 6:
                turn(room.pose[1], 3, m - 3, e)
            else:
                work[W_XI + m - 6] += e
            move_pose(room.pose[1], 0, work, W_XI, 1.0, end, 0)
            coordinates_of(end, room.places_after[:6], 0, room.reference, room.frames[1], room.xi_sides[side])
            for k in range(3, 7):
                room.pose[1, k] = state[POSITION + k]
        for k in range(6):
            room.pose_by[m, k] = 0.5 / by * (room.xi_sides[0, k] - room.xi_sides[1, k])


@kernel
def _invert(finned: Any, work: Array, wrench: Array, first: int, at: int, coupled: bool, out: Array) -> None:
    """Write K^-1 (6, 6) of the body, less the derivatives of both fins' wrenches by its acceleration.

    The rows begin at `first`, the columns at `at` of wrench (2, WRENCHES, ways).
    """
    for n in range(6):
        for i in range(6):
            for j in range(i + 1):
                k = finned.body_matrix[6 * i + j]
                if coupled:  # symmetric, but for roundings
                    for f in range(2):
                        k -= 0.5 * (wrench[f, first + i, at + j] + wrench[f, first + j, at + i])
                work[W_MATRIX + 6 * i + j] = k
            work[W_FORCE + i] = 1.0 if i == n else 0.0
        solve_spd6(work, W_MATRIX, W_FORCE, out[n])


@kernel
def slopes_by_wrench(finned: Any, memory: Any, room: Any) -> None:
    """Write applied (WRENCHES, AFTERS): the effect of a wrench on the body at each stage.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    work, coupled, c, euler = memory.work, finned.coupling == MONOLITHIC, lead(finned), finned.body_method == BODY_EULER
    for i in range(STAGES):
        _invert(finned, work, room.wrench, 6 * i, ACCEL_AT if i == 0 else ACCEL_LATER_AT, coupled, room.inverse[i])
    for j in range(6):  # what the first acceleration pushes at the second stage
        for k in range(6):
            t = c * room.force_by[1, 3 + j, k]
            if coupled:
                t += room.wrench[0, 6 + k, ACCEL_AT + j] + room.wrench[1, 6 + k, ACCEL_AT + j]
            room.between[j, k] = t
    each = finned.dt / OVER[finned.integrator] * WEIGHTS[finned.integrator, 0]
    ahead, first_weight, two = (0.0, 0.0, finned.dt) if euler else (each * c, each, each)
    for n in range(WRENCHES):
        out = room.applied[n]
        for k in range(6):
            out[AFTER_FIRST + k] = room.inverse[0, n, k] if n < 6 else 0.0
        for k in range(6):
            t = 0.0
            if n < 6:
                for j in range(6):
                    p = 0.0
                    for i in range(6):
                        p += room.between[i, j] * out[AFTER_FIRST + i]
                    t += room.inverse[1, j, k] * p
            else:
                t = room.inverse[1, n - 6, k]
            out[AFTER_LATER + k] = t
        for k in range(6):
            out[AFTER_TWIST + k] = first_weight * out[AFTER_FIRST + k] + two * out[AFTER_LATER + k]
            t = 0.0
            for j in range(6):
                t += room.pose_by[6 + j, k] * out[AFTER_FIRST + j]
            out[AFTER_POSE + k] = ahead * t


@kernel
def own_effect(finned: Any, m: int, room: Any, push: Array, out: Array) -> None:
    """Add the effect of a coordinate of the body, 0 to 11, on its own force and on its motion.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    m : int
        Index of the coordinate.
    room : Record
        Record of `jacobian_layout.TRACED`.
    push : (WRENCHES,) array
        Derivative of the own force; added to.
    out : (AFTERS,) array
        Derivative of the motion without a force; added to.
    """
    if m < 6:
        for k in range(6):
            out[AFTER_POSE + k] += room.pose_by[m, k]
    else:
        out[AFTER_TWIST + m - 6] += 1.0
        for k in range(6):
            out[AFTER_POSE + k] += finned.dt * room.pose_by[m, k]
    if m < 3:
        return
    for k in range(6):
        t = room.force_by[1, m - 3, k] if m >= 6 else 0.0
        if m < 6 or m >= 9:
            turned = room.attitude_by[m - 3 if m < 6 else m - 6]
            for n in range(3):
                t += room.force_by[1, n, k] * turned[n]
        push[k] += room.force_by[0, m - 3, k]
        push[6 + k] += t
