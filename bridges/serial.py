"""Device on a serial line (UART, USB): packed states out and commands in, in COBS frames with a CRC.

The line never gets more than it carries: while a frame is on its way only the newest state waits, and replaced ones are
counted. An unplugged device is searched for until it is there again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, ClassVar

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.trust import NamesFile
from rtmms.bridging.channels import ChannelMap, ChannelMapping
from rtmms.bridging.sending import Turns
from rtmms.bridging.untrusted import Fuzzed, Refusal

from .lines.framing import END, Deframer, encode, longest
from .lines.pacing import Pacer
from .lines.packing import SEQ, Endian, Packed, Packer, Unpacker
from .lines.serial_line import Flow, Parity, SerialLine, StopBits, checked_device

_RESEND_S = 0.1


def fuzzed() -> Fuzzed:
    """Return the parser of frames for fuzz tests, one after the other into the same reader.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    field_texts = ("=171:u8", "seq:u8", "1:i16:1000", "2:f32")
    unpack = Unpacker([Packed.from_word(word, "") for word in field_texts], "little", "")
    reasons: list[str] = []
    stream = Deframer(unpack.size, reasons.append)

    def read(data: bytes) -> str:
        """Read frames.

        Parameters
        ----------
        data : bytes
            New bytes of the line.

        Returns
        -------
        str
            The first reason of a refusal, or 'taken'.
        """
        reasons.clear()
        for payload in stream.feed(data + END):
            try:
                unpack(payload)
            except Refusal as refusal:
                reasons.append(refusal.reason)
        return reasons[0] if reasons else "taken"

    return read, [encode(unpack.struct.pack(171, n, 250, 0.5)) for n in (0, 7, 255)]


@dataclass(kw_only=True)
class Serial(rtmms.Bridge):
    """Packed states out and commands in over a serial line, in COBS frames with a CRC: a device in the loop.

    The declaration of each field has its meaning, unit and range.
    """

    device: Annotated[str, NamesFile("device"), Parameter(
        "Serial device, as /dev/ttyUSB0 or /dev/serial/by-id/...; it may be unplugged and plugged in again.",
    )]  # fmt: skip
    baud: Annotated[int, Parameter("Baud rate.")] = 115200
    parity: Annotated[Parity, Parameter("Parity.")] = "none"
    stop_bits: Annotated[StopBits, Parameter("Stop bits.")] = 1
    flow: Annotated[Flow, Parameter("Flow control.")] = "none"
    endian: Annotated[Endian, Parameter("Byte order of structures.")] = "little"
    state_fields: Annotated[tuple[Packed, ...], Parameter("Fields of a state, in order: FIELD:TYPE[:SCALE] each.")]
    command_fields: Annotated[tuple[Packed, ...], Parameter(
        "Fields of a command, in order; needed with a claim or channels.",
    )] = ()  # fmt: skip
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim); none: the actuators' "
        "names.",
    )] = ()  # fmt: skip
    safe: Annotated[dict[str, float], Parameter(
        "Values by field that replace the last ones while the plant is silent, and at the end. none: nothing is sent.",
    )] = field(default_factory=dict)  # fmt: skip
    paced: Annotated[bool, Parameter(
        "Whether the device's next command answers each state, so that in lockstep the device sets the pace.",
    )] = False  # fmt: skip

    extra: ClassVar[str] = "serial"
    requires: ClassVar[dict[str, str]] = {"serial": "pyserial", "cobs": "cobs", "fastcrc": "fastcrc"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        checked_device(self.device, self.baud)
        self._map = ChannelMap(self.channels)
        if self.paced and not self.claims():
            raise rtmms.ModelError("paced: expected a claim or channels with it, got neither")
        unknown = set(self.safe) - {entry.field for entry in self.state_fields}
        if unknown:
            raise rtmms.ModelError(f"safe: '{min(unknown)}' is not a field of state_fields")
        self._unpack: Unpacker | None = None
        if self.command_fields or self.claims():
            self._unpack = Unpacker(self.command_fields, self.endian, "command_fields")
        self._seq_bits = next((entry.bits for entry in self.command_fields if entry.field == SEQ), 0)
        self._last: rtmms.State | None = None
        self._last_command: dict[str, float] = {}
        self._seq, self._newest = 0, -1

    @override
    def claims(self) -> tuple[str, ...]:
        """Return `claim`, or else the actuators of the channels."""
        return self.claim or self._map.actuators

    # -- hooks -------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Open the line, and find the fields."""
        self._map.check(plant)
        self._pack = Packer(self.state_fields, self.endian, plant, "state_fields")
        self._check_channels(plant)
        self._line = SerialLine(
            self.io, self.counts, self.device, self.baud, received=self._on_bytes, came=self._came,
            gone=self.on_peer_lost, parity=self.parity, stop_bits=self.stop_bits, flow=self.flow, begin=END,
        )  # fmt: skip
        self.waits = self.paced
        self._pacer = Pacer(self, self.paced and plant.mode == "lockstep", "the device")
        size = longest(self._pack.size)
        self._turns = Turns(max(_RESEND_S, 3.0 * self._line.time_s(size)))
        self.tick_s = min(0.05, max(1e-3, self._line.time_s(size)))
        self.io.log(
            f"a state has {size} bytes: {self.device} transmits {1 / self._line.time_s(size):.0f} states a second"
        )
        self._line.plug_in(monotonic())

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send the state."""
        self._last = state
        self._pacer.on_state(state)
        frame = self._message(state, None)
        if self._pacer.locked:
            self._turns.ask(frame, monotonic())
        self._line.put(frame)

    def on_silence(self) -> None:
        """Send the safe values."""
        if self.safe:
            self.io.log("the plant is silent: the bridge sends the safe values to the device")
            self._put_safe()

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._pacer.plant_again(self.paced and plant.mode == "lockstep")

    @override
    def tick(self, now: float) -> None:
        """Handle the line, and repeat messages."""
        self._pacer.tick(now)
        if not self._line.tick(now):
            return
        if self.silent and self.safe and not self._line.waiting:
            self._put_safe()  # again: one may have been lost
        again = b"" if self.silent else self._turns.due(now)
        if again:
            self.counts.add("sent_again")
            self._line.put(again)
        if self._turns.settled(now):
            self._answer()
        self._line.pump(now)

    @override
    def close(self, reason: str) -> None:
        """Send the safe values, and close the line."""
        if hasattr(self, "_line"):
            self._line.close(self._message(self._last, self.safe) if self.safe and self._last is not None else b"")

    # -- the line ----------------------------------------------------------------------------------------------------

    def _came(self, now: float) -> None:
        limit = self._unpack.size if self._unpack is not None else 1
        self._deframer = Deframer(limit, self.counts.refuse)
        self._newest = -1
        if not self._pacer.waiting:
            self._pacer.wake()
        elif self._last is not None:  # it may have missed the one that the plant waits at
            self._turns.ask(self._message(self._last, None), now)
            self._line.put(self._turns.message)

    @override
    def on_peer_lost(self, why: str) -> None:
        """Handle a lost device; in lockstep the plant waits for its return."""
        self._turns.forget()
        self.waits = self._pacer.locked
        super().on_peer_lost(why)

    @override
    def let_go(self, values: Mapping[str, float]) -> None:
        """Set the values of a lost peer; in lockstep no step begins with them."""
        self._pacer.idle(values)

    # -- out ---------------------------------------------------------------------------------------------------------

    def _message(self, state: rtmms.State, instead: dict[str, float] | None) -> bytes:
        self._seq += 1
        return encode(self._pack(state, self._seq, instead))

    def _put_safe(self) -> None:
        if self._last is not None:
            self._line.put(self._message(self._last, self.safe))

    # -- in ----------------------------------------------------------------------------------------------------------

    def _on_bytes(self, data: bytes) -> None:
        """Read frames; the newest command counts."""
        over, now = False, monotonic()
        for payload in self._deframer.feed(data):
            try:
                self._last_command, surely = self._read(payload)
            except Refusal as refusal:
                self.counts.refuse(refusal.reason, str(refusal))
                continue
            self.peer_watch.fed(now)
            self.waits = self.paced
            over |= self._turns.answered(now, surely)
        if over and self.plant.granted:
            self._answer()

    def _answer(self) -> None:
        """Send the device's newest values; in lockstep they let the next step begin."""
        if not self._pacer.locked:
            self.command(self._last_command)
            return
        self._pacer.drive(self._last_command)
        if self._pacer.waiting:
            self._pacer.go(1)
        else:  # to a state that the plant has gone on from: the next one is asked for anew
            self._pacer.wake()

    def _read(self, payload: bytes) -> tuple[dict[str, float], bool]:
        """Return the values of a command, and whether it states that it answers the present state; Refusal."""
        if self._unpack is None:
            raise Refusal("unasked", "expected no command, as the bridge has no command_fields, got one")
        values, seq, step = self._unpack(payload)
        last = self._last
        behind = 0 if step is None or last is None else self._unpack.steps_behind(step, last.step)
        if self._turns.message and behind:
            raise Refusal("old", f"expected an answer to the present step, got one to step {step}")
        if seq is not None and self._seq_bits:
            missed = (seq - self._newest - 1) % (1 << self._seq_bits)
            if self._newest >= 0 and 0 < missed < 1 << (self._seq_bits - 1):
                self.counts.add("commands_missed", missed)
            self._newest = seq
        self.counts.add("received")
        self.peer_watch.behind_s = max(0, behind) * (self.plant.period_s or 0.0)
        return self._map.to_actuators(values) if self._map else values, step is not None

    def _check_channels(self, plant: rtmms.PlantInfo) -> None:
        known = {entry.channel for entry in self._map.entries} or {channel.name for channel in plant.actuators}
        for name in self._unpack.channels if self._unpack is not None else ():
            if name not in known:
                raise rtmms.UnknownNameError("channel of command_fields", name, known)
