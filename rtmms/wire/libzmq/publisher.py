"""Telemetry by ZeroMQ's PUB, which drops for those that do not read: with keys, and within a program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import zmq

from rtmms.wire.protocol.port import FULL, SENT, Guests, Heard

_NOW, _NOW_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)


class Publisher:
    """Messages to whoever is subscribed to a topic that the message's begins with.

    reopened  opens and binds another PUB at the same address; ZMQError while it is in use
    """

    def __init__(self, publisher: zmq.Socket[bytes], reopened: Callable[[], zmq.Socket[bytes]]) -> None:
        self.socket: zmq.Socket[bytes] | None = publisher
        self._reopened = reopened

    def attend(self, guests: Guests, cap: int) -> None:
        """All they say is subscriptions, and ZeroMQ hears them."""

    def next(self) -> Heard | None:
        """See attend."""
        return None

    def send(self, who: bytes, frame: bytes) -> int:
        """See Messages."""
        if self.socket is None:
            return FULL
        try:
            self.socket.send(who, _NOW_MORE)
            self.socket.send(frame, _NOW)
        except zmq.Again:
            return FULL
        return SENT

    def serve(self, until_ns: int) -> None:
        """After `hang_up`: open again, when its I/O thread has let go of the address."""
        if self.socket is None:
            with contextlib.suppress(zmq.ZMQError):
                self.socket = self._reopened()

    def wait(self, until_ns: int) -> bool:
        """Nothing comes."""
        return False

    def hang_up(self) -> None:
        """A PUB cannot do it to one alone."""
        if self.socket is not None:
            self.socket.close(linger=0)
            self.socket = None

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        if self.socket is not None:
            self.socket.close(linger=linger_ms)
