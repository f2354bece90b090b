"""The step socket on a listener of our own: what StepPort needs of a ROUTER, without a thread between it and the peer.

ZeroMQ's hands each message to an I/O thread: two more switches and a dozen more system calls each way, and with them
a fifth of an exchange. Here the loop's own thread sends and receives, and zmtp.py speaks. Peers notice no difference.
Who is not one of them is accepted and read in the slack alone. With keys (CURVE), within a program, and where there
is no epoll the step socket is ZeroMQ's.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
from collections import deque
from collections.abc import Callable
from time import monotonic_ns

import zmq

from rtmms.wire.zmtp import GREETING, Reader, ZmtpError, ready

_SNDMORE, _EVENTS, _FD, _RCVMORE = int(zmq.SNDMORE), int(zmq.EVENTS), int(zmq.FD), int(zmq.RCVMORE)
_POLLIN = int(zmq.POLLIN)
_CHUNK = 65536
_MOST, _ACCEPTS, _STRANGERS_READ = 128, 2, 4
_HANDSHAKE_NS, _SORT_NS = 5_000_000_000, 100_000_000
_PEERS = frozenset((b"DEALER", b"REQ", b"ROUTER"))


class _Connection:
    """One of them. identity: '' until it has said READY;  near: it is a peer, and read within the step."""

    __slots__ = ("born_ns", "descriptor", "identity", "near", "queued", "reader", "socket", "unsent")

    def __init__(self, plain: socket.socket, cap: int) -> None:
        self.socket, self.descriptor, self.reader = plain, plain.fileno(), Reader(_PEERS, cap)
        self.identity, self.unsent, self.near, self.queued = b"", b"", False, False
        self.born_ns = monotonic_ns()


class StepLine:
    """As much of a zmq.Socket of kind ROUTER (mandatory, no handover) as StepPort uses.

    cap      bytes of a message; one up to four times that is passed over and told as oversize, beyond it is cut off
    known    whether an identity is one of a peer
    strange  is told of each connection that says another one
    entered  is told the identity of each peer that connects
    """

    def __init__(self, bound: socket.socket, cap: int) -> None:
        bound.listen(64)
        bound.setblocking(False)
        self._bound, self._cap, self._too_long = bound, cap, bytes(cap + 1)
        self.known: Callable[[bytes], bool] = lambda identity: False
        self.strange: Callable[[], None] = lambda: None
        self.entered: Callable[[bytes], None] = lambda identity: None
        self._near, self._far = select.epoll(), select.epoll()
        self._far.register(bound.fileno(), select.EPOLLIN)
        self._all: dict[int, _Connection] = {}
        self._by_identity: dict[bytes, _Connection] = {}
        self._queue: deque[_Connection] = deque()  # those with bytes that were read and not looked at
        self._frame: bytes | None = None
        self._more, self._taken = 0, b""
        self._to: _Connection | None = None
        self._sorted_ns = 0

    # --- what StepPort calls ----------------------------------------------------------------------------------------

    def getsockopt(self, option: int) -> int:
        if option == _RCVMORE:
            return self._more
        if option == _EVENTS:
            if not self._queue:
                self._read_near()
            return _POLLIN if self._queue else 0
        if option == _FD:
            return self._near.fileno()
        raise zmq.ZMQError(errno.EINVAL)

    def poll(self, timeout_ms: int = 0) -> int:
        """Wait until a peer says something, or for that long."""
        if not self._queue and self._near.poll(timeout_ms * 1e-3):
            self._read_near()
        return _POLLIN if self._queue else 0

    def recv(self, flags: int = 0) -> bytes:
        """The identity, then the frame; zmq.Again when there is no whole message. What was of several frames gives an
        empty one with RCVMORE, and another."""
        if self._frame is not None:
            frame, self._frame = self._frame, None
            return frame
        if self._more:
            self._more = 0
            return b""
        if self._queue and self._take():
            return self._taken
        self._read_near()  # what lay here was no whole message
        if self._take():
            return self._taken
        raise zmq.Again

    def _take(self) -> bool:
        """The next whole message of those whose bytes are here, each connection in its turn."""
        while self._queue:
            connection = self._queue.popleft()
            found = self._next(connection)
            connection.queued = False
            if found is None:
                continue
            if connection.reader.held:
                self._enqueue(connection)
            fault, frame = found
            self._frame = self._too_long if fault == "oversize" else frame
            self._more = int(fault == "garbled")
            self._taken = connection.identity
            return True
        return False

    def send(self, data: bytes, flags: int = 0) -> None:
        """The identity (SNDMORE), then the frame; EHOSTUNREACH when it is not here, Again when it does not read."""
        if flags & _SNDMORE:
            to = self._by_identity.get(data)
            if to is not None and to.unsent:
                self._flush(to)
                to = self._by_identity.get(data)
            if to is None:
                raise zmq.ZMQError(errno.EHOSTUNREACH)
            if to.unsent:
                raise zmq.Again
            self._to = to
            return
        to, self._to = self._to, None
        if to is None:
            raise zmq.ZMQError(errno.EINVAL)
        size = len(data)
        to.unsent = (bytes((0, size)) if size < 256 else b"\x02" + size.to_bytes(8, "big")) + data
        self._flush(to)

    def connected(self, identity: bytes) -> bool:
        """As far as is known without sending it something."""
        return identity in self._by_identity

    def close(self, linger: int = 0) -> None:
        """What was sent still leaves; what has come is read first, or the kernel would break the connection off."""
        if self._bound.fileno() < 0:
            return
        for connection in list(self._all.values()):
            with contextlib.suppress(OSError):
                for _ in range(16):
                    if not connection.socket.recv(_CHUNK):
                        break
            self._drop(connection)
        self._near.close()
        self._far.close()
        self._bound.close()

    # --- in the slack -----------------------------------------------------------------------------------------------

    def serve(self, now_ns: int) -> None:
        """Newcomers, strangers, what was not sent: a little of each."""
        read = 0
        for descriptor, _ in self._far.poll(0, _STRANGERS_READ + 1):
            connection = self._all.get(descriptor)
            if connection is None:
                self._accept()
            elif read < _STRANGERS_READ:
                read += 1
                self._read_far(connection)
        if now_ns - self._sorted_ns < _SORT_NS:
            return
        self._sorted_ns = now_ns
        for connection in list(self._all.values()):
            if not connection.identity and now_ns - connection.born_ns > _HANDSHAKE_NS:
                self._drop(connection)
            elif connection.near and not self.known(connection.identity):
                self._set_near(connection, False)  # it said bye, or lost its place: no longer within the step
            elif connection.unsent:
                self._flush(connection)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS):
            try:
                plain, _ = self._bound.accept()
            except OSError:  # nobody more; or no descriptor for one more
                return
            if len(self._all) >= _MOST and not self._make_room():
                plain.close()
                continue
            plain.setblocking(False)
            if plain.family != getattr(socket, "AF_UNIX", None):
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(plain, self._cap)
            self._all[connection.descriptor] = connection
            self._far.register(connection.descriptor, select.EPOLLIN)
            connection.unsent = GREETING
            self._flush(connection)

    def _make_room(self) -> bool:
        for connection in self._all.values():
            if not connection.near:
                self._drop(connection)
                return True
        return False

    def _read_far(self, connection: _Connection) -> None:
        """Greeting and READY; what one says that was a peer once is dropped."""
        data = self._received(connection)
        if not data:
            return
        if connection.identity:
            return
        connection.reader.feed(data)
        try:
            found = connection.reader.next()
        except ZmtpError:
            self._drop(connection)
            return
        if found is not None:
            self._enter(connection)

    def _enter(self, connection: _Connection) -> None:
        identity = connection.reader.identity
        if identity in self._by_identity or not self.known(identity):
            self.strange()
            self._drop(connection)
            return
        connection.identity = identity
        self._by_identity[identity] = connection
        self.entered(identity)
        connection.unsent += ready(b"ROUTER")
        self._flush(connection)
        self._set_near(connection, True)
        if connection.reader.held:
            self._enqueue(connection)

    def _set_near(self, connection: _Connection, near: bool) -> None:
        if connection.descriptor not in self._all:
            return
        (self._far if near else self._near).unregister(connection.descriptor)
        (self._near if near else self._far).register(connection.descriptor, select.EPOLLIN)
        connection.near = near

    # --- of peers ---------------------------------------------------------------------------------------------------

    def _read_near(self) -> None:
        for descriptor, _ in self._near.poll(0):
            connection = self._all.get(descriptor)
            if connection is not None and not connection.queued:
                data = self._received(connection)
                if data:
                    connection.reader.feed(data)
                    self._enqueue(connection)

    def _enqueue(self, connection: _Connection) -> None:
        if not connection.queued:
            connection.queued = True
            self._queue.append(connection)

    def _next(self, connection: _Connection) -> tuple[str, bytes] | None:
        if connection.descriptor not in self._all:
            return None
        try:
            return connection.reader.next()
        except ZmtpError:
            self._drop(connection)
            return None

    def _received(self, connection: _Connection) -> bytes:
        """What is there; b'' for nothing, and when it has gone."""
        try:
            data = connection.socket.recv(_CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
        return data

    def _flush(self, connection: _Connection) -> None:
        try:
            sent = connection.socket.send(connection.unsent)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)
            return
        connection.unsent = connection.unsent[sent:]

    def _drop(self, connection: _Connection) -> None:
        if self._all.pop(connection.descriptor, None) is None:
            return
        with contextlib.suppress(OSError):
            (self._near if connection.near else self._far).unregister(connection.descriptor)
        if self._by_identity.get(connection.identity) is connection:
            del self._by_identity[connection.identity]
        connection.socket.close()
