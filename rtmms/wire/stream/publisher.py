"""Telemetry on a listener of our own: each message to a few subscribers a slack, and to none that does not read."""

from __future__ import annotations

import socket
from time import monotonic_ns

from rtmms.wire.protocol.port import MESSAGE, SENT, Guests, Heard
from rtmms.wire.stream.connection import Connection
from rtmms.wire.stream.listener import MOST_CONNECTIONS, Listener
from rtmms.wire.stream.zmtp import encoded

_SUBSCRIPTION_BYTES = 256
_MOST_SUBSCRIPTIONS = 16


class Publisher:
    """Messages as a PUB sends them; whoever is subscribed to a topic that the message's begins with gets it."""

    def __init__(self, bound: socket.socket) -> None:
        self._listener = Listener([bound], _SUBSCRIPTION_BYTES, kind=b"PUB", talkers=frozenset((b"SUB", b"XSUB")))
        self._topics: dict[bytes, list[bytes]] = {}
        self._due: list[Connection] = []
        self._data = b""
        self._guests = Guests()

    def attend(self, guests: Guests, cap: int) -> None:
        """See Hosting. Nobody here is known, and all they say is subscriptions."""
        self._guests = guests
        self._listener.attend(guests, min(cap, _SUBSCRIPTION_BYTES))

    def next(self) -> Heard | None:
        """Nothing that is anybody else's business."""
        return None

    def send(self, who: bytes, frame: bytes) -> int:
        """To all that have room for it, when they are served."""
        self._data = encoded((who, frame))
        self._due = [
            connection
            for key, connection in self._listener.connections.items()
            if any(who.startswith(topic) for topic in self._topics.get(key, ()))
        ]
        return SENT

    def serve(self, until_ns: int) -> None:
        """See Messages."""
        while self._due and monotonic_ns() < until_ns:
            connection = self._due.pop()
            if connection.open:
                self._listener.post(connection, self._data)
        self._listener.serve(until_ns)
        heard = self._listener.next()
        if heard is None:
            return
        if heard[1] == MESSAGE:
            self._subscribe(heard[0], heard[2])
        else:
            self._guests.refused(heard[1])

    def _subscribe(self, who: bytes, frame: bytes) -> None:
        """0x01 and a topic subscribes, 0x00 and a topic takes that back."""
        if len(self._topics) > 2 * MOST_CONNECTIONS:
            self._topics = {key: topics for key, topics in self._topics.items() if key in self._listener.connections}
        topics = self._topics.setdefault(who, [])
        if frame[:1] == b"\x01" and len(topics) < _MOST_SUBSCRIPTIONS:
            topics.append(frame[1:])
        elif frame[:1] == b"\x00" and frame[1:] in topics:
            topics.remove(frame[1:])

    def wait(self, until_ns: int) -> bool:
        """See Listener."""
        return self._listener.wait(until_ns)

    def hang_up(self) -> None:
        """See Hosting."""
        self._listener.hang_up()

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        self._listener.close(linger_ms)
