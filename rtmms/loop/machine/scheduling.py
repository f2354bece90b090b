"""Getting this process ready to keep time, each part tried, and reported as done or as failed with what to do.

The order matters (docs/realtime.md): core, memory, timer, power states; then sockets, the plant and its compilation;
then, last of all, the scheduler. Nothing here is fatal: without privileges the loop runs, only less evenly.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from rtmms.errors import ModelError
from rtmms.loop.machine.cores import CoreClaim, Cores, allowed, choose, parse_affinity, threads
from rtmms.loop.machine.resources import lock, prefault, unlock

AUTO_PRIORITY = 80
CHILD_BELOW = 10
CHILD_RTTIME_US = 500_000
CHILD_NICE = -10
_PR_SET_TIMERSLACK, _PR_GET_TIMERSLACK = 29, 30


@dataclass(slots=True)
class Readiness:
    """What was set up: `done` names the parts in their order, `failed` says of each of the others what to do about it.

    asked       priority asked for; None for none
    scheduler   'SCHED_FIFO' or 'SCHED_OTHER';  priority 0 under the latter
    children    of each controller that was started: its name, scheduler, priority and cores
    affinity    cores of the loop's thread;  cores   what was pinned to which;  allowed   before that
    """

    asked: int | None = None
    scheduler: str = "SCHED_OTHER"
    priority: int = 0
    memory_locked: bool = False
    affinity: list[int] = field(default_factory=list)
    cores: Cores = field(default_factory=Cores)
    allowed: list[int] = field(default_factory=list)
    timer_slack_ns: int | None = None
    dma_latency_us: int | None = None
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    claim: CoreClaim = field(default_factory=CoreClaim)
    children: list[dict[str, Any]] = field(default_factory=list)
    _dma_file: int | None = None
    _room: list[Any] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        """The object `realtime` of the final report."""
        return {
            "scheduler": self.scheduler, "priority": self.priority, "memory_locked": self.memory_locked,
            "affinity": self.affinity, "controllers": list(self.cores.controllers),
            "children": list(self.children), "done": list(self.done), "failed": list(self.failed),
        }  # fmt: skip

    def close(self) -> None:
        """Give up what outlives a run: power state, memory, scheduler, core. The process may go on to draw a figure."""
        if self._dma_file is not None:
            os.close(self._dma_file)
            self._dma_file = None
        if self.memory_locked:
            unlock()
        if self.priority and sys.platform == "linux":
            os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        if self.cores.loop is not None:
            os.sched_setaffinity(0, self.allowed)
        self.claim.close()


def parse_priority(text: str) -> tuple[int | None, bool]:
    """'auto', 'off' or a SCHED_FIFO priority 1 to 99 -> (priority or None, whether it was asked for by number)."""
    if text == "auto":
        return AUTO_PRIORITY, False
    if text == "off":
        return None, False
    if text.isdigit() and 1 <= int(text) <= 99:
        return int(text), True
    raise ModelError(f"priority: expected auto, off or a whole number from 1 to 99, got '{text}'")


def prepare(priority: int | None, affinity: str = "auto") -> Readiness:
    """The parts that come before the sockets and the plant. priority None (off) leaves the machine as it is."""
    ready = Readiness(asked=priority, affinity=allowed(), allowed=allowed())
    wanted = parse_affinity(affinity, ready.affinity)
    if priority is None:
        return ready
    if sys.platform != "linux":
        ready.failed.append(f"real time is set up on Linux only; on {sys.platform} the loop runs without it")
        return ready
    libc = ctypes.CDLL(None, use_errno=True)
    timed = may_raise(priority)
    _affinity(ready, choose(wanted, ready.affinity, timed, ready.claim.take), timed)
    _memory(ready, early=True)
    _timer_slack(ready, libc)
    _dma_latency(ready)
    return ready


def may_raise(priority: int | None) -> bool:
    """Whether SCHED_FIFO at this priority is granted; tried, and taken back."""
    with raised(priority) as granted:
        return granted


@contextmanager
def raised(priority: int | None) -> Iterator[bool]:
    """Within: this thread at SCHED_FIFO `priority`, if that is permitted. Gives whether it is."""
    granted = False
    if priority is not None and sys.platform == "linux":
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            granted = True
        except OSError:
            pass
    try:
        yield granted
    finally:
        if granted:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def finish(ready: Readiness) -> None:
    """The parts that come last, when everything is loaded and warm: memory, garbage, then the scheduler."""
    if ready.asked is None or sys.platform != "linux":
        return
    ready._room = prefault()
    if not ready.memory_locked:
        _memory(ready, early=False)
    gc.collect()
    gc.freeze()  # the loop turns collections off: what is loaded need not be looked at again
    ready.done.append("garbage collected")
    _scheduler(ready, ready.asked)


def raise_child(pid: int, priority: int) -> str:
    """Give a child SCHED_FIFO `priority` and a limit on what it may use without sleeping. Returns what failed."""
    if sys.platform != "linux":
        return "priorities of controllers: not available on this system"
    import resource

    try:
        resource.prlimit(pid, resource.RLIMIT_RTTIME, (CHILD_RTTIME_US, CHILD_RTTIME_US))
        for thread in threads(pid):  # its I/O thread hands over all that it gets: it is half of the way
            os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(max(1, priority)))
    except OSError as error:
        return f"priority {priority} of process {pid}: {error.strerror}"
    return ""


def favour_child(pid: int) -> None:
    """Before ordinary processes, where that is permitted; those still get their turn, whatever it does."""
    if not hasattr(os, "setpriority"):
        return
    with suppress(OSError):
        for thread in threads(pid):
            os.setpriority(os.PRIO_PROCESS, thread, CHILD_NICE)


def scheduling(pid: int) -> dict[str, Any]:
    """How a process is scheduled, as far as that can be found out: scheduler, priority, nice, cores."""
    try:
        nice = os.getpriority(os.PRIO_PROCESS, pid)
        policy, priority = os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority
        cores = sorted(os.sched_getaffinity(pid))
    except (OSError, AttributeError):
        return {"scheduler": None, "priority": None, "nice": None, "cores": None}
    fifo = policy & ~getattr(os, "SCHED_RESET_ON_FORK", 0) == os.SCHED_FIFO
    return {"scheduler": "SCHED_FIFO" if fifo else "SCHED_OTHER", "priority": priority, "nice": nice, "cores": cores}


def _affinity(ready: Readiness, cores: Cores, timed: bool = True) -> None:
    """The loop's thread, and with it those that it starts, onto its core.

    timed   the loop will have a real-time priority, so that it can take a core from others
    """
    if cores.loop is None:
        if timed and len(ready.affinity) == 1:  # there is no choice, but there may be another plant
            _claim(ready, ready.affinity[0], "start it on other cores")
        return
    try:
        os.sched_setaffinity(0, {cores.loop})
    except OSError as error:
        ready.failed.append(f"core {cores.loop}: {error.strerror}")
        return
    ready.cores, ready.affinity = cores, [cores.loop]
    ready.done.append(f"core {cores.loop}")
    _claim(ready, cores.loop, "name other cores with --affinity")


def _claim(ready: Readiness, core: int, advice: str) -> None:
    """The core is ours, or it is told that it is another plant's too."""
    if not ready.claim.take(core):
        ready.failed.append(
            f"core {core} is shared with another plant that keeps time: both will miss deadlines; {advice}, "
            "or end that plant"
        )


def _memory(ready: Readiness, *, early: bool) -> None:
    """No page of ours is to be taken away, nor to be fetched within a step."""
    ready.memory_locked, failed = lock(early=early)
    ready.failed.extend([failed] if failed else [])
    ready.done.extend(["memory locked"] if ready.memory_locked else [])


def _timer_slack(ready: Readiness, libc: ctypes.CDLL) -> None:
    """Wake-ups at SCHED_OTHER come up to 50 us late by default, to save power: ask for 1 ns."""
    if libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0:
        ready.timer_slack_ns = int(libc.prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0))
        ready.done.append(f"timer slack {ready.timer_slack_ns} ns")
    else:
        ready.failed.append(f"timer slack: {os.strerror(ctypes.get_errno())}; wake-ups may come 50 us late")


def _dma_latency(ready: Readiness) -> None:
    """A core in a deep sleep takes long to wake: hold the door open while we run."""
    path = "/dev/cpu_dma_latency"
    try:
        ready._dma_file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        os.write(ready._dma_file, (0).to_bytes(4, sys.byteorder))
        ready.dma_latency_us = 0
        ready.done.append("no deep sleep of cores")
    except OSError as error:
        ready.failed.append(
            f"power states: {path}: {error.strerror}; "
            "allow writing to it, for example by a udev rule; or try a spinner, see docs/realtime.md"
        )


def _scheduler(ready: Readiness, priority: int) -> None:
    """SCHED_FIFO for this thread alone; children of it begin at SCHED_OTHER."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except OSError as error:
        ready.failed.append(
            f"SCHED_FIFO {priority}: {error.strerror}; "
            "raise rtprio in /etc/security/limits.conf or run with CAP_SYS_NICE"
        )
        return
    ready.scheduler, ready.priority = "SCHED_FIFO", priority
    ready.done.append(f"SCHED_FIFO {priority}")
