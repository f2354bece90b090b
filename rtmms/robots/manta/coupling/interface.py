"""Between body and fins: the support's motion from the body's, the fin's inertia and force carried to the body.

A fin is computed as a left one. The right fin is the left one seen in the mirror S = diag(1, -1, 1): V -> S V,
W -> -S W going in, F -> S F, M -> -S M coming out. `side` is +1 for left, -1 for right.

Arrays come whole, with the offset where the fin's part starts, because taking a slice costs more than the arithmetic:
`sup, s` the support as `support_motion` wrote it, `work` with the layout of rtmms.robots.manta.coupling.layout.

With X the map from [V'; W'] of the body to [A0; W0'] of the support, X = [[R^T, -R^T r^], [0, R^T]] about the body's
mass centre, the fin asks of the body X^T (I (X a + a_bias) + p).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import Array, Floats, kernel
from rtmms.robots.manta.coupling.layout import (
    W_BASE,
    W_BIAS,
    W_FORCE,
    W_INERTIA,
    W_MATRIX,
    W_ON_BODY,
    W_ON_SUPPORT,
    W_TWIST_FIN,
    W_WRENCH,
)
from rtmms.robots.manta.kernels.fin_layout import (
    A0_X,
    A0_Y,
    A0_Z,
    BASE_SIZE,
    DW_X,
    DW_Y,
    DW_Z,
    U_X,
    U_Y,
    U_Z,
    W_X,
    W_Y,
    W_Z,
)
from rtmms.robots.manta.kernels.support import (
    OMEGA,
    OMEGA_RATE,
    POINT,
    POINT_ACCEL,
    POINT_RATE,
    ROTATION,
    SUPPORT_SIZE,
    support_motion,
)
from rtmms.spatial import cross


@kernel(inline=True)
def _to_support(sup: Array, s: int, x: float, y: float, z: float) -> Floats:
    """R^T v with R the support's rotation in the array of `support_motion`."""
    return (
        sup[s + ROTATION] * x + sup[s + ROTATION + 3] * y + sup[s + ROTATION + 6] * z,
        sup[s + ROTATION + 1] * x + sup[s + ROTATION + 4] * y + sup[s + ROTATION + 7] * z,
        sup[s + ROTATION + 2] * x + sup[s + ROTATION + 5] * y + sup[s + ROTATION + 8] * z,
    )


@kernel(inline=True)
def _to_body(sup: Array, s: int, x: float, y: float, z: float) -> Floats:
    return (
        sup[s + ROTATION] * x + sup[s + ROTATION + 1] * y + sup[s + ROTATION + 2] * z,
        sup[s + ROTATION + 3] * x + sup[s + ROTATION + 4] * y + sup[s + ROTATION + 5] * z,
        sup[s + ROTATION + 6] * x + sup[s + ROTATION + 7] * y + sup[s + ROTATION + 8] * z,
    )


@kernel
def move_supports(finned: Any, arrays: Array, rods: int, stride: int, out: Array, start: int) -> bool:
    """Support motion of both fins, to out[start] on, from the rods' motion (4, stride) at arrays[rods] on: angle,
    rate and acceleration come first in each row.

    False if the geometry of one is singular.
    """
    ok = True
    for f in range(2):
        a, b = rods + 2 * f * stride, rods + (2 * f + 1) * stride
        ok = support_motion(
            finned.support_length, finned.r_front, finned.r_back, finned.roll, (arrays[a], arrays[b]),
            (arrays[a + 1], arrays[b + 1]), (arrays[a + 2], arrays[b + 2]), out, start + f * SUPPORT_SIZE,
        ) and ok  # fmt: skip
    return ok


@kernel
def base_velocity(f: int, finned: Any, sup: Array, s: int, work: Array, ux: float, uy: float, uz: float) -> None:
    """What the chains need of the support's velocity, and the accelerations it has when the body's are zero.

    f           0 left, 1 right fin
    work        W_TWIST_FIN (6,) m/s, rad/s is read: the body's [V; W]; W_BASE (but for A0, DW) and W_BIAS are written
    ux, uy, uz  m/s, uniform velocity of the water in the body frame
    """
    side = 1.0 - 2.0 * f
    root = finned.root
    base, bias = W_BASE + f * BASE_SIZE, W_BIAS + 6 * f
    tw = W_TWIST_FIN
    vx, vy, vz = work[tw], side * work[tw + 1], work[tw + 2]
    wx, wy, wz = side * work[tw + 3], work[tw + 4], side * work[tw + 5]
    rx, ry, rz = root[0] + sup[s + POINT], root[1] + sup[s + POINT + 1], root[2] + sup[s + POINT + 2]
    px, py, pz = sup[s + POINT_RATE], sup[s + POINT_RATE + 1], sup[s + POINT_RATE + 2]
    # (10), corrected: V0 = R^T (V_b + W_b x r + P'), W0 = R^T W_b + omega_r
    cx, cy, cz = cross(wx, wy, wz, rx, ry, rz)
    ux, uy, uz = _to_support(sup, s, vx + cx + px - ux, vy + cy + py - side * uy, vz + cz + pz - uz)
    tx, ty, tz = _to_support(sup, s, wx, wy, wz)
    ox, oy, oz = sup[s + OMEGA], sup[s + OMEGA + 1], sup[s + OMEGA + 2]
    work[base + U_X], work[base + U_Y], work[base + U_Z] = ux, uy, uz
    work[base + W_X], work[base + W_Y], work[base + W_Z] = tx + ox, ty + oy, tz + oz
    # classical A0 = R^T (V' + W x V + W' x r + W x (W x r) + 2 W x P' + P'')
    ax, ay, az = cross(wx, wy, wz, vx + cx + 2.0 * px, vy + cy + 2.0 * py, vz + cz + 2.0 * pz)
    ax, ay, az = _to_support(
        sup, s, ax + sup[s + POINT_ACCEL], ay + sup[s + POINT_ACCEL + 1], az + sup[s + POINT_ACCEL + 2]
    )
    # W0' = R^T W_b' - omega_r x R^T W_b + omega_r'
    dx, dy, dz = cross(ox, oy, oz, tx, ty, tz)
    work[bias + 0], work[bias + 1], work[bias + 2] = ax, ay, az
    work[bias + 3], work[bias + 4], work[bias + 5] = (
        sup[s + OMEGA_RATE] - dx,
        sup[s + OMEGA_RATE + 1] - dy,
        sup[s + OMEGA_RATE + 2] - dz,
    )


@kernel
def base_acceleration(f: int, finned: Any, sup: Array, s: int, work: Array, accel: Array) -> None:
    """Fill A0 and DW of the fin's base for the body's [V'; W'] = accel (6,)."""
    side = 1.0 - 2.0 * f
    root = finned.root
    base, bias = W_BASE + f * BASE_SIZE, W_BIAS + 6 * f
    vx, vy, vz = accel[0], side * accel[1], accel[2]
    wx, wy, wz = side * accel[3], accel[4], side * accel[5]
    rx, ry, rz = root[0] + sup[s + POINT], root[1] + sup[s + POINT + 1], root[2] + sup[s + POINT + 2]
    cx, cy, cz = cross(wx, wy, wz, rx, ry, rz)
    ax, ay, az = _to_support(sup, s, vx + cx, vy + cy, vz + cz)
    tx, ty, tz = _to_support(sup, s, wx, wy, wz)
    work[base + A0_X], work[base + A0_Y], work[base + A0_Z] = (
        ax + work[bias + 0],
        ay + work[bias + 1],
        az + work[bias + 2],
    )
    work[base + DW_X], work[base + DW_Y], work[base + DW_Z] = (
        tx + work[bias + 3],
        ty + work[bias + 4],
        tz + work[bias + 5],
    )


@kernel
def fin_on_support(f: int, work: Array) -> None:
    """W_ON_SUPPORT (6,) = I [A0; W0'] + p: support on fin, about the support's origin, support axes."""
    base, inertia, on = W_BASE + f * BASE_SIZE, W_INERTIA + 36 * f, W_ON_SUPPORT + 6 * f
    ax, ay, az = work[base + A0_X], work[base + A0_Y], work[base + A0_Z]
    dx, dy, dz = work[base + DW_X], work[base + DW_Y], work[base + DW_Z]
    for r in range(6):
        i = inertia + 6 * r
        a = work[i] * ax + work[i + 1] * ay + work[i + 2] * az
        work[on + r] = work[W_WRENCH + 6 * f + r] + a + work[i + 3] * dx + work[i + 4] * dy + work[i + 5] * dz


@kernel
def fin_on_body(f: int, finned: Any, sup: Array, s: int, work: Array) -> None:
    """W_ON_BODY (6,): fin on body, about the body's mass centre, from W_ON_SUPPORT; (33), corrected in sign."""
    side = 1.0 - 2.0 * f
    root = finned.root
    on, out = W_ON_SUPPORT + 6 * f, W_ON_BODY + 6 * f
    fx, fy, fz = _to_body(sup, s, work[on], work[on + 1], work[on + 2])
    mx, my, mz = _to_body(sup, s, work[on + 3], work[on + 4], work[on + 5])
    rx, ry, rz = root[0] + sup[s + POINT], root[1] + sup[s + POINT + 1], root[2] + sup[s + POINT + 2]
    cx, cy, cz = cross(rx, ry, rz, fx, fy, fz)
    work[out], work[out + 1], work[out + 2] = -fx, -side * fy, -fz
    work[out + 3], work[out + 4], work[out + 5] = -side * (mx + cx), -(my + cy), -side * (mz + cz)


@kernel(inline=True)
def _rotated(sup: Array, s: int, work: Array, n: int, r: int, c: int) -> float:
    """Element (r, c) of R N R^T with N the 3 x 3 block that starts at work[n], in rows of 6."""
    x, y, z = sup[s + ROTATION + 3 * c], sup[s + ROTATION + 3 * c + 1], sup[s + ROTATION + 3 * c + 2]
    t = sup[s + ROTATION + 3 * r] * (work[n] * x + work[n + 1] * y + work[n + 2] * z)
    t += sup[s + ROTATION + 3 * r + 1] * (work[n + 6] * x + work[n + 7] * y + work[n + 8] * z)
    return t + sup[s + ROTATION + 3 * r + 2] * (work[n + 12] * x + work[n + 13] * y + work[n + 14] * z)


@kernel
def add_to_body(f: int, finned: Any, sup: Array, s: int, work: Array) -> None:
    """W_MATRIX += X^T I X, W_FORCE -= X^T (I a_bias + p): the fin's inertia and force as the body feels them."""
    g = 1.0 - 2.0 * f
    root = finned.root
    bias, inertia, wrench = W_BIAS + 6 * f, W_INERTIA + 36 * f, W_WRENCH + 6 * f
    rx, ry, rz = root[0] + sup[s + POINT], root[1] + sup[s + POINT + 1], root[2] + sup[s + POINT + 2]
    # at the support's origin, body axes: A and C symmetric
    aa, aw, ww = inertia, inertia + 3, inertia + 21
    # not literals: those would each be compiled for themselves
    i, j, k = np.int64(0), np.int64(1), np.int64(2)
    a00, a01, a02 = _rotated(sup, s, work, aa, i, i), _rotated(sup, s, work, aa, i, j), _rotated(sup, s, work, aa, i, k)
    a11, a12, a22 = _rotated(sup, s, work, aa, j, j), _rotated(sup, s, work, aa, j, k), _rotated(sup, s, work, aa, k, k)
    b00, b01, b02 = _rotated(sup, s, work, aw, i, i), _rotated(sup, s, work, aw, i, j), _rotated(sup, s, work, aw, i, k)
    b10, b11, b12 = _rotated(sup, s, work, aw, j, i), _rotated(sup, s, work, aw, j, j), _rotated(sup, s, work, aw, j, k)
    b20, b21, b22 = _rotated(sup, s, work, aw, k, i), _rotated(sup, s, work, aw, k, j), _rotated(sup, s, work, aw, k, k)
    c00, c01, c02 = _rotated(sup, s, work, ww, i, i), _rotated(sup, s, work, ww, i, j), _rotated(sup, s, work, ww, i, k)
    c11, c12, c22 = _rotated(sup, s, work, ww, j, j), _rotated(sup, s, work, ww, j, k), _rotated(sup, s, work, ww, k, k)
    # to the mass centre: B' = B - A r^, C' = C + r^ B - B^T r^ - r^ A r^ = C + r^ B' - B^T r^
    d00, d01, d02 = b00 - (a01 * rz - a02 * ry), b01 - (a02 * rx - a00 * rz), b02 - (a00 * ry - a01 * rx)
    d10, d11, d12 = b10 - (a11 * rz - a12 * ry), b11 - (a12 * rx - a01 * rz), b12 - (a01 * ry - a11 * rx)
    d20, d21, d22 = b20 - (a12 * rz - a22 * ry), b21 - (a22 * rx - a02 * rz), b22 - (a02 * ry - a12 * rx)
    c00 += ry * d20 - rz * d10 - (b10 * rz - b20 * ry)
    c01 += ry * d21 - rz * d11 - (b20 * rx - b00 * rz)
    c02 += ry * d22 - rz * d12 - (b00 * ry - b10 * rx)
    c11 += rz * d01 - rx * d21 - (b21 * rx - b01 * rz)
    c12 += rz * d02 - rx * d22 - (b01 * ry - b11 * rx)
    c22 += rx * d12 - ry * d02 - (b02 * ry - b12 * rx)
    # the mirror changes the sign of every element that mixes a mirrored with an unmirrored component
    n = W_MATRIX
    work[n + 0] += a00
    work[n + 6] += g * a01
    work[n + 7] += a11
    work[n + 12] += a02
    work[n + 13] += g * a12
    work[n + 14] += a22
    work[n + 18] += g * d00
    work[n + 19] += d10
    work[n + 20] += g * d20
    work[n + 24] += d01
    work[n + 25] += g * d11
    work[n + 26] += d21
    work[n + 30] += g * d02
    work[n + 31] += d12
    work[n + 32] += g * d22
    work[n + 21] += c00
    work[n + 27] += g * c01
    work[n + 28] += c11
    work[n + 33] += c02
    work[n + 34] += g * c12
    work[n + 35] += c22

    f0, f1, f2 = work[wrench], work[wrench + 1], work[wrench + 2]
    f3, f4, f5 = work[wrench + 3], work[wrench + 4], work[wrench + 5]
    for c in range(6):
        b, o = work[bias + c], inertia + c
        f0 += work[o] * b
        f1 += work[o + 6] * b
        f2 += work[o + 12] * b
        f3 += work[o + 18] * b
        f4 += work[o + 24] * b
        f5 += work[o + 30] * b
    fx, fy, fz = _to_body(sup, s, f0, f1, f2)
    mx, my, mz = _to_body(sup, s, f3, f4, f5)
    cx, cy, cz = cross(rx, ry, rz, fx, fy, fz)
    work[W_FORCE + 0] -= fx
    work[W_FORCE + 1] -= g * fy
    work[W_FORCE + 2] -= fz
    work[W_FORCE + 3] -= g * (mx + cx)
    work[W_FORCE + 4] -= my + cy
    work[W_FORCE + 5] -= g * (mz + cz)
