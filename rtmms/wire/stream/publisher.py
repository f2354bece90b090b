"""Telemetry on a listener of our own: to a few subscribers a slack, and only the newest message to a slow one.

Messages in the kernel grow old for a subscriber that does not read, so that its buffer is small. A subscriber that
reads again receives those, then the newest, and sees the gap by the steps.
"""

from __future__ import annotations

import socket
from time import monotonic_ns

from rtmms.base.override import override
from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import MESSAGE, SENT, Hosting, Received, SocketCallbacks
from rtmms.wire.stream.listener import MAX_CONNECTIONS, Connection, Listener
from rtmms.wire.stream.zmtp import message_of_frames

_MAX_SUBSCRIPTION_BYTES = 256
_MAX_SUBSCRIPTIONS = 16
_SEND_BUFFER_BYTES = 16 * 1024
"""Bytes that the kernel stores for a subscriber (Linux doubles it): some ten states, a tenth of a second."""


class Publisher(Hosting):
    """Socket that sends each message to the subscribers of its topic, like a PUB socket.

    Parameters
    ----------
    bound : socket.socket
        The bound socket.

    Attributes
    ----------
    listener : Listener
        Listener of its connections.
    """

    def __init__(self, bound: socket.socket) -> None:
        kinds = frozenset((b"SUB", b"XSUB"))
        self.listener = Listener([bound], _MAX_SUBSCRIPTION_BYTES, kind=b"PUB", talkers=kinds, room=_SEND_BUFFER_BYTES)
        self._topics: dict[bytes, list[bytes]] = {}
        self._topic = b""
        self._takers: set[bytes] = set()  # those that subscribe to _topic
        self._due: list[Connection] = []
        self._data = b""
        self._guests = SocketCallbacks()

    @override
    def attend(self, guests: SocketCallbacks, cap: int) -> None:
        """Set the callbacks of the connections; all peers are unknown here, and send only subscriptions."""
        self._guests = guests
        self.listener.attend(guests, min(cap, _MAX_SUBSCRIPTION_BYTES))

    @property
    def wanted(self) -> bool:
        """Whether anybody is connected."""
        return bool(self.listener.connections)

    @override
    def next(self) -> Received | None:
        """Return None, because subscriptions are read by `serve`."""
        return None

    @override
    def send(self, who: bytes, frame: bytes) -> int:
        """Store a message for all its subscribers, in place of an earlier one that has not left yet; return SENT."""
        self._data = message_of_frames((who, frame))
        if who != self._topic:
            self._topic = who
            self._takers = {key for key, topics in self._topics.items() if self._wants(topics)}
        self._due = [connection for key, connection in self.listener.connections.items() if key in self._takers]
        return SENT

    @override
    def serve(self, until_ns: int) -> None:
        """Send the stored message to a few subscribers, and read subscriptions."""
        waiting = []
        while self._due and monotonic_ns() < until_ns:
            connection = self._due.pop()
            if connection.unsent:  # the listener sends the rest when the kernel has room
                waiting.append(connection)
            elif connection.open:
                self.listener.post(connection, self._data)
        self._due += waiting
        self.listener.serve(until_ns)
        received = self.listener.next()
        if received is None:
            return
        if received[1] == MESSAGE:
            self._subscribe(received[0], received[2])
        else:
            self._guests.refused(received[1])

    def _subscribe(self, who: bytes, frame: bytes) -> None:
        """Read a subscription: 0x01 and a topic adds it, 0x00 and a topic removes it.

        A peer with too many is disconnected.
        """
        if len(self._topics) > 2 * MAX_CONNECTIONS:
            self._topics = {key: topics for key, topics in self._topics.items() if key in self.listener.connections}
            self._takers &= self._topics.keys()
        topics = self._topics.setdefault(who, [])
        if frame[:1] == b"\x01":
            topics.append(frame[1:])
        elif frame[:1] == b"\x00" and frame[1:] in topics:
            topics.remove(frame[1:])
        if len(topics) > _MAX_SUBSCRIPTIONS:
            self._guests.refused(Reason.BUSY)
            topics.clear()
            if (connection := self.listener.connections.get(who)) is not None:
                self.listener.cut(connection)
        (self._takers.add if self._wants(topics) else self._takers.discard)(who)

    def _wants(self, topics: list[bytes]) -> bool:
        return any(self._topic.startswith(topic) for topic in topics)

    @override
    def wait(self, until_ns: int) -> bool:
        return self.listener.wait(until_ns)

    def hang_up(self) -> None:
        """Close all connections."""
        self.listener.hang_up()

    @override
    def close(self, linger_ms: int = 0) -> None:
        """Close all connections and the socket; the kernel sends what has been written, without `linger_ms`."""
        self.listener.close(linger_ms)
