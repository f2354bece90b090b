"""Lines for a person, of which a peer can cause any number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FIRST = 20
EVERY_S = 2.0
LONGEST = 1000


class Telling:
    """Passes lines on: the first FIRST at once, then one in EVERY_S; the rest are counted, and the count is told.

    What is told may hold a peer's words: control characters are written as their codes.
    """

    def __init__(self, tell: Callable[[str], Any]) -> None:
        self._tell = tell
        self._left = float(FIRST)
        self._at = 0.0
        self.untold = 0

    def __call__(self, text: str, now: float) -> None:
        self._left = min(float(FIRST), self._left + (now - self._at) / EVERY_S)
        self._at = now
        if self._left < 1.0:
            self.untold += 1
            return
        self._left -= 1.0
        self.end()
        self._tell(printable(text))

    def end(self) -> None:
        """How many were not told, if any."""
        if self.untold:
            self._tell(f"({self.untold} more lines were not told)")
            self.untold = 0


def printable(text: str) -> str:
    """At most LONGEST letters, in one line."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:LONGEST])
