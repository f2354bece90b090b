"""How many files and connections the process may have open."""

from __future__ import annotations

import contextlib

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
