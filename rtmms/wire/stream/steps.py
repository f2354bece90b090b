"""Step socket on a listener of our own, without a thread between it and the peer.

ZeroMQ's socket passes each message to an I/O thread. This costs two more switches and a dozen more system calls each
way, a fifth of an exchange. Here the loop's own thread sends and receives, and zmtp.py encodes. Peers see no
difference. Strangers are accepted and read in the slack alone.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
from collections.abc import Sequence
from time import monotonic_ns

from rtmms.base.override import override
from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import GONE, MESSAGE, SENT, DirectAccess, Received
from rtmms.wire.stream.listener import IN, OUT, Alarm, Connection, Listener, Poller, SelectPoller
from rtmms.wire.stream.zmtp import ready


class Steps(Listener, DirectAccess):
    """Step socket whose peers are known by the identity in their handshake, like a ROUTER (mandatory, no handover).

    A connection with an unknown identity, or one in use, is closed and counted.

    Parameters
    ----------
    bound : Sequence[socket.socket]
        Sockets to listen on.
    cap : int
        Most bytes of a message.
    selected : bool, default False
        Whether to wait by select (or kqueue), as without epoll or timerfd.
    """

    _most_events = 5

    def __init__(self, bound: Sequence[socket.socket], cap: int, *, selected: bool = False) -> None:
        super().__init__(bound, cap)
        self._alarm: Alarm | None = None
        self._near: Poller
        if not selected and hasattr(select, "epoll"):
            with contextlib.suppress(OSError):
                self._alarm = Alarm()
        if self._alarm is None:
            self._near = SelectPoller()
        else:
            self._near = select.epoll()
            self._near.register(self._alarm.descriptor, IN)
        self._events: Sequence[tuple[int, int]] = ()  # result of the last wait

    # --- within the step --------------------------------------------------------------------------------------------

    @override
    def next(self) -> Received | None:
        """Return the next message, of each peer in turn."""
        queue = self._queue
        if not queue:
            events = self._events
            if events:
                self._events = ()
            else:
                events = self._near.poll(0)
            for descriptor, flags in events:
                connection = self._by_descriptor.get(descriptor)
                if connection is None:  # the alarm
                    continue
                if connection.held and flags != OUT:  # the connection is gone
                    self.drop(connection)
                    continue
                if flags & OUT:
                    self._flush(connection)
                if flags != OUT and connection.open:
                    came = connection.read()
                    if came:
                        frame = connection.frame
                        if frame is not None and len(events) == 1:  # the usual case
                            connection.frame = None
                            return connection.key, MESSAGE, frame, None
                        connection.queued = True
                        queue.append(connection)
                    elif came is False:
                        self.drop(connection)
        if not queue:
            return None
        return super().next()

    @override
    def arm(self, instant_ns: int) -> None:
        """Set the alarm for the next wait."""
        if self._alarm is not None:
            self._alarm.set(instant_ns)

    @override
    def wait(self, until_ns: int) -> bool:
        """Wait for a message."""
        if self._queue:
            return True
        alarm = self._alarm
        if alarm is None:
            self._events = self._near.poll(max(0.0, (until_ns - monotonic_ns()) * 1e-9))
            return bool(self._events)
        if alarm.at_ns != until_ns:
            alarm.set(until_ns)
        self._events = events = self._near.poll()
        return len(events) > 1 or events[0][0] != alarm.descriptor

    # --- for compiled code, see DirectAccess -----------------------------------------------------------------------

    @property
    @override
    def direct(self) -> DirectAccess:
        return self

    @property
    @override
    def descriptors(self) -> tuple[int, int] | None:
        return None if self._alarm is None else (self._near.fileno(), self._alarm.descriptor)  # type: ignore[attr-defined]

    @override
    def arm_by(self, earliest_ns: int, instant_ns: int) -> None:
        alarm = self._alarm
        if alarm is not None and alarm.at_ns != instant_ns and not earliest_ns <= alarm.at_ns <= instant_ns:
            alarm.set(instant_ns)

    @override
    def line(self, who: bytes) -> int:
        connection = self.connections.get(who)
        if (
            connection is None
            or connection.unsent
            or connection.queued
            or connection.frame is not None
            or connection.held
            or connection.poller is not self._near
            or not connection.reader.idle
        ):
            return -1
        return connection.descriptor

    @override
    def at_rest(self) -> bool:
        """Return whether nothing is left; the next wait returns the events of the last one again."""
        self._events = ()
        return not self._queue

    @override
    def went(self, who: bytes, frame: bytes, sent: int) -> int:
        connection = self.connections.get(who)
        if connection is None or (sent < 0 and sent != -errno.EAGAIN):
            return GONE
        connection.unsent += frame[max(0, sent) :]
        if connection.unsent:
            self._watch(connection)
        return SENT

    @override
    def came(self, who: bytes, data: bytes) -> None:
        connection = self.connections.get(who)
        if connection is None:
            return
        if not data:
            self.drop(connection)
            return
        connection.take(data)
        self._enqueue(connection)

    # --- those that send too much, see Answering.hold -----------------------------------------------------------------

    @override
    def hold(self, who: bytes) -> None:
        connection = self.connections.get(who)
        if connection is not None and not connection.held and connection.poller is self._near:
            connection.held = True
            self._watch(connection)
            if connection.queued:
                connection.queued = False
                self._queue.remove(connection)

    @override
    def let_go(self, who: bytes) -> None:
        connection = self.connections.get(who)
        if connection is not None and connection.held:
            connection.held = False
            self._watch(connection)
            if connection.frame is not None or connection.reader.held:
                self._enqueue(connection)

    @override
    def cut_off(self, who: bytes) -> bool:
        connection = self.connections.get(who)
        if connection is not None:
            self.cut(connection)
        return True

    # --- in the slack -----------------------------------------------------------------------------------------------

    def _read(self, connection: Connection) -> None:
        """Read greeting and READY; messages of a former peer are discarded."""
        if not connection.reader.ready:
            super()._read(connection)
        elif not connection.discard():
            self.drop(connection)

    def _strange(self, connection: Connection) -> bool:
        return connection.poller is self._far

    def _enter(self, connection: Connection) -> bool:
        identity = connection.reader.identity
        if identity in self.connections or not self._guests.known(identity):
            self._guests.refused(Reason.STRANGER)
            self.cut(connection)
            return False
        del self.connections[connection.key]
        connection.key = identity
        self.connections[identity] = connection
        self._guests.entered(identity)
        connection.unsent += ready(self._kind)
        self._flush(connection)
        self._move(connection, self._near)
        return connection.open

    def _move(self, connection: Connection, to: Poller) -> None:
        """Read a connection within the step from now on, or in the slack."""
        if connection.open and connection.poller is not None:
            connection.poller.unregister(connection.descriptor)
            connection.held = False
            to.register(connection.descriptor, IN | OUT if connection.unsent else IN)
            connection.poller = to

    def _flush(self, connection: Connection) -> None:
        if connection.flush():
            self._watch(connection)
        elif connection.poller is self._near:
            connection.unsent = b""  # it may have sent bye before it left: the read drops that
            self._watch(connection)
        else:
            self.drop(connection)

    def _sort(self, connection: Connection, now_ns: int) -> None:
        if connection.poller is self._near and not self._guests.known(connection.key):
            self._move(connection, self._far)  # it sent bye, or lost its place
        else:
            super()._sort(connection, now_ns)

    @override
    def close(self, linger_ms: int = 0) -> None:
        """Close all connections, the alarm and the sockets."""
        if not self._closed:
            super().close(linger_ms)
            self._near.close()
            if self._alarm is not None:
                self._alarm.close()
