"""Datagrams of a bridge's socket: reading, sending and counting."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from rtmms.bridging.counters import Counters

MAX_READS = 64
"""Datagrams that one event of a socket reads, so that a flood leaves time for the rest of the bridge."""


def datagrams(source: socket.socket, max_bytes: int, reads: int = MAX_READS) -> Iterator[tuple[bytes, Any]]:
    """Yield the waiting datagrams of a socket that does not block.

    Parameters
    ----------
    source : socket.socket
        Socket of datagrams, without blocking. A closed one yields nothing.
    max_bytes : int
        Bytes of a datagram that are kept; the rest of a longer one is lost.
    reads : int, default MAX_READS
        Most datagrams.

    Yields
    ------
    tuple[bytes, Any]
        Bytes, and the address of the sender.
    """
    for _ in range(reads):
        try:
            received = source.recvfrom(max_bytes)
        except OSError:  # nothing more, or a datagram of ours found nobody
            return
        yield received


def send(source: socket.socket, data: bytes, place: Any, counts: Counters) -> None:
    """Send a datagram, and count it as `sent`, or as `dropped` if the system refuses it.

    Parameters
    ----------
    source : socket.socket
        Socket of datagrams.
    data : bytes
        One datagram.
    place : Any
        Address of the receiver, as `socket.sendto` takes it.
    counts : Counters
        Counters of the bridge.
    """
    try:
        source.sendto(data, place)
        counts.add("sent")
    except OSError:
        counts.add("dropped")
