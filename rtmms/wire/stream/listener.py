"""Connections of strangers, without libzmq: accepted, read and written in the loop's slack, a bounded piece at a time.

What comes in lies in the kernel's buffers until it is read, at most one message a connection in ours; who does not read
what we send loses it.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic_ns

from rtmms.wire.stream.zmtp import GREETING, Reader, ZmtpError, encoded, ready

_CHUNK = 65536
_ACCEPTS = 2
_HANDSHAKE_NS = 5_000_000_000
_BACKLOG = 512


class Connection:
    """One of them. heard: what it said and nobody has dealt with yet, as Reader.next gives it; meanwhile nothing more
    is read from it."""

    __slots__ = ("born_ns", "heard", "key", "reader", "socket", "unsent")

    def __init__(self, key: bytes, plain: socket.socket, reader: Reader) -> None:
        self.key, self.socket, self.reader = key, plain, reader
        self.heard: tuple[str, bytes] | None = None
        self.unsent = b""
        self.born_ns = monotonic_ns()


class Listener:
    """A bound socket of our own and its connections.

    kind     what we are (ROUTER, PUB), and who may talk to us
    cap      bytes a message may have; from those that `keep` does not speak for, no more than `first_cap`
    most     connections at a time: the oldest that `keep` does not speak for gives way to a newcomer
    backlog  bytes that may lie unsent before a message
    """

    def __init__(
        self,
        bound: socket.socket,
        kind: bytes,
        peers: frozenset[bytes],
        cap: int,
        most: int,
        backlog: int = 0,
    ) -> None:
        self._bound, self._kind, self._peers, self._most, self._backlog = bound, kind, peers, most, backlog
        self.cap = self.first_cap = cap
        self.keep: Callable[[bytes], bool] = lambda key: False
        bound.listen(_BACKLOG)
        bound.setblocking(False)
        self.connections: dict[bytes, Connection] = {}
        self._waiting: deque[Connection] = deque()  # those with something heard
        self._unsent: set[Connection] = set()
        self._numbers = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(bound, selectors.EVENT_READ, None)

    def serve(self, until_ns: int) -> None:
        """Accept, read, send on what was not sent: each a little, and nothing after until_ns."""
        for connection in list(self._unsent):
            self._flush(connection)
        for key, _ in self._selector.select(0):
            if monotonic_ns() >= until_ns:
                return
            if key.data is None:
                self._accept()
            else:
                self._read(key.data)
        for connection in self.connections.values():  # the oldest first: only it can be overdue
            if not connection.reader.ready and monotonic_ns() - connection.born_ns > _HANDSHAKE_NS:
                self.drop(connection)
            break

    def heard(self) -> tuple[Connection, str, bytes] | None:
        """What a connection said, each in its turn: ('message' | 'garbled' | 'oversize', frame)."""
        if not self._waiting:
            return None
        connection = self._waiting.popleft()
        heard, connection.heard = connection.heard, self._parsed(connection)
        if connection.heard is not None:
            self._waiting.append(connection)
        elif connection.key in self.connections:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        return None if heard is None else (connection, *heard)

    def send(self, connection: Connection, frames: Sequence[bytes]) -> bool:
        """A message, if there is room behind those before it."""
        if len(connection.unsent) > self._backlog or not connection.reader.ready:
            return False
        connection.unsent += encoded(frames)
        self._flush(connection)
        return True

    def drop(self, connection: Connection) -> None:
        """Close it and forget it."""
        if self.connections.pop(connection.key, None) is None:
            return
        self._unsent.discard(connection)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()
        with contextlib.suppress(ValueError):
            self._waiting.remove(connection)

    def close(self) -> None:
        """What was sent still leaves; what has come is read first, or the kernel would break the connection off."""
        self._selector.close()
        self._bound.close()
        for connection in self.connections.values():
            with contextlib.suppress(OSError):
                if connection.unsent:
                    connection.socket.send(connection.unsent)
                for _ in range(16):
                    if not connection.socket.recv(_CHUNK):
                        break
            connection.socket.close()
        self.connections.clear()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        for _ in range(_ACCEPTS):
            try:
                plain, _ = self._bound.accept()
            except OSError:  # nobody more; or no descriptor for one more
                return
            if len(self.connections) >= self._most and not self._make_room():
                plain.close()
                continue
            plain.setblocking(False)
            if plain.family != getattr(socket, "AF_UNIX", None):
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._numbers += 1
            connection = Connection(self._numbers.to_bytes(8, "big"), plain, Reader(self._peers, self.cap))
            self.connections[connection.key] = connection
            self._selector.register(plain, selectors.EVENT_READ, connection)
            connection.unsent = GREETING
            self._flush(connection)

    def _make_room(self) -> bool:
        for connection in self.connections.values():
            if not self.keep(connection.key):
                self.drop(connection)
                return True
        return False

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.drop(connection)
            return
        connection.reader.cap = self.cap if self.keep(connection.key) else min(self.cap, self.first_cap)
        connection.reader.feed(data)
        connection.heard = self._parsed(connection)
        if connection.heard is not None:
            self._selector.unregister(connection.socket)
            self._waiting.append(connection)

    def _parsed(self, connection: Connection) -> tuple[str, bytes] | None:
        """The next thing heard, out of the bytes that are there."""
        try:
            while (found := connection.reader.next()) is not None:
                if found[0] != "ready":
                    return found
                connection.unsent += ready(self._kind)
                self._flush(connection)
                if connection.key not in self.connections:  # it has gone meanwhile: what it said goes with it
                    return None
        except ZmtpError:
            self.drop(connection)
        return None

    def _flush(self, connection: Connection) -> None:
        try:
            sent = connection.socket.send(connection.unsent)
            connection.unsent = connection.unsent[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.drop(connection)
            return
        (self._unsent.add if connection.unsent else self._unsent.discard)(connection)
