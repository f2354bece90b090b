"""The work of a parser, counted: lines of Python that a frame makes it run, which are the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

LINES_A_BYTE = 20
"""Lines of a byte: 1 us at some 0.05 us a line."""
LINES_A_LOOK = 1000
"""Lines of a look: 50 us at some 0.05 us a line. What C code does with a frame in one call is one line here."""


def excess(lines: int, size: int) -> int:
    """Lines above what a frame of so many bytes may take; <= 0 where it is within."""
    return lines - LINES_A_BYTE * size - LINES_A_LOOK


class Lines:
    """Counts while it calls.  count   of the last call, also where that raised"""

    count = 0

    def call(self, read: Callable[[bytes], object], frame: bytes) -> object:
        """read(frame), as it is."""
        self.count = 0
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            return read(frame)
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += event == "line"
        return self._trace
