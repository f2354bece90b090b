"""Stall detector: one process a core at a priority above ours, which records when its core did not run it in time.

Such a delay is the machine's fault: the core did not run, or the kernel held it. `StallDetector` starts the process if
SCHED_FIFO is permitted. `Stalls` is the shared memory: one writer a core, one reader, no locks. A row is written before
the count of rows. Rows that are not read in time are overwritten, and counted as lost.

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
import time
from collections.abc import Sequence

from rtmms.base.errors import RtmmsError
from rtmms.base.processes import KILL, end_with_parent, shared_memory, start_python
from rtmms.loop.machine import may_raise

MIN_STALL_NS = 60_000
"""Lateness up to which a wake-up is usual, ns."""
_MCL_BOTH = 3


def watch(stalls: Stalls, place: int, period_ns: int) -> None:
    """Record stalls for ever; it allocates nothing that remains.

    Parameters
    ----------
    stalls : Stalls
        The shared memory.
    place : int
        Index of the core.
    period_ns : int
        Interval of the looks, ns.
    """
    now, sleep, beat = time.monotonic_ns, time.sleep, stalls.beat
    due, grid = now() + period_ns, 0
    while True:
        asked = stalls.look_ns
        if asked != grid:
            grid, ahead = asked, now() + MIN_STALL_NS
            due = ahead + (grid - ahead) % period_ns
        left = due - now()
        if left > 0:
            sleep(left * 1e-9)
        woken = now()
        late = woken - due
        if late >= MIN_STALL_NS:
            stalls.add(place, due, late)
            due += late // period_ns * period_ns  # keep the phase
        due += period_ns
        beat(place, woken)


def settle(parent: int | None = None) -> None:
    """End this process with its parent, and lock its memory, so that wake-ups need not wait for it.

    Parameters
    ----------
    parent : int | None, optional
        Id of the parent; None for the present one.
    """
    end_with_parent(KILL, parent)
    ctypes.CDLL(None).mlockall(_MCL_BOTH)


def main(arguments: list[str]) -> None:
    """Start one process for each core but the first, which this process watches.

    Parameters
    ----------
    arguments : list[str]
        Descriptor, period in ns, priority and cores, as text.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, period_ns, priority, *cores = (int(word) for word in arguments)
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
"""Stalls stored for each core, a power of two: seconds of the worst machine, read every 50 ms."""
_LINE = 8
"""int64 in a cache line; the counters of a core have a line of their own."""
_BEATS = 0
_LOOKED = 1
_WRITTEN = 2


class Stalls:
    """Shared memory of the stall detector.

    Parameters
    ----------
    cores : Sequence[int]
        Watched cores; each has a ring, in this order.
    descriptor : int | None, optional
        Descriptor of the memory, which the process inherits (pass_fds). None creates new memory.

    Attributes
    ----------
    lost : int
        Stalls that were overwritten before they were read.
    """

    def __init__(self, cores: Sequence[int], descriptor: int | None = None) -> None:
        self.cores = tuple(cores)
        size = 8 * (_LINE + len(self.cores) * (_LINE + 2 * ROWS))
        self.descriptor = shared_memory("rtmms-stalls", size) if descriptor is None else descriptor
        self._page = mmap.mmap(self.descriptor, size)
        for at in range(0, size, mmap.PAGESIZE):
            self._page[at] = self._page[at]  # touch the memory now, so that no step has to
        self._cells = memoryview(self._page).cast("q")
        self._read = [0] * len(self.cores)
        self.lost = 0

    @property
    def look_ns(self) -> int:
        """An instant of the grid on which the detectors look, ns; 0 for none in particular."""
        return self._cells[0]

    @look_ns.setter
    def look_ns(self, instant_ns: int) -> None:
        self._cells[0] = instant_ns

    # --- process ----------------------------------------------------------------------------------------------------

    def beat(self, place: int, now_ns: int) -> None:
        """Record that the detector of a core has looked.

        Parameters
        ----------
        place : int
            Index of the core.
        now_ns : int
            Present instant, ns.
        """
        at = _line(place)
        self._cells[at + _BEATS] += 1
        self._cells[at + _LOOKED] = now_ns

    def add(self, place: int, due_ns: int, late_ns: int) -> None:
        """Record a stall.

        Parameters
        ----------
        place : int
            Index of the core.
        due_ns : int
            Instant at which the detector should have run, ns.
        late_ns : int
            Its lateness, ns.
        """
        at = _line(place) + _WRITTEN
        count = self._cells[at]
        row = self._row(place, count)
        self._cells[row], self._cells[row + 1] = due_ns, late_ns
        self._cells[at] = count + 1

    # --- reader -----------------------------------------------------------------------------------------------------

    def looked_ns(self) -> int:
        """Return the instant up to which every core's detector has reported.

        Returns
        -------
        int
            Instant, ns; 0 while one has not begun.
        """
        return min((self._cells[_line(place) + _LOOKED] for place in range(len(self.cores))), default=0)

    def await_looked(self, until_ns: int, patience_s: float = 0.1) -> None:
        """Wait until all detectors have reported up to an instant.

        The wait is limited, because they may have died.

        Parameters
        ----------
        until_ns : int
            The instant, ns.
        patience_s : float, default 0.1
            Longest wait, s.
        """
        end = time.monotonic() + patience_s
        while self.looked_ns() < until_ns and time.monotonic() < end:
            time.sleep(0.001)

    def await_first(self, patience_s: float = 10.0) -> bool:
        """Wait until all detectors have looked once.

        Parameters
        ----------
        patience_s : float, default 10.0
            Longest wait, s.

        Returns
        -------
        bool
            False if they have not.
        """
        end = time.monotonic() + patience_s
        while not self.looked_ns():
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        return True

    def beats(self) -> int:
        """Return the number of looks of all cores together.

        Returns
        -------
        int
            The number.
        """
        return sum(self._cells[_line(place) + _BEATS] for place in range(len(self.cores)))

    def take(self) -> list[tuple[int, int, int]]:
        """Return the stalls since the last call, oldest first.

        Returns
        -------
        list[tuple[int, int, int]]
            Begin and end, ns, and core of each.
        """
        result = []
        for place, core in enumerate(self.cores):
            written = self._cells[_line(place) + _WRITTEN]
            first = max(self._read[place], written - ROWS + 1)
            self.lost += first - self._read[place]
            for count in range(first, written):
                row = self._row(place, count)
                due = self._cells[row]
                result.append((due, due + self._cells[row + 1], core))
            self._read[place] = written
        return sorted(result)

    def close(self) -> None:
        """Release the memory; a second call does nothing.

        Other processes keep theirs.
        """
        if self.descriptor >= 0:
            self._cells.release()
            self._page.close()
            os.close(self.descriptor)
            self.descriptor = -1

    def _row(self, place: int, count: int) -> int:
        return _line(len(self.cores)) + 2 * (place * ROWS + (count & (ROWS - 1)))


def _line(place: int) -> int:
    """Return the place of a core's counters; the first line is for all."""
    return _LINE * (1 + place)


PRIORITY = 90
MAX_PRIORITY = 99
MIN_LOOP_PERIOD_NS = 160_000
MIN_PERIOD_NS = 250_000
MAX_PERIOD_NS = 1_000_000


def period_ns(deadline_ns: int, step_ns: int = 0) -> int:
    """Return the interval of a stall detector's looks.

    It looks twice in a deadline, so that it misses no stall that costs a step. But each look costs the core up to 20
    us. So it looks at most every 250 us, or 160 us if the steps require it.

    Parameters
    ----------
    deadline_ns : int
        Deadline of a step, ns.
    step_ns : int, default 0
        Period of the loop, ns. The result is a whole multiple or part of it, so that looks can avoid the exchanges. 0:
        no loop, and an interval that does not fall into step with a round number of us.

    Returns
    -------
    int
        Interval, ns.
    """
    wanted = min(max(deadline_ns // 2, MIN_PERIOD_NS), MAX_PERIOD_NS)
    if not step_ns:
        return wanted + wanted // 21
    if wanted >= step_ns:
        return step_ns * (wanted // step_ns)
    return step_ns // min(-(-step_ns // wanted), max(1, step_ns // MIN_LOOP_PERIOD_NS))


class StallDetector:
    """Processes that watch the cores, and their records.

    Parameters
    ----------
    loop_priority : int
        SCHED_FIFO priority of the loop.
    deadline_ns : int
        Deadline of a step, ns.
    cores : Sequence[int], optional
        Cores to watch.
    step_ns : int, default 0
        Period of the loop, ns; 0 for none.

    Attributes
    ----------
    stalls : Stalls
        Their shared memory.
    process : subprocess.Popen
        The first of them, parent of the others.
    from_step_ns : int
        Best time of their looks after the instant of a step, ns.

    Raises
    ------
    RtmmsError
        If SCHED_FIFO above `loop_priority` is not permitted; it states a remedy.
    """

    def __init__(self, loop_priority: int, deadline_ns: int, cores: Sequence[int] = (), step_ns: int = 0) -> None:
        self.priority = min(max(PRIORITY, loop_priority + 1), MAX_PRIORITY)
        self.period_ns = period_ns(deadline_ns, step_ns)
        self.from_step_ns = min(self.period_ns, step_ns) // 2
        if sys.platform != "linux" or not may_raise(self.priority):
            raise RtmmsError(
                f"stall detector: priority SCHED_FIFO {self.priority} is not permitted, so stalls of the "
                "machine are not measured; raise rtprio in /etc/security/limits.conf, or run with "
                "CAP_SYS_NICE"
            )
        self.stalls = Stalls(cores or sorted(os.sched_getaffinity(0)))
        arguments = [str(word) for word in (self.stalls.descriptor, self.period_ns, self.priority, *self.stalls.cores)]
        self.process = start_python(
            ["-m", "rtmms.loop.stall_detector", *arguments], pass_fds=(self.stalls.descriptor,),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def close(self) -> None:
        """End the processes; a second call does nothing."""
        if self.process.poll() is None:
            self.process.kill()  # its children end with it
        self.process.wait()
        self.stalls.close()


if __name__ == "__main__":
    main(sys.argv[1:])
