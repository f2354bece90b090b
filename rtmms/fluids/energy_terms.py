"""What a fluid and tethers hold and give, term by term, at one state (Candelier 2013, the transposed gradient).

With V_r = V - R^T u, p = M_f eta_r, m the displaced mass and gamma = u_t + (grad u) u,
d/dt (T_bodies + elastic + 1/2 p . eta_r + p_V . R^T u) = (p_V . R^T u_t + m gamma . v) + wake, drag and damping power + actuators.
"""  # noqa: E501

from __future__ import annotations

from typing import Any

from rtmms.fluids.ambient import GRADIENT, RATE, U
from rtmms.fluids.immersed import ADDED, CENTRE, DISPLACED, drag, shed, spring_energy, to_body, to_world
from rtmms.jit import kernel
from rtmms.model.layout import S_TWIST, S_WRENCH
from rtmms.spatial import cross, times

HELD, FLOW, WAKE, DRAG, SPRINGS, DAMPERS = range(6)
"""J in the fluid, 1/2 p . eta_r + p_V . R^T u; W from the flow, the wake, drag (lift too); J in tethers' springs, W of
their dampers."""
TERMS = 6


@kernel
def _outside_power(s: Any) -> Any:
    """W of S_WRENCH on all rows, which is emptied."""
    power = 0.0 * s[0, S_TWIST]
    for j in range(s.shape[0]):
        for k in range(6):
            power += s[j, S_WRENCH + k] * s[j, S_TWIST + k]
            s[j, S_WRENCH + k] = 0.0
    return power


@kernel
def energy_terms(fluid: Any, s: Any, out: Any) -> None:
    """out (TERMS,), of a scratch after an evaluation of the equations of motion: S_WRENCH is used up.

    fluid  a record of FLUID, the flow at each element as that evaluation left it
    """
    rows, common, ambient, moving = fluid.rows, fluid.common, fluid.ambient, fluid.moving
    out[HELD] = out[FLOW] = 0.0 * s[0, S_TWIST]
    for e in range(rows.shape[0]):
        _of_element(common, e, rows[e], ambient[e], moving, s, out)
    _outside_power(s)
    drag(fluid, s)
    out[DRAG] = _outside_power(s)
    shed(fluid, s)
    out[WAKE] = _outside_power(s)
    spring_energy(fluid, s, out[SPRINGS : SPRINGS + 2])


@kernel
def _of_element(common: Any, e: int, j: int, f: Any, moving: bool, s: Any, out: Any) -> None:
    """Add one element's share of what the fluid holds, and of the flow's power."""
    vx, vy, vz = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
    wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
    if not moving:
        p0, p1, p2, l0, l1, l2 = times(common, e, ADDED, vx, vy, vz, wx, wy, wz)
        out[HELD] += 0.5 * (p0 * vx + p1 * vy + p2 * vz + l0 * wx + l1 * wy + l2 * wz)
        return
    ux, uy, uz = to_body(s, j, f[U], f[U + 1], f[U + 2])
    rx, ry, rz = vx - ux, vy - uy, vz - uz
    p0, p1, p2, l0, l1, l2 = times(common, e, ADDED, rx, ry, rz, wx, wy, wz)
    out[HELD] += 0.5 * (p0 * rx + p1 * ry + p2 * rz + l0 * wx + l1 * wy + l2 * wz) + p0 * ux + p1 * uy + p2 * uz
    ax, ay, az = to_body(s, j, f[RATE], f[RATE + 1], f[RATE + 2])
    g = GRADIENT
    bx = f[RATE] + f[g] * f[U] + f[g + 1] * f[U + 1] + f[g + 2] * f[U + 2]
    by = f[RATE + 1] + f[g + 3] * f[U] + f[g + 4] * f[U + 1] + f[g + 5] * f[U + 2]
    bz = f[RATE + 2] + f[g + 6] * f[U] + f[g + 7] * f[U + 1] + f[g + 8] * f[U + 2]
    cx, cy, cz = cross(wx, wy, wz, common[e, CENTRE], common[e, CENTRE + 1], common[e, CENTRE + 2])
    x, y, z = to_world(s, j, vx + cx, vy + cy, vz + cz)
    out[FLOW] += p0 * ax + p1 * ay + p2 * az + common[e, DISPLACED] * (bx * x + by * y + bz * z)
