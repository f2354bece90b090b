"""Hello of a peer: its fields, each with its reading, and its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from rtmms.wire.protocol.limits import (
    MAX_AHEAD_STEPS,
    MAX_EVERY_STEPS,
    MAX_NAME_LENGTH,
    MAX_PATTERN_LENGTH,
    MAX_PATTERNS,
)
from rtmms.wire.protocol.messages import PROTOCOL, PROTOCOLS, Reason, Refusal, in_version, name_in, peer_text
from rtmms.wire.protocol.peer_values import read_settable, read_tracks

HOLD = "hold"
LINEAR = "linear"
INTERPOLATIONS = (HOLD, LINEAR)
"""Interpolations between two commands of a claimant that answers each n-th state.

`hold` applies the last values. `linear` applies a straight line from the present values to the new ones, over n steps.
"""


def _wrong(text: str) -> Refusal:
    return Refusal(Reason.WRONG_TYPE, f"hello: {text}")


def _name(value: Any, _: Any) -> str:
    if type(value) is not str or not 0 < len(value) <= MAX_NAME_LENGTH or not value.isprintable():
        raise _wrong(f"name must be 1 to {MAX_NAME_LENGTH} printable characters, got {peer_text(value)}")
    return value


def _robot(value: Any, _: Any) -> str:
    if type(value) is not str or len(value) > MAX_NAME_LENGTH or not value.isprintable():
        raise _wrong(f"robot must be at most {MAX_NAME_LENGTH} printable characters, got {peer_text(value)}")
    return value


def _token(value: Any, _: Any) -> str:
    if value is None:
        return ""
    if type(value) is not str or len(value) > 256:
        raise _wrong(f"token must be text, got {type(value).__name__}")
    return value


def _patterns(field: str) -> Callable[[Any, Any], tuple[str, ...]]:
    def read(value: Any, _: Any) -> tuple[str, ...]:
        if value is None:
            return ()
        if type(value) is not list or len(value) > MAX_PATTERNS:
            raise _wrong(f"{field} must be a list of at most {MAX_PATTERNS} patterns, got {peer_text(value)}")
        for item in value:
            if type(item) is not str or not 0 < len(item) <= MAX_PATTERN_LENGTH:
                raise _wrong(
                    f"{field}: a pattern must be text of 1 to {MAX_PATTERN_LENGTH} characters, got {peer_text(item)}"
                )
        return tuple(value)

    return read


def _every(value: Any, _: Any) -> int:
    if type(value) is not int or not 1 <= value <= MAX_EVERY_STEPS:
        raise _wrong(f"every must be a whole number from 1 to {MAX_EVERY_STEPS}, got {peer_text(value)}")
    return value


def _delay(value: Any, read: Mapping[str, Any]) -> int:
    every = read["every"]
    maximum = min(MAX_EVERY_STEPS, MAX_AHEAD_STEPS * every)
    if type(value) is not int or not 0 <= value <= maximum:
        raise _wrong(f"delay must be a whole number from 0 to {maximum} for every={every}, got {peer_text(value)}")
    return value


def _ticks(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(f"ticks must be true or false, got {peer_text(value)}")
    return value


def _identity(value: Any, _: Any) -> bytes:
    if type(value) is not bytes or len(value) not in (0, 16):
        raise _wrong(f"identity must be the 16 bytes of a welcome, got {peer_text(value)}")
    return value


def _interpolation(value: Any, _: Any) -> str:
    if value not in INTERPOLATIONS:
        raise _wrong(f"interpolation must be one of {', '.join(INTERPOLATIONS)}; got {peer_text(value)}")
    return str(value)


def _declared(
    read: Callable[[Any, Any], Any], default: Any = MISSING, *, always: bool = False, same: bool = True
) -> Any:
    """Return a field of a hello.

    `read` takes the received value and the fields before it by name; it returns the value or raises Refused. A field
    with `always` is sent even with its default. A field with `same` counts when two hellos are compared.
    """
    built: Any = {"default_factory": dict} if default == {} else {"default": default}
    return field(compare=same, metadata={"read": read, "always": always}, **built)


@dataclass(frozen=True, slots=True)
class Hello:
    """Hello of a peer.

    Each field declares how it is read, and has the same form on the wire. Two hellos are equal if they ask for the same
    place; the selection of outputs does not count.

    Parameters
    ----------
    name : str, optional
        Name of the peer.
    claim : tuple[str, ...], optional
        Patterns of the actuators that the peer claims.
    outputs : tuple[str, ...], optional
        Patterns of the outputs that its states contain.
    token : str, optional
        Token of the session; empty for none.
    every : int, optional
        The peer receives each n-th state.
    ticks : bool, optional
        Whether its ticks start the steps.
    identity : bytes, optional
        The 16 bytes of an earlier welcome; empty for a new peer.
    delay : int, optional
        Steps from a state to the step for which its command counts.
    interpolation : str, optional
        One of INTERPOLATIONS.
    settable : Mapping[str, Any], optional
        The peer's parameters that can change while it runs.
    tracks : Mapping[str, Any], optional
        The peer's set-points by the names of their quantities.
    robot : str, optional
        Name of one of several robots; empty for all.
    protocol : int, default PROTOCOL
        Version of the protocol.
    """

    name: str = _declared(_name)
    claim: tuple[str, ...] = _declared(_patterns("claim"), (), always=True)
    outputs: tuple[str, ...] = _declared(_patterns("outputs"), (), always=True, same=False)
    token: str = _declared(_token, "", always=True, same=False)
    every: int = _declared(_every, 1, always=True)
    ticks: bool = _declared(_ticks, False)
    identity: bytes = _declared(_identity, b"", same=False)
    delay: int = _declared(_delay, 0)
    interpolation: str = _declared(_interpolation, HOLD)
    settable: Mapping[str, Any] = _declared(lambda value, _: read_settable({"settable": value}), {}, same=False)
    tracks: Mapping[str, Any] = _declared(lambda value, _: read_tracks({"tracks": value}), {}, same=False)
    robot: str = _declared(_robot, "")
    protocol: int = field(default=PROTOCOL, compare=False)


_HELLO_FIELDS = tuple(item for item in fields(Hello) if item.metadata)


def hello_message(hello: Hello) -> dict[str, Any]:
    """Return a hello as a message.

    Parameters
    ----------
    hello : Hello
        The hello to send.

    Returns
    -------
    dict[str, Any]
        The message with the names of its version.
    """
    message: dict[str, Any] = {"type": "hello", "protocol": hello.protocol}
    for hello_field in _HELLO_FIELDS:
        value = getattr(hello, hello_field.name)
        if value or hello_field.metadata["always"]:
            plain = list(value) if type(value) is tuple else dict(value) if isinstance(value, Mapping) else value
            if hello_field.metadata["always"] or plain != hello_field.default:
                message[hello_field.name] = plain
    return in_version(message, hello.protocol)


def read_hello(message: Mapping[str, Any]) -> Hello:
    """Return the fields of a hello.

    Parameters
    ----------
    message : Mapping[str, Any]
        The message as received.

    Returns
    -------
    Hello
        The hello.

    Raises
    ------
    Refusal
        If the version is unknown or a field has a wrong value.
    """
    version = message.get("protocol")
    if type(version) is not int or version not in PROTOCOLS:
        spoken = ", ".join(map(str, PROTOCOLS))
        raise Refusal(Reason.PROTOCOL, f"hello: protocol: expected one of {spoken}, got {peer_text(version)}")
    read: dict[str, Any] = {"protocol": version}
    for hello_field in _HELLO_FIELDS:
        key = name_in(version, hello_field.name)
        if key in message or (hello_field.default is MISSING and hello_field.default_factory is MISSING):
            read[hello_field.name] = hello_field.metadata["read"](message.get(key), read)
        elif hello_field.default is not MISSING:
            read[hello_field.name] = hello_field.default
    return Hello(**read)
