"""ArduSub's frame vectored-6dof over the JSON backend, as far as a robot meets it: motors by AP_Motors6DOF.

Packets, frames and arming are those of `ImitatedCopter`. The attitude and depth loops are simple ones of our own; the
factors of the motors and their pulses are ArduSub's (libraries/AP_Motors/AP_Motors6DOF.cpp, SUB_FRAME_VECTORED_6DOF).
"""

from __future__ import annotations

from math import asin, atan2, pi
from typing import Any

from tests.bridges.autopilot.imitated_copter import ImitatedCopter

MOTORS = (
    (0, 0, 1, 0, -1, 1), (0, 0, -1, 0, -1, -1), (0, 0, -1, 0, 1, 1), (0, 0, 1, 0, 1, -1),
    (1, -1, 0, -1, 0, 0), (-1, -1, 0, -1, 0, 0), (1, 1, 0, -1, 0, 0), (-1, 1, 0, -1, 0, 0),
)  # fmt: skip
"""Of motors 1 to 8: factors of roll (right side down), pitch (nose up), yaw (right), throttle (up), forward, lateral
(right)."""
MIDDLE_US = 1500
HALF_US = 400


class ImitatedSub(ImitatedCopter):
    """One ArduSub that holds depth, heading and level, and drives ahead.

    Attributes
    ----------
    depth_m, heading : float
        What it is to hold: m below the start of the autopilot's frame, and rad from north to the right.
    forward : float
        Stick ahead, -1 to 1.
    """

    depth_m, heading, forward = 2.0, 0.0, 0.0

    def _send(self, now: float) -> None:
        self._pulses = (list(self._pulses) + [MIDDLE_US] * 8)[:8] if self.armed else [MIDDLE_US] * 8
        super()._send(now)

    def _fly(self, line: dict[str, Any]) -> None:
        if not self.armed:
            self._pulses, self._sum = [MIDDLE_US] * 8, [0.0] * 4
            return
        w, x, y, z = line["quaternion"]
        roll, pitch = atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), asin(2 * (w * y - z * x))
        yaw = atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        turn = (self.heading - yaw + pi) % (2 * pi) - pi
        depth = line["position"][2] - self.depth_m  # > 0: too deep, so up
        inputs = []
        for k, (error, rate, p, i, d) in enumerate((
            (-roll, line["gyro"][0], 2.0, 1.0, 0.5), (-pitch, line["gyro"][1], 2.0, 1.0, 0.5),
            (turn, line["gyro"][2], 0.8, 0.1, 0.6), (depth, -line["velocity"][2], 1.5, 0.2, 1.5),
        )):  # fmt: skip
            if abs(error) < 0.3:  # else the way there would fill it
                self._sum[k] = max(-0.3, min(0.3, self._sum[k] + i * error * 1e-3))
            inputs.append(max(-0.6, min(0.6, p * error + self._sum[k] - d * rate)))
        inputs += [self.forward, 0.0]
        thrusts = [sum(a * b for a, b in zip(factors, inputs, strict=True)) for factors in MOTORS]
        self._pulses = [round(MIDDLE_US + HALF_US * max(-1.0, min(1.0, thrust))) for thrust in thrusts]
