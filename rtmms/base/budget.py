"""Wall time that a long computation may take."""

from __future__ import annotations

import math
import time


class OutOfTimeError(Exception):
    """The wall time of a budget is over; whoever set the budget catches it."""


class Budget:
    """Wall time from now on.

    Parameters
    ----------
    seconds
        None or inf: no limit.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._start_s = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return time.monotonic() - self._start_s

    @property
    def left(self) -> float:
        """Seconds that are left, 0 at least."""
        return max(self.seconds - self.elapsed, 0.0)

    def refuse_late(self) -> None:
        """Raise OutOfTimeError where the time is over."""
        if self.elapsed > self.seconds:
            raise OutOfTimeError(f"the time budget of {self.seconds:g} s is over")


def remaining(elapsed: float, done: float, total: float) -> str:
    """'about 12 s left' of work that goes on evenly; '' before anything is done."""
    return f"about {elapsed / done * (total - done):.0f} s left" if done > 0.0 else ""
