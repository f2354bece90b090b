"""What waits to go to a peer that is slower than we are: the newest, and no more than so many."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from rtmms.bridging.counters import Counters

T = TypeVar("T")


class Outbox(Generic[T]):
    """A queue that drops its oldest entry when it is full, and counts that."""

    def __init__(self, limit: int, counts: Counters) -> None:
        self._waiting: deque[T] = deque()
        self._limit, self._counts = max(1, limit), counts

    def put(self, message: T) -> None:
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._counts.add("dropped")
        self._waiting.append(message)

    def take(self) -> T | None:
        """The oldest, which is gone from here; None for none."""
        return self._waiting.popleft() if self._waiting else None

    def clear(self) -> None:
        self._counts.add("dropped", len(self._waiting)) if self._waiting else None
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)
