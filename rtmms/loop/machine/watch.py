"""python -m rtmms.loop.machine.watch DESCRIPTOR PERIOD_NS PRIORITY CORE...: the witness, one process a core.

Each sleeps until its next instant, at a priority above everything of ours, and writes how late it was woken when that
is worth telling. What delayed it cannot have been ours: the machine did not run the core, or the kernel held it.
It ends when the run ends, however that ends.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time

from rtmms.loop.machine.stalls import Stalls

LEAST_NS = 60_000
"""Lateness below this is the ordinary cost of waking."""
_PR_SET_PDEATHSIG = 1
_MCL_BOTH = 3


def watch(stalls: Stalls, place: int, period_ns: int) -> None:
    """Look for ever. Allocates nothing that stays."""
    now, sleep, beat = time.monotonic_ns, time.sleep, stalls.beat
    due, grid = now() + period_ns, 0
    while True:
        asked = stalls.look_ns
        if asked != grid:
            grid, ahead = asked, now() + LEAST_NS
            due = ahead + (grid - ahead) % period_ns
        left = due - now()
        if left > 0:
            sleep(left * 1e-9)
        woken = now()
        late = woken - due
        if late >= LEAST_NS:
            stalls.add(place, due, late)
            due += late // period_ns * period_ns  # on the old phase
        due += period_ns
        beat(place, woken)


def settle(parent: int) -> None:
    """End when `parent` does; wake-ups are not to wait for memory."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    libc.mlockall(_MCL_BOTH)


def main(words: list[str]) -> None:
    """Start one process for each core but the first, which is ours."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, period_ns, priority, *cores = (int(word) for word in words)
    settle(int(os.environ.get("RTMMS_PARENT", os.getppid())))
    stalls = Stalls(cores, descriptor)
    gc.disable()
    place, here = 0, os.getpid()
    for other in range(1, len(cores)):
        if os.fork() == 0:
            settle(here)
            place = other
            break
    os.sched_setaffinity(0, {cores[place]})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    watch(stalls, place, period_ns)


if __name__ == "__main__":
    main(sys.argv[1:])
