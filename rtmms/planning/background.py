"""A thread that computes for long beside a controller's answers to states."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import get_native_id
from typing import Any

BEHIND = 5
"""Nice values by which it gives way to the thread that answers."""
SWITCH_S = 0.2e-3
"""After which Python hands over to a thread that waits, in place of 5 ms: so long may a plan hold up an answer."""


class Background:
    """One thread; `submit` as that of an executor of the standard library.

    It runs on the cores that the process had when this was made, and behind what answers: a real-time loop takes light
    controllers onto its own core (docs/realtime.md), where a long computation would starve both.
    """

    def __init__(self, name: str) -> None:
        self._cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self._nice = os.getpriority(os.PRIO_PROCESS, 0) + BEHIND if hasattr(os, "getpriority") else 0
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin when what was submitted before is done."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        return self._pool.submit(self._run, function, arguments)

    def close(self) -> None:
        """Wait for the end of what was submitted. The next `submit` begins anew."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with suppress(OSError):  # each time: who places a process places all of its threads
            if self._cores:
                os.sched_setaffinity(0, self._cores)
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, get_native_id(), self._nice)
        return function(*arguments)
