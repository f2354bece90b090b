"""The estimator beside a run: what it makes of the sensors, against the truth, and whether it knows how wrong it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from rtmms.contract import TRUTH, Applied
from rtmms.errors import ModelError
from rtmms.sensing.estimation import E_P, E_Q, E_V
from rtmms.sensing.estimator import SETTLES_S, Estimator
from rtmms.sensing.parts import Imu, Sensor
from rtmms.spatial import Array, quaternion_matrix

_PARTS = (("position_m", E_P), ("velocity_m_s", E_V), ("attitude_deg", E_Q))


class Consistency:
    """An observer of a run whose plant has sensors.

    due   (read by the loop) the next step whose end is wanted
    Raises ModelError where there is no imu.
    """

    def __init__(self, sensors: Mapping[str, Sensor], dt: float, gravity: float = 9.80665) -> None:
        rates = [one.rate_hz for one in sensors.values() if isinstance(one, Imu)]
        if not rates:
            raise ModelError("--estimate: expected an imu among the sensors (--sensors typical)")
        self._sensors, self._dt, self._gravity = sensors, dt, gravity
        self._stride = max(1, round(1.0 / rates[0] / dt))
        self.clear()

    def _begin(self, **motion: Array) -> None:
        self._estimator = Estimator(
            self._sensors,
            deviations=(0.02, 0.05, 0.02),
            gravity=self._gravity,
            **motion,  # type: ignore[arg-type]
        )

    def clear(self) -> None:
        """Begin anew."""
        self._begin()
        room = math.ceil((self._estimator.behind_s + 0.1) / self._dt / self._stride) + 4
        self._truth: deque[tuple[float, Array, Array, Array]] = deque(maxlen=room)
        self._squares: dict[str, list[float]] = {name: [] for name, _ in _PARTS}
        self._nees: dict[str, list[float]] = {name: [] for name, _ in _PARTS}
        self.due = 0

    def start(self, outputs: Mapping[str, Array]) -> None:
        """The state before the first step, from which the estimate begins."""
        quaternion = np.asarray(outputs[TRUTH + "quaternion"], dtype=float)
        velocity = quaternion_matrix(quaternion) @ np.asarray(outputs[TRUTH + "velocity"], dtype=float)
        self._begin(position=np.asarray(outputs[TRUTH + "position"]), velocity=velocity, quaternion=quaternion)
        self.due = self._stride - 1

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Observer: `step` has ended, and outputs hold at its end."""
        self.due = step + self._stride
        rotation = quaternion_matrix(np.asarray(outputs[TRUTH + "quaternion"]))
        velocity = rotation @ np.asarray(outputs[TRUTH + "velocity"])
        self._truth.append((time, np.array(outputs[TRUTH + "position"]), velocity, rotation))
        if self._estimator.hear(outputs) and time > SETTLES_S:
            self._judge()

    def _judge(self) -> None:
        """The filter's own instant, where its covariance is of."""
        at = self._estimator.behind()
        time, position, velocity, rotation = min(self._truth, key=lambda row: abs(row[0] - at.time))
        if abs(time - at.time) > 0.51 * self._stride * self._dt:
            return
        turn = quaternion_matrix(at.quaternion).T @ rotation
        angle = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
        for (name, k), wrong in zip(_PARTS, (position - at.position, velocity - at.velocity, angle), strict=True):
            size = (
                math.degrees(float(np.linalg.norm(wrong))) if name == "attitude_deg" else float(np.linalg.norm(wrong))
            )
            self._squares[name].append(size**2)
            block = at.covariance[k : k + 3, k : k + 3]
            self._nees[name].append(float(wrong @ np.linalg.solve(block, wrong)))

    def report(self) -> dict[str, dict[str, Any]]:
        """{quantity: {rms, nees}}; nees: mean of the normalised error squared, 3 where the covariance is right."""
        return {
            name: {"rms": float(np.sqrt(np.mean(self._squares[name]))), "nees": float(np.mean(self._nees[name]))}
            for name, _ in _PARTS if self._squares[name]
        }  # fmt: skip
