"""Queue from a library's own thread to the loop of the bridge: the newest messages, and a file that signals them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """Queue of bounded length that drops its oldest entry.

    `put` may be called from any thread, all other methods from the loop's.

    Parameters
    ----------
    limit : int, default 64
        Most entries.

    Examples
    --------
    >>> inbox = Inbox(1)
    >>> inbox.put("old"), inbox.put("new"), inbox.take_all()
    (None, None, (['new'], 1))
    >>> inbox.close()
    """

    def __init__(self, limit: int = 64) -> None:
        self._waiting: deque[T] = deque()
        self._limit, self._dropped, self._closed = max(1, limit), 0, False
        self._lock = threading.Lock()
        self._out, self._in = socket.socketpair()  # a pipe cannot be waited for everywhere
        self._in.setblocking(False)
        self._out.setblocking(False)

    def fileno(self) -> int:
        """Return a descriptor that is readable while something waits.

        Returns
        -------
        int
            The descriptor.
        """
        return self._out.fileno()

    def put(self, message: T) -> None:
        """Add a message.

        Parameters
        ----------
        message : T
            The message.
        """
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
        """Remove all messages, oldest first.

        Returns
        -------
        tuple[list[T], int]
            The messages, and how many were dropped since the last call.
        """
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                self._out.recv(4096)
            waiting, dropped = list(self._waiting), self._dropped
            self._waiting.clear()
            self._dropped = 0
        return waiting, dropped

    def close(self) -> None:
        """Close the descriptors; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._in.close()
                self._out.close()
