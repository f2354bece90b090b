"""Which core does what: the loop and its I/O thread on one, what must not disturb them on the others."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtmms.errors import ModelError

NAME = "rtmms-core"
"""Begins the name by which a core is claimed."""


@dataclass(frozen=True, slots=True)
class Cores:
    """loop: the loop's thread and the step socket's; None where nothing is pinned. controllers: those that the run
    starts. others: the I/O thread of unauthenticated clients, recorder, display."""

    loop: int | None = None
    controllers: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


def allowed() -> list[int]:
    """Cores this process may use; [] where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def parse_affinity(text: str, cores: Sequence[int]) -> str | Cores:
    """'auto', 'off', LOOP or LOOP:CONTROLLERS (cores by number, several with commas); ModelError for anything else.

    cores   those that may be used; [] when that is not known
    """
    if text in ("auto", "off"):
        return text
    first, colon, rest = text.partition(":")
    words = [first, *(rest.split(",") if colon else [])]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise ModelError(f"affinity: expected auto, off, CORE or CORE:CORE,... (controllers' cores), got '{text}'")
    numbers = [int(word) for word in words]
    strange = [number for number in numbers if cores and number not in cores]
    if strange:
        raise ModelError(f"affinity: core {strange[0]} is not among those that may be used here: {list(cores)}")
    loop, controllers = numbers[0], tuple(sorted(set(numbers[1:]))) or (numbers[0],)
    return Cores(loop, controllers, _others(loop, cores))


class CoreClaim:
    """A core that this process keeps time on, as other plants of this machine see it; given back with the process.

    An abstract socket for each core: the name is free again when its holder ends, however that was, and is the same for
    all users. Where there are no such sockets (other systems), every claim is granted.
    """

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def take(self, core: int) -> bool:
        """Whether no other process holds this core; it is ours then."""
        if core in self._held or sys.platform != "linux":
            return True
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            made.bind(f"\0{NAME}-{core}")
        except OSError:
            made.close()
            return False
        self._held[core] = made
        return True

    def close(self) -> None:
        """Give all of them back."""
        for one in self._held.values():
            one.close()
        self._held.clear()


def choose(
    affinity: str | Cores, cores: Sequence[int], permitted: bool, free: Callable[[int], bool] = lambda core: True
) -> Cores:
    """Who goes where.

    free       whether no other plant keeps time on a core (`CoreClaim.take`): auto takes the last one that is free, and
               shares the last one where none is

    affinity   as parse_affinity gives it; auto pins where SCHED_FIFO is permitted and there are two cores: loop, I/O
               thread and controllers to the last, since the first serves most interrupts. A light controller is best
               there: what it is handed need not wake another core (docs/realtime.md).
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
    """Every thread of a process onto the cores; returns what failed, '' for nothing (also when it has ended)."""
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
    """The threads of a process, itself first; only itself where the system does not list them."""
    try:
        return sorted(int(path.name) for path in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return [pid]
