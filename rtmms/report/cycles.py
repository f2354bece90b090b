"""Periods and fundamentals of sampled signals: what of a flapping motion repeats, and how large and how late it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


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
