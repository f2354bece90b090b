"""Couplings of the manta's body and fins: sequential, iterated, monolithic; one stage that all methods use."""

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

# Between body and fins: the support's motion from the body's, the fin's inertia and force carried to the body.
#
# A fin is computed as a left one. The right fin is the left one seen in the mirror S = diag(1, -1, 1): V -> S V,
# W -> -S W going in, F -> S F, M -> -S M coming out. `side` is +1 for left, -1 for right.
#
# Arrays come whole, with the offset where the fin's part starts, because taking a slice costs more than the arithmetic:
# `sup, s` the support as `support_motion` wrote it, `work` with the layout of rtmms.robots.manta.layout.
#
# With X the map from [V'; W'] of the body to [A0; W0'] of the support, X = [[R^T, -R^T r^], [0, R^T]] about the body's
# mass centre, the fin asks of the body X^T (I (X a + a_bias) + p).


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


# Iterated coupling: body and fins exchange acceleration and wrench until they agree.
#
# Each pass asks the fins for their wrench at the body's present acceleration a, forms what is left over,
# r = F - M_b a - (M_A a + p), and moves the body by (M_b + M~)^-1 r. M~, constant, is the fins' locked inertia at rest:
# since the articulated inertia M_A stays below it (to within the fins' change of shape), the passes contract where the
# plain exchange (M~ = 0) would blow up.


@kernel
def iterated_acceleration(finned: Any, work: Array, out: Array) -> tuple[int, float]:
    """Iterate the interface until the acceleration changes by less than finned.tolerance, or max_iterations.

    work  W_MATRIX (6, 6) body and fins together, lower triangle filled; W_FORCE (6,) on the body at zero acceleration
    out   (6,) first guess in, acceleration out, m/s2, rad/s2
    Returns (passes, residual): the residual is the greatest change in the last pass.
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


# Monolithic coupling: the fins' articulated inertia and bias force are added to the body's, and solved with them.


@kernel
def monolithic_acceleration(work: Array, matrix: int, force: int, out: Array) -> None:
    """out = matrix^-1 force, both in `work`; matrix (6, 6) body and fins, lower triangle, overwritten; force (6,)."""
    solve_spd6(work, matrix, force, out)


# Sequential coupling: the fins move with the body's last known acceleration, then the body under what they gave.
#
# Wrong by the change of the body's acceleration over a step, so of first order in the step whatever the chains' own
# method; stable only while the fins' inertia as felt through locked joints stays below the body's (`spectral_radius`).


@kernel
def sequential_acceleration(finned: Any, work: Array, out: Array) -> None:
    """M_b^-1 (F_body + F_left + F_right) from W_FORCE and W_ON_BODY; out (6,) m/s2, rad/s2."""
    for k in range(6):
        out[k] = (work[W_FORCE + k] + work[W_ON_BODY + k] + work[W_ON_BODY + 6 + k]) / finned.body_matrix[7 * k]


def spectral_radius(body_matrix: np.ndarray, fins_inertia: np.ndarray) -> float:
    """Largest factor by which one lagged exchange amplifies an error in the body's acceleration: |eig(M_b^-1 M_A)|."""
    return float(np.max(np.abs(np.linalg.eigvals(np.linalg.solve(body_matrix, fins_inertia)))))


# One stage of any method: forces of fins and body at a given state, accelerations by the chosen coupling.


@kernel
def put_water(finned: Any, work: Array, drift: Array | None) -> None:
    """W_WATER: the water's velocity at the body, in world axes; drift (3,) m/s beyond the uniform current, or None."""
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
    way: tuple[float, float, float, float],
    sup: Array,
    s: int,
    lagged: Array,
    acc: Array,
) -> tuple[int, int, float]:
    """Accelerations of body and joints at the state in the scratch.

    coupling   SEQUENTIAL, ITERATED, MONOLITHIC
    memory     in its scratch: Q, QD of the fins, W_TWIST, W_TWIST_FIN (as the fins know it), W_POSE; W_WATER, the
               velocity of the water at the body in world axes; drift. Out: QDD, AN of the fins, W_ON_BODY (2, 6),
               W_ON_SUPPORT (2, 6)
    many       links a chain where they are not three, else None
    way        g, recall, rate_q, rate_a: see fin_lanes; g = 0 for the true accelerations
    sup        from sup[s] on (2, SUPPORT_SIZE): the supports of left and right fin
    lagged     (6,) the body's acceleration as the fins know it (sequential; zero for a fixed body), or a first guess
               (iterated)
    acc        (6,) written: [V'; W'] of the body; may be `lagged`
    Whole numbers should come as np.int64: a literal would be compiled for itself.
    Returns (status, passes, residual).
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
                drive_block(many, f, b, chains, o, way)
            collect_wrench(sums, work, W_ON_SUPPORT + 6 * f)
        else:
            for k in range(SUMS * LANES):
                sums[k] = 0.0
            for b in range(finned.blocks):
                condense_block(many, f, b, chains, o, way)
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
