"""Whether the other end of a socket is still there: ZeroMQ reconnects in silence, so its monitor has to be asked."""

from __future__ import annotations

from time import monotonic
from typing import Any

import zmq

_GRACE_S = 1.0


class Presence:
    """Follows one socket's connection. A short break is forgiven: a plant that sees us again sends at once."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        # an address of its own: that of an earlier monitor on the same socket stays in use for a while
        self._monitor: Any = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED, f"inproc://presence.{id(self)}")
        self._lost_at: float | None = None

    def stands(self) -> None:
        """A message has come. (On the path of every state: cheap.)"""
        self._lost_at = None

    def look(self) -> None:
        """What has happened to the connection?"""
        try:
            while True:
                self._monitor.recv_multipart(zmq.NOBLOCK)
                if self._lost_at is None:
                    self._lost_at = monotonic()
        except zmq.Again:
            pass

    def gone(self) -> bool:
        """When last looked at the connection had broken, and nothing has come since for longer than the grace."""
        return self._lost_at is not None and monotonic() - self._lost_at > _GRACE_S

    def close(self) -> None:
        """Before the socket and its context, or the context would wait for the monitor for ever."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
