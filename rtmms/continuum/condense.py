"""What a rod by strain modes shows the body that carries it: its articulated inertia and bias at the root.

With q's rows solved, M_qq qdd = left_q - M_qb a, the root meets (M_bb - M_bq M_qq^-1 M_qb) a + b + M_bq M_qq^-1
left_q: a leaf of the tree, so that nothing of the recursion changes but the body's own inertia and bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.continuum.dynamics import bear, weigh
from rtmms.continuum.kinematics import carry_along
from rtmms.continuum.layout import ENERGY, LOSS, POWER
from rtmms.continuum.rod_tendons import strain_under
from rtmms.continuum.strain_modes import assemble, columns, strain
from rtmms.jit import kernel
from rtmms.model.layout import C_INERTIA, S_GRAVITY, S_TWIST, S_WORLD_ROT, S_WRENCH
from rtmms.spatial import PACKED, cross


@kernel
def root_motion(place: Any, s: Any, j: int, current: Any, head: Any) -> None:
    """head (3, 6): current and gravity in the root's frame, and its twist. place (12,): rotation by rows and position
    of the root in row j's frame."""
    t = S_TWIST
    wx, wy, wz = s[j, t + 3], s[j, t + 4], s[j, t + 5]
    cx, cy, cz = cross(wx, wy, wz, place[9], place[10], place[11])
    vx, vy, vz = s[j, t] + cx, s[j, t + 1] + cy, s[j, t + 2] + cz
    w = S_WORLD_ROT
    ux = s[j, w] * current[0] + s[j, w + 3] * current[1] + s[j, w + 6] * current[2]
    uy = s[j, w + 1] * current[0] + s[j, w + 4] * current[1] + s[j, w + 7] * current[2]
    uz = s[j, w + 2] * current[0] + s[j, w + 5] * current[1] + s[j, w + 8] * current[2]
    gx, gy, gz = s[j, S_GRAVITY], s[j, S_GRAVITY + 1], s[j, S_GRAVITY + 2]
    for k in range(3):
        a, b, c = place[k], place[k + 3], place[k + 6]
        head[0, k] = a * ux + b * uy + c * uz
        head[1, k] = a * gx + b * gy + c * gz
        head[2, k] = a * vx + b * vy + c * vz
        head[2, k + 3] = a * wx + b * wy + c * wz


@kernel
def eliminate(mass: Any, left: Any, gain: Any) -> None:
    """gain (m, 7) = M_qq^-1 (M_qb | left_q); then mass[:6, :6] and left[:6] are those that the root shows. Cholesky's
    factor stands in mass[6:, 6:] afterwards; NaN where M_qq is not positive."""
    m = gain.shape[0]
    for a in range(6, 6 + m):
        total = mass[a, a]
        for k in range(6, a):
            total -= mass[a, k] * mass[a, k]
        pivot = np.sqrt(total)
        mass[a, a] = pivot
        for b in range(a + 1, 6 + m):
            total = mass[b, a]
            for k in range(6, a):
                total -= mass[b, k] * mass[a, k]
            mass[b, a] = total / pivot
    for c in range(7):
        for a in range(m):
            total = left[6 + a] if c == 6 else mass[c, 6 + a]
            for k in range(a):
                total -= mass[6 + a, 6 + k] * gain[k, c]
            gain[a, c] = total / mass[6 + a, 6 + a]
        for a in range(m - 1, -1, -1):
            total = gain[a, c]
            for k in range(a + 1, m):
                total -= mass[6 + k, 6 + a] * gain[k, c]
            gain[a, c] = total / mass[6 + a, 6 + a]
    for k in range(6):
        for a in range(m):
            left[k] += mass[k, 6 + a] * gain[a, 6]
    for k in range(6):
        for j in range(k, 6):
            total = mass[k, j]
            for a in range(m):
                total -= mass[k, 6 + a] * gain[a, j]
            mass[j, k] = total
    for k in range(6):
        for j in range(k):
            mass[j, k] = mass[k, j]


@kernel
def show(place: Any, mass: Any, left: Any, s: Any, j: int, constant: Any, room: Any) -> None:
    """Add the root's mass and left, carried to row j, to its inertia in `constant` and to S_WRENCH. room (3, 6, 6)."""
    x, half, whole = room[0], room[1], room[2]
    px, py, pz = place[9], place[10], place[11]
    for k in range(3):  # X: twist of row j -> of the root, [[R^T, -R^T p^], [0, R^T]]
        a, b, c = place[k], place[k + 3], place[k + 6]
        x[k, 0], x[k, 1], x[k, 2] = a, b, c
        x[k, 3], x[k, 4], x[k, 5] = cross(px, py, pz, a, b, c)
        x[k + 3, 0] = x[k + 3, 1] = x[k + 3, 2] = 0.0
        x[k + 3, 3], x[k + 3, 4], x[k + 3, 5] = a, b, c
    for k in range(6):
        for i in range(6):
            total = 0.0
            for n in range(6):
                total += mass[k, n] * x[n, i]
            half[k, i] = total
    for k in range(6):
        for i in range(6):
            total = 0.0
            for n in range(6):
                total += x[n, k] * half[n, i]
            whole[k, i] = total
    t = S_TWIST
    for k in range(6):  # the momentum that `load` will make of it, taken out again
        total = 0.0
        for i in range(6):
            total += whole[k, i] * s[j, t + i]
        half[0, k] = total
    vx, vy, vz, wx, wy, wz = s[j, t], s[j, t + 1], s[j, t + 2], s[j, t + 3], s[j, t + 4], s[j, t + 5]
    p0, p1, p2, l0, l1, l2 = half[0, 0], half[0, 1], half[0, 2], half[0, 3], half[0, 4], half[0, 5]
    ax, ay, az = cross(wx, wy, wz, p0, p1, p2)
    bx, by, bz = cross(wx, wy, wz, l0, l1, l2)
    cx, cy, cz = cross(vx, vy, vz, p0, p1, p2)
    half[0, 0], half[0, 1], half[0, 2] = ax, ay, az
    half[0, 3], half[0, 4], half[0, 5] = bx + cx, by + cy, bz + cz
    for k in range(6):
        total = half[0, k]
        for n in range(6):
            total -= x[n, k] * left[n]
        s[j, S_WRENCH + k] += total
        for i in range(k, 6):
            constant[j, C_INERTIA + PACKED[k, i]] += 0.5 * (whole[k, i] + whole[i, k])


@kernel
def condense(rod: Any, work: Any, q: Any, qd: Any, implicit: float, pulled: Any) -> None:
    """mass, left and gain of a rod whose root moves as head (root_motion) says.

    pulled  (points, 6) wrenches of tendons (rtmms.continuum.rod_tendons), or None

    rod   section, inner, length of a cell, rest, shapes, stiff, damping
    work  s, jacobian, mine, mass, left, told, head, room (6,), gain (m, 7)
    """
    section, inner, h, rest, shapes, stiff, damping = rod
    s, jacobian, mine, mass, left, told, head, room, gain = work
    m = shapes.shape[0]
    strain(rest, shapes, q, qd, s)
    carry_along(inner, h, head[2], s)
    told[ENERGY] = told[POWER] = told[LOSS] = 0.0
    for i in range(section.shape[0]):
        weigh(section, s, i)
        bear(section, s, i, head[2], head[0], head[1], told)
    columns(shapes, inner, h, s, jacobian, mine)
    assemble(section, s, jacobian, mass, left, room)
    strain_under(pulled, jacobian, left)
    for a in range(m):
        pull = 0.0
        for b in range(m):
            pull += stiff[a, b] * (q[b] + (implicit + damping) * qd[b])
            told[ENERGY] += 0.5 * q[a] * stiff[a, b] * q[b]
            mass[6 + a, 6 + b] += implicit * (damping + implicit) * stiff[a, b]
        left[6 + a] = -left[6 + a] - pull
    eliminate(mass, left, gain)
