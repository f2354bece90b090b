"""Restriction of a library's sockets to datagrams of this machine.

Cyclone DDS receives on 0.0.0.0 whatever its interface. LCM joins its multicast group on a network even if it sends
nothing there. A socket filter makes the kernel drop such datagrams before the library sees them. It passes those over
loopback, and our own looped-back multicast. It needs no privilege, and exists on Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator

_SO_ATTACH_FILTER = 26
_ANCILLARY = 0xFFFFF000  # where a filter finds what the kernel knows of a datagram: linux/filter.h
_PKTTYPE = _ANCILLARY + 4
_IFINDEX = _ANCILLARY + 8
_LOAD = 0x20
_EQUAL = 0x15
_RETURN = 0x06
_LOOPED_BACK = 5  # PACKET_LOOPBACK


@contextlib.contextmanager
def from_here(log: Callable[[str], object]) -> Iterator[None]:
    """Restrict UDP sockets that this process opens in the block to datagrams of this machine, or log a warning.

    Parameters
    ----------
    log : Callable[[str], object]
        Called with the warning.

    Yields
    ------
    None
        Nothing.
    """
    before = _sockets()
    yield
    opened = _sockets() - before
    if sys.platform != "linux":
        log("on this system other machines can reach this port, and only a firewall can keep out their packets")
        return
    for inode, descriptor in opened:
        with contextlib.suppress(OSError):
            if os.fstat(descriptor).st_ino == inode:
                _keep(descriptor)


def _sockets() -> set[tuple[int, int]]:
    """Return inodes and descriptors of all sockets."""
    result = set()
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                    result.add((os.fstat(int(name)).st_ino, int(name)))
    return result


def _keep(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as item:
        if item.type != socket.SOCK_DGRAM or item.family not in (socket.AF_INET, socket.AF_INET6):
            return
        steps = (
            (_LOAD, 0, 0, _PKTTYPE), (_EQUAL, 2, 0, _LOOPED_BACK), (_LOAD, 0, 0, _IFINDEX),
            (_EQUAL, 0, 1, socket.if_nametoindex("lo")), (_RETURN, 0, 0, 0xFFFFFFFF), (_RETURN, 0, 0, 0),
        )  # fmt: skip
        code = b"".join(struct.pack("HBBI", *step) for step in steps)
        string_buffer = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("@HP", len(steps), ctypes.addressof(string_buffer))
        item.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
