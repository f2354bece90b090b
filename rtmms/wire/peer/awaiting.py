"""Waiting on a few descriptors of any number, for as long as a second or so."""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from time import monotonic_ns

from rtmms.wire.stream.timerfd import Alarm


class Awaiting:
    """poll(2) where there is one: select(2) knows no descriptor from 1024 on, and takes longer."""

    def __init__(self) -> None:
        self._watched: tuple[int, ...] = ()
        self._poll: select.poll | None = None
        self._alarm: Alarm | None = None
        self._watched_now = -1
        if hasattr(select, "poll"):
            with suppress(OSError):
                self._alarm = Alarm()
        self._alarmed = self._soon = False

    def ring(self, instant_ns: int) -> bool:
        """A wait by `ready` ends then, though nothing has come; False where the last wait was not of that kind."""
        if self._alarm is None or not self._alarmed:
            return False
        self._alarm.set(instant_ns)
        self._soon = True
        return True

    def ready(self, descriptors: tuple[int, ...], every_s: float) -> Callable[[], list[tuple[int, int]]] | None:
        """The wait itself, which lasts until one of them can be read, or an alarm rings that is set now and then: so no
        wait has a timer of its own. What it tells is for `told`. None where there is no alarm."""
        alarm = self._alarm
        if alarm is None:
            return None
        if descriptors != self._watched or self._poll is None or not self._alarmed:
            self._watch(descriptors).register(alarm.descriptor, select.POLLIN)
            self._alarmed, self._soon, alarm.at_ns = True, False, 0
        now_ns = monotonic_ns()
        if not self._soon and alarm.at_ns - now_ns < 0.5e9 * every_s:
            alarm.set(now_ns + int(1e9 * every_s))
        return self._poll.poll  # type: ignore[union-attr]

    def told(self, found: list[tuple[int, int]]) -> list[int]:
        """The descriptors of what a wait told; [] when it was the alarm alone."""
        alarm = self._alarm
        others = [descriptor for descriptor, _ in found if alarm is None or descriptor != alarm.descriptor]
        self._soon = self._soon and len(others) == len(found)
        return others

    def close(self) -> None:
        """Twice does nothing."""
        if self._alarm is not None:
            self._alarm.close()
            self._alarm, self._poll, self._alarmed = None, None, False

    def readable(self, descriptors: tuple[int, ...], timeout_s: float) -> list[int]:
        """Those that can be read, or whose other end is gone; [] when there were none for that long."""
        if descriptors != self._watched or self._poll is None or self._alarmed:
            if not hasattr(select, "poll"):
                return list(select.select(descriptors, (), (), timeout_s)[0])
            self._watch(descriptors)
        return [descriptor for descriptor, _ in self._poll.poll(ceil(1e3 * timeout_s))]  # type: ignore[union-attr]

    def readable_now(self, descriptor: int) -> bool:
        """Whether something is there; does not wait."""
        if self._watched_now != descriptor:
            self._poll_now, self._watched_now = select.poll(), descriptor
            self._poll_now.register(descriptor, select.POLLIN)
        return bool(self._poll_now.poll(0))

    def _watch(self, descriptors: tuple[int, ...]) -> select.poll:
        self._watched, self._poll, self._alarmed = descriptors, select.poll(), False
        for descriptor in descriptors:
            self._poll.register(descriptor, select.POLLIN)
        return self._poll
