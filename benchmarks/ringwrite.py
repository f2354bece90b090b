"""What it costs the loop to hand a step to the recorder: rows of 400 values into the ring, a reader draining it."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from array import array
from typing import Any

import numpy as np
from numba import njit

from rtmms.loop.kernels.row import push_row
from rtmms.loop.log_row import Head
from rtmms.loop.machine.cores import allowed, pin
from rtmms.loop.machine.scheduling import raised
from rtmms.plant import Account
from rtmms.record.recorder import CompiledRows
from rtmms.record.ring import Ring
from rtmms.wire.kernels.system import SCRATCH_WORDS, now_ns

from .yardsticks import quantiles

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
    """us of one write by compiled code, as within a usual step, at the loop's priority, where that is permitted; and
    rows that were lost. By turns with it `python`, the same by Python, as of a step that is none; and as yardsticks, by
    Python too, `copy`, the same bytes put into other shared memory by one slice assignment, and `nothing`, the clock
    read twice.

    period_ns   0: back to back, with everything in the caches; else once a period, as in a loop with nothing before it
    """
    ring = Ring.create(len(Head._fields), VALUES, 1 << (2 * rows - 1).bit_length())
    compiled = Compiled(ring)
    reader = subprocess.Popen([sys.executable, "-c", READER, str(ring.descriptor), str(2 * rows)],
                              pass_fds=(ring.descriptor,))  # fmt: skip
    while not ring.note(0) and reader.poll() is None:
        time.sleep(0.001)
    head, floats = tuple(range(len(Head._fields))), bytes(8 * VALUES)
    taken, written, copied, idle = (array("q", [0]) * rows for _ in range(4))
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
                taken[k] = compiled.push()
                due = _wait(due, period_ns)
                begun = now()
                ring.push(head, floats)
                written[k] = now() - begun
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
    out = {"values": VALUES, "rows": rows, "dropped": 2 * rows - ring.note(1), **quantiles(taken)}
    ring.close()
    other.close()
    return out | {"python": quantiles(written), "copy": quantiles(copied), "nothing": quantiles(idle)}


class Compiled:
    """Rows of VALUES numbers, in the two pieces that a plant has, by compiled code."""

    def __init__(self, ring: Ring) -> None:
        self._head, self._command, self._outputs = array("q", bytes(8 * ring.ints)), np.zeros(4), np.zeros(VALUES - 4)
        sources = [(part.ctypes.data, len(part)) for part in (self._command, self._outputs)]
        self._rows, self._scratch, self._call = CompiledRows(), np.zeros(SCRATCH_WORDS, dtype=np.int64), _timed()
        self._at = self._rows.bind(ring, self._head, sources, Account(0, (), {}))
        self.push()
        for _ in ring.take():  # compiled now, and the ring is empty again
            pass

    def push(self) -> int:
        """One row: the ns that it took by the clock of compiled code, without Python's way there and back."""
        return int(self._call(self._at, self._scratch.ctypes.data))


def _timed() -> Any:
    @njit
    def timed(at: int, scratch: int) -> int:
        begun = now_ns(scratch)
        push_row(at)
        return int(now_ns(scratch) - begun)

    return timed


def _wait(due_ns: int, period_ns: int) -> int:
    """Until the next period's start, which is told; no wait where the period is 0."""
    if period_ns:
        due_ns += period_ns
        time.sleep(max(0, due_ns - time.monotonic_ns()) * 1e-9)
    return due_ns
