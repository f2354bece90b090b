"""Shapes of strain along a rod: Legendre polynomials, or any functions of one's own, as a table at the points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.spatial import Array

COMPONENTS = ("stretch", "shear_y", "shear_z", "twist", "bend_y", "bend_z")
Shape = Callable[[float], float]


@dataclass(frozen=True, eq=False)
class Shapes:
    """functions: of X / l in (0, 1), for each of the rod's strains (COMPONENTS) that it has."""

    functions: Mapping[str, Sequence[Shape]]

    @property
    def components(self) -> list[int]:
        """Of each coordinate, the strain that it is of."""
        return [COMPONENTS.index(name) for name, many in self.functions.items() for _ in many]

    def table(self, x: Array, length: float, place: str) -> Array:
        """(n, points, 6). ModelError names the shape and the point where it is not a finite number."""
        rows: list[Array] = []
        for name, many in self.functions.items():
            if name not in COMPONENTS:
                raise ModelError(f"{place}: shapes: expected some of {', '.join(COMPONENTS)}, got '{name}'")
            for k, function in enumerate(many):
                row = np.zeros((len(x), 6))
                for i, at in enumerate(x):
                    value: Any = function(float(at) / length)
                    if not isinstance(value, (int, float)) or not np.isfinite(value):
                        raise ModelError(
                            f"{place}: shape {k} of {name} at X = {at:.6g} m: expected a finite number, got {value!r}"
                        )
                    row[i, COMPONENTS.index(name)] = float(value)
                rows.append(row)
        if not rows:
            raise ModelError(f"{place}: shapes: expected at least one")
        return np.array(rows)


def legendre(order: int, components: Sequence[str] = ("twist", "bend_y", "bend_z")) -> Shapes:
    """Legendre polynomials of degree 0 to order - 1 on (0, l), for each of the strains named."""

    def one(k: int) -> Shape:
        polynomial = np.polynomial.legendre.Legendre.basis(k, domain=[0.0, 1.0])
        return lambda u: float(polynomial(u))

    return Shapes({name: [one(k) for k in range(order)] for name in components})
