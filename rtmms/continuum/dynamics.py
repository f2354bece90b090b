"""The head's acceleration, the internal wrenches and the actuators' power of a body with imposed strain, in a fluid.

Sections' balances are carried to the head's frame, where f' = ad_xi^T f + ... is a plain integral: with F = Ad_g^-T f

    F' = Ad^T [(M + M_f) eta_t + b],    F(0) = 0,    F(l) = Ad_l^T F_tail,

so that F(X) = A(X) eta0_t + B(X), and the tail's end gives the head's acceleration (second pass); a third pass gives f
and the power -int f . xi_t. The fluid is that of an elongated body, M_f eta_r with eta_r = (V - R^T U, W), a wake that
takes F_tail = (M_f eta_r) V_r1 - (eta_r^T M_f eta_r) e1 / 2, and drag. The wake is shed only while the tail follows.
"""

from __future__ import annotations

from typing import Any

from rtmms.continuum.kinematics import along
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
    LOSS,
    P_LOAD,
    P_POS,
    P_ROT,
    P_SPREAD,
    P_SUM,
    P_TWIST,
    P_WRENCH,
    P_ZETA,
    POWER,
    Y_POSITION,
    Y_TWIST,
)
from rtmms.dynamics.recursion import solve_base
from rtmms.jit import kernel
from rtmms.model.layout import S_ACCELERATION, S_BIAS, S_INERTIA
from rtmms.spatial import cross, quaternion_columns, scalar


@scalar
def size(x: Any) -> Any:
    return -x if x < 0.0 else x


@scalar
def back(s: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """Head frame -> section frame."""
    r = P_ROT
    return (
        s[i, r] * x + s[i, r + 3] * y + s[i, r + 6] * z,
        s[i, r + 1] * x + s[i, r + 4] * y + s[i, r + 7] * z,
        s[i, r + 2] * x + s[i, r + 5] * y + s[i, r + 8] * z,
    )


@scalar
def ahead(s: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """Section frame -> head frame."""
    r = P_ROT
    return (
        s[i, r] * x + s[i, r + 1] * y + s[i, r + 2] * z,
        s[i, r + 3] * x + s[i, r + 4] * y + s[i, r + 5] * z,
        s[i, r + 6] * x + s[i, r + 7] * y + s[i, r + 8] * z,
    )


@scalar
def moved(s: Any, i: Any, vx: Any, vy: Any, vz: Any, wx: Any, wy: Any, wz: Any) -> Any:
    """A twist about the head's origin -> about the section's, in its frame."""
    cx, cy, cz = cross(wx, wy, wz, s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2])
    a, b, c = back(s, i, vx + cx, vy + cy, vz + cz)
    d, e, f = back(s, i, wx, wy, wz)
    return a, b, c, d, e, f


@scalar
def spin(s: Any, i: Any, a: Any, b: Any, c: Any) -> Any:
    """R diag(a, b, c) R^T: xx xy xz yy yz zz."""
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
    """P_LOAD: packed inertia of the section and its fluid about the head's origin, per metre."""
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
def bear(k: Any, s: Any, i: int, twist: Any, water: Any, gravity: Any, told: Any) -> None:
    """P_LOAD: b = -ad_eta^T M eta - ad_eta_r^T M_f eta_r + (M + M_f) zeta + M_f (W x R^T U) - drag - weight, carried to
    the head. water, gravity (3,) in the head's frame. Adds energy and loss, per metre times weight, to told."""
    t, z = P_TWIST, P_ZETA
    vx, vy, vz, wx, wy, wz = moved(
        s, i, twist[0] + s[i, t], twist[1] + s[i, t + 1], twist[2] + s[i, t + 2],
        twist[3] + s[i, t + 3], twist[4] + s[i, t + 4], twist[5] + s[i, t + 5],
    )  # fmt: skip
    zx, zy, zz, yx, yy, yz = moved(s, i, s[i, z], s[i, z + 1], s[i, z + 2], s[i, z + 3], s[i, z + 4], s[i, z + 5])
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
    fx, fy, fz = ahead(s, i, bx, by, bz)
    mx, my, mz = ahead(s, i, ex + hx + lx * yx + d4, ey + hy + ly * yy, ez + hz + lz * yz)
    qx, qy, qz = cross(s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2], fx, fy, fz)
    at = P_LOAD + 21
    s[i, at], s[i, at + 1], s[i, at + 2] = fx, fy, fz
    s[i, at + 3], s[i, at + 4], s[i, at + 5] = mx + qx, my + qy, mz + qz
    # T_b + p . V_r / 2 + p . V_f, and what gravity keeps: seen from the head's origin, whose own part is added later
    kept = 0.5 * (m * (vx * vx + vy * vy + vz * vz) + px * rx + py * ry + pz * rz + lx * wx * wx)
    kept += px * ux + py * uy + pz * uz
    kept += 0.5 * (ly * wy * wy + lz * wz * wz)
    kept -= pull * (gravity[0] * s[i, P_POS] + gravity[1] * s[i, P_POS + 1] + gravity[2] * s[i, P_POS + 2])
    told[ENERGY] += k[i, K_WEIGHT] * kept
    told[LOSS] += k[i, K_WEIGHT] * (d1 * vx + d2 * vy + d3 * vz + d4 * wx)


@kernel
def shed(k: Any, s: Any, i: int, twist: Any, water: Any, wrench: Any) -> float:
    """The wake's wrench F_tail on the tail, point i, carried to the head; returns the power that it takes, W."""
    t = P_TWIST
    vx, vy, vz, wx, _, _ = moved(
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
    wrench[0], wrench[1], wrench[2] = ahead(s, i, fx, fy, fz)
    ax, ay, az = ahead(s, i, mx, 0.0, 0.0)
    cx, cy, cz = cross(s[i, P_POS], s[i, P_POS + 1], s[i, P_POS + 2], wrench[0], wrench[1], wrench[2])
    wrench[3], wrench[4], wrench[5] = ax + cx, ay + cy, az + cz
    return -(fx * vx + fy * vy + fz * vz + mx * wx)


@kernel
def sum_up(s: Any, inner: Any, h: float) -> None:
    """P_SUM: the integral of P_LOAD from the head to each point."""
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
    """Third pass: f of each point into P_WRENCH, its own frame; returns -int f . xi_t, W."""
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
    """Rate (14,) of a state (15,) at time t, parameters body.p. body: a record of rtmms.continuum.step.BODY."""
    section, inner, h, gravity, current = body.section, body.inner, body.spacing, body.gravity, body.current
    s, base, square, head, told = body.s, body.base, body.square, body.head, body.told
    twist = state[Y_TWIST : Y_TWIST + 6]
    told[ENERGY] = told[POWER] = told[LOSS] = 0.0
    told[BAD_POINT] = along(body.function, section, inner, h, t, body.p, twist, s)
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(3):
        head[0, k] = r[k] * current[0] + r[k + 3] * current[1] + r[k + 6] * current[2]
        head[1, k] = r[k] * gravity[0] + r[k + 3] * gravity[1] + r[k + 6] * gravity[2]
    n = section.shape[0]
    pull = 0.0
    for i in range(n):
        weigh(section, s, i)
        bear(section, s, i, twist, head[0], head[1], told)
        pull += section[i, K_WEIGHT] * section[i, K_PULL]
    for k in range(3):
        told[ENERGY] -= pull * gravity[k] * state[Y_POSITION + k]
    sum_up(s, inner, h)
    if body.wake:
        told[LOSS] += shed(section, s, n - 1, twist, head[0], head[2])
    else:
        for k in range(6):
            head[2, k] = 0.0
    for k in range(21):
        base[0, S_INERTIA + k] = s[n - 1, P_SUM + k]
    for k in range(6):
        base[0, S_BIAS + k] = s[n - 1, P_SUM + 21 + k] - head[2, k]
    solve_base(base, square)
    acceleration = base[0, S_ACCELERATION : S_ACCELERATION + 6]
    told[POWER] = strain_power(section, s, acceleration)
    for k in range(3):
        rate[k] = r[3 * k] * twist[0] + r[3 * k + 1] * twist[1] + r[3 * k + 2] * twist[2]
        rate[3 + k] = twist[3 + k]
    for k in range(6):
        rate[6 + k] = acceleration[k]
    rate[12], rate[13] = told[POWER], told[LOSS]
