"""Compute the body that carries the fins: drag, buoyancy and the products of its velocities.

Qu 2024, sec. 3.4, corrected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import Array, kernel
from rtmms.base.memory import INTEGER, Layout, model, number

DRAG_NORM = 0
DRAG_COMPONENTWISE = 1
MOMENT_COMPONENTWISE = 0
MOMENT_NORM = 1
MOMENT_LINEAR = 2

BODY = Layout(
    "Body",
    number("mass", unit="kg"), model("inertia", 3, unit="kg m2"), model("drag_area", 3, unit="m2"),
    model("moment_coefficient", 3), model("buoyancy_centre", 3, unit="m"), number("weight", unit="N"),
    number("density", unit="kg/m3"), number("drag_law", INTEGER), number("moment_law", INTEGER),
    number("fixed", INTEGER),
)  # fmt: skip
"""Body of a manta.

`mass` kg; `inertia` kg m2 about the principal axes; `drag_area` S_B C_B m2; `moment_coefficient` C_M; `buoyancy_centre`
m in the body frame; `weight` N in air; `density` of the water kg/m3.
"""


@kernel
def body_drag(body: Any, work: Array, v: int, u: int, out: int) -> None:
    """Write the drag wrench on the body, [force; moment] in the body frame about its mass centre.

    Parameters
    ----------
    body : Record
        Record of `body.BODY`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    v : int
        First index of the twist (6,), m/s and rad/s.
    u : int
        First index of the water's velocity (3,) at the mass centre, m/s, body frame.
    out : int
        First index of the result (6,), N and N m.

    Notes
    -----
    Qu 2024, eq. (34), corrected.
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
    """Write the wrench on the body without its fins, less the velocity products: M_b [V'; W'] without fins.

    Parameters
    ----------
    body : Record
        Record of `body.BODY`.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    r : int
        First index of the rotation (3, 3), body to world.
    v : int
        First index of the twist (6,), m/s and rad/s.
    u : int
        First index of the water's velocity (3,) at the mass centre, m/s, body frame.
    out : int
        First index of the result (6,), N and N m.

    Notes
    -----
    Qu 2024, eqs. (35), (36): drag, buoyancy moment r_b x R^T F_buo, - W x m V, - W x J W.
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
