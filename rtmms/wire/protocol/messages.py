"""Messages of versions 1 and 2: names, frames, requests, refusals, and the strict reading of a frame.

docs/protocol.md is the specification. A reader checks the fields that it needs and ignores unknown ones, so that a
later version can add fields at the end. `limits.py` has the sizes, `hello.py`, `welcome.py` and `peer_values.py` the
fields of single messages, `errors.py` the exceptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msgpack import Packer, unpackb  # type: ignore[attr-defined]

from rtmms.base.contract import OPERATIONS
from rtmms.wire.protocol.limits import MAX_NAME_LENGTH, MAX_PLANT_BYTES, MAX_PLANT_ENTRIES
from rtmms.wire.protocol.port import OVERSIZE

PROTOCOL = 2
PROTOCOLS = (1, 2)
IN_VERSION_1: Mapping[str, str] = {
    "interpolation": "between", "local_step_endpoint": "near_step_endpoint", "robot_name": "member",
    "geometry": "shape", "environment": "surroundings", "metrics": "figures", "malformed": "garbled",
}  # fmt: skip
"""Names of version 1 for fields, types and codes of messages that version 2 renamed."""
METRICS = ("metrics", IN_VERSION_1["metrics"])
"""Types of the message in which a peer reports its own metrics."""


class Reason:
    """Codes of refused messages.

    They are the codes of `error` messages and the keys of `rejected` in the report.
    """

    MALFORMED = "malformed"
    OVERSIZE = "oversize"
    TYPE = "unknown_type"
    PROTOCOL = "protocol"
    TOKEN = "token"
    UNKNOWN_ACTUATOR = "unknown_actuator"
    UNKNOWN_OUTPUT = "unknown_output"
    UNKNOWN_ROBOT = "unknown_robot"
    NOT_CLAIMED = "not_claimed"
    NOT_SETTABLE = "not_settable"
    NOT_FINITE = "not_finite"
    WRONG_TYPE = "wrong_type"
    SEQ = "seq"
    TOO_EARLY = "too_early"
    TOO_LATE = "too_late"
    CLAIM_HELD = "claim_held"
    MODE = "mode"
    STRANGER = "stranger"
    BUSY = "busy"


class Refusal(Exception):
    """Refusal of a message.

    The exception never leaves the wire.

    Parameters
    ----------
    code : str
        One of `Reason`.
    text : str
        Explanation for a person.
    unknown : str, default ''
        An unknown name, for which the error message may list similar names.

    Attributes
    ----------
    id : int or str or None
        Id of the refused request. None if the message is no request or its id is unreadable.
    """

    def __init__(self, code: str, text: str, unknown: str = "") -> None:
        super().__init__(text)
        self.code, self.text, self.unknown = code, text, unknown
        self.id: int | str | None = None


def not_a_message(kind: str, cap: int) -> Refusal:
    """Return the refusal of an oversized or malformed message.

    Parameters
    ----------
    kind : str
        Kind of the message, see rtmms.wire.protocol.port.
    cap : int
        Most bytes of a message here.

    Returns
    -------
    Refusal
        The refusal, not raised.
    """
    if kind == OVERSIZE:
        return Refusal(Reason.OVERSIZE, f"expected a message of at most {cap} bytes here, got more")
    return Refusal(Reason.MALFORMED, "a message is one frame here")


@dataclass(frozen=True, slots=True)
class Request:
    """Request to the owner of the loop.

    The loop performs it between steps and answers by `Server.reply`.

    Parameters
    ----------
    id : int | str
        Id that the peer chose for the request.
    op : str
        One of OPERATIONS.
    args : Mapping[str, Any]
        Arguments with text keys; nothing else about them has been checked.
    peer : str
        Name of the peer.
    exchange_id : bytes, default b''
        Routing id of the peer on the exchange socket.
    """

    id: int | str
    op: str
    args: Mapping[str, Any]
    peer: str
    exchange_id: bytes = b""


def peer_text(value: Any) -> str:
    """Return a peer's value as short text for a message to a person.

    Parameters
    ----------
    value : Any
        Any value of a message.

    Returns
    -------
    str
        At most 40 characters; the type's name for anything but numbers, flags and text.
    """
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
    return text if len(text) <= 40 else text[:37] + "..."


def name_in(version: int, name: str) -> str:
    """Return the name of a field, type or code in a version of the protocol.

    Parameters
    ----------
    version : int
        Version of the protocol.
    name : str
        Name in version 2.

    Returns
    -------
    str
        Name in that version.
    """
    return IN_VERSION_1.get(name, name) if version == 1 else name


def in_version(message: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return a message with the names of fields, type and code of a version of the protocol.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message with the names of version 2.
    version : int
        Version of the protocol.

    Returns
    -------
    dict[str, Any]
        A new message.
    """
    if version != 1:
        return dict(message)
    result = {IN_VERSION_1.get(name, name): value for name, value in message.items()}
    for name in ("type", "code"):
        if name in result:
            result[name] = IN_VERSION_1.get(result[name], result[name])
    if isinstance(result.get("robots"), dict):
        result["robots"] = {name: in_version(item, 1) for name, item in result["robots"].items()}
    return result


_IN_VERSION_2 = {old: new for new, old in IN_VERSION_1.items()}


def from_version(message: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return a welcome of a version of the protocol with the names of version 2.

    Parameters
    ----------
    message : Mapping[str, Any]
        The welcome as received.
    version : int
        Version of the protocol.

    Returns
    -------
    dict[str, Any]
        A new message.
    """
    if version != 1:
        return dict(message)
    result = {_IN_VERSION_2.get(name, name): value for name, value in message.items()}
    if isinstance(result.get("robots"), dict):
        robots = result["robots"].items()
        result["robots"] = {name: from_version(item, 1) if isinstance(item, dict) else item for name, item in robots}
    return result


def read_request(message: Mapping[str, Any], peer: str, exchange_id: bytes) -> Request:
    """Return the fields of a request.

    Parameters
    ----------
    message : Mapping[str, Any]
        The message as received.
    peer : str
        Name of its sender.
    exchange_id : bytes
        Routing id of its sender.

    Returns
    -------
    Request
        The request.

    Raises
    ------
    Refusal
        If a field has a wrong value.
    """
    ident, op, args = read_id(message), message.get("op"), message.get("args")
    if ident is None:
        ident = message.get("id")
        raise Refusal(Reason.WRONG_TYPE, f"request: id must be a whole number or short text, got {peer_text(ident)}")
    if type(op) is not str or op not in OPERATIONS:
        raise Refusal(Reason.TYPE, f"request: op must be one of {', '.join(OPERATIONS)}; got {peer_text(op)}")
    args = {} if args is None else args
    if type(args) is not dict or not all(type(key) is str for key in args):
        raise Refusal(Reason.WRONG_TYPE, f"request: args must be a map with text keys, got {peer_text(args)}")
    return Request(ident, op, args, peer, exchange_id)


def read_id(message: Mapping[str, Any]) -> int | str | None:
    """Return the id of a request.

    Parameters
    ----------
    message : Mapping[str, Any]
        The message as received.

    Returns
    -------
    int | str | None
        The id, or None if it is neither a whole number nor a short text.
    """
    ident = message.get("id")
    if type(ident) is int or (isinstance(ident, str) and len(ident) <= MAX_NAME_LENGTH):
        return ident
    return None


def is_finite(value: object) -> bool:
    """Return whether a value is a finite number, and no flag.

    Parameters
    ----------
    value : object
        Any value of a message.

    Returns
    -------
    bool
        True for finite int and float.
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


# Conversion of a message to a frame and back: a msgpack map with `type`, with limited sizes. Every error is a refusal.

_new_packer: Callable[..., Any] = Packer
_unpack: Callable[..., Any] = unpackb
_MAX_LIST_ENTRIES = 1024
_MAX_MAP_ENTRIES = 4096
_MAX_SHORT_BYTES = 1024
"""Bytes up to which a frame's own length limits its lists and maps sufficiently."""


def packer() -> Callable[[Any], bytes]:
    """Return a packing function that reuses its buffer.

    Numbers of other libraries (float32, int64) become float64.

    Returns
    -------
    Callable[[Any], bytes]
        The function from a message to bytes.
    """
    pack: Callable[[Any], bytes] = _new_packer(default=float).pack
    return pack


def decode(
    frame: bytes, cap: int, longest_list: int = _MAX_LIST_ENTRIES, longest_map: int = _MAX_MAP_ENTRIES
) -> dict[str, Any]:
    """Return the message of a frame.

    Parameters
    ----------
    frame : bytes
        The received bytes.
    cap : int
        Most bytes of the frame.
    longest_list, longest_map : int, default _MAX_LIST_ENTRIES
        Most entries that a list or a map may claim. Each claim costs memory before its entries are read.

    Returns
    -------
    dict[str, Any]
        The message.

    Raises
    ------
    Refusal
        With code oversize, malformed or unknown_type, unless the frame is one whole msgpack map with a text `type`.
    """
    size = len(frame)
    if size > cap:
        raise Refusal(Reason.OVERSIZE, f"expected a message of at most {cap} bytes from this peer, got {size}")
    try:
        message = (
            _unpack(frame)
            if size <= _MAX_SHORT_BYTES
            else _unpack(
                frame,
                # a decoder allocates the claimed size: limit it to the size that can come
                max_array_len=min(longest_list, size),
                max_map_len=min(longest_map, size),
                max_str_len=cap,
                max_bin_len=cap,
                max_ext_len=16,
            )
        )
    except Exception as fault:  # the sender is responsible for any exception of the decoder
        raise Refusal(Reason.MALFORMED, f"not a msgpack message: {type(fault).__name__}") from None
    if type(message) is not dict:
        raise Refusal(Reason.MALFORMED, f"a message must be a map, got {type(message).__name__}")
    if type(message.get("type")) is not str:
        raise Refusal(Reason.TYPE, "a message must have a 'type', as text")
    return message


def decode_from_plant(frame: bytes) -> dict[str, Any]:
    """Return a message of a plant that the peer has chosen to trust.

    States may have long lists and many outputs.

    Parameters
    ----------
    frame : bytes
        The received bytes.

    Returns
    -------
    dict[str, Any]
        The message.

    Raises
    ------
    Refusal
        As `decode` raises it.
    """
    return decode(frame, MAX_PLANT_BYTES, MAX_PLANT_ENTRIES, MAX_PLANT_ENTRIES)
