"""Quadratic programme within a box, of a few unknowns, by a projected Newton method.

    min 1/2 x' H x + g' x,   lower <= x <= upper

Bertsekas, Projected Newton methods for optimization problems with simple constraints, SIAM J. Control Optim. 20 (1982);
as in Tassa, Mansard and Todorov, Control-limited differential dynamic programming, ICRA 2014.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rtmms.base.jit import kernel

MAX_ITERATIONS = 100
"""Iterations of the search."""
MIN_GRADIENT_SHARE = 1e-12
"""Size of the free gradient, as a share of the first one's, at which the search ends."""
ARMIJO_SHARE = 0.1
"""Armijo's share of the decrease."""
ROUNDING = 1e-15
"""Share of a value that rounding may hide."""


@kernel
def factorise(h: Any, which: Any, count: int, out: Any) -> bool:
    """Compute Cholesky's L of some rows and columns of a matrix.

    Parameters
    ----------
    h : Any
        (n, n) symmetric matrix.
    which : Any
        Indices of the rows and columns.
    count : int
        How many of them.
    out : Any
        (count, count) result.

    Returns
    -------
    bool
        False where the part is not positive definite.
    """
    for i in range(count):
        for j in range(i + 1):
            result = h[which[i], which[j]]
            for k in range(j):
                result -= out[i, k] * out[j, k]
            if i == j:
                if not result > 0.0:
                    return False
                out[i, i] = math.sqrt(result)
            else:
                out[i, j] = result / out[j, j]
    return True


@kernel
def substitute(factor: Any, count: int, x: Any) -> None:
    """Compute x <- (L L')^-1 x, of its first `count` numbers.

    Parameters
    ----------
    factor : Any
        L from `factorise`.
    count : int
        Rows of L.
    x : Any
        Changed in place.
    """
    for i in range(count):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]
    for i in range(count - 1, -1, -1):
        for k in range(i + 1, count):
            x[i] -= factor[k, i] * x[k]
        x[i] /= factor[i, i]


@kernel
def _value(h: Any, g: Any, x: Any) -> float:
    result = 0.0
    for i in range(len(g)):
        row = 0.0
        for j in range(len(g)):
            row += h[i, j] * x[j]
        result += x[i] * (0.5 * row + g[i])
    return result


@kernel
def box_step(h: Any, g: Any, cross: Any, lower: Any, upper: Any, x: Any, gain: Any) -> int:
    """Compute the minimum, and its derivative by shifts of the gradient.

    Parameters
    ----------
    h, g, lower, upper : Any
        (n, n) and (n,), of the programme.
    cross : Any
        (n, k): the gradient is g + cross z.
    x : Any
        (n,) a first guess; the minimum, written.
    gain : Any
        (n, k) dx / dz, written: zero in the rows of unknowns that the gradient pushes against a bound.

    Returns
    -------
    int
        Iterations; -1 where H is not positive definite in the free unknowns.
    """
    n = len(g)
    factor, gradient, step, tried = np.zeros((n, n)), np.empty(n), np.empty(n), np.empty(n)
    which = np.empty(n, dtype=np.int64)
    least, count = 0.0, 0
    for i in range(n):
        x[i] = min(max(x[i], lower[i]), upper[i])
    value = _value(h, g, x)
    iterations = 0
    for iterations in range(1, MAX_ITERATIONS + 1):
        count = 0
        for i in range(n):
            gradient[i] = g[i]
            for j in range(n):
                gradient[i] += h[i, j] * x[j]
            if not ((x[i] <= lower[i] and gradient[i] > 0.0) or (x[i] >= upper[i] and gradient[i] < 0.0)):
                which[count] = i
                count += 1
        if not factorise(h, which, count, factor):
            return -1
        size = 0.0
        for i in range(count):
            step[i] = -gradient[which[i]]
            size = max(size, abs(step[i]))
        if iterations == 1:
            least = MIN_GRADIENT_SHARE * size
        if count == 0 or size <= least:
            break
        substitute(factor, count, step)
        slope = 0.0
        for i in range(count):
            slope += gradient[which[i]] * step[i]
        length, better, passed = 1.0, value, False
        while length > 1e-10:
            for i in range(n):
                tried[i] = x[i]
            for i in range(count):
                j = which[i]
                tried[j] = min(max(x[j] + length * step[i], lower[j]), upper[j])
            better = _value(h, g, tried)
            if better <= value + ARMIJO_SHARE * length * slope + ROUNDING * abs(value):
                passed = True
                break
            length *= 0.6
        if not passed:  # nothing is left but rounding
            break
        for i in range(n):
            x[i] = tried[i]
        value = better
    for k in range(cross.shape[1]):
        for i in range(n):
            gain[i, k] = 0.0
        for i in range(count):
            step[i] = -cross[which[i], k]
        substitute(factor, count, step)
        for i in range(count):
            gain[which[i], k] = step[i]
    return iterations
