"""Which actuators are claimed, since when, and when each had its last news: what a miss is judged by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.loop.ports import Exchange, Flags

FIRST_NS = 1_000_000_000
"""For a peer that joins, to send its first command: misses until then count neither for limits nor `abort`."""


class Claims:
    """Arrays of (n_actuators,); instants in ns.

    held       claimed, as the exchange told last;  any  one of them is
    answered   had a command since it was claimed
    """

    __slots__ = ("_exchange", "_now", "_seen", "_since", "_valued", "answered", "any", "complete_ns", "held")

    def __init__(self, exchange: Exchange, n: int, now: Callable[[], int]) -> None:
        self._exchange, self._now, self._seen = exchange, now, b""
        self.held: Flags = np.zeros(n, dtype=np.bool_)
        self.any = False
        self.answered: Flags = np.zeros(n, dtype=np.bool_)
        self._since: npt.NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        self._valued: npt.NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        self.complete_ns = 0

    def refresh(self) -> bool:
        """Notice that claims were taken or released (35 ns when they were not)."""
        claimed = self._exchange.claimed
        seen = claimed.tobytes()
        if seen == self._seen:
            return False
        taken = claimed & ~self.held
        self._valued[taken] = self._since[taken] = self._now()  # the age of its value counts from the claim
        self.answered[taken] = False
        self.held[:] = claimed
        self._seen, self.any = seen, bool(claimed.any())
        return True

    def complete(self, now_ns: int) -> None:
        """Every claimed actuator has its command."""
        self.complete_ns = now_ns
        self.answered[:] = self.held

    def incomplete(self, now_ns: int, missing: Flags) -> None:
        """Some have theirs, or a late one; written to `missing`: those that have none."""
        exchange = self._exchange
        np.greater(self.held, exchange.fresh, out=missing)
        self._valued[exchange.fresh | exchange.renewed] = now_ns
        exchange.renewed[:] = False
        self.answered |= exchange.fresh

    def none_owed(self, missing: Flags, now_ns: int) -> bool:
        """All that is missing is that of peers which joined just now and have not answered yet."""
        return not np.any(missing & (self.answered | (now_ns - self._since >= FIRST_NS)))

    def older(self, age_ns: int, now_ns: int) -> Flags:
        """(n,) those whose value is older than that."""
        old: Flags = now_ns - np.maximum(self._valued, self.complete_ns) > age_ns
        return old
