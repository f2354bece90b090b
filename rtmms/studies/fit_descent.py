"""Gauss-Newton with bounds: damped steps (Levenberg-Marquardt), the progress that it reports, and its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.base.budget import Budget

Array = npt.NDArray[np.float64]

FIRST_DAMPING = 1e-4
"""First damping of Levenberg and Marquardt, as a share of the diagonal of J' J."""
MIN_DAMPING = 1e-12
"""Minimum of the damping, as a share of the diagonal of J' J."""
MAX_DAMPING = 1e10
"""Maximum of the damping, as a share of the diagonal of J' J."""
RAISED = 6.0
LOWERED = 0.15
ITERATIONS = 40
CORRECTIONS = 3
"""Corrections of a step, by the error of the linear model at its end."""
UNSOUND = 1e7
"""Residual, in deviations, from which on it belongs to a model that fails."""
TRIALS = 12
"""Steps that one iteration tries before it ends the search."""
SETTLED = 1e-2
"""Expected fall of the sum of squares, in squared deviations, below which one more step ends the search; that step is a
tenth of a standard error, and the remaining distance is far less.
"""
MAX_STEP = 3.0
"""Largest step of an unknown, in its scale or in the size that it has grown to."""
ROUGH = 1e-3
"""Expected fall that ends the search, as a share of the sum of squares, where the weights are computed anew afterwards.
"""
CLOSE = 1e-10
"""Step of each unknown, in its scale, below which the values have converged."""


@dataclass(frozen=True)
class Iteration:
    """State of the search after an iteration, for a person.

    Attributes
    ----------
    number : int
        Iterations so far.
    cost : float
        Sum of squares, in squared deviations.
    rms : float
        Root mean square of the residuals, in deviations.
    step : float
        Largest change of an unknown, in its scale.
    values : dict[str, float]
        Values of the requested unknowns, by name.
    elapsed_s, left_s : float
        Wall time, and an estimate of the remaining time.
    """

    number: int
    cost: float
    rms: float
    step: float
    values: dict[str, float]
    elapsed_s: float
    left_s: float


@dataclass
class Watch:
    """Progress of a fit while it runs, and its wall time.

    Attributes
    ----------
    show : Callable[[str], None], default lambda _: None
        Receives a short text, often.
    iterated : Callable[[Iteration], None], default lambda _: None
        Receives each Iteration.
    budget : Budget
        Wall time.
    count : int, default 0
        Iterations so far.
    searching_s : float | None, optional
        Wall time at the first iteration.
    best : Array | None, optional
        (unknowns,) values of the least sum of squares so far in the present round.
    best_cost : float, default math.inf
        Sum of squares at `best`.
    slope : Array | None, optional
        (m, unknowns) last derivatives in the present round.
    """

    show: Callable[[str], None] = lambda _: None
    iterated: Callable[[Iteration], None] = lambda _: None
    budget: Budget = field(default_factory=Budget)
    count: int = 0
    searching_s: float | None = None
    best: Array | None = None
    best_cost: float = math.inf
    slope: Array | None = None

    def progress(self, text: str) -> None:
        """Report a text.

        Parameters
        ----------
        text : str
            One line.

        Raises
        ------
        OutOfTimeError
            The wall time is over.
        """
        self.budget.refuse_late()
        self.show(text)

    def begin(self) -> None:
        """Begin a round with other weights: earlier sums of squares are not comparable."""
        self.best_cost, self.slope = math.inf, None

    def keep(self, z: Array, cost: float) -> None:
        """Store the values if they are the best so far.

        Parameters
        ----------
        z : Array
            (n,) values.
        cost : float
            Their sum of squares.
        """
        if cost < self.best_cost:
            self.best, self.best_cost = z.copy(), cost


class Problem(Protocol):
    """Residuals as a function of unknowns z (n,)."""

    @property
    def unknowns(self) -> Sequence[Any]:
        """The unknowns, in the order of z."""
        ...

    def value(self, z: Array) -> Array:
        """Return the residuals.

        Parameters
        ----------
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        Array
            (m,), in deviations.
        """

    def slope(self, z: Array) -> Array:
        """Return the derivatives of the residuals.

        Parameters
        ----------
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        Array
            (m, n).
        """

    def narrow(self, z: Array, beyond: Array) -> bool:
        """Bound the unknowns that cannot be as in `beyond`.

        Parameters
        ----------
        z : Array
            (n,) possible values.
        beyond : Array
            (n,) values at which the model fails.

        Returns
        -------
        bool
            True where a bound is new.
        """


def bounds_of(unknowns: Sequence[Any]) -> tuple[Array, Array]:
    """Return the bounds of unknowns, each in its scale.

    Parameters
    ----------
    unknowns : Sequence[Any]
        The unknowns, with low, high and scale.

    Returns
    -------
    tuple[Array, Array]
        (n,) lower and (n,) upper bounds.
    """
    return (
        np.array([unknown.low / unknown.scale for unknown in unknowns]),
        np.array([unknown.high / unknown.scale for unknown in unknowns]),
    )


def descend(
    problem: Problem, z: Array, watch: Watch, *, rough: bool, values_of: Callable[[Array], dict[str, float]],
    slope: Array | None = None,
) -> tuple[Array, float, Array]:  # fmt: skip
    """Find the least sum of squares within the bounds, from z on.

    Parameters
    ----------
    problem : Problem
        Residuals and their slopes.
    z : Array
        (n,) start of the search.
    watch : Watch
        Receives each iteration.
    rough : bool
        The weights are computed anew afterwards, so the values need not converge.
    values_of : Callable[[Array], dict[str, float]]
        Returns the values in the units of the user, by name, from z.
    slope : Array | None, optional
        (m, n) at z, where it is known.

    Returns
    -------
    tuple[Array, float, Array]
        z, cost and slope; the slope is of the last iteration's start, less than a step from z.
    """
    low, high = bounds_of(problem.unknowns)
    z = np.clip(z, low, high)
    residual = problem.value(z)
    cost = float(residual @ residual)
    watch.keep(z, cost)
    damping, moved = FIRST_DAMPING, math.inf
    jacobian = problem.slope(z) if slope is None else slope
    for number in range(ITERATIONS):
        if number:
            jacobian = problem.slope(z)
        watch.slope = jacobian
        gradient, information = jacobian.T @ residual, jacobian.T @ jacobian
        size = np.maximum(np.diag(information), 1e-12 * max(float(np.diag(information).max(initial=0.0)), 1e-300))
        reachable = _fall(_bounded(information, gradient, size, MIN_DAMPING, z, low, high), information, gradient)
        _show_step(watch, values_of(z), cost, len(residual), moved, reachable)
        if reachable <= max(SETTLED, ROUGH * cost if rough else 0.0):
            step = _bounded(information, gradient, size, MIN_DAMPING, z, low, high)
            result = problem.value(np.clip(z + step, low, high))
            if float(result @ result) < cost:
                z, cost = np.clip(z + step, low, high), float(result @ result)
                watch.keep(z, cost)
            break
        for _ in range(TRIALS):
            reach = MAX_STEP * np.maximum(1.0, np.abs(z))
            ends = np.maximum(low, z - reach), np.minimum(high, z + reach)
            step = _bounded(information, gradient, size, damping, z, *ends)
            trial = np.clip(z + step, low, high)
            result = problem.value(trial)
            new = float(result @ result)
            expected = _fall(trial - z, information, gradient)
            for _ in range(CORRECTIONS):
                if cost - new > 0.5 * expected or not np.abs(result).max(initial=0.0) < UNSOUND:
                    break
                # along a curved valley: what the linear model missed at the trial, taken to be the same nearby
                missed = result - residual - jacobian @ (trial - z)
                bent = _bounded(information, jacobian.T @ (residual + missed), size, damping, z, *ends)
                other = np.clip(z + bent, low, high)
                value = problem.value(other)
                if not float(value @ value) < new:
                    break
                trial, result, new = other, value, float(value @ value)
            if not new < cost and problem.narrow(z, trial):
                low, high = bounds_of(problem.unknowns)
                continue
            if new < cost:
                if cost - new > 0.25 * expected:
                    damping = max(damping * LOWERED, MIN_DAMPING)
                break
            damping = min(max(damping, 1e-6) * RAISED, MAX_DAMPING)
        else:
            break
        if not new < cost:
            break
        moved = float(np.abs(trial - z).max(initial=0.0))
        z, residual, cost = trial, result, new
        watch.keep(z, cost)
        if moved < CLOSE:
            break
    return z, cost, jacobian


def _fall(step: Array, information: Array, gradient: Array) -> float:
    """Return the fall of a linear problem's sum of squares over a step."""
    return -float(2.0 * gradient @ step + step @ information @ step)


def _bounded(
    information: Array, gradient: Array, size: Array, damping: float, z: Array, low: Array, high: Array
) -> Array:
    """Return the damped Gauss-Newton step (n,) within the bounds, by an active set."""
    n = len(z)
    free = np.ones(n, dtype=bool)
    step = np.zeros(n)
    for _ in range(n + 1):
        k = np.flatnonzero(free)
        if not len(k):
            break
        held = np.flatnonzero(~free)
        table = information[np.ix_(k, k)] + np.diag(damping * size[k])
        right = -gradient[k] - information[np.ix_(k, held)] @ step[held]
        root = np.sqrt(size[k])
        result, *_ = np.linalg.lstsq(table / np.outer(root, root), right / root, rcond=1e-15)
        step[k] = result / root
        over = free & ((z + step < low) | (z + step > high))
        if not over.any():
            break
        step[over] = np.clip(z + step, low, high)[over] - z[over]
        free &= ~over
    return np.clip(z + step, low, high) - z


def _show_step(watch: Watch, values: dict[str, float], cost: float, rows: int, moved: float, reachable: float) -> None:
    watch.count += 1
    elapsed = watch.budget.elapsed
    if watch.searching_s is None:  # the first derivatives are there: kernels are compiled
        watch.searching_s = elapsed
    # each iteration of Gauss-Newton gains some two digits of what is left to gain
    more = 1.0 + 0.5 * max(0.0, math.log10(max(reachable, SETTLED) / SETTLED)) / 2.0
    each = (elapsed - watch.searching_s) / (watch.count - 1) if watch.count > 1 else elapsed
    left = min(each * more, watch.budget.left)
    watch.iterated(Iteration(watch.count, cost, math.sqrt(cost / max(rows, 1)), moved, values, elapsed, left))
