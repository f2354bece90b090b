"""ArduPilot's side of its JSON interface, played from the description of the format: what it sends, how it reads."""

from __future__ import annotations

import re
import socket
import struct
from typing import Any

from tests.wire.bench import PATIENCE_S

# section, key, how many numbers, needed
KEYS = (
    ("", "timestamp", 1, True), ("imu", "gyro", 3, True), ("imu", "accel_body", 3, True), ("", "position", 3, True),
    ("", "attitude", 3, False), ("", "quaternion", 4, False), ("", "velocity", 3, True),
    *(("", f"rng_{i}", 1, False) for i in range(1, 7)), ("", "velocity_wind", 3, False),
    ("windvane", "direction", 1, False), ("windvane", "speed", 1, False), ("", "airspeed", 1, False),
    ("", "no_time_sync", 1, False), *(("rc", f"rc_{i}", 1, False) for i in range(1, 13)),
    ("battery", "voltage", 1, False), ("battery", "current", 1, False),
)  # fmt: skip
RESEND_S = 1.0
"""After which it sends the same again."""
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+|inf|nan)")


class Lost(Exception):
    """What it read is not what it needs."""


def number(text: str) -> tuple[float, str]:
    """As C's atof: what reads as a number at the beginning, 0 for nothing, and the rest."""
    match = _NUMBER.match(text)
    return (float(match[0]), text[match.end() :]) if match else (0.0, text)


def read(line: str) -> dict[str, Any]:
    """The numbers by key, found by plain search as it does: the first place where the letters stand counts."""
    message: dict[str, Any] = {}
    for section, key, count, needed in KEYS:
        at = line.find(section)
        at = line.find(key, at + len(section) + 1) if at >= 0 else -1
        if at < 0:
            if needed:
                raise Lost(f"no {section}/{key}")
            continue
        remaining = line[at + len(key) + 2 :]
        if count == 1:
            message[key] = number(remaining)[0]
            continue
        values = []
        for i in range(count):
            mark = "[" if i == 0 else ","
            if not remaining.startswith(mark):
                raise Lost(f"{key}: expected '{mark}', got '{remaining[:12]}'")
            value, remaining = number(remaining[1:])
            values.append(value)
        message[key] = values
    if "attitude" not in message and "quaternion" not in message:
        raise Lost("no attitude")
    return message


class Autopilot:
    """Sends a packet for each frame and waits for the line that answers it; sends it again when none comes.

    resend_s  after so long; RESEND_S is the real one's, more of it lets a test count on a busy machine
    clock   its own time, s: the sum of the differences of the time stamps that it accepts (0 < d < 0.1)
    """

    def __init__(self, port: int, *, rate: int = 400, channels: int = 16, resend_s: float = PATIENCE_S) -> None:
        self.address = ("127.0.0.1", port)
        self.rate, self.channels, self.resend_s = rate, channels, resend_s
        self.pulses = [1500] * channels
        self.boot()

    def boot(self) -> None:
        """As after a restart of its process."""
        if hasattr(self, "socket"):
            self.socket.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(self.resend_s)
        self.frame, self.clock, self.stamp, self.buffer = 0, 0.0, 0.0, b""
        self.resent = self.gone_back = self.odd = 0

    def packet(self) -> bytes:
        magic = 18458 if self.channels == 16 else 29569
        return struct.pack(f"<HHI{self.channels}H", magic, self.rate, self.frame, *self.pulses)

    def send(self, packet: bytes | None = None) -> None:
        self.socket.sendto(self.packet() if packet is None else packet, self.address)

    def receive(self) -> dict[str, Any] | None:
        """One datagram, taken as it takes it; None where it makes nothing of it."""
        self.buffer += self.socket.recv(65000).replace(b"\n", b"\0")
        end = self.buffer.rfind(b"\0")
        begin = self.buffer.rfind(b"\0", 0, end)
        if begin < 0:
            return None  # the first line of all must have a newline before it
        line, self.buffer = self.buffer[begin + 1 : end], self.buffer[end:]
        result = read(line.decode())
        lapse = result["timestamp"] - self.stamp
        if lapse < 0:
            self.gone_back += 1
        elif 0 < lapse < 0.1:
            self.clock += lapse
        else:
            self.odd += 1
        self.stamp = result["timestamp"]
        self.frame += 1
        return result

    def exchange(self, tries: int = 12) -> dict[str, Any]:
        """A frame: send, wait, and send the same again after a time."""
        self.send()
        for _ in range(tries):
            try:
                result = self.receive()
            except TimeoutError:
                self.resent += 1
                self.send()
                continue
            if result is not None:
                return result
        raise AssertionError("no answer")

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Autopilot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
