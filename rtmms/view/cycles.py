"""Periods, fundamentals and attitudes of sampled signals, and means over each period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


# Periods and fundamentals of sampled signals: what of a flapping motion repeats, and how large and how late it is.


@dataclass(frozen=True, slots=True)
class Period:
    """Last whole period of a signal, between two up-crossings of its mean.

    Parameters
    ----------
    start : float
        Time of the first up-crossing, s.
    end : float
        Time of the next one, s.
    """

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Length of the period in s."""
        return self.end - self.start


def up_crossings(time: Array, signal: Array) -> Array:
    """Return the times at which a signal rises through its mean.

    Parameters
    ----------
    time : Array
        Times of the samples, shape (k,), s.
    signal : Array
        The signal, shape (k,).

    Returns
    -------
    Array
        Shape (c,), s, linear between samples; empty when the signal does not move.

    Examples
    --------
    >>> time = np.linspace(0.0, 2.0, 200, endpoint=False)
    >>> [round(float(t), 3) for t in up_crossings(time, -np.cos(2.0 * np.pi * time))]
    [0.25, 1.25]
    """
    if len(time) < 3 or np.ptp(signal) < 1e-6:
        return np.empty(0)
    a = signal - signal.mean()
    up = np.flatnonzero((a[:-1] < 0.0) & (a[1:] >= 0.0))
    crossings: Array = time[up] - a[up] * (time[up + 1] - time[up]) / (a[up + 1] - a[up])
    return crossings


def last_period(time: Array, signal: Array) -> Period | None:
    """Return the last whole period of a signal.

    Parameters
    ----------
    time : Array
        Times of the samples, shape (k,), s.
    signal : Array
        The signal, shape (k,).

    Returns
    -------
    Period | None
        The period, or None where there are fewer than two up-crossings.
    """
    crossings = up_crossings(time, signal)
    return Period(float(crossings[-2]), float(crossings[-1])) if len(crossings) > 1 else None


def fundamental(time: Array, signal: Array, frequency: float) -> tuple[Array, Array]:
    """Compute amplitude and phase of the fundamental over whole periods.

    Parameters
    ----------
    time : Array
        Times of the samples, shape (k,), s, over one or more whole periods, evenly spaced or not.
    signal : Array
        The signals, shape (k, ...).
    frequency : float
        Frequency of the fundamental in Hz.

    Returns
    -------
    tuple[Array, Array]
        Amplitude and phase in rad, each of the signal's shape without its first axis.

    Notes
    -----
    `amplitude sin(w t + phase)`, a constant, and the second and third harmonic together fit the signal best, in the
    sense of least squares.
    """
    angle = 2.0 * np.pi * frequency * time
    basis = [np.ones_like(angle)]
    for harmonic in (1, 2, 3):
        basis += [np.sin(harmonic * angle), np.cos(harmonic * angle)]
    flat = signal.reshape(len(time), -1)
    fit = np.linalg.lstsq(np.stack(basis, axis=1), flat, rcond=None)[0]
    shape = signal.shape[1:]
    return np.hypot(fit[1], fit[2]).reshape(shape), np.arctan2(fit[2], fit[1]).reshape(shape)


def lags_deg(phase: Array) -> Array:
    """Compute by how much each signal trails the one before it.

    Parameters
    ----------
    phase : Array
        Phases of the k signals, shape (k,), rad.

    Returns
    -------
    Array
        Lags, shape (k - 1,), deg in (-180, 180].

    Examples
    --------
    >>> lags_deg(np.array([0.0, -0.5 * np.pi])).tolist()
    [90.0]
    """
    lag: Array = np.degrees(phase[:-1] - phase[1:])
    return 180.0 - (180.0 - lag) % 360.0


def at(time: Array, values: Array, instant: float) -> Array:
    """Interpolate samples linearly at an instant.

    Parameters
    ----------
    time : Array
        Times of the samples, shape (k,), s.
    values : Array
        The samples, shape (k, ...).
    instant : float
        Time within those of the samples, s.

    Returns
    -------
    Array
        The value, of the samples' shape without the first axis.
    """
    after = int(np.clip(np.searchsorted(time, instant), 1, len(time) - 1))
    share = (instant - time[after - 1]) / (time[after] - time[after - 1])
    between: Array = values[after - 1] + share * (values[after] - values[after - 1])
    return between


def peak(values: Array) -> tuple[float, float]:
    """Find the peak of samples evenly spaced over one period.

    Parameters
    ----------
    values : Array
        The samples, shape (k,).

    Returns
    -------
    tuple[float, float]
        Position as a share of the period in [0, 1), and value of the peak.

    Notes
    -----
    A parabola goes through the largest sample and its two neighbours. For a smooth signal, the error of the position is
    about the square of a sample's share of the narrowest bump. For bumps of twenty samples it is a hundredth of a
    sample.
    """
    k = int(np.argmax(values))
    before, top, after = (float(values[(k + shift) % len(values)]) for shift in (-1, 0, 1))
    bend = before - 2.0 * top + after
    shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    return (k + shift) / len(values) % 1.0, top - 0.25 * (before - after) * shift


# What a run came to in each period of its motion: way made good, power, cost of transport.


SLOW = 0.1
"""Share of the fastest period's speed below which a cost of transport has little meaning."""


@dataclass(frozen=True)
class PeriodMeans:
    """Means over each of the k whole periods that end with the run.

    Parameters
    ----------
    middle : Array
        Middle of each period, shape (k,), s.
    speed : Array | None
        Distance from a period's start to its end, over its length, shape (k,), m/s; None without a position.
    power : Array | None
        Mean power, shape (k,), W; None without work and power.
    cost : Array | None
        Cost of transport, shape (k,); nan where the robot hardly moves, None where the plant has none.
    """

    middle: Array
    speed: Array | None
    power: Array | None
    cost: Array | None


def period_means(
    time: Array, stored: Mapping[str, Array], period: float, summary: Mapping[str, Any]
) -> PeriodMeans | None:
    """Compute the means over each whole period of a run.

    Parameters
    ----------
    time : Array
        Times of the samples, shape (n,), s.
    stored : Mapping[str, Array]
        Samples by output, of which `position` (n, 3), `work` (n,) and `power` (n,) are read.
    period : float
        Length of a period in s.
    summary : Mapping[str, Any]
        The plant's summary. Its mean speed, mean power and cost of transport give the weight.

    Returns
    -------
    PeriodMeans | None
        The means, or None for a run shorter than one period.
    """
    count = int((time[-1] - time[0]) / period + 1e-6) if len(time) > 1 else 0
    if not count:
        return None
    edges = time[-1] - period * np.arange(count, -1, -1)
    speed = power = cost = None
    if "position" in stored:
        at = np.stack([np.interp(edges, time, axis) for axis in stored["position"].T], axis=1)
        speed = np.linalg.norm(np.diff(at, axis=0), axis=1) / period
    if "work" in stored:
        power = np.diff(np.interp(edges, time, stored["work"].ravel())) / period
    elif "power" in stored:
        values = stored["power"].reshape(len(time), -1).sum(axis=1)
        area = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(time))])
        power = np.diff(np.interp(edges, time, area)) / period
    weight = _weight(summary)
    if speed is not None and power is not None and weight is not None:
        moving = speed > SLOW * speed.max()
        cost = np.full(count, np.nan)
        cost[moving] = power[moving] / (weight * speed[moving])
    return PeriodMeans(0.5 * (edges[1:] + edges[:-1]), speed, power, cost)


def _weight(summary: Mapping[str, Any]) -> float | None:
    """Return the weight in N, because the cost of transport is power / (weight speed); None without a summary."""
    speed, power, cost = (summary.get(name) for name in ("mean_speed_m_s", "mean_power_w", "cost_of_transport"))
    return power / (cost * speed) if speed and power and cost and cost * speed > 0.0 else None


# Attitudes over time as angles that a person can read.


def attitude_angles(q: Array) -> Array:
    """Convert quaternions over time to roll, pitch and yaw.

    Parameters
    ----------
    q : Array
        Quaternions (w, x, y, z), shape (k, 4).

    Returns
    -------
    Array
        Roll about x, pitch about y and yaw about z, shape (k, 3), rad, applied in the order yaw, pitch, roll. Roll and
        yaw do not jump: they continue beyond half a turn.
    """
    w, x, y, z = q.T
    roll = np.unwrap(np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.unwrap(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
    return np.stack([roll, pitch, yaw], axis=1)
