"""A plant's sockets that peers talk to, by ZeroMQ's ROUTER: with keys, and within a program."""

from __future__ import annotations

import errno
import select
from time import monotonic_ns
from typing import Any

import zmq

from rtmms.wire.libzmq.zap import Gatekeeper
from rtmms.wire.protocol.port import FULL, GARBLED, GONE, MESSAGE, SENT, Guests, Heard

_NOW, _NOW_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
_EVENTS, _POLLIN, _MORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.RCVMORE)
_SKIPS = 32


class Router:
    """Messages of those that are connected, each known by its routing id.

    gatekeeper  answers for the keys of all that connect in this context; None where no keys are asked for
    tells_keys  messages are told with the key that their sender came in with
    """

    threaded = True

    def __init__(self, socket: zmq.Socket[bytes], gatekeeper: Gatekeeper | None = None, tells_keys: bool = False):
        self.socket, self._gatekeeper, self._tells_keys = socket, gatekeeper, tells_keys
        self._send, self._recv, self._get = socket.send, socket.recv, socket.getsockopt
        self._watch: list[Any] = [socket.getsockopt(zmq.FD)]
        self._skipping = False

    def attend(self, guests: Guests, cap: int) -> None:
        """ZeroMQ lets in whom it wants to: what strangers say is its owner's to refuse."""

    def send(self, who: bytes, frame: bytes) -> int:
        """See Messages."""
        try:
            try:
                self._send(who, _NOW_MORE)
            except zmq.Again:
                # libzmq looks only once a millisecond at what the other side has read; a queue that seems full in a
                # quick exchange may be empty. Asking for events makes it look.
                self._get(_EVENTS)
                self._send(who, _NOW_MORE)
            self._send(frame, _NOW)
        except zmq.Again:
            return FULL
        except zmq.ZMQError as fault:
            if fault.errno != zmq.EHOSTUNREACH:
                raise
            return GONE
        return SENT

    def next(self) -> Heard | None:
        """Frames beyond the first are thrown away, a few a call: None may come before all are gone."""
        if not int(self._get(_EVENTS)) & _POLLIN:  # half as dear as a recv that finds none
            return None
        try:
            skips = 0
            while self._skipping:
                if skips == _SKIPS:
                    return None
                self._recv(_NOW)
                self._skipping, skips = bool(self._get(_MORE)), skips + 1
            who = self._recv(_NOW)
        except zmq.Again:
            return None
        except zmq.ZMQError as fault:
            if fault.errno == errno.EINTR:
                return None
            raise
        key, frame = self._frame() if self._tells_keys else (None, self._recv(_NOW))  # there is one behind each id
        self._skipping = bool(self._get(_MORE))
        return who, GARBLED if self._skipping else MESSAGE, frame, key

    def _frame(self) -> tuple[bytes | None, bytes]:
        frame = self.socket.recv(_NOW, copy=False)
        return bytes.fromhex(str(frame.get("User-Id"))), frame.bytes

    def serve(self, until_ns: int) -> None:
        """The handshakes that wait for an answer."""
        if self._gatekeeper is not None:
            self._gatekeeper.serve()

    def arm(self, instant_ns: int) -> None:
        """A wait sets its own timer here."""

    def wait(self, until_ns: int) -> bool:
        """ZeroMQ's own time-outs are whole milliseconds; its descriptor tells of news only once, so it is asked."""
        if int(self._get(_EVENTS)) & _POLLIN:
            return True
        left_ns = until_ns - monotonic_ns()
        return left_ns > 0 and bool(select.select(self._watch, (), (), left_ns * 1e-9)[0])

    def connected(self, who: bytes) -> bool | None:
        """See Answering."""
        return None

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        self.socket.close(linger=linger_ms)
