"""Relay in front of a library's WebSocket server that ignores Origin: pages of other sites do not reach the server.

A page of any site in a browser may connect to a port of this machine, and the browser states the page's site in Origin.
The library listens at an address of loopback that nobody can guess. The relay passes a connection to the configured
port on if its handshake has no Origin (it is no browser's), or an admitted one.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import sys
import threading
from collections.abc import Callable

MAX_HEAD_S = 5.0
"""Duration of a handshake, s."""
MAX_HEAD_BYTES = 16384
"""Size of a handshake."""
MAX_CONNECTIONS = 64
"""Connections at once."""
_PIECE_BYTES = 65536
_FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def hidden_host() -> str:
    """Return an address of loopback to listen at, one of 16 million, or the only one there is.

    Returns
    -------
    str
        The address.
    """
    if sys.platform != "linux":
        return "127.0.0.1"
    draw = random.SystemRandom()
    return f"127.{draw.randint(1, 254)}.{draw.randint(1, 254)}.{draw.randint(1, 254)}"


def refused_origin(head: bytes, admitted: frozenset[str]) -> str | None:
    """Return the origin of a refused handshake.

    Parameters
    ----------
    head : bytes
        Head of the handshake.
    admitted : frozenset[str]
        Admitted origins, in lower case.

    Returns
    -------
    str | None
        None if it may pass: it is no page's, or an admitted one's. Empty for anything but a handshake of a WebSocket.
    """
    fields = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    result = [(name.strip().lower(), value.strip().decode("latin-1")) for name, _, value in fields]
    if not any(name == b"upgrade" and value.lower() == "websocket" for name, value in result):
        return ""
    strange = [value for name, value in result if name == b"origin" and value.lower() not in admitted]
    return strange[0] or "null" if strange else None


class OriginRelay:
    """Relay of connections in its own thread, from construction to `close`.

    Parameters
    ----------
    host, port : str
        Where it listens.
    inner : tuple[str, int]
        Where the library listens.
    admitted : tuple[str, ...]
        Admitted origins, as https://robot.example.
    refused : Callable[[str], None]
        Called in that thread with a refused origin, empty for anything but a handshake.
    context : ssl.SSLContext | None, optional
        TLS; None for none.

    Attributes
    ----------
    port : int
        The port where it listens.

    Raises
    ------
    OSError
        If it cannot listen.
    """

    def __init__(
        self, host: str, port: int, inner: tuple[str, int], admitted: tuple[str, ...],
        refused: Callable[[str], None], context: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        self._inner, self._refused = inner, refused
        self._admitted = frozenset(item.lower() for item in admitted)
        self._going: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        try:
            built = asyncio.start_server(self._accepted, host, port, ssl=context, limit=MAX_HEAD_BYTES)
            self._server = self._loop.run_until_complete(built)
        except BaseException:
            self._loop.close()
            raise
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="origins", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all connections."""
        if not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(2.0)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._finish())
        finally:
            self._loop.close()

    async def _finish(self) -> None:
        self._server.close()
        going = list(self._going)
        for item in going:
            item.cancel()
        if going:
            await asyncio.wait(going, timeout=1.0)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._going) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._going.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._pass(reader, writer)
        finally:
            self._going.discard(task)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), MAX_HEAD_S)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            self._refused("")
            return
        origin = refused_origin(head, self._admitted)
        if origin is not None:
            self._refused(origin)
            writer.write(_FORBIDDEN)
            await asyncio.wait_for(writer.drain(), MAX_HEAD_S)
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), MAX_HEAD_S)
            return
        there, back = await asyncio.open_connection(*self._inner, limit=MAX_HEAD_BYTES)
        try:
            back.write(head)
            ways = [asyncio.ensure_future(_pump(reader, back)), asyncio.ensure_future(_pump(there, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0.05)  # what is on its way still arrives
            finally:
                for task in ways:
                    task.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            back.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_PIECE_BYTES):
        sink.write(piece)
        await sink.drain()
