"""Telemetry on a listener of our own: to a few subscribers a slack, and of what one does not read, the newest alone.

What waits in the kernel for one that does not read grows old there, so that the room is small; who reads again gets
that, then the newest, and sees the gap by the steps.
"""

from __future__ import annotations

import socket
from time import monotonic_ns

from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import MESSAGE, SENT, Guests, Received
from rtmms.wire.stream.listener import MOST_CONNECTIONS, Connection, Listener
from rtmms.wire.stream.zmtp import encoded

_SUBSCRIPTION_BYTES = 256
_MOST_SUBSCRIPTIONS = 16
_ROOM = 16 * 1024
"""Bytes that the kernel keeps for a subscriber (Linux takes it twice): some ten states, a tenth of a second."""


class Publisher:
    """Messages as a PUB sends them; whoever is subscribed to a topic that the message's begins with gets it.

    listener  of its connections
    """

    def __init__(self, bound: socket.socket) -> None:
        kinds = frozenset((b"SUB", b"XSUB"))
        self.listener = Listener([bound], _SUBSCRIPTION_BYTES, kind=b"PUB", talkers=kinds, room=_ROOM)
        self._topics: dict[bytes, list[bytes]] = {}
        self._topic = b""
        self._takers: set[bytes] = set()  # those that want messages of _topic
        self._due: list[Connection] = []
        self._data = b""
        self._guests = Guests()

    def attend(self, guests: Guests, cap: int) -> None:
        """See Hosting. Nobody here is known, and they send only subscriptions."""
        self._guests = guests
        self.listener.attend(guests, min(cap, _SUBSCRIPTION_BYTES))

    @property
    def wanted(self) -> bool:
        """See Publishing."""
        return bool(self.listener.connections)

    def next(self) -> Received | None:
        """Nothing that is anybody else's business."""
        return None

    def send(self, who: bytes, frame: bytes) -> int:
        """To all that want it, when they are served; in place of the one before where that could not leave yet."""
        self._data = encoded((who, frame))
        if who != self._topic:
            self._topic = who
            self._takers = {key for key, topics in self._topics.items() if self._wants(topics)}
        self._due = [one for key, one in self.listener.connections.items() if key in self._takers]
        return SENT

    def serve(self, until_ns: int) -> None:
        """See Messages."""
        waiting = []
        while self._due and monotonic_ns() < until_ns:
            connection = self._due.pop()
            if connection.unsent:  # the listener sends that on as there is room
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
        """0x01 and a topic subscribes, 0x00 and a topic takes that back. One that wants too many is hung up on."""
        if len(self._topics) > 2 * MOST_CONNECTIONS:
            self._topics = {key: topics for key, topics in self._topics.items() if key in self.listener.connections}
            self._takers &= self._topics.keys()
        topics = self._topics.setdefault(who, [])
        if frame[:1] == b"\x01":
            topics.append(frame[1:])
        elif frame[:1] == b"\x00" and frame[1:] in topics:
            topics.remove(frame[1:])
        if len(topics) > _MOST_SUBSCRIPTIONS:
            self._guests.refused(Reason.BUSY)
            topics.clear()
            if (connection := self.listener.connections.get(who)) is not None:
                self.listener.cut(connection)
        (self._takers.add if self._wants(topics) else self._takers.discard)(who)

    def _wants(self, topics: list[bytes]) -> bool:
        return any(self._topic.startswith(topic) for topic in topics)

    def wait(self, until_ns: int) -> bool:
        """See Listener."""
        return self.listener.wait(until_ns)

    def hang_up(self) -> None:
        """See Hosting."""
        self.listener.hang_up()

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        self.listener.close(linger_ms)
