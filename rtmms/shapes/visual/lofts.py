"""Surfaces that bend: grids of points through the model's own, fine enough to look smooth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline

from rtmms.shapes.visual.meshes import tiles
from rtmms.shapes.visual.surface import Array, Faces


def spline(stations: Sequence[float] | Array, fine: Sequence[float] | Array) -> Array:
    """(m, n), a matrix: what the cubic spline through n points at their stations is at m others. At the stations
    themselves it is the points, so a surface that it makes goes through them."""
    places = np.asarray(stations, dtype=float)
    return np.asarray(CubicSpline(places, np.eye(len(places)))(np.asarray(fine, dtype=float)))  # type: ignore[no-untyped-call]


def between(stations: Array, pieces: int) -> Array:
    """The stations, rising, with others between any two of them: so many pieces."""
    return np.unique(np.concatenate([np.linspace(a, b, pieces + 1) for a, b in pairwise(stations)]))


def lengths(points: Array) -> Array:
    """(n,) m along a line of points, from the first."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    return np.concatenate([[0.0], np.cumsum(np.maximum(steps, 1e-9))])


def normals(grid: Array) -> Array:
    """(r, c, 3) of length one, of a grid (r, c, 3): along rows cross along columns."""
    across = np.cross(np.gradient(grid, axis=0), np.gradient(grid, axis=1))
    size = np.linalg.norm(across, axis=2, keepdims=True)
    return np.asarray(across / np.maximum(size, 1e-12))


def loft(rings: int, round_: int) -> Faces:
    """Faces of a tube of rings whose points go round counter-clockwise as seen from where the rings end."""
    return tiles(rings, round_, around=True)


def wing_section(x: Array) -> Array:
    """Half the thickness of a wing's section at x from its leading (0) to its trailing edge (1); 1 where it is most."""
    x = np.clip(x, 0.0, 1.0)
    thick = 1.4845 * np.sqrt(x) - 0.63 * x - 1.758 * x**2 + 1.4215 * x**3 - 0.518 * x**4
    return np.maximum(thick, 0.0) / 0.5
