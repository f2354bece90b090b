"""Betaflight's software in the loop as its source has it (sitl.c of 4.6), as far as a bridge meets it.

- The first packet of motion after 0.5 s without one sets its stamp alone; what is older than the packet before is
  dropped. Each other one is answered with motors.
- Its clock runs at the rate of the stamps over the arrivals of the last two packets.
- Without the remote control for a second of its clock it stops the motors.
"""

from __future__ import annotations

import socket
import struct
from math import sqrt

MOTION, RC, MOTORS = struct.Struct("<18d"), struct.Struct("<d16H"), struct.Struct("<4f")
SILENT_S, FAILSAFE_S = 0.5, 1.0
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
    """

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
        self.clock, self.failsafe, self.stalled, self.motion = 0.0, False, False, (0.0,) * 18
        self.pulses: tuple[int, ...] = ()
        self.packets = 0
        self._rate, self._at, self._stamp, self._arrived, self._controlled = 1.0, 0.0, 0.0, -1.0, 0.0

    def kill(self) -> None:
        """As `kill -9` does."""
        for one in self._sockets:
            one.close()
        self._sockets = []

    def run(self, now: float) -> None:
        if not self._sockets or self.stalled:
            return
        self.clock += (now - self._at) * self._rate if self._at else 0.0
        self._at = now
        for data in _waiting(self._sockets[1]):
            _, *pulses = RC.unpack(data)
            self.pulses, self._controlled = tuple(pulses), max(self._controlled, self.clock)
            if not self.failsafe and self.clock - self._controlled > FAILSAFE_S:
                self.failsafe = True
        if self.pulses and self.clock - self._controlled > FAILSAFE_S:
            self.failsafe = True
        for k, data in enumerate(_waiting(self._sockets[0])):
            self._take(MOTION.unpack(data), now + 5e-6 * k)

    def _take(self, motion: tuple[float, ...], now: float) -> None:
        stamp = motion[0]
        if self._arrived < 0.0 or now - self._arrived > SILENT_S:
            self._stamp, self._arrived = stamp, now
            self._answer()
            return
        lapse = stamp - self._stamp
        if lapse < 0.0:
            return
        if 0.0 < lapse < 0.02:
            self._rate = lapse / (now - self._arrived)
        self.motion, self._stamp, self._arrived = motion, stamp, now
        self.packets += 1
        self._answer()

    def _answer(self) -> None:
        self._sockets[0].sendto(MOTORS.pack(*[self._motor()] * 4), self._address)

    def _motor(self) -> float:
        if self.failsafe or not self.pulses or self.pulses[4] < 1700:
            return 0.0
        altitude, climb = self.motion[16] - self._home_m, self.motion[13]
        push = 0.342 * (1.0 + 0.4 * (CLIMB_M - altitude) - 0.5 * climb)  # of the thrust at full speed
        return sqrt(min(1.0, max(0.0, push)))


def _waiting(one: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(one.recv(4096))
        except OSError:
            return found
