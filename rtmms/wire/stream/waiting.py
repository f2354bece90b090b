"""Which of many descriptors can be read or written: epoll, or what stands for it where there is none."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import selectors
import sys
from typing import Protocol

_CLOCK_MONOTONIC, _ABSOLUTE = 1, 1
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0, getattr(os, "O_CLOEXEC", 0)


class Alarm:
    """A descriptor that is readable from an instant on.

    at_ns   the instant, on CLOCK_MONOTONIC; 0: none
    """

    def __init__(self) -> None:
        """OSError where there is no timerfd."""
        if sys.platform != "linux":
            raise OSError("timerfd: Linux only")
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._settime.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self.descriptor = int(libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK | _CLOEXEC))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._when = (ctypes.c_long * 4)()  # struct itimerspec: interval (0: once), value; each s, ns
        self._address = ctypes.addressof(self._when)
        self.at_ns = 0

    def set(self, instant_ns: int) -> None:
        """At this instant, in place of any earlier one; 0 for never. What has rung is quiet again."""
        self._when[2], self._when[3] = divmod(instant_ns, 1_000_000_000)
        self._settime(self.descriptor, _ABSOLUTE, self._address, None)
        self.at_ns = instant_ns

    def close(self) -> None:
        os.close(self.descriptor)


IN, OUT = 1, 4
"""EPOLLIN and EPOLLOUT."""


class Poller(Protocol):
    """As select.epoll."""

    def register(self, descriptor: int, events: int, /) -> None: ...

    def modify(self, descriptor: int, events: int, /) -> None:
        """0 events: at most that it has gone."""

    def unregister(self, descriptor: int, /) -> None:
        """OSError or KeyError for one that is not registered."""

    def poll(self, timeout_s: float | None = None, most: int = -1, /) -> list[tuple[int, int]]: ...

    def close(self) -> None: ...


class Selecting:
    """kqueue where there is one, else select: whose waits, unlike epoll's, end to the microsecond."""

    def __init__(self) -> None:
        self._selector: selectors.BaseSelector = getattr(selectors, "KqueueSelector", selectors.SelectSelector)()

    def register(self, descriptor: int, events: int, /) -> None:
        self._selector.register(descriptor, _named(events))

    def modify(self, descriptor: int, events: int, /) -> None:
        self.unregister(descriptor)
        if events:
            self.register(descriptor, events)

    def unregister(self, descriptor: int, /) -> None:
        with contextlib.suppress(KeyError):  # there is no entry without events
            self._selector.unregister(descriptor)

    def poll(self, timeout_s: float | None = None, most: int = -1, /) -> list[tuple[int, int]]:
        """`most` is not kept to: the first would always be the same."""
        found = self._selector.select(timeout_s)
        return [(key.fd, IN * bool(told & 1) | OUT * bool(told & 2)) for key, told in found]

    def close(self) -> None:
        self._selector.close()


def _named(events: int) -> int:
    return selectors.EVENT_READ * bool(events & IN) | selectors.EVENT_WRITE * bool(events & OUT)


def poller() -> Poller:
    """The best there is."""
    return select.epoll() if hasattr(select, "epoll") else Selecting()
