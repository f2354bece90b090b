"""A rigid body's pose in a flat array: how a twist moves it; and the 6 x 6 solve for its acceleration."""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, kernel


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
