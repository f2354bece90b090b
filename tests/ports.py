"""Network ports for tests whose peers need a number: reserved, so that nobody else can have them.

The operating system hands out ports of its own range to whoever asks for any port, a moment later perhaps the one that
a test just saw free. These lie below that range, and a lock per port keeps two test processes apart.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from pathlib import Path
from typing import IO

FIRST = 10240
"""First port: above most well-known services."""
LAST = 29999
"""Last port: below the ranges from which Linux (32768), macOS, and Windows (49152) choose."""

_reserved: list[IO[str]] = []
"""Open lock files: the locks last as long as this process."""


def reserve_ports(count: int = 1) -> int:
    """Reserve `count` ports in a row for this process, free for TCP and UDP, and return the first."""
    start = FIRST + os.getpid() * 8 % (LAST - FIRST)
    for port in (*range(start, LAST - count, count), *range(FIRST, start, count)):
        with contextlib.ExitStack() as locks:
            files = [file for file in (_lock(each) for each in range(port, port + count)) if file is not None]
            for file in files:
                locks.enter_context(file)
            if len(files) == count and all(_is_free(each) for each in range(port, port + count)):
                locks.pop_all()
                _reserved.extend(files)
                return port
    raise RuntimeError(f"expected {count} free ports in a row from {FIRST} to {LAST}, found none")


def _lock(port: int) -> IO[str] | None:
    """The locked file of a port, None where another process, or this one, has it."""
    folder = Path(tempfile.gettempdir()) / f"rtmms-test-ports-{os.getuid() if hasattr(os, 'getuid') else 0}"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = (folder / str(port)).open("w")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows: its workers start at different ports
        return file
    except OSError:
        file.close()
        return None
    return file


def _is_free(port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True
