"""Memory that is there before a step needs it, and stays."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Any

MOST = 4096


def raise_limit() -> int:
    """Up to what the system allows without asking, at most MOST; what is more stays. Returns the limit, -1 for none or
    where the system has no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return -1
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return -1
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft


_MCL_CURRENT, _MCL_FUTURE = 1, 2
_M_TRIM_THRESHOLD, _M_TOP_PAD = -1, -2
_HEAP_PAD = 8 << 20
_OBJECTS, _OBJECT_BYTES, _KEPT_EACH = 40_000, 200, 256
_DEEP = 400


def lock(*, early: bool) -> tuple[bool, str]:
    """Lock all pages of this process, and all it maps later where nothing limits that. (locked, what failed)

    early   before everything else is loaded: only where later mappings are covered too
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    # a limit would turn every allocation beyond it into a failure
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
    """Touch what steps will use: heap that is not given back, room in Python's own arenas, stack.

    Returns what must be kept for as long as the room is to stay: a few objects in each arena, so that none is unmapped
    when it empties and mapped again within a step.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(_M_TRIM_THRESHOLD, 1 << 30)
            libc.mallopt(_M_TOP_PAD, _HEAP_PAD)
    objects = [bytes(_OBJECT_BYTES) for _ in range(_OBJECTS)]
    kept: list[Any] = objects[::_KEPT_EACH]
    nested: list[Any] = []
    for _ in range(_DEEP):
        nested = [nested]
    repr(nested)  # recurses in C: some 100 KiB of stack
    return kept
