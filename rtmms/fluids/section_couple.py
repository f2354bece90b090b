"""Compute the couple of a tapering section that accelerates across the flow (Boyer 2017, eq 48), an option that is off.

It is -m dV_r2/dt about e3. It is in no symmetric inertia, so that the recursion cannot solve with it. The evaluation is
repeated with the couple of the previous accelerations instead.
"""

from __future__ import annotations

from typing import Any

from rtmms.base.jit import kernel
from rtmms.base.spatial import cross
from rtmms.fluids.ambient import GRADIENT, RATE, SAMPLE, U
from rtmms.fluids.immersed import to_body, to_world
from rtmms.fluids.morison import COUPLE, MIDDLE, out_of_axes, to_element_axes
from rtmms.model.layout import S_ACCELERATION, S_TWIST, S_WRENCH

LAST = SAMPLE + 8
"""Place in an element's sample of the couple (N m) that is in S_WRENCH already."""
REPEATS = 16
"""Repetitions; each reduces the error by the ratio of the couple's inertia to the slices', 0.1 for a fish."""


@kernel
def reset_couples(fluid: Any) -> bool:
    """Return whether any strip has a couple, and reset the couples that are in S_WRENCH to 0.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`.

    Returns
    -------
    bool
        False without couples.
    """
    strip, ambient = fluid.strips, fluid.ambient
    result = False
    for i in range(strip.shape[0]):
        if strip[i, COUPLE] != 0.0:
            result = True
            ambient[i, LAST] = 0.0
    return result


@kernel
def section_couples(fluid: Any, s: Any) -> None:
    """Replace the couples in S_WRENCH by those of the accelerations in S_ACCELERATION.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    rows, strip, moving, ambient = fluid.rows, fluid.strips, fluid.moving, fluid.ambient
    for i in range(strip.shape[0]):
        if strip[i, COUPLE] == 0.0:
            continue
        j, f = rows[i], ambient[i]
        wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        mx, my, mz = strip[i, MIDDLE], strip[i, MIDDLE + 1], strip[i, MIDDLE + 2]
        a = S_ACCELERATION
        cx, cy, cz = cross(s[j, a + 3], s[j, a + 4], s[j, a + 5], mx, my, mz)
        ax, ay, az = s[j, a] + cx, s[j, a + 1] + cy, s[j, a + 2] + cz
        if moving:  # less d/dt (R^T u) = R^T (u_t + (grad u) v) - W x R^T u
            cx, cy, cz = cross(wx, wy, wz, mx, my, mz)
            vx, vy, vz = to_world(s, j, s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz)
            g = GRADIENT
            bx = f[RATE] + f[g] * vx + f[g + 1] * vy + f[g + 2] * vz
            by = f[RATE + 1] + f[g + 3] * vx + f[g + 4] * vy + f[g + 5] * vz
            bz = f[RATE + 2] + f[g + 6] * vx + f[g + 7] * vy + f[g + 8] * vz
            bx, by, bz = to_body(s, j, bx, by, bz)
            ux, uy, uz = to_body(s, j, f[U], f[U + 1], f[U + 2])
            cx, cy, cz = cross(wx, wy, wz, ux, uy, uz)
            ax, ay, az = ax - bx + cx, ay - by + cy, az - bz + cz
        _, across, _ = to_element_axes(strip, i, ax, ay, az)
        moment = -strip[i, COUPLE] * across
        change = moment - f[LAST]
        f[LAST] = moment
        tx, ty, tz = out_of_axes(strip, i, 0.0 * change, 0.0 * change, change)
        s[j, S_WRENCH + 3] += tx
        s[j, S_WRENCH + 4] += ty
        s[j, S_WRENCH + 5] += tz
