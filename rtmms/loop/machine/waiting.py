"""How short a wait can be here: what a deadline must not go below."""

from __future__ import annotations

import select
import socket
from time import monotonic_ns

SAMPLES = 40
SHORTEST_S = 1e-6


def shortest_wait_s(samples: int = SAMPLES) -> float:
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
