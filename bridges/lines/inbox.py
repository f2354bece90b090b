"""From a library's own thread to the loop of the bridge: the newest messages, and a file that signals them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue of bounded length that drops its oldest entry. `put` from any thread; the rest from the loop's.

    dropped   entries that were pushed out since the last `take_all`, which returns them
    """

    def __init__(self, limit: int = 64) -> None:
        self._waiting: deque[T] = deque()
        self._limit, self._dropped, self._closed = max(1, limit), 0, False
        self._lock = threading.Lock()
        self._out, self._in = socket.socketpair()  # a pipe cannot be waited for everywhere
        self._in.setblocking(False)
        self._out.setblocking(False)

    def fileno(self) -> int:
        """Readable while something waits."""
        return self._out.fileno()

    def put(self, message: T) -> None:
        with self._lock:
            if self._closed:
                return
            if len(self._waiting) >= self._limit:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(message)
            if len(self._waiting) == 1:
                with contextlib.suppress(BlockingIOError):  # full: it is readable as it is
                    self._in.send(b"1")

    def take_all(self) -> tuple[list[T], int]:
        """What waits, oldest first, and how many were dropped since the last time."""
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                self._out.recv(4096)
            waiting, dropped = list(self._waiting), self._dropped
            self._waiting.clear()
            self._dropped = 0
        return waiting, dropped

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._in.close()
                self._out.close()
