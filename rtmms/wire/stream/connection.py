"""One connection of ours, whoever asked for it: a stream that never blocks, what came on it and what waits to leave.

Its owner watches the descriptor, and decides when it is read and when it is given up.
"""

from __future__ import annotations

import contextlib
import socket
from time import monotonic_ns

from rtmms.wire.protocol.port import FULL, GONE, SENT
from rtmms.wire.stream.waiting import Poller
from rtmms.wire.stream.zmtp import Reader

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
            return GONE  # it may have said something before it went: reading tells
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
