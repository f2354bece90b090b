"""Machine of a run: cores, scheduler, memory, and the costs of a timer, a wake-up and a system call."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns, sleep
from typing import Any

from rtmms.base.errors import ModelError

# The cores: the loop and its I/O thread on one, and everything that must not disturb them on the others.


NAME = "rtmms-core"
"""First part of the name by which a core is claimed."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Cores of a run.

    Parameters
    ----------
    loop : int | None, optional
        Core of the loop's thread and the step socket's; None if nothing is pinned.
    controllers : tuple[int, ...], optional
        Cores of the controllers that the run starts.
    others : tuple[int, ...], optional
        Cores of the I/O thread of unauthenticated clients, recorder and display.
    """

    loop: int | None = None
    controllers: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


def allowed_cores() -> list[int]:
    """Return the cores that this process may use.

    Returns
    -------
    list[int]
        Numbers of cores; [] if the system does not report them.
    """
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def parse_affinity(text: str, cores: Sequence[int]) -> str | Cores:
    """Return the cores of a text: 'auto', 'off', LOOP or LOOP:CONTROLLERS.

    Cores are numbers, several separated by commas.

    Parameters
    ----------
    text : str
        The text.
    cores : Sequence[int]
        Cores that may be used; [] if unknown.

    Returns
    -------
    str | Cores
        'auto', 'off' or the cores.

    Raises
    ------
    ModelError
        If the text has another form, or names another core.

    Examples
    --------
    >>> parse_affinity("3:1,2", [0, 1, 2, 3])
    Cores(loop=3, controllers=(1, 2), others=(0, 1, 2))
    """
    if text in ("auto", "off"):
        return text
    first, colon, remaining = text.partition(":")
    core_texts = [first, *(remaining.split(",") if colon else [])]
    if not all(word.isascii() and word.isdigit() for word in core_texts):
        raise ModelError(
            "affinity: expected auto, off, CORE of the loop, or CORE:CORE,... (after the colon: cores of the "
            f"controllers), got '{text}'"
        )
    numbers = [int(word) for word in core_texts]
    strange = [number for number in numbers if cores and number not in cores]
    if strange:
        raise ModelError(
            f"affinity: core {strange[0]} is not available to this process; expected cores among {list(cores)}"
        )
    loop, controllers = numbers[0], tuple(sorted(set(numbers[1:]))) or (numbers[0],)
    return Cores(loop, controllers, _others(loop, cores))


class CoreClaim:
    """Claim of a core for this plant, visible to other plants of this machine.

    Each core has an abstract socket. Its name is free again when the holder ends in any way, and is the same for all
    users. Without such sockets (other systems), every claim is granted.
    """

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def take(self, core: int) -> bool:
        """Claim a core.

        Parameters
        ----------
        core : int
            Number of the core.

        Returns
        -------
        bool
            False if another process holds it.
        """
        if core in self._held or sys.platform != "linux":
            return True
        built = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            built.bind(f"\0{NAME}-{core}")
        except OSError:
            built.close()
            return False
        self._held[core] = built
        return True

    def close(self) -> None:
        """Release all claims."""
        for item in self._held.values():
            item.close()
        self._held.clear()


def choose(
    affinity: str | Cores, cores: Sequence[int], permitted: bool, free: Callable[[int], bool] = lambda core: True
) -> Cores:
    """Return the cores of a run.

    'auto' pins if SCHED_FIFO is permitted and there are two cores. Loop, I/O thread and controllers use the last core,
    since the first serves most interrupts. A light controller is best there: its messages need not wake another core
    (docs/realtime.md).

    Parameters
    ----------
    affinity : str | Cores
        Result of `parse_affinity`.
    cores : Sequence[int]
        Cores that may be used.
    permitted : bool
        Whether SCHED_FIFO is permitted.
    free : Callable[[int], bool], optional
        Returns whether no other plant claims a core (`CoreClaim.take`). 'auto' takes the last free one, and shares the
        last one if none is.

    Returns
    -------
    Cores
        The cores.
    """
    if isinstance(affinity, Cores):
        return affinity
    if affinity == "off" or not permitted or len(cores) < 2:
        return Cores()
    loop = next((core for core in reversed(cores) if free(core)), cores[-1])
    return Cores(loop, (loop,), _others(loop, cores))


def _others(loop: int, cores: Sequence[int]) -> tuple[int, ...]:
    return tuple(core for core in cores if core != loop) or (loop,)


def pin(pid: int, cores: Iterable[int]) -> str:
    """Pin every thread of a process to cores.

    Parameters
    ----------
    pid : int
        Id of the process.
    cores : Iterable[int]
        The cores.

    Returns
    -------
    str
        A failure as text; empty for success, also if the process has ended.
    """
    wanted = set(cores)
    if not wanted or not hasattr(os, "sched_setaffinity"):
        return ""
    for thread in threads(pid):
        try:
            os.sched_setaffinity(thread, wanted)
        except ProcessLookupError:
            continue
        except OSError as error:
            return f"cores {sorted(wanted)} for process {pid}: {error.strerror}"
    return ""


def threads(pid: int) -> list[int]:
    """Return the threads of a process.

    Parameters
    ----------
    pid : int
        Id of the process.

    Returns
    -------
    list[int]
        Ids of the threads, itself first. Only itself if the system does not list them.
    """
    try:
        return sorted(int(path.name) for path in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return [pid]


# Memory that is allocated before a step needs it, and remains.


MAX_OPEN_FILES = 4096


def raise_limit() -> int:
    """Raise the limit of open files to the permitted one, at most MAX_OPEN_FILES; a higher limit remains.

    Returns
    -------
    int
        The limit; -1 for none, or if the system has no such limit.
    """
    try:
        import resource
    except ImportError:  # Windows
        return -1
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return -1
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft


_MCL_CURRENT = 1
_MCL_FUTURE = 2
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_HEAP_PAD = 8 << 20
_OBJECTS = 40_000
_OBJECT_BYTES = 200
_KEPT_STRIDE = 256
_STACK_DEPTH = 400


def lock(*, early: bool) -> tuple[bool, str]:
    """Lock all pages of this process, and all later ones if no limit applies.

    Parameters
    ----------
    early : bool
        Whether all other modules are still to be loaded. Then it locks only if later mappings are covered, too.

    Returns
    -------
    tuple[bool, str]
        Whether the pages are locked, and a failure as text.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    # beyond a limit every allocation would fail
    unlimited = hard == resource.RLIM_INFINITY or os.geteuid() == 0
    if early and not unlimited:
        return False, ""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | (_MCL_FUTURE if unlimited else 0)) == 0:
        return True, ""
    if early:
        return False, ""
    limit = "unlimited" if hard == resource.RLIM_INFINITY else f"{hard >> 10} KiB"
    return False, (
        f"memory lock: {os.strerror(ctypes.get_errno())} (limit {limit}); "
        "raise memlock in /etc/security/limits.conf or run with CAP_IPC_LOCK"
    )


def unlock() -> None:
    """Undo `lock`."""
    ctypes.CDLL(None).munlockall()


def prefault() -> list[Any]:
    """Touch memory that steps will use: heap that is not returned, room in Python's arenas, stack.

    Returns
    -------
    list[Any]
        Objects that must live as long as the room: a few in each arena, so that no arena is unmapped when it empties
        and mapped again within a step.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(_M_TRIM_THRESHOLD, 1 << 30)
            libc.mallopt(_M_TOP_PAD, _HEAP_PAD)
    objects = [bytes(_OBJECT_BYTES) for _ in range(_OBJECTS)]
    stored: list[Any] = objects[::_KEPT_STRIDE]
    nested: list[Any] = []
    for _ in range(_STACK_DEPTH):
        nested = [nested]
    repr(nested)  # recurses in C: some 100 KiB of stack
    return stored


# Preparation of this process for real time. The code tries each part and reports it as done, or as failed with a
# remedy.
#
# The order matters (docs/realtime.md): core, memory, timer, power states; then sockets, the plant and its compilation;
# then, last of all, the scheduler. No failure ends the run: without privileges the loop runs less evenly.


AUTO_PRIORITY = 80
CHILD_BELOW = 10
CHILD_RTTIME_US = 500_000
CHILD_NICE = -10
_PR_SET_TIMERSLACK = 29
_PR_GET_TIMERSLACK = 30


@dataclass(slots=True)
class Readiness:
    """Result of the set-up for real time.

    `done` lists the parts in their order. `failed` has a remedy for each of the others.

    Parameters
    ----------
    asked : int | None, optional
        Requested priority; None for none.
    scheduler : str, default 'SCHED_OTHER'
        'SCHED_FIFO' or 'SCHED_OTHER'.
    priority : int, default 0
        Priority; 0 under SCHED_OTHER.
    memory_locked : bool, default False
        Whether the memory is locked.
    affinity : list[int], optional
        Cores of the loop's thread.
    cores : Cores, optional
        Pinned cores of each part.
    allowed : list[int], optional
        Cores before the pinning.
    timer_slack_ns : int | None, optional
        Timer slack, ns; None if not set.
    dma_latency_us : int | None, optional
        Latency limit of the power states, us; None if not set.
    done, failed : list[str], optional
        Sentences about the parts.
    claim : CoreClaim, optional
        Claim of the loop's core.
    children : list[dict[str, Any]], optional
        Name, scheduler, priority and cores of each controller that was started.
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
        """Return the object `realtime` of the final report.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        return {
            "scheduler": self.scheduler, "priority": self.priority, "memory_locked": self.memory_locked,
            "affinity": self.affinity, "controllers": list(self.cores.controllers),
            "children": list(self.children), "done": list(self.done), "failed": list(self.failed),
        }  # fmt: skip

    def close(self) -> None:
        """Undo settings that outlive a run: power state, memory, scheduler, core.

        The process may then continue, for example to draw a figure.
        """
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
    """Return the priority of a text.

    Parameters
    ----------
    text : str
        'auto', 'off' or a SCHED_FIFO priority from 1 to 99.

    Returns
    -------
    tuple[int | None, bool]
        The priority or None, and whether it was requested by number.

    Raises
    ------
    ModelError
        If the text is something else.

    Examples
    --------
    >>> parse_priority("off")
    (None, False)
    """
    if text == "auto":
        return AUTO_PRIORITY, False
    if text == "off":
        return None, False
    if text.isdigit() and 1 <= int(text) <= 99:
        return int(text), True
    raise ModelError(f"priority: expected auto, off or a whole number from 1 to 99, got '{text}'")


def prepare(priority: int | None, affinity: str = "auto") -> Readiness:
    """Set up the parts that precede the sockets and the plant.

    Parameters
    ----------
    priority : int | None
        SCHED_FIFO priority; None leaves the machine unchanged.
    affinity : str, default 'auto'
        Text of `parse_affinity`.

    Returns
    -------
    Readiness
        The result so far.

    Raises
    ------
    ModelError
        If the affinity is invalid.
    """
    ready = Readiness(asked=priority, affinity=allowed_cores(), allowed=allowed_cores())
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
    """Return whether SCHED_FIFO is permitted at a priority, by trying it.

    Parameters
    ----------
    priority : int | None
        The priority.

    Returns
    -------
    bool
        True if it is.
    """
    with at_priority(priority) as granted:
        return granted


@contextmanager
def at_priority(priority: int | None) -> Iterator[bool]:
    """Run the block at a SCHED_FIFO priority, if that is permitted.

    Parameters
    ----------
    priority : int | None
        The priority.

    Yields
    ------
    bool
        Whether it is permitted.
    """
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
    """Set up the parts that come last, when everything is loaded: memory, garbage, then the scheduler.

    Parameters
    ----------
    ready : Readiness
        The result so far, changed in place.
    """
    if ready.asked is None or sys.platform != "linux":
        return
    ready._room = prefault()
    if not ready.memory_locked:
        _memory(ready, early=False)
    gc.collect()
    gc.freeze()  # the loop disables collections, and loaded objects need no check again
    ready.done.append("garbage collected")
    _scheduler(ready, ready.asked)


def raise_child(pid: int, priority: int) -> str:
    """Give a child a SCHED_FIFO priority, and a limit of its time without sleep.

    Parameters
    ----------
    pid : int
        Id of the process.
    priority : int
        The priority.

    Returns
    -------
    str
        A failure as text; empty for success.
    """
    if sys.platform != "linux":
        return "priorities of controllers: not available on this system"
    import resource

    try:
        resource.prlimit(pid, resource.RLIMIT_RTTIME, (CHILD_RTTIME_US, CHILD_RTTIME_US))
        for thread in threads(pid):  # the peer's I/O thread passes on all messages, so it needs the same priority
            os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(max(1, priority)))
    except OSError as error:
        return f"priority {priority} of process {pid}: {error.strerror}"
    return ""


def favour_child(pid: int) -> None:
    """Give a child precedence over ordinary processes, if permitted; those still have their share.

    Parameters
    ----------
    pid : int
        Id of the process.
    """
    if not hasattr(os, "setpriority"):
        return
    with suppress(OSError):
        for thread in threads(pid):
            os.setpriority(os.PRIO_PROCESS, thread, CHILD_NICE)


def scheduling(pid: int) -> dict[str, Any]:
    """Return how a process is scheduled, as far as known.

    Parameters
    ----------
    pid : int
        Id of the process.

    Returns
    -------
    dict[str, Any]
        Scheduler, priority, nice value and cores; None for unknown ones.
    """
    try:
        nice = os.getpriority(os.PRIO_PROCESS, pid)
        policy, priority = os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority
        cores = sorted(os.sched_getaffinity(pid))
    except (OSError, AttributeError):
        return {"scheduler": None, "priority": None, "nice": None, "cores": None}
    fifo = policy & ~getattr(os, "SCHED_RESET_ON_FORK", 0) == os.SCHED_FIFO
    return {"scheduler": "SCHED_FIFO" if fifo else "SCHED_OTHER", "priority": priority, "nice": nice, "cores": cores}


def _affinity(ready: Readiness, cores: Cores, timed: bool = True) -> None:
    """Pin the loop's thread, and the threads that it starts, to its core.

    `timed` states that the loop will have a real-time priority, so that it can take a core from others.
    """
    if cores.loop is None:
        if timed and len(ready.affinity) == 1:  # there is one core only, but another plant may use it
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
    """Claim the core, or warn of another plant on it."""
    if not ready.claim.take(core):
        ready.failed.append(
            f"core {core} is shared with another plant that keeps time: both will miss deadlines; {advice}, "
            "or end that plant"
        )


def _memory(ready: Readiness, *, early: bool) -> None:
    """Lock the memory, so that no page is removed, or fetched within a step."""
    ready.memory_locked, failed = lock(early=early)
    ready.failed.extend([failed] if failed else [])
    ready.done.extend(["memory locked"] if ready.memory_locked else [])


def _timer_slack(ready: Readiness, libc: ctypes.CDLL) -> None:
    """Set the timer slack to 1 ns; by default wake-ups at SCHED_OTHER are up to 50 us late to save power."""
    if libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0:
        ready.timer_slack_ns = int(libc.prctl(_PR_GET_TIMERSLACK, 0, 0, 0, 0))
        ready.done.append(f"timer slack {ready.timer_slack_ns} ns")
    else:
        ready.failed.append(f"timer slack: {os.strerror(ctypes.get_errno())}; wake-ups may come 50 us late")


def _dma_latency(ready: Readiness) -> None:
    """Prevent deep sleep of the cores while the run lasts, because they wake up slowly from it."""
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
    """Set SCHED_FIFO for this thread alone; its children begin at SCHED_OTHER."""
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


# Costs of a timer, a wake-up and a system call on this machine. Every exchange has them, and no code can avoid them.


WAIT_SAMPLES = 40
MIN_WAIT_S = 1e-6


def shortest_wait_s(samples: int = WAIT_SAMPLES) -> float:
    """Return the shortest wait that this machine can keep: the p90 of waits of 1 us on a descriptor.

    It is 5 us at SCHED_FIFO, and 60 us without any set-up. A shorter deadline cannot be kept, because a shorter wait
    ends later than that.

    Parameters
    ----------
    samples : int, default WAIT_SAMPLES
        Number of waits.

    Returns
    -------
    float
        Time, s.
    """
    durations_ns: list[int] = []
    item, other = socket.socketpair()
    with item, other:
        for _ in range(samples):
            begun = monotonic_ns()
            select.select([item], (), (), MIN_WAIT_S)
            durations_ns.append(monotonic_ns() - begun)
    return sorted(durations_ns)[(9 * samples) // 10] * 1e-9


SAMPLES = 200
_PAUSE_S = 3e-4
_TIMEOUT_S = 1.0

COSTS = {
    "wake_up": "late wake-up",
    "past_sleep": "sleep to a past instant",
    "timer": "time-out of a wait",
    "call_hot": "repeated system call",
    "call_cold": "system call after a sleep",
}
"""Measured costs with their names for a person, each the median in us."""


def costs(samples: int = SAMPLES) -> dict[str, float]:
    """Measure each of COSTS as this thread is scheduled now; takes 0.3 s.

    Parameters
    ----------
    samples : int, default SAMPLES
        Number of samples of each.

    Returns
    -------
    dict[str, float]
        Medians by name, us.
    """
    here, there = socket.socketpair()
    with here, there:
        there.send(b"1")
        ready = select.epoll() if hasattr(select, "epoll") else None
        result = {
            "wake_up": _median(_late, samples), "past_sleep": _median(lambda: _timed(lambda: sleep(0.0)), samples),
            "call_hot": _median(lambda: _timed(os.getppid), samples), "call_cold": _median(_cold, samples),
        }  # fmt: skip
        if ready is not None:
            ready.register(here.fileno(), select.EPOLLIN)
            # a waiting message ends the wait at once, so the cost is that of setting and cancelling the timer
            without = _median(lambda: _timed(ready.poll), samples)
            result["timer"] = _median(lambda: _timed(lambda: ready.poll(_TIMEOUT_S)), samples) - without
            ready.close()
    return {name: round(result[name], 2) for name in COSTS if name in result}


def _median(item: Callable[[], int], samples: int) -> float:
    item()
    return sorted(item() for _ in range(samples))[samples // 2] * 1e-3


def _timed(call: Callable[[], object]) -> int:
    begun = monotonic_ns()
    call()
    return monotonic_ns() - begun


def _late() -> int:
    due = monotonic_ns() + int(_PAUSE_S * 1e9)
    sleep(_PAUSE_S)
    return monotonic_ns() - due


def _cold() -> int:
    sleep(_PAUSE_S)
    return _timed(os.getppid)
