"""ArduCopter as it was measured with the JSON backend (4.7.0-dev, November 2026), as far as a bridge meets it.

- It measures its frame rate by the time stamps that it gets, unless the line states `no_time_sync`, and writes it into
  its packets; from frame to frame the rate drifts by 1 Hz towards SIM_RATE_HZ.
- It refuses to arm below 1.8 times SCHED_LOOP_RATE of gyroscope samples, which are its frames.
- It counts frames from 0 after each start, and sends a frame again when no answer came for a second.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Callable
from math import sqrt
from typing import Any

from tests.bridges.autopilot.sitl import RESEND_S, read

SIM_RATE_HZ = 1200.0
LOOP_HZ = 400.0
SETTLE_S = 2.0
"""Time after which its estimator is ready, s of its clock; the genuine one takes longer."""
CLIMB_M = 5.0


class ImitatedCopter:
    """One ArduCopter that arms when it can, climbs to CLIMB_M and holds there.

    Attributes
    ----------
    clock : float
        Its own time, s: the sum of the differences of the stamps.
    altitude : float
        Height that it was sent last, m.
    armed : bool
        The motors run.
    refusal : str
        Why it did not arm when it tried last.
    stamps : list of float
        Time stamps of all lines, s.
    attend : callable, optional
        Lets the bridge read what was sent, so that more than one frame fits into a period.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.attend: Callable[[], None] | None = None
        self._socket: socket.socket | None = None
        self.stamps: list[float] = []
        self.rates: list[int] = []

    def start(self) -> None:
        """As its process does."""
        self.kill()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.rate_hz, self.frame, self.clock, self._stamp = SIM_RATE_HZ, 0, 0.0, 0.0
        self.armed, self.refusal, self.altitude, self.silent = False, "not tried", 0.0, False
        self.stamps, self.rates = [], []
        self._pulses = [1000] * 4
        self._frames: deque[float] = deque()
        self._sent: float | None = None

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def run(self, now: float) -> None:
        if self._socket is None or self.silent:
            return
        if self._sent is None:
            self._send(now)
        for _ in range(3):  # it computes several times as fast as the plant's clock runs
            line = self._receive()
            if line is None:
                break
            self._take(read(line))
            self._send(now)
            if self.attend is not None:
                self.attend()
        if now - (self._sent or now) >= RESEND_S:
            self._send(now)

    @property
    def gyro_hz(self) -> float:
        """Samples of the gyroscope in the last second of its clock."""
        return float(len(self._frames))

    def _send(self, now: float) -> None:
        assert self._socket is not None
        self._sent = now
        rate = min(65535, round(self.rate_hz))
        self.rates.append(rate)
        packet = struct.pack("<HHI16H", 18458, rate, self.frame, *self._pulses, *[0] * (16 - len(self._pulses)))
        self._socket.sendto(packet, self._address)

    def _receive(self) -> str | None:
        assert self._socket is not None
        try:
            data = self._socket.recv(65000)
        except OSError:
            return None
        assert data.startswith(b"\n"), "it drops a first line that has no newline before it"
        return data.decode().strip()

    def _take(self, line: dict[str, Any]) -> None:
        lapse = line["timestamp"] - self._stamp
        if 0.0 < lapse < 0.1 and not line.get("no_time_sync"):
            self.rate_hz = 1.0 / lapse
        self.rate_hz = min(self.rate_hz + 1.0, max(self.rate_hz - 1.0, SIM_RATE_HZ))
        self._stamp = line["timestamp"]
        self.stamps.append(self._stamp)
        self.frame += 1
        self.clock += max(0.0, lapse)
        self._frames.append(self.clock)
        while self._frames[0] <= self.clock - 1.0:
            self._frames.popleft()
        self.altitude = -line["position"][2]
        self._arm(line)
        self._fly(line)

    def _arm(self, line: dict[str, Any]) -> None:
        if self.armed or self.clock < SETTLE_S:
            return
        force, needed = line["accel_body"][2], 1.8 * LOOP_HZ
        if self.gyro_hz < needed:
            self.refusal = f"Gyros: {self.gyro_hz:.0f}Hz < {needed:.0f}Hz"
        elif abs(force + 9.81) > 1.0:
            self.refusal = f"Accels: {force:.1f} m/s2 at rest"
        else:
            self.armed, self.refusal = True, ""

    def _fly(self, line: dict[str, Any]) -> None:
        if not self.armed:
            self._pulses = [1000] * 4
            return
        sink = line["velocity"][2]
        push = 0.342 * (1.0 + 0.4 * (CLIMB_M - self.altitude) + 0.5 * sink)  # of the thrust at full speed
        self._pulses = [round(1000.0 + 1000.0 * sqrt(min(1.0, max(0.05, push))))] * 4
