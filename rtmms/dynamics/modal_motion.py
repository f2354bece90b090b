"""Compute the recursion's first pass on trees with modal bodies (floating frames; Boyer 2017, eqs 51 to 55, corrected).

A flexible row is at p = x0 + sum phi_k r_k + R_e d0 and R = R_e R_0, R_e = exp(theta^), theta = sum psi_k r_k: exact in
the rotation, linear in the translation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import INTEGER, Layout, model, scratch
from rtmms.base.spatial import cross, quaternion_columns, scalar
from rtmms.dynamics.recursion import into_child
from rtmms.model.layout import (
    C_POS,
    C_ROT,
    MODE,
    PRISMATIC,
    REVOLUTE,
    S_GRAVITY,
    S_POS,
    S_ROT,
    S_TWIST,
    S_WRENCH,
    S_ZETA,
    T_KIND,
    T_PARENT,
)  # fmt: skip
from rtmms.model.modal_rows import M_COUNT, M_FIRST, M_PSI, M_SHAPE, M_WIDTH

MODAL = Layout(
    "Modal",
    model("book", "rows", M_WIDTH, dtype=INTEGER), model("members", "modes", dtype=INTEGER),
    model("shape", "shape_size"), scratch("room", "modal_room"),
)  # fmt: skip
"""Modal bodies of a tree, see rtmms.model.modal_rows."""
MAX_SERIES_RAD2 = 1e-4
"""Square of the angle, rad2, below which series replace the rotation's functions, exact to rounding there."""


@scalar
def turning(x: Any, y: Any, z: Any) -> Any:
    """Return the functions of a rotation vector of size n.

    Parameters
    ----------
    x, y, z : float
        Rotation vector, rad.

    Returns
    -------
    tuple of float
        c = cos n, a = (1 - cos n) / n2, b = (n - sin n) / n3, s = sin n / n, (da/dn) / n, (db/dn) / n.
    """
    n2 = x * x + y * y + z * z
    if n2.real > MAX_SERIES_RAD2:
        n = np.sqrt(n2)
        sine, cosine = np.sin(n) / n, np.cos(n)
        a = (1.0 - cosine) / n2
        b = (1.0 - sine) / n2
        return cosine, a, b, sine, (sine - 2.0 * a) / n2, (a - 3.0 * b) / n2
    return (
        1.0 - n2 / 2.0 * (1.0 - n2 / 12.0), 0.5 - n2 / 24.0 * (1.0 - n2 / 30.0),
        (1.0 - n2 / 20.0 * (1.0 - n2 / 42.0)) / 6.0,
        1.0 - n2 / 6.0 * (1.0 - n2 / 20.0), -1.0 / 12.0 + n2 / 180.0, -1.0 / 60.0 + n2 / 1260.0,
    )  # fmt: skip


@kernel
def shape_sum(modal: Any, j: int, i: int, values: Any) -> Any:
    """Return translation and rotation of a flexible row's place by the values of its parent's modes.

    Parameters
    ----------
    modal : Record
        Record of `MODAL`.
    j : int
        Row of the model.
    i : int
        Row of the parent.
    values : (n,) array
        Modal coordinates or their rates.

    Returns
    -------
    tuple of float
        Six numbers, m and rad, or their rates.
    """
    book, members, shape = modal.book, modal.members, modal.shape
    first, at = book[i, M_FIRST], book[j, M_SHAPE] + 3
    zero = 0.0 * values[0]
    a, b, c, d, e, f = zero, zero, zero, zero, zero, zero
    for k in range(book[i, M_COUNT]):
        value = values[members[first + k] - 1]
        a += shape[at + 6 * k] * value
        b += shape[at + 6 * k + 1] * value
        c += shape[at + 6 * k + 2] * value
        d += shape[at + 6 * k + 3] * value
        e += shape[at + 6 * k + 4] * value
        f += shape[at + 6 * k + 5] * value
    return a, b, c, d, e, f


@kernel
def configure_modal(
    topology: Any, constant: Any, modal: Any, orientation: Any, gravity: Any, q: Any, s: Any
) -> None:  # fmt: skip
    """Compute joint transforms and gravity in every row's frame, as `configure`.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    modal : Record
        Record of `MODAL`.
    orientation : (4,) array
        Base to world.
    gravity : (3,) array
        m/s2, world.
    q : (n,) array
        Joint positions and modal coordinates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    Boyer 2017, eq 51.
    """
    r = quaternion_columns(orientation[0], orientation[1], orientation[2], orientation[3])
    for k in range(3):
        s[0, S_GRAVITY + k] = r[k] * gravity[0] + r[k + 3] * gravity[1] + r[k + 6] * gravity[2]
    for j in range(1, topology.shape[0]):
        i, kind = topology[j, T_PARENT], topology[j, T_KIND]
        for k in range(9):
            s[j, S_ROT + k] = constant[j, C_ROT + k] + 0.0 * q[0]
        for k in range(3):
            s[j, S_POS + k] = constant[j, C_POS + k] + 0.0 * q[0]
        if kind == REVOLUTE:
            sine, cosine = np.sin(q[j - 1]), np.cos(q[j - 1])
            for k in range(0, 9, 3):  # R = R_0 Rz(q)
                x, y = constant[j, C_ROT + k], constant[j, C_ROT + k + 1]
                s[j, S_ROT + k] = x * cosine + y * sine
                s[j, S_ROT + k + 1] = y * cosine - x * sine
        elif kind == PRISMATIC:
            for k in range(3):
                s[j, S_POS + k] += q[j - 1] * constant[j, C_ROT + 3 * k + 2]
        if modal.book[j, M_SHAPE] >= 0:
            _bend(modal, j, i, q, s)
        x, y, z = into_child(s, j, s[i, S_GRAVITY], s[i, S_GRAVITY + 1], s[i, S_GRAVITY + 2])
        s[j, S_GRAVITY], s[j, S_GRAVITY + 1], s[j, S_GRAVITY + 2] = x, y, z


@kernel
def _bend(modal: Any, j: int, i: int, q: Any, s: Any) -> None:
    """Move row j with its parent's shape: p = x0 + x + R_e (p - x0), R = R_e R."""
    shape, at = modal.shape, modal.book[j, M_SHAPE]
    x, y, z, d, e, f = shape_sum(modal, j, i, q)
    _, a, _, sine, _, _ = turning(d, e, f)
    # R_e = 1 + sin n / n theta^ + (1 - cos n) / n2 theta^2, column by column
    ox, oy, oz = shape[at], shape[at + 1], shape[at + 2]
    for k in range(4):
        if k < 3:
            vx, vy, vz = s[j, S_ROT + k], s[j, S_ROT + 3 + k], s[j, S_ROT + 6 + k]
        else:
            vx, vy, vz = s[j, S_POS] - ox, s[j, S_POS + 1] - oy, s[j, S_POS + 2] - oz
        cx, cy, cz = cross(d, e, f, vx, vy, vz)
        gx, gy, gz = cross(d, e, f, cx, cy, cz)
        vx, vy, vz = vx + sine * cx + a * gx, vy + sine * cy + a * gy, vz + sine * cz + a * gz
        if k < 3:
            s[j, S_ROT + k], s[j, S_ROT + 3 + k], s[j, S_ROT + 6 + k] = vx, vy, vz
        else:
            s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2] = ox + x + vx, oy + y + vy, oz + z + vz


@scalar
def spin(d: Any, e: Any, f: Any, a: Any, b: Any, x: Any, y: Any, z: Any) -> Any:
    """Return T(theta) v: the angular velocity, in the parent's axes, of a rotation vector theta with the rate v.

    Parameters
    ----------
    d, e, f : float
        theta, rad.
    a, b : float
        Functions of `turning`.
    x, y, z : float
        v, rad/s.

    Returns
    -------
    (float, float, float)
        rad/s.
    """
    cx, cy, cz = cross(d, e, f, x, y, z)
    gx, gy, gz = cross(d, e, f, cx, cy, cz)
    return x + a * cx + b * gx, y + a * cy + b * gy, z + a * cz + b * gz


@kernel
def outward_modal(topology: Any, modal: Any, twist: Any, q: Any, qd: Any, s: Any) -> None:
    """Compute twists and zeta of all rows, as `outward`; Psi of each flexible row is written to the scratch `room`.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    modal : Record
        Record of `MODAL`.
    twist : (6,) array
        Twist of the base, base frame, m/s and rad/s.
    q, qd : (n,) array
        Joint positions and rates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    Boyer 2017, eq 52: eta_j = Ad eta_i + Psi_j rd + S qd.
    """
    for k in range(6):
        s[0, S_TWIST + k] = twist[k]
        s[0, S_WRENCH + k] = 0.0
    for j in range(1, topology.shape[0]):
        i, kind = topology[j, T_PARENT], topology[j, T_KIND]
        for k in range(6):
            s[j, S_WRENCH + k] = 0.0
            s[j, S_ZETA + k] = 0.0
        if kind == MODE:
            for k in range(6):
                s[j, S_TWIST + k] = s[i, S_TWIST + k]
            continue
        wx, wy, wz = s[i, S_TWIST + 3], s[i, S_TWIST + 4], s[i, S_TWIST + 5]
        cx, cy, cz = cross(wx, wy, wz, s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2])
        vx, vy, vz = s[i, S_TWIST] + cx, s[i, S_TWIST + 1] + cy, s[i, S_TWIST + 2] + cz
        if modal.book[j, M_SHAPE] >= 0:
            vx, vy, vz, wx, wy, wz = _carried(modal, j, i, q, qd, s, vx, vy, vz, wx, wy, wz)
        vx, vy, vz = into_child(s, j, vx, vy, vz)
        wx, wy, wz = into_child(s, j, wx, wy, wz)
        if kind == REVOLUTE:
            rate = qd[j - 1]
            wz += rate
            s[j, S_ZETA] += vy * rate
            s[j, S_ZETA + 1] -= vx * rate
            s[j, S_ZETA + 3] += wy * rate
            s[j, S_ZETA + 4] -= wx * rate
        elif kind == PRISMATIC:
            rate = qd[j - 1]
            vz += rate
            s[j, S_ZETA] += wy * rate
            s[j, S_ZETA + 1] -= wx * rate
        s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2] = vx, vy, vz
        s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5] = wx, wy, wz


@kernel
def _carried(
    modal: Any, j: int, i: int, q: Any, qd: Any, s: Any, vx: Any, vy: Any, vz: Any, wx: Any, wy: Any, wz: Any
) -> Any:
    """Write Psi of flexible row j to the room and nu to S_ZETA; return the twist (parent's axes) with the shape's part.

    With v, W that of the parent at the row's place, a = sum phi rd, w = T theta', d from the shape's place to the row:
    u = a + w x d, nu = R^T (W x u + w0' x d - w x a - w x v; w0' - w x W), with w0' the rate of w at theta'' = 0.
    """
    book, shape, room = modal.book, modal.shape, modal.room
    at, psi = book[j, M_SHAPE], book[j, M_PSI]
    px, py, pz, d, e, f = shape_sum(modal, j, i, q)
    _, a, b, _, da, db = turning(d, e, f)
    dx, dy, dz = (
        s[j, S_POS] - shape[at] - px, s[j, S_POS + 1] - shape[at + 1] - py, s[j, S_POS + 2] - shape[at + 2] - pz
    )  # fmt: skip
    for k in range(book[i, M_COUNT]):
        c = at + 3 + 6 * k
        ax, ay, az = spin(d, e, f, a, b, shape[c + 3], shape[c + 4], shape[c + 5])
        cx, cy, cz = cross(ax, ay, az, dx, dy, dz)
        tx, ty, tz = into_child(s, j, shape[c] + cx, shape[c + 1] + cy, shape[c + 2] + cz)
        ax, ay, az = into_child(s, j, ax, ay, az)
        o = psi + 6 * k
        room[o], room[o + 1], room[o + 2] = tx, ty, tz
        room[o + 3], room[o + 4], room[o + 5] = ax, ay, az
    ax, ay, az, tx, ty, tz = shape_sum(modal, j, i, qd)
    ox, oy, oz = spin(d, e, f, a, b, tx, ty, tz)  # w
    # w0' = a' theta x theta' + b' theta x (theta x theta') + b theta' x (theta x theta')
    along = d * tx + e * ty + f * tz
    cx, cy, cz = cross(d, e, f, tx, ty, tz)
    gx, gy, gz = cross(d, e, f, cx, cy, cz)
    hx, hy, hz = cross(tx, ty, tz, cx, cy, cz)
    rx, ry, rz = (
        along * (da * cx + db * gx) + b * hx, along * (da * cy + db * gy) + b * hy, along * (da * cz + db * gz) + b * hz
    )  # fmt: skip
    cx, cy, cz = cross(ox, oy, oz, dx, dy, dz)
    ux, uy, uz = ax + cx, ay + cy, az + cz
    cx, cy, cz = cross(wx, wy, wz, ux, uy, uz)
    gx, gy, gz = cross(rx, ry, rz, dx, dy, dz)
    hx, hy, hz = cross(ox, oy, oz, ax + vx, ay + vy, az + vz)
    lx, ly, lz = into_child(s, j, cx + gx - hx, cy + gy - hy, cz + gz - hz)
    cx, cy, cz = cross(ox, oy, oz, wx, wy, wz)
    mx, my, mz = into_child(s, j, rx - cx, ry - cy, rz - cz)
    s[j, S_ZETA], s[j, S_ZETA + 1], s[j, S_ZETA + 2] = lx, ly, lz
    s[j, S_ZETA + 3], s[j, S_ZETA + 4], s[j, S_ZETA + 5] = mx, my, mz
    return vx + ux, vy + uy, vz + uz, wx + ox, wy + oy, wz + oz
