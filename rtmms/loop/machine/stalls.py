"""Shared memory in which witnesses write when their core did not run them: a ring of (instant, length) for each core.
The other way goes one word, an instant at which they may look.

One writer for each core, one reader, no locks. A row is written before the count of rows, so that a reader which sees
the count sees the row (where stores are seen in order; elsewhere it may miss the newest for a moment). What is not read
in time is written over, and counted as lost.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import time
from collections.abc import Sequence

ROWS = 4096
"""Stalls kept for each core, a power of two: seconds of the worst machine, read every 50 ms."""
_LINE = 8
"""int64 in a cache line: the counters of a core have one of their own."""
_BEATS, _LOOKED, _WRITTEN = 0, 1, 2


class Stalls:
    """The memory, by descriptor.

    cores        one ring for each, in this order
    descriptor   hand it to the witness (pass_fds); None makes new memory
    """

    def __init__(self, cores: Sequence[int], descriptor: int | None = None) -> None:
        self.cores = tuple(cores)
        size = 8 * (_LINE + len(self.cores) * (_LINE + 2 * ROWS))
        self.descriptor = _memory(size) if descriptor is None else descriptor
        self._page = mmap.mmap(self.descriptor, size)
        for at in range(0, size, mmap.PAGESIZE):
            self._page[at] = self._page[at]  # touched now, so that no step has to
        self._words = memoryview(self._page).cast("q")
        self._read = [0] * len(self.cores)
        self.lost = 0

    @property
    def look_ns(self) -> int:
        """An instant of the grid on which the witnesses look; 0 for none in particular."""
        return self._words[0]

    @look_ns.setter
    def look_ns(self, instant_ns: int) -> None:
        self._words[0] = instant_ns

    # --- witness ----------------------------------------------------------------------------------------------------

    def beat(self, place: int, now_ns: int) -> None:
        """The witness of this core has looked."""
        at = _line(place)
        self._words[at + _BEATS] += 1
        self._words[at + _LOOKED] = now_ns

    def add(self, place: int, due_ns: int, late_ns: int) -> None:
        """It should have run at due_ns, and ran late_ns after."""
        at = _line(place) + _WRITTEN
        count = self._words[at]
        row = self._row(place, count)
        self._words[row], self._words[row + 1] = due_ns, late_ns
        self._words[at] = count + 1

    # --- reader -----------------------------------------------------------------------------------------------------

    def looked_ns(self) -> int:
        """Up to this instant every core's witness has told what it saw; 0 while one has not begun."""
        return min((self._words[_line(place) + _LOOKED] for place in range(len(self.cores))), default=0)

    def await_looked(self, until_ns: int, patience_s: float = 0.1) -> None:
        """Until all have told what they saw up to the instant; not for long, for they may have died."""
        end = time.monotonic() + patience_s
        while self.looked_ns() < until_ns and time.monotonic() < end:
            time.sleep(0.001)

    def await_first(self, patience_s: float = 10.0) -> bool:
        """Until all have looked once; False when they do not."""
        end = time.monotonic() + patience_s
        while not self.looked_ns():
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        return True

    def beats(self) -> int:
        """Looks taken, all cores together."""
        return sum(self._words[_line(place) + _BEATS] for place in range(len(self.cores)))

    def take(self) -> list[tuple[int, int, int]]:
        """(begin ns, end ns, core) of the stalls written since the last call, oldest first."""
        found = []
        for place, core in enumerate(self.cores):
            written = self._words[_line(place) + _WRITTEN]
            first = max(self._read[place], written - ROWS + 1)
            self.lost += first - self._read[place]
            for count in range(first, written):
                row = self._row(place, count)
                due = self._words[row]
                found.append((due, due + self._words[row + 1], core))
            self._read[place] = written
        return sorted(found)

    def close(self) -> None:
        """Give the memory back; what another process holds of it stays. Twice does nothing."""
        if self.descriptor >= 0:
            self._words.release()
            self._page.close()
            os.close(self.descriptor)
            self.descriptor = -1

    def _row(self, place: int, count: int) -> int:
        return _line(len(self.cores)) + 2 * (place * ROWS + (count & (ROWS - 1)))


def _line(place: int) -> int:
    """Where a core's counters begin; the first line is for all."""
    return _LINE * (1 + place)


def _memory(size: int) -> int:
    if sys.platform == "linux":
        descriptor = os.memfd_create("rtmms-stalls", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor
