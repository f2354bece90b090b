"""ZeroMQ's socket as the one that a link's states come on, read with as few calls as can be: each costs microseconds.

To ask ZeroMQ whether a message waits takes two system calls, and a recv that finds none takes four and an exception.
So the socket is asked only where the answer is not known already.
"""

from __future__ import annotations

import contextlib

import zmq

from rtmms.wire.libzmq.presence import Presence
from rtmms.wire.stream.dealer import NEAR

_NOW = int(zmq.NOBLOCK)
_EVENTS, _POLLIN = int(zmq.EVENTS), int(zmq.POLLIN)
_LINGER_MS = 200


class ZmqData:
    """A DEALER (with keys, or within a program) or a SUB (telemetry) as Data; see data_line.py."""

    def __init__(self, socket: zmq.Socket[bytes], endpoint: str) -> None:
        """The socket is made and not yet connected. zmq.ZMQError where it cannot be."""
        self._socket = socket
        self._get, self._recv, self._recv_all = socket.getsockopt, socket.recv, socket.recv_multipart
        self._single = socket.getsockopt(zmq.TYPE) == zmq.DEALER
        self.descriptor = int(socket.getsockopt(zmq.FD))
        self.near = endpoint.startswith(NEAR)
        self._presence = Presence(socket)
        try:
            socket.connect(endpoint)
        except BaseException:
            self._presence.close()
            raise

    def next(self, *, told: bool) -> bytes | None:
        if not told and not int(self._get(_EVENTS)) & _POLLIN:
            return None
        try:
            return self._recv(_NOW) if self._single else self._recv_all(_NOW)[-1]
        except zmq.Again:
            return None

    def send(self, frame: bytes) -> bool:
        try:
            try:
                self._socket.send(frame, _NOW)
            except zmq.Again:
                self._get(_EVENTS)  # makes libzmq look at what the plant has read since
                self._socket.send(frame, _NOW)
        except zmq.Again:
            return False
        return True

    def heard(self) -> None:
        self._presence.heard()

    def gone(self) -> bool:
        return self._presence.gone()

    def close(self, last: bytes | None) -> None:
        self._presence.close()
        if last is not None:
            with contextlib.suppress(zmq.ZMQError):  # it may be gone; and a subscriber's socket cannot send
                self._socket.send(last, _NOW)
        self._socket.close(linger=_LINGER_MS)
