"""Gauss-Newton with bounds: damped steps (Levenberg-Marquardt), what a watcher sees of them, and when they end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.base.budget import Budget

Array = npt.NDArray[np.float64]

FIRST_DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-4, 1e-12, 1e10
"""Of Levenberg and Marquardt: a share of the diagonal of J' J."""
RAISED, LOWERED = 6.0, 0.15
ITERATIONS = 40
CORRECTIONS = 3
"""Of a step, by what the linear model missed at its end."""
UNSOUND = 1e7
"""Deviations from which on a residual is of a model that fails."""
TRIALS = 12
"""Steps that one iteration tries before it gives up."""
SETTLED = 1e-2
"""Expected fall of the sum of squares, in squared deviations, below which one step more ends the search: that step is a
tenth of a standard error, and what is left after it far less."""
LONGEST = 3.0
"""Step of an unknown at most, in what counts as one of it, or in what it has grown to."""
ROUGH = 1e-3
"""The same as a share of the sum of squares, where weights are found anew afterwards."""
CLOSE = 1e-10
"""Step of each unknown, in what counts as one of it, below which nothing changes any more."""


@dataclass(frozen=True)
class Iteration:
    """What a person sees of the search.

    Attributes
    ----------
    number : int
        Iterations so far.
    cost : float
        Sum of squares, in squared deviations.
    rms : float
        Of the residuals, in deviations.
    step : float
        Largest change of an unknown, in what counts as one of it.
    values : dict
        Of what was asked for.
    elapsed_s, left_s : float
        Wall time, and an estimate of what is left.
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
    show : callable
        Takes a short text, often.
    iterated : callable
        Takes each Iteration.
    budget : Budget
        Wall time.
    searching_s : float or None
        Wall time at the first iteration.
    best : (unknowns,) array or None
        Values of the least sum of squares so far in the present round.
    slope : (m, unknowns) array or None
        The last derivatives in the present round.
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
        """Report a text; OutOfTimeError where the wall time is over."""
        self.budget.refuse_late()
        self.show(text)

    def begin(self) -> None:
        """Other weights hold from now on: sums of squares from before compare no more."""
        self.best_cost, self.slope = math.inf, None

    def keep(self, z: Array, cost: float) -> None:
        """Remember the best values."""
        if cost < self.best_cost:
            self.best, self.best_cost = z.copy(), cost


class Problem(Protocol):
    """Residuals of unknowns z (n,)."""

    @property
    def unknowns(self) -> Sequence[Any]: ...

    def value(self, z: Array) -> Array:
        """(m,)"""

    def slope(self, z: Array) -> Array:
        """(m, n)"""

    def narrow(self, z: Array, beyond: Array) -> bool:
        """Bound what cannot be as in `beyond`; whether a bound is new."""


def bounds_of(unknowns: Sequence[Any]) -> tuple[Array, Array]:
    """(n,) lower and upper bounds, in what counts as one of each unknown."""
    return (
        np.array([one.low / one.scale for one in unknowns]), np.array([one.high / one.scale for one in unknowns])
    )  # fmt: skip


def descend(
    problem: Problem, z: Array, watch: Watch, *, rough: bool, values_of: Callable[[Array], dict[str, float]],
    slope: Array | None = None,
) -> tuple[Array, float, Array]:  # fmt: skip
    """Go down from z to the least sum of squares within the bounds.

    Parameters
    ----------
    problem
        Residuals and their slopes.
    z : (n,) array
        Where the search begins.
    watch
        Receives each iteration.
    rough
        The weights are found anew afterwards: the values need not settle.
    values_of
        What a person is shown of z.
    slope : (m, n) array, optional
        At z, where it is known.

    Returns
    -------
    z, cost, slope
        The slope is of the last iteration's beginning, less than a step from z.
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
            found = problem.value(np.clip(z + step, low, high))
            if float(found @ found) < cost:
                z, cost = np.clip(z + step, low, high), float(found @ found)
                watch.keep(z, cost)
            break
        for _ in range(TRIALS):
            reach = LONGEST * np.maximum(1.0, np.abs(z))
            ends = np.maximum(low, z - reach), np.minimum(high, z + reach)
            step = _bounded(information, gradient, size, damping, z, *ends)
            trial = np.clip(z + step, low, high)
            found = problem.value(trial)
            new = float(found @ found)
            expected = _fall(trial - z, information, gradient)
            for _ in range(CORRECTIONS):
                if cost - new > 0.5 * expected or not np.abs(found).max(initial=0.0) < UNSOUND:
                    break
                # along a curved valley: what the linear model missed at the trial, taken to be the same nearby
                missed = found - residual - jacobian @ (trial - z)
                bent = _bounded(information, jacobian.T @ (residual + missed), size, damping, z, *ends)
                other = np.clip(z + bent, low, high)
                value = problem.value(other)
                if not float(value @ value) < new:
                    break
                trial, found, new = other, value, float(value @ value)
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
        z, residual, cost = trial, found, new
        watch.keep(z, cost)
        if moved < CLOSE:
            break
    return z, cost, jacobian


def _fall(step: Array, information: Array, gradient: Array) -> float:
    """By how much a linear problem's sum of squares falls over a step."""
    return -float(2.0 * gradient @ step + step @ information @ step)


def _bounded(
    information: Array, gradient: Array, size: Array, damping: float, z: Array, low: Array, high: Array
) -> Array:
    """(n,) the damped Gauss-Newton step within the bounds, by an active set."""
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
        found, *_ = np.linalg.lstsq(table / np.outer(root, root), right / root, rcond=1e-15)
        step[k] = found / root
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
