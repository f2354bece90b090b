"""TCP server with one client at a time; a slow client only loses whole messages."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any

import rtmms
from rtmms.bridging.bridge import Io
from rtmms.bridging.counters import Counters
from rtmms.bridging.sending import Outbox
from rtmms.bridging.untrusted import Admission

_ALONE_S = 1.5
_CHUNK = 4096


class TcpPeer:
    """TCP server, which listens at once.

    A second client is refused while the first has sent something lately. Later it replaces the first when it has sent
    something.

    Parameters
    ----------
    io : Io
        Services of the bridge's loop.
    counts : Counters
        Counters of the bridge.
    host, port : str
        Where it listens.
    received : Callable[[bytes], None]
        Called with bytes as they come.
    came, gone : Callable[[], None]
        Called when a client is there, and when it is gone.
    admission : Admission
        Admitted addresses; others are counted as strangers and closed.
    limit : int, default 256
        Most messages that wait for a slow client; the oldest is dropped for the next.

    Attributes
    ----------
    address : tuple
        Bound address.

    Raises
    ------
    RtmmsError
        If it cannot listen at the address.
    """

    def __init__(
        self, io: Io, counts: Counters, host: str, port: int, *, received: Callable[[bytes], None],
        came: Callable[[], None], gone: Callable[[], None], admission: Admission, limit: int = 256,
    ) -> None:  # fmt: skip
        self._admission = admission
        self._io, self._counts = io, counts
        self._received, self._came, self._gone = received, came, gone
        self._client: socket.socket | None = None
        self._next: socket.socket | None = None
        """Connection that would replace the client."""
        self._received_at = 0.0
        self._outbox: Outbox[bytes] = Outbox(limit, counts)
        self._begun = b""  # the rest of a message whose beginning is on its way: never dropped
        self._listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.setblocking(False)
        try:
            self._listening.bind((host, port))
            self._listening.listen(16)
        except OSError as fault:
            self._listening.close()
            raise rtmms.RtmmsError(f"cannot listen on TCP {host}:{port}: {fault.strerror}") from None
        self.address: tuple[Any, ...] = self._listening.getsockname()
        io.watch(self._listening, self._on_knock)

    @property
    def connected(self) -> bool:
        """Whether there is a client."""
        return self._client is not None

    def send(self, message: bytes) -> None:
        """Send a message now, or when the client has room; nothing without a client.

        Parameters
        ----------
        message : bytes
            The message.
        """
        if self._client is None:
            return
        self._outbox.put(message)
        self._flush()

    def drop(self, why: str) -> None:
        """Close the client's connection.

        Parameters
        ----------
        why : str
            Reason, for the log.
        """
        self._io.log(why)
        self._part()

    def close(self) -> None:
        """Close the server and the client's connection."""
        self._turn_away()
        self._part(log=False)
        self._io.unwatch(self._listening)
        self._listening.close()

    def _on_knock(self) -> None:
        for _ in range(16):
            try:
                client, address = self._listening.accept()
            except OSError:
                return
            client.setblocking(False)
            if not self._admission.admits(address):
                self._counts.refuse("stranger")
                client.close()
            elif self._client is None:
                self._take(client, address)
            elif monotonic() - self._received_at < _ALONE_S:
                self._counts.refuse("second")
                client.close()
            else:
                self._turn_away()
                self._next = client
                self._io.watch(client, self._on_next)

    def _on_next(self) -> None:
        """Handle data, or the end, of the connection that would replace the client."""
        client = self._next
        if client is None:
            return
        try:
            data = client.recv(_CHUNK, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or monotonic() - self._received_at < _ALONE_S:
            self._turn_away()
            return
        self._io.unwatch(client)
        self._next = None
        self._part()
        self._take(client, client.getpeername())

    def _turn_away(self) -> None:
        client, self._next = self._next, None
        if client is not None:
            self._counts.refuse("second")
            self._io.unwatch(client)
            client.close()

    def _take(self, client: socket.socket, address: tuple[Any, ...]) -> None:
        with contextlib.suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client, self._received_at = client, monotonic()
        self._counts.add("connections")
        self._io.log(f"connected from {address[0]}:{address[1]}")
        self._io.watch(client, self._on_readable)
        self._came()

    def _on_readable(self) -> None:
        client = self._client
        if client is None:
            return
        try:
            data = client.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._part()
            return
        self._received_at = monotonic()
        self._received(data)

    def _flush(self) -> None:
        client = self._client
        if client is None:
            return
        try:
            while self._begun or len(self._outbox):
                data = self._begun or self._outbox.take() or b""
                self._begun = data
                self._begun = data[client.send(data) :]
                if not self._begun:
                    self._counts.add("sent")
        except BlockingIOError:
            pass
        except OSError:
            self._part()
            return
        waits = bool(self._begun or len(self._outbox))
        self._io.watch(client, self._on_readable, self._flush if waits else None)

    def _part(self, log: bool = True) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        self._begun = b""
        self._outbox.clear()
        self._io.unwatch(client)
        client.close()
        if log:
            self._gone()
