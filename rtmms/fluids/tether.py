"""Compute springs and dampers between points of bodies and points of the world."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, cross, scalar
from rtmms.model.elements import Tether
from rtmms.model.layout import S_TWIST, S_WORLD_POS, S_WORLD_ROT, S_WRENCH

# columns: row of the model, point (row frame), anchor (world), stiffness, damping (world axes)
ROW = 0
POINT = 1
ANCHOR = 4
STIFFNESS = 7
DAMPING = 10
TETHER_WIDTH = 13


def tether_row(row: int, tether: Tether) -> Array:
    """Return the numbers of a tether for the kernels.

    Parameters
    ----------
    row : int
        Row of the model.
    tether : Tether
        The tether.

    Returns
    -------
    (TETHER_WIDTH,) array
        Numbers of the tether.
    """
    place = tether.placement
    point = place.position + place.rotation @ np.asarray(tether.point, dtype=float)
    return np.array([row, *point, *tether.anchor, *tether.stiffness, *tether.damping])


@scalar
def _moves(tether: Any, i: int, s: Any) -> Any:
    """Return the row, the point in the row's frame, and its velocity there."""
    j = int(tether[i, ROW])
    px, py, pz = tether[i, POINT], tether[i, POINT + 1], tether[i, POINT + 2]
    cx, cy, cz = cross(s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5], px, py, pz)
    return j, px, py, pz, s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz


@scalar
def _along(tether: Any, i: int, a: int, s: Any, moves: Any) -> Any:
    """Return the stretch (m) along the world's axis a, and its rate."""
    j, px, py, pz, vx, vy, vz = moves
    r = S_WORLD_ROT + 3 * a
    x = s[j, S_WORLD_POS + a] + s[j, r] * px + s[j, r + 1] * py + s[j, r + 2] * pz - tether[i, ANCHOR + a]
    return x, s[j, r] * vx + s[j, r + 1] * vy + s[j, r + 2] * vz


@kernel
def tethers(tether: Any, s: Any) -> None:
    """Add each tether's force, -k (x - anchor) - c x', to S_WRENCH, after `place`.

    Parameters
    ----------
    tether : (t, TETHER_WIDTH) array
        Tethers.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    for i in range(tether.shape[0]):
        moves = _moves(tether, i, s)
        j, px, py, pz, vx, _, _ = moves
        fx, fy, fz = 0.0 * vx, 0.0 * vx, 0.0 * vx
        for a in range(3):
            x, v = _along(tether, i, a, s, moves)
            force = -tether[i, STIFFNESS + a] * x - tether[i, DAMPING + a] * v
            r = S_WORLD_ROT + 3 * a
            fx, fy, fz = fx + s[j, r] * force, fy + s[j, r + 1] * force, fz + s[j, r + 2] * force
        cx, cy, cz = cross(px, py, pz, fx, fy, fz)
        s[j, S_WRENCH] += fx
        s[j, S_WRENCH + 1] += fy
        s[j, S_WRENCH + 2] += fz
        s[j, S_WRENCH + 3] += cx
        s[j, S_WRENCH + 4] += cy
        s[j, S_WRENCH + 5] += cz


@kernel
def tether_energy(tether: Any, s: Any, out: Any) -> None:
    """Write the energy in the springs and the power of the dampers.

    Parameters
    ----------
    tether : (t, TETHER_WIDTH) array
        Tethers.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    out : (2,) array
        J, and W (< 0).
    """
    out[0] = out[1] = 0.0 * s[0, S_TWIST]
    for i in range(tether.shape[0]):
        moves = _moves(tether, i, s)
        for a in range(3):
            x, v = _along(tether, i, a, s, moves)
            out[0] += 0.5 * tether[i, STIFFNESS + a] * x * x
            out[1] -= tether[i, DAMPING + a] * v * v
