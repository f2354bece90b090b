"""Compute the wake of an elongated body: the wrench at its last section (Boyer 2017, eq 44, corrected)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, cross
from rtmms.fluids.morison import out_of_axes, relative, to_element_axes
from rtmms.model.elements import Wake
from rtmms.model.layout import S_TWIST, S_WRENCH

# columns: axes by rows (row frame = E wake frame) 9, place 3, added 3
POINT = 9
ADDED = 12
WAKE_WIDTH = 15


def wake_row(_: int, wake: Wake) -> Array:
    """Return the numbers of a wake for the kernels.

    Parameters
    ----------
    _ : int
        Row of the model; unused.
    wake : Wake
        The wake.

    Returns
    -------
    (WAKE_WIDTH,) array
        Numbers of the wake.
    """
    place = wake.placement
    return np.array([*place.rotation.ravel(), *place.position, *wake.added])


@kernel
def wakes(rows: Any, first: int, wake: Any, moving: bool, ambient: Any, s: Any) -> None:
    """Add F_tail = p V_r1 - 1/2 (p . eta_r) e1, p = M_f eta_r, to S_WRENCH where V_r1 < 0.

    Parameters
    ----------
    rows : (e,) array
        Row of the model of each element.
    first : int
        Element of the first wake.
    wake : (w, WAKE_WIDTH) array
        Wakes.
    moving : bool
        Whether the fluid moves.
    ambient : (e, SAMPLE_ROOM) array
        Flow at each element.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    Its power against the fluid is 1/2 (p . eta_r) V_r1, the power into the wake.
    """
    for i in range(wake.shape[0]):
        e = first + i
        j = rows[e]
        wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        px, py, pz = wake[i, POINT], wake[i, POINT + 1], wake[i, POINT + 2]
        cx, cy, cz = cross(wx, wy, wz, px, py, pz)
        vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
        if moving:
            vx, vy, vz = relative(s, j, ambient, e, vx, vy, vz)
        v1, v2, v3 = to_element_axes(wake, i, vx, vy, vz)
        w1, _, _ = to_element_axes(wake, i, wx, wy, wz)
        if v1.real < 0.0:
            l1, p2, p3 = wake[i, ADDED] * w1, wake[i, ADDED + 1] * v2, wake[i, ADDED + 2] * v3
            half = 0.5 * (l1 * w1 + p2 * v2 + p3 * v3)
            fx, fy, fz = out_of_axes(wake, i, -half, p2 * v1, p3 * v1)
            tx, ty, tz = out_of_axes(wake, i, l1 * v1, 0.0 * l1, 0.0 * l1)
            cx, cy, cz = cross(px, py, pz, fx, fy, fz)
            s[j, S_WRENCH] += fx
            s[j, S_WRENCH + 1] += fy
            s[j, S_WRENCH + 2] += fz
            s[j, S_WRENCH + 3] += tx + cx
            s[j, S_WRENCH + 4] += ty + cy
            s[j, S_WRENCH + 5] += tz + cz
