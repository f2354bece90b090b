"""Find the closed curve of shapes that moves a mechanism farthest for its cost (the question of Hatton and Choset).

Notes
-----
A gait is a Fourier series. The goal is the ratio of a component of the net motion to the cost of a cycle. No change of
pace alters it. Sequential quadratic programming starts from circles of several sizes and goes on with more waves.
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
"""Possible goals, planar or not; the first is the default. In the plane, `distance` allows no net turn."""
CYCLE_STEPS = 24
"""Steps of a cycle in the search."""
CYCLE_SHAPES = 72
"""Shapes of a cycle that the search compares with the limits."""


@dataclass(frozen=True, eq=False)
class Best:
    """A gait that the search found.

    Attributes
    ----------
    path : Path
        The gait.
    coefficients : (p, 2 m + 1) array
        Its Fourier coefficients.
    displacement : (k,) array
        Net motion of a cycle, m and rad, see `Motion.displacement`.
    cost : float
        Cost of a cycle, see `Motion`.
    length : float
        Length of a cycle in the shape space, rad or m.
    score : float
        The goal over cost or length.
    evaluations : int
        Number of gaits that the search evaluated.
    """

    path: Path
    coefficients: Array
    displacement: Array
    cost: float
    length: float
    score: float
    evaluations: int


def best_gait(
    connection: Connection, goal: str | None = None, per: str = "cost", *, least: Any = None, greatest: Any = None,
    size: float = 1.0, waves: int = 5,
) -> Best:  # fmt: skip
    """Find the best gait of a mechanism.

    Parameters
    ----------
    connection : Connection
        Connection of the mechanism.
    goal : str, optional
        'distance' or 'turn', see `GOALS`; None for the first of them.
    per : str, default 'cost'
        'cost' (of the mechanism's own metric) or 'length' (of the curve in the shape space).
    least, greatest : (p,) array_like, optional
        Limits of the shape, which the gait keeps; None for none.
    size : float, default 1.0
        Size of the circles at the start of the search, rad or m.
    waves : int, default 5
        Waves of the final series.

    Returns
    -------
    Best
        The best local optimum of those to which the circles lead.

    Raises
    ------
    ModelError
        There are fewer than two shape variables, or no circle keeps the limits.
    UnknownNameError
        The goal or the measure does not exist.
    """
    goals = GOALS[connection.planar]
    goal = goals[0] if goal is None else goal
    if goal not in goals:
        raise UnknownNameError("goal of a gait", goal, goals)
    if per not in PER:
        raise UnknownNameError("measure of a gait", per, PER)
    p = connection.shape_size
    if p < 2:
        raise ModelError(f"{connection.model.name}: a gait needs at least 2 shape variables, got {p}")
    search = _Search(connection, goal, per, least, greatest)
    starts = [_circle(p, a * size, c * size) for a, c in ((0.6, 0.0), (1.0, 0.0), (1.5, 0.0), (1.0, 1.5))]
    result = [search.climb(start) for start in starts if search.inside(start)]
    if not result:
        raise ModelError(
            f"{connection.model.name}: size: every circle of radius {0.6 * size:g} exceeds the limits of the joints; "
            "give a smaller size"
        )
    table = max(result, key=lambda item: (search.is_admissible(item), search.score(item)))
    for count in (3, waves):
        table = search.climb(_widened(table, count))
    path = Path.fourier(table)
    motion = reconstruct(connection, path)
    length = search.measure(path, "length")
    net = holonomy(connection, path)
    cost = motion.cost if per == "cost" else length
    return Best(path, table, net, motion.cost, length, search.reached(net) / cost, search.count)


def score(connection: Connection, path: Path, goal: str, per: str) -> float:
    """Return the ratio that `best_gait` maximises, for a gait.

    Parameters
    ----------
    connection : Connection
        Connection of the mechanism.
    path : Path
        The gait.
    goal : str
        'distance' or 'turn'.
    per : str
        'cost' or 'length'.

    Returns
    -------
    float
        m or rad, over cost or length.
    """
    search = _Search(connection, goal, per, None, None)
    cost = search.measure(path, "length") if per == "length" else reconstruct(connection, path).cost
    return search.reached(holonomy(connection, path)) / cost


def _circle(p: int, a: float, c: float) -> Array:
    """Return a wave (p, 3) about c that runs through the joints, each a quarter of a turn after the previous one."""
    phase = 0.5 * np.pi * np.arange(p)
    return np.column_stack([np.full(p, c), a * np.cos(phase), a * np.sin(phase)])


def _widened(table: Array, waves: int) -> Array:
    """Return the same series with more waves, whose coefficients are 0."""
    out = np.zeros((len(table), 2 * waves + 1))
    out[:, : table.shape[1]] = table
    return out


class _Search:
    """Scores of gaits, and the climb from one of them.

    Parameters
    ----------
    one : Connection
        Connection of the mechanism.
    goal : str
        'distance' or 'turn'.
    per : str
        'cost' or 'length'.
    least, greatest : (p,) array_like
        Limits of the shape; None for none.
    """

    def __init__(self, connection: Connection, goal: str, per: str, least: Any, greatest: Any) -> None:
        p = connection.shape_size
        self.connection, self.goal, self.per, self.count = connection, goal, per, 0
        self.least = np.full(p, -np.inf) if least is None else np.asarray(least, dtype=float)
        self.greatest = np.full(p, np.inf) if greatest is None else np.asarray(greatest, dtype=float)
        self.grid = np.linspace(0.0, CYCLE_S, CYCLE_SHAPES, endpoint=False)

    def measure(self, path: Path, per: str, steps: int = 256) -> float:
        """Return the cost or the length of a cycle.

        Parameters
        ----------
        path : Path
            The gait.
        per : str
            'cost' or 'length'.
        steps : int, default 256
            Number of samples.

        Returns
        -------
        float
            Cost (`Motion.cost`) or length (rad or m).
        """
        ends = np.linspace(0.0, CYCLE_S, steps, endpoint=False)  # a periodic mean: exact beyond all orders
        shapes, rates = path.motion(ends)
        if per == "length":
            speed = np.sqrt(np.sum(rates**2, axis=1))
        else:
            speed = np.sqrt(np.maximum(self.connection.along(shapes, rates)[1], 0.0))
        return float(np.mean(speed)) * CYCLE_S

    def reached(self, net: Array) -> float:
        """Return the size of the sought part of a net motion.

        Parameters
        ----------
        net : (k,) array
            Net motion, see `Motion.displacement`.

        Returns
        -------
        float
            m or rad.
        """
        turn, translation = (net[2:], net[:2]) if self.connection.planar else (net[:3], net[3:])
        part = turn if self.goal == "turn" else translation
        return float(np.sqrt(part @ part))

    def net(self, path: Path) -> Array:
        """Return the net motion of a cycle, with enough steps for a search.

        Parameters
        ----------
        path : Path
            The gait.

        Returns
        -------
        (k,) array
            See `Motion.displacement`.
        """
        _, poses, turned, _ = _moved(self.connection, path, CYCLE_STEPS)
        return displacement(poses[-1], float(turned[-1]), self.connection.planar)

    def score(self, table: Array) -> float:
        """Return the ratio of goal and cost.

        Parameters
        ----------
        table : (p, 2 m + 1) array
            Fourier coefficients.

        Returns
        -------
        float
            m or rad, over cost or length.
        """
        self.count += 1
        path = Path.fourier(table)
        return self.reached(self.net(path)) / max(self.measure(path, self.per, CYCLE_SHAPES), 1e-12)

    def climb(self, start: Array) -> Array:
        """Go to the next optimum; the phase along the curve is free and does no harm.

        Parameters
        ----------
        start : (p, 2 m + 1) array
            Fourier coefficients at the start.

        Returns
        -------
        (p, 2 m + 1) array
            Coefficients of the optimum, or the start where there is nothing better.
        """
        shape = start.shape
        held = self._limits(shape)
        if self.connection.planar and self.goal == "distance":
            held.append({"type": "eq", "fun": lambda flat: self.net(Path.fourier(flat.reshape(shape)))[2]})
        try:
            done = minimize(  # type: ignore[no-untyped-call]
                lambda flat: -10.0 * self.score(flat.reshape(shape)), start.ravel(), method="SLSQP", constraints=held,
                options={"maxiter": 200, "ftol": 1e-10, "eps": 1e-6},
            )  # fmt: skip
        except ModelError:  # a line search that ran into a singular shape
            return start
        result: Array = done.x.reshape(shape)
        better = bool(np.all(np.isfinite(result))) and self.score(result) >= self.score(start)
        return result if better and self.is_admissible(result) else start

    def is_admissible(self, table: Array) -> bool:
        """Return whether a gait goes straight where it has to, and stays within the limits.

        Parameters
        ----------
        table : (p, 2 m + 1) array
            Fourier coefficients.

        Returns
        -------
        bool
            True where it does.
        """
        straight = (
            not (self.connection.planar and self.goal == "distance") or abs(self.net(Path.fourier(table))[2]) < 1e-6
        )
        return self.inside(table) and straight

    def inside(self, table: Array) -> bool:
        """Return whether the shapes of a gait keep the limits.

        Parameters
        ----------
        table : (p, 2 m + 1) array
            Fourier coefficients.

        Returns
        -------
        bool
            True where they do.
        """
        shapes = Path.fourier(table).motion(self.grid)[0]
        return bool(np.all(shapes >= self.least - 1e-6) and np.all(shapes <= self.greatest + 1e-6))

    def _limits(self, shape: tuple[int, int]) -> list[dict[str, Any]]:
        """Return constraints that keep the shapes on the grid within the limits: linear in the coefficients."""
        order = np.arange(1, shape[1] // 2 + 1)
        waves = np.empty((CYCLE_SHAPES, shape[1]))
        waves[:, 0] = 1.0
        waves[:, 1::2], waves[:, 2::2] = np.cos(np.outer(self.grid, order)), np.sin(np.outer(self.grid, order))
        rows, bounds = [], []
        for k in range(shape[0]):
            for sign, bound in ((1.0, -self.least[k]), (-1.0, self.greatest[k])):
                if np.isfinite(bound):
                    block = np.zeros((CYCLE_SHAPES, *shape))
                    block[:, k, :] = sign * waves
                    rows.append(block.reshape(CYCLE_SHAPES, -1))
                    bounds.append(np.full(CYCLE_SHAPES, bound - 1e-6))
        if not rows:
            return []
        matrix, bound = np.concatenate(rows), np.concatenate(bounds)
        inside: Callable[[Array], Array] = lambda flat: matrix @ flat + bound
        return [{"type": "ineq", "fun": inside, "jac": lambda flat: matrix}]
