"""What is done in the slack beside the wire's work: processes looked after, display, statistics, blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmms.loop.blame import Blame
    from rtmms.loop.clock import Clock
    from rtmms.loop.statistics import Statistics

WATCH_EVERY_NS = 50_000_000
WATCH_COST_NS = 120_000
JUDGE_NS = 60_000
_ROWS, _ROW_NS = 256, 500

Watch = Callable[[], Sequence[str]]
"""Called about every 50 ms between steps; returns a sentence for each process that has died since the last call."""


class Chores:
    """dead   a sentence for each process that has died"""

    def __init__(
        self, clock: Clock, statistics: Statistics, watch: Watch | None, show: Callable[[], None] | None,
        blame: Blame | None,
    ) -> None:  # fmt: skip
        self._clock, self._statistics, self._watch, self._show, self._blame = clock, statistics, watch, show, blame
        self._watched_ns = 0
        self.dead: list[str] = []

    def do(self, until_ns: int) -> None:
        """What there is time for."""
        now = self._clock.now()
        unwatched = now - self._watched_ns
        if unwatched >= WATCH_EVERY_NS and (until_ns - now > WATCH_COST_NS or unwatched > 10 * WATCH_EVERY_NS):
            self.watch_now()
            return
        self._statistics.drain(min(_ROWS, max(0, until_ns - now) // _ROW_NS))
        if self._blame is not None and self._blame.waiting and until_ns - now > JUDGE_NS:
            self._blame.judge(now, 2)

    def watch_now(self) -> None:
        """Look after the processes and the display."""
        self._watched_ns = self._clock.now()
        if self._watch is not None:
            self.dead.extend(self._watch())
        if self._show is not None:
            self._show()
        if self._blame is not None:
            self._blame.judge(self._watched_ns, 8)
