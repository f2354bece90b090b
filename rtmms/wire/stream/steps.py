"""The step socket on a listener of our own: a StepSocket without a thread between it and the peer.

ZeroMQ's hands each message to an I/O thread: two more switches and a dozen more system calls each way, and with them
a fifth of an exchange. Here the loop's own thread sends and receives, and zmtp.py speaks. Peers notice no difference.
Who is not one of them is accepted and read in the slack alone. With keys (CURVE), within a program, and where there
is no epoll the step socket is ZeroMQ's.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic_ns

from rtmms.wire.libzmq.router import FULL, GONE, SENT
from rtmms.wire.stream.alarm import Alarm
from rtmms.wire.stream.zmtp import GREETING, Reader, ZmtpError, framed, ready

_IN, _OUT = 1, 4  # EPOLLIN, EPOLLOUT, which there are not everywhere that this file is read
_CHUNK = 65536
_MOST, _ACCEPTS, _STRANGERS_READ = 128, 2, 4
_HANDSHAKE_NS, _SORT_NS = 5_000_000_000, 100_000_000
_PEERS = frozenset((b"DEALER", b"REQ", b"ROUTER"))


class _Connection:
    """One of them.

    identity  '' until it has said READY;  near   it is a peer, and read within the step
    frame     a message that came in one piece with nothing beside it
    """

    __slots__ = ("born_ns", "descriptor", "frame", "identity", "near", "queued", "reader", "socket", "unsent")

    def __init__(self, plain: socket.socket, cap: int) -> None:
        self.socket, self.descriptor, self.reader = plain, plain.fileno(), Reader(_PEERS, cap)
        self.identity, self.unsent, self.near, self.queued = b"", b"", False, False
        self.frame: bytes | None = None
        self.born_ns = monotonic_ns()


class StepLine:
    """A StepSocket that does what a ROUTER does (mandatory, no handover).

    bound    sockets to listen on
    cap      bytes of a message; one up to four times that is passed over and told as oversize, beyond it is cut off
    known    whether an identity is one of a peer
    strange  is told of each connection that says another one
    entered  is told the identity of each peer that connects
    """

    def __init__(self, bound: Sequence[socket.socket], cap: int) -> None:
        self._bound = {one.fileno(): one for one in bound}
        self._cap, self._too_long = cap, bytes(cap + 1)
        self.known: Callable[[bytes], bool] = lambda identity: False
        self.strange: Callable[[], None] = lambda: None
        self.entered: Callable[[bytes], None] = lambda identity: None
        self._near, self._far = select.epoll(), select.epoll()
        for descriptor, one in self._bound.items():
            one.listen(64)
            one.setblocking(False)
            self._far.register(descriptor, _IN)
        self._all: dict[int, _Connection] = {}
        self._by_identity: dict[bytes, _Connection] = {}
        self._queue: deque[_Connection] = deque()  # those with bytes that were read and not looked at
        try:
            self._alarm: Alarm | None = Alarm()
            self._near.register(self._alarm.descriptor, _IN)
        except OSError:
            self._alarm = None
        self._sorted_ns = 0

    # --- what StepPort calls: see StepSocket ------------------------------------------------------------------------

    def next(self) -> tuple[bytes, bytes, bool] | None:
        """Each connection in its turn. One that was too long comes as a frame that is."""
        if not self._queue:
            self._read(self._near.poll(0))
        while self._queue:
            connection = self._queue.popleft()
            connection.queued = False
            frame = connection.frame
            if frame is not None:
                connection.frame = None
                return connection.identity, frame, True
            found = self._next(connection)
            if found is None:
                continue
            if connection.reader.held:
                self._enqueue(connection)
            fault, frame = found
            return connection.identity, self._too_long if fault == "oversize" else frame, fault != "garbled"
        return None

    def send(self, identity: bytes, message: bytes) -> int:
        to = self._by_identity.get(identity)
        if to is None:
            return GONE
        if to.unsent:
            self._flush(to)
            if to.unsent:
                return FULL
        data = framed(message)
        try:
            sent = to.socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return GONE  # it may have said bye before it went: reading tells, and drops it
        if sent < len(data):
            to.unsent = data[sent:]
            if to.near:  # the rest leaves within the waits, as the peer reads
                self._near.modify(to.descriptor, _IN | _OUT)
        return SENT

    def arm(self, instant_ns: int) -> None:
        if self._alarm is not None:
            self._alarm.set(instant_ns)

    def wait(self, until_ns: int) -> None:
        """What has come is read at once."""
        if self._queue:
            return
        alarm = self._alarm
        if alarm is None:
            left_ns = until_ns - monotonic_ns()
            if left_ns > 0:
                select.select([self._near], (), (), left_ns * 1e-9)
            self._read(self._near.poll(0))
            return
        if alarm.at_ns != until_ns:
            alarm.set(until_ns)
        self._read(self._near.poll())

    def connected(self, identity: bytes) -> bool:
        """As far as is known without sending it something."""
        return identity in self._by_identity

    def close(self, linger: int = 0) -> None:
        """What was sent still leaves; what has come is read first, or the kernel would break the connection off."""
        if self._near.closed:
            return
        for connection in list(self._all.values()):
            if connection.unsent:
                self._flush(connection)
            with contextlib.suppress(OSError):
                for _ in range(16):
                    if not connection.socket.recv(_CHUNK):
                        break
            self._drop(connection)
        self._near.close()
        self._far.close()
        for one in self._bound.values():
            one.close()
        if self._alarm is not None:
            self._alarm.close()

    # --- in the slack -----------------------------------------------------------------------------------------------

    def serve(self, now_ns: int) -> None:
        """Newcomers, strangers, what was not sent: a little of each."""
        read = 0
        for descriptor, _ in self._far.poll(0, _STRANGERS_READ + 1):
            connection = self._all.get(descriptor)
            if connection is None:
                self._accept(self._bound[descriptor])
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

    def _accept(self, bound: socket.socket) -> None:
        for _ in range(_ACCEPTS):
            try:
                plain, _ = bound.accept()
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
            self._far.register(connection.descriptor, _IN)
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
        if self._all.get(connection.descriptor) is not connection:
            return
        (self._far if near else self._near).unregister(connection.descriptor)
        (self._near if near else self._far).register(
            connection.descriptor, _IN | _OUT if near and connection.unsent else _IN
        )
        connection.near = near

    # --- of peers ---------------------------------------------------------------------------------------------------

    def _read(self, events: list[tuple[int, int]]) -> None:
        """What peers said; the alarm, which may be among them, says nothing."""
        for descriptor, flags in events:
            connection = self._all.get(descriptor)
            if connection is None:
                continue
            if flags & _OUT:
                self._flush(connection)
                if not connection.unsent:
                    self._near.modify(descriptor, _IN)
            if connection.queued or flags == _OUT:
                continue
            data = self._received(connection)
            if data:
                connection.frame = connection.reader.at_once(data)
                if connection.frame is None:
                    connection.reader.feed(data)
                connection.queued = True
                self._queue.append(connection)

    def _enqueue(self, connection: _Connection) -> None:
        if not connection.queued:
            connection.queued = True
            self._queue.append(connection)

    def _next(self, connection: _Connection) -> tuple[str, bytes] | None:
        if self._all.get(connection.descriptor) is not connection:
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
            if connection.near:  # likewise
                connection.unsent = b""
            else:
                self._drop(connection)
            return
        connection.unsent = connection.unsent[sent:]

    def _drop(self, connection: _Connection) -> None:
        if self._all.get(connection.descriptor) is not connection:  # its number may be another one's by now
            return
        del self._all[connection.descriptor]
        with contextlib.suppress(OSError):
            (self._near if connection.near else self._far).unregister(connection.descriptor)
        if self._by_identity.get(connection.identity) is connection:
            del self._by_identity[connection.identity]
        connection.socket.close()
