"""Connections that we give up, closed one after the other.

To close one that floods us makes the kernel throw away, in our time, what both sides have piled up for it: half a
millisecond for some megabytes. Until then nothing of it is read, so that it stands still; one that is closed at once is
back at once.
"""

from __future__ import annotations

import socket
from collections import deque
from time import monotonic_ns

_MOST = 64
_GAP_NS, _LONGEST_GAP_NS = 20_000_000, 200_000_000
_TAKES_NS = 500_000


class Leaving:
    """At most _MOST of them: for one more the oldest is closed at once."""

    def __init__(self) -> None:
        self._sockets: deque[socket.socket] = deque()
        self._closed_ns = 0

    def add(self, one: socket.socket) -> None:
        """Nobody else uses this one any more."""
        if len(self._sockets) >= _MOST:
            self.close_one()
        self._sockets.append(one)

    def serve(self, until_ns: int) -> None:
        """Close one of them, if there is time for it; where there never is, now and then all the same."""
        if not self._sockets:
            return
        now_ns = monotonic_ns()
        since_ns = now_ns - self._closed_ns
        if since_ns >= _LONGEST_GAP_NS or (since_ns >= _GAP_NS and until_ns - now_ns >= _TAKES_NS):
            self.close_one()

    def close_one(self) -> bool:
        """The one that waits longest; False where there is none."""
        if not self._sockets:
            return False
        self._sockets.popleft().close()
        self._closed_ns = monotonic_ns()
        return True

    def close(self) -> None:
        """All of them."""
        while self.close_one():
            pass
