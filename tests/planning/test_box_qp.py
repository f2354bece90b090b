"""Quadratic programmes in a box: against all sets of bounds, one by one; optimality; the gain of what is free."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rtmms.planning.box_qp import box_step


def programme(seed: int, n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    lower = -rng.uniform(0.0, 1.0, n)
    return root @ root.T + 0.1 * np.eye(n), 2.0 * rng.normal(size=n), rng.normal(size=(n, 3)), lower, lower + 1.0


def by_enumeration(h: np.ndarray, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The best of the feasible minima over all choices of low, high and free."""
    best, result = np.inf, lower
    for choice in itertools.product((0, 1, 2), repeat=len(g)):
        x = np.where(np.array(choice) == 0, lower, upper)
        free = np.array(choice) == 2
        if free.any():
            x[free] = np.linalg.solve(h[np.ix_(free, free)], -(g[free] + h[np.ix_(free, ~free)] @ x[~free]))
        if (x >= lower - 1e-12).all() and (x <= upper + 1e-12).all():
            value = 0.5 * x @ h @ x + g @ x
            if value < best:
                best, result = value, x
    return result


@pytest.mark.parametrize("seed", range(40))
def test_the_minimum_its_conditions_and_its_gain(seed: int) -> None:
    n = 1 + seed % 4
    h, g, cross, lower, upper = programme(seed, n)
    x, gain = np.zeros(n), np.full((n, 3), np.nan)
    assert box_step(h, g, cross, lower, upper, x, gain) > 0
    np.testing.assert_allclose(x, by_enumeration(h, g, lower, upper), atol=1e-8)
    slope = h @ x + g
    low, high = x <= lower, x >= upper
    assert (slope[low] >= -1e-9).all()
    assert (slope[high] <= 1e-9).all()
    np.testing.assert_allclose(slope[~low & ~high], 0.0, atol=1e-8)
    # the gain is the slope of the minimum by what shifts the gradient
    by = 1e-7
    for k in range(3):
        ends = []
        for sign in (1.0, -1.0):
            moved = x.copy()
            box_step(h, g + sign * by * cross[:, k], cross, lower, upper, moved, np.empty((n, 3)))
            ends.append(moved)
        np.testing.assert_allclose(gain[:, k], (ends[0] - ends[1]) / (2.0 * by), atol=1e-5)


def test_what_is_not_convex_is_reported() -> None:
    h, x = np.diag([1.0, -1.0]), np.zeros(2)
    assert box_step(h, np.zeros(2), np.zeros((2, 1)), -np.ones(2), np.ones(2), x, np.zeros((2, 1))) == -1
