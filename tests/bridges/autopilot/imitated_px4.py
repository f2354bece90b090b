"""PX4 as it was measured over HIL (1.17-alpha, November 2026), as far as a bridge meets it.

- It connects, sends a heartbeat, and starts up on the sensors' clock before it sends its first actuators.
- From then on it answers each HIL_SENSOR: in lockstep it waits for the next one.
- Motors are 0 to 1; all are 0 unless it is armed.
"""

from __future__ import annotations

import contextlib
import socket
from math import sqrt
from typing import Any

from pymavlink.dialects.v20 import common

from rtmms_bridges.autopilot.mavframes import Reader, Writer

START_UP_US = 500_000
"""Time until its first actuators, of the sensors' clock; the genuine one takes longer."""
SETTLE_US = 2_000_000
"""Time until it arms, of the sensors' clock; the genuine one takes longer."""
ARMED = 128
LOCKSTEP = 1
CLIMB_M = 5.0


class ImitatedPx4:
    """One PX4 that arms when it can, climbs to CLIMB_M over `home_m` and holds there.

    Attributes
    ----------
    armed : bool
        The motors run.
    altitude : float
        Height over `home_m` that it was sent last, m.
    stamps : list of int
        Time stamps of all HIL_SENSOR, us.
    max_burst : int
        Largest number of HIL_SENSOR that it found at once. The genuine one loses some of more than eight.
    """

    def __init__(self, address: tuple[Any, ...], home_m: float) -> None:
        self._address, self._home_m = address, home_m
        self._socket: socket.socket | None = None
        self.stamps: list[int] = []
        self.max_burst = 0

    def start(self) -> None:
        """As its process does."""
        self.kill()
        self._socket = socket.create_connection(self._address[:2])
        self._socket.setblocking(False)
        self._reader, self._writer = Reader(lambda reason: None), Writer(1, 1)
        self.armed, self.altitude, self._sink = False, 0.0, 0.0
        self.stamps, self.max_burst = [], 0
        self._send(common.MAVLink_heartbeat_message(2, 12, 0, 0, 0, 3))

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def run(self, now: float) -> None:
        if self._socket is None:
            return
        before = len(self.stamps)
        with contextlib.suppress(BlockingIOError):
            for message in self._reader.feed(self._socket.recv(65536)):
                self._take(message)
        if self.armed:
            self.max_burst = max(self.max_burst, len(self.stamps) - before)

    def _take(self, message: Any) -> None:
        kind = message.get_type()
        if kind == "HIL_STATE_QUATERNION":
            self.altitude, self._sink = 1e-3 * message.alt - self._home_m, 0.01 * message.vz
        if kind != "HIL_SENSOR":
            return
        self.stamps.append(message.time_usec)
        since = message.time_usec - self.stamps[0]
        if since < START_UP_US:
            return
        self.armed = since >= SETTLE_US
        controls = [self._motor()] * 4 + [0.0] * 12 if self.armed else [0.0] * 16
        mode = 1 | (ARMED if self.armed else 0)
        self._send(common.MAVLink_hil_actuator_controls_message(message.time_usec, controls, mode, LOCKSTEP))

    def _motor(self) -> float:
        push = 0.342 * (1.0 + 0.4 * (CLIMB_M - self.altitude) + 0.5 * self._sink)  # of the thrust at full speed
        return sqrt(min(1.0, max(0.0, push)))  # THR_MDL_FAC 1

    def _send(self, message: Any) -> None:
        assert self._socket is not None
        with contextlib.suppress(OSError):
            self._socket.sendall(self._writer.pack(message))
