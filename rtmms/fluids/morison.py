"""Compute Morison's strips: axial, normal and rolling drag of slender elements (Khalil 2007, eqs 44-62)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, cross, scalar
from rtmms.fluids.ambient import U
from rtmms.model.elements import Strip
from rtmms.model.layout import S_TWIST, S_WORLD_ROT, S_WRENCH

# columns of a strip: axes by rows (row frame = E strip frame) 9, middle 3, length, drag 3, roll, added 3, law,
# couple (kg m)
MIDDLE = 9
LENGTH = 12
DRAG = 13
ROLL = 16
ADDED = 17
PAPER = 20
COUPLE = 21
STRIP_WIDTH = 22


def strip_row(_: int, strip: Strip) -> Array:
    """Return the numbers of a strip for the kernels.

    Parameters
    ----------
    _ : int
        Row of the model; unused.
    strip : Strip
        The strip.

    Returns
    -------
    (STRIP_WIDTH,) array
        Numbers of the strip.
    """
    place = strip.placement
    paper = float(strip.law == "khalil2007")
    return np.array(
        [*place.rotation.ravel(), *place.position, strip.length, *strip.drag, strip.roll_drag, *strip.added, paper,
         strip.couple * strip.length]
    )  # fmt: skip


@scalar
def to_element_axes(e: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """Return E^T (x, y, z): a vector of the row's frame in the element's frame.

    Parameters
    ----------
    e : array
        Elements, with E by rows in e[i, :9].
    i : int
        Index of the element.
    x, y, z : float
        Components in the row's frame.

    Returns
    -------
    (float, float, float)
        Components in the element's frame.
    """
    return (
        e[i, 0] * x + e[i, 3] * y + e[i, 6] * z,
        e[i, 1] * x + e[i, 4] * y + e[i, 7] * z,
        e[i, 2] * x + e[i, 5] * y + e[i, 8] * z,
    )


@scalar
def out_of_axes(e: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """Return E (x, y, z): a vector of the element's frame in the row's frame.

    Parameters
    ----------
    e : array
        Elements, with E by rows in e[i, :9].
    i : int
        Index of the element.
    x, y, z : float
        Components in the element's frame.

    Returns
    -------
    (float, float, float)
        Components in the row's frame.
    """
    return (
        e[i, 0] * x + e[i, 1] * y + e[i, 2] * z,
        e[i, 3] * x + e[i, 4] * y + e[i, 5] * z,
        e[i, 6] * x + e[i, 7] * y + e[i, 8] * z,
    )


@scalar
def square(x: Any) -> Any:
    """Return |x| x, also for complex x with a tiny imaginary part.

    Parameters
    ----------
    x : float or complex
        Number.

    Returns
    -------
    float or complex
        |x| x.
    """
    return x * x if x.real >= 0.0 else -x * x


@scalar
def relative(s: Any, j: Any, ambient: Any, i: Any, x: Any, y: Any, z: Any) -> Any:
    """Return the velocity of a point of a row against the fluid around an element, in the row's frame.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    ambient : (e, SAMPLE_ROOM) array
        Flow at each element.
    i : int
        Index of the element.
    x, y, z : float
        Velocity of the point, m/s, row's frame.

    Returns
    -------
    (float, float, float)
        m/s.
    """
    r = S_WORLD_ROT
    u, v, w = ambient[i, U], ambient[i, U + 1], ambient[i, U + 2]
    return (
        x - (s[j, r] * u + s[j, r + 3] * v + s[j, r + 6] * w),
        y - (s[j, r + 1] * u + s[j, r + 4] * v + s[j, r + 7] * w),
        z - (s[j, r + 2] * u + s[j, r + 5] * v + s[j, r + 8] * w),
    )


@kernel
def strips(rows: Any, strip: Any, gauss: Any, moving: bool, ambient: Any, s: Any) -> None:
    """Add each strip's drag to S_WRENCH, and the changes of the law khalil2007 to the inertial wrench.

    Parameters
    ----------
    rows : (e,) array
        Row of the model of each element.
    strip : (n, STRIP_WIDTH) array
        Strips.
    gauss : (2, nodes) array
        Nodes on (-1, 1) and weights that sum to 2.
    moving : bool
        Whether the fluid moves.
    ambient : (e, SAMPLE_ROOM) array
        Flow at each element.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    for i in range(strip.shape[0]):
        j = rows[i]
        wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        mx, my, mz = strip[i, MIDDLE], strip[i, MIDDLE + 1], strip[i, MIDDLE + 2]
        cx, cy, cz = cross(wx, wy, wz, mx, my, mz)
        vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
        w1, w2, w3 = to_element_axes(strip, i, wx, wy, wz)
        zero = 0.0 * w1
        f1, f2, f3, t1, t2, t3 = zero, zero, zero, zero, zero, zero
        length = strip[i, LENGTH]
        if strip[i, PAPER] > 0.0:
            v1, v2, v3 = to_element_axes(strip, i, vx, vy, vz)
            f1, f2, f3, t1, t2, t3 = _paper(strip, i, v1, v2, v3, w1, w2, w3)
        if moving:
            vx, vy, vz = relative(s, j, ambient, i, vx, vy, vz)
        v1, v2, v3 = to_element_axes(strip, i, vx, vy, vz)
        sum2, sum3, turn2, turn3 = zero, zero, zero, zero
        for k in range(gauss.shape[1]):  # (46) -d_i |V_n| V_i at s e1, where V_n = V_mid + W x s e1
            x = 0.5 * length * gauss[0, k]
            n2, n3 = v2 + x * w3, v3 - x * w2
            speed = np.sqrt(n2 * n2 + n3 * n3) * gauss[1, k]
            sum2 += speed * n2
            sum3 += speed * n3
            turn2 += x * speed * n2
            turn3 += x * speed * n3
        half = 0.5 * length
        d2, d3 = half * strip[i, DRAG + 1], half * strip[i, DRAG + 2]
        f1 -= length * strip[i, DRAG] * square(v1)
        f2, f3 = f2 - d2 * sum2, f3 - d3 * sum3
        t1 -= length * strip[i, ROLL] * square(w1)  # (47)
        t2, t3 = t2 + d3 * turn3, t3 - d2 * turn2
        fx, fy, fz = out_of_axes(strip, i, f1, f2, f3)
        tx, ty, tz = out_of_axes(strip, i, t1, t2, t3)
        cx, cy, cz = cross(mx, my, mz, fx, fy, fz)
        s[j, S_WRENCH] += fx
        s[j, S_WRENCH + 1] += fy
        s[j, S_WRENCH + 2] += fz
        s[j, S_WRENCH + 3] += tx + cx
        s[j, S_WRENCH + 4] += ty + cy
        s[j, S_WRENCH + 5] += tz + cz


@scalar
def _paper(e: Any, i: Any, v1: Any, v2: Any, v3: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """Return the wrench in the strip's frame, at its middle, that makes the model's Kirchhoff terms the paper's.

    The paper's terms are eqs (48), (49), (57). The model's: -M_a eta' - (W x p; W x l + V x p), p = m_a V, l = I_a W.
    The paper's: -M_a eta' - int (1; s e1 x) m_a (W x (V + W x s e1)) ds.
    """
    length = e[i, LENGTH]
    m2, m3 = length * e[i, ADDED + 1], length * e[i, ADDED + 2]
    sq = length * length / 12.0
    p2, p3 = m2 * v2, m3 * v3
    l1, l2, l3 = length * e[i, ADDED] * w1, m3 * sq * w2, m2 * sq * w3
    return (
        w2 * p3 - w3 * p2,
        -w1 * p3 - m2 * (w3 * v1 - w1 * v3),
        w1 * p2 - m3 * (w1 * v2 - w2 * v1),
        w2 * l3 - w3 * l2 + v2 * p3 - v3 * p2,
        w3 * l1 - w1 * l3 - v1 * p3 + m3 * sq * w1 * w3,
        w1 * l2 - w2 * l1 + v1 * p2 - m2 * sq * w1 * w2,
    )
