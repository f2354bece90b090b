"""Which actuators are claimed, since when, and when each had its last news: what a miss is judged by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rtmms.loop.kernels import memory as at
from rtmms.loop.kernels.stand_in import FIRST_NS, note_missing

__all__ = ["FIRST_NS", "Claims"]

if TYPE_CHECKING:
    from rtmms.loop.miss import Miss
    from rtmms.loop.ports import Exchange, Flags


class Claims:
    """Arrays of (n_actuators,), in the memory of the run's Miss; instants in ns.

    held       claimed, as the exchange told last;  any  one of them is
    answered   had a command since it was claimed
    """

    __slots__ = (
        "_exchange",
        "_fresh",
        "_miss",
        "_now",
        "_renewed",
        "_seen",
        "_since",
        "_valued",
        "answered",
        "any",
        "held",
    )

    def __init__(self, exchange: Exchange, miss: Miss, now: Callable[[], int]) -> None:
        self._exchange, self._now, self._seen, self._miss = exchange, now, b"", miss
        self._fresh, self._renewed = exchange.fresh.view(np.uint8), exchange.renewed.view(np.uint8)
        self.held: Flags = miss.flags[at.HELD].view(np.bool_)
        self.any = False
        self.answered: Flags = miss.flags[at.ANSWERED].view(np.bool_)
        self._valued, self._since = miss.instants

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

    def incomplete(self, now_ns: int) -> None:
        """Some have their commands, or a late one: which are missing, and whether that counts."""
        miss = self._miss
        note_missing(now_ns, miss.instants, miss.flags, self._fresh, self._renewed, miss.words)
