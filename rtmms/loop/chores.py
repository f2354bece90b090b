"""What is done in the slack beside the wire's work: processes looked after, display, statistics, attribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmms.loop.clock import Clock
    from rtmms.loop.fault_attribution import FaultAttribution
    from rtmms.loop.statistics import Statistics

WATCH_EVERY_NS = 50_000_000
WATCH_COST_NS = 120_000
JUDGE_NS = 120_000
_ROWS, _ROW_NS = 256, 500

Watch = Callable[[], Sequence[str]]
"""Called about every 50 ms between steps; returns a sentence for each process that has died since the last call."""


class Chores:
    """dead   a sentence for each process that has died"""

    def __init__(
        self, clock: Clock, statistics: Statistics, watch: Watch | None, show: Callable[[], None] | None,
        attribution: FaultAttribution | None,
    ) -> None:  # fmt: skip
        self._clock, self._statistics, self._watch, self._attribution = clock, statistics, watch, attribution
        self.dead: list[str] = []
        parts = (self._look_after if watch else None, show, self._judge if attribution else None)
        self._parts = [part for part in parts if part is not None]
        self._took_ns, self._done_ns = [WATCH_COST_NS] * len(self._parts), [0] * len(self._parts)

    def do(self, until_ns: int) -> None:
        """What there is time for: looks one by one, as all of them may take longer than a short period."""
        now, looked = self._clock.now(), False
        for which in range(len(self._parts)):
            unwatched = now - self._done_ns[which]
            if unwatched < WATCH_EVERY_NS:
                continue
            fits = until_ns - now > self._took_ns[which]
            if fits or (unwatched > 10 * WATCH_EVERY_NS and not looked):
                looked = True
                now = self._look(which, now)
        if looked:
            return
        self._statistics.drain(min(_ROWS, max(0, until_ns - now) // _ROW_NS))
        if self._attribution is not None and self._attribution.waiting and until_ns - now > JUDGE_NS:
            self._attribution.judge(now, 2)

    def watch_now(self) -> None:
        """Look after the processes and the display."""
        now = self._clock.now()
        for which in range(len(self._parts)):
            now = self._look(which, now)

    def _look(self, which: int, now: int) -> int:
        self._done_ns[which] = now
        self._parts[which]()
        ended, took_ns = self._clock.now(), self._took_ns[which]
        self._took_ns[which] = max(ended - now, took_ns - took_ns // 16)
        return ended

    def _look_after(self) -> None:
        assert self._watch is not None
        self.dead.extend(self._watch())

    def _judge(self) -> None:
        assert self._attribution is not None
        self._attribution.judge(self._clock.now(), 8)
