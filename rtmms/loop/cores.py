"""Which core does what: the loop and its I/O thread on one, what must not disturb them on the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtmms.errors import ModelError


@dataclass(frozen=True, slots=True)
class Cores:
    """loop: the loop's thread and the step socket's; None where nothing is pinned. controllers: those that the run
    starts. others: strangers' I/O thread, recorder, display."""

    loop: int | None = None
    controllers: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


def allowed() -> list[int]:
    """Cores this process may use; [] where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def parse_affinity(text: str, cores: Sequence[int]) -> str | int:
    """'auto', 'off', or one of the cores; ModelError for anything else."""
    if text in ("auto", "off"):
        return text
    if not text.isdigit():
        raise ModelError(f"affinity: expected auto, off or the number of a core, got '{text}'")
    if cores and int(text) not in cores:
        raise ModelError(f"affinity: core {text} is not among those that may be used here: {list(cores)}")
    return int(text)


def choose(affinity: str | int, cores: Sequence[int], permitted: bool) -> Cores:
    """Who goes where.

    affinity   as parse_affinity gives it; auto pins where SCHED_FIFO is permitted and there are two cores: to the last
               one, since the first serves most interrupts
    """
    if affinity == "off" or not cores or (affinity == "auto" and (not permitted or len(cores) < 2)):
        return Cores()
    loop = affinity if isinstance(affinity, int) else cores[-1]
    others = tuple(core for core in cores if core != loop) or (loop,)
    x = os.environ.get("RTMMS_X", "loop")
    return Cores(loop, {"loop": (loop,), "free": tuple(cores), "other": others}[x], others)


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
