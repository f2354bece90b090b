"""Points along a body: cells with Gauss-Lobatto points, where integrals from a cell's start to each point are exact for
the polynomial through all of the cell's points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmms.errors import ModelError
from rtmms.spatial import Array

POINTS = (3, 4, 5)
"""Points a cell, both ends counted: integrals over cells are of order 4, 6, 8."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Where a body is looked at.

    x        (n,) m, from head to tail; neighbouring cells share a point
    weight   (n,) m, of integrals over the whole body
    inner    (q, q) integral from a cell's start to its point i of a function known at its points j, over the length
    cells, length    how many, and the length of each, m
    """

    x: Array
    weight: Array
    inner: Array
    cells: int
    length: float

    @property
    def points(self) -> int:
        """Of a cell, both ends counted."""
        return int(self.inner.shape[0])


def lobatto(points: int) -> tuple[Array, Array]:
    """(q,) nodes on [0, 1] and the (q, q) matrix of their integrals, the last row the weights."""
    inside = np.polynomial.legendre.Legendre.basis(points - 1).deriv().roots()
    x = 0.5 + 0.5 * np.concatenate([[-1.0], np.sort(inside.real), [1.0]])
    powers = np.vander(x, increasing=True)
    order = np.arange(1, points + 1)
    matrix: Array = (x[:, None] ** order / order) @ np.linalg.inv(powers)
    return x, matrix


def grid(length: float, nodes: int, points: int = 4) -> Grid:
    """At least `nodes` points along `length` m, in cells of `points`. ModelError for fewer than one cell."""
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
