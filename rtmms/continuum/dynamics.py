"""Compute the head's acceleration, the internal wrenches and the actuators' power of a body with imposed strain.

The first pass computes poses and motions of the sections, seen from the head. In the head's frame only g' = g xi is a
differential equation; velocity and acceleration are plain integrals,

    (Ad_g eta)' = Ad_g xi_t
    (Ad_g eta_t)' = Ad_g xi_tt - ad(Ad_g xi_t) Ad_g eta

from eta' = -ad_xi eta + xi_t and (eta_t)' = -ad_xi eta_t - ad_{xi_t} eta + xi_tt. The pose within a cell is the
exponential of Omega' = xi + [Omega, xi]/2 + [Omega, [Omega, xi]]/12 - ..., solved by sweeps of the cell's integrals.

Sections' balances are carried to the head's frame, where f' = ad_xi^T f + ... is a plain integral: with F = Ad_g^-T f

    F' = Ad^T [(M + M_f) eta_t + b],    F(0) = 0,    F(l) = Ad_l^T F_tail

so that F(X) = A(X) eta0_t + B(X), and the tail's end gives the head's acceleration (second pass). A third pass gives f
and the power -int f . xi_t. The fluid is that of an elongated body: M_f eta_r with eta_r = (V - R^T U, W), a wake with
F_tail = (M_f eta_r) V_r1 - (eta_r^T M_f eta_r) e1 / 2, and drag. The wake is shed only while the tail follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import cross, quaternion_columns, scalar
from rtmms.continuum.field import ask
from rtmms.continuum.layout import (
    BAD_POINT,
    ENERGY,
    K_ADDED,
    K_DRAG,
    K_INERTIA,
    K_MASS,
    K_PULL,
    K_ROLL,
    K_ROLL_DRAG,
    K_WEIGHT,
    K_X,
    LOSS,
    P_LOAD,
    P_POS,
    P_ROT,
    P_SLOPE,
    P_SPREAD,
    P_STRAIN,
    P_SUM,
    P_TURN,
    P_TWIST,
    P_WRENCH,
    P_ZETA,
    POWER,
    Y_POSITION,
    Y_TWIST,
)
from rtmms.dynamics.recursion import solve_base
from rtmms.model.layout import S_ACCELERATION, S_BIAS, S_INERTIA


@scalar
def bracket(s: Any, i: Any, a: Any, b0: Any, b1: Any, b2: Any, b3: Any, b4: Any, b5: Any) -> Any:
    """Return the Lie bracket [a, b] = (W_a x V_b + V_a x W_b; W_a x W_b).

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    i : int
        Index of the point.
    a : int
        First column of a.
    b0, b1, b2, b3, b4, b5 : float
        b.

    Returns
    -------
    tuple of float
        Six numbers.
    """
    vx, vy, vz, wx, wy, wz = s[i, a], s[i, a + 1], s[i, a + 2], s[i, a + 3], s[i, a + 4], s[i, a + 5]
    cx, cy, cz = cross(wx, wy, wz, b0, b1, b2)
    dx, dy, dz = cross(vx, vy, vz, b3, b4, b5)
    ex, ey, ez = cross(wx, wy, wz, b3, b4, b5)
    return cx + dx, cy + dy, cz + dz, ex, ey, ez


@scalar
def integrate(s: Any, inner: Any, h: float, first: Any, i: Any, what: Any, k: Any) -> Any:
    """Return h sum_j inner[i, j] s[first + j, what + k].

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    inner : (q, q) array
        Integrals within a cell, see `body.Grid`.
    h : float
        Length of a cell, m.
    first, i : int
        First point of the cell, and point in the cell.
    what, k : int
        First column, and offset from it.

    Returns
    -------
    float
        Integral from the cell's start to the point.
    """
    total = 0.0
    for j in range(inner.shape[0]):
        total += inner[i, j] * s[first + j, what + k]
    return h * total


@kernel
def unwind(s: Any, inner: Any, h: float, first: int) -> None:
    """Write P_TURN of a cell's points: the logarithm of the pose from the cell's start on.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    inner : (q, q) array
        Integrals within a cell, see `body.Grid`.
    h : float
        Length of a cell, m.
    first : int
        First point of the cell.
    """
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
    """Write P_SLOPE = old P_SLOPE + factor b.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    i : int
        Index of the point.
    old, factor : float
        Factors.
    b : tuple of float
        Six numbers.
    """
    at = P_SLOPE
    s[i, at], s[i, at + 1] = old * s[i, at] + factor * b[0], old * s[i, at + 1] + factor * b[1]
    s[i, at + 2], s[i, at + 3] = old * s[i, at + 2] + factor * b[2], old * s[i, at + 3] + factor * b[3]
    s[i, at + 4], s[i, at + 5] = old * s[i, at + 4] + factor * b[4], old * s[i, at + 5] + factor * b[5]


@kernel
def stand(s: Any, first: int, i: int) -> None:
    """Write the pose of a point: that of the cell's first point times exp(P_TURN).

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    first : int
        First point of the cell.
    i : int
        Index of the point.
    """
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
    """Return Ad_g of a twist: from the section to the head, about the head's origin.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    i : int
        Index of the point.
    c : int
        First column of the twist.

    Returns
    -------
    tuple of float
        Twist in the head's frame.
    """
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
    """Compute poses, twists and zeta of all points from the strain field.

    Parameters
    ----------
    function : int
        Address of the strain field.
    section : (points, K_WIDTH) array
        Sections.
    inner : (q, q) array
        Integrals within a cell, see `body.Grid`.
    h : float
        Length of a cell, m.
    t : float
        s.
    p : (3, k) array
        Parameters of the field, with rates and accelerations.
    twist : (6,) array
        Twist of the head, its frame, m/s and rad/s.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.

    Returns
    -------
    int
        First point whose strain is not finite, or -1.
    """
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
    """Compute poses, twists and zeta of all points from strains in P_STRAIN.

    Parameters
    ----------
    inner : (q, q) array
        Integrals within a cell, see `body.Grid`.
    h : float
        Length of a cell, m.
    twist : (6,) array
        Twist of the head, its frame, m/s and rad/s.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    """
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


@scalar
def size(x: Any) -> Any:
    """Return the absolute value of a number.

    Parameters
    ----------
    x : float
        Number.

    Returns
    -------
    float
        |x|.
    """
    return -x if x < 0.0 else x


@scalar
def back(s: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """Return a vector of the head's frame in the section's frame.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    i : int
        Index of the point.
    x, y, z : float
        Components in the head's frame.

    Returns
    -------
    (float, float, float)
        Components in the section's frame.
    """
    r = P_ROT
    return (
        s[i, r] * x + s[i, r + 3] * y + s[i, r + 6] * z,
        s[i, r + 1] * x + s[i, r + 4] * y + s[i, r + 7] * z,
        s[i, r + 2] * x + s[i, r + 5] * y + s[i, r + 8] * z,
    )


@scalar
def to_head_axes(s: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """Return a vector of the section's frame in the head's frame.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    i : int
        Index of the point.
    x, y, z : float
        Components in the section's frame.

    Returns
    -------
    (float, float, float)
        Components in the head's frame.
    """
    r = P_ROT
    return (
        s[i, r] * x + s[i, r + 1] * y + s[i, r + 2] * z,
        s[i, r + 3] * x + s[i, r + 4] * y + s[i, r + 5] * z,
        s[i, r + 6] * x + s[i, r + 7] * y + s[i, r + 8] * z,
    )


@scalar
def twist_at_section(s: Any, i: Any, vx: Any, vy: Any, vz: Any, wx: Any, wy: Any, wz: Any) -> Any:
    """Return a twist about the head's origin as one about the section's, in the section's frame.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    i : int
        Index of the point.
    vx, vy, vz, wx, wy, wz : float
        Twist, m/s and rad/s, head's frame.

    Returns
    -------
    tuple of float
        Twist in the section's frame.
    """
    cx, cy, cz = cross(wx, wy, wz, s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2])
    a, b, c = back(s, i, vx + cx, vy + cy, vz + cz)
    d, e, f = back(s, i, wx, wy, wz)
    return a, b, c, d, e, f


@scalar
def spin(s: Any, i: Any, a: Any, b: Any, c: Any) -> Any:
    """Return R diag(a, b, c) R^T.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    i : int
        Index of the point.
    a, b, c : float
        Diagonal in the section's frame.

    Returns
    -------
    tuple of float
        xx xy xz yy yz zz in the head's frame.
    """
    r = P_ROT
    x, y, z = s[i, r], s[i, r + 1], s[i, r + 2]
    u, v, w = s[i, r + 3], s[i, r + 4], s[i, r + 5]
    d, e, f = s[i, r + 6], s[i, r + 7], s[i, r + 8]
    return (
        a * x * x + b * y * y + c * z * z, a * x * u + b * y * v + c * z * w, a * x * d + b * y * e + c * z * f,
        a * u * u + b * v * v + c * w * w, a * u * d + b * v * e + c * w * f, a * d * d + b * e * e + c * f * f,
    )  # fmt: skip


@kernel
def weigh(k: Any, s: Any, i: int) -> None:
    """Write P_LOAD: packed inertia of the section and its fluid about the head's origin, for a metre.

    Parameters
    ----------
    k : (points, K_WIDTH) array
        Sections, columns K_*.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    i : int
        Index of the point.
    """
    m = k[i, K_MASS]
    a = spin(s, i, m + k[i, K_ADDED], m + k[i, K_ADDED + 1], m + k[i, K_ADDED + 2])
    c = spin(s, i, k[i, K_INERTIA] + k[i, K_ROLL], k[i, K_INERTIA + 1], k[i, K_INERTIA + 2])
    px, py, pz = s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2]
    # B = -A p^, by rows: (A p^) v = A (p x v); C = c - p^ A p^ = c + p^ B
    b00, b01, b02 = cross(px, py, pz, a[0], a[1], a[2])
    b10, b11, b12 = cross(px, py, pz, a[1], a[3], a[4])
    b20, b21, b22 = cross(px, py, pz, a[2], a[4], a[5])
    at = P_LOAD
    for n in range(6):
        s[i, at + n] = a[n]
    s[i, at + 6], s[i, at + 7], s[i, at + 8] = b00, b01, b02
    s[i, at + 9], s[i, at + 10], s[i, at + 11] = b10, b11, b12
    s[i, at + 12], s[i, at + 13], s[i, at + 14] = b20, b21, b22
    s[i, at + 15], s[i, at + 16] = c[0] + py * b20 - pz * b10, c[1] + py * b21 - pz * b11
    s[i, at + 17], s[i, at + 18] = c[2] + py * b22 - pz * b12, c[3] + pz * b01 - px * b21
    s[i, at + 19], s[i, at + 20] = c[4] + pz * b02 - px * b22, c[5] + px * b12 - py * b02


@kernel
def bear(k: Any, s: Any, i: int, twist: Any, water: Any, gravity: Any, loads: Any) -> None:
    """Write the bias of a section, carried to the head, to P_LOAD, and add its energy and loss to the totals.

    Parameters
    ----------
    k : (points, K_WIDTH) array
        Sections, columns K_*.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    i : int
        Index of the point.
    twist : (6,) array
        Twist of the head, its frame, m/s and rad/s.
    water, gravity : (3,) array
        Velocity of the water, m/s, and gravity, m/s2, in the head's frame.
    loads : (TOTALS,) array
        Totals; added to, for a metre times the weight.

    Notes
    -----
    b = -ad_eta^T M eta - ad_eta_r^T M_f eta_r + (M + M_f) zeta + M_f (W x R^T U) - drag - weight.
    """
    t, z = P_TWIST, P_ZETA
    vx, vy, vz, wx, wy, wz = twist_at_section(
        s, i, twist[0] + s[i, t], twist[1] + s[i, t + 1], twist[2] + s[i, t + 2],
        twist[3] + s[i, t + 3], twist[4] + s[i, t + 4], twist[5] + s[i, t + 5],
    )  # fmt: skip
    zx, zy, zz, yx, yy, yz = twist_at_section(
        s, i, s[i, z], s[i, z + 1], s[i, z + 2], s[i, z + 3], s[i, z + 4], s[i, z + 5]
    )
    ux, uy, uz = back(s, i, water[0], water[1], water[2])
    gx, gy, gz = back(s, i, gravity[0], gravity[1], gravity[2])
    rx, ry, rz = vx - ux, vy - uy, vz - uz
    m, f1, f2, f3 = k[i, K_MASS], k[i, K_ADDED], k[i, K_ADDED + 1], k[i, K_ADDED + 2]
    px, py, pz = f1 * rx, f2 * ry, f3 * rz  # the fluid's momentum
    lx, ly, lz = k[i, K_INERTIA] + k[i, K_ROLL], k[i, K_INERTIA + 1], k[i, K_INERTIA + 2]
    cx, cy, cz = cross(wx, wy, wz, m * vx + px, m * vy + py, m * vz + pz)
    dx, dy, dz = cross(wx, wy, wz, ux, uy, uz)
    speed = (ry * ry + rz * rz) ** 0.5
    d1, d2, d3 = k[i, K_DRAG] * size(rx) * rx, k[i, K_DRAG + 1] * speed * ry, k[i, K_DRAG + 2] * speed * rz
    d4 = k[i, K_ROLL_DRAG] * size(wx) * wx
    pull = k[i, K_PULL]
    bx = cx + (m + f1) * zx + f1 * dx + d1 - pull * gx
    by = cy + (m + f2) * zy + f2 * dy + d2 - pull * gy
    bz = cz + (m + f3) * zz + f3 * dz + d3 - pull * gz
    ex, ey, ez = cross(wx, wy, wz, lx * wx, ly * wy, lz * wz)
    hx, hy, hz = cross(rx, ry, rz, px, py, pz)
    fx, fy, fz = to_head_axes(s, i, bx, by, bz)
    mx, my, mz = to_head_axes(s, i, ex + hx + lx * yx + d4, ey + hy + ly * yy, ez + hz + lz * yz)
    qx, qy, qz = cross(s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2], fx, fy, fz)
    at = P_LOAD + 21
    s[i, at], s[i, at + 1], s[i, at + 2] = fx, fy, fz
    s[i, at + 3], s[i, at + 4], s[i, at + 5] = mx + qx, my + qy, mz + qz
    # T_b + p . V_r / 2 + p . V_f, and what gravity keeps: seen from the head's origin, whose own part is added later
    energy = 0.5 * (m * (vx * vx + vy * vy + vz * vz) + px * rx + py * ry + pz * rz + lx * wx * wx)
    energy += px * ux + py * uy + pz * uz
    energy += 0.5 * (ly * wy * wy + lz * wz * wz)
    energy -= pull * (gravity[0] * s[i, P_POS] + gravity[1] * s[i, P_POS + 1] + gravity[2] * s[i, P_POS + 2])
    loads[ENERGY] += k[i, K_WEIGHT] * energy
    loads[LOSS] += k[i, K_WEIGHT] * (d1 * vx + d2 * vy + d3 * vz + d4 * wx)


@kernel
def write_wake(k: Any, s: Any, i: int, twist: Any, water: Any, wrench: Any) -> float:
    """Write the wake's wrench F_tail on the tail, carried to the head, and return its power.

    Parameters
    ----------
    k : (points, K_WIDTH) array
        Sections, columns K_*.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    i : int
        Index of the point.
    twist : (6,) array
        Twist of the head, its frame, m/s and rad/s.
    water : (3,) array
        Velocity of the water in the head's frame, m/s.
    wrench : (6,) array
        Result, N and N m.

    Returns
    -------
    float
        Power into the wake, W.
    """
    t = P_TWIST
    vx, vy, vz, wx, _, _ = twist_at_section(
        s, i, twist[0] + s[i, t], twist[1] + s[i, t + 1], twist[2] + s[i, t + 2],
        twist[3] + s[i, t + 3], twist[4] + s[i, t + 4], twist[5] + s[i, t + 5],
    )  # fmt: skip
    ux, uy, uz = back(s, i, water[0], water[1], water[2])
    rx, ry, rz = vx - ux, vy - uy, vz - uz
    for n in range(6):
        wrench[n] = 0.0
    if rx > 0.0:  # a tail that goes ahead sheds nothing: it would be fed with energy
        return 0.0
    px, py, pz, lx = k[i, K_ADDED] * rx, k[i, K_ADDED + 1] * ry, k[i, K_ADDED + 2] * rz, k[i, K_ROLL] * wx
    twice = px * rx + py * ry + pz * rz + lx * wx
    fx, fy, fz, mx = px * rx - 0.5 * twice, py * rx, pz * rx, lx * rx
    wrench[0], wrench[1], wrench[2] = to_head_axes(s, i, fx, fy, fz)
    ax, ay, az = to_head_axes(s, i, mx, 0.0, 0.0)
    cx, cy, cz = cross(s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2], wrench[0], wrench[1], wrench[2])
    wrench[3], wrench[4], wrench[5] = ax + cx, ay + cy, az + cz
    return -(fx * vx + fy * vy + fz * vz + mx * wx)


@kernel
def sum_up(s: Any, inner: Any, h: float) -> None:
    """Write P_SUM: the integral of P_LOAD from the head to each point.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    inner : (q, q) array
        Integrals within a cell, see `body.Grid`.
    h : float
        Length of a cell, m.
    """
    q, n = inner.shape[0], s.shape[0]
    for k in range(27):
        s[0, P_SUM + k] = 0.0
    for first in range(0, n - 1, q - 1):
        for i in range(1, q):
            row = first + i
            for k in range(27):
                s[row, P_SUM + k] = s[first, P_SUM + k]
            for j in range(q):
                w = h * inner[i, j]
                for k in range(27):
                    s[row, P_SUM + k] += w * s[first + j, P_LOAD + k]


@kernel
def strain_power(k: Any, s: Any, acceleration: Any) -> float:
    """Compute the third pass: f of each point in its own frame, written to P_WRENCH, and the power -int f . xi_t.

    Parameters
    ----------
    k : (points, K_WIDTH) array
        Sections, columns K_*.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    acceleration : (6,) array
        Acceleration of the head, its frame, m/s2 and rad/s2.

    Returns
    -------
    float
        W.
    """
    power = 0.0
    a0, a1, a2 = acceleration[0], acceleration[1], acceleration[2]
    a3, a4, a5 = acceleration[3], acceleration[4], acceleration[5]
    for i in range(s.shape[0]):
        m = s[i, P_SUM : P_SUM + 27]
        x = m[0] * a0 + m[1] * a1 + m[2] * a2 + m[6] * a3 + m[7] * a4 + m[8] * a5 + m[21]
        y = m[1] * a0 + m[3] * a1 + m[4] * a2 + m[9] * a3 + m[10] * a4 + m[11] * a5 + m[22]
        z = m[2] * a0 + m[4] * a1 + m[5] * a2 + m[12] * a3 + m[13] * a4 + m[14] * a5 + m[23]
        u = m[6] * a0 + m[9] * a1 + m[12] * a2 + m[15] * a3 + m[16] * a4 + m[17] * a5 + m[24]
        v = m[7] * a0 + m[10] * a1 + m[13] * a2 + m[16] * a3 + m[18] * a4 + m[19] * a5 + m[25]
        w = m[8] * a0 + m[11] * a1 + m[14] * a2 + m[17] * a3 + m[19] * a4 + m[20] * a5 + m[26]
        e = P_SPREAD
        moving = x * s[i, e] + y * s[i, e + 1] + z * s[i, e + 2]
        moving += u * s[i, e + 3] + v * s[i, e + 4] + w * s[i, e + 5]
        power -= k[i, K_WEIGHT] * moving
        cx, cy, cz = cross(s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2], x, y, z)
        f = P_WRENCH
        s[i, f], s[i, f + 1], s[i, f + 2] = back(s, i, x, y, z)
        s[i, f + 3], s[i, f + 4], s[i, f + 5] = back(s, i, u - cx, v - cy, w - cz)
    return power


@kernel
def evaluate(body: Any, state: Any, t: float, rate: Any) -> None:
    """Compute the rate of a state with the parameters body.p.

    Parameters
    ----------
    body : Record
        Record of `plant.BODY`.
    state : (Y_SIZE,) array
        State, columns Y_*.
    t : float
        s.
    rate : (RATE_SIZE,) array
        Result.
    """
    section, inner, h, gravity, current = body.section, body.inner, body.spacing, body.gravity, body.current
    s, base, square, head, loads = body.s, body.base, body.square, body.head, body.totals
    twist = state[Y_TWIST : Y_TWIST + 6]
    loads[ENERGY] = loads[POWER] = loads[LOSS] = 0.0
    loads[BAD_POINT] = along(body.function, section, inner, h, t, body.p, twist, s)
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(3):
        head[0, k] = r[k] * current[0] + r[k + 3] * current[1] + r[k + 6] * current[2]
        head[1, k] = r[k] * gravity[0] + r[k + 3] * gravity[1] + r[k + 6] * gravity[2]
    n = section.shape[0]
    pull = 0.0
    for i in range(n):
        weigh(section, s, i)
        bear(section, s, i, twist, head[0], head[1], loads)
        pull += section[i, K_WEIGHT] * section[i, K_PULL]
    for k in range(3):
        loads[ENERGY] -= pull * gravity[k] * state[Y_POSITION + k]
    sum_up(s, inner, h)
    if body.wake:
        loads[LOSS] += write_wake(section, s, n - 1, twist, head[0], head[2])
    else:
        for k in range(6):
            head[2, k] = 0.0
    for k in range(21):
        base[0, S_INERTIA + k] = s[n - 1, P_SUM + k]
    for k in range(6):
        base[0, S_BIAS + k] = s[n - 1, P_SUM + 21 + k] - head[2, k]
    solve_base(base, square)
    acceleration = base[0, S_ACCELERATION : S_ACCELERATION + 6]
    loads[POWER] = strain_power(section, s, acceleration)
    for k in range(3):
        rate[k] = r[3 * k] * twist[0] + r[3 * k + 1] * twist[1] + r[3 * k + 2] * twist[2]
        rate[3 + k] = twist[3 + k]
    for k in range(6):
        rate[6 + k] = acceleration[k]
    rate[12], rate[13] = loads[POWER], loads[LOSS]
