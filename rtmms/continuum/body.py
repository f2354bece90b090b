"""Provide sections of a continuous body along its length, and the grid of points on which kernels integrate.

The grid has cells with Gauss-Lobatto points. Integrals from a cell's start to each point are exact for the polynomial
through the cell's points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array
from rtmms.continuum import layout as at

POINTS = (3, 4, 5)
"""Possible numbers of points of a cell, both ends included: integrals over cells are of order 4, 6, 8."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Points along a body.

    Parameters
    ----------
    x : (n,) array
        From head to tail, m; neighbouring cells share a point.
    weight : (n,) array
        Weights of integrals over the whole body, m.
    inner : (q, q) array
        Integral from a cell's start to its point i of a function known at its points j, over the length.
    cells : int
        Number of cells.
    length : float
        Length of each cell, m.
    """

    x: Array
    weight: Array
    inner: Array
    cells: int
    length: float

    @property
    def points(self) -> int:
        """Number of points of a cell, both ends included."""
        return int(self.inner.shape[0])


def lobatto(points: int) -> tuple[Array, Array]:
    """Return Gauss-Lobatto nodes and the matrix of their integrals.

    Parameters
    ----------
    points : int
        Number of nodes, q.

    Returns
    -------
    (array, array)
        Nodes (q,) on [0, 1], and the matrix (q, q), whose last row has the weights.
    """
    inside = np.polynomial.legendre.Legendre.basis(points - 1).deriv().roots()
    x = 0.5 + 0.5 * np.concatenate([[-1.0], np.sort(inside.real), [1.0]])
    powers = np.vander(x, increasing=True)
    order = np.arange(1, points + 1)
    matrix: Array = (x[:, None] ** order / order) @ np.linalg.inv(powers)
    return x, matrix


def grid(length: float, nodes: int, points: int = 4) -> Grid:
    """Return a grid of at least `nodes` points.

    Parameters
    ----------
    length : float
        m.
    nodes : int
        Smallest number of points.
    points : int, default 4
        Points of a cell.

    Returns
    -------
    Grid
        The grid.

    Raises
    ------
    ModelError
        There is less than one cell, or no such kind of cell.
    """
    if points not in POINTS:
        raise ModelError(f"points of a cell must be one of {', '.join(map(str, POINTS))}, got {points}")
    if nodes < points:
        raise ModelError(f"nodes must be >= {points}, the points of one cell, got {nodes}")
    cells = -(-(nodes - 1) // (points - 1))
    local, inner = lobatto(points)
    h = length / cells
    x, weight = np.zeros(cells * (points - 1) + 1), np.zeros(cells * (points - 1) + 1)
    for c in range(cells):
        at = slice(c * (points - 1), c * (points - 1) + points)
        x[at] = h * (c + local)
        weight[at] += h * inner[-1]
    return Grid(x, weight, np.ascontiguousarray(inner), cells, h)


@dataclass(frozen=True)
class Section:
    """An elliptic section with its drag and added mass in water, for a metre of length.

    Parameters
    ----------
    half_width_m, half_height_m : float
        a along e2 and b along e3, m.
    density_kg_m3 : float, default 1000.0
        kg/m3.
    drag : tuple[float, float, float], default (0.01, 1.0, 1.0)
        Coefficients without dimension, as in Khalil 2007: along, lateral, vertical.
    roll_drag : float, default 1.0
        Coefficient of rolling.
    added : tuple[float, float, float], default (1.0, 1.0, 1.0)
        Coefficients without dimension: rolling, lateral, vertical.

    Examples
    --------
    >>> from rtmms.continuum.body import Section
    >>> Section(0.05, 0.08).density_kg_m3
    1000.0
    """

    half_width_m: float
    half_height_m: float
    density_kg_m3: float = 1000.0
    drag: tuple[float, float, float] = (0.01, 1.0, 1.0)
    roll_drag: float = 1.0
    added: tuple[float, float, float] = (1.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class CosseratBody:
    """A continuous body, with e1 from head to tail.

    Parameters
    ----------
    name : str
        Name of the body.
    length_m : float
        m.
    section : Section or callable
        One section, or a function x (m from the head) -> Section.
    water_density_kg_m3 : float, default 1000.0
        Density of the fluid around, kg/m3; 0 for none.

    Examples
    --------
    >>> from rtmms.continuum.body import CosseratBody, Section
    >>> CosseratBody("eel", 2.0, Section(0.05, 0.08)).water_density_kg_m3
    1000.0
    """

    name: str
    length_m: float
    section: Section | Callable[[float], Section]
    water_density_kg_m3: float = 1000.0


def table(body: CosseratBody, grid: Grid) -> Array:
    """Return the sections at the points of a grid.

    Parameters
    ----------
    body : CosseratBody
        The body.
    grid : Grid
        Points along it.

    Returns
    -------
    (n, K_WIDTH) array
        Read-only.

    Raises
    ------
    ModelError
        A section is wrong; the message has the place along the body.
    """
    if not (math.isfinite(body.length_m) and body.length_m > 0.0):
        raise ModelError(f"{body.name}: length_m must be > 0 m, got {body.length_m}")
    rho = body.water_density_kg_m3
    if not (math.isfinite(rho) and rho >= 0.0):
        raise ModelError(f"{body.name}: water_density_kg_m3 must be >= 0, got {rho}")
    out = np.zeros((len(grid.x), at.K_WIDTH))
    for row, x, weight in zip(out, grid.x, grid.weight, strict=True):
        section = body.section if isinstance(body.section, Section) else body.section(float(x))
        row[:] = _row(section, rho, f"{body.name}: section at X = {x:.6g} m")
        row[at.K_X], row[at.K_WEIGHT] = x, weight
    out.flags.writeable = False
    return out


def _row(section: Any, rho: float, place: str) -> Array:
    if not isinstance(section, Section):
        raise ModelError(f"{place}: expected a Section, got {section!r}")
    a, b, density = section.half_width_m, section.half_height_m, section.density_kg_m3
    for name, value in (("half_width_m", a), ("half_height_m", b), ("density_kg_m3", density)):
        if not (math.isfinite(value) and value > 0.0):
            raise ModelError(f"{place}: {name} must be > 0, so that the section has an area and a mass, got {value}")
    for name, values in (("drag", section.drag), ("roll_drag", (section.roll_drag,)), ("added", section.added)):
        if not all(math.isfinite(v) and v >= 0.0 for v in values):
            raise ModelError(f"{place}: {name} must be >= 0, got {values}")
    area, ring, row = math.pi * a * b, (b * b - a * a) ** 2, np.zeros(at.K_WIDTH)
    row[at.K_MASS] = density * area
    row[at.K_INERTIA : at.K_INERTIA + 3] = 0.25 * density * area * np.array([a * a + b * b, b * b, a * a])
    row[at.K_ADDED + 1] = rho * math.pi * b * b * section.added[1]
    row[at.K_ADDED + 2] = rho * math.pi * a * a * section.added[2]
    row[at.K_ROLL] = rho * math.pi * ring / 8.0 * section.added[0]
    drag = np.array(section.drag) * np.array([math.pi * (a + b) / 2.0, 2.0 * b, 2.0 * a])
    row[at.K_DRAG : at.K_DRAG + 3] = 0.5 * rho * drag
    row[at.K_ROLL_DRAG] = 0.5 * rho * section.roll_drag * ring
    row[at.K_PULL] = (density - rho) * area
    return row
