"""Connections that a library accepted: small messages leave at once, where the library lets them wait.

With Nagle's algorithm on, the second of two small messages waits until the first one is acknowledged, and a peer may
take 40 ms to do that.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat


def send_at_once(port: int) -> int:
    """Set TCP_NODELAY on all connections of this process whose own port it is; how many there are.

    Linux; elsewhere nothing happens, and messages may come later.
    """
    found = 0
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return 0
    for name in names:
        with contextlib.suppress(OSError):  # gone in the meantime, or not connected
            if not stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
                    continue
                connection.getpeername()  # the one that listens has none
                if connection.getsockname()[1] == port:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    found += 1
    return found
