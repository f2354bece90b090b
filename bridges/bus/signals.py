"""Messages in the layout of a DBC file (cantools): a plant's numbers out, actuators in; counters and checksums of both.

A message has a counter or a checksum if it has a signal of that name. The counter rises by one with each message and
begins anew at the end of its range. The checksum covers all bytes but its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import isfinite
from operator import xor
from pathlib import Path
from typing import Any, Literal

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import read_input
from rtmms.bridging.untrusted import Fuzzed, Refusal

Checksum = Literal["crc8", "xor", "sum"]
"""Kinds of checksums.

crc8: SAE J1850 (polynomial 0x1D, from 0xFF, inverted) over the identifier, low byte first, and the bytes. xor and sum:
of the bytes, 8 bits.
"""


def checksum(kind: Checksum, identifier: int, data: bytes) -> int:
    """Return the checksum of a message.

    Parameters
    ----------
    kind : Checksum
        Kind of the checksum.
    identifier : int
        Identifier of the message.
    data : bytes
        Its bytes without that of the checksum.

    Returns
    -------
    int
        The checksum.
    """
    if kind == "crc8":
        from crccheck.crc import Crc8SaeJ1850

        return int(Crc8SaeJ1850.calc((identifier & 0xFFFF).to_bytes(2, "little") + data))
    return reduce(xor, data, 0) if kind == "xor" else sum(data) & 0xFF


MAX_DBC_BYTES = 4 << 20
MAX_TOKENS = 1_000_000
MAX_NODES = 5_000
MAX_MESSAGE_BYTES = 1785
"""Size of a message: those that J1939 sends in several frames."""
MAX_MULTIPLEXED = 65_536
"""Numbers in all ranges of multiplexers, each of which the library puts into a list."""

_TOKEN = re.compile(r'"[^"]*"|[\w.+-]+|\S')
_NODES = re.compile(r"\bBU_\s*:((?:\s+(?!BU_\b)\w+)*)")
_MESSAGE = re.compile(r"\bBO_\s+\d+\s+(\w+)\s*:\s*(\d+)")
_SIGNAL = re.compile(r"\bSG_\s+(\w+)[^:;\"]{0,99}:\s*(\d+)\s*\|\s*(\d+)")
_RANGES = re.compile(r"\bSG_MUL_VAL_\b([^;]*)")
_RANGE = re.compile(r"(\d+)\s*-\s*(\d+)")


def load(path: str) -> Any:
    """Return the database of a DBC file.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    Any
        The database.

    Raises
    ------
    ModelError
        If it is none, or too large for a robot's.
    """
    import cantools

    try:
        text = _read(path)
    except OSError as fault:
        raise ModelError(f"dbc: {path}: {fault.strerror}") from None
    try:
        return cantools.database.load_string(text, "dbc")
    except (cantools.Error, ValueError, OverflowError, RecursionError) as fault:
        raise ModelError(f"dbc: {path}: {str(fault)[:200]}") from None


def _read(path: str) -> str:
    """Return the text of a DBC file, after a check of its sizes, for which the library allocates memory unseen."""
    file = Path(path).expanduser()
    data = read_input(file, place="dbc:", max_bytes=MAX_DBC_BYTES, expected="a DBC file")
    text = data.decode("cp1252", errors="replace")
    for what, maximum, count in (
        ("words", MAX_TOKENS, sum(1 for _ in _TOKEN.finditer(text))),
        ("nodes", MAX_NODES, sum(len(item[1].split()) for item in _NODES.finditer(text))),
    ):
        if count > maximum:
            raise ModelError(f"dbc: {path}: expected at most {maximum} {what}, got {count}")
    for match in _MESSAGE.finditer(text):
        if len(match[2]) > 9 or int(match[2]) > MAX_MESSAGE_BYTES:
            raise ModelError(
                f"dbc: {path}: message '{match[1]:.60}': expected at most {MAX_MESSAGE_BYTES} bytes, got {match[2]:.20}"
            )
    for match in _SIGNAL.finditer(text):
        if max(len(match[2]), len(match[3])) > 9 or max(int(match[2]), int(match[3])) > 8 * MAX_MESSAGE_BYTES:
            raise ModelError(
                f"dbc: {path}: signal '{match[1]:.60}': expected at most {8 * MAX_MESSAGE_BYTES} bits, "
                f"got {match[2]:.20}|{match[3]:.20}"
            )
    _check_ranges(path, text)
    return text


def _check_ranges(path: str, text: str) -> None:
    count = 0
    for item in (match for section in _RANGES.finditer(text) for match in _RANGE.finditer(section[1])):
        wide = len(item[1]) > 9 or len(item[2]) > 9
        count += MAX_MULTIPLEXED + 1 if wide else max(0, int(item[2]) - int(item[1]) + 1)
        if count > MAX_MULTIPLEXED:
            raise ModelError(f"dbc: {path}: SG_MUL_VAL_: expected at most {MAX_MULTIPLEXED} numbers in all, got more")


class Layout:
    """Message with the places of its counter and its checksum.

    Parameters
    ----------
    message : Any
        Message of the database.
    counter, check : str
        Names of the signals.
    kind : Checksum
        Kind of the checksum.

    Raises
    ------
    ModelError
        If a signal is invalid.
    """

    def __init__(self, message: Any, counter: str, check: str, kind: Checksum) -> None:
        if message.is_multiplexed():
            raise ModelError(
                f"dbc: message '{message.name}': expected a message without multiplexed signals, which "
                "channels cannot map"
            )
        self.message, self.kind = message, kind
        self.identifier, self.extended, self.fd = message.frame_id, message.is_extended_frame, message.is_fd
        for signal in message.signals:
            if signal.scale == 0 or not isfinite(signal.scale) or not isfinite(signal.offset):
                raise ModelError(
                    f"dbc: {message.name}.{signal.name}: expected a factor other than 0, and finite numbers, "
                    f"got ({signal.scale}, {signal.offset})"
                )
        signals = {signal.name: signal for signal in message.signals}
        self.counter = signals.get(counter) if counter else None
        self.check = signals.get(check) if check else None
        if self.counter is not None and (
            self.counter.is_signed or self.counter.is_float or (self.counter.scale, self.counter.offset) != (1, 0)
        ):
            raise ModelError(f"dbc: {message.name}.{counter}: expected an unsigned whole number as the counter")
        self.max_count = 0 if self.counter is None else (1 << self.counter.length) - 1
        self._at = 0
        if self.check is not None:
            place = self.check.start if self.check.byte_order == "little_endian" else self.check.start - 7
            if self.check.length != 8 or place % 8 or self.check.is_signed:
                raise ModelError(f"dbc: {message.name}.{check}: expected one whole byte as the checksum")
            self._at = place // 8

    def seal(self, data: bytes) -> bytes:
        """Return the data with their checksum.

        Parameters
        ----------
        data : bytes
            Data of the message.

        Returns
        -------
        bytes
            The data.
        """
        if self.check is None:
            return data
        right = checksum(self.kind, self.identifier, data[: self._at] + data[self._at + 1 :])
        return data[: self._at] + bytes((right,)) + data[self._at + 1 :]

    @property
    def reserved_signals(self) -> set[str]:
        """Signals that are no values."""
        return {signal.name for signal in (self.counter, self.check) if signal is not None}


@dataclass(slots=True)
class Sent:
    """Message that is sent: each of its signals is a number of the plant's state times a scale.

    Parameters
    ----------
    layout : Layout
        Layout of the message.
    fields : dict[str, tuple[Callable[[Any], float], float]]
        Field and scale by signal.
    period_s : float
        Its period, simulated s.
    phase : float, default 0.0
        Part of a period by which it precedes others; otherwise all messages at one state would delay the next one.
    slot : int, default -1
        Last period in which it was sent.
    count : int, default 0
        Its counter.
    """

    layout: Layout
    fields: dict[str, tuple[Callable[[Any], float], float]]
    period_s: float
    phase: float = 0.0
    """Part of a period by which it precedes others; otherwise all at one state would delay the next one."""
    slot: int = -1
    count: int = 0

    def due(self, time: float) -> bool:
        """Return whether a period has begun since the last call.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        bool
            True once a period.
        """
        slot = int(time / self.period_s + self.phase + 1e-6)
        if slot == self.slot:
            return False
        self.slot = slot
        return True

    def bytes(self, state: Any) -> bytes:
        """Return the data; values that do not fit become the nearest that do.

        Parameters
        ----------
        state : Any
            The state.

        Returns
        -------
        bytes
            The data.

        Raises
        ------
        ValueError
            If a number is not finite.
        """
        layout = self.layout
        values: dict[str, float] = {}
        for signal in layout.message.signals:
            result = self.fields.get(signal.name)
            values[signal.name] = (
                _fitting(signal, result[0](state) * result[1]) if result is not None else _idle(signal)
            )
        if layout.counter is not None:
            values[layout.counter.name] = self.count
            self.count = 0 if self.count >= layout.max_count else self.count + 1
        if layout.check is not None:
            values[layout.check.name] = _idle(layout.check)
        return layout.seal(bytes(layout.message.encode(values, strict=False)))


@dataclass(slots=True)
class DrivingMessage:
    """Message that drives actuators: its signals by the channels with their names.

    Parameters
    ----------
    layout : Layout
        Layout of the message.
    channels : dict[str, str]
        Channels by signal.
    period_s : float
        Time between two of them in the file, s; 0 if unknown.
    count : int, default -1
        Last counter; -1 for none.
    received_at : float, default 0.0
        Monotonic time of the last one, s.
    missed : int, default 0
        Missed messages since they were last read.
    """

    layout: Layout
    channels: dict[str, str]
    period_s: float
    """Time between two of them in the file, s; 0 if unknown."""
    count: int = -1
    received_at: float = 0.0
    missed: int = 0
    """Missed messages since they were last read."""

    def read(self, data: bytes) -> dict[str, float]:
        """Return the values of a message.

        Parameters
        ----------
        data : bytes
            Its data.

        Returns
        -------
        dict[str, float]
            Values by channel.

        Raises
        ------
        Refusal
            With reason length, malformed, checksum, repeated or not_finite.
        """
        layout = self.layout
        if len(data) < layout.message.length:
            raise Refusal(
                "length", f"message '{layout.message.name}': expected {layout.message.length} bytes, got {len(data)}"
            )
        data = bytes(data[: layout.message.length])
        if layout.seal(data) != data:
            raise Refusal(
                "checksum",
                f"message '{layout.message.name}': the checksum is wrong; check checksum_kind and the "
                "DBC file of the sender",
            )
        try:
            decoded = layout.message.decode(data, decode_choices=False)
        except (ValueError, KeyError, OverflowError):
            raise Refusal(
                "malformed", f"message '{layout.message.name}': expected the layout of the DBC file, got other bytes"
            ) from None
        values = {channel: float(decoded[name]) for name, channel in self.channels.items()}
        if not all(map(isfinite, values.values())):
            raise Refusal(
                "not_finite",
                f"message '{layout.message.name}': expected finite numbers, got "
                f"{', '.join(f'{name}={value}' for name, value in values.items() if not isfinite(value))}",
            )
        if layout.counter is not None:
            self._follow(int(decoded[layout.counter.name]), layout.max_count)
        return values

    def _follow(self, count: int, maximum: int) -> None:
        """Check that the counter rises; a constant one means that the sender has stopped."""
        before, self.count = self.count, count
        if before < 0:
            return
        step = (count - before) % (maximum + 1)
        if step == 0:
            raise Refusal(
                "repeated",
                f"message '{self.layout.message.name}': expected a counter that rises, got {count} "
                "again: its sender may have stopped",
            )
        self.missed += step - 1

    def begin(self) -> None:
        """Accept any next counter, because the bus was gone."""
        self.count, self.received_at = -1, 0.0


def find(database: Any, word: str, place: str) -> tuple[Any, str]:
    """Return the message and the signal of a text.

    Parameters
    ----------
    database : Any
        The database.
    word : str
        MESSAGE.SIGNAL, or a SIGNAL that only one message has.
    place : str
        Source of the text, for the error.

    Returns
    -------
    tuple[Any, str]
        Message and signal.

    Raises
    ------
    ModelError
        If there is none, or several.
    """
    name, dot, signal = word.partition(".")
    known = [f"{message.name}.{signal.name}" for message in database.messages for signal in message.signals]
    if dot:
        if word not in known:
            raise ModelError(f"{place}: {UnknownNameError('signal', word, known)}")
        return database.get_message_by_name(name), signal
    having = [message for message in database.messages if any(signal.name == word for signal in message.signals)]
    if not having:
        names = sorted({item.partition(".")[2] for item in known})
        raise ModelError(f"{place}: {UnknownNameError('signal', word, names)}")
    if len(having) > 1:
        raise ModelError(f"{place}: '{word}' is in {', '.join(item.name for item in having)}: expected MESSAGE.SIGNAL")
    return having[0], word


def by_message(database: Any, options: Mapping[str, Any], place: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return values by their message.

    Parameters
    ----------
    database : Any
        The database.
    options : Mapping[str, Any]
        Values by text, as of `find`.
    place : str
        Source of the texts, for errors.

    Returns
    -------
    dict[str, tuple[Any, dict[str, Any]]]
        Message, and values by signal, by the message's name.

    Raises
    ------
    ModelError
        As `find` raises it.
    """
    result: dict[str, tuple[Any, dict[str, Any]]] = {}
    for word, value in options.items():
        message, signal = find(database, word, place)
        result.setdefault(message.name, (message, {}))[1][signal] = value
    return result


def _fitting(signal: Any, value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"{signal.name}: not a finite number")
    if not signal.conversion.is_float:
        low, high = ((-(1 << (signal.length - 1)), (1 << (signal.length - 1)) - 1) if signal.is_signed
                     else (0, (1 << signal.length) - 1))  # fmt: skip
        ends = sorted(float(raw * signal.scale + signal.offset) for raw in (low, high))
        value = min(ends[1], max(ends[0], value))
    if signal.minimum is not None and signal.maximum is not None and signal.minimum < signal.maximum:
        value = min(float(signal.maximum), max(float(signal.minimum), value))
    return value


def _idle(signal: Any) -> float:
    """Return the value of a signal without a source."""
    return float(signal.initial if isinstance(signal.initial, int | float) else signal.offset)


def fuzzed() -> Fuzzed:
    """Return the parser of frames for fuzz tests: two bytes of identifier, and the data.

    The messages are with and without a counter and a checksum.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    import cantools

    database = cantools.database.load_string(_SAMPLE, "dbc")
    layouts = [Layout(message, "Counter", "Checksum", "crc8") for message in database.messages]
    messages = {
        layout.identifier: DrivingMessage(layout, {signal.name: signal.name for signal in layout.message.signals
                                    if signal.name not in layout.reserved_signals}, 0.01) for layout in layouts
    }  # fmt: skip

    def read(frame: bytes) -> str:
        """Return the result for a frame.

        Parameters
        ----------
        frame : bytes
            Identifier and data.

        Returns
        -------
        str
            Reason of the refusal, or 'taken'.
        """
        item = messages.get(int.from_bytes(frame[:2], "little"))
        if item is None:
            return "passed over"
        try:
            item.read(frame[2:])
        except Refusal as refusal:
            if refusal.reason != "checksum":
                return refusal.reason
            if len(frame) >= 2 + item.layout.message.length:  # and what it would contain, were its checksum right
                try:
                    item.read(item.layout.seal(frame[2 : 2 + item.layout.message.length]))
                except Refusal as again:
                    return again.reason
            return "checksum"
        return "taken"

    samples = []
    for number, data in ((0x100, bytes(8)), (0x101, b"\0\0\x80?\1\0"), (0x102, b"\1\2\3\4\5\6\7\10")):
        samples.append(
            number.to_bytes(2, "little") + messages[number].layout.seal(data[: messages[number].layout.message.length])
        )
    return read, samples


_SAMPLE = """VERSION ""
BU_: A B
BO_ 256 Angles: 8 A
 SG_ Left : 0|16@1- (0.001,0) [0|0] "rad" B
 SG_ Right : 23|16@0- (0.001,0) [0|0] "rad" B
 SG_ Flags : 32|7@1+ (1,0) [0|0] "" B
BO_ 257 Guarded: 6 A
 SG_ Speed : 0|32@1- (1,0) [0|0] "m/s" B
 SG_ Counter : 32|4@1+ (1,0) [0|0] "" B
 SG_ Checksum : 40|8@1+ (1,0) [0|0] "" B
BO_ 258 Wide: 8 A
 SG_ Whole : 0|64@1+ (1,0) [0|0] "" B
SIG_VALTYPE_ 257 Speed : 1;
"""
