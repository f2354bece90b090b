"""How often something may be done: so many at once, and so many a second."""

from __future__ import annotations

from time import monotonic_ns

A_SECOND = 50


class Measure:
    """A bucket of `burst` tokens that fills by A_SECOND a second; a flood takes what comes in, and no more."""

    __slots__ = ("_burst", "_left", "_since_ns")

    def __init__(self, burst: int) -> None:
        self._burst, self._left, self._since_ns = burst, float(burst), monotonic_ns()

    def take(self, now_ns: int) -> bool:
        """Whether it may be done now; counted if so."""
        self._left = min(self._burst, self._left + (now_ns - self._since_ns) * 1e-9 * A_SECOND)
        self._since_ns = now_ns
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
