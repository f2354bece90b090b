"""A peer in plain sockets that speaks ZMTP as it likes."""

from __future__ import annotations

import contextlib
import socket
import struct

from rtmms.wire.stream.zmtp import ready

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
PING = b"\x04\x07\x04PING\x00\x00"


def message(body: bytes, more: bool = False) -> bytes:
    return (
        bytes([more, len(body)]) + body if len(body) < 256 else bytes([2 | more]) + struct.pack(">Q", len(body)) + body
    )


def connected(endpoint: str) -> socket.socket:
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def shaken(endpoint: str, kind: bytes = b"DEALER") -> socket.socket:
    """Connected, and through the handshake as far as the other side goes along."""
    peer = connected(endpoint)
    peer.sendall(GREETING)
    got = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while len(got) < 64 and (data := peer.recv(64 - len(got))):
            got += data
        peer.sendall(ready(kind))
    return peer


def pour(peer: socket.socket, data: bytes, maximum: int) -> int:
    """Send as much of `data`, over and over, as goes without waiting for long; bytes that went."""
    peer.settimeout(0.2)
    sent = 0
    with contextlib.suppress(OSError):
        while sent < maximum:
            sent += peer.send(data)
    return sent


def reset(peer: socket.socket) -> None:
    """Break the connection off, so that what lies unread is lost."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
