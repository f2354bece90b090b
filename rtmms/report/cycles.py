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
    """The last whole period of a signal: from its up-crossing of the mean at `start` to the next at `end`, s."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


def up_crossings(time: Array, signal: Array) -> Array:
    """(c,) s, where the signal rises through its mean; empty when it does not move."""
    if len(time) < 3 or np.ptp(signal) < 1e-6:
        return np.empty(0)
    a = signal - signal.mean()
    up = np.flatnonzero((a[:-1] < 0.0) & (a[1:] >= 0.0))
    crossings: Array = time[up] - a[up] * (time[up + 1] - time[up]) / (a[up + 1] - a[up])
    return crossings


def last_period(time: Array, signal: Array) -> Period | None:
    """The last whole period, or None where there are fewer than two up-crossings."""
    crossings = up_crossings(time, signal)
    return Period(float(crossings[-2]), float(crossings[-1])) if len(crossings) > 1 else None


def fundamental(time: Array, signal: Array, frequency: float) -> tuple[Array, Array]:
    """Amplitude and phase of the fundamental over whole periods.

    time    (k,) s, of one or more whole periods, evenly spaced or not; signal (k, ...)
    Returns (amplitude, phase rad), each of signal's shape but the first axis: amplitude sin(w t + phase) fits the
    signal best beside a constant and the second and third harmonic.
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
    """(k - 1,) deg in (-180, 180]: by how much each signal trails the one before it; phase (k,) rad."""
    lag: Array = np.degrees(phase[:-1] - phase[1:])
    return 180.0 - (180.0 - lag) % 360.0


def at(time: Array, values: Array, instant: float) -> Array:
    """values (k, ...) at an instant within time, linear between samples."""
    after = int(np.clip(np.searchsorted(time, instant), 1, len(time) - 1))
    share = (instant - time[after - 1]) / (time[after] - time[after - 1])
    between: Array = values[after - 1] + share * (values[after] - values[after - 1])
    return between


def peak(values: Array) -> tuple[float, float]:
    """(share of the period in [0, 1), value) of the largest of (k,) samples evenly spaced over one period.

    By the parabola through it and its neighbours: of k samples of a smooth signal its place is right to about the
    square of a sample's share of the narrowest bump, a hundredth of a sample for bumps of twenty samples.
    """
    k = int(np.argmax(values))
    before, top, after = (float(values[(k + shift) % len(values)]) for shift in (-1, 0, 1))
    bend = before - 2.0 * top + after
    shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    return (k + shift) / len(values) % 1.0, top - 0.25 * (before - after) * shift


# What a run came to in each period of its motion: way made good, power, cost of transport.


SLOW = 0.1
"""Of the fastest period's speed: below that a cost of transport means little."""


@dataclass(frozen=True)
class PeriodMeans:
    """Of the k whole periods that end with the run.

    middle   (k,) s;  speed (k,) m/s, of the way from a period's start to its end, None without a position
    power    (k,) W, None without work and power
    cost     (k,) of transport, nan where the robot hardly moves; None where the plant has none
    """

    middle: Array
    speed: Array | None
    power: Array | None
    cost: Array | None


def period_means(time: Array, kept: Mapping[str, Array], period: float, found: Mapping[str, Any]) -> PeriodMeans | None:
    """None for a run shorter than one period.

    time, kept   samples of the run: position (k, 3), work (k,) or power (k,)
    found        the plant's summary: the weight is what its mean speed, mean power and cost of transport have it
    """
    count = int((time[-1] - time[0]) / period + 1e-6) if len(time) > 1 else 0
    if not count:
        return None
    edges = time[-1] - period * np.arange(count, -1, -1)
    speed = power = cost = None
    if "position" in kept:
        at = np.stack([np.interp(edges, time, axis) for axis in kept["position"].T], axis=1)
        speed = np.linalg.norm(np.diff(at, axis=0), axis=1) / period
    if "work" in kept:
        power = np.diff(np.interp(edges, time, kept["work"].ravel())) / period
    elif "power" in kept:
        values = kept["power"].reshape(len(time), -1).sum(axis=1)
        area = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(time))])
        power = np.diff(np.interp(edges, time, area)) / period
    weight = _weight(found)
    if speed is not None and power is not None and weight is not None:
        moving = speed > SLOW * speed.max()
        cost = np.full(count, np.nan)
        cost[moving] = power[moving] / (weight * speed[moving])
    return PeriodMeans(0.5 * (edges[1:] + edges[:-1]), speed, power, cost)


def _weight(found: Mapping[str, Any]) -> float | None:
    """N: cost of transport = power / (weight speed)."""
    speed, power, cost = (found.get(name) for name in ("mean_speed_m_s", "mean_power_w", "cost_of_transport"))
    return power / (cost * speed) if speed and power and cost and cost * speed > 0.0 else None


# Attitudes over time as angles that a person can read.


def attitude_angles(q: Array) -> Array:
    """(k, 3) rad: roll about x, pitch about y, yaw about z, in the order yaw, pitch, roll; q (k, 4), w first.

    Roll and yaw do not jump: they go on beyond half a turn.
    """
    w, x, y, z = q.T
    roll = np.unwrap(np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.unwrap(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
    return np.stack([roll, pitch, yaw], axis=1)
