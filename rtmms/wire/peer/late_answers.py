"""Durations of late answers, so that the plant's report can name the cause."""

from __future__ import annotations

from statistics import median
from time import monotonic_ns

ANSWER = "answer_us"
"""Metric: median time from a state to its command."""
SLOWEST = "slowest_answer_us"
"""Metric: maximum time from a state to its command."""
READING = "reading_us"
"""Metric: median time to read a state."""
EACH_NS = 500_000_000
_CAPACITY = 512


class LateAnswers:
    """Durations of a link's answers to states with a passed deadline.

    Every late state uses the link's general path, and is timed there. Of answers that only leave late, the link times a
    few each second. So a state in time costs the link nothing.
    """

    __slots__ = ("_next_ns", "_reading", "_took")

    def __init__(self) -> None:
        self._took: list[int] = []
        self._reading: list[int] = []
        self._next_ns = 0

    def read(self, took_ns: int) -> None:
        """Record the reading of a state on the general path.

        Parameters
        ----------
        took_ns : int
            Its duration, ns.
        """
        if len(self._reading) < _CAPACITY:
            self._reading.append(took_ns)

    def answered(self, read_ns: int, due_ns: int) -> dict[str, float] | None:
        """Record that the command for a state leaves now.

        Parameters
        ----------
        read_ns : int
            Instant at which the state was read, CLOCK_MONOTONIC, ns.
        due_ns : int
            Deadline of the command, CLOCK_MONOTONIC, ns; 0 for none.

        Returns
        -------
        dict[str, float] | None
            The metrics, us, if the plant should receive them now.
        """
        now_ns = monotonic_ns()
        if not 0 < due_ns < now_ns:
            return None
        if len(self._took) < _CAPACITY:
            self._took.append(now_ns - read_ns)
        if now_ns < self._next_ns:
            return None
        reading = median(self._reading) / 1e3 if self._reading else 0.0
        result = {ANSWER: median(self._took) / 1e3, SLOWEST: max(self._took) / 1e3, READING: reading}
        self._next_ns = now_ns + EACH_NS
        self._took.clear()
        self._reading.clear()
        return result
