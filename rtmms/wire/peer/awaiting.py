"""Waiting on a few descriptors of any number, for as long as a second or so."""

from __future__ import annotations

import select
from math import ceil


class Awaiting:
    """poll(2) where there is one: select(2) knows no descriptor from 1024 on, and takes longer."""

    def __init__(self) -> None:
        self._watched: tuple[int, ...] = ()
        self._poll: select.poll | None = None

    def readable(self, descriptors: tuple[int, ...], timeout_s: float) -> list[int]:
        """Those that can be read, or whose other end is gone; [] when there were none for that long."""
        if descriptors != self._watched or self._poll is None:
            if not hasattr(select, "poll"):
                return list(select.select(descriptors, (), (), timeout_s)[0])
            self._watched, self._poll = descriptors, select.poll()
            for descriptor in descriptors:
                self._poll.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _ in self._poll.poll(ceil(1e3 * timeout_s))]
