"""Why a plant that is there does not let us in: what ZeroMQ's monitor tells of the handshake, in words for a person."""

from __future__ import annotations

import errno
from typing import Any

import zmq

_EVENTS = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_CONNECTED
    | zmq.EVENT_CLOSED
)
_BROKEN = 2
_TIMED_OUT = frozenset((errno.EAGAIN, errno.ETIMEDOUT))
_MISMATCH = int(zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
_UNLISTED = (
    "the plant does not know this key: add its public file (NAME.key) to the folder 'clients' of the plant's keys"
)
_KEYS_WANTED = "it asks for keys and none were given: --keys DIR, or connect(..., keys=DIR); see `rtmms keys`"
_NO_KEYS_WANTED = "it asks for no keys, and some were given: leave --keys away, or serve with --keys"
_WRONG = "is server.key the one of this plant, and does the plant run with --keys? Or it has only just started"
MUTE = "something listens there and does not answer: it may still be loading or compiling, wait longer"
_STRANGE = "what answers there is no plant of rtmms"


class Handshake:
    """Follows the connection of one socket until it stands.

    keyed    the socket has keys
    refused  why it is over; '' while there is hope
    mute     something listens, and says nothing that it could be known by
    """

    def __init__(self, socket: zmq.Socket[bytes], keyed: bool) -> None:
        self._socket, self._keyed = socket, keyed
        self._monitor: Any = socket.get_monitor_socket(_EVENTS)
        self._closed = False
        self.refused = ""
        self.mute = False
        self._broken = 0

    def look(self) -> str:
        """Why it is over: ZeroMQ does not try again after such a refusal. '' while there is hope."""
        try:
            while not self.refused:
                told = self._monitor.recv_multipart(zmq.NOBLOCK)[0]
                self._note(int.from_bytes(told[:2], "little"), int.from_bytes(told[2:6], "little"))
        except zmq.Again:
            pass
        return self.refused

    def _note(self, event: int, value: int) -> None:
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self.refused = _UNLISTED
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            if value == _MISMATCH:
                self.refused = _NO_KEYS_WANTED if self._keyed else _KEYS_WANTED
            else:
                self.refused = _WRONG if self._keyed else _STRANGE
        elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL and value not in _TIMED_OUT:
            self._broken, self.mute = self._broken + 1, False
        elif event == zmq.EVENT_CONNECTED:
            self.mute = True  # until it breaks off
        else:  # it said nothing for long, went along with us, or is not there at all (closed): no sign of keys
            self._broken, self.mute = 0, event != zmq.EVENT_CLOSED

    def hint(self) -> str:
        """What may be wrong when time is up: connections that were broken off, again and again, say that somebody is
        there who wants none of ours."""
        if not self.look() and self._broken >= _BROKEN:
            return _WRONG if self._keyed else f"{_KEYS_WANTED}; or {_STRANGE}"
        return self.refused

    def close(self) -> None:
        """Before the socket and its context, or the context would wait for the monitor for ever. Twice does nothing."""
        if not self._closed:
            self._closed = True
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
