"""What the interpreter holds more of after work that should leave nothing behind."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def growth(work: Callable[[], object], rounds: int = 4) -> int:
    """Allocated blocks that each of `rounds` calls of `work` added at least.

    What a call keeps shows in every round. What others do once in the meantime (a thread of another library, a table
    that doubles) shows in one.
    """
    least = 1 << 30
    gc.collect()
    for _ in range(rounds):
        before = sys.getallocatedblocks()
        work()
        least = min(least, sys.getallocatedblocks() - before)
    return least
