"""The witness from the side of the run: started where SCHED_FIFO is permitted, read in the slack, ended with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from rtmms.errors import RtmmsError
from rtmms.loop.realtime import may_raise
from rtmms.loop.stalls import Stalls

PRIORITY, HIGHEST = 90, 99
SHORTEST_NS, LONGEST_NS = 250_000, 1_000_000


def period_ns(deadline_ns: int) -> int:
    """How often a witness looks: twice in a deadline, so that it cannot overlook a stall that costs a step, but no
    oftener than every 250 us, because each look costs the core 2 to 20 us."""
    return min(max(deadline_ns // 2, SHORTEST_NS), LONGEST_NS)


class Witness:
    """Processes that look after the cores, and what they saw.

    stalls      their memory;  process the first of them, parent of the others
    RtmmsError when SCHED_FIFO above `loop_priority` is not permitted: it says what to do.
    """

    def __init__(self, loop_priority: int, deadline_ns: int, cores: Sequence[int] = ()) -> None:
        self.priority = min(max(PRIORITY, loop_priority + 1), HIGHEST)
        self.period_ns = period_ns(deadline_ns)
        if sys.platform != "linux" or not may_raise(self.priority):
            raise RtmmsError(
                f"witness: SCHED_FIFO {self.priority} is not permitted, so stalls of the machine are blamed on nobody; "
                "raise rtprio in /etc/security/limits.conf or run with CAP_SYS_NICE"
            )
        self.stalls = Stalls(cores or sorted(os.sched_getaffinity(0)))
        words = [str(word) for word in (self.stalls.descriptor, self.period_ns, self.priority, *self.stalls.cores)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rtmms.loop.watch", *words], pass_fds=(self.stalls.descriptor,),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {"RTMMS_PARENT": str(os.getpid())},
        )  # fmt: skip

    def close(self) -> None:
        """End them. Twice does nothing."""
        if self.process.poll() is None:
            self.process.kill()  # its children die with it
        self.process.wait()
        self.stalls.close()
