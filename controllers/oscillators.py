"""Coupled phase oscillators with smooth parameters: a central pattern generator after Ijspeert.

    theta_i' = 2 pi nu + K sum_j sin(theta_j - theta_i - phi_ij)        phase
    angle_i  = x_i + r_i sin(theta_i)

r (amplitude), x (bias), phi (lag) and nu (frequency) follow their targets by p''' = w^3 (P - p) - 3 w^2 p' - 3 w p''.
This is one order more than the paper's critically damped filters, whose second derivative jumps with P. Here p'' does
not, so that the angle's acceleration is continuous through any change of any parameter.

A. J. Ijspeert, A. Crespi, D. Ryczko, J.-M. Cabelguen: From swimming to walking with a salamander robot driven by a
spinal cord model. Science 315 (2007), 1416-1420. The phases here pull each other also where an amplitude is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, exp, pi, sin


class Follower:
    """Parameter that follows its target with three equal poles, exactly for any step.

    Parameters
    ----------
    value : float
        Initial value and target.
    rate_1_s : float
        w, 1/s.
    """

    __slots__ = ("rate_1_s", "target", "v", "v1", "v2")

    def __init__(self, value: float, rate_1_s: float) -> None:
        self.rate_1_s, self.target = rate_1_s, value
        self.v, self.v1, self.v2 = value, 0.0, 0.0

    def advance(self, dt: float) -> float:
        """Advance by a step.

        Parameters
        ----------
        dt : float
            Time step, s.

        Returns
        -------
        float
            The value dt later.
        """
        e = self.v - self.target
        if e == 0.0 and self.v1 == 0.0 and self.v2 == 0.0:
            return self.v
        w = self.rate_1_s
        # e(t) = exp(-w t) (c0 + c1 t + c2 t^2)
        c1 = self.v1 + w * e
        c2 = 0.5 * (self.v2 + 2.0 * w * self.v1 + w * w * e)
        fade = exp(-w * dt)
        value, slope = e + dt * (c1 + dt * c2), c1 + 2.0 * c2 * dt
        self.v = self.target + fade * value
        self.v1 = fade * (slope - w * value)
        self.v2 = fade * (2.0 * c2 - 2.0 * w * slope + w * w * value)
        return self.v


class Oscillators:
    """Oscillators of one frequency, each pulled to a lag behind its neighbours.

    Parameters
    ----------
    n : int
        Number of oscillators.
    pairs : Sequence[tuple[int, int]]
        (i, j): oscillators i and j pull each other.
    lags : Sequence[float]
        Lags, rad; the lag of pair k is theta_i - theta_j where they are locked.
    rate_1_s : float
        w of all parameters but the bias, 1/s.
    bias_rate_1_s : float
        w of the bias, 1/s.
    coupling_1_s : float
        K, 1/s.

    Examples
    --------
    >>> from rtmms_controllers.oscillators import Oscillators
    >>> pair = Oscillators(2, [(0, 1)], [0.5], 10.0, 10.0, 5.0)
    >>> round(pair.theta[0] - pair.theta[1], 3)
    0.5
    """

    def __init__(
        self, n: int, pairs: Sequence[tuple[int, int]], lags: Sequence[float], rate_1_s: float, bias_rate_1_s: float,
        coupling_1_s: float,
    ) -> None:  # fmt: skip
        self.n, self.pairs, self.coupling_1_s = n, tuple(pairs), coupling_1_s
        self.amplitude = [Follower(0.0, rate_1_s) for _ in range(n)]
        self.bias = [Follower(0.0, bias_rate_1_s) for _ in range(n)]
        self.lag = [Follower(lag, rate_1_s) for lag in lags]
        self.frequency_hz = Follower(0.0, rate_1_s)
        self.theta = [0.0] * n
        self._lock()

    def _lock(self) -> None:
        """Set the phases to the lags."""
        for (i, j), lag in zip(self.pairs, self.lag, strict=True):
            self.theta[i] = self.theta[j] + lag.v

    def begin(self, lags: Sequence[float], frequency_hz: float) -> None:
        """Start a run: amplitudes and biases 0, phases locked at these lags.

        Parameters
        ----------
        lags : Sequence[float]
            Lags, rad, of each pair.
        frequency_hz : float
            Frequency, Hz.
        """
        for item in (*self.amplitude, *self.bias):
            item.v = item.v1 = item.v2 = 0.0
        for item, value in zip((*self.lag, self.frequency_hz), (*lags, frequency_hz), strict=True):
            item.target = item.v = value
            item.v1 = item.v2 = 0.0
        self.theta = [0.0] * self.n
        self._lock()

    def advance(self, dt: float) -> None:
        """Advance all by a step; phases by Heun's method.

        Parameters
        ----------
        dt : float
            Time step, s.
        """
        if dt <= 0.0:
            return
        before = self._rates(self.theta)
        for item in (*self.amplitude, *self.bias, *self.lag):
            item.advance(dt)
        self.frequency_hz.advance(dt)
        ahead = self._rates([theta + dt * rate for theta, rate in zip(self.theta, before, strict=True)])
        self.theta = [t + 0.5 * dt * (a + b) for t, a, b in zip(self.theta, before, ahead, strict=True)]
        if self.theta[0] > 1e4:  # far from rounding; all by whole turns, which changes nothing
            self.theta = [t - 1000.0 * 2.0 * pi for t in self.theta]

    def angles(self) -> list[float]:
        """Return x_i + r_i sin(theta_i).

        Returns
        -------
        list[float]
            rad.
        """
        return [
            x.v + r.v * sin(theta) for x, r, theta in zip(self.bias, self.amplitude, self.theta, strict=True)
        ]  # fmt: skip

    def _rates(self, theta: list[float]) -> list[float]:
        rates = [2.0 * pi * self.frequency_hz.v] * self.n
        for (i, j), lag in zip(self.pairs, self.lag, strict=True):
            pull = self.coupling_1_s * sin(theta[j] - theta[i] + lag.v)
            rates[i] += pull
            rates[j] -= pull
        return rates

    def settled_rates(self) -> list[float]:
        """Return the present rate of each angle, for tests and for estimates of loads.

        Returns
        -------
        list[float]
            rad/s.
        """
        return [
            x.v1 + r.v1 * sin(t) + r.v * cos(t) * w
            for x, r, t, w in zip(self.bias, self.amplitude, self.theta, self._rates(self.theta), strict=True)
        ]  # fmt: skip
