"""Listening sockets, their connections, polling, and the timer of deadlines."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import selectors
import socket
import sys
from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from time import monotonic_ns
from typing import Protocol

from rtmms.base.override import override
from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import FULL, GONE, MESSAGE, SENT, Answering, Received, SocketCallbacks
from rtmms.wire.stream.zmtp import GREETING, READY, Reader, ZmtpError, message_of_frame, ready

# Readiness of many descriptors: epoll, or a substitute on other platforms.


IN = 1
"""EPOLLIN."""
OUT = 4
"""EPOLLOUT."""


class Poller(Protocol):
    """Interface of select.epoll."""

    def register(self, descriptor: int, events: int, /) -> None:
        """Watch a descriptor.

        Parameters
        ----------
        descriptor : int
            File descriptor.
        events : int
            Sum of IN and OUT.
        """

    def modify(self, descriptor: int, events: int, /) -> None:
        """Change the events of a descriptor.

        Parameters
        ----------
        descriptor : int
            File descriptor.
        events : int
            Sum of IN and OUT. With 0, at most a closed connection is reported.
        """

    def unregister(self, descriptor: int, /) -> None:
        """Stop watching a descriptor.

        Parameters
        ----------
        descriptor : int
            File descriptor.

        Raises
        ------
        OSError, KeyError
            If it is not registered.
        """

    def poll(self, timeout_s: float | None = None, maximum: int = -1, /) -> list[tuple[int, int]]:
        """Wait for events.

        Parameters
        ----------
        timeout_s : float | None, optional
            Longest wait, s. None waits for ever.
        maximum : int, default -1
            Most events; -1 for no limit.

        Returns
        -------
        list[tuple[int, int]]
            Descriptors and their events.
        """

    def close(self) -> None:
        """Close the poller."""


class SelectPoller(Poller):
    """Poller by kqueue if available, else by select.

    Unlike epoll's, their waits end to the microsecond.
    """

    def __init__(self) -> None:
        self._selector: selectors.BaseSelector = getattr(selectors, "KqueueSelector", selectors.SelectSelector)()

    @override
    def register(self, descriptor: int, events: int, /) -> None:
        self._selector.register(descriptor, _named(events))

    @override
    def modify(self, descriptor: int, events: int, /) -> None:
        self.unregister(descriptor)
        if events:
            self.register(descriptor, events)

    @override
    def unregister(self, descriptor: int, /) -> None:
        with contextlib.suppress(KeyError):  # an entry without events does not exist
            self._selector.unregister(descriptor)

    @override
    def poll(self, timeout_s: float | None = None, maximum: int = -1, /) -> list[tuple[int, int]]:
        """Wait for events; `maximum` is ignored, because the first descriptors would always be the same."""
        result = self._selector.select(timeout_s)
        return [(key.fd, IN * bool(events & 1) | OUT * bool(events & 2)) for key, events in result]

    def close(self) -> None:
        """Close the selector."""
        self._selector.close()


def _named(events: int) -> int:
    return selectors.EVENT_READ * bool(events & IN) | selectors.EVENT_WRITE * bool(events & OUT)


def poller() -> Poller:
    """Return the best available poller.

    Returns
    -------
    Poller
        epoll, or `SelectPoller` where there is none.
    """
    return select.epoll() if hasattr(select, "epoll") else SelectPoller()


# One connection, from either side: a stream that never blocks, its received bytes and its unsent ones.
#
# The owner watches the descriptor, and decides when to read it and when to close it.


_CHUNK = 65536
STRANGER_READ_BYTES = 4096
"""Bytes that are read of a stranger at a time.

The kernel refills the freed room at once, and this takes time of the loop.
"""
NOW = getattr(socket, "MSG_DONTWAIT", 0)
"""Flag of calls that must not wait, because the owner may have made the socket a waiting one."""
_MAX_LAST_CHUNKS = 16
"""Reads of what a closed connection still holds."""


class Connection:
    """Stream socket that never blocks, with data that came and data that wait to leave.

    Parameters
    ----------
    plain : socket.socket
        The connected socket.
    reader : Reader
        Reader of its messages.
    key : bytes, default b''
        Name by which its owner knows it.
    unsent : bytes, default b''
        Data to send first.

    Attributes
    ----------
    frame : bytes or None
        A message that came in one piece with nothing beside it; the reader does not see it.
    unsent : bytes
        Data that the kernel has not accepted yet.
    poller : Poller or None
        The owner's poller that watches it.
    queued : bool
        Whether its owner has not looked at received data yet.
    held : bool
        Whether it is not read at present.
    open : bool
        Whether its owner still uses it.
    """

    __slots__ = (
        "_recv", "_send", "born_ns", "descriptor", "frame", "held", "key", "open", "poller", "queued", "reader",
        "socket", "unsent",
    )  # fmt: skip

    def __init__(self, plain: socket.socket, reader: Reader, key: bytes = b"", unsent: bytes = b"") -> None:
        plain.setblocking(False)
        if plain.family != getattr(socket, "AF_UNIX", None):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket, self.descriptor, self.reader, self.key, self.unsent = plain, plain.fileno(), reader, key, unsent
        self._recv, self._send = plain.recv, plain.send
        self.frame: bytes | None = None
        self.poller: Poller | None = None
        self.queued, self.held, self.open = False, False, True
        self.born_ns = monotonic_ns()

    def read(self, maximum: int = _CHUNK) -> bool | None:
        """Read available data into `frame` or the reader.

        The last frame must have been taken before.

        Parameters
        ----------
        maximum : int, default _CHUNK
            Most bytes.

        Returns
        -------
        bool | None
            None if there are no data, False if the other end has closed.
        """
        try:
            data = self._recv(maximum, NOW)
        except BlockingIOError:
            return None
        except OSError:
            return False
        if not data:
            return False
        self.take(data)
        return True

    def take(self, data: bytes) -> None:
        """Accept data that have been read.

        Parameters
        ----------
        data : bytes
            The data.
        """
        frame = self.frame = self.reader.at_once(data)
        if frame is None:
            self.reader.feed(data)

    def discard(self) -> bool:
        """Read available data, and discard them.

        Returns
        -------
        bool
            False if the other end has closed.
        """
        try:
            return bool(self.socket.recv(STRANGER_READ_BYTES, NOW))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send(self, data: bytes, backlog: int = 0) -> int:
        """Send data.

        Parameters
        ----------
        data : bytes
            The data.
        backlog : int, default 0
            Most unsent bytes that may wait before them.

        Returns
        -------
        int
            SENT, FULL if more bytes wait, or GONE.
        """
        if self.unsent:
            self.flush()
            if len(self.unsent) > backlog:
                return FULL
            if self.unsent:
                self.unsent += data
                return SENT
        try:
            sent = self._send(data, NOW)
        except BlockingIOError:
            sent = 0
        except OSError:
            return GONE  # it may have sent a message before it left: the next read returns it
        if sent < len(data):
            self.unsent = data[sent:]
        return SENT

    def flush(self) -> bool:
        """Send unsent data.

        Returns
        -------
        bool
            False if the connection has closed.
        """
        try:
            sent = self.socket.send(self.unsent, NOW)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.unsent = self.unsent[sent:]
        return True

    def end(self) -> None:
        """Close the connection after sending the unsent data.

        Received data are read first, because otherwise the kernel would reset the connection.
        """
        self.open = False
        if self.unsent:
            self.flush()
        with contextlib.suppress(OSError):
            for _ in range(_MAX_LAST_CHUNKS):
                if not self.socket.recv(_CHUNK, NOW):
                    break
        self.socket.close()


# A bound socket and its connections: accepted, read and written in the slack, in pieces of limited size.
#
# Unread data are in the kernel's buffers; ours hold at most 64 KiB and one message a connection. A peer that does not
# read loses messages.


_MAX_CLOSING = 64
"""Sockets that wait to be closed."""
_MIN_CLOSE_INTERVAL_NS = 20_000_000
"""Minimum interval between two closings, ns."""
_MAX_CLOSE_INTERVAL_NS = 200_000_000
"""Interval after which a socket is closed even without time for it, ns."""
_CLOSE_NS = 500_000
"""Time that one closing may need, ns."""


class ClosingSockets:
    """Sockets that wait to be closed, _MAX_CLOSING at most.

    For one more the oldest is closed at once.
    """

    def __init__(self) -> None:
        self._sockets: deque[socket.socket] = deque()
        self._closed_ns = 0

    def add(self, item: socket.socket) -> None:
        """Add a socket that nobody else uses any more.

        Parameters
        ----------
        item : socket.socket
            The socket.
        """
        if len(self._sockets) >= _MAX_CLOSING:
            self.close_one()
        self._sockets.append(item)

    def serve(self, until_ns: int) -> None:
        """Close a socket if there is time for it; without such time one is closed now and then.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        if not self._sockets:
            return
        now_ns = monotonic_ns()
        since_ns = now_ns - self._closed_ns
        if since_ns >= _MAX_CLOSE_INTERVAL_NS or (
            since_ns >= _MIN_CLOSE_INTERVAL_NS and until_ns - now_ns >= _CLOSE_NS
        ):
            self.close_one()

    def close_one(self) -> bool:
        """Close the socket that waits longest.

        Returns
        -------
        bool
            False if there is none.
        """
        if not self._sockets:
            return False
        self._sockets.popleft().close()
        self._closed_ns = monotonic_ns()
        return True

    def close(self) -> None:
        """Close all sockets."""
        while self.close_one():
            pass


DEALERS = frozenset((b"DEALER", b"REQ", b"ROUTER"))
MAX_CONNECTIONS = 128
_MAX_ACCEPTS = 2
_MAX_POLLS = 8
"""Connections at which one call of `next` looks."""
_MAX_EVENTS = 8
"""Events of one epoll_wait."""
_HANDSHAKE_NS = 5_000_000_000
_SORT_NS = 100_000_000
_RECEIVE_BUFFER_BYTES = 65536
"""Bytes that the kernel stores of a peer's unread data (SO_RCVBUF; Linux doubles it).

By default it stores megabytes for each, and discarding them takes as long as a step.
"""
_BACKLOG = 512
_NONE_LEFT = (errno.EMFILE, errno.ENFILE)
"""Errors when the process, or the machine, has no descriptor left."""


class Listener(Answering):
    """Bound sockets and their connections, each known by a number.

    Connections are accepted, read and written in the slack, a bounded piece at a time.

    Parameters
    ----------
    bound : Sequence[socket.socket]
        Sockets to listen on.
    cap : int
        Most bytes of a message from an unknown peer. A message up to four times as long is skipped and reported as
        oversize; for a longer one the peer is disconnected.
    kind : bytes, default b'ROUTER'
        Our socket type (ROUTER, PUB).
    talkers : frozenset[bytes], default DEALERS
        Socket types that may connect.
    most : int, default MAX_CONNECTIONS
        Most connections; the oldest unknown one is closed for a newcomer.
    backlog : int, default 0
        Most unsent bytes that may wait before a message.
    room : int, default 0
        Bytes that the kernel stores for a peer that does not read (SO_SNDBUF); 0 for the default.

    Attributes
    ----------
    threaded : bool
        False, because no thread is between the caller and the peers.
    connections : dict
        Connections by the peer's name.
    other_listeners : sequence of Listener
        Other listeners of the process, whose strangers are closed too if no descriptor is left.
    """

    threaded = False
    _most_events = _MAX_EVENTS
    """Most events that one round looks at."""

    def __init__(
        self, bound: Sequence[socket.socket], cap: int, *, kind: bytes = b"ROUTER", talkers: frozenset[bytes] = DEALERS,
        maximum: int = MAX_CONNECTIONS, backlog: int = 0, room: int = 0,
    ) -> None:  # fmt: skip
        self._room = room
        self._kind, self._talkers, self._max_connections, self._backlog = kind, talkers, maximum, backlog
        self._cap = self._first_cap = cap
        self.other_listeners: Sequence[Listener] = ()
        self._guests = SocketCallbacks()
        self._far: Poller = poller()
        self._bound = {entry.fileno(): entry for entry in bound}
        for descriptor, item in self._bound.items():
            # accepted sockets inherit the size
            item.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
            item.listen(_BACKLOG)
            item.setblocking(False)
            self._far.register(descriptor, IN)
        self.connections: dict[bytes, Connection] = {}  # by key, the oldest first
        self._by_descriptor: dict[int, Connection] = {}
        self._queue: deque[Connection] = deque()  # those with received bytes that wait for decoding
        self._leaving = ClosingSockets()
        self._numbers = self._sorted_ns = 0
        self._closed = False

    @override
    def attend(self, guests: SocketCallbacks, cap: int) -> None:
        self._guests, self._cap = guests, cap

    @override
    def next(self) -> Received | None:
        """Return the next message, of each connection in turn.

        It looks at a few connections a call, so that None may come before it looked at all.
        """
        queue = self._queue
        for _ in range(_MAX_POLLS):
            if not queue:
                break
            connection = queue.popleft()
            connection.queued = False
            frame = connection.frame
            if frame is not None:
                connection.frame = None
                return connection.key, MESSAGE, frame, None
            if connection.open and (message := self._read_message(connection)) is not None:
                return connection.key, message[0], message[1], None
        return None

    def _read_message(self, connection: Connection) -> tuple[str, bytes] | None:
        """Return a message that came in pieces or with others.

        The last one of a connection that breaks the rules is reported as its kind.
        """
        try:
            result = connection.reader.next()
        except ZmtpError as fault:
            self.cut(connection)
            return fault.kind, b""
        if result is not None and connection.reader.held:
            self._enqueue(connection)
        return result

    @override
    def send(self, who: bytes, frame: bytes) -> int:
        """Send a message to a connection if there is room behind the unsent data."""
        connection = self.connections.get(who)
        if connection is None:
            return GONE
        became = connection.send(message_of_frame(frame), self._backlog)
        if connection.unsent:
            self._watch(connection)
        return became

    def post(self, connection: Connection, data: bytes) -> int:
        """Send data that are framed already.

        Parameters
        ----------
        connection : Connection
            The connection.
        data : bytes
            The data.

        Returns
        -------
        int
            SENT, FULL or GONE.
        """
        became = connection.send(data, self._backlog)
        if connection.unsent:
            self._watch(connection)
        return became

    @override
    def arm(self, instant_ns: int) -> None:
        """Do nothing, because each wait sets its own timer."""

    @override
    def connected(self, who: bytes) -> bool | None:
        """Return whether a peer is connected."""
        return who in self.connections

    @override
    def wait(self, until_ns: int) -> bool:
        """Wait for a message, with a resolution of a millisecond."""
        return bool(self._queue or self._far.poll(max(0.0, (until_ns - monotonic_ns()) * 1e-9)))

    @override
    def serve(self, until_ns: int) -> None:
        """Accept, read, and send unsent data, each a little, until the given instant."""
        self._leaving.serve(until_ns)
        for descriptor, flags in self._far.poll(0, self._most_events):
            if monotonic_ns() >= until_ns:
                return
            connection = self._by_descriptor.get(descriptor)
            if connection is None:
                self._accept(self._bound.get(descriptor))
                continue
            if flags & OUT:
                self._flush(connection)
            if flags & ~OUT and connection.open and not connection.queued:
                self._read(connection)
        now_ns = monotonic_ns()
        if now_ns - self._sorted_ns >= _SORT_NS:
            self._sorted_ns = now_ns
            for connection in list(self.connections.values()):
                self._sort(connection, now_ns)

    def hang_up(self) -> None:
        """Close all connections."""
        for connection in list(self.connections.values()):
            self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """Close a connection at once; a second call does nothing.

        Parameters
        ----------
        connection : Connection
            The connection.
        """
        if self._forget(connection):
            connection.socket.close()

    def cut(self, connection: Connection) -> None:
        """Remove a connection that breaks the rules, and close it when there is time; a second call does nothing.

        Parameters
        ----------
        connection : Connection
            The connection.
        """
        if self._forget(connection):
            self._leaving.add(connection.socket)

    def _forget(self, connection: Connection) -> bool:
        if not connection.open:
            return False
        connection.open = False
        del self.connections[connection.key], self._by_descriptor[connection.descriptor]
        assert connection.poller is not None
        with contextlib.suppress(OSError, KeyError, ValueError):
            connection.poller.unregister(connection.descriptor)
        return True

    @override
    def close(self, linger_ms: int = 0) -> None:
        """Close all connections and sockets; the kernel sends what has been written, without `linger_ms`."""
        if self._closed:
            return
        self._closed = True
        for connection in self.connections.values():
            connection.end()
        self.connections.clear()
        self._by_descriptor.clear()
        self._leaving.close()
        self._far.close()
        for item in self._bound.values():
            item.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _accept(self, bound: socket.socket | None) -> None:
        for attempt in range(_MAX_ACCEPTS if bound is not None else 0):
            try:
                plain, _ = bound.accept()  # type: ignore[union-attr]
            except OSError as fault:  # no connection waits, or no descriptor is left
                # The kernel allocates a descriptor first: only the first attempt shows that a connection waits.
                if fault.errno in _NONE_LEFT and attempt == 0 and self._give_way():
                    continue
                return
            if len(self.connections) >= self._max_connections and not self._make_room():
                plain.close()
                continue
            if self._room:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._room)
            self._numbers += 1
            key = self._numbers.to_bytes(8, "big")
            connection = Connection(plain, Reader(self._talkers, self._first_cap), key, GREETING)
            self.connections[key] = self._by_descriptor[connection.descriptor] = connection
            connection.poller = self._far
            self._far.register(connection.descriptor, IN)
            self._flush(connection)

    def _make_room(self) -> bool:
        result = self.stranger()
        if result is not None:
            self.drop(result)
        return result is not None

    def _give_way(self) -> bool:
        """Free a descriptor, and return whether one could be freed.

        A socket that waits to be closed is closed first, then the oldest connection in its handshake at any endpoint.
        Next is the oldest stranger here, then one beside.
        """
        all_here = (self, *self.other_listeners)
        if any(at._leaving.close_one() for at in all_here):
            return True
        shaking = [(item.born_ns, at, item) for at in all_here if (item := at.stranger(shaking=True)) is not None]
        strange = [(item.born_ns, at, item) for at in all_here if (item := at.stranger()) is not None]
        if not strange:
            return False
        _, host, result = min(shaking, key=itemgetter(0)) if shaking else strange[0]
        host.drop(result)
        self._guests.refused(Reason.BUSY)
        return True

    def stranger(self, *, shaking: bool = False) -> Connection | None:
        """Return the oldest connection that may be closed.

        Parameters
        ----------
        shaking : bool, default False
            Whether only connections in their handshake count.

        Returns
        -------
        Connection | None
            None if there is none.
        """
        for connection in self.connections.values():
            if self._strange(connection) and not (shaking and connection.reader.ready):
                return connection
        return None

    def _strange(self, connection: Connection) -> bool:
        return not self._guests.known(connection.key)

    def _read(self, connection: Connection) -> None:
        known = self._guests.known(connection.key)
        connection.reader.cap = self._cap if known else min(self._cap, self._first_cap)
        came = connection.read() if known else connection.read(STRANGER_READ_BYTES)
        if came is False:
            self.drop(connection)
        elif came and (connection.reader.ready or self._shake(connection)):
            self._enqueue(connection)

    def _shake(self, connection: Connection) -> bool:
        """Read greeting and READY; False while more must come, or if the connection is closed."""
        try:
            result = connection.reader.next()
        except ZmtpError:
            self.cut(connection)
            return False
        return result is not None and result[0] == READY and self._enter(connection) and connection.reader.held > 0

    def _enter(self, connection: Connection) -> bool:
        """Send READY to a connection that has sent its own.

        The result is False if it has closed meanwhile; its messages are lost then.
        """
        connection.unsent += ready(self._kind)
        self._flush(connection)
        return connection.open

    def _enqueue(self, connection: Connection) -> None:
        if not connection.queued:
            connection.queued = True
            self._queue.append(connection)

    def _flush(self, connection: Connection) -> None:
        if not connection.flush():
            self.drop(connection)
        else:
            self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        """Watch a connection for writing, so that the rest leaves as the other side reads."""
        assert connection.poller is not None
        connection.poller.modify(connection.descriptor, _wanted(connection))

    def _sort(self, connection: Connection, now_ns: int) -> None:
        """Close a connection with an overdue handshake; this is called ten times a second."""
        if not connection.reader.ready and now_ns - connection.born_ns > _HANDSHAKE_NS:
            self.drop(connection)


def _wanted(connection: Connection) -> int:
    """Return the events that a connection's poller is to report."""
    return (0 if connection.held else IN) | (OUT if connection.unsent else 0)


# The kernel's timer for a deadline: a descriptor that becomes readable at an instant.


_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1
_NONBLOCK = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


class Alarm:
    """Timer of the kernel: a descriptor that becomes readable at an instant.

    Attributes
    ----------
    at_ns : int
        The instant, CLOCK_MONOTONIC, ns; 0 for none.
    descriptor : int
        File descriptor of the timer.

    Raises
    ------
    OSError
        If the platform has no timerfd.
    """

    def __init__(self) -> None:
        """Create the timer."""
        if sys.platform != "linux":
            raise OSError("timerfd: expected Linux, got another system")
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._settime.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self.descriptor = int(libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK | _CLOEXEC))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._when = (ctypes.c_long * 4)()  # struct itimerspec: interval (0: once), value; each s, ns
        self._address = ctypes.addressof(self._when)
        self.at_ns = 0

    def set(self, instant_ns: int) -> None:
        """Set the timer in place of any earlier instant, and clear an earlier expiry.

        Parameters
        ----------
        instant_ns : int
            Instant of CLOCK_MONOTONIC, ns; 0 for never.
        """
        self._when[2], self._when[3] = divmod(instant_ns, 1_000_000_000)
        self._settime(self.descriptor, _ABSOLUTE, self._address, None)
        self.at_ns = instant_ns

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)
