"""Compute quasi-steady lift and drag of flapping blades (Dickinson 1999, as in Porez 2014, corrected).

docs/moth.md has the corrections.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, cross
from rtmms.fluids.morison import out_of_axes, relative, to_element_axes
from rtmms.model.elements import Blade
from rtmms.model.layout import S_TWIST, S_WRENCH

# columns of a blade: axes by rows (row frame = E blade frame) 9, origin 3, length, chord, density, pressure point
ORIGIN = 9
LENGTH = 12
CHORD = 13
DENSITY = 14
PRESSURE = 15
BLADE_WIDTH = 16


def blade_row(_: int, blade: Blade) -> Array:
    """Return the numbers of a blade for the kernels.

    Parameters
    ----------
    _ : int
        Row of the model; unused.
    blade : Blade
        The blade.

    Returns
    -------
    (BLADE_WIDTH,) array
        Numbers of the blade.
    """
    place = blade.placement
    return np.array(
        [*place.rotation.ravel(), *place.position, blade.length, blade.chord, blade.density, blade.pressure]
    )  # fmt: skip


@kernel
def blades(rows: Any, first: int, blade: Any, gauss: Any, moving: bool, ambient: Any, s: Any) -> None:
    """Add each blade's quasi-steady wrench to S_WRENCH.

    Parameters
    ----------
    rows : (e,) array
        Row of the model of each element.
    first : int
        Element of the first blade.
    blade : (b, BLADE_WIDTH) array
        Blades.
    gauss : (2, nodes) array
        Nodes on (-1, 1) and weights that sum to 2.
    moving : bool
        Whether the fluid moves.
    ambient : (e, SAMPLE_ROOM) array
        Flow at each element.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    V is the pressure point's velocity, t the unit vector to the leading edge and w is normal to the blade. Drag is D =
    1/2 rho c C_D |V| V, lift is L = 1/2 rho c C_L |V|^2 u, with u along v x (t x v). The force is -(L + D) a metre. C_L
    = 1.8 sin 2b, C_D = 1.92 - 1.55 cos 2b, b = atan2(|w.v|, -t.v).
    """
    for i in range(blade.shape[0]):
        e = first + i
        j = rows[e]
        wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        px, py, pz = blade[i, ORIGIN], blade[i, ORIGIN + 1], blade[i, ORIGIN + 2]
        cx, cy, cz = cross(wx, wy, wz, px, py, pz)
        vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
        if moving:
            vx, vy, vz = relative(s, j, ambient, e, vx, vy, vz)
        ux, uy, uz = to_element_axes(blade, i, vx, vy, vz)
        w1, w2, w3 = to_element_axes(blade, i, wx, wy, wz)
        z, half = -blade[i, PRESSURE] * blade[i, CHORD], 0.5 * blade[i, LENGTH]
        zero = 0.0 * w1
        f1, f2, f3, t1, t2, t3 = zero, zero, zero, zero, zero, zero
        for k in range(gauss.shape[1]):
            x = half * (1.0 + gauss[0, k])
            a, b, c = ux + w2 * z, uy + w3 * x - w1 * z, uz - w2 * x
            section = b * b + c * c
            flat = a * a + b * b  # |V|^2 times the squared sine between V and t
            if section.real > 0.0 and flat.real > 0.0:
                speed = np.sqrt(section + a * a)
                side = b if b.real >= 0.0 else -b
                lift = -3.6 * side * c / section * speed / np.sqrt(flat)  # C_L |V| / |t x v|
                drag = (1.92 - 1.55 * (c * c - b * b) / section) * speed
                # u |V|^2 = (t |V|^2 - V (V.t)) |V| / |t x V|
                g1 = -gauss[1, k] * (drag * a - lift * a * c)
                g2 = -gauss[1, k] * (drag * b - lift * b * c)
                g3 = -gauss[1, k] * (drag * c + lift * flat)
                f1 += g1
                f2 += g2
                f3 += g3
                t1 -= z * g2
                t2 += z * g1 - x * g3
                t3 += x * g2
        size = 0.5 * blade[i, DENSITY] * blade[i, CHORD] * half
        fx, fy, fz = out_of_axes(blade, i, size * f1, size * f2, size * f3)
        tx, ty, tz = out_of_axes(blade, i, size * t1, size * t2, size * t3)
        cx, cy, cz = cross(px, py, pz, fx, fy, fz)
        s[j, S_WRENCH] += fx
        s[j, S_WRENCH + 1] += fy
        s[j, S_WRENCH + 2] += fz
        s[j, S_WRENCH + 3] += tx + cx
        s[j, S_WRENCH + 4] += ty + cy
        s[j, S_WRENCH + 5] += tz + cz
