"""What the run tells the writer of its log beside the rows: lines of JSON, in order with them."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rtmms.record.layout import encode

if TYPE_CHECKING:
    from subprocess import Popen

    from rtmms.record.ring import Ring

_UNKNOWN = 1 << 62


class Telling:
    """Lines to the writer's standard input; what is noted in a step is sent by `settle`, and the writer takes no row of
    it before.

    ahead   step less the number of its row, where compiled code may write that
    """

    def __init__(self, ring: Ring, process: Popen[bytes]) -> None:
        assert process.stdin is not None
        self._ring, self._stream = ring, process.stdin
        self._notes: list[dict[str, Any]] = []
        self._unsaid = bytearray()
        self.ahead = _UNKNOWN

    def clear(self) -> None:
        """Steps are numbered anew."""
        self.ahead = _UNKNOWN

    def note(self, step: int, values: Mapping[str, Any]) -> None:
        """These are the set-points at the end of `step`: in the log, before its row, which may be in the ring."""
        after = self._ring.head if self.ahead == _UNKNOWN else min(self._ring.head, step - self.ahead)
        self._notes.append({"set_points": dict(values), "step": step, "after": after})

    def settle(self) -> None:
        """Send what was noted; the writer may have the rows that are there now."""
        if self._notes:
            self._unsaid += b"".join(encode(note) + b"\n" for note in self._notes)
            self._notes.clear()
            self._send()
        self._ring.settle()

    def say(self, message: Mapping[str, Any], patience_s: float) -> None:
        """One line at once; a writer that has stopped listening is not waited for."""
        descriptor = self._stream.fileno()
        os.set_blocking(descriptor, False)
        self._unsaid += encode(dict(message)) + b"\n"
        until = time.monotonic() + patience_s
        while self._send() and time.monotonic() < until:
            select.select([], [descriptor], [], 0.1)

    def close(self) -> None:
        """There is no more."""
        with contextlib.suppress(OSError):
            self._stream.close()

    def _send(self) -> bool:
        """What the pipe takes now of what is to be said; whether there is more."""
        try:
            del self._unsaid[: os.write(self._stream.fileno(), self._unsaid)]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._unsaid.clear()
        return bool(self._unsaid)
