"""Gait parameters of two fins with two rods each: targets of frequency, amplitudes, leads, incidences and biases.

With the targets u:

    x' = (u - x) / tau           each word follows its target
    theta' = 2 pi f
    front = b + i + A1 sin(theta + lead),   sin A1 = r sin A
    back  = b - i + A sin theta
"""

from __future__ import annotations

import math
from math import radians
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.jit import kernel
from rtmms.planning.planner import shifted_rows

Array = npt.NDArray[np.float64]

NAMES = (
    "frequency_hz", "left.amplitude", "right.amplitude", "left.lead", "right.lead", "left.incidence",
    "right.incidence", "left.bias", "right.bias",
)  # fmt: skip
FOLLOWS_1_S = 8.0
_D = math.pi / 180.0
SCALE = (0.0, 8 * _D, 8 * _D, 20 * _D, 20 * _D, 6 * _D, 6 * _D, 5 * _D, 5 * _D)
LOWER = (0.1, 0.0, 0.0, -90 * _D, -90 * _D, -20 * _D, -20 * _D, -30 * _D, -30 * _D)
UPPER = (2.0, 50 * _D, 50 * _D, 110 * _D, 110 * _D, 20 * _D, 20 * _D, 30 * _D, 30 * _D)


@kernel
def stroke_commands(
    plans: Any, start: Any, since: float, span: float, steps: int, dt: float, ratio: float, limit: float, out: Any,
    end: Any,
) -> None:  # fmt: skip
    """Compute the commands of plans.

    Parameters
    ----------
    plans : Any
        (p, rows, 9) plans.
    start : Any
        (10,) phase, then the variables.
    since : float
        Time that the plans have been in use, s.
    span : float
        Time between rows, s.
    steps : int
        Number of steps.
    dt : float
        Step, s.
    ratio : float
        Length of the back rod over that of the front rod.
    limit : float
        Limit, rad, of each rod.
    out : Any
        (p, steps, 4) result, rad.
    end : Any
        (10,) result: phase and variables at the end of the first plan's.
    """
    rows = plans.shape[1]
    share = 1.0 - math.exp(-FOLLOWS_1_S * dt)
    now = np.empty(10)
    for p in range(len(plans)):
        for k in range(10):
            now[k] = start[k]
        for step in range(steps):
            at = (since + (step + 1) * dt) / span if rows > 1 else 0.0
            row = min(int(at), rows - 1)
            part = min(at - row, 1.0) if row < rows - 1 else 0.0
            following = min(row + 1, rows - 1)
            before = now[1]
            for k in range(9):
                target = plans[p, row, k] + part * (plans[p, following, k] - plans[p, row, k])
                now[1 + k] += share * (target - now[1 + k])
            now[0] += math.pi * dt * (before + now[1])
            for side in range(2):
                amplitude, lead = max(now[2 + side], 0.0), now[4 + side]
                incidence, bias = now[6 + side], now[8 + side]
                front = math.asin(min(1.0, ratio * math.sin(amplitude)))
                a = bias + incidence + front * math.sin(now[0] + lead)
                b = bias - incidence + amplitude * math.sin(now[0])
                out[p, step, 2 * side] = min(max(a, -limit), limit)
                out[p, step, 2 * side + 1] = min(max(b, -limit), limit)
        if p == 0:
            for k in range(10):
                end[k] = now[k]


class Strokes:
    """Words (rtmms.planning.planner) of the rods left.front, left.back, right.front, right.back.

    Parameters
    ----------
    ratio : float
        Length of the back rod over that of the front rod.
    limit : float
        Limit, rad, of each rod.
    frequency_hz : float
        Frequency of the beat, fixed.
    rows : int
        Targets in a horizon, evenly spaced.
    horizon_s : float
        Horizon, s.
    amplitude : float, default radians(30.0)
        Amplitude, rad, at home.
    lead : float, default radians(50.0)
        Lead of the front rods, rad, at home.
    """

    names = NAMES

    def __init__(
        self, ratio: float, limit: float, frequency_hz: float, rows: int, horizon_s: float,
        amplitude: float = radians(30.0), lead: float = radians(50.0),
    ) -> None:  # fmt: skip
        self.ratio, self.limit, self.span = ratio, limit, horizon_s / max(1, rows - 1)
        home = np.array([frequency_hz, amplitude, amplitude, lead, lead, 0.0, 0.0, 0.0, 0.0])
        self.home = np.tile(home, (rows, 1))
        self.scale, self.lower, self.upper = np.array(SCALE), np.array(LOWER), np.array(UPPER)
        self.lower[0] = self.upper[0] = frequency_hz
        left, right = self.home.copy(), self.home.copy()
        left[:, 3], right[:, 4] = radians(-30.0), radians(-30.0)
        self.library = (self.home, left, right)

    def start(self) -> Array:
        """Return the state at rest: the phase, then the variables.

        Returns
        -------
        Array
            (10,).
        """
        result = np.zeros(10)
        result[1], result[4:6] = self.home[0, 0], self.home[0, 3:5]
        return result

    def commands(self, plans: Array, state: Array, since: float, steps: int, dt: float) -> tuple[Array, Array]:
        """Return the commands of plans, rad.

        Parameters
        ----------
        plans : Array
            (p, rows, k) plans.
        state : Array
            Phase, then the variables.
        since : float
            Time that the plans have been in use, s.
        steps : int
            Number of steps.
        dt : float
            Step, s.

        Returns
        -------
        tuple[Array, Array]
            (p, steps, n), each at the end of its step, and the state at the end of the first plan's.
        """
        out, end = np.empty((len(plans), steps, 4)), np.empty(10)
        stroke_commands(
            np.ascontiguousarray(plans), state, since, self.span, steps, dt, self.ratio, self.limit, out, end
        )
        return out, end

    def shifted(self, plan: Array, by: float) -> Array:
        """Return the same plan, as one that begins later.

        Parameters
        ----------
        plan : Array
            (rows, k) plan.
        by : float
            Time by which it begins later, s.

        Returns
        -------
        Array
            (rows, k).
        """
        return shifted_rows(plan, self.span, by)
