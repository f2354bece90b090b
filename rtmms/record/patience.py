"""How long a step without a deadline waits for the writer of its log: while rows leave the ring, and not for ever."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rtmms.record.writer import FULL

if TYPE_CHECKING:
    from subprocess import Popen

    from rtmms.record.ring import Ring

SHORT_S = 1.0
"""Where nothing is to be hoped for: the disk said that it is full, or the run is to end."""
TOLD_S = 2.0
STALLED_S = 30.0
_LOOK_S = 0.0005


def to_stderr(sentence: str) -> None:
    """At once; a standard error that is gone is no reason to end."""
    with contextlib.suppress(OSError, ValueError):
        print(sentence, file=sys.stderr, flush=True)


class Patience:
    """Waits for room in a ring.

    ending  whether the run is to end after this step
    tell    hears once a stall when the writer has taken nothing for TOLD_S, and when it is given up for that
    told    it has heard that rows are dropped
    """

    def __init__(self, ring: Ring, process: Popen[bytes], ending: Callable[[], bool]) -> None:
        self._ring, self._process, self._ending = ring, process, ending
        self.tell: Callable[[str], None] = to_stderr
        self.told = False
        self._given_up_at = -1  # rows that had left the ring

    def wait(self) -> None:
        """While rows leave the ring. Returns at once where they had stopped leaving, until one leaves again."""
        ring = self._ring
        if ring.tail == self._given_up_at:
            return
        tail, since, told = ring.tail, time.monotonic(), False
        while not ring.room:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if ring.tail != tail:
                tail, since, told = ring.tail, now, False
            if self._hopeless(now - since):
                self._given_up_at = tail
                return
            if now - since > TOLD_S and not told:
                told = True
                self.tell(f"the recorder has written nothing for {TOLD_S:g} s: the run waits for it")

    def _hopeless(self, stalled_s: float) -> bool:
        if self._process.poll() is not None:
            return True
        if stalled_s > SHORT_S and (self._ring.note(FULL) or self._ending()):
            return True
        if stalled_s > TOLD_S and stopped(self._process.pid):
            self._give_up("was stopped (SIGSTOP)")
            return True
        if stalled_s > STALLED_S:
            self._give_up(f"has written nothing for {STALLED_S:g} s")
            return True
        return False

    def _give_up(self, why: str) -> None:
        self.told = True
        self.tell(f"the recorder {why}: the run goes on, and steps are dropped from the log")


def stopped(pid: int) -> bool:
    """Whether a process was stopped, by a signal or a debugger; False where the system does not tell."""
    try:
        # after the name, which may hold anything
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False
