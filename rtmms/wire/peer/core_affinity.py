"""Core of a controller: the core of a real-time loop while its answers are quick, another one otherwise."""

from __future__ import annotations

import os
from contextlib import suppress
from time import thread_time

MAY_MOVE = "RTMMS_MAY_MOVE"
"""Environment variable of a controller that `rtmms run` has placed."""
ANSWERS = 50
"""Number of answers that are timed together."""
SHARE = 0.25
"""Share of a period which the timed answers need before the controller moves to another core."""


class CoreMove:
    """Move of this process back to its original cores, if its answers take too long for the loop's core."""

    def __init__(self) -> None:
        started = os.environ.get(MAY_MOVE) and hasattr(os, "sched_getaffinity")
        self._cores: set[int] = os.sched_getaffinity(0) if started else set()
        self._period_s, self._count, self._begun = 0.0, 0, 0.0

    def start(self, period_s: float | None) -> None:
        """Begin with a plant.

        Parameters
        ----------
        period_s : float | None
            Wall time of a step, s. None, without a clock, leaves the process where it is.
        """
        self._period_s, self._count, self._begun = period_s or 0.0, 0, thread_time()

    def look(self) -> str:
        """Check the time of the last answers, after each answer.

        Returns
        -------
        str
            A sentence about the move; usually empty.
        """
        self._count += 1
        if self._count % ANSWERS or not self._cores or not self._period_s:
            return ""
        each_s, self._begun = (thread_time() - self._begun) / ANSWERS, thread_time()
        if each_s <= SHARE * self._period_s or os.sched_getaffinity(0) == self._cores:
            return ""
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError):
                os.sched_setaffinity(int(thread), self._cores)
        where, self._cores = ", ".join(map(str, sorted(self._cores))), set()
        return f"an answer takes {1e6 * each_s:.0f} us of a period of {1e6 * self._period_s:.0f}: moved to core {where}"
