"""Which of many descriptors can be read or written: epoll, or what stands for it where there is none."""

from __future__ import annotations

import contextlib
import select
import selectors
from typing import Protocol

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
