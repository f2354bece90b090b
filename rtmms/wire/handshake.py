"""Why a plant that is there does not let us in: what ZeroMQ's monitor tells of the handshake, in words for a person."""

from __future__ import annotations

from typing import Any

import zmq

_EVENTS = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
)
_UNLISTED = (
    "the plant does not know this key: add its public file (NAME.key) to the folder 'clients' of the plant's keys"
)
_KEYS_WANTED = "it asks for keys and none were given: --keys DIR, or connect(..., keys=DIR); see `rtmms keys`"
_NO_KEYS_WANTED = "it asks for no keys, and some were given: leave --keys away, or serve with --keys"
_WRONG = "is server.key the one of this plant, and does the plant run with --keys? Or it has only just started"
_STRANGE = "what answers there is no plant of rtmms"


class Handshake:
    """Follows the connection of one socket until it stands.

    keyed  the socket has keys
    """

    def __init__(self, socket: zmq.Socket[bytes], keyed: bool) -> None:
        self._socket, self._keyed = socket, keyed
        self._monitor: Any = socket.get_monitor_socket(_EVENTS)
        self._closed = False
        self.refused = ""
        self.broken = 0

    def look(self) -> str:
        """Why it is over: ZeroMQ does not try again after such a refusal. '' while there is hope."""
        try:
            while not self.refused:
                event = int.from_bytes(self._monitor.recv_multipart(zmq.NOBLOCK)[0][:2], "little")
                if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                    self.refused = _UNLISTED
                elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                    self.refused = _NO_KEYS_WANTED if self._keyed else _KEYS_WANTED
                elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
                    self.broken += 1
                else:
                    self.broken = 0
        except zmq.Again:
            pass
        return self.refused

    def hint(self) -> str:
        """What may be wrong when time is up: connections that were made and broken off say that somebody is there."""
        if not self.look() and self.broken:
            return _WRONG if self._keyed else f"{_KEYS_WANTED}; or {_STRANGE}"
        return self.refused

    def close(self) -> None:
        """Before the socket and its context, or the context would wait for the monitor for ever. Twice does nothing."""
        if not self._closed:
            self._closed = True
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
