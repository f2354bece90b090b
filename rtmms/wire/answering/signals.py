"""A descriptor that can be read when a signal has come which Python is to see: so compiled code can wait for it."""

from __future__ import annotations

import signal
import socket
import threading
from contextlib import suppress


class Signals:
    """Of this process; made and closed by its main thread."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)
        self._before = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)

    @classmethod
    def here(cls) -> Signals | None:
        """None where signals are not this thread's, or somebody else is woken by them already."""
        if threading.current_thread() is not threading.main_thread():
            return None
        found = cls()
        if found._before == -1:
            return found
        found.close()
        return None

    @property
    def descriptor(self) -> int:
        return self._here.fileno()

    def seen(self) -> None:
        """Python has run since."""
        with suppress(BlockingIOError):
            self._here.recv(4096)

    def close(self) -> None:
        """Twice does nothing."""
        if self._here.fileno() >= 0:
            signal.set_wakeup_fd(self._before)
            self._here.close()
            self._there.close()
