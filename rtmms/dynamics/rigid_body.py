"""The body that carries the fins: attitude, drag, buoyancy and the 6 x 6 solve (Qu 2024, sec. 3.4, corrected)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import Array, kernel

DRAG_NORM, DRAG_COMPONENTWISE = 0, 1
MOMENT_COMPONENTWISE, MOMENT_NORM, MOMENT_LINEAR = 0, 1, 2

BODY_DTYPE = np.dtype(
    [
        ("mass", "f8"),
        ("inertia", "f8", (3,)),
        ("drag_area", "f8", (3,)),
        ("moment_coefficient", "f8", (3,)),
        ("buoyancy_centre", "f8", (3,)),
        ("weight", "f8"),
        ("density", "f8"),
        ("drag_law", "i8"),
        ("moment_law", "i8"),
        ("fixed", "i8"),
    ]
)
"""mass kg, inertia kg m2 about the principal axes, drag_area S_B C_B m2, moment_coefficient C_M, buoyancy_centre m in
the body frame, weight N in air, density of the water kg/m3."""


@kernel
def rotation_matrix(work: Array, quat: int, out: int) -> None:
    """From work[out] on, (3, 3) row-major: body to world, of the unit quaternion (w, x, y, z) at work[quat]."""
    w, x, y, z = work[quat], work[quat + 1], work[quat + 2], work[quat + 3]
    work[out + 0] = 1.0 - 2.0 * (y * y + z * z)
    work[out + 1] = 2.0 * (x * y - w * z)
    work[out + 2] = 2.0 * (x * z + w * y)
    work[out + 3] = 2.0 * (x * y + w * z)
    work[out + 4] = 1.0 - 2.0 * (x * x + z * z)
    work[out + 5] = 2.0 * (y * z - w * x)
    work[out + 6] = 2.0 * (x * z - w * y)
    work[out + 7] = 2.0 * (y * z + w * x)
    work[out + 8] = 1.0 - 2.0 * (x * x + y * y)


@kernel
def move_pose(pose: Array, p: int, twist: Array, v: int, h: float, out: Array, o: int) -> None:
    """g exp(h twist) on SE(3): the exact motion under a constant body twist [V; W].

    From pose[p] on: position (3,) m world and quaternion (4,); from twist[v] on (6,) m/s, rad/s body; h s. The moved
    pose goes to out[o] on, which may be the same place.
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
    """Rate of canonical coordinates: g = g0 exp(xi) moves with body twist eta when xi' = out.

    xi' = eta + 1/2 ad_xi eta + 1/12 ad_xi^2 eta, exact to fourth order in xi; (6,) each, from xi[x], twist[v], out[o].
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
def body_drag(body: Any, work: Array, v: int, u: int, out: int) -> None:
    """(34), corrected: drag wrench on the body, [force; moment] in the body frame about its mass centre.

    In `work`: at v the twist (6,), at u (3,) m/s the velocity of the water at the mass centre in the body frame;
    written from `out` on (6,).
    """
    vx, vy, vz = work[v] - work[u], work[v + 1] - work[u + 1], work[v + 2] - work[u + 2]
    wx, wy, wz = work[v + 3], work[v + 4], work[v + 5]
    half = -0.5 * body.density
    a, c = body.drag_area, body.moment_coefficient
    if body.drag_law == DRAG_NORM:
        n = np.sqrt(vx * vx + vy * vy + vz * vz)
        work[out + 0], work[out + 1], work[out + 2] = half * n * a[0] * vx, half * n * a[1] * vy, half * n * a[2] * vz
    else:
        work[out + 0], work[out + 1], work[out + 2] = (
            half * abs(vx) * a[0] * vx,
            half * abs(vy) * a[1] * vy,
            half * abs(vz) * a[2] * vz,
        )
    if body.moment_law == MOMENT_COMPONENTWISE:
        work[out + 3], work[out + 4], work[out + 5] = (
            half * c[0] * abs(wx) * wx,
            half * c[1] * abs(wy) * wy,
            half * c[2] * abs(wz) * wz,
        )
    elif body.moment_law == MOMENT_NORM:
        n = np.sqrt(wx * wx + wy * wy + wz * wz)
        work[out + 3], work[out + 4], work[out + 5] = half * c[0] * n * wx, half * c[1] * n * wy, half * c[2] * n * wz
    else:
        work[out + 3], work[out + 4], work[out + 5] = -c[0] * wx, -c[1] * wy, -c[2] * wz


@kernel
def body_force(body: Any, work: Array, r: int, v: int, u: int, out: int) -> None:
    """Everything on the body but its fins, less the velocity products: what M_b [V'; W'] must equal without fins.

    In `work`: at r the rotation (3, 3) body to world, else as for `body_drag`. (35), (36): drag, buoyancy moment
    r_b x R^T F_buo, - W x m V, - W x J W.
    """
    body_drag(body, work, v, u, out)
    vx, vy, vz = work[v], work[v + 1], work[v + 2]
    wx, wy, wz = work[v + 3], work[v + 4], work[v + 5]
    m, jx, jy, jz = body.mass, body.inertia[0], body.inertia[1], body.inertia[2]
    work[out + 0] -= m * (wy * vz - wz * vy)
    work[out + 1] -= m * (wz * vx - wx * vz)
    work[out + 2] -= m * (wx * vy - wy * vx)
    rx, ry, rz = body.buoyancy_centre[0], body.buoyancy_centre[1], body.buoyancy_centre[2]
    bx, by, bz = body.weight * work[r + 6], body.weight * work[r + 7], body.weight * work[r + 8]
    work[out + 3] += (ry * bz - rz * by) - (jz - jy) * wy * wz
    work[out + 4] += (rz * bx - rx * bz) - (jx - jz) * wz * wx
    work[out + 5] += (rx * by - ry * bx) - (jy - jx) * wx * wy


@kernel
def solve_spd6(work: Array, n: int, f: int, out: Array) -> None:
    """out (6,) = N^-1 f by Cholesky's factors; at work[n] N (6, 6) symmetric, its lower triangle is overwritten."""
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
