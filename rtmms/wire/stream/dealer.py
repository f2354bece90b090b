"""A link's data socket, on which its states come and its commands leave, spoken by the link itself: a DEALER without a
thread.

ZeroMQ's hands each message to an I/O thread: two more switches and a dozen more system calls each way. Here the
caller's own thread reads and writes, and zmtp.py speaks. With keys, within a program, for telemetry, and where the
system is not Linux the socket is ZeroMQ's: see zmq_data.py.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from time import monotonic
from typing import Protocol

from rtmms.wire.stream.zmtp import GREETING, Reader, ZmtpError, framed, ready

_CHUNK = 65536
_PIECES = 512
_LONGEST = 16 * 1024 * 1024
_GRACE_S = 1.0
_AGAIN_S = 0.05
_UNDER_WAY = frozenset((0, errno.EINPROGRESS))
_ROUTERS = frozenset((b"ROUTER",))
NEAR = ("ipc://", "inproc://", "tcp://127.", "tcp://[::1]", "tcp://localhost")
"""How endpoints on this machine begin."""


class Data(Protocol):
    """The socket of a link's states."""

    near: bool
    """The plant is on this machine, so that its clock is ours."""

    @property
    def descriptor(self) -> int:
        """To wait on. Another one after the connection broke."""

    def next(self, *, told: bool) -> bytes | None:
        """The next message, None when there is none.  told: the descriptor has just said that something came."""

    def send(self, frame: bytes) -> bool:
        """Without waiting; False when it could not leave."""

    def heard(self) -> None:
        """What came last could be read."""

    def gone(self) -> bool:
        """The plant's end is closed, and stays so. Also where a connection that broke is tried again."""

    def close(self, last: bytes | None) -> None:
        """Send a last message, if any, and close."""


def nearest(exchange: str, step: str, near: str) -> bool:
    """Whether a plant's shorter way is there for us: a socket of our own user, on the machine where we found it, and
    named by the port of the step endpoint, which somebody between us and the plant may have put in place of its own."""
    if not exchange.startswith(NEAR) or not near.startswith("ipc:///") or not hasattr(os, "getuid"):
        return False
    if not near.endswith(f"/step-{step.rpartition(':')[2]}"):
        return False
    try:
        found = os.stat(near.removeprefix("ipc://"))
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


class DataLine:
    """A Data over a stream of the operating system, to a plant's step endpoint.

    broken   there is no connection, nor is one being made

    A connection that breaks is tried again while nobody closes it: `gone` says when that has been in vain for long.
    """

    def __init__(self, endpoint: str, identity: bytes) -> None:
        """Begin to connect. OSError for a host that cannot be found; ValueError, OverflowError for no endpoint."""
        self.near = endpoint.startswith(NEAR)
        self._family, self._address = _address(endpoint)
        self._hello = GREETING + ready(b"DEALER", identity)
        self._other_end: socket.socket | None = None
        self._lost_at: float | None = None
        self._again_at = 0.0
        self._socket: socket.socket
        self._reader: Reader
        self._unsent, self._more, self.broken = b"", False, False
        self._connect()

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()

    def next(self, *, told: bool) -> bytes | None:
        """All that the kernel holds is looked at before there is none: who asks for the newest state gets it."""
        if self._more:
            frame = self._parsed()
            if frame is not None:
                return frame
        for _ in range(_PIECES):
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._break()
                break
            frame = self._reader.at_once(data)
            if frame is None:
                self._reader.feed(data)
                frame = self._parsed()
            if frame is not None:
                return frame
        if self._unsent:
            self._flush()
        return None

    def _parsed(self) -> bytes | None:
        try:
            while (found := self._reader.next()) is not None:
                if found[0] == "message":
                    self._more = self._reader.held > 0
                    return found[1]
        except ZmtpError:
            self._break()
        self._more = False
        return None

    def send(self, frame: bytes) -> bool:
        if self._unsent:
            self._flush()
        if self._unsent or not self._reader.ready:
            return False
        data = framed(frame)
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            return False
        except OSError:
            return False  # reading tells that it broke, after all that lies there
        if sent < len(data):
            self._unsent = data[sent:]
        return True

    def heard(self) -> None:
        self._lost_at = None

    def gone(self) -> bool:
        now = monotonic()
        if self._unsent:
            self._flush()
        if self.broken and now >= self._again_at:
            before = self._socket
            try:
                self._connect()
                before.close()
            except OSError:  # no descriptor for one more
                self._again_at = now + _AGAIN_S
        return self._lost_at is not None and now - self._lost_at > _GRACE_S

    def close(self, last: bytes | None) -> None:
        if last is not None:
            self.send(last)
        self._drain()
        self._socket.close()
        self._close_other_end()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Begin to. What we have to say leaves as soon as it can; nothing of the plant's is waited for."""
        self._socket = socket.socket(self._family, socket.SOCK_STREAM)
        self._reader = Reader(_ROUTERS, _LONGEST)
        self._unsent, self._more, self.broken = self._hello, False, False
        self._socket.setblocking(False)
        if self._family != getattr(socket, "AF_UNIX", None):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            became = self._socket.connect_ex(self._address)
        except BaseException:
            self._socket.close()  # it is no address
            raise
        if became in _UNDER_WAY:
            self._close_other_end()
            self._flush()
        else:
            self._break()

    def _break(self) -> None:
        """There is no connection. What stands for it is never readable: who waits on it must not turn in circles."""
        if self.broken:
            return
        now = monotonic()
        self.broken, self._again_at = True, now + _AGAIN_S
        self._lost_at = now if self._lost_at is None else self._lost_at
        self._unsent, self._more = b"", False
        self._reader = Reader(_ROUTERS, _LONGEST)
        try:
            here, there = socket.socketpair()
        except OSError:  # no descriptor left: better to turn in circles than to end
            return
        here.setblocking(False)
        before = self._socket
        self._close_other_end()
        self._socket, self._other_end = here, there
        before.close()  # only now: the descriptor must be another one, or nobody would notice

    def _close_other_end(self) -> None:
        if self._other_end is not None:
            self._other_end.close()
            self._other_end = None

    def _flush(self) -> None:
        """While a connection is still being made nothing leaves; that it cannot be made is told by reading."""
        with contextlib.suppress(OSError):
            sent = self._socket.send(self._unsent)
            self._unsent = self._unsent[sent:]

    def _drain(self) -> None:
        """What has come is read first, or the kernel would break the connection off, and the last message with it."""
        with contextlib.suppress(OSError):
            for _ in range(16):
                if not self._socket.recv(_CHUNK):
                    break


def _address(endpoint: str) -> tuple[int, str | tuple[str, int]]:
    """(family, address) of an endpoint tcp://HOST:PORT or ipc://PATH."""
    if endpoint.startswith("ipc://"):
        path = endpoint.removeprefix("ipc://")
        return socket.AF_UNIX, "\0" + path[1:] if path.startswith("@") else path
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not 0 < int(port) < 65536:
        raise ValueError(f"port {port}")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))
