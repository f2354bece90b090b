"""The stall detector: one process a core at a priority above ours, which notes when its core did not run it in time.

What delays it is the machine's fault: the core did not run, or the kernel held it. `StallDetector` starts it where
SCHED_FIFO is permitted. `Stalls` is the shared memory between both: one writer a core, one reader, no locks; a row is
written before the count of rows; what is not read in time is overwritten, and counted as lost.
The process itself is: python -m rtmms.loop.stall_detector DESCRIPTOR PERIOD_NS PRIORITY CORE...
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from rtmms.base.errors import RtmmsError
from rtmms.base.processes import KILL, end_with_parent, start_python
from rtmms.loop.machine import may_raise

LEAST_NS = 60_000
"""Lateness below this is the ordinary cost of waking."""
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


def settle(parent: int | None = None) -> None:
    """End when `parent` does; wake-ups are not to wait for memory."""
    end_with_parent(KILL, parent)
    ctypes.CDLL(None).mlockall(_MCL_BOTH)


def main(words: list[str]) -> None:
    """Start one process for each core but the first, which is ours."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, period_ns, priority, *cores = (int(word) for word in words)
    settle()
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


ROWS = 4096
"""Stalls kept for each core, a power of two: seconds of the worst machine, read every 50 ms."""
_LINE = 8
"""int64 in a cache line: the counters of a core have one of their own."""
_BEATS, _LOOKED, _WRITTEN = 0, 1, 2


class Stalls:
    """The memory, by descriptor.

    cores        one ring for each, in this order
    descriptor   hand it to the stall detector (pass_fds); None makes new memory
    """

    def __init__(self, cores: Sequence[int], descriptor: int | None = None) -> None:
        self.cores = tuple(cores)
        size = 8 * (_LINE + len(self.cores) * (_LINE + 2 * ROWS))
        self.descriptor = _memory(size) if descriptor is None else descriptor
        self._page = mmap.mmap(self.descriptor, size)
        for at in range(0, size, mmap.PAGESIZE):
            self._page[at] = self._page[at]  # touched now, so that no step has to
        self._words = memoryview(self._page).cast("q")
        self._read = [0] * len(self.cores)
        self.lost = 0

    @property
    def look_ns(self) -> int:
        """An instant of the grid on which the witnesses look; 0 for none in particular."""
        return self._words[0]

    @look_ns.setter
    def look_ns(self, instant_ns: int) -> None:
        self._words[0] = instant_ns

    # --- process ----------------------------------------------------------------------------------------------------

    def beat(self, place: int, now_ns: int) -> None:
        """The stall detector of this core has looked."""
        at = _line(place)
        self._words[at + _BEATS] += 1
        self._words[at + _LOOKED] = now_ns

    def add(self, place: int, due_ns: int, late_ns: int) -> None:
        """It should have run at due_ns, and ran late_ns after."""
        at = _line(place) + _WRITTEN
        count = self._words[at]
        row = self._row(place, count)
        self._words[row], self._words[row + 1] = due_ns, late_ns
        self._words[at] = count + 1

    # --- reader -----------------------------------------------------------------------------------------------------

    def looked_ns(self) -> int:
        """Up to this instant every core's detector has reported; 0 while one has not begun."""
        return min((self._words[_line(place) + _LOOKED] for place in range(len(self.cores))), default=0)

    def await_looked(self, until_ns: int, patience_s: float = 0.1) -> None:
        """Until all have reported up to the instant; not for long, for they may have died."""
        end = time.monotonic() + patience_s
        while self.looked_ns() < until_ns and time.monotonic() < end:
            time.sleep(0.001)

    def await_first(self, patience_s: float = 10.0) -> bool:
        """Until all have looked once; False when they do not."""
        end = time.monotonic() + patience_s
        while not self.looked_ns():
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        return True

    def beats(self) -> int:
        """Looks taken, all cores together."""
        return sum(self._words[_line(place) + _BEATS] for place in range(len(self.cores)))

    def take(self) -> list[tuple[int, int, int]]:
        """(begin ns, end ns, core) of the stalls written since the last call, oldest first."""
        found = []
        for place, core in enumerate(self.cores):
            written = self._words[_line(place) + _WRITTEN]
            first = max(self._read[place], written - ROWS + 1)
            self.lost += first - self._read[place]
            for count in range(first, written):
                row = self._row(place, count)
                due = self._words[row]
                found.append((due, due + self._words[row + 1], core))
            self._read[place] = written
        return sorted(found)

    def close(self) -> None:
        """Give the memory back; what another process holds of it stays. Twice does nothing."""
        if self.descriptor >= 0:
            self._words.release()
            self._page.close()
            os.close(self.descriptor)
            self.descriptor = -1

    def _row(self, place: int, count: int) -> int:
        return _line(len(self.cores)) + 2 * (place * ROWS + (count & (ROWS - 1)))


def _line(place: int) -> int:
    """Where a core's counters begin; the first line is for all."""
    return _LINE * (1 + place)


def _memory(size: int) -> int:
    if sys.platform == "linux":
        descriptor = os.memfd_create("rtmms-stalls", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


PRIORITY, HIGHEST = 90, 99
LEAST_PERIOD_NS, SHORTEST_NS, LONGEST_NS = 160_000, 250_000, 1_000_000


def period_ns(deadline_ns: int, step_ns: int = 0) -> int:
    """How often a stall detector looks: twice in a deadline, so that it overlooks no stall that costs a step; but each
    look costs the core up to 20 us, so no oftener than every 250 us, or 160 us where the steps ask for it.

    step_ns  the period of the loop, to which this is then a whole multiple or part, so that looks can be kept out of
             the exchanges; 0: no loop, and a period that does not fall into step with one of a round number of us
    """
    wanted = min(max(deadline_ns // 2, SHORTEST_NS), LONGEST_NS)
    if not step_ns:
        return wanted + wanted // 21
    if wanted >= step_ns:
        return step_ns * (wanted // step_ns)
    return step_ns // min(-(-step_ns // wanted), max(1, step_ns // LEAST_PERIOD_NS))


class StallDetector:
    """Processes that look after the cores, and what they saw.

    stalls      their memory;  process the first of them, parent of the others
    from_step_ns   how long after the instant of a step they are best to look
    RtmmsError when SCHED_FIFO above `loop_priority` is not permitted: it states what to do.
    """

    def __init__(self, loop_priority: int, deadline_ns: int, cores: Sequence[int] = (), step_ns: int = 0) -> None:
        self.priority = min(max(PRIORITY, loop_priority + 1), HIGHEST)
        self.period_ns = period_ns(deadline_ns, step_ns)
        self.from_step_ns = min(self.period_ns, step_ns) // 2
        if sys.platform != "linux" or not may_raise(self.priority):
            raise RtmmsError(
                f"stall detector: SCHED_FIFO {self.priority} is not permitted: stalls of the machine are not noticed; "
                "raise rtprio in /etc/security/limits.conf or run with CAP_SYS_NICE"
            )
        self.stalls = Stalls(cores or sorted(os.sched_getaffinity(0)))
        words = [str(word) for word in (self.stalls.descriptor, self.period_ns, self.priority, *self.stalls.cores)]
        self.process = start_python(
            ["-m", "rtmms.loop.stall_detector", *words], pass_fds=(self.stalls.descriptor,),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def close(self) -> None:
        """End them. Twice does nothing."""
        if self.process.poll() is None:
            self.process.kill()  # its children die with it
        self.process.wait()
        self.stalls.close()


if __name__ == "__main__":
    main(sys.argv[1:])
