"""How wrong a reading is: scale and misalignment, turn-on error, a drift that wanders, white noise, range, quantum.

The drift is a Gauss-Markov process of first order, x' = -x / tau + noise, sampled exactly: x_k+1 = phi x_k +
sigma sqrt(1 - phi^2) n_k with phi = exp(-1 / (rate tau)). Its Allan variance is known in closed form (IEEE Std 952,
annex C), and so is that of white noise of density N: N^2 / t.
"""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.sensing.chance import normal
from rtmms.sensing.layout import (
    B_DRIFT,
    B_DRIFTS,
    B_KEEP,
    B_MATRIX,
    B_OFFSET,
    B_RANGE,
    B_SIZE,
    B_STEP,
    B_TURN_ON,
    B_TURNED,
    B_WHITE,
)

DRAWS = 1 << 8
"""Streams of a block: of values k white noise 3 k, drift 3 k + 1, turn-on error 3 k + 2."""


@kernel
def switch_on(block: Array, stream: int, seed: int, state: Array) -> None:
    """Turn-on error and the drift's first value."""
    drifts, turned = int(block[B_DRIFTS]), int(block[B_TURNED])
    for k in range(int(block[B_SIZE])):
        own = stream * DRAWS + 3 * k
        state[drifts + k] = block[B_DRIFT] * normal(seed, own + 1, 0)
        state[turned + k] = block[B_TURN_ON] * normal(seed, own + 2, 0)


@kernel
def disturb(block: Array, stream: int, seed: int, count: int, state: Array, value: Array) -> None:
    """A perfect reading becomes what the instrument says; the drift goes on by one sample.  count  from 1 on"""
    size = int(block[B_SIZE])
    if size == 3:
        x, y, z = value[0], value[1], value[2]
        for k in range(3):
            at = B_MATRIX + 3 * k
            value[k] = block[at] * x + block[at + 1] * y + block[at + 2] * z + block[B_OFFSET + k]
    else:
        for k in range(size):
            value[k] = block[B_MATRIX] * value[k] + block[B_OFFSET]
    drifts, turned = int(block[B_DRIFTS]), int(block[B_TURNED])
    keep, limit, step = block[B_KEEP], block[B_RANGE], block[B_STEP]
    fresh = block[B_DRIFT] * np.sqrt(1.0 - keep * keep)
    for k in range(size):
        own = stream * DRAWS + 3 * k
        if block[B_DRIFT] > 0.0:
            state[drifts + k] = keep * state[drifts + k] + fresh * normal(seed, own + 1, count)
        told = value[k] + state[turned + k] + state[drifts + k]
        if block[B_WHITE] > 0.0:
            told += block[B_WHITE] * normal(seed, own, count)
        if limit > 0.0:
            told = min(max(told, -limit), limit)
        if step > 0.0:
            told = step * np.rint(told / step)
        value[k] = told


def drift_allan_variance(time: float, deviation: float, tau: float) -> float:
    """Of a Gauss-Markov process of this standard deviation, averaged over `time`."""
    x = time / tau
    return float(2.0 * deviation**2 / x * (1.0 - (3.0 - 4.0 * np.exp(-x) + np.exp(-2.0 * x)) / (2.0 * x)))


def drift_of(density: float, instability: float, tau: float) -> float:
    """Standard deviation of the drift that, with white noise of this density, has its lowest Allan deviation there.

    instability is what a data sheet calls in-run bias stability. 0 where white noise alone is above it up to 3 tau."""
    from scipy.optimize import brentq

    times = tau * np.geomspace(1e-3, 3.0, 400)

    def lowest(deviation: float) -> float:
        total = density**2 / times + np.array([drift_allan_variance(t, deviation, tau) for t in times])
        return float(np.sqrt(total.min())) - instability

    if instability <= 0.0 or lowest(0.0) >= 0.0:
        return 0.0
    found = brentq(lowest, 0.0, 100.0 * instability, xtol=1e-12 * instability, rtol=1e-12)  # type: ignore[no-untyped-call]
    return float(found)
