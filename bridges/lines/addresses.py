"""Addresses of peers from HOST:PORT; names are looked up once, because a look-up may take seconds."""

from __future__ import annotations

import socket
from typing import Any

import rtmms


def host_port(text: str, place: str, port: int = 0) -> tuple[str, int]:
    """Return host and port of a text.

    Parameters
    ----------
    text : str
        HOST:PORT, [HOST]:PORT for an address with colons, or HOST alone with a default port.
    place : str
        Source of the text, for the error.
    port : int, default 0
        Default port; 0 for none.

    Returns
    -------
    tuple[str, int]
        Host and port.

    Raises
    ------
    ModelError
        If the text has another form.

    Examples
    --------
    >>> host_port("[::1]:9002", "peer")
    ('::1', 9002)
    """
    host, colon, end = text.rpartition(":")
    if port and not colon:
        host, end = text, str(port)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not (host and end.isdecimal() and 0 < int(end) < 65536):
        raise rtmms.ModelError(f"{place}: expected HOST:PORT, got '{text}'")
    return host, int(end)


def family_of(host: str) -> int:
    """Return the address family of a numeric address.

    Parameters
    ----------
    host : str
        The address.

    Returns
    -------
    int
        The family.
    """
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def bind_udp(family: int, address: tuple[Any, ...], address_text: str, cannot: str = "cannot bind") -> socket.socket:
    """Return a bound UDP socket that never waits.

    Parameters
    ----------
    family : int
        Address family.
    address : tuple[Any, ...]
        Address to bind, as a socket takes it.
    address_text : str
        The address in the error.
    cannot : str, default 'cannot bind'
        First words of the error.

    Returns
    -------
    socket.socket
        The socket.

    Raises
    ------
    RtmmsError
        If the address cannot be bound; it names the address.
    """
    built = socket.socket(family, socket.SOCK_DGRAM)
    built.setblocking(False)
    try:
        built.bind(address)
    except OSError as fault:
        built.close()
        raise rtmms.RtmmsError(f"{cannot} {address_text}: {fault.strerror or fault}") from None
    return built


def resolve_receiver(text: str, place: str, port: int = 0, family: int = 0) -> tuple[int, tuple[Any, ...]]:
    """Return address family and numeric address of a receiver of datagrams.

    Parameters
    ----------
    text : str
        HOST:PORT, or HOST with a default port.
    place : str
        Source of the text, for the error.
    port : int, default 0
        Default port; 0 for none.
    family : int, default 0
        Required address family; 0 for any.

    Returns
    -------
    tuple[int, tuple[Any, ...]]
        Family and address.

    Raises
    ------
    ModelError
        If a name has no address.
    """
    host, number = host_port(text, place, port)
    try:
        result = socket.getaddrinfo(host, number, family, socket.SOCK_DGRAM)
    except OSError as fault:
        raise rtmms.ModelError(f"{place}: '{host}' has no address: {fault.strerror}") from None
    return result[0][0], result[0][4]
