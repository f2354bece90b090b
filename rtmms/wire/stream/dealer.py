"""DEALER socket of a peer at the plant's step endpoint, without a thread.

ZeroMQ's socket passes each message to an I/O thread. This costs two more switches and a dozen more system calls each
way. Here the caller's own thread reads and writes, and zmtp.py encodes.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import sys
from time import monotonic, monotonic_ns

from rtmms.wire.protocol.port import GONE, MESSAGE, Received
from rtmms.wire.stream.listener import Connection
from rtmms.wire.stream.zmtp import GREETING, Reader, ZmtpError, message_of_frame, ready

_MAX_FRAMES = 512
"""Reads of one call, because a message may come in pieces."""
_MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_GRACE_S = 1.0
_RECONNECT_S = 0.05
_UNDER_WAY = frozenset((0, errno.EINPROGRESS))
_ROUTERS = frozenset((b"ROUTER",))
_WAITS = sys.platform == "linux"
"""Whether a time-out can be set on a receive; other platforms set it in other ways."""


class Dealer:
    """Connection to one plant.

    A broken connection is tried again until `close`. `gone` reports when the attempts have failed for long.

    Parameters
    ----------
    endpoint : str
        The plant's step endpoint.
    identity : bytes
        The identity of 16 bytes that the welcome contains.

    Attributes
    ----------
    broken : bool
        Whether there is neither a connection nor an attempt at one.

    Raises
    ------
    OSError
        If the host is not found.
    ValueError, OverflowError
        If the endpoint is invalid.
    """

    def __init__(self, endpoint: str, identity: bytes) -> None:
        """Begin to connect."""
        self._family, self._address = _address(endpoint)
        self._hello = GREETING + ready(b"DEALER", identity)
        self._other_end: socket.socket | None = None
        self._tried_at: float | None = None  # instant of the first attempt since the connection broke
        self._again_at = 0.0
        self._more = self.broken = False  # _more: received bytes wait for decoding
        self._connection = self._connected()

    @property
    def descriptor(self) -> int:
        """File descriptor to wait on."""
        return self._connection.descriptor

    def woken(self) -> None:
        """Do nothing, because `next` reads the kernel anyway."""

    def next(self) -> Received | None:
        """Return the next message.

        It reads all that the kernel holds before it returns None, so that a caller who wants the newest state receives
        it.

        Returns
        -------
        Received | None
            Sender, kind, frame and key of the message, or None if there is none.
        """
        connection = self._connection
        frame = connection.frame
        if frame is not None:
            connection.frame = None
            return b"", MESSAGE, frame, None
        if self._more and (received := self._received(connection)) is not None:
            return received
        for _ in range(_MAX_FRAMES):
            came = connection.read()
            if came:
                frame = connection.frame
                if frame is not None:
                    connection.frame = None
                    return b"", MESSAGE, frame, None
                received = self._received(connection)
                if received is not None:
                    return received
                continue
            if came is False:
                self._break()
            break
        if self._connection.unsent:
            self._connection.flush()
        return None

    def at_hand(self) -> socket.socket | None:
        """Return the socket of an idle connection, for a caller that reads and writes there itself.

        The caller passes unreadable data to `put_back`, and an unsent rest to `left`.

        Returns
        -------
        socket.socket | None
            None if there is something for `next`.
        """
        if self.line() < 0:
            return None
        self._tried_at = None
        return self._connection.socket

    def waits(self, longest_s: float) -> bool:
        """Make a receive at hand wait from now on; all other methods never wait.

        Its timer is one of the kernel's coarse ones, which cost nothing. The timer of poll(2) is a fine one, and in a
        virtual machine it exits to the host and back.

        Parameters
        ----------
        longest_s : float
            Longest wait, s.

        Returns
        -------
        bool
            False if it cannot wait.
        """
        if not _WAITS:
            return False
        plain = self._connection.socket
        if not plain.getblocking():
            plain.setblocking(True)
            seconds, remaining = divmod(longest_s, 1.0)
            plain.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(seconds), int(1e6 * remaining))
            )
        return True

    def put_back(self, raw: bytes) -> None:
        """Store received data for `next`.

        Parameters
        ----------
        raw : bytes
            The data.
        """
        self._connection.take(raw)
        self._more = self._connection.frame is None

    def line(self) -> int:
        """Return the descriptor of an idle connection.

        Returns
        -------
        int
            -1 if data are under way in either direction.
        """
        connection = self._connection
        busy = self._more or self.broken or connection.unsent or connection.frame is not None
        return -1 if busy or not connection.reader.idle else connection.descriptor

    def left(self, remaining: bytes) -> None:
        """Store the unsent rest of a frame, which leaves first.

        Parameters
        ----------
        remaining : bytes
            The rest.
        """
        self._connection.unsent += remaining

    def post(self, raw: bytes) -> int:
        """Send a frame that has its head.

        Parameters
        ----------
        raw : bytes
            The frame.

        Returns
        -------
        int
            SENT, FULL or GONE.
        """
        return self._connection.send(raw) if self._connection.reader.ready else GONE

    def _received(self, connection: Connection) -> Received | None:
        """Return a message that came in pieces or beside others; messages of several frames are ignored."""
        try:
            while (result := connection.reader.next()) is not None:
                if result[0] == MESSAGE:
                    self._more = connection.reader.held > 0
                    return b"", MESSAGE, result[1], None
        except ZmtpError:
            self._break()
        self._more = False
        return None

    def send(self, who: bytes, frame: bytes) -> int:
        """Send a message to the plant.

        Reading reports a broken connection, after all that arrived.

        Parameters
        ----------
        who : bytes
            Unused, because there is one plant.
        frame : bytes
            The packed message.

        Returns
        -------
        int
            SENT, FULL or GONE.
        """
        connection = self._connection
        return connection.send(message_of_frame(frame)) if connection.reader.ready else GONE

    def serve(self, until_ns: int) -> None:
        """Send unsent data, and try a broken connection again.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        now = monotonic()
        if self._connection.unsent:
            self._connection.flush()
        if self.broken and now >= self._again_at:
            before = self._connection
            # From the first attempt, not from the break: a peer that reads seldom has not tried in vain yet.
            self._tried_at = now if self._tried_at is None else self._tried_at
            try:
                self._connection = self._connected()
            except OSError:  # no descriptor is left
                self._again_at = now + _RECONNECT_S
            else:
                before.socket.close()

    def wait(self, until_ns: int) -> bool:
        """Wait for a message.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC at which the wait ends, ns.

        Returns
        -------
        bool
            Whether a message may have come.
        """
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.descriptor, selectors.EVENT_READ)
            return bool(waiting.select(max(0.0, (until_ns - monotonic_ns()) * 1e-9)))

    def stands(self) -> None:
        """Record that a message could be read."""
        self._tried_at = None

    def gone(self) -> bool:
        """Return whether the connection has been broken for long.

        Returns
        -------
        bool
            True if it has.
        """
        return self._tried_at is not None and monotonic() - self._tried_at > _GRACE_S

    def close(self, linger_ms: int = 0) -> None:
        """Close the connection.

        Parameters
        ----------
        linger_ms : int, default 0
            Unused: the kernel sends what has been written.
        """
        self._connection.end()
        self._close_other_end()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _connected(self) -> Connection:
        """Begin to connect; our greeting leaves as soon as possible, without waiting for the plant."""
        plain = socket.socket(self._family, socket.SOCK_STREAM)
        connection = Connection(plain, Reader(_ROUTERS, _MAX_MESSAGE_BYTES), unsent=self._hello)
        try:
            became = plain.connect_ex(self._address)
        except BaseException:
            plain.close()  # the text is no address
            raise
        self._more, self.broken = False, False
        if became not in _UNDER_WAY:
            return self._broken(connection)
        self._close_other_end()
        connection.flush()
        return connection

    def _break(self) -> None:
        if not self.broken:
            self._connection = self._broken(self._connection)

    def _broken(self, before: Connection) -> Connection:
        """Replace a broken connection by a placeholder that is never readable.

        Otherwise a caller that waits on its descriptor would loop without pause.
        """
        self.broken, self._more, self._again_at = True, False, monotonic() + _RECONNECT_S
        try:
            here, there = socket.socketpair()
        except OSError:  # no descriptor is left: try again rather than end
            before.reader, before.unsent = Reader(_ROUTERS, _MAX_MESSAGE_BYTES), b""
            return before
        self._close_other_end()
        self._other_end = there
        # only now, because the new descriptor must have another number, or epoll would not report it
        before.socket.close()
        return Connection(here, Reader(_ROUTERS, _MAX_MESSAGE_BYTES))

    def _close_other_end(self) -> None:
        if self._other_end is not None:
            self._other_end.close()
            self._other_end = None


def _address(endpoint: str) -> tuple[int, str | tuple[str, int]]:
    """Return family and address of an endpoint tcp://HOST:PORT or ipc://PATH."""
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        return socket.AF_UNIX, "\0" + path[1:] if path.startswith("@") else path
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not 0 < int(port) < 65536:
        raise ValueError(f"port {port}")
    result = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    family, _, _, _, address = result[0]
    return family, (str(address[0]), int(address[1]))
