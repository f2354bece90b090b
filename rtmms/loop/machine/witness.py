"""The witness from the side of the run: started where SCHED_FIFO is permitted, read in the slack, ended with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from rtmms.errors import RtmmsError
from rtmms.loop.machine.realtime import may_raise
from rtmms.loop.machine.stalls import Stalls

PRIORITY, HIGHEST = 90, 99
LEAST_NS, SHORTEST_NS, LONGEST_NS = 160_000, 250_000, 1_000_000


def period_ns(deadline_ns: int, step_ns: int = 0) -> int:
    """How often a witness looks: twice in a deadline, so that it cannot overlook a stall that costs a step; but each
    look costs the core up to 20 us, so no oftener than every 250 us, or 160 us where the steps ask for it.

    step_ns  the period of the loop, to which this is then a whole multiple or part, so that looks can be kept out of
             the exchanges; 0: no loop, and a period that does not fall into step with one of a round number of us
    """
    wanted = min(max(deadline_ns // 2, SHORTEST_NS), LONGEST_NS)
    if not step_ns:
        return wanted + wanted // 21
    if wanted >= step_ns:
        return step_ns * (wanted // step_ns)
    return step_ns // min(-(-step_ns // wanted), max(1, step_ns // LEAST_NS))


class Witness:
    """Processes that look after the cores, and what they saw.

    stalls      their memory;  process the first of them, parent of the others
    from_step_ns   how long after the instant of a step they are best to look
    RtmmsError when SCHED_FIFO above `loop_priority` is not permitted: it says what to do.
    """

    def __init__(self, loop_priority: int, deadline_ns: int, cores: Sequence[int] = (), step_ns: int = 0) -> None:
        self.priority = min(max(PRIORITY, loop_priority + 1), HIGHEST)
        self.period_ns = period_ns(deadline_ns, step_ns)
        self.from_step_ns = min(self.period_ns, step_ns) // 2
        if sys.platform != "linux" or not may_raise(self.priority):
            raise RtmmsError(
                f"witness: SCHED_FIFO {self.priority} is not permitted, so stalls of the machine are blamed on nobody; "
                "raise rtprio in /etc/security/limits.conf or run with CAP_SYS_NICE"
            )
        self.stalls = Stalls(cores or sorted(os.sched_getaffinity(0)))
        words = [str(word) for word in (self.stalls.descriptor, self.period_ns, self.priority, *self.stalls.cores)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rtmms.loop.machine.watch", *words], pass_fds=(self.stalls.descriptor,),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {"RTMMS_PARENT": str(os.getpid())},
        )  # fmt: skip

    def close(self) -> None:
        """End them. Twice does nothing."""
        if self.process.poll() is None:
            self.process.kill()  # its children die with it
        self.process.wait()
        self.stalls.close()
