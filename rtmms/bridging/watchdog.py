"""Has somebody been silent for too long?"""

from __future__ import annotations

from time import monotonic


class Watchdog:
    """Trips once when nothing was heard for longer than limit_s (0: never); `fed` sets it again.

    It does not trip before it was fed for the first time.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.tripped = False
        self._heard: float | None = None

    def fed(self, now: float | None = None) -> None:
        self._heard = monotonic() if now is None else now
        self.tripped = False

    def trips(self, now: float | None = None) -> bool:
        """True once for each silence."""
        if self.limit_s <= 0 or self.tripped or self._heard is None:
            return False
        self.tripped = (monotonic() if now is None else now) - self._heard > self.limit_s
        return self.tripped

    def left_s(self, now: float | None = None) -> float | None:
        """Time until it would trip, None while it cannot."""
        if self.limit_s <= 0 or self.tripped or self._heard is None:
            return None
        return max(0.0, self._heard + self.limit_s - (monotonic() if now is None else now))
