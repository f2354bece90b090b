"""Compute wrenches of drag areas, linear drag, skin friction, and drag curves on whole bodies.

The elements are those of rtmms.model.resistances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, cross, scalar
from rtmms.fluids.morison import out_of_axes, relative, square, to_element_axes
from rtmms.model.elements import Element
from rtmms.model.layout import S_TWIST, S_WRENCH
from rtmms.model.resistances import (
    MAX_CURVE_ROWS,
    MIN_TURBULENT_RE,
    DragArea,
    DragCurve,
    LinearDrag,
    Resistance,
    SkinFriction,
)

# columns: axes by rows (row frame = E element frame) 9, origin 3, element, row; N s^2/m2: of |V| V, and of |V_i| V_i 3;
# skin friction: 1/2 rho S (kg/m), length / viscosity (s/m), Reynolds number of the transition, A; matrix 36
# drag curve: number of rows, their speeds (m/s), their 1/2 rho times area (N s^2/m2)
ORIGIN = 9
ELEMENT = 12
ROW = 13
WHOLE = 14
AXES = 15
SKIN = 18
PER_SPEED = 19
TRANSITION = 20
DEFICIT = 21
MATRIX = 22
CURVE_COUNT = 58
CURVE_SPEED = 59
CURVE_AREA = 59 + MAX_CURVE_ROWS
RESISTANCE_WIDTH = 59 + 2 * MAX_CURVE_ROWS


def is_resistance(element: Element) -> bool:
    """Return whether an element is one of rtmms.model.resistances.

    Parameters
    ----------
    element : Element
        The element.

    Returns
    -------
    bool
        True if it is.
    """
    return isinstance(element, Resistance)


def resistance_rows(elements: Sequence[tuple[int, Any]]) -> Array:
    """Return the rows of the resistances among elements.

    Parameters
    ----------
    elements : sequence of (int, Element)
        Row of the model and element.

    Returns
    -------
    (k, RESISTANCE_WIDTH) array
        One row for each resistance.
    """
    rows = [_row(e, row, element) for e, (row, element) in enumerate(elements) if is_resistance(element)]
    return np.array(rows).reshape(-1, RESISTANCE_WIDTH)


def _row(e: int, row: int, element: Any) -> Array:
    out, place = np.zeros(RESISTANCE_WIDTH), element.placement
    out[:ORIGIN], out[ORIGIN : ORIGIN + 3] = place.rotation.ravel(), place.position
    out[ELEMENT], out[ROW] = e, row
    match element:
        case DragArea():
            area = 0.5 * element.density * np.asarray(element.area, dtype=float)
            if area.ndim == 0:
                out[WHOLE] = area
            else:
                out[AXES : AXES + 3] = area
        case LinearDrag():
            out[MATRIX:CURVE_COUNT] = element.full().ravel()
        case SkinFriction():
            out[SKIN] = 0.5 * element.density * element.wetted_area
            out[PER_SPEED] = element.length / element.viscosity
            out[TRANSITION] = max(element.transition, MIN_TURBULENT_RE)
            out[DEFICIT] = element.deficit()
        case DragCurve():
            rows = element.rows()
            out[CURVE_COUNT] = len(rows)
            out[CURVE_SPEED : CURVE_SPEED + len(rows)] = rows[:, 0]
            out[CURVE_AREA : CURVE_AREA + len(rows)] = 0.5 * element.density * rows[:, 1]
    return out


@scalar
def skin_force(row: Any, i: Any, v: Any) -> Any:
    """Return the skin friction along x: -1/2 rho S C_f(Re) |v| v.

    Parameters
    ----------
    row : (k, RESISTANCE_WIDTH) array
        Resistances.
    i : int
        Index of the resistance.
    v : float
        Velocity along x against the fluid, m/s.

    Returns
    -------
    float
        N.

    Notes
    -----
    Blasius below the transition, Prandtl and Schlichting above it.
    """
    size = v if v.real >= 0.0 else -v
    reynolds = size * row[i, PER_SPEED]
    if reynolds.real <= row[i, TRANSITION]:
        return -row[i, SKIN] * 1.328 * np.sqrt(size / row[i, PER_SPEED]) * v
    # log10(Re)^-2.58 = exp(-2.58 log(log(Re) / log(10)))
    friction = 0.455 * np.exp(-2.58 * np.log(np.log(reynolds) * 0.4342944819032518)) - row[i, DEFICIT] / reynolds
    return -row[i, SKIN] * friction * size * v


@scalar
def curve_force(row: Any, i: Any, v: Any) -> Any:
    """Return the drag of a curve along x: -1/2 rho A(|v|) |v| v.

    Parameters
    ----------
    row : (k, RESISTANCE_WIDTH) array
        Resistances.
    i : int
        Index of the resistance.
    v : float
        Velocity along x against the fluid, m/s.

    Returns
    -------
    float
        N.

    Notes
    -----
    A is linear between the rows of the curve and constant outside.
    """
    size = v if v.real >= 0.0 else -v
    last = int(row[i, CURVE_COUNT]) - 1
    k = 1
    while k < last and size.real > row[i, CURVE_SPEED + k]:
        k += 1
    low, high = row[i, CURVE_SPEED + k - 1], row[i, CURVE_SPEED + k]
    share = (size - low) / (high - low)
    if share.real < 0.0:
        share = 0.0 * share
    elif share.real > 1.0:
        share = 0.0 * share + 1.0
    area = row[i, CURVE_AREA + k - 1] + share * (row[i, CURVE_AREA + k] - row[i, CURVE_AREA + k - 1])
    return -area * size * v


@kernel
def resist(row: Any, moving: bool, ambient: Any, s: Any) -> None:
    """Add each resistance's wrench to S_WRENCH.

    Parameters
    ----------
    row : (k, RESISTANCE_WIDTH) array or None
        Resistances.
    moving : bool
        Whether the fluid moves.
    ambient : (e, SAMPLE_ROOM) array
        Flow at each element.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    if row is not None:
        for i in range(row.shape[0]):
            j, e = int(row[i, ROW]), int(row[i, ELEMENT])
            wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
            px, py, pz = row[i, ORIGIN], row[i, ORIGIN + 1], row[i, ORIGIN + 2]
            cx, cy, cz = cross(wx, wy, wz, px, py, pz)
            vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
            if moving:
                vx, vy, vz = relative(s, j, ambient, e, vx, vy, vz)
            v1, v2, v3 = to_element_axes(row, i, vx, vy, vz)
            w1, w2, w3 = to_element_axes(row, i, wx, wy, wz)
            size = row[i, WHOLE] * np.sqrt(v1 * v1 + v2 * v2 + v3 * v3)
            f1 = -size * v1 - row[i, AXES] * square(v1)
            f2 = -size * v2 - row[i, AXES + 1] * square(v2)
            f3 = -size * v3 - row[i, AXES + 2] * square(v3)
            if row[i, SKIN] > 0.0:
                f1 += skin_force(row, i, v1)
            if row[i, CURVE_COUNT] > 0.0:
                f1 += curve_force(row, i, v1)
            f1 -= along(row, i, 0, v1, v2, v3, w1, w2, w3)
            f2 -= along(row, i, 1, v1, v2, v3, w1, w2, w3)
            f3 -= along(row, i, 2, v1, v2, v3, w1, w2, w3)
            t1 = -along(row, i, 3, v1, v2, v3, w1, w2, w3)
            t2 = -along(row, i, 4, v1, v2, v3, w1, w2, w3)
            t3 = -along(row, i, 5, v1, v2, v3, w1, w2, w3)
            fx, fy, fz = out_of_axes(row, i, f1, f2, f3)
            tx, ty, tz = out_of_axes(row, i, t1, t2, t3)
            cx, cy, cz = cross(px, py, pz, fx, fy, fz)
            s[j, S_WRENCH] += fx
            s[j, S_WRENCH + 1] += fy
            s[j, S_WRENCH + 2] += fz
            s[j, S_WRENCH + 3] += tx + cx
            s[j, S_WRENCH + 4] += ty + cy
            s[j, S_WRENCH + 5] += tz + cz


@scalar
def along(row: Any, i: Any, k: Any, v1: Any, v2: Any, v3: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """Return component k of the matrix times (V, W).

    Parameters
    ----------
    row : (k, RESISTANCE_WIDTH) array
        Resistances.
    i : int
        Index of the resistance.
    k : int
        Component, 0 to 5.
    v1, v2, v3, w1, w2, w3 : float
        Velocity, m/s, and angular velocity, rad/s, element's frame.

    Returns
    -------
    float
        N or N m.
    """
    at = MATRIX + 6 * k
    return (
        row[i, at] * v1 + row[i, at + 1] * v2 + row[i, at + 2] * v3
        + row[i, at + 3] * w1 + row[i, at + 4] * w2 + row[i, at + 5] * w3
    )  # fmt: skip
