"""How long a peer takes for answers that come too late, so that the plant's report can name the cause."""

from __future__ import annotations

from statistics import median
from time import monotonic_ns

ANSWER, SLOWEST, READING = "answer_us", "slowest_answer_us", "reading_us"
"""Names of figures: median and maximum time from a state to its command, and median time to read a state."""
EACH_NS = 500_000_000
_CAPACITY = 512


class LateAnswers:
    """Times of a link's states whose deadline has passed when their command leaves, in us.

    Every late state takes the link's general path, and is measured there. Of answers that only leave late, the link
    measures a few each second: so a state in time costs the link nothing.
    """

    __slots__ = ("_next_ns", "_reading", "_took")

    def __init__(self) -> None:
        self._took: list[int] = []
        self._reading: list[int] = []
        self._next_ns = 0

    def read(self, took_ns: int) -> None:
        """A state was read on the general path, which took so long."""
        if len(self._reading) < _CAPACITY:
            self._reading.append(took_ns)

    def answered(self, read_ns: int, due_ns: int) -> dict[str, float] | None:
        """The command of the state that was read at `read_ns` leaves now; it was due at `due_ns` (0: at no instant).

        Returns
        -------
        dict or None
            The figures, where the plant should get them now.
        """
        now_ns = monotonic_ns()
        if not 0 < due_ns < now_ns:
            return None
        if len(self._took) < _CAPACITY:
            self._took.append(now_ns - read_ns)
        if now_ns < self._next_ns:
            return None
        reading = median(self._reading) / 1e3 if self._reading else 0.0
        found = {ANSWER: median(self._took) / 1e3, SLOWEST: max(self._took) / 1e3, READING: reading}
        self._next_ns = now_ns + EACH_NS
        self._took.clear()
        self._reading.clear()
        return found
