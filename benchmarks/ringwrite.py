"""What it costs the loop to hand a step to the recorder: rows of 400 values into the ring, a reader draining it."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from array import array
from typing import Any

from rtmms.loop.machine.cores import allowed, pin
from rtmms.loop.machine.realtime import raised
from rtmms.record.layout import Head
from rtmms.record.ring import Ring
from rtmms_benchmarks.yardsticks import quantiles

VALUES, ROWS, PERIOD_NS = 400, 5000, 1_000_000
READER = """
import sys, time
from rtmms.record.ring import Ring
ring, rows = Ring.attach(int(sys.argv[1])), 0
ring.note(0, 1)
while rows < int(sys.argv[2]) and not ring.note(2):
    rows += sum(1 for _ in ring.take())
    ring.note(1, rows)
    time.sleep(0.02)
"""


def ring_write(rows: int = ROWS, period_ns: int = PERIOD_NS) -> dict[str, Any]:
    """us of one write at the loop's priority, where that is permitted, and rows that were lost. By turns with it, as
    yardsticks: `copy`, the same bytes put into other shared memory by one slice assignment, and `nothing`, the clock
    read twice.

    period_ns   0: back to back, with everything in the caches; else once a period, as in a loop with nothing before it
    """
    ring = Ring.create(len(Head._fields), VALUES, 1 << (rows - 1).bit_length())
    reader = subprocess.Popen([sys.executable, "-c", READER, str(ring.descriptor), str(rows)],
                              pass_fds=(ring.descriptor,))  # fmt: skip
    while not ring.note(0) and reader.poll() is None:
        time.sleep(0.001)
    head, floats = tuple(range(len(Head._fields))), bytes(8 * VALUES)
    taken, copied, idle = (array("q", [0]) * rows for _ in range(3))
    size = 8 * (len(head) + VALUES)
    row, other = bytes(size), mmap.mmap(-1, size * rows)
    for at in range(0, len(other), mmap.PAGESIZE):
        other[at] = 1  # as the ring's pages are touched
    now, before = time.monotonic_ns, allowed()
    pin(os.getpid(), before[-1:])
    try:
        with raised(80):
            due = now()
            for k in range(rows):
                due = _wait(due, period_ns)
                begun = now()
                ring.push(head, floats)
                taken[k] = now() - begun
                due = _wait(due, period_ns)
                begun = now()
                other[k * size : (k + 1) * size] = row
                copied[k] = now() - begun
                due = _wait(due, period_ns)
                begun = now()
                idle[k] = now() - begun
    finally:
        pin(os.getpid(), before)
    reader.wait(30)
    out = {"values": VALUES, "rows": rows, "dropped": rows - ring.note(1), **quantiles(taken)}
    ring.close()
    other.close()
    return out | {"copy": quantiles(copied), "nothing": quantiles(idle)}


def _wait(due_ns: int, period_ns: int) -> int:
    """Until the next period's start, which is told; no wait where the period is 0."""
    if period_ns:
        due_ns += period_ns
        time.sleep(max(0, due_ns - time.monotonic_ns()) * 1e-9)
    return due_ns
