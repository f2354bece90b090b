"""Bytes and addresses of untrusted peers: any fault is a Refusal with a short reason."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Callable
from math import isfinite
from typing import Any, NoReturn

from rtmms.base.errors import ModelError

# What a peer sent, read without trust: any fault is a Refusal with a short reason, nothing else is ever raised.


MAX_JSON_BYTES = 65536
Fuzzed = tuple[Callable[[bytes], object], list[bytes]]
"""Result of a function of the entry points rtmms.parsers: the code to try, and some valid samples."""


class Refusal(ValueError):
    """Refusal of a peer's message.

    Parameters
    ----------
    reason : str
        One word, for the counters.
    text : str
        Explanation for a person.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def read_json(data: bytes, longest: int = MAX_JSON_BYTES) -> Any:
    """Return a JSON document.

    Parameters
    ----------
    data : bytes
        The document.
    longest : int, default MAX_JSON_BYTES
        Most bytes.

    Returns
    -------
    Any
        The value.

    Raises
    ------
    Refusal
        With reason oversize, malformed or not_finite.

    Examples
    --------
    >>> read_json(b'{"depth": 1.5}')
    {'depth': 1.5}
    """
    if len(data) > longest:
        raise Refusal("oversize", f"expected a message of at most {longest} bytes, got {len(data)}")
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except Refusal:
        raise
    except (ValueError, RecursionError):  # also text that is no text, and whole numbers of thousands of digits
        raise Refusal("malformed", "expected JSON, got other bytes") from None


def finite(value: Any, place: str) -> float:
    """Return a finite number.

    Parameters
    ----------
    value : Any
        Any value.
    place : str
        Source of the value, for the error.

    Returns
    -------
    float
        The number.

    Raises
    ------
    Refusal
        With reason wrong_type or not_finite; it names the place.
    """
    if type(value) not in (int, float):
        raise Refusal("wrong_type", f"{place}: expected a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise Refusal("not_finite", f"{place}: expected a number that fits 64 bits, got a larger one") from None
    if not isfinite(number):
        raise Refusal("not_finite", f"{place}: expected a finite number, got {number}")
    return number


def numbers(value: Any, place: str, maximum: int = 1024) -> dict[str, float]:
    """Return a map of names to finite numbers.

    Parameters
    ----------
    value : Any
        Any value.
    place : str
        Source of the value, for the error.
    maximum : int, default 1024
        Most entries.

    Returns
    -------
    dict[str, float]
        Numbers by name.

    Raises
    ------
    Refusal
        If the value is something else.
    """
    if not isinstance(value, dict) or len(value) > maximum:
        raise Refusal(
            "wrong_type",
            f"{place}: expected an object of at most {maximum} numbers, got "
            f"{f'{len(value)} entries' if isinstance(value, dict) else type(value).__name__}",
        )
    return {str(name): finite(number, f"{place}: {str(name)[:40]!r}") for name, number in value.items()}


def values_in(message: Any) -> dict[str, float]:
    """Return the values of {"values": {name: number}}, the default form of commands.

    Parameters
    ----------
    message : Any
        The message.

    Returns
    -------
    dict[str, float]
        Numbers by name.

    Raises
    ------
    Refusal
        If the message is something else.
    """
    return numbers(message.get("values") if isinstance(message, dict) else None, "values")


def fuzz(parse: Callable[[bytes], object]) -> Callable[[bytes], str]:
    """Return a parser for fuzz tests: a Refusal is a result, any other exception is a finding.

    Parameters
    ----------
    parse : Callable[[bytes], object]
        The parser.

    Returns
    -------
    Callable[[bytes], str]
        Function from bytes to the reason of the refusal, or 'taken'.
    """

    def read(data: bytes) -> str:
        """Return the result of the parser.

        Parameters
        ----------
        data : bytes
            The message.

        Returns
        -------
        str
            Reason of the refusal, or 'taken'.
        """
        try:
            parse(data)
        except Refusal as refusal:
            return refusal.reason
        return "taken"

    return read


def _refuse_constant(word: str) -> NoReturn:
    raise Refusal("not_finite", f"expected finite numbers, got {word}")


# Who may drive through a bridge: addresses that a user names, where a protocol has no passwords.


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DRIVES = "drive the robot"
"""Text in every sentence on who may drive; `rtmms run --quiet` prints those alone."""


class Admission:
    """Addresses that may send to a socket, for protocols without passwords.

    Names are looked up once, here.

    Parameters
    ----------
    words : tuple[str, ...]
        HOST, HOST:PORT, [HOST]:PORT or NETWORK/BITS each; none: everyone.
    place : str, default 'peer'
        Name of the parameter, for errors.

    Raises
    ------
    ModelError
        If a text has another form, or a host has no address.

    Examples
    --------
    >>> Admission(("127.0.0.1:9002",)).admits(("127.0.0.1", 9002))
    True
    """

    def __init__(self, address_texts: tuple[str, ...], place: str = "peer") -> None:
        self.address_texts = address_texts
        self._known = [_network(word, place) for word in address_texts]

    def __bool__(self) -> bool:
        """Return whether the addresses are limited."""
        return bool(self._known)

    def admits(self, address: tuple[Any, ...]) -> bool:
        """Return whether an address may send.

        Parameters
        ----------
        address : tuple[Any, ...]
            Address as a socket has it: (host, port, ...).

        Returns
        -------
        bool
            True if it may.
        """
        if not self._known:
            return True
        try:
            host = ipaddress.ip_address(str(address[0]).partition("%")[0])
        except ValueError:
            return False
        if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is not None:
            host = host.ipv4_mapped
        return any(host in network and port in (0, address[1]) for network, port in self._known)

    def sentence(self, place: str) -> str:
        """Return a sentence for a user at the start.

        Parameters
        ----------
        place : str
            The socket, as 'UDP 127.0.0.1:9002'.

        Returns
        -------
        str
            The sentence.
        """
        if self._known:
            return f"only {', '.join(self.address_texts)} may {DRIVES} through {place}"
        return f"every program that reaches {place} can {DRIVES}; give peer=HOST:PORT to admit only that one"


def _network(word: str, place: str) -> tuple[Network, int]:
    host, port = word.strip(), 0
    if host.startswith("["):
        host, bracket, remaining = host[1:].partition("]")
        if not bracket or (remaining and not remaining.startswith(":")):
            raise _wrong(place, word)
        port = _port(remaining[1:], place, word) if remaining else 0
    elif host.count(":") == 1:
        host, _, remaining = host.partition(":")
        port = _port(remaining, place, word)
    try:
        return ipaddress.ip_network(host, strict=False), port
    except ValueError:
        pass
    if "/" in host or not host:
        raise _wrong(place, word)
    try:
        result = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except OSError as fault:
        raise ModelError(f"{place}: '{host}' has no address: {fault.strerror}") from None
    return ipaddress.ip_network(str(result[0][4][0]).partition("%")[0]), port


def _port(text: str, place: str, word: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 65536):
        raise _wrong(place, word)
    return int(text)


def _wrong(place: str, word: str) -> ModelError:
    return ModelError(f"{place}: expected HOST, HOST:PORT or NETWORK/BITS, got '{word}'")
