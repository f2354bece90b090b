"""Where the sections of a body with imposed strain are and how they move, seen from its head (first pass).

In the head's frame g' = g xi is all there is to solve; velocity and acceleration are plain integrals,

    (Ad_g eta)' = Ad_g xi_t,    (Ad_g eta_t)' = Ad_g xi_tt - ad(Ad_g xi_t) Ad_g eta,

from eta' = -ad_xi eta + xi_t and (eta_t)' = -ad_xi eta_t - ad_{xi_t} eta + xi_tt. The pose within a cell is the
exponential of Omega' = xi + [Omega, xi]/2 + [Omega, [Omega, xi]]/12 - ..., solved by sweeps of the cell's integrals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.continuum.field import ask
from rtmms.continuum.layout import (
    K_X,
    P_POS,
    P_ROT,
    P_SLOPE,
    P_SPREAD,
    P_STRAIN,
    P_TURN,
    P_TWIST,
    P_ZETA,
)
from rtmms.jit import kernel
from rtmms.spatial import cross, scalar


@scalar
def bracket(s: Any, i: Any, a: Any, b0: Any, b1: Any, b2: Any, b3: Any, b4: Any, b5: Any) -> Any:
    """[a, b] = (W_a x V_b + V_a x W_b; W_a x W_b), a standing in s[i] from column a on."""
    vx, vy, vz, wx, wy, wz = s[i, a], s[i, a + 1], s[i, a + 2], s[i, a + 3], s[i, a + 4], s[i, a + 5]
    cx, cy, cz = cross(wx, wy, wz, b0, b1, b2)
    dx, dy, dz = cross(vx, vy, vz, b3, b4, b5)
    ex, ey, ez = cross(wx, wy, wz, b3, b4, b5)
    return cx + dx, cy + dy, cz + dz, ex, ey, ez


@scalar
def integrate(s: Any, inner: Any, h: float, first: Any, i: Any, what: Any, k: Any) -> Any:
    """h sum_j inner[i, j] s[first + j, what + k]."""
    total = 0.0
    for j in range(inner.shape[0]):
        total += inner[i, j] * s[first + j, what + k]
    return h * total


@kernel
def unwind(s: Any, inner: Any, h: float, first: int) -> None:
    """P_TURN of a cell's points from its start on."""
    q = inner.shape[0]
    for i in range(q):
        for k in range(6):
            s[first + i, P_TURN + k] = integrate(s, inner, h, first, i, P_STRAIN, k)
    for _ in range(2 * q - 4):
        for i in range(first, first + q):
            x = P_STRAIN
            b = bracket(s, i, P_TURN, s[i, x], s[i, x + 1], s[i, x + 2], s[i, x + 3], s[i, x + 4], s[i, x + 5])
            c = bracket(s, i, P_TURN, b[0], b[1], b[2], b[3], b[4], b[5])
            for k in range(6):
                s[i, P_SLOPE + k] = s[i, x + k]
            if q > 4:
                d = bracket(s, i, P_TURN, c[0], c[1], c[2], c[3], c[4], c[5])
                e = bracket(s, i, P_TURN, d[0], d[1], d[2], d[3], d[4], d[5])
                fill(s, i, 1.0, -1.0 / 720.0, e)
            fill(s, i, 1.0, 0.5, b)
            fill(s, i, 1.0, 1.0 / 12.0, c)
        for i in range(q):
            for k in range(6):
                s[first + i, P_TURN + k] = integrate(s, inner, h, first, i, P_SLOPE, k)


@scalar
def fill(s: Any, i: Any, old: float, factor: float, b: Any) -> None:
    """P_SLOPE = old P_SLOPE + factor b."""
    at = P_SLOPE
    s[i, at], s[i, at + 1] = old * s[i, at] + factor * b[0], old * s[i, at + 1] + factor * b[1]
    s[i, at + 2], s[i, at + 3] = old * s[i, at + 2] + factor * b[2], old * s[i, at + 3] + factor * b[3]
    s[i, at + 4], s[i, at + 5] = old * s[i, at + 4] + factor * b[4], old * s[i, at + 5] + factor * b[5]


@kernel
def stand(s: Any, first: int, i: int) -> None:
    """Pose of point i: that of the cell's first point times exp(P_TURN)."""
    t = P_TURN
    x, y, z = s[i, t + 3], s[i, t + 4], s[i, t + 5]
    square = x * x + y * y + z * z
    if square > 1e-6:
        angle = np.sqrt(square)
        a, b = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square
        c = (1.0 - a) / square
    else:
        a = 1.0 - square / 6.0 + square * square / 120.0
        b = 0.5 - square / 24.0 + square * square / 720.0
        c = 1.0 / 6.0 - square / 120.0 + square * square / 5040.0
    # R = 1 + a w^ + b w^ w^, p = v + b w x v + c w x (w x v)
    r = (
        1.0 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y,
        b * x * y + a * z, 1.0 - b * (x * x + z * z), b * y * z - a * x,
        b * x * z - a * y, b * y * z + a * x, 1.0 - b * (x * x + y * y),
    )  # fmt: skip
    u, v, w = s[i, t], s[i, t + 1], s[i, t + 2]
    dx, dy, dz = cross(x, y, z, u, v, w)
    ex, ey, ez = cross(x, y, z, dx, dy, dz)
    px, py, pz = u + b * dx + c * ex, v + b * dy + c * ey, w + b * dz + c * ez
    for k in range(3):
        at = P_ROT + 3 * k
        d, e, f = s[first, at], s[first, at + 1], s[first, at + 2]
        s[i, at], s[i, at + 1] = d * r[0] + e * r[3] + f * r[6], d * r[1] + e * r[4] + f * r[7]
        s[i, at + 2] = d * r[2] + e * r[5] + f * r[8]
        s[i, P_POS + k] = s[first, P_POS + k] + d * px + e * py + f * pz


@scalar
def to_head(s: Any, i: Any, c: Any) -> Any:
    """Ad_g of the twist standing in s[i] from column c on: section -> head, about the head's origin."""
    r, p = P_ROT, P_POS
    v0, v1, v2, w0, w1, w2 = s[i, c], s[i, c + 1], s[i, c + 2], s[i, c + 3], s[i, c + 4], s[i, c + 5]
    wx = s[i, r] * w0 + s[i, r + 1] * w1 + s[i, r + 2] * w2
    wy = s[i, r + 3] * w0 + s[i, r + 4] * w1 + s[i, r + 5] * w2
    wz = s[i, r + 6] * w0 + s[i, r + 7] * w1 + s[i, r + 8] * w2
    mx, my, mz = cross(s[i, p], s[i, p + 1], s[i, p + 2], wx, wy, wz)
    vx = s[i, r] * v0 + s[i, r + 1] * v1 + s[i, r + 2] * v2 + mx
    vy = s[i, r + 3] * v0 + s[i, r + 4] * v1 + s[i, r + 5] * v2 + my
    vz = s[i, r + 6] * v0 + s[i, r + 7] * v1 + s[i, r + 8] * v2 + mz
    return vx, vy, vz, wx, wy, wz


@kernel
def along(function: Any, section: Any, inner: Any, h: float, t: float, p: Any, twist: Any, s: Any) -> int:
    """Poses, twists and zeta of all points. twist (6,) of the head, its frame. The first point whose strain is not
    finite, or -1."""
    bad = -1
    for i in range(section.shape[0] - 1, -1, -1):
        ask(function, section[i, K_X], t, p, s[i, P_STRAIN : P_STRAIN + 18])
        total = 0.0
        for k in range(18):
            total += s[i, P_STRAIN + k]
        if not np.isfinite(total):
            bad = i
    carry_along(inner, h, twist, s)
    return bad


@kernel
def carry_along(inner: Any, h: float, twist: Any, s: Any) -> None:
    """The same of strains that stand in P_STRAIN already."""
    q, n = inner.shape[0], s.shape[0]
    for k in range(P_ROT, P_ZETA + 6):
        s[0, k] = 0.0
    s[0, P_ROT] = s[0, P_ROT + 4] = s[0, P_ROT + 8] = 1.0
    for first in range(0, n - 1, q - 1):
        unwind(s, inner, h, first)
        for i in range(first + 1, first + q):
            stand(s, first, i)
        for i in range(first, first + q):
            a = to_head(s, i, P_STRAIN + 6)
            c = P_SPREAD
            s[i, c], s[i, c + 1], s[i, c + 2], s[i, c + 3], s[i, c + 4], s[i, c + 5] = a
        for i in range(1, q):
            for k in range(6):
                s[first + i, P_TWIST + k] = s[first, P_TWIST + k] + integrate(s, inner, h, first, i, P_SPREAD, k)
        for i in range(first, first + q):
            a = to_head(s, i, P_STRAIN + 12)
            c = P_TWIST
            b = bracket(
                s, i, P_SPREAD, s[i, c] + twist[0], s[i, c + 1] + twist[1], s[i, c + 2] + twist[2],
                s[i, c + 3] + twist[3], s[i, c + 4] + twist[4], s[i, c + 5] + twist[5],
            )  # fmt: skip
            c = P_SLOPE
            s[i, c], s[i, c + 1], s[i, c + 2] = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            s[i, c + 3], s[i, c + 4], s[i, c + 5] = a[3] - b[3], a[4] - b[4], a[5] - b[5]
        for i in range(1, q):
            for k in range(6):
                s[first + i, P_ZETA + k] = s[first, P_ZETA + k] + integrate(s, inner, h, first, i, P_SLOPE, k)
