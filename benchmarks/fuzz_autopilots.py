"""What autopilots and ground stations send, to be fuzzed: each parser as (read, samples), see benchmarks/fuzz.py."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from bridges import ardupilot as ardupilot_bridge
from bridges import mavlink as mavlink_bridge
from bridges import px4 as px4_bridge
from bridges.mavframes import Reader, Signing, Writer
from rtmms.bridging.untrusted import Refusal

Parser = tuple[Callable[[bytes], object], list[bytes]]


def ardupilot() -> Parser:
    """Servo packets, both sizes."""

    def read(frame: bytes) -> str:
        try:
            servo = ardupilot_bridge.parse(frame)
        except Refusal as refusal:
            return refusal.reason
        assert len(servo.pulses) in (16, 32)
        assert servo.frame_rate > 0
        return "read"

    pulses = range(1000, 2000, 50)
    return read, [
        struct.pack("<HHI16H", 18458, 400, 7, *pulses[:16]),
        struct.pack("<HHI32H", 29569, 1200, 70000, *([1500] * 32)),
    ]


def px4() -> Parser:
    """PX4's stream: one frame after the other into the same reader, and each by itself."""
    from pymavlink.dialects.v20 import common as of

    stream, stream_reasons = _reader(None)
    single, reasons = _reader(None)

    def read(frame: bytes) -> str:
        _ends(stream.feed(frame), px4_bridge.parse, stream_reasons)
        return _ends(single.datagram(frame), px4_bridge.parse, reasons)

    writer = Writer(1, 1)
    return read, [
        writer.pack(of.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3)),
        writer.pack(of.MAVLink_command_long_message(0, 0, 511, 0, 115, 5000, 0, 0, 0, 0, 0)),
        writer.pack(of.MAVLink_hil_actuator_controls_message(123456, [0.25] * 16, 129, 1)),
    ]


def mavlink() -> Parser:
    """A station's datagrams, signed ones among them."""
    from pymavlink.dialects.v20 import common as of

    plain, reasons = _reader(None)
    strict, strict_reasons = _reader(Signing(bytes(32)))
    messages: list[Any] = [
        of.MAVLink_heartbeat_message(6, 8, 0, 0, 0, 3),
        of.MAVLink_manual_control_message(1, 100, -100, 500, 0, 0),
        of.MAVLink_command_long_message(1, 1, 187, 0, 0.5, -0.5, 0, 0, 0, 0, 0),
        of.MAVLink_param_request_read_message(1, 1, b"RATE_ATTITUDE", -1),
        of.MAVLink_param_set_message(1, 1, b"RATE_ATTITUDE", 10.0, 9),
    ]

    def means(message: Any) -> None:
        kind = message.get_type()
        if kind == "MANUAL_CONTROL":
            assert all(abs(value) <= 1 for value in mavlink_bridge.axes(message).values())
        elif kind == "COMMAND_LONG":
            assert all(abs(value) <= 1 for value in mavlink_bridge.actuators(message).values())

    def read(frame: bytes) -> str:
        _ends(strict.datagram(frame), means, strict_reasons)
        return _ends(plain.datagram(frame), means, reasons)

    unsigned, signed = Writer(255, 190), Writer(255, 190, Signing(bytes(32)))
    return read, [writer.pack(message) for writer in (unsigned, signed) for message in messages]


def _reader(signing: Signing | None) -> tuple[Reader, Counter[str]]:
    reasons: Counter[str] = Counter()
    return Reader(lambda reason: reasons.update((reason,)), signing), reasons


def _ends(messages: list[Any], means: Callable[[Any], object], reasons: Counter[str]) -> str:
    """What became of a frame, in a word."""
    for message in messages:
        try:
            means(message)
        except Refusal as refusal:
            reasons[refusal.reason] += 1
    told = max(reasons, default="", key=lambda reason: reasons[reason])
    reasons.clear()
    return told or ("read" if messages else "kept")
