"""What the plant's step socket has to do, and ZeroMQ's ROUTER doing it: with keys, within a program, without epoll.

Elsewhere it is a StepLine (step_line.py).
"""

from __future__ import annotations

import errno
import select
from time import monotonic_ns
from typing import Any, Protocol

import zmq

SENT, FULL, GONE = 0, 1, 2
"""What became of a message: on its way; left out, as the peer does not read; nobody is there."""

_NOW, _NOW_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
_EVENTS, _POLLIN, _MORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.RCVMORE)


class StepSocket(Protocol):
    """Messages of peers, each known by an identity. Nothing here waits but `wait`."""

    def send(self, identity: bytes, message: bytes) -> int:
        """SENT, FULL or GONE."""

    def next(self) -> tuple[bytes, bytes, bool] | None:
        """(identity, frame, whole) of the next message; None when there is none. Not whole: it had more frames."""

    def arm(self, instant_ns: int) -> None:
        """In the slack: the next `wait` will be until then."""

    def wait(self, until_ns: int) -> None:
        """Until a message may have come, or the clock reads until_ns."""


class ZmqStep:
    """ZeroMQ's ROUTER as a StepSocket."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket
        self._send, self._recv, self._get = socket.send, socket.recv, socket.getsockopt
        self._watch: list[Any] = [socket.getsockopt(zmq.FD)]
        self._skipping = False

    def send(self, identity: bytes, message: bytes) -> int:
        try:
            try:
                self._send(identity, _NOW_MORE)
            except zmq.Again:
                # libzmq looks only once a millisecond at what the other side has read; a queue that seems full in a
                # quick exchange may be empty. Asking for events makes it look.
                self._get(_EVENTS)
                self._send(identity, _NOW_MORE)
            self._send(message, _NOW)
        except zmq.Again:
            return FULL
        except zmq.ZMQError as fault:
            if fault.errno != zmq.EHOSTUNREACH:
                raise
            return GONE
        return SENT

    def next(self) -> tuple[bytes, bytes, bool] | None:
        """Frames beyond the first are thrown away, one a call."""
        if not int(self._get(_EVENTS)) & _POLLIN:  # half as dear as a recv that finds none
            return None
        try:
            if self._skipping:
                self._recv(_NOW)
                self._skipping = bool(self._get(_MORE))
                return b"", b"", True
            identity = self._recv(_NOW)
        except zmq.Again:
            return None
        except zmq.ZMQError as fault:
            if fault.errno == errno.EINTR:
                return None
            raise
        frame = self._recv(_NOW)  # a ROUTER gives no identity without a frame behind it
        self._skipping = bool(self._get(_MORE))
        return identity, frame, not self._skipping

    def arm(self, instant_ns: int) -> None:
        """A wait sets its own timer here."""

    def wait(self, until_ns: int) -> None:
        """ZeroMQ's own time-outs are whole milliseconds; its descriptor tells of news only once, so it is asked."""
        left_ns = until_ns - monotonic_ns()
        if left_ns > 0 and not int(self._get(_EVENTS)) & _POLLIN:
            select.select(self._watch, (), (), left_ns * 1e-9)

    def close(self, linger: int = 0) -> None:
        self.socket.close(linger=linger)
