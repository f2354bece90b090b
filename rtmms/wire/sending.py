"""Sending on the step socket: at once or not at all, and who is gone is known with the first message that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import zmq

from rtmms.wire.peers import DEAD, LIVE, Peer

_NOW = int(zmq.NOBLOCK)
_NOW_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)


class Sender:
    """One ROUTER's way out."""

    def __init__(self, socket: zmq.Socket[bytes], pack: Callable[[Any], bytes]) -> None:
        self._send, self._get, self._pack = socket.send, socket.getsockopt, pack

    def transmit(self, peer: Peer, payload: bytes) -> bool:
        """Send without waiting; False if nobody is there. One that has gone is dead within a step of its going."""
        try:
            try:
                self._send(peer.identity, _NOW_MORE)
            except zmq.Again:
                # libzmq looks only once a millisecond at what the other side has read; a queue that seems full in a
                # quick exchange may be empty. Asking for events makes it look.
                self._get(zmq.EVENTS)
                self._send(peer.identity, _NOW_MORE)
            self._send(payload, _NOW)
        except zmq.Again:
            peer.skipped += 1  # it does not read: its queue is full, and stays as long as it is
        except zmq.ZMQError as fault:
            if fault.errno != zmq.EHOSTUNREACH:
                raise
            if peer.state is LIVE:
                peer.state = DEAD
                peer.forget_queue()
            return False
        return True

    def say(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """An error or a bye, if it can be sent at once."""
        self.transmit(peer, self._pack(message))
