"""Build a part of an elongated body in a fluid from elliptic sections at Gauss points.

Each section has the mass, the added mass and the drag of the length that its point represents. Mass and displaced fluid
are sums over the same sections, so that a neutrally buoyant body follows an accelerating fluid exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.model.description import Body
from rtmms.model.elements import Element, Strip, Wake
from rtmms.model.solids import at

HalfAxes = Callable[[float], tuple[float, float]]
"""Function of the distance X (m) from the nose that returns (lateral a, vertical b), m."""
DIFFERENCE_SHARE = 1e-4
"""Distance for the slopes of a section by finite differences, as a fraction of the part's length."""
MAX_MOMENT_ERROR = 0.01
"""Permitted relative error of a part's moments."""
REFERENCE_SECTIONS = 40
"""Sections whose moments are the reference for that error."""


def elongated_body(
    name: str, half_axes: HalfAxes, start: float, end: float, pieces: int, density: float, *,
    fluid: float | None = None, friction: float = 0.0, cross: tuple[float, float] = (0.0, 0.0), wake: bool = False,
    couple: bool = False,
) -> Body:  # fmt: skip
    """Return a body of sections from X = start to X = end.

    The body's frame is at X = start with x towards the tail, y lateral, z up.

    Parameters
    ----------
    name : str
        Name of the body.
    half_axes : HalfAxes
        X, m -> (lateral a, vertical b), m.
    start, end : float
        X of both ends, m.
    pieces : int
        Number of Gauss points.
    density : float
        Density of the body, kg/m3.
    fluid : float, optional
        Density of the fluid, kg/m3; None: that of the body, for neutral buoyancy.
    friction : float, default 0.0
        Coefficient C of the axial drag 1/2 rho C P V1^2 per metre, with the perimeter P.
    cross : tuple[float, float], default (0.0, 0.0)
        Coefficients C of the drag across, 1/2 rho C 2 b |Vn| V2 and 1/2 rho C 2 a |Vn| V3 per metre.
    wake : bool, default False
        Whether the body ends there and sheds its wake.
    couple : bool, default False
        Whether sections have the couple of (48), m_f (a b' + 3 b a') / 4 times dV_r2/dt per metre.

    Returns
    -------
    Body
        The body with its elements.

    Raises
    ------
    ModelError
        A section has no area (the message has its place), or there are too few sections.

    Notes
    -----
    Boyer 2017, eq 48 for the couple; the perimeter is Ramanujan's.
    """
    water = density if fluid is None else fluid
    off = _coarseness(name, half_axes, start, end, pieces)
    if off > MAX_MOMENT_ERROR:
        raise ModelError(
            f"body '{name}': {pieces} sections are too few: the error of its mass or added mass is "
            f"{100.0 * off:.2g} %, expected at most {100.0 * MAX_MOMENT_ERROR:g} %; give more (pieces)"
        )
    nodes, weights = np.polynomial.legendre.leggauss(pieces)
    mass, moment, inertia, displaced = 0.0, np.zeros(3), np.zeros((3, 3)), 0.0
    elements: list[Element] = []
    for node, weight in zip(nodes, weights, strict=True):
        length, x = 0.5 * float(weight) * (end - start), 0.5 * (1.0 + float(node)) * (end - start)
        a, b = _section(name, half_axes, start + x)
        area, rim = math.pi * a * b, water * math.pi
        m, centre = density * area * length, np.array([x, 0.0, 0.0])
        local_inertia = 0.25 * m * np.diag([a * a + b * b, b * b, a * a])
        mass, moment, displaced = mass + m, moment + m * centre, displaced + water * area * length
        inertia += local_inertia + m * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        # an ellipse's perimeter (Ramanujan)
        around = math.pi * (3.0 * (a + b) - math.sqrt((3.0 * a + b) * (a + 3.0 * b)))
        drag = 0.5 * water * friction * around, water * cross[0] * b, water * cross[1] * a
        added = rim * (a * a - b * b) ** 2 / 8.0, rim * b * b, rim * a * a
        turning = _couple(name, half_axes, start + x, DIFFERENCE_SHARE * (end - start), water) if couple else 0.0
        elements.append(Strip(length, drag, added=added, displaced=water * area, placement=at(x), couple=turning))
    if wake:
        a_end, b_end = _section(name, half_axes, end)
        rim = water * math.pi
        added = (rim * (a_end**2 - b_end**2) ** 2 / 8.0, rim * b_end**2, rim * a_end**2)
        elements.append(Wake(added, at(end - start)))
    return Body(
        name,
        mass,
        moment,
        inertia,
        displaced=displaced,
        displaced_moment=moment * (displaced / mass),
        elements=elements,
    )


def _section(name: str, half_axes: HalfAxes, x: float) -> tuple[float, float]:
    a, b = half_axes(x)
    if not (math.isfinite(a) and math.isfinite(b) and a > 0.0 and b > 0.0):
        raise ModelError(f"body '{name}': section at X = {x:.6g} m: half-axes must be > 0 m, got ({a:.6g}, {b:.6g})")
    return float(a), float(b)


def _coarseness(name: str, half_axes: HalfAxes, start: float, end: float, pieces: int) -> float:
    """Return the relative error of moments of a b, a^2 and b^2, of order 0 to 2, against the reference's sections."""
    result = []
    for count in (pieces, REFERENCE_SECTIONS):
        nodes, weights = np.polynomial.legendre.leggauss(count)
        u = 0.5 * (1.0 + nodes)
        a, b = np.array([_section(name, half_axes, start + x * (end - start)) for x in u]).T
        result.append(np.array([a * b, a * a, b * b]) @ (weights[:, None] * u[:, None] ** np.arange(3)))
    return float(np.max(np.abs(result[0] / result[1] - 1.0)))


def _couple(name: str, half_axes: HalfAxes, x: float, h: float, water: float) -> float:
    """Return (rho pi a b / 4) (a b' + 3 b a') of the section at x, kg (48), with central differences over h."""
    (a, b), before, behind = (_section(name, half_axes, place) for place in (x, x - h, x + h))
    slope_a, slope_b = (0.5 * (q - p) / h for p, q in zip(before, behind, strict=True))
    return float(0.25 * water * math.pi * a * b * (a * slope_b + 3.0 * b * slope_a))
