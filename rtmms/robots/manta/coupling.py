"""Compute the couplings of the manta's body and fins (sequential, iterated, monolithic), and one stage of all methods.

A fin is computed as a left one. The right fin is the left one in the mirror S = diag(1, -1, 1): V -> S V, W -> -S W for
inputs, F -> S F, M -> -S M for outputs. `side` is +1 for left, -1 for right.

Kernels receive whole arrays with the offset of the fin's part, because a slice costs more than the arithmetic. `sup, s`
is the support as `support_motion` wrote it, `work` has the layout of rtmms.robots.manta.layout.

With X the map from [V'; W'] of the body to [A0; W0'] of the support, X = [[R^T, -R^T r^], [0, R^T]] about the body's
mass centre, the fin needs from the body X^T (I (X a + a_bias) + p).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import Array, Floats, kernel
from rtmms.base.spatial import cross
from rtmms.dynamics.recursion import rotation_matrix, solve_spd6
from rtmms.robots.manta.body import body_force
from rtmms.robots.manta.fin_chains import (
    accelerate_block,
    collect_sums,
    collect_wrench,
    condense_block,
    drive_block,
    neighbour_normals,
)
from rtmms.robots.manta.fin_layout import (
    A0_X,
    A0_Y,
    A0_Z,
    BASE_SIZE,
    CARRY_FIELDS,
    DRIVE_SUMS,
    DW_X,
    DW_Y,
    DW_Z,
    LANES,
    SUMS,
    U_X,
    U_Y,
    U_Z,
    W_X,
    W_Y,
    W_Z,
    Chains,
)
from rtmms.robots.manta.layout import (
    MONOLITHIC,
    NOT_CONVERGED,
    OK,
    SEQUENTIAL,
    W_BASE,
    W_BIAS,
    W_CARRY,
    W_FORCE,
    W_INERTIA,
    W_MATRIX,
    W_ON_BODY,
    W_ON_SUPPORT,
    W_POSE,
    W_ROTATION,
    W_SUMS,
    W_TWIST,
    W_TWIST_FIN,
    W_WATER,
    W_WRENCH,
)
from rtmms.robots.manta.rods import (
    OMEGA,
    OMEGA_RATE,
    POINT,
    POINT_ACCEL,
    POINT_RATE,
    ROTATION,
    SUPPORT_SIZE,
    support_motion,
)


@kernel(inline=True)
def _to_support(sup: Array, s: int, x: float, y: float, z: float) -> Floats:
    """Return R^T v with the support's rotation R."""
    return (
        sup[s + ROTATION] * x + sup[s + ROTATION + 3] * y + sup[s + ROTATION + 6] * z,
        sup[s + ROTATION + 1] * x + sup[s + ROTATION + 4] * y + sup[s + ROTATION + 7] * z,
        sup[s + ROTATION + 2] * x + sup[s + ROTATION + 5] * y + sup[s + ROTATION + 8] * z,
    )


@kernel(inline=True)
def _to_body(sup: Array, s: int, x: float, y: float, z: float) -> Floats:
    """Return R v with the support's rotation R."""
    return (
        sup[s + ROTATION] * x + sup[s + ROTATION + 1] * y + sup[s + ROTATION + 2] * z,
        sup[s + ROTATION + 3] * x + sup[s + ROTATION + 4] * y + sup[s + ROTATION + 5] * z,
        sup[s + ROTATION + 6] * x + sup[s + ROTATION + 7] * y + sup[s + ROTATION + 8] * z,
    )


@kernel
def move_supports(finned: Any, arrays: Array, rods: int, stride: int, out: Array, start: int) -> bool:
    """Write the support motion of both fins from the rods' motion.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    arrays : array
        Rods; angle, rate and acceleration come first in each row.
    rods : int
        First index of the rods (4, stride).
    stride : int
        Length of a row.
    out : array
        Result.
    start : int
        First index of the result, (2, SUPPORT_SIZE).

    Returns
    -------
    bool
        False if the geometry of one support is singular.
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
    """Write the support's velocity for the chains, and its accelerations while the body's are zero.

    W_TWIST_FIN (6,), the body's [V; W], is read; W_BASE (except A0, DW) and W_BIAS are written.

    Parameters
    ----------
    f : int
        0 for the left fin, 1 for the right.
    finned : Record
        Record of `layout.FINNED`.
    sup : array
        Supports, as `support_motion` writes them.
    s : int
        First index of the fin's support in `sup`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    ux, uy, uz : float
        Uniform velocity of the water, m/s, body frame.

    Notes
    -----
    Qu 2024, eq. (10), corrected: V0 = R^T (V_b + W_b x r + P'), W0 = R^T W_b + omega_r.
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
    """Write A0 and DW of the fin's base.

    Parameters
    ----------
    f : int
        0 for the left fin, 1 for the right.
    finned : Record
        Record of `layout.FINNED`.
    sup : array
        Supports, as `support_motion` writes them.
    s : int
        First index of the fin's support in `sup`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    accel : (6,) array
        [V'; W'] of the body, m/s2 and rad/s2.
    """
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
    """Write W_ON_SUPPORT (6,) = I [A0; W0'] + p: support on fin, about the support's origin, in support axes.

    Parameters
    ----------
    f : int
        0 for the left fin, 1 for the right.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    """
    base, inertia, on = W_BASE + f * BASE_SIZE, W_INERTIA + 36 * f, W_ON_SUPPORT + 6 * f
    ax, ay, az = work[base + A0_X], work[base + A0_Y], work[base + A0_Z]
    dx, dy, dz = work[base + DW_X], work[base + DW_Y], work[base + DW_Z]
    for r in range(6):
        i = inertia + 6 * r
        a = work[i] * ax + work[i + 1] * ay + work[i + 2] * az
        work[on + r] = work[W_WRENCH + 6 * f + r] + a + work[i + 3] * dx + work[i + 4] * dy + work[i + 5] * dz


@kernel
def fin_on_body(f: int, finned: Any, sup: Array, s: int, work: Array) -> None:
    """Write W_ON_BODY (6,): fin on body, about the body's mass centre, from W_ON_SUPPORT.

    Parameters
    ----------
    f : int
        0 for the left fin, 1 for the right.
    finned : Record
        Record of `layout.FINNED`.
    sup : array
        Supports, as `support_motion` writes them.
    s : int
        First index of the fin's support in `sup`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.

    Notes
    -----
    Qu 2024, eq. (33), corrected in sign.
    """
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
    """Return element (r, c) of R N R^T, with N the 3 x 3 block that starts at work[n], in rows of 6."""
    x, y, z = sup[s + ROTATION + 3 * c], sup[s + ROTATION + 3 * c + 1], sup[s + ROTATION + 3 * c + 2]
    t = sup[s + ROTATION + 3 * r] * (work[n] * x + work[n + 1] * y + work[n + 2] * z)
    t += sup[s + ROTATION + 3 * r + 1] * (work[n + 6] * x + work[n + 7] * y + work[n + 8] * z)
    return t + sup[s + ROTATION + 3 * r + 2] * (work[n + 12] * x + work[n + 13] * y + work[n + 14] * z)


@kernel
def add_to_body(f: int, finned: Any, sup: Array, s: int, work: Array) -> None:
    """Add the fin's inertia and force to the body's: W_MATRIX += X^T I X, W_FORCE -= X^T (I a_bias + p).

    Parameters
    ----------
    f : int
        0 for the left fin, 1 for the right.
    finned : Record
        Record of `layout.FINNED`.
    sup : array
        Supports, as `support_motion` writes them.
    s : int
        First index of the fin's support in `sup`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    """
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


@kernel
def iterated_acceleration(finned: Any, work: Array, out: Array) -> tuple[int, float]:
    """Iterate the interface until the acceleration changes by less than finned.tolerance, or max_iterations.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    work : array
        W_MATRIX (6, 6) of body and fins, lower triangle; W_FORCE (6,) on the body at zero acceleration.
    out : (6,) array
        First guess, and the resulting acceleration, m/s2 and rad/s2.

    Returns
    -------
    (int, float)
        Number of passes, and the largest change in the last pass.

    Notes
    -----
    Body and fins exchange acceleration and wrench until they agree. Each pass evaluates the fins' wrench at the body's
    present acceleration a, computes the residual r = F - M_b a - (M_A a + p), and changes the acceleration by (M_b +
    M~)^-1 r. M~ is the constant locked inertia of the fins at rest. The articulated inertia M_A is below it (except for
    the fins' change of shape). The passes therefore contract where the plain exchange (M~ = 0) would diverge.
    """
    passes = 0
    residual = np.inf
    while passes < finned.max_iterations and not residual <= finned.tolerance:
        for i in range(6):
            s = work[W_FORCE + i]
            for k in range(6):
                s -= work[W_MATRIX + (6 * i + k if k <= i else 6 * k + i)] * out[k]
            work[W_ON_BODY + i] = s
        residual = 0.0
        for i in range(6):
            d = 0.0
            for k in range(6):
                d += finned.relaxation[6 * i + k] * work[W_ON_BODY + k]
            out[i] += d
            residual = max(residual, abs(d))
        passes += 1
    return passes, residual


@kernel
def monolithic_acceleration(work: Array, matrix: int, force: int, out: Array) -> None:
    """Solve for the accelerations of body and fins together: out = matrix^-1 force.

    The fins' articulated inertia and bias force are added to the body's before.

    Parameters
    ----------
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    matrix : int
        First index of the matrix (6, 6), lower triangle; overwritten.
    force : int
        First index of the force (6,).
    out : (6,) array
        Result, m/s2 and rad/s2.
    """
    solve_spd6(work, matrix, force, out)


@kernel
def sequential_acceleration(finned: Any, work: Array, out: Array) -> None:
    """Compute M_b^-1 (F_body + F_left + F_right) from W_FORCE and W_ON_BODY.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    out : (6,) array
        Result, m/s2 and rad/s2.

    Notes
    -----
    The fins move with the body's last known acceleration, then the body under their wrenches. The error is the change
    of the body's acceleration over a step. It is of first order in the step for any method of the chains. The coupling
    is stable only while the fins' inertia through locked joints is below the body's (`spectral_radius`).
    """
    for k in range(6):
        out[k] = (work[W_FORCE + k] + work[W_ON_BODY + k] + work[W_ON_BODY + 6 + k]) / finned.body_matrix[7 * k]


def spectral_radius(body_matrix: np.ndarray, fins_inertia: np.ndarray) -> float:
    """Return the largest factor by which one lagged exchange amplifies an error in the body's acceleration.

    Parameters
    ----------
    body_matrix : (6, 6) array
        M_b.
    fins_inertia : (6, 6) array
        M_A.

    Returns
    -------
    float
        max |eig(M_b^-1 M_A)|.
    """
    return float(np.max(np.abs(np.linalg.eigvals(np.linalg.solve(body_matrix, fins_inertia)))))


@kernel
def put_water(finned: Any, work: Array, drift: Array | None) -> None:
    """Write W_WATER: the water's velocity at the body, in world axes.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    drift : (3,) array or None
        Velocity beyond the uniform current, m/s; None for none.
    """
    for k in range(3):
        work[W_WATER + k] = finned.current[k]
        if drift is not None:
            work[W_WATER + k] += drift[k]


@kernel
def stage(
    coupling: int,
    finned: Any,
    body: Any,
    memory: Any,
    many: int | None,
    solve_mode: tuple[float, float, float, float],
    sup: Array,
    s: int,
    lagged: Array,
    acc: Array,
) -> tuple[int, int, float]:
    """Compute the accelerations of body and joints at the state in the scratch.

    Whole numbers should be np.int64: the compiler would specialise on each literal.

    Parameters
    ----------
    coupling : int
        SEQUENTIAL, ITERATED or MONOLITHIC.
    finned : Record
        Record of `layout.FINNED`.
    body : Record
        Record of `body.BODY`.
    memory : Record
        Inputs in its scratch: Q, QD of the fins, W_TWIST, W_TWIST_FIN (the fins' version of it), W_POSE, W_WATER,
        drift. Outputs: QDD, AN of the fins, W_ON_BODY (2, 6), W_ON_SUPPORT (2, 6).
    many : int or None
        Number of links of a chain, or None for three: the compiler specialises on None.
    solve_mode : (float, float, float, float)
        g, recall, rate_q, rate_a, see `fin_chains`; g = 0 for the true accelerations.
    sup : array
        Supports of the left and the right fin, (2, SUPPORT_SIZE).
    s : int
        First index of the supports.
    lagged : (6,) array
        Acceleration of the body that the fins use (sequential; zero for a fixed body), or a first guess (iterated).
    acc : (6,) array
        Result: [V'; W'] of the body; may be `lagged`.

    Returns
    -------
    (int, int, float)
        Status, passes and residual of the iterated coupling.
    """
    param, fins, work, drift, normals = memory.param, memory.fins, memory.work, memory.drift, memory.normals
    sums = work[W_SUMS : W_SUMS + SUMS * LANES]
    chains = Chains(param, fins, drift, normals, work, work[W_CARRY : W_CARRY + CARRY_FIELDS * LANES], sums)
    rotation_matrix(work, W_POSE + 3, W_ROTATION)
    # uniform current as the body sees it
    r = W_ROTATION
    cx, cy, cz = finned.current[0], finned.current[1], finned.current[2]
    ux = work[r] * cx + work[r + 3] * cy + work[r + 6] * cz
    uy = work[r + 1] * cx + work[r + 4] * cy + work[r + 7] * cz
    uz = work[r + 2] * cx + work[r + 5] * cy + work[r + 8] * cz
    driven = coupling == SEQUENTIAL or body.fixed
    for f in range(2):
        o = W_BASE + f * BASE_SIZE
        base_velocity(f, finned, sup, s + f * SUPPORT_SIZE, work, ux, uy, uz)
        neighbour_normals(finned.links, finned.chains, f, param, fins, normals)
        if driven:
            base_acceleration(f, finned, sup, s + f * SUPPORT_SIZE, work, lagged)
            for k in range(DRIVE_SUMS * LANES):
                sums[k] = 0.0
            for b in range(finned.blocks):
                drive_block(many, f, b, chains, o, solve_mode)
            collect_wrench(sums, work, W_ON_SUPPORT + 6 * f)
        else:
            for k in range(SUMS * LANES):
                sums[k] = 0.0
            for b in range(finned.blocks):
                condense_block(many, f, b, chains, o, solve_mode)
            collect_sums(sums, work, W_INERTIA + 36 * f, W_WRENCH + 6 * f)

    w = W_WATER
    x, y, z = work[w], work[w + 1], work[w + 2]
    work[w] = work[r] * x + work[r + 3] * y + work[r + 6] * z
    work[w + 1] = work[r + 1] * x + work[r + 4] * y + work[r + 7] * z
    work[w + 2] = work[r + 2] * x + work[r + 5] * y + work[r + 8] * z
    body_force(body, work, W_ROTATION, W_TWIST, W_WATER, W_FORCE)
    status, passes, residual = OK, 0, 0.0
    if driven:
        for f in range(2):
            fin_on_body(f, finned, sup, s + f * SUPPORT_SIZE, work)
        if body.fixed:
            for k in range(6):
                acc[k] = 0.0
        else:
            sequential_acceleration(finned, work, acc)
            for k in range(6):
                residual = max(residual, abs(acc[k] - lagged[k]))
        return status, passes, residual

    for k in range(36):
        work[W_MATRIX + k] = finned.body_matrix[k]
    for f in range(2):
        add_to_body(f, finned, sup, s + f * SUPPORT_SIZE, work)
    if coupling == MONOLITHIC:
        monolithic_acceleration(work, W_MATRIX, W_FORCE, acc)
    else:
        for k in range(6):
            acc[k] = lagged[k]
        passes, residual = iterated_acceleration(finned, work, acc)
        if not residual <= finned.tolerance:
            status = NOT_CONVERGED
    for f in range(2):
        base_acceleration(f, finned, sup, s + f * SUPPORT_SIZE, work, acc)
        fin_on_support(f, work)
        fin_on_body(f, finned, sup, s + f * SUPPORT_SIZE, work)
        for b in range(finned.blocks):
            accelerate_block(many, f, b, chains, W_BASE + f * BASE_SIZE)
    return status, passes, residual
