"""The processes of a run onto their cores and priorities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

    from rtmms.cli.running.children import Child
    from rtmms.loop.machine.realtime import Readiness


def keep_off(processes: Iterable[Popen[bytes] | None], ready: Readiness) -> None:
    """Processes just started, which have our core from us: onto the others. What the run starts loads there, and what
    only watches or writes stays there."""
    from rtmms.loop.machine.cores import pin

    for process in processes:
        if process is not None:
            failed = pin(process.pid, ready.cores.others)
            ready.failed.extend([failed] if failed else [])


def put_together(children: Iterable[Child], ready: Readiness) -> None:
    """Lockstep with one controller: the two alternate, so on one core neither waits for another one to wake up, which
    takes five times as long as all the rest. Its other threads, if any, go where they like."""
    import os

    from rtmms.loop.machine.cores import Cores, allowed

    pids, cores = [child.process.pid for child in children], allowed()
    if len(pids) != 1 or len(cores) < 2 or not hasattr(os, "sched_setaffinity"):
        return
    core = cores[-1]
    try:
        os.sched_setaffinity(pids[0], {core})
        os.sched_setaffinity(0, {core})
    except OSError as error:
        ready.failed.append(f"plant and controller on core {core}: {error.strerror}")
        return
    ready.cores, ready.affinity = Cores(core, (core,), tuple(c for c in cores if c != core)), [core]
    ready.done.append(f"plant and controller on core {core}")


def place_controllers(children: Iterable[Child], ready: Readiness, priority: str) -> None:
    """Controllers that are loaded and warm onto their core; raised only where a number was asked for, favoured where
    the loop is."""
    from rtmms.loop.machine.cores import pin
    from rtmms.loop.machine.realtime import CHILD_BELOW, favour_child, parse_priority, raise_child, standing

    number, explicit = parse_priority(priority)
    for child in children:
        failed = pin(child.process.pid, ready.cores.controllers)
        if not explicit and ready.asked is not None:
            favour_child(child.process.pid)
        if not failed and explicit and ready.asked is not None and number is not None:
            failed = raise_child(child.process.pid, number - CHILD_BELOW)
        ready.failed.extend([failed] if failed else [])
        ready.children.append({"name": child.peer, **standing(child.process.pid)})
