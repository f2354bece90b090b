"""Messages of versions 1 and 2: names, limits, frames, strict reading, and faults.

Plants and peers use the module; docs/protocol.md is the specification.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from msgpack import Packer, unpackb  # type: ignore[attr-defined]

from rtmms.base.contract import OPERATIONS
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.plant.protocol import Channel, Plant, describe_plant
from rtmms.wire.protocol.port import OVERSIZE

# Limits of a message's size, entries and step, for both sides of the wire.


MAX_COMMAND_BYTES = 32 * 1024
"""Size of a message on the step socket: 500 actuators of 40 bytes, with a margin."""

MAX_EXCHANGE_BYTES = 64 * 1024
"""Size of a message on the exchange socket, without the room for the plant's own snapshots."""

MAX_NAME_LENGTH = 64
MAX_PATTERNS = 256
MAX_PATTERN_LENGTH = 128
MAX_LIST_LENGTH = 16
MAX_SHAPE_LENGTH = 1 << 15
"""Characters of the drawing that a plant sends to viewers."""
MAX_AHEAD_STEPS = 64
"""Steps by which a command may be ahead; also the length of the queue in which it waits."""

WARM_STEPS = 10
"""Number of states exchanged with a claimant, with steps -10 to -1, before the plant admits it."""

MAX_EVERY_STEPS = 10_000
"""Largest n for a claimant that asks for each n-th state only."""

MAX_SETTABLE = 64
MAX_METRICS = 16
MAX_TEXT_LENGTH = 128
MAX_TRACKS = 16
MAX_TRACK_LENGTH = 4096

CREDITS = 4
"""Number of unanswered states after which the plant stops sending states to a claimant."""


# Messages of the wire: names, limits, and the strict reading of each message.
#
# docs/protocol.md is the specification. A reader checks the fields that it needs and ignores unknown ones, so that a
# later version can add fields at the end.


PROTOCOL = 2
PROTOCOLS = (1, 2)
IN_VERSION_1: Mapping[str, str] = {
    "interpolation": "between", "local_step_endpoint": "near_step_endpoint", "robot_name": "member",
    "geometry": "shape", "environment": "surroundings", "metrics": "figures", "malformed": "garbled",
}  # fmt: skip
"""Names of version 1 for fields, types and codes of messages that version 2 renamed."""
METRICS = ("metrics", IN_VERSION_1["metrics"])
"""Types of the message in which a peer reports its own metrics."""

HOLD = "hold"
LINEAR = "linear"
INTERPOLATIONS = (HOLD, LINEAR)
"""Interpolations between two commands of a claimant that answers each n-th state.

`hold` applies the last values. `linear` applies a straight line from the present values to the new ones, over n steps.
"""


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


class Refused(Exception):
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


def not_a_message(kind: str, cap: int) -> Refused:
    """Return the refusal of an oversized or malformed message.

    Parameters
    ----------
    kind : str
        Kind of the message, see rtmms.wire.protocol.port.
    cap : int
        Most bytes of a message here.

    Returns
    -------
    Refused
        The refusal, not raised.
    """
    if kind == OVERSIZE:
        return Refused(Reason.OVERSIZE, f"a message may have {cap} bytes here, got more")
    return Refused(Reason.MALFORMED, "a message is one frame here")


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


def shown(value: Any) -> str:
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


def _wrong(text: str) -> Refused:
    return Refused(Reason.WRONG_TYPE, f"hello: {text}")


def _name(value: Any, _: Any) -> str:
    if type(value) is not str or not 0 < len(value) <= MAX_NAME_LENGTH or not value.isprintable():
        raise _wrong(f"name must be 1 to {MAX_NAME_LENGTH} printable characters, got {shown(value)}")
    return value


def _robot(value: Any, _: Any) -> str:
    if type(value) is not str or len(value) > MAX_NAME_LENGTH or not value.isprintable():
        raise _wrong(f"robot must be at most {MAX_NAME_LENGTH} printable characters, got {shown(value)}")
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
            raise _wrong(f"{field} must be a list of at most {MAX_PATTERNS} patterns, got {shown(value)}")
        for one in value:
            if type(one) is not str or not 0 < len(one) <= MAX_PATTERN_LENGTH:
                raise _wrong(
                    f"{field}: a pattern must be text of 1 to {MAX_PATTERN_LENGTH} characters, got {shown(one)}"
                )
        return tuple(value)

    return read


def _every(value: Any, _: Any) -> int:
    if type(value) is not int or not 1 <= value <= MAX_EVERY_STEPS:
        raise _wrong(f"every must be a whole number from 1 to {MAX_EVERY_STEPS}, got {shown(value)}")
    return value


def _delay(value: Any, read: Mapping[str, Any]) -> int:
    every = read["every"]
    most = min(MAX_EVERY_STEPS, MAX_AHEAD_STEPS * every)
    if type(value) is not int or not 0 <= value <= most:
        raise _wrong(f"delay must be a whole number from 0 to {most} for every={every}, got {shown(value)}")
    return value


def _ticks(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(f"ticks must be true or false, got {shown(value)}")
    return value


def _identity(value: Any, _: Any) -> bytes:
    if type(value) is not bytes or len(value) not in (0, 16):
        raise _wrong(f"identity must be the 16 bytes of a welcome, got {shown(value)}")
    return value


def _interpolation(value: Any, _: Any) -> str:
    if value not in INTERPOLATIONS:
        raise _wrong(f"interpolation must be one of {', '.join(INTERPOLATIONS)}; got {shown(value)}")
    return str(value)


def _declared(
    read: Callable[[Any, Any], Any], default: Any = MISSING, *, always: bool = False, same: bool = True
) -> Any:
    """Return a field of a hello.

    `read` takes the received value and the fields before it by name; it returns the value or raises Refused. A field
    with `always` is sent even with its default. A field with `same` counts when two hellos are compared.
    """
    made: Any = {"default_factory": dict} if default == {} else {"default": default}
    return field(compare=same, metadata={"read": read, "always": always}, **made)


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


_HELLO_FIELDS = tuple(one for one in fields(Hello) if one.metadata)


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
    found = {IN_VERSION_1.get(name, name): value for name, value in message.items()}
    for name in ("type", "code"):
        if name in found:
            found[name] = IN_VERSION_1.get(found[name], found[name])
    if isinstance(found.get("robots"), dict):
        found["robots"] = {name: in_version(one, 1) for name, one in found["robots"].items()}
    return found


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
    found = {_IN_VERSION_2.get(name, name): value for name, value in message.items()}
    if isinstance(found.get("robots"), dict):
        robots = found["robots"].items()
        found["robots"] = {name: from_version(one, 1) if isinstance(one, dict) else one for name, one in robots}
    return found


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
    for one in _HELLO_FIELDS:
        value = getattr(hello, one.name)
        if value or one.metadata["always"]:
            plain = list(value) if type(value) is tuple else dict(value) if isinstance(value, Mapping) else value
            if one.metadata["always"] or plain != one.default:
                message[one.name] = plain
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
    Refused
        If the version is unknown or a field has a wrong value.
    """
    version = message.get("protocol")
    if type(version) is not int or version not in PROTOCOLS:
        spoken = ", ".join(map(str, PROTOCOLS))
        raise Refused(Reason.PROTOCOL, f"hello: protocol: expected one of {spoken}, got {shown(version)}")
    read: dict[str, Any] = {"protocol": version}
    for one in _HELLO_FIELDS:
        key = name_in(version, one.name)
        if key in message or (one.default is MISSING and one.default_factory is MISSING):
            read[one.name] = one.metadata["read"](message.get(key), read)
        elif one.default is not MISSING:
            read[one.name] = one.default
    return Hello(**read)


def read_settable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a peer's parameters that can change while it runs.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message with a field `settable`.

    Returns
    -------
    dict[str, Any]
        Names, with numbers, flags, short texts or None.

    Raises
    ------
    Refused
        If the field has another form.
    """
    given = message.get("settable")
    if given is None:
        return {}
    if type(given) is not dict or len(given) > MAX_SETTABLE:
        raise Refused(Reason.WRONG_TYPE, f"settable must be a map of at most {MAX_SETTABLE} names, got {shown(given)}")
    for name, value in given.items():
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_LENGTH or not _plain(value):
            raise Refused(
                Reason.WRONG_TYPE,
                f"settable: expected names, each with a number, flag or short text, got {shown(name)}",
            )
    return given


def read_figures(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that a peer reports about itself.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message with a field `values`.

    Returns
    -------
    dict[str, Any]
        Names, with numbers, flags, short texts or None.

    Raises
    ------
    Refused
        If the field has another form.
    """
    given = message.get("values")
    if type(given) is not dict or len(given) > MAX_METRICS:
        raise Refused(Reason.WRONG_TYPE, f"metrics: values must be a map of at most {MAX_METRICS} names")
    for name, value in given.items():
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_LENGTH or not _plain(value):
            raise Refused(
                Reason.WRONG_TYPE, f"metrics: expected names, each with a number, flag or short text, got {shown(name)}"
            )
    return given


MAX_SILENCES = 64
_COUNTS = ("silences_count", "losses_count", "restarts_count")


def read_watch(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a bridge's report about its own peer.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message that may have a field `watch`.

    Returns
    -------
    dict[str, Any] | None
        The entries below, or None if the message has no report.

    Raises
    ------
    Refused
        If the field has another form.

    Notes
    -----
    Entries:

    - `watched`, `learned`: whether the bridge judges the peer's silence, and whether it learned the peer's period.
    - `period_s`, `first_s`: wall time of a period, and simulated time of the first message, s. None if unknown.
    - `silences`: [begin (simulated s), step at the begin, length (simulated s)] of each silence. The length of
      a silence that lasts is None.
    - `losses`: begins of the losses, simulated s.
    - `silences_count`, `losses_count`, `restarts_count`: numbers of all events, also of those that are not listed.
    """
    given = message.get("watch")
    if given is None:
        return None
    if type(given) is not dict or not all(type(given.get(name)) is bool for name in ("watched", "learned")):
        raise Refused(Reason.WRONG_TYPE, f"metrics: watch: expected a map with watched and learned, got {shown(given)}")
    silences, losses = given.get("silences"), given.get("losses")
    if not (type(silences) is list and len(silences) <= MAX_SILENCES and all(map(_is_silence, silences))):
        raise Refused(Reason.WRONG_TYPE, f"metrics: watch: silences: expected at most {MAX_SILENCES} of three numbers")
    if not (type(losses) is list and len(losses) <= MAX_SILENCES and all(map(_finite, losses))):
        raise Refused(Reason.WRONG_TYPE, f"metrics: watch: losses: expected at most {MAX_SILENCES} numbers")
    for name in ("period_s", "first_s"):
        if given.get(name) is not None and not _finite(given[name]):
            raise Refused(Reason.WRONG_TYPE, f"metrics: watch: {name}: expected a number, got {shown(given[name])}")
    for name in _COUNTS:
        if type(given.get(name)) is not int or given[name] < 0:
            raise Refused(Reason.WRONG_TYPE, f"metrics: watch: {name}: expected a count, got {shown(given.get(name))}")
    known = ("watched", "learned", "period_s", "first_s", "silences", "losses", *_COUNTS)
    return {name: given.get(name) for name in known}


def _is_silence(value: Any) -> bool:
    return (
        type(value) is list and len(value) == 3 and _finite(value[0]) and type(value[1]) is int
        and (value[2] is None or _finite(value[2]))
    )  # fmt: skip


def _plain(value: Any) -> bool:
    """Return whether a value is a number, a flag, a short text or None."""
    return value is None or type(value) in (bool, int, float) or (type(value) is str and len(value) <= MAX_TEXT_LENGTH)


def read_tracks(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a peer's set-points.

    Parameters
    ----------
    message : Mapping[str, Any]
        Message with a field `tracks`.

    Returns
    -------
    dict[str, Any]
        A number or a text for the name of each quantity.

    Raises
    ------
    Refused
        If the field has another form.
    """
    given = message.get("tracks")
    if given is None:
        return {}
    if type(given) is not dict or len(given) > MAX_TRACKS:
        raise Refused(Reason.WRONG_TYPE, f"hello: tracks must be a map of at most {MAX_TRACKS} names")
    for name, value in given.items():
        plain = type(value) in (int, float) or (type(value) is str and len(value) <= MAX_TRACK_LENGTH)
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_LENGTH or not plain:
            raise Refused(
                Reason.WRONG_TYPE, f"hello: tracks: expected names, each with a number or text, got {shown(name)}"
            )
    return given


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
    Refused
        If a field has a wrong value.
    """
    ident, op, args = read_id(message), message.get("op"), message.get("args")
    if ident is None:
        ident = message.get("id")
        raise Refused(Reason.WRONG_TYPE, f"request: id must be a whole number or short text, got {shown(ident)}")
    if type(op) is not str or op not in OPERATIONS:
        raise Refused(Reason.TYPE, f"request: op must be one of {', '.join(OPERATIONS)}; got {shown(op)}")
    args = {} if args is None else args
    if type(args) is not dict or not all(type(key) is str for key in args):
        raise Refused(Reason.WRONG_TYPE, f"request: args must be a map with text keys, got {shown(args)}")
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


def channel_map(channel: Channel) -> dict[str, Any]:
    """Return a channel as an entry of the welcome.

    Parameters
    ----------
    channel : Channel
        An actuator or an output.

    Returns
    -------
    dict[str, Any]
        The channel's fields by name.
    """
    return {
        "name": channel.name, "unit": channel.unit, "shape": list(channel.shape), "frame": channel.frame,
        "lower": channel.lower, "upper": channel.upper, "neutral": channel.neutral,
    }  # fmt: skip


def read_channel(entry: Mapping[str, Any]) -> Channel:
    """Return the channel of an entry of the welcome.

    Parameters
    ----------
    entry : Mapping[str, Any]
        Entry that `channel_map` wrote.

    Returns
    -------
    Channel
        The channel, with defaults for missing fields.
    """
    return Channel(
        name=str(entry["name"]), unit=str(entry.get("unit") or ""),
        shape=tuple(int(size) for size in entry.get("shape") or ()), frame=str(entry.get("frame") or ""),
        lower=entry.get("lower"), upper=entry.get("upper"), neutral=float(entry.get("neutral") or 0.0),
    )  # fmt: skip


def plain_parameters(plant: object) -> dict[str, Any]:
    """Return the plant's parameters in the form of the welcome.

    Parameters
    ----------
    plant : object
        A plant whose `parameters` are a mapping or a dataclass.

    Returns
    -------
    dict[str, Any]
        Finite numbers, flags, short texts and short lists of numbers; other values are left out.
    """
    source = describe_plant(plant).parameters()
    if source is None:
        return {}
    if not isinstance(source, Mapping):
        fields = getattr(source, "__dataclass_fields__", None)
        if fields is None:
            return {}
        source = {name: getattr(source, name) for name in fields}
    plain: dict[str, Any] = {}
    for name, value in list(source.items())[:512]:
        if isinstance(value, (bool, int)) or (isinstance(value, str) and len(value) <= MAX_PATTERN_LENGTH):
            plain[str(name)] = value
        elif isinstance(value, float) and math.isfinite(value):
            plain[str(name)] = float(value)
        elif isinstance(value, (tuple, list)) and 0 < len(value) <= MAX_LIST_LENGTH and all(map(_finite, value)):
            plain[str(name)] = [float(number) for number in value]
    return plain


def surroundings_fields(plant: Plant) -> dict[str, Any]:
    """Return the surroundings of a plant in the form of the welcome.

    Parameters
    ----------
    plant : Plant
        The plant.

    Returns
    -------
    dict[str, Any]
        The entries of `PlantInfo.surroundings` that are finite.
    """
    around = describe_plant(plant).surroundings()
    fields = {"gravity_m_s2": list(around.gravity), "water_kg_m3": around.density, "surface_m": around.surface}
    return {
        name: value for name, value in fields.items()
        if all(map(_finite, value if isinstance(value, list) else [value]))
    }  # fmt: skip


def plain_shape(plant: object) -> str:
    """Return the plant's drawing as JSON.

    Parameters
    ----------
    plant : object
        A plant whose description may have a shape, see rtmms.plant.protocol.PlantDescription.

    Returns
    -------
    str
        The JSON text. It is empty if there is no shape, if JSON cannot express it, or if it is too long
        (MAX_SHAPE_LENGTH).
    """
    source = describe_plant(plant).shape()
    if not isinstance(source, Mapping) or not source:
        return ""
    try:
        text = json.dumps(source, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return ""
    return text if len(text) <= MAX_SHAPE_LENGTH else ""


def read_shape(text: object) -> dict[str, Any]:
    """Return the drawing of a welcome.

    Parameters
    ----------
    text : object
        Text that `plain_shape` wrote.

    Returns
    -------
    dict[str, Any]
        The drawing; {} for any other value.
    """
    if not isinstance(text, str) or not 0 < len(text) <= MAX_SHAPE_LENGTH:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


# Conversion of a message to a frame and back: a msgpack map with `type`, with limited sizes. Every error is a refusal.


_new_packer: Callable[..., Any] = Packer
_unpack: Callable[..., Any] = unpackb

MAX_PLANT_BYTES = 16 * 1024 * 1024
MAX_PLANT_ENTRIES = 65536
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
    Refused
        With code oversize, malformed or unknown_type, unless the frame is one whole msgpack map with a text `type`.
    """
    size = len(frame)
    if size > cap:
        raise Refused(Reason.OVERSIZE, f"a message may have {cap} bytes here, got more")
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
        raise Refused(Reason.MALFORMED, f"not a msgpack message: {type(fault).__name__}") from None
    if type(message) is not dict:
        raise Refused(Reason.MALFORMED, f"a message must be a map, got {type(message).__name__}")
    if type(message.get("type")) is not str:
        raise Refused(Reason.TYPE, "a message must have a 'type', as text")
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
    Refused
        As `decode` raises it.
    """
    return decode(frame, MAX_PLANT_BYTES, MAX_PLANT_ENTRIES, MAX_PLANT_ENTRIES)


# Errors of the wire that a user may meet, apart from those of the models.


class EndpointError(RtmmsError):
    """Failure to bind or connect an endpoint.

    The text names the endpoint, the reason and a remedy.
    """


class BusyError(EndpointError):
    """Failure to bind an endpoint that another process uses.

    Parameters
    ----------
    text : str
        The error message.
    endpoint : str
        Address of the endpoint.
    """

    def __init__(self, text: str, endpoint: str) -> None:
        super().__init__(text)
        self.endpoint = endpoint


class AddressError(EndpointError, ModelError):
    """Endpoint of a wrong form, or one that may not be bound as requested."""


ARGUMENT_ERRORS = frozenset(("unknown_actuator", "unknown_output"))
"""Codes of refusals that the request itself causes: exit status 2."""


class NotConnectedError(RtmmsError, ConnectionError):
    """Failure to connect: no plant answered, or it refused the peer.

    Parameters
    ----------
    text : str
        The error message.
    code : str, default ''
        The plant's reason; empty if no plant answered.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class RequestError(RtmmsError):
    """Failure of a request such as reset or stop.

    Parameters
    ----------
    text : str
        The error message.
    refused : bool, default False
        Whether the plant refused it. Otherwise no answer came in time.
    """

    def __init__(self, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


class RefusedError(RtmmsError):
    """Refusal of a message of this peer, as `connect(errors="raise")` raises it.

    Parameters
    ----------
    text : str
        The error message.
    code : str
        The plant's reason.
    """

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code
