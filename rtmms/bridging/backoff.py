"""When to try again: soon at first, then less and less often."""

from __future__ import annotations

from time import monotonic


class Backoff:
    """Pauses between attempts: first_s, then twice as long each time, most_s at most.

    `due` is true when the next attempt may be made; say `failed` or `succeeded` after it.
    """

    def __init__(self, first_s: float = 0.1, most_s: float = 5.0) -> None:
        self.first_s, self.most_s = first_s, most_s
        self._pause_s, self._at = first_s, 0.0

    def due(self, now: float | None = None) -> bool:
        return (monotonic() if now is None else now) >= self._at

    def failed(self, now: float | None = None) -> float:
        """The attempt failed, or the connection it made is gone; the pause until the next one, s."""
        pause = self._pause_s
        self._at = (monotonic() if now is None else now) + pause
        self._pause_s = min(self.most_s, 2.0 * pause)
        return pause

    def succeeded(self) -> None:
        self._pause_s, self._at = self.first_s, 0.0
