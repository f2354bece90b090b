"""A part of an elongated body in a fluid: slices of elliptic section, each with its mass, its added mass and its drag.

A slice is a strip of constant section (the mean over its length), so that what its mass weighs and what it displaces
agree exactly: a neutrally buoyant body goes with an accelerating fluid as the fluid does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from rtmms.errors import ModelError
from rtmms.model.description import Body
from rtmms.model.elements import Element, Strip, Wake
from rtmms.model.solids import at
from rtmms.spatial import Array

HalfAxes = Callable[[float], tuple[float, float]]
"""(lateral a, vertical b) m at a distance X (m) from the nose."""


def elongated_body(
    name: str, half_axes: HalfAxes, start: float, end: float, pieces: int, density: float, *,
    fluid: float | None = None, friction: float = 0.0, cross: tuple[float, float] = (0.0, 0.0), wake: bool = False,
    couple: bool = False,
) -> Body:  # fmt: skip
    """Sections from X = start to end (m), the body's frame at X = start with x towards the tail, y lateral, z up.

    pieces    slices;  density  kg/m3 of the body, fluid: of the fluid (None: the same, neutrally buoyant)
    friction  coefficient of the axial drag 1/2 rho C P V1^2 a metre, P the perimeter
    cross     coefficients of the drag across, 1/2 rho C 2 b |Vn| V2 and 1/2 rho C 2 a |Vn| V3 a metre
    wake      whether the body ends there and sheds its wake
    couple    whether slices feel the couple of (48), m_f (a b' + 3 b a') / 4 times dV_r2/dt a metre
    ModelError for a section without area, with its place.
    """
    water = density if fluid is None else fluid
    nodes, weights = np.polynomial.legendre.leggauss(3)
    edges = np.linspace(start, end, pieces + 1)
    mass, moment, inertia, displaced = 0.0, np.zeros(3), np.zeros((3, 3)), 0.0
    elements: list[Element] = []
    for left, right in pairwise(edges):
        length, middle = float(right - left), float(0.5 * (left + right)) - start
        sections = [_section(name, half_axes, float(0.5 * (left + right) + 0.5 * length * x)) for x in nodes]
        a, b = (np.array(axis) for axis in zip(*sections, strict=True))
        area, a2, b2, ring = (
            0.5 * math.pi * float(weights @ value) for value in (a * b, a * a, b * b, (a * a - b * b) ** 2)
        )
        m, spread = density * area * length, length * length / 12.0
        ya, zb = (
            float(weights @ (a**3 * b)) / float(weights @ (a * b)),
            float(weights @ (a * b**3)) / float(weights @ (a * b)),
        )
        own = m * np.diag([(ya + zb) / 4.0, zb / 4.0 + spread, ya / 4.0 + spread])
        centre = np.array([middle, 0.0, 0.0])
        mass, moment, displaced = mass + m, moment + m * centre, displaced + water * area * length
        inertia += own + m * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        # an ellipse's perimeter (Ramanujan)
        around = math.pi * float(np.mean(3.0 * (a + b) - np.sqrt((3.0 * a + b) * (a + 3.0 * b))))
        drag = (
            0.5 * water * friction * around,
            water * cross[0] * float(np.mean(b)),
            water * cross[1] * float(np.mean(a)),
        )
        added = (water * ring / 8.0, water * b2, water * a2)
        turning = _couple(water, length * nodes, a, b) if couple else 0.0
        elements.append(Strip(length, drag, added=added, displaced=water * area, placement=at(middle), couple=turning))
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


def _couple(water: float, x: Array, a: Array, b: Array) -> float:
    """kg: (rho pi a b / 4) (a b' + 3 b a') of a slice, from its half-axes at places x / 2 (48)."""
    slope_a, slope_b = (2.0 * float(v[-1] - v[0]) / float(x[-1] - x[0]) for v in (a, b))
    one, two = float(np.mean(a)), float(np.mean(b))
    return water * math.pi * one * two / 4.0 * (one * slope_b + 3.0 * two * slope_a)
