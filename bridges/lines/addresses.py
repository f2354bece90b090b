"""Where a peer is, from HOST:PORT: looked up once, because looking up a name may take seconds."""

from __future__ import annotations

import socket
from typing import Any

import rtmms


def host_port(text: str, place: str, port: int = 0) -> tuple[str, int]:
    """HOST:PORT, [HOST]:PORT for an address with colons, or with a default port HOST alone; ModelError."""
    host, colon, end = text.rpartition(":")
    if port and not colon:
        host, end = text, str(port)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not (host and end.isdecimal() and 0 < int(end) < 65536):
        raise rtmms.ModelError(f"{place}: expected HOST:PORT, got '{text}'")
    return host, int(end)


def family_of(host: str) -> int:
    """The address family of a numeric address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def bound(family: int, address: tuple[Any, ...], address_text: str, cannot: str = "cannot bind") -> socket.socket:
    """A UDP socket at that address which never waits; RtmmsError that names which cannot be had."""
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    try:
        made.bind(address)
    except OSError as fault:
        made.close()
        raise rtmms.RtmmsError(f"{cannot} {address_text}: {fault.strerror or fault}") from None
    return made


def resolved(text: str, place: str, port: int = 0, family: int = 0) -> tuple[int, tuple[Any, ...]]:
    """The address family, and the numeric address to send datagrams to; ModelError for a name without one."""
    host, number = host_port(text, place, port)
    try:
        found = socket.getaddrinfo(host, number, family, socket.SOCK_DGRAM)
    except OSError as fault:
        raise rtmms.ModelError(f"{place}: '{host}' has no address: {fault.strerror}") from None
    return found[0][0], found[0][4]
