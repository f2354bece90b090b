"""What a timer, a wake-up and a system call cost here: what an exchange is made of, and no code of ours can save."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from time import monotonic_ns, sleep

WAIT_SAMPLES = 40
SHORTEST_S = 1e-6


def shortest_wait_s(samples: int = WAIT_SAMPLES) -> float:
    """What a wait of 1 us on a descriptor takes, in s: the ninth of ten. 5 us at SCHED_FIFO, 60 us without any set-up.

    A deadline below it cannot be kept: whoever waits for less wakes up later than that.
    """
    taken: list[int] = []
    one, other = socket.socketpair()
    with one, other:
        for _ in range(samples):
            begun = monotonic_ns()
            select.select([one], (), (), SHORTEST_S)
            taken.append(monotonic_ns() - begun)
    return sorted(taken)[(9 * samples) // 10] * 1e-9


SAMPLES = 200
_PAUSE_S, _TIMEOUT_S = 3e-4, 1.0

COSTS = {
    "wake_up": "a sleep ends so much after its instant",
    "past_sleep": "a sleep to an instant that is past",
    "timer": "a wait with a time-out that does not come, beyond one without",
    "call_hot": "a system call that was just made before",
    "call_cold": "the same after a sleep, when the caches have cooled down",
}
"""What is measured, each the median in us."""


def costs(samples: int = SAMPLES) -> dict[str, float]:
    """Each of COSTS in us, as this thread is scheduled now. Takes 0.3 s."""
    here, there = socket.socketpair()
    with here, there:
        there.send(b"1")
        ready = select.epoll() if hasattr(select, "epoll") else None
        found = {
            "wake_up": _median(_late, samples), "past_sleep": _median(lambda: _timed(lambda: sleep(0.0)), samples),
            "call_hot": _median(lambda: _timed(os.getppid), samples), "call_cold": _median(_cold, samples),
        }  # fmt: skip
        if ready is not None:
            ready.register(here.fileno(), select.EPOLLIN)
            # what is there ends the wait at once: only setting the timer and taking it back is left
            without = _median(lambda: _timed(ready.poll), samples)
            found["timer"] = _median(lambda: _timed(lambda: ready.poll(_TIMEOUT_S)), samples) - without
            ready.close()
    return {name: round(found[name], 2) for name in COSTS if name in found}


def _median(one: Callable[[], int], samples: int) -> float:
    one()
    return sorted(one() for _ in range(samples))[samples // 2] * 1e-3


def _timed(call: Callable[[], object]) -> int:
    begun = monotonic_ns()
    call()
    return monotonic_ns() - begun


def _late() -> int:
    due = monotonic_ns() + int(_PAUSE_S * 1e9)
    sleep(_PAUSE_S)
    return monotonic_ns() - due


def _cold() -> int:
    sleep(_PAUSE_S)
    return _timed(os.getppid)
