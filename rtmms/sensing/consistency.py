"""The estimator beside a run: what it makes of the sensors, against the truth, and whether it knows how wrong it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from rtmms.contract import Applied
from rtmms.sensing.data_sheets import Imu
from rtmms.sensing.error_state_filter import E_P, E_Q, E_V
from rtmms.sensing.estimated import Estimated, truth_of
from rtmms.sensing.estimator import SETTLES_S, Estimate
from rtmms.spatial import Array, quaternion_matrix

_PARTS = (("position_m", E_P), ("velocity_m_s", E_V), ("attitude_deg", E_Q))


class Consistency:
    """An observer of a run whose plant tells an estimate.

    due   (read by the loop) the next step whose end is wanted
    """

    def __init__(self, plant: Estimated) -> None:
        self._plant = plant
        rate = next(one.rate_hz for one in plant.sensors.values() if isinstance(one, Imu))
        self._stride = max(1, round(1.0 / rate / plant.dt))
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        room = math.ceil((self._plant.estimator.behind_s + 0.1) / self._plant.dt / self._stride) + 4
        self._truth: deque[tuple[float, Array, Array, Array]] = deque(maxlen=room)
        self._squares: dict[str, list[float]] = {name: [] for name, _ in _PARTS}
        self._nees: dict[str, list[float]] = {name: [] for name, _ in _PARTS}
        self._judged = -math.inf
        self.due = 0

    def start(self, outputs: Mapping[str, Array]) -> None:
        """The state before the first step."""
        self.due = self._stride - 1

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Observer: `step` has ended, and outputs hold at its end."""
        self.due = step + self._stride
        self._truth.append((time, *truth_of(outputs)))
        if time > SETTLES_S:
            self._judge()

    def _judge(self) -> None:
        """The filter's own instant, where its covariance is of."""
        at = self._plant.estimator.behind()
        if at.time <= self._judged:
            return
        self._judged = at.time
        time, position, velocity, rotation = min(self._truth, key=lambda row: abs(row[0] - at.time))
        if abs(time - at.time) > 0.51 * self._stride * self._plant.dt:
            return
        for name, (size, squared) in compared(at, position, velocity, rotation).items():
            self._squares[name].append(size**2)
            self._nees[name].append(squared)

    def report(self) -> dict[str, dict[str, Any]]:
        """{quantity: {rms, nees}}; nees: mean of the normalised error squared, 3 where the covariance is right."""
        return {
            name: {"rms": float(np.sqrt(np.mean(self._squares[name]))), "nees": float(np.mean(self._nees[name]))}
            for name, _ in _PARTS if self._squares[name]
        }  # fmt: skip


def compared(at: Estimate, position: Array, velocity: Array, rotation: Array) -> dict[str, tuple[float, float]]:
    """{quantity: (size of its error, normalised error squared)} of an estimate against the truth of its instant.

    position m, velocity m/s (3,), world; rotation (3, 3), body to world
    """
    turn = quaternion_matrix(at.quaternion).T @ rotation
    angle = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    found = {}
    for (name, k), wrong in zip(_PARTS, (position - at.position, velocity - at.velocity, angle), strict=True):
        size = float(np.linalg.norm(wrong))
        block = at.covariance[k : k + 3, k : k + 3]
        squared = float(wrong @ np.linalg.solve(block, wrong))
        found[name] = (math.degrees(size) if name == "attitude_deg" else size, squared)
    return found
