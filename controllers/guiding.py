"""Line of sight along a course in space: heading, turn, depth and climb that keep a swimmer on it.

    chi = chi_course - atan(e / lookahead)            the wanted direction over the ground
    w = U (cos chi, sin chi) - c                      through the water, c the current
    heading = atan2(w) + slip turn

e is the cross-track error, to the left of the course. c is estimated from the robot's drift to the side (`estimate`):
c' = n (n . (v - c) + slip U turn) / learns_s, n the body's left, v the estimated velocity over the ground. An
integrator of e can replace it (`integrator`).

Sources: Fossen, Handbook of marine craft hydrodynamics and motion control (2011), sections 10.3 and 12.3; Borhaug,
Pavlov and Pettersen, Integral LOS control for path following of underactuated marine surface vessels in the presence of
constant ocean currents (2008).
"""

from __future__ import annotations

from math import atan, atan2, cos, hypot, pi, sin
from typing import TYPE_CHECKING, Any

from rtmms.base.attitude import wrap_angle

from .pilot import Aim
from .senses import Motion

if TYPE_CHECKING:
    from rtmms.analysis.courses import Course

COMPENSATIONS = ("estimate", "integrator", "none")
_LEAD_S = 0.7
"""Lag of the heading's loop, s."""
_AHEAD_S = 0.8
"""Interval over which the coming turn is computed, s."""
_SLIP_S = 0.5
"""Drift to the outer side of a turn, rad per rad/s: of the manta at 0.4 m/s, from the map of a beat."""
_LEARNS_S = 4.0
_INTEGRAL_1_MS = 0.03
_MAX_CURRENT_M_S = 0.35
"""Largest estimated current, m/s."""


class Guide:
    """Guidance along a course.

    Parameters
    ----------
    course : Course
        The course.
    lookahead_m : float
        Distance ahead at which the line of sight meets the course, m.
    compensate : str
        One of COMPENSATIONS.
    """

    def __init__(self, course: Course, lookahead_m: float, compensate: str) -> None:
        self.course, self.lookahead_m, self.compensate = course, lookahead_m, compensate
        self.reset()

    def reset(self) -> None:
        """Return to the course's beginning."""
        self.along, self.error, self._integral, self._time = 0.0, 0.0, 0.0, -1.0
        self.current = [0.0, 0.0]

    @property
    def finished(self) -> bool:
        """Whether the end of the course is reached."""
        return self.along >= self.course.whole_m - 1e-6

    def __call__(self, now: Motion, speed: float, aim: Aim) -> Aim:
        """Return the aim for this instant, written into `aim`."""
        import numpy as np

        if now.time < self._time:
            self.reset()
        dt = max(0.0, now.time - self._time) if self._time >= 0.0 else 0.0
        self._time = now.time
        here: Any = np.array(now.position)
        self.along = self.course.nearest(here, self.along)
        point, direction, _ = self.course.at(self.along)
        off = -direction[1] * (here[0] - point[0]) + direction[0] * (here[1] - point[1])
        self.error = float(off / max(hypot(direction[0], direction[1]), 1e-6))
        self._learn(now, dt)
        toward = -atan(self.error / self.lookahead_m) - self._integral
        first = self._heading(self.along + speed * _LEAD_S, speed, toward)
        second = self._heading(self.along + speed * (_LEAD_S + _AHEAD_S), speed, toward)
        aim.speed, aim.turn = speed, wrap_angle(second - first) / _AHEAD_S
        aim.heading = wrap_angle(first + _SLIP_S * aim.turn)
        aim.depth, aim.climb = -float(point[2]), float(direction[2]) * speed
        return aim

    def _heading(self, along: float, speed: float, toward: float) -> float:
        """Return the heading that the course needs there, rad."""
        _, direction, _ = self.course.at(along)
        bearing = atan2(direction[1], direction[0]) + toward
        return atan2(speed * sin(bearing) - self.current[1], speed * cos(bearing) - self.current[0])

    def _learn(self, now: Motion, dt: float) -> None:
        """Update the current, or the integral that replaces it."""
        if now.doubts & {"dvl", "imu", "estimate"}:
            return
        if self.compensate == "integrator":
            self._integral = max(-pi / 4, min(pi / 4, self._integral + _INTEGRAL_1_MS * self.error * dt))
        elif self.compensate == "estimate":
            left = -sin(now.yaw), cos(now.yaw)
            v, c = now.world_velocity, self.current
            result = left[0] * (v[0] - c[0]) + left[1] * (v[1] - c[1]) + _SLIP_S * now.velocity[0] * now.rate[2]
            self.current = [
                max(-_MAX_CURRENT_M_S, min(_MAX_CURRENT_M_S, c[k] + dt / _LEARNS_S * result * left[k])) for k in (0, 1)
            ]  # fmt: skip
