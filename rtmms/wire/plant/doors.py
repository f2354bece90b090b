"""The sockets that strangers reach: the door and telemetry, on listeners of our own or on ZeroMQ's.

Ours are for loopback and ipc, where everyone on the machine may connect: see zmtp.py. With keys nobody but their owners
gets beyond ZeroMQ's handshake, and within a program there are no strangers.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol

import zmq

from rtmms.wire.stream.listener import Connection, Listener

_NOW = int(zmq.NOBLOCK)
_NOW_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
_MORE = int(zmq.RCVMORE)

_MOST_CONNECTIONS = 128
_DOOR_BACKLOG = 1 << 18
_SUBSCRIPTION_BYTES = 256
_MOST_SUBSCRIPTIONS = 16

Heard = tuple[bytes, str, bytes, bytes | None]


class DoorLine(Protocol):
    """The exchange socket, as Door sees it."""

    def receive(self, until_ns: int) -> Heard | None:
        """(who, 'message' | 'garbled' | 'oversize', frame, key) or None; a message of several frames is garbled."""

    def send(self, door: bytes, frame: bytes) -> None:
        """If it can be sent at once."""

    def limit(self, first: int, cap: int, known: Callable[[bytes], bool]) -> None:
        """Bytes of a message, from strangers and from those that are known."""

    def close(self, linger_ms: int) -> None: ...


class TelemetryLine(Protocol):
    """The telemetry socket."""

    def send(self, topic: bytes, frame: bytes) -> None:
        """To all subscribers of the topic that have room for it."""

    def serve(self, until_ns: int) -> None:
        """Newcomers and their subscriptions."""

    def hang_up(self) -> None:
        """On all subscribers."""

    def close(self, linger_ms: int) -> None: ...


class PlainDoor:
    """On a listener of our own."""

    def __init__(self, bound: socket.socket, cap: int) -> None:
        peers = frozenset((b"DEALER", b"REQ", b"ROUTER"))
        self.listener = Listener(bound, b"ROUTER", peers, cap, _MOST_CONNECTIONS, _DOOR_BACKLOG)

    def receive(self, until_ns: int) -> Heard | None:
        heard = self.listener.heard()
        if heard is None:
            self.listener.serve(until_ns)
            heard = self.listener.heard()
        return None if heard is None else (heard[0].key, heard[1], heard[2], None)

    def send(self, door: bytes, frame: bytes) -> None:
        connection = self.listener.connections.get(door)
        if connection is not None:
            self.listener.send(connection, (frame,))

    def limit(self, first: int, cap: int, known: Callable[[bytes], bool]) -> None:
        self.listener.first_cap, self.listener.cap, self.listener.keep = first, cap, known

    def close(self, linger_ms: int) -> None:
        self.listener.close()


class PlainTelemetry:
    """On a listener of our own: a message goes to a few subscribers a slack, and those that do not read get none."""

    def __init__(self, bound: socket.socket) -> None:
        self.listener = Listener(bound, b"PUB", frozenset((b"SUB", b"XSUB")), _SUBSCRIPTION_BYTES, _MOST_CONNECTIONS)
        self._topics: dict[bytes, list[bytes]] = {}
        self._due: list[Connection] = []
        self._frames: tuple[bytes, bytes] = (b"", b"")

    def send(self, topic: bytes, frame: bytes) -> None:
        self._frames = (topic, frame)
        self._due = [
            connection
            for key, connection in self.listener.connections.items()
            if any(topic.startswith(asked) for asked in self._topics.get(key, ()))
        ]

    def serve(self, until_ns: int) -> None:
        while self._due and monotonic_ns() < until_ns:
            connection = self._due.pop()
            if connection.key in self.listener.connections:
                self.listener.send(connection, self._frames)
        self.listener.serve(until_ns)
        heard = self.listener.heard()
        if heard is not None and heard[1] == "message":
            self._subscribe(heard[0], heard[2])

    def _subscribe(self, connection: Connection, frame: bytes) -> None:
        """0x01 and a topic subscribes, 0x00 and a topic takes that back."""
        if len(self._topics) > 2 * _MOST_CONNECTIONS:
            self._topics = {key: topics for key, topics in self._topics.items() if key in self.listener.connections}
        topics = self._topics.setdefault(connection.key, [])
        if frame[:1] == b"\x01" and len(topics) < _MOST_SUBSCRIPTIONS:
            topics.append(frame[1:])
        elif frame[:1] == b"\x00" and frame[1:] in topics:
            topics.remove(frame[1:])

    def hang_up(self) -> None:
        for connection in list(self.listener.connections.values()):
            self.listener.drop(connection)

    def close(self, linger_ms: int) -> None:
        self.listener.close()


class ZmqDoor:
    """On a ROUTER.

    keyed   its peers have keys, which are told with what they say
    """

    def __init__(self, router: zmq.Socket[bytes], keyed: bool) -> None:
        self.socket, self._keyed = router, keyed
        self._skip_frames = False

    def receive(self, until_ns: int) -> Heard | None:
        router = self.socket
        try:
            while self._skip_frames:  # of an earlier message, one a time
                router.recv(_NOW)
                self._skip_frames = bool(router.getsockopt(_MORE))
            door = router.recv(_NOW)
        except zmq.Again:
            return None
        key, frame = self._frame() if router.getsockopt(_MORE) else (None, b"")
        self._skip_frames = bool(router.getsockopt(_MORE))
        return door, "garbled" if self._skip_frames else "message", frame, key

    def _frame(self) -> tuple[bytes | None, bytes]:
        if not self._keyed:
            return None, self.socket.recv(_NOW)
        frame = self.socket.recv(_NOW, copy=False)
        return bytes.fromhex(str(frame.get("User-Id"))), frame.bytes

    def send(self, door: bytes, frame: bytes) -> None:
        try:
            self.socket.send(door, _NOW_MORE)
            self.socket.send(frame, _NOW)
        except zmq.ZMQError:
            pass  # gone, or not reading: its loss

    def limit(self, first: int, cap: int, known: Callable[[bytes], bool]) -> None:
        self.socket.setsockopt(zmq.MAXMSGSIZE, 2 * cap)

    def close(self, linger_ms: int) -> None:
        self.socket.close(linger=linger_ms)


class ZmqTelemetry:
    """On a PUB, which drops for those that do not read.

    bound   opens and binds another one at the same address; ZMQError while it is in use
    """

    def __init__(self, publisher: zmq.Socket[bytes], bound: Callable[[], zmq.Socket[bytes]] | None = None) -> None:
        self.socket: zmq.Socket[bytes] | None = publisher
        self._bound = bound

    def send(self, topic: bytes, frame: bytes) -> None:
        if self.socket is None:
            return
        try:
            self.socket.send(topic, _NOW_MORE)
            self.socket.send(frame, _NOW)
        except zmq.Again:
            pass

    def hang_up(self) -> None:
        """On all subscribers: who may come in comes again by itself. A PUB cannot do it to one alone."""
        if self.socket is not None and self._bound is not None:
            self.socket.close(linger=0)
            self.socket = None

    def serve(self, until_ns: int) -> None:
        if self.socket is None and self._bound is not None:
            with contextlib.suppress(zmq.ZMQError):  # its I/O thread has yet to let go of the address
                self.socket = self._bound()

    def close(self, linger_ms: int) -> None:
        if self.socket is not None:
            self.socket.close(linger=linger_ms)
