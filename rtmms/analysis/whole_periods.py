"""Means over the whole gait periods that fit into the second half of a run."""

from __future__ import annotations

import math

import numpy as np

from rtmms.analysis.abilities import Gaited
from rtmms.spatial import Array


def whole_periods(plant: Gaited, time: Array) -> tuple[float, float]:
    """(start, end) s: the last whole periods of the plant's gait within the second half; that half where none fits."""
    period, half = 2.0 * math.pi / plant.law.omega, float(time[-1] - time[0]) / 2.0
    whole = math.floor(half / period * (1.0 + 1e-9)) * period
    return float(time[-1]) - (whole if whole > 0.0 else half), float(time[-1])


def rise(time: Array, values: Array, start: float, end: float) -> float:
    """Mean rate of a quantity (k,) between two times: its rise by interpolation, over the time."""
    first, last = np.interp([start, end], time, values)
    return float(last - first) / (end - start)
