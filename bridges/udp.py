"""UDP: states out and commands in, as JSON or as packed structures in the layout of the configuration."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any, Literal

import rtmms
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.channels import ChannelMap, ChannelMapping, fields
from rtmms.bridging.sending import Turns
from rtmms.bridging.untrusted import Admission, Fuzzed, Refusal, fuzz, numbers, read_json

from .lines.addresses import bind_udp
from .lines.datagrams import datagrams, send
from .lines.packing import SEQ, STEP, Endian, Packed, Packer, UnpackedCommand, Unpacker, is_old

_MAX_READS = 8
"""Datagrams that one call reads."""
_MAX_READ_BYTES = 8192
"""Bytes that one call reads, because a state may wait meanwhile."""
_RESEND_S = 0.1
_MAX_DATAGRAM_BYTES = 8192


def parse_json(data: bytes) -> UnpackedCommand:
    """Return the command {"values": {channel: number}, "seq": n, "step": n}; the last two are optional.

    Parameters
    ----------
    data : bytes
        The received bytes.

    Returns
    -------
    UnpackedCommand
        The command.

    Raises
    ------
    Refusal
        If the message is something else.
    """
    message = read_json(data, _MAX_DATAGRAM_BYTES)
    if not isinstance(message, dict):
        raise Refusal("wrong_type", f"expected a JSON object, got {type(message).__name__}")
    for key in (SEQ, STEP):
        if message.get(key) is not None and type(message[key]) is not int:
            raise Refusal("wrong_type", f"{key}: expected a whole number, got {type(message[key]).__name__}")
    return UnpackedCommand(numbers(message.get("values"), "values"), message.get(SEQ), message.get(STEP))


def fuzzed() -> Fuzzed:
    """Return the parser of JSON, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    return fuzz(parse_json), [b'{"values": {"left.front": 0.25, "2": -1}, "seq": 3}', b'{"values": {}}']


def fuzzed_struct() -> Fuzzed:
    """Return the parser of a packed structure, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    field_texts = ("=43981:u16", "seq:u32", "1:i16:1000", "2:f32", "3:f64", "_:pad")
    unpack = Unpacker([Packed.from_word(word, "") for word in field_texts], "little", "")
    return fuzz(unpack), [unpack.struct.pack(43981, 1, 250, 0.5, -0.5)]


@dataclass(kw_only=True)
class Udp(rtmms.Bridge):
    """States out and commands in over UDP, as JSON or packed structures: microcontrollers, MATLAB, scripts.

    The declaration of each field has its meaning, unit and range.
    """

    host: Annotated[str, NamesAddress("connect"), Parameter("Address to which the bridge sends states.")] = "127.0.0.1"
    port: Annotated[int, Parameter(
        "Port to which the bridge sends states; 0: that of the last good command.", ge=0, le=65535,
    )] = 9900  # fmt: skip
    bind: Annotated[str, NamesAddress("listen"), Parameter(
        "Address at which commands arrive; 0.0.0.0 for other machines.",
    )] = "127.0.0.1"  # fmt: skip
    bind_port: Annotated[int, Parameter("Port at which commands arrive.", ge=0, le=65535)] = 9901
    peer: Annotated[tuple[str, ...], Parameter(
        "Accepted senders: HOST, HOST:PORT or NETWORK/BITS; none: `host`, from any port.",
    )] = ()  # fmt: skip
    format: Annotated[Literal["json", "struct"], Parameter("Format of states and commands.")] = "json"
    command_format: Annotated[Literal["json", "struct"] | None, Parameter("Format of commands; none: `format`.")] = None
    endian: Annotated[Endian, Parameter("Byte order of structures.")] = "little"
    state_fields: Annotated[tuple[Packed, ...], Parameter(
        "Fields of a state, in order: FIELD:TYPE[:SCALE] each; none (JSON): everything.",
    )] = ()  # fmt: skip
    command_fields: Annotated[tuple[Packed, ...], Parameter("Fields of a command, in order (struct).")] = ()
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim); none: the actuators' "
        "names.",
    )] = ()  # fmt: skip
    safe: Annotated[dict[str, float], Parameter(
        "Values by field that replace the last ones while the plant is silent, and at the end. none: nothing is sent.",
    )] = field(default_factory=dict)  # fmt: skip
    paced: Annotated[bool, Parameter(
        "Whether the peer's next command answers each state, so that in lockstep the peer sets the pace.",
    )] = False  # fmt: skip
    strangers: Annotated[bool, Parameter("Whether to accept commands from everyone, without `peer`.")] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if self.format == "struct" and not self.state_fields:
            raise rtmms.ModelError("state_fields: expected fields with format=struct, got none")
        self._refuse_layout_of_json()
        self._map = ChannelMap(self.channels)
        if self.paced and not self.claims():
            raise rtmms.ModelError("paced: expected a claim or channels with it, got neither")
        unknown = set(self.safe) - {entry.field for entry in self.state_fields}
        if unknown and self.state_fields:
            raise rtmms.ModelError(f"safe: '{min(unknown)}' is not a field of state_fields")
        self._unpack: Unpacker | None = None
        if (self.command_format or self.format) == "struct" and (self.command_fields or self.claims()):
            self._unpack = Unpacker(self.command_fields, self.endian, "command_fields")
        self._seq_bits = next((entry.bits for entry in self.command_fields if entry.field == SEQ), 0)
        self._socket: socket.socket | None = None
        self._peer: tuple[str, int] | None = None
        self._newest: int | None = None
        self._last: rtmms.State | None = None
        self._seq = 0
        self._turns = Turns(_RESEND_S)
        self._last_command: dict[str, float] = {}

    def _refuse_layout_of_json(self) -> None:
        """Refuse types, factors and constants of fields, and a byte order, where all is JSON."""
        if self.format == "json":
            for state_field in self.state_fields:
                if (state_field.type, state_field.scale, state_field.value) != ("f32", 1.0, None):
                    raise rtmms.ModelError(
                        f"state_fields: {state_field.field}: expected the name alone with format=json; TYPE "
                        "and SCALE need "
                        "format=struct"
                    )
        if (self.command_format or self.format) == "json":
            if self.command_fields:
                raise rtmms.ModelError("command_fields: expected none with commands in JSON; they need format=struct")
            if self.format == "json" and self.endian != "little":
                raise rtmms.ModelError(f"endian: expected format=struct with {self.endian}: JSON has no byte order")

    @override
    def claims(self) -> tuple[str, ...]:
        """Return `claim`, or else the actuators of the channels."""
        return self.claim or self._map.actuators

    # -- hooks -------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Bind the socket, and find the fields."""
        self._map.check(plant)
        self.waits = self.paced
        self.tick_s = 0.02 if self.paced else 0.1
        self._pack = Packer(self.state_fields, self.endian, plant, "state_fields") if self.format == "struct" else None
        names = [entry.field for entry in self.state_fields if entry.field != SEQ]
        self._fields = fields(tuple(names), plant, "state_fields") if self._pack is None else ()
        self._check_channels(plant)
        family, _, _, _, home = _resolved(self.bind, self.bind_port, "bind")[0]
        place = _resolved(self.host, self.port, "host", family)[0][4]
        self._host = str(place[0])
        self._peer = (self._host, self.port) if self.port else None
        self._admission = Admission(self.peer or (() if self.strangers else (self._host,)))
        self._socket = bind_udp(family, home, f"{self.bind}:{self.bind_port}")
        self.attend(self._socket, self._on_readable)
        if plant.granted:
            self.io.log(self._admission.sentence(f"UDP {self.bind}:{self._socket.getsockname()[1]}"))

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send the state."""
        self._last = state
        if self._peer is not None:
            try:
                message = self._message(state, None)
            except ValueError:  # a number that is none: not every plant sees to that
                self.counts.add("unsendable")
                return
            if self.waits and self.plant.mode == "lockstep":
                self._turns.ask(message, monotonic())
            self._send(message)

    def on_silence(self) -> None:
        """Send the safe values."""
        if self.safe and self._last is not None:
            self._send(self._message(self._last, self.safe))

    @override
    def tick(self, now: float) -> None:
        """Repeat messages that may be lost."""
        if self.silent:
            self.on_silence()  # again: one may have been lost
        again = self._turns.due(now)
        if again:
            self._send(again)
            self.counts.add("sent_again")
        if self._turns.settled(now):
            self.io.command(self._last_command)

    @override
    def on_peer_lost(self, why: str) -> None:
        """Handle a lost peer, and answer states without it."""
        self.waits = False
        self._turns.forget()
        super().on_peer_lost(why)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._turns.forget()

    @override
    def close(self, reason: str) -> None:
        """Send the safe values, and close the socket."""
        if self._socket is not None and self.safe and self._last is not None:
            self._send(self._message(self._last, self.safe))
        super().close(reason)

    # -- out ---------------------------------------------------------------------------------------------------------

    def _message(self, state: rtmms.State, instead: dict[str, float] | None) -> bytes:
        self._seq += 1
        if self._pack is not None:
            return self._pack(state, self._seq, instead)
        message: dict[str, Any] = {"time": state.time, "step": state.step, SEQ: self._seq}
        if self._fields:
            message |= {item.name: item(state) for item in self._fields}
        else:
            message |= state.outputs
        return json.dumps(message | (instead or {}), allow_nan=False, separators=(",", ":")).encode()

    def _send(self, message: bytes) -> None:
        if self._peer is None or self._socket is None:
            return
        send(self._socket, message, self._peer, self.counts)

    # -- in ----------------------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        """Read a few waiting datagrams and bytes; the newest counts."""
        assert self._socket is not None
        over, now, left = False, monotonic(), _MAX_READ_BYTES
        for data, peer in datagrams(
            self._socket, _MAX_DATAGRAM_BYTES + 1, _MAX_READS
        ):  # one byte more shows that it is too long
            left -= len(data)
            with self.counts.message():
                self._last_command, surely = self._read(data, peer)
                self.peer_watch.fed(now)
                if self.port == 0:
                    self._peer = (peer[0], peer[1])
                self.waits = self.paced
                over |= self._turns.answered(now, surely)
            if left <= 0:
                break
        if over and self.plant.granted:
            self.command(self._last_command)

    def _read(self, data: bytes, peer: Any) -> tuple[dict[str, float], bool]:
        """Return the values of a datagram, and whether it states that it answers the present state; Refusal."""
        if not self._admission.admits(peer):
            raise Refusal("stranger", f"expected a command of a peer that peer= admits, got one from {peer[0]}")
        values, seq, step = self._unpack(data) if self._unpack is not None else parse_json(data)
        behind, last = 0, self._last
        if step is not None and last is not None:
            behind = self._unpack.steps_behind(step, last.step) if self._unpack is not None else last.step - step
            if self._turns.message and behind:
                raise Refusal("old", f"expected an answer to the present step, got one to step {step}")
        if seq is not None:
            if is_old(seq, self._newest, self._seq_bits):
                raise Refusal("old", f"expected seq above {self._newest}, got {seq}")
            self._newest = seq
        if self._map:
            unknown = next((name for name in values if name not in self._map_names), None)
            if unknown is not None:
                raise Refusal("unknown_channel", f"expected a channel of `channels`, got {unknown[:40]!r}")
            values = self._map.to_actuators(values)
        self.peer_watch.behind_s = max(0, behind) * (self.plant.period_s or 0.0)
        return values, step is not None

    def _check_channels(self, plant: rtmms.PlantInfo) -> None:
        self._map_names = {entry.channel for entry in self._map.entries}
        known = self._map_names or {channel.name for channel in plant.actuators}
        for name in self._unpack.channels if self._unpack is not None else ():
            if name not in known:
                raise rtmms.UnknownNameError("channel of command_fields", name, known)
            if not self._map and name not in plant.granted:
                raise rtmms.ModelError(f"command_fields: '{name}' is not claimed; add it to claim=...")


def _resolved(host: str, port: int, place: str, family: int = 0) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)
    except OSError as fault:
        raise rtmms.RtmmsError(f"{place} '{host}': {fault.strerror or fault}") from None
