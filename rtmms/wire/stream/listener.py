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

from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import FULL, GONE, MESSAGE, SENT, Guests, Received
from rtmms.wire.stream.zmtp import GREETING, READY, Reader, ZmtpError, framed, ready

# Which of many descriptors can be read or written: epoll, or what stands for it where there is none.


IN, OUT = 1, 4
"""EPOLLIN and EPOLLOUT."""


class Poller(Protocol):
    """As select.epoll."""

    def register(self, descriptor: int, events: int, /) -> None: ...

    def modify(self, descriptor: int, events: int, /) -> None:
        """0 events: at most that it has gone."""

    def unregister(self, descriptor: int, /) -> None:
        """OSError or KeyError for one that is not registered."""

    def poll(self, timeout_s: float | None = None, most: int = -1, /) -> list[tuple[int, int]]: ...

    def close(self) -> None: ...


class Selecting:
    """kqueue where there is one, else select: whose waits, unlike epoll's, end to the microsecond."""

    def __init__(self) -> None:
        self._selector: selectors.BaseSelector = getattr(selectors, "KqueueSelector", selectors.SelectSelector)()

    def register(self, descriptor: int, events: int, /) -> None:
        self._selector.register(descriptor, _named(events))

    def modify(self, descriptor: int, events: int, /) -> None:
        self.unregister(descriptor)
        if events:
            self.register(descriptor, events)

    def unregister(self, descriptor: int, /) -> None:
        with contextlib.suppress(KeyError):  # there is no entry without events
            self._selector.unregister(descriptor)

    def poll(self, timeout_s: float | None = None, most: int = -1, /) -> list[tuple[int, int]]:
        """`most` is not kept to: the first would always be the same."""
        found = self._selector.select(timeout_s)
        return [(key.fd, IN * bool(events & 1) | OUT * bool(events & 2)) for key, events in found]

    def close(self) -> None:
        self._selector.close()


def _named(events: int) -> int:
    return selectors.EVENT_READ * bool(events & IN) | selectors.EVENT_WRITE * bool(events & OUT)


def poller() -> Poller:
    """The best there is."""
    return select.epoll() if hasattr(select, "epoll") else Selecting()


# One connection of ours, whoever asked for it: a stream that never blocks, what came on it and what waits to leave.
#
# Its owner watches the descriptor, and decides when it is read and when it is given up.


_CHUNK = 65536
LITTLE = 4096
"""What is read of a stranger at a time: as much room as we make, the kernel fills again at once, in our time."""
NOW = getattr(socket, "MSG_DONTWAIT", 0)
"""Its owner may have made the socket one that waits: nothing here does."""
_LAST_CHUNKS = 16


class Connection:
    """
    key      by what its owner knows it
    frame    a message that came in one piece with nothing beside it: the reader knows nothing of it
    unsent   bytes that the kernel did not take yet
    poller   that of its owner which watches it;  queued  something came that its owner has not looked at
    held     nothing of it is to be read at present
    open     its owner has not given it up
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

    def read(self, most: int = _CHUNK) -> bool | None:
        """Take in what is there: it is in `frame`, or for the reader. None for nothing, False when the other end has
        gone. Not before the last frame was taken away."""
        try:
            data = self._recv(most, NOW)
        except BlockingIOError:
            return None
        except OSError:
            return False
        if not data:
            return False
        self.take(data)
        return True

    def take(self, data: bytes) -> None:
        """What has been read."""
        frame = self.frame = self.reader.at_once(data)
        if frame is None:
            self.reader.feed(data)

    def discard(self) -> bool:
        """What is there is nobody's business; False when the other end has gone."""
        try:
            return bool(self.socket.recv(LITTLE, NOW))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send(self, data: bytes, backlog: int = 0) -> int:
        """SENT, FULL where more than `backlog` bytes wait before it, or GONE."""
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
            return GONE  # it may have sent something before it went: reading shows it
        if sent < len(data):
            self.unsent = data[sent:]
        return SENT

    def flush(self) -> bool:
        """Send on what was not sent; False when it has gone."""
        try:
            sent = self.socket.send(self.unsent, NOW)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.unsent = self.unsent[sent:]
        return True

    def end(self) -> None:
        """What was sent still leaves; what has come is read first, or the kernel would break the connection off."""
        self.open = False
        if self.unsent:
            self.flush()
        with contextlib.suppress(OSError):
            for _ in range(_LAST_CHUNKS):
                if not self.socket.recv(_CHUNK, NOW):
                    break
        self.socket.close()


# A bound socket of our own and its connections: accepted, read and written in the slack, a bounded piece at a time.
#
# What comes in lies in the kernel's buffers until it is read, at most 64 KiB and one message a connection in ours; who
# does not read what we send loses it.


_MOST = 64
_GAP_NS, _LONGEST_GAP_NS = 20_000_000, 200_000_000
_TAKES_NS = 500_000


class Leaving:
    """At most _MOST of them: for one more the oldest is closed at once."""

    def __init__(self) -> None:
        self._sockets: deque[socket.socket] = deque()
        self._closed_ns = 0

    def add(self, one: socket.socket) -> None:
        """Nobody else uses this one any more."""
        if len(self._sockets) >= _MOST:
            self.close_one()
        self._sockets.append(one)

    def serve(self, until_ns: int) -> None:
        """Close one of them, if there is time for it; where there never is, now and then all the same."""
        if not self._sockets:
            return
        now_ns = monotonic_ns()
        since_ns = now_ns - self._closed_ns
        if since_ns >= _LONGEST_GAP_NS or (since_ns >= _GAP_NS and until_ns - now_ns >= _TAKES_NS):
            self.close_one()

    def close_one(self) -> bool:
        """The one that waits longest; False where there is none."""
        if not self._sockets:
            return False
        self._sockets.popleft().close()
        self._closed_ns = monotonic_ns()
        return True

    def close(self) -> None:
        """All of them."""
        while self.close_one():
            pass


DEALERS = frozenset((b"DEALER", b"REQ", b"ROUTER"))
MOST_CONNECTIONS = 128
_ACCEPTS, _LOOKS = 2, 8
_LOOKED_AT = 8
_HANDSHAKE_NS, _SORT_NS = 5_000_000_000, 100_000_000
_ROOM_IN = 65536
"""Bytes that the kernel keeps of what one sends that is not read yet (SO_RCVBUF; Linux takes it twice): else megabytes
of each, and to throw them away takes as long as a step."""
_BACKLOG = 512
_NONE_LEFT = (errno.EMFILE, errno.ENFILE)
"""The process, or the machine, has no descriptor for one more."""


class Listener:
    """Messages of those that connect, each known by a number.

    bound    sockets to listen on
    kind     what we are (ROUTER, PUB);  talkers  the kinds that may talk to us
    cap      bytes of a message from one that is not known. One up to four times that is passed over and reported as
             oversize, who sends more is cut off
    most     connections at a time: the oldest that is not known gives way to a newcomer
    backlog  bytes that may lie unsent before a message
    room     bytes that the kernel keeps for one that does not read (SO_SNDBUF); 0: as many as it likes
    beside   other listeners of the process, whose strangers give way too where no descriptor is left
    """

    threaded = False
    _most_events = _LOOKED_AT
    """What is looked at in one round."""

    def __init__(
        self, bound: Sequence[socket.socket], cap: int, *, kind: bytes = b"ROUTER", talkers: frozenset[bytes] = DEALERS,
        most: int = MOST_CONNECTIONS, backlog: int = 0, room: int = 0,
    ) -> None:  # fmt: skip
        self._room = room
        self._kind, self._talkers, self._most, self._backlog = kind, talkers, most, backlog
        self._cap = self._first_cap = cap
        self.beside: Sequence[Listener] = ()
        self._guests = Guests()
        self._far: Poller = poller()
        self._bound = {one.fileno(): one for one in bound}
        for descriptor, one in self._bound.items():
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM_IN)  # of those that it accepts
            one.listen(_BACKLOG)
            one.setblocking(False)
            self._far.register(descriptor, IN)
        self.connections: dict[bytes, Connection] = {}  # by key, the oldest first
        self._by_descriptor: dict[int, Connection] = {}
        self._queue: deque[Connection] = deque()  # those with something that was taken and not looked at
        self._leaving = Leaving()
        self._numbers = self._sorted_ns = 0
        self._closed = False

    def attend(self, guests: Guests, cap: int) -> None:
        """See Hosting."""
        self._guests, self._cap = guests, cap

    def next(self) -> Received | None:
        """Each connection in its turn, and a few of them at a time: `None` may come before all were looked at."""
        queue = self._queue
        for _ in range(_LOOKS):
            if not queue:
                break
            connection = queue.popleft()
            connection.queued = False
            frame = connection.frame
            if frame is not None:
                connection.frame = None
                return connection.key, MESSAGE, frame, None
            if connection.open and (found := self._found(connection)) is not None:
                return connection.key, found[0], found[1], None
        return None

    def _found(self, connection: Connection) -> tuple[str, bytes] | None:
        """What came in pieces or with others. The last of one that breaks the rules is reported as its kind."""
        try:
            found = connection.reader.next()
        except ZmtpError as fault:
            self.cut(connection)
            return fault.kind, b""
        if found is not None and connection.reader.held:
            self._enqueue(connection)
        return found

    def send(self, who: bytes, frame: bytes) -> int:
        """If there is room behind what waits to leave."""
        connection = self.connections.get(who)
        if connection is None:
            return GONE
        became = connection.send(framed(frame), self._backlog)
        if connection.unsent:
            self._watch(connection)
        return became

    def post(self, connection: Connection, data: bytes) -> int:
        """The same of bytes that are framed already."""
        became = connection.send(data, self._backlog)
        if connection.unsent:
            self._watch(connection)
        return became

    def arm(self, instant_ns: int) -> None:
        """See Answering."""

    def connected(self, who: bytes) -> bool | None:
        """See Answering."""
        return who in self.connections

    def wait(self, until_ns: int) -> bool:
        """To a millisecond."""
        return bool(self._queue or self._far.poll(max(0.0, (until_ns - monotonic_ns()) * 1e-9)))

    def serve(self, until_ns: int) -> None:
        """Accept, read, send on what was not sent: each a little, and nothing after until_ns."""
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
        """On all connections."""
        for connection in list(self.connections.values()):
            self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """Close it and forget it. Twice does nothing."""
        if self._forget(connection):
            connection.socket.close()

    def cut(self, connection: Connection) -> None:
        """Forget one that breaks the rules, and close it when there is time. Twice does nothing."""
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

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        if self._closed:
            return
        self._closed = True
        for connection in self.connections.values():
            connection.end()
        self.connections.clear()
        self._by_descriptor.clear()
        self._leaving.close()
        self._far.close()
        for one in self._bound.values():
            one.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _accept(self, bound: socket.socket | None) -> None:
        for attempt in range(_ACCEPTS if bound is not None else 0):
            try:
                plain, _ = bound.accept()  # type: ignore[union-attr]
            except OSError as fault:  # nobody more; or no descriptor for one more
                # a descriptor is asked for before anybody: only at first is it known that somebody is there
                if fault.errno in _NONE_LEFT and attempt == 0 and self._give_way():
                    continue
                return
            if len(self.connections) >= self._most and not self._make_room():
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
        found = self.stranger()
        if found is not None:
            self.drop(found)
        return found is not None

    def _give_way(self) -> bool:
        """One that is to be closed anyhow; the oldest that has not ended its handshake, at any endpoint; else the
        oldest stranger here, else beside."""
        all_here = (self, *self.beside)
        if any(at._leaving.close_one() for at in all_here):
            return True
        shaking = [(one.born_ns, at, one) for at in all_here if (one := at.stranger(shaking=True)) is not None]
        strange = [(one.born_ns, at, one) for at in all_here if (one := at.stranger()) is not None]
        if not strange:
            return False
        _, host, found = min(shaking, key=itemgetter(0)) if shaking else strange[0]
        host.drop(found)
        self._guests.refused(Reason.BUSY)
        return True

    def stranger(self, *, shaking: bool = False) -> Connection | None:
        """The oldest that may be hung up on; with `shaking`, of those that have not ended their handshake."""
        for connection in self.connections.values():
            if self._strange(connection) and not (shaking and connection.reader.ready):
                return connection
        return None

    def _strange(self, connection: Connection) -> bool:
        return not self._guests.known(connection.key)

    def _read(self, connection: Connection) -> None:
        known = self._guests.known(connection.key)
        connection.reader.cap = self._cap if known else min(self._cap, self._first_cap)
        came = connection.read() if known else connection.read(LITTLE)
        if came is False:
            self.drop(connection)
        elif came and (connection.reader.ready or self._shake(connection)):
            self._enqueue(connection)

    def _shake(self, connection: Connection) -> bool:
        """Greeting and READY. False while more must come, or when it goes."""
        try:
            found = connection.reader.next()
        except ZmtpError:
            self.cut(connection)
            return False
        return found is not None and found[0] == READY and self._enter(connection) and connection.reader.held > 0

    def _enter(self, connection: Connection) -> bool:
        """It has sent who it is: send who we are. False when it has gone meanwhile; what it sent goes with it."""
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
        """The rest leaves as the other side reads."""
        assert connection.poller is not None
        connection.poller.modify(connection.descriptor, _wanted(connection))

    def _sort(self, connection: Connection, now_ns: int) -> None:
        """Ten times a second."""
        if not connection.reader.ready and now_ns - connection.born_ns > _HANDSHAKE_NS:
            self.drop(connection)


def _wanted(connection: Connection) -> int:
    """What its poller is to report of it."""
    return (0 if connection.held else IN) | (OUT if connection.unsent else 0)


# The timer of the kernel by which a deadline is kept: a descriptor that can be read from an instant on.


_CLOCK_MONOTONIC, _ABSOLUTE = 1, 1
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0, getattr(os, "O_CLOEXEC", 0)


class Alarm:
    """A descriptor that is readable from an instant on.

    at_ns   the instant, on CLOCK_MONOTONIC; 0: none
    """

    def __init__(self) -> None:
        """OSError where there is no timerfd."""
        if sys.platform != "linux":
            raise OSError("timerfd: Linux only")
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
        """At this instant, in place of any earlier one; 0 for never. What has rung is quiet again."""
        self._when[2], self._when[3] = divmod(instant_ns, 1_000_000_000)
        self._settime(self.descriptor, _ABSOLUTE, self._address, None)
        self.at_ns = instant_ns

    def close(self) -> None:
        os.close(self.descriptor)
