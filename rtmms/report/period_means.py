"""What a run came to in each period of its motion: way made good, power, cost of transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SLOW = 0.1
"""Of the fastest period's speed: below that a cost of transport says little."""


@dataclass(frozen=True)
class PeriodMeans:
    """Of the k whole periods that end with the run.

    middle   (k,) s;  speed (k,) m/s, of the way from a period's start to its end, None without a position
    power    (k,) W, None without work and power
    cost     (k,) of transport, nan where the robot hardly moves; None where the plant tells none
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
