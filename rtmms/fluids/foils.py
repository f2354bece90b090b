"""Compute quasi-steady forces of blades and strips by a table over the angle of attack (rtmms.model.polars.Polar)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, arctangent, cross
from rtmms.fluids.morison import out_of_axes, relative, to_element_axes
from rtmms.model.elements import Blade, Strip
from rtmms.model.layout import S_TWIST, S_WRENCH
from rtmms.model.polars import Polar, stack_rows

# columns of a foil: axes by rows (row frame = E foil frame: x along the span, y to the upper side, z to the leading
# edge) 9, origin 3, x of its begin, length, chord, density, z of the force, element, row, first row of its polar, rows
ORIGIN = 9
BEGIN = 12
LENGTH = 13
CHORD = 14
DENSITY = 15
BEHIND = 16
ELEMENT = 17
ROW = 18
FIRST = 19
COUNT = 20
FOIL_WIDTH = 21
# of a polar's row: angle, coefficients, their slopes
ANGLE = 0
LIFT = 1
DRAG = 2
MOMENT = 3
SLOPE = 3
POLAR_WIDTH = 7
STRIP_AXES = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
"""Axes of a foil in a strip's frame: span -e1, upper side e3, leading edge e2."""


def foil_tables(elements: Sequence[tuple[int, Any]]) -> tuple[Array, Array]:
    """Return the foils and polars of those elements that have a polar.

    Parameters
    ----------
    elements : sequence of (int, Element)
        Row of the model and element.

    Returns
    -------
    (array, array)
        Foils (f, FOIL_WIDTH) and polars (p, POLAR_WIDTH).
    """
    polars: list[Polar] = []
    foils = []
    for e, (row, element) in enumerate(elements):
        polar = getattr(element, "polar", None)
        if polar is None:
            continue
        if not any(polar is item for item in polars):
            polars.append(polar)
        which = next(k for k, item in enumerate(polars) if item is polar)
        foils.append((_foil(e, row, element), which))
    table, starts = stack_rows(polars)
    rows = np.zeros((len(foils), FOIL_WIDTH))
    for out, (foil, which) in zip(rows, foils, strict=True):
        out[:] = foil
        out[FIRST] = starts[which]
        out[COUNT] = (starts[which + 1] if which + 1 < len(starts) else len(table)) - starts[which]
    return rows, table


def _foil(e: int, row: int, element: Any) -> Array:
    place, out = element.placement, np.zeros(FOIL_WIDTH)
    assert isinstance(element, Blade | Strip)
    blade = isinstance(element, Blade)
    out[:ORIGIN] = (place.rotation if blade else place.rotation @ STRIP_AXES).ravel()
    out[ORIGIN : ORIGIN + 3] = place.position
    out[BEGIN], out[LENGTH] = 0.0 if blade else -0.5 * element.length, element.length
    out[CHORD], out[DENSITY] = element.chord, element.density
    out[BEHIND] = -element.pressure * element.chord if isinstance(element, Blade) else 0.0
    out[ELEMENT], out[ROW] = e, row
    return out


@kernel
def read_polar(polar: Any, first: int, count: int, angle: Any) -> Any:
    """Return the coefficients at an angle of attack.

    Parameters
    ----------
    polar : (p, POLAR_WIDTH) array
        Polars.
    first, count : int
        First row of the polar, and number of rows.
    angle : float
        -pi to pi, rad.

    Returns
    -------
    (float, float, float)
        C_L, C_D, C_M.
    """
    turn, start = 2.0 * np.pi, polar[first, ANGLE]
    while angle.real < start:
        angle = angle + turn
    while angle.real > start + turn:
        angle = angle - turn
    low, high = first, first + count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if polar[middle, ANGLE] <= angle.real:
            low = middle
        else:
            high = middle
    h = polar[high, ANGLE] - polar[low, ANGLE]
    t = (angle - polar[low, ANGLE]) / h
    u = 1.0 - t
    a, b, c, d = (1.0 + 2.0 * t) * u * u, t * t * (3.0 - 2.0 * t), h * t * u * u, -h * t * t * u
    return (
        a * polar[low, LIFT] + b * polar[high, LIFT] + c * polar[low, LIFT + SLOPE] + d * polar[high, LIFT + SLOPE],
        a * polar[low, DRAG] + b * polar[high, DRAG] + c * polar[low, DRAG + SLOPE] + d * polar[high, DRAG + SLOPE],
        a * polar[low, MOMENT] + b * polar[high, MOMENT] + c * polar[low, MOMENT + SLOPE]
        + d * polar[high, MOMENT + SLOPE],
    )  # fmt: skip


@kernel
def foils(foil: Any, polar: Any, gauss: Any, moving: bool, ambient: Any, s: Any) -> None:
    """Add each foil's wrench to S_WRENCH.

    Parameters
    ----------
    foil : (f, FOIL_WIDTH) array or None
        Foils.
    polar : (p, POLAR_WIDTH) array
        Polars.
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
    V = (b, c) is the velocity of a point of the force's line against the fluid, along y and z; flow along the span has
    no effect (independence principle). With alpha = atan2(-b, c), a metre of span has the lift 1/2 rho chord C_L |V|
    (c, -b), the drag -1/2 rho chord C_D |V| (b, c), and the moment -1/2 rho chord^2 C_M |V|^2 about x.
    """
    if foil is not None:
        for i in range(foil.shape[0]):
            j, e = int(foil[i, ROW]), int(foil[i, ELEMENT])
            wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
            px, py, pz = foil[i, ORIGIN], foil[i, ORIGIN + 1], foil[i, ORIGIN + 2]
            cx, cy, cz = cross(wx, wy, wz, px, py, pz)
            vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
            if moving:
                vx, vy, vz = relative(s, j, ambient, e, vx, vy, vz)
            _, uy, uz = to_element_axes(foil, i, vx, vy, vz)
            w1, w2, w3 = to_element_axes(foil, i, wx, wy, wz)
            z, half, chord = foil[i, BEHIND], 0.5 * foil[i, LENGTH], foil[i, CHORD]
            zero = 0.0 * w1
            f2, f3, t1, t2, t3 = zero, zero, zero, zero, zero
            for k in range(gauss.shape[1]):
                x = foil[i, BEGIN] + half * (1.0 + gauss[0, k])
                b, c = uy + w3 * x - w1 * z, uz - w2 * x
                square = b * b + c * c
                if square.real > 0.0:
                    lift, drag, turn = read_polar(polar, int(foil[i, FIRST]), int(foil[i, COUNT]), arctangent(-b, c))
                    speed = np.sqrt(square) * gauss[1, k]
                    g2, g3 = speed * (lift * c - drag * b), -speed * (lift * b + drag * c)
                    f2 += g2
                    f3 += g3
                    t1 -= z * g2 + chord * turn * square * gauss[1, k]
                    t2 -= x * g3
                    t3 += x * g2
            size = 0.5 * foil[i, DENSITY] * chord * half
            fx, fy, fz = out_of_axes(foil, i, zero, size * f2, size * f3)
            tx, ty, tz = out_of_axes(foil, i, size * t1, size * t2, size * t3)
            cx, cy, cz = cross(px, py, pz, fx, fy, fz)
            s[j, S_WRENCH] += fx
            s[j, S_WRENCH + 1] += fy
            s[j, S_WRENCH + 2] += fz
            s[j, S_WRENCH + 3] += tx + cx
            s[j, S_WRENCH + 4] += ty + cy
            s[j, S_WRENCH + 5] += tz + cz
