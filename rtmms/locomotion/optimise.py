"""The closed curve of shapes that takes a mechanism farthest for what it costs (the question of Hatton and Choset).

A gait is a Fourier series; what is sought is the largest share of a component of the net motion in the cost of a cycle,
which no change of pace alters. Sequential quadratic programming, from circles of several sizes, then with more waves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import Array
from rtmms.locomotion.connections import Connection
from rtmms.locomotion.paths import CYCLE_S, Path
from rtmms.locomotion.reconstruction import _moved, displacement, holonomy, reconstruct

PER = ("cost", "length")
GOALS = {True: ("distance", "turn"), False: ("turn", "distance")}
"""What may be sought, planar or not; the first is the default. In the plane a distance is sought without a net turn:
such a gait goes on straight."""
STEPS, SEEN = 24, 72
"""Of the search: steps of a cycle, and shapes that are held against the limits."""


@dataclass(frozen=True, eq=False)
class Best:
    """A gait that was found: the path, its Fourier coefficients (p, 2 m + 1), its net motion in a cycle (m, rad),
    `cost` (see Motion) and length (rad or m in the shape space) of a cycle; score: the goal over cost or length."""

    path: Path
    coefficients: Array
    displacement: Array
    cost: float
    length: float
    score: float
    evaluations: int


def best_gait(
    one: Connection, goal: str | None = None, per: str = "cost", *, least: Any = None, greatest: Any = None,
    size: float = 1.0, waves: int = 5,
) -> Best:  # fmt: skip
    """The best gait found.

    goal             'distance' or 'turn', see GOALS; None for the first of them
    per              'cost' (of the mechanism's own metric) or 'length' (of the curve in the shape space)
    least, greatest  (p,) limits of the shape, kept;  size  rad or m, of the circles that the search begins with
    waves            of the series in the end
    A local optimum: the best of those that the circles lead to. Two shape variables at least are needed.
    """
    goals = GOALS[one.planar]
    goal = goals[0] if goal is None else goal
    if goal not in goals:
        raise UnknownNameError("goal of a gait", goal, goals)
    if per not in PER:
        raise UnknownNameError("measure of a gait", per, PER)
    p = one.shape_size
    if p < 2:
        raise ModelError(f"{one.model.name}: a gait needs at least 2 shape variables, got {p}")
    search = _Search(one, goal, per, least, greatest)
    starts = [_circle(p, a * size, c * size) for a, c in ((0.6, 0.0), (1.0, 0.0), (1.5, 0.0), (1.0, 1.5))]
    found = [search.climb(start) for start in starts if search.inside(start)]
    if not found:
        raise ModelError(f"{one.model.name}: no circle of {0.6 * size:g} and more keeps the joints' limits; set size")
    table = max(found, key=lambda one: (search.kept(one), search.score(one)))
    for count in (3, waves):
        table = search.climb(_widened(table, count))
    path = Path.fourier(table)
    motion = reconstruct(one, path)
    length = search.measure(path, "length")
    net = holonomy(one, path)
    cost = motion.cost if per == "cost" else length
    return Best(path, table, net, motion.cost, length, search.reached(net) / cost, search.count)


def score(one: Connection, path: Path, goal: str, per: str) -> float:
    """Of a gait, what `best_gait` seeks the largest of."""
    search = _Search(one, goal, per, None, None)
    cost = search.measure(path, "length") if per == "length" else reconstruct(one, path).cost
    return search.reached(holonomy(one, path)) / cost


def _circle(p: int, a: float, c: float) -> Array:
    """(p, 3) a wave about c that runs through the joints, each a quarter of a turn after the one before."""
    phase = 0.5 * np.pi * np.arange(p)
    return np.column_stack([np.full(p, c), a * np.cos(phase), a * np.sin(phase)])


def _widened(table: Array, waves: int) -> Array:
    out = np.zeros((len(table), 2 * waves + 1))
    out[:, : table.shape[1]] = table
    return out


class _Search:
    """Scores of gaits, and the climb from one of them."""

    def __init__(self, one: Connection, goal: str, per: str, least: Any, greatest: Any) -> None:
        p = one.shape_size
        self.one, self.goal, self.per, self.count = one, goal, per, 0
        self.least = np.full(p, -np.inf) if least is None else np.asarray(least, dtype=float)
        self.greatest = np.full(p, np.inf) if greatest is None else np.asarray(greatest, dtype=float)
        self.grid = np.linspace(0.0, CYCLE_S, SEEN, endpoint=False)

    def measure(self, path: Path, per: str, steps: int = 256) -> float:
        """Cost or length of a cycle."""
        ends = np.linspace(0.0, CYCLE_S, steps, endpoint=False)  # a periodic mean: exact beyond all orders
        shapes, rates = path.motion(ends)
        if per == "length":
            speed = np.sqrt(np.sum(rates**2, axis=1))
        else:
            speed = np.sqrt(np.maximum(self.one.along(shapes, rates)[1], 0.0))
        return float(np.mean(speed)) * CYCLE_S

    def reached(self, net: Array) -> float:
        """m or rad, of a net motion."""
        turn, way = (net[2:], net[:2]) if self.one.planar else (net[:3], net[3:])
        part = turn if self.goal == "turn" else way
        return float(np.sqrt(part @ part))

    def net(self, path: Path) -> Array:
        """The net motion of a cycle, by steps enough for a search."""
        _, poses, turned, _ = _moved(self.one, path, STEPS)
        return displacement(poses[-1], float(turned[-1]), self.one.planar)

    def score(self, table: Array) -> float:
        self.count += 1
        path = Path.fourier(table)
        return self.reached(self.net(path)) / max(self.measure(path, self.per, SEEN), 1e-12)

    def climb(self, start: Array) -> Array:
        """(p, 2 m + 1) from there to the next optimum; the phase along the curve is free and does no harm."""
        shape = start.shape
        held = self._limits(shape)
        if self.one.planar and self.goal == "distance":
            held.append({"type": "eq", "fun": lambda flat: self.net(Path.fourier(flat.reshape(shape)))[2]})
        try:
            done = minimize(  # type: ignore[no-untyped-call]
                lambda flat: -10.0 * self.score(flat.reshape(shape)), start.ravel(), method="SLSQP", constraints=held,
                options={"maxiter": 200, "ftol": 1e-10, "eps": 1e-6},
            )  # fmt: skip
        except ModelError:  # a line search that ran into a singular shape
            return start
        found: Array = done.x.reshape(shape)
        better = bool(np.all(np.isfinite(found))) and self.score(found) >= self.score(start)
        return found if better and self.kept(found) else start

    def kept(self, table: Array) -> bool:
        """Whether a gait goes straight where it has to, and stays within the limits."""
        straight = not (self.one.planar and self.goal == "distance") or abs(self.net(Path.fourier(table))[2]) < 1e-6
        return self.inside(table) and straight

    def inside(self, table: Array) -> bool:
        """Whether its shapes keep the limits."""
        shapes = Path.fourier(table).motion(self.grid)[0]
        return bool(np.all(shapes >= self.least - 1e-6) and np.all(shapes <= self.greatest + 1e-6))

    def _limits(self, shape: tuple[int, int]) -> list[dict[str, Any]]:
        """The shapes on the grid stay within the limits: linear in the coefficients."""
        order = np.arange(1, shape[1] // 2 + 1)
        waves = np.empty((SEEN, shape[1]))
        waves[:, 0] = 1.0
        waves[:, 1::2], waves[:, 2::2] = np.cos(np.outer(self.grid, order)), np.sin(np.outer(self.grid, order))
        rows, bounds = [], []
        for k in range(shape[0]):
            for sign, bound in ((1.0, -self.least[k]), (-1.0, self.greatest[k])):
                if np.isfinite(bound):
                    block = np.zeros((SEEN, *shape))
                    block[:, k, :] = sign * waves
                    rows.append(block.reshape(SEEN, -1))
                    bounds.append(np.full(SEEN, bound - 1e-6))
        if not rows:
            return []
        matrix, bound = np.concatenate(rows), np.concatenate(bounds)
        inside: Callable[[Array], Array] = lambda flat: matrix @ flat + bound
        return [{"type": "ineq", "fun": inside, "jac": lambda flat: matrix}]
