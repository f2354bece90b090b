"""How much of what must be refused a bridge looks at: a flood of it must not cost the states their answers."""

from __future__ import annotations

REFUSED_PER_S, BURST = 1000.0, 100.0
PAUSE_S = 0.02


class Nuisance:
    """Refusals are let through at REFUSED_PER_S, BURST of them at once. Beyond that the peers' files are left alone for
    PAUSE_S: what comes meanwhile waits in the kernel, which drops what it has no room for."""

    def __init__(self) -> None:
        self._left, self._at, self._seen = BURST, 0.0, 0
        self.until = 0.0

    def seen(self, refused: int, now: float) -> bool:
        """refused: so many up to now. Whether a pause begins."""
        new = refused - self._seen
        if not new:
            return False
        self._seen = refused
        self._left = min(BURST, self._left + (now - self._at) * REFUSED_PER_S) - new
        self._at = now
        if self._left >= 0.0:
            return False
        self.until = now + PAUSE_S
        return True
