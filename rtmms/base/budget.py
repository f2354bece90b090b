"""Limit of the wall time of a long computation."""

from __future__ import annotations

import math
import time


class OutOfTimeError(Exception):
    """End of a budget's wall time; the code that set the budget catches it."""


class Budget:
    """Budget of wall time, from its creation on.

    Parameters
    ----------
    seconds : float | None, optional
        Wall time, s. None or inf: no limit.

    Examples
    --------
    >>> Budget().left
    inf
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._start_s = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Wall time since the creation, s."""
        return time.monotonic() - self._start_s

    @property
    def left(self) -> float:
        """Remaining wall time, s, at least 0."""
        return max(self.seconds - self.elapsed, 0.0)

    def refuse_late(self) -> None:
        """Raise OutOfTimeError if the time is over.

        Raises
        ------
        OutOfTimeError
            If it is.
        """
        if self.elapsed > self.seconds:
            raise OutOfTimeError(f"the computation did not end within its time budget of {self.seconds:g} s")


def remaining(elapsed: float, done: float, total: float) -> str:
    """Return a sentence about the remaining time of steady work.

    Parameters
    ----------
    elapsed : float
        Time so far, s.
    done, total : float
        Finished and total amount of work, in one unit.

    Returns
    -------
    str
        Such as 'about 12 s left'; empty before anything is done.

    Examples
    --------
    >>> remaining(6.0, 1.0, 3.0)
    'about 12 s left'
    """
    return f"about {elapsed / done * (total - done):.0f} s left" if done > 0.0 else ""
