"""Words of a wave that runs along a chain of joints, as the eel's: its amplitude, a bend to the side, a bend downwards.

With the targets u:

    x' = (u - x) / tau           each word follows its target
    theta' = 2 pi f
    yaw_i = bend + A exp(g (i - n)) sin(theta - (i - 1) lag),   pitch_i = dive,   i = 1 .. n from the head
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, pi, radians

import numpy as np
import numpy.typing as npt

from rtmms.planning.planner import shifted_rows

Array = npt.NDArray[np.float64]

NAMES = ("amplitude", "bend", "dive")
FOLLOWS_1_S = 5.0
SCALE = (radians(2.0), radians(2.0), radians(1.5))
LOWER = (0.0, radians(-8.0), radians(-6.0))
UPPER = (radians(14.0), radians(8.0), radians(6.0))


class Waves:
    """Words (rtmms.planning.planner) of a chain's actuators.

    Parameters
    ----------
    yaw, pitch : Sequence[int]
        Places of these joints' actuators among all `count`, from the head to the tail; others stay at 0.
    count : int
        Number of actuators.
    growth : float
        g, of a joint's amplitude to the next.
    lag : float
        Phase by which each joint trails the one before it, rad.
    amplitude : float
        Amplitude, rad, of the last joint, at home.
    frequency_hz : float
        Frequency of all joints.
    limit : float
        Limit, rad, of each actuator.
    rows : int
        Targets in a horizon, evenly spaced.
    horizon_s : float
        Horizon, s.
    """

    names = NAMES

    def __init__(
        self, yaw: Sequence[int], pitch: Sequence[int], count: int, *, growth: float, lag: float, amplitude: float,
        frequency_hz: float, limit: float, rows: int, horizon_s: float,
    ) -> None:  # fmt: skip
        n = len(yaw)
        self._yaw, self._pitch, self._count, self._limit = list(yaw), list(pitch), count, limit
        self._share = np.array([exp(growth * (i + 1 - n)) for i in range(n)])
        self._lag, self._omega = lag * np.arange(n), 2.0 * pi * frequency_hz
        self.span = horizon_s / max(1, rows - 1)
        self.home = np.tile([amplitude, 0.0, 0.0], (rows, 1))
        self.scale, self.lower, self.upper = np.array(SCALE), np.array(LOWER), np.array(UPPER)
        self.library = (self.home,)

    def start(self) -> Array:
        """Return the state at rest, a straight chain: the phase, then the variables.

        Returns
        -------
        Array
            (4,).
        """
        return np.zeros(1 + len(NAMES))

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
        rows = plans.shape[1]
        at = (since + dt * np.arange(1, steps + 1)) / self.span if rows > 1 else np.zeros(steps)
        row = np.minimum(at.astype(np.int64), rows - 1)
        part = np.where(row < rows - 1, np.minimum(at - row, 1.0), 0.0)[None, :, None]
        variables = plans[:, row] + part * (plans[:, np.minimum(row + 1, rows - 1)] - plans[:, row])
        share, now = 1.0 - exp(-FOLLOWS_1_S * dt), np.tile(state[1:], (len(plans), 1))
        for step in range(steps):
            now = now + share * (variables[:, step] - now)
            variables[:, step] = now
        phase = state[0] + self._omega * dt * np.arange(1, steps + 1)
        wave = self._share * np.sin(phase[:, None] - self._lag)
        out = np.zeros((len(plans), steps, self._count))
        out[:, :, self._yaw] = np.clip(variables[:, :, 1:2] + variables[:, :, :1] * wave, -self._limit, self._limit)
        out[:, :, self._pitch] = np.clip(variables[:, :, 2:], -self._limit, self._limit)
        return out, np.concatenate([phase[-1:], variables[0, -1]])

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
