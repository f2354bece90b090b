"""Warning for a person when a controller no longer progresses along its course."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

STALLS_S = 10.0
"""Time without progress after which it counts, s."""
MIN_PROGRESS_SHARE = 0.1
"""Share of the distance at the commanded speed that counts as progress."""


class CourseProgress:
    """Comparison of the arc length along a course with the commanded speed.

    Parameters
    ----------
    name : str
        The controller's name in messages.
    whole_m : float
        Length of the course, m.
    warn : Callable[[str], None]
        Receives each message.
    """

    def __init__(self, name: str, whole_m: float, warn: Callable[[str], None]) -> None:
        self._name, self._whole_m, self._warn = name, whole_m, warn
        self.reset()

    def reset(self) -> None:
        """Start anew at the next call."""
        self._time, self._along, self._stalled = inf, 0.0, False

    def __call__(self, time: float, along_m: float, speed_m_s: float) -> None:
        """Read the arc length at a time (s); warn once when it stops growing, and once when it grows again."""
        if time < self._time or along_m >= self._whole_m - 1e-6 or speed_m_s <= 0.0:
            self._time, self._along, self._stalled = time, along_m, False
        elif along_m - self._along >= MIN_PROGRESS_SHARE * STALLS_S * speed_m_s:
            if self._stalled:
                self._warn(f"{self._name}: t = {time:.2f} s: it progresses along the course again")
            self._time, self._along, self._stalled = time, along_m, False
        elif time - self._time >= STALLS_S and not self._stalled:
            self._stalled = True
            self._warn(
                f"{self._name}: t = {time:.2f} s: no progress along the course for {STALLS_S:g} s, at {along_m:.2f} m "
                f"of {self._whole_m:.2f} m; a lower speed_m_s or a course with rounder corners may help"
            )
