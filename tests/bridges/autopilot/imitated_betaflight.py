"""Betaflight's software in the loop as its source has it (sitl.c of 4.6), as far as a bridge meets it.

- The first packet of motion after 0.5 s without one sets its stamp alone, and is answered at once. What is older than
  the packet before is dropped. Each other one is answered with motors as soon as its clock has gone on by a period.
- Its clock runs at the rate of the stamps over the arrivals of the last two packets; the first of these rates divides
  by the time since the machine started. It takes no rate from stamps that are 20 ms apart.
- A packet of motion in its first second ends it, and a remote control that came then is forgotten.
- Its motors come from a port of the system's choice, which is another one after each start.
- Without the remote control for a second of its clock it stops the motors.
"""

from __future__ import annotations

import math
import socket
import struct
from math import sqrt

MOTION = struct.Struct("<18d")
RC = struct.Struct("<d16H")
MOTORS = struct.Struct("<4f")
SILENT_S = 0.5
FAILSAFE_S = 1.0
START_S = 1.0
PERIOD_S = 125e-6
SHORT_S = 1e-3
"""Wall time within which an answer counts as one at once."""
CLIMB_M = 5.0


class ImitatedBetaflight:
    """One Betaflight that climbs to CLIMB_M over `home_m` and holds there while it has a remote control.

    Attributes
    ----------
    clock : float
        Its own time, s.
    failsafe : bool
        It has taken the remote control for lost, for good.
    motion : tuple of float
        The last packet of motion.
    stalled : bool
        Its process gets no core: packets wait in its sockets.
    dead : bool
        It answers packets after a silence alone, as one does whose scheduler was late in its first period.
    ended : bool
        A packet of motion came while it started.
    start_s : float
        Time that it takes to start, s.
    """

    start_s = START_S

    def __init__(self, address: tuple[str, int], state_port: int, rc_port: int, home_m: float) -> None:
        self._address, self._ports, self._home_m = address, (state_port, rc_port), home_m
        self._sockets: list[socket.socket] = []

    def start(self) -> None:
        """As its process does."""
        self.kill()
        for port in self._ports:
            self._sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            self._sockets[-1].bind(("127.0.0.1", port))
            self._sockets[-1].setblocking(False)
        self._sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.clock, self.failsafe, self.stalled = 0.0, False, False
        self.motion: tuple[float, ...] = (0.0,) * 18
        self.pulses: tuple[int, ...] = ()
        self.packets, self.dead, self.ended, self._deaf = 0, False, False, False
        self._rate, self._at, self._stamp, self._arrived, self._controlled = 1.0, 0.0, 0.0, -1.0, 0.0
        self._began, self._timed, self._due = -1.0, 0.0, math.inf

    def kill(self) -> None:
        """As `kill -9` does."""
        for item in self._sockets:
            item.close()
        self._sockets = []

    def run(self, now: float) -> None:
        if not self._sockets or self.stalled:
            return
        if self._began < 0.0:
            self._began = now
        self.clock += (now - self._at) * self._rate if self._at else 0.0
        self._at = now
        for data in _waiting(self._sockets[1]):
            _, *pulses = RC.unpack(data)
            if self._deaf or now - self._began < self.start_s:
                self._deaf = True
                continue
            self.pulses, self._controlled = tuple(pulses), max(self._controlled, self.clock)
            if not self.failsafe and self.clock - self._controlled > FAILSAFE_S:
                self.failsafe = True
        if self.pulses and self.clock - self._controlled > FAILSAFE_S:
            self.failsafe = True
        for k, data in enumerate(_waiting(self._sockets[0])):
            if len(data) == MOTION.size:
                self._take(MOTION.unpack(data), now + 5e-6 * k)
            if self.ended:
                self.kill()
                return
        if self.clock >= self._due and not self.dead:
            self._due = math.inf
            self._answer()

    def _take(self, motion: tuple[float, ...], now: float) -> None:
        stamp = motion[0]
        if now - self._began < self.start_s:
            self.ended = True
            return
        if self._arrived < 0.0 or now - self._arrived > SILENT_S:
            self._stamp, self._arrived = stamp, now
            self._answer()
            return
        lapse = stamp - self._stamp
        if lapse < 0.0:
            return
        if 0.0 < lapse < 0.02:
            self._rate = lapse / (now - self._timed)
        self.motion, self._stamp, self._arrived, self._timed = motion, stamp, now, now
        self.packets += 1
        if self._rate * SHORT_S >= PERIOD_S and not self.dead:
            self._answer()
        else:
            self._due = self.clock + PERIOD_S

    def _answer(self) -> None:
        self._sockets[2].sendto(MOTORS.pack(*[self._motor()] * 4), self._address)

    def _motor(self) -> float:
        if self.failsafe or not self.pulses or self.pulses[4] < 1700:
            return 0.0
        altitude, climb = self.motion[16] - self._home_m, self.motion[13]
        push = 0.342 * (1.0 + 0.4 * (CLIMB_M - altitude) - 0.5 * climb)  # of the thrust at full speed
        return sqrt(min(1.0, max(0.0, push)))


def _waiting(item: socket.socket) -> list[bytes]:
    result = []
    while True:
        try:
            result.append(item.recv(4096))
        except OSError:
            return result
