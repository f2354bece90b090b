"""Who may drive through a bridge: addresses that a user names, where a protocol has no passwords."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from rtmms.errors import ModelError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DRIVES = "drive the robot"
"""Stands in every sentence on who may; `rtmms run --quiet` prints those alone."""


class Admission:
    """The addresses that may speak to a socket: HOST, HOST:PORT, [HOST]:PORT or NETWORK/BITS each; none: everyone.

    Names are looked up once, here. ModelError for words that make no sense, with the parameter's name.
    """

    def __init__(self, words: tuple[str, ...], place: str = "peer") -> None:
        self.words = words
        self._known = [_network(word, place) for word in words]

    def __bool__(self) -> bool:
        return bool(self._known)

    def admits(self, address: tuple[Any, ...]) -> bool:
        """address as a socket tells it: (host, port, ...)."""
        if not self._known:
            return True
        try:
            host = ipaddress.ip_address(str(address[0]).partition("%")[0])
        except ValueError:
            return False
        if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is not None:
            host = host.ipv4_mapped
        return any(host in network and port in (0, address[1]) for network, port in self._known)

    def told(self, place: str) -> str:
        """What a user should know at the start. place: the socket, as 'UDP 127.0.0.1:9002'."""
        if self._known:
            return f"only {', '.join(self.words)} may {DRIVES} through {place}"
        return f"every program that reaches {place} can {DRIVES}; peer=HOST:PORT keeps others out"


def _network(word: str, place: str) -> tuple[Network, int]:
    host, port = word.strip(), 0
    if host.startswith("["):
        host, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _wrong(place, word)
        port = _port(rest[1:], place, word) if rest else 0
    elif host.count(":") == 1:
        host, _, rest = host.partition(":")
        port = _port(rest, place, word)
    try:
        return ipaddress.ip_network(host, strict=False), port
    except ValueError:
        pass
    if "/" in host or not host:
        raise _wrong(place, word)
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except OSError as fault:
        raise ModelError(f"{place}: '{host}' has no address: {fault.strerror}") from None
    return ipaddress.ip_network(str(found[0][4][0]).partition("%")[0]), port


def _port(text: str, place: str, word: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 65536):
        raise _wrong(place, word)
    return int(text)


def _wrong(place: str, word: str) -> ModelError:
    return ModelError(f"{place}: expected HOST, HOST:PORT or NETWORK/BITS, got '{word}'")
