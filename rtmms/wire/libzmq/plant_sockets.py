"""A plant's sockets by libzmq, with keys and within a program: ROUTER, PUB, and ZAP, for connection requests.

ZAP (RFC 27) has an endpoint in each context. A handshake waits for its answer, which the loop sends in its slack.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import Any

import zmq

from rtmms.base.override import override
from rtmms.wire.libzmq.socket_options import EVENTS, NOW, NOW_MORE, POLLIN, Socket, set_family
from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.protocol.errors import EndpointError
from rtmms.wire.protocol.limits import MAX_COMMAND_BYTES
from rtmms.wire.protocol.port import (
    FULL,
    GONE,
    MALFORMED,
    MESSAGE,
    SENT,
    Answering,
    Hosting,
    Received,
    SocketCallbacks,
)

DOMAIN = b"rtmms"
_ENDPOINT = "inproc://zeromq.zap.01"
_VERSION = b"1.0"
_MAX_KEY_CHECKS = 4
"""Connection requests that one call answers."""


class Gatekeeper:
    """Answer to the handshakes of one ZeroMQ context.

    Parameters
    ----------
    context : zmq.Context[zmq.Socket[bytes]]
        The context whose connection requests it answers.
    name_of : Callable[[bytes], str | None]
        Returns the name of an admitted key (32 bytes), or None for any other key.

    Attributes
    ----------
    refused : int
        Number of refused keys.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], name_of: Callable[[bytes], str | None]) -> None:
        self._name_of = name_of
        self.refused = 0
        self._socket: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(_ENDPOINT)

    def serve(self) -> None:
        """Answer a few waiting requests without waiting for others."""
        for _ in range(_MAX_KEY_CHECKS):
            if not _question_waits(self._socket):
                return
            self._socket.send_multipart(self.answer(self._socket.recv_multipart(NOW)), NOW)

    def answer(self, frames: Sequence[bytes]) -> list[bytes]:
        """Return the reply to a ZAP request.

        Parameters
        ----------
        frames : Sequence[bytes]
            Version, request id, domain, address, routing id, mechanism and key.

        Returns
        -------
        list[bytes]
            The reply's frames, with status 200 or 400.

        Notes
        -----
        RFC 27 of ZeroMQ defines both messages.
        """
        request, key = read_question(frames)
        name = self._name_of(key) if key is not None else None
        if name is None:
            self.refused += 1
            return [_VERSION, request, b"400", b"this key is not in the plant's folder of clients", b"", b""]
        assert key is not None
        return [_VERSION, request, b"200", b"", key.hex().encode(), b""]

    def close(self) -> None:
        """Close the socket at once."""
        self._socket.close(linger=0)


def _question_waits(socket: zmq.Socket[bytes]) -> bool:
    """Return whether a request waits.

    This costs a tenth of a recv that finds none.
    """
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def read_question(frames: Sequence[bytes]) -> tuple[bytes, bytes | None]:
    """Return the id and the key of a ZAP request.

    Parameters
    ----------
    frames : Sequence[bytes]
        Frames of the request.

    Returns
    -------
    tuple[bytes, bytes | None]
        The request's id, and its key. The key is None if the request is not for CURVE in our domain.
    """
    request = frames[1] if len(frames) > 1 else b""
    if len(frames) != 7 or frames[0] != _VERSION or frames[2] != DOMAIN or frames[5] != b"CURVE":
        return request, None
    return request, frames[6] if len(frames[6]) == 32 else None


def lock(socket: zmq.Socket[bytes], secret: bytes) -> None:
    """Make a socket a CURVE server before it is bound.

    Without an answer from a `Gatekeeper` the socket admits nobody.

    Parameters
    ----------
    socket : zmq.Socket[bytes]
        A socket that is not bound yet.
    secret : bytes
        The plant's secret key, z85.
    """
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
    socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


class Publisher(Hosting):
    """PUB socket that sends each message to the subscribers of its topic.

    Parameters
    ----------
    publisher : zmq.Socket[bytes]
        A bound PUB socket.
    reopened : Callable[[], zmq.Socket[bytes]]
        Opens and binds another PUB socket at the same address. It raises ZMQError while the address is in use.
    """

    def __init__(self, publisher: zmq.Socket[bytes], reopened: Callable[[], zmq.Socket[bytes]]) -> None:
        self.socket: zmq.Socket[bytes] | None = publisher
        self._reopened = reopened

    @property
    def wanted(self) -> bool:
        """True, because a PUB socket does not report whether it has subscribers."""
        return True

    @override
    def attend(self, guests: SocketCallbacks, cap: int) -> None:
        """Do nothing, because peers send only subscriptions, which ZeroMQ reads."""

    @override
    def next(self) -> Received | None:
        """Return None, because peers send no messages here."""
        return None

    @override
    def send(self, who: bytes, frame: bytes) -> int:
        """Send a message to the subscribers of a topic, and return SENT or FULL."""
        if self.socket is None:
            return FULL
        try:
            self.socket.send(who, NOW_MORE)
            self.socket.send(frame, NOW)
        except zmq.Again:
            return FULL
        return SENT

    @override
    def serve(self, until_ns: int) -> None:
        """Open the socket again after `hang_up`.

        This fails silently until the I/O thread has released the address.
        """
        if self.socket is None:
            with contextlib.suppress(zmq.ZMQError):
                self.socket = self._reopened()

    @override
    def wait(self, until_ns: int) -> bool:
        """Return False, because no messages come here."""
        return False

    def hang_up(self) -> None:
        """Close all connections, because a PUB socket cannot close a single one."""
        if self.socket is not None:
            self.socket.close(linger=0)
            self.socket = None

    @override
    def close(self, linger_ms: int = 0) -> None:
        if self.socket is not None:
            self.socket.close(linger=linger_ms)


_MORE = int(zmq.RCVMORE)
_MAX_SKIPPED = 32
"""Frames beyond the first that one call discards."""


class Router(Answering):
    """ROUTER socket whose peers are known by their routing ids.

    Parameters
    ----------
    socket : zmq.Socket[bytes]
        A bound ROUTER socket.
    gatekeeper : Gatekeeper | None, optional
        Checks the keys of all peers that connect in this context. None if no keys are required.
    with_keys : bool, default False
        Whether messages carry the key of their sender.

    Attributes
    ----------
    threaded : bool
        True, because ZeroMQ's I/O thread is between the caller and the peers.
    """

    threaded = True

    def __init__(self, socket: zmq.Socket[bytes], gatekeeper: Gatekeeper | None = None, with_keys: bool = False):
        self.socket, self._gatekeeper, self._with_keys = socket, gatekeeper, with_keys
        self._send, self._recv, self._get = socket.send, socket.recv, socket.getsockopt
        self._watch: list[Any] = [socket.getsockopt(zmq.FD)]
        self._skipping = False

    @override
    def attend(self, guests: SocketCallbacks, cap: int) -> None:
        """Do nothing, because ZeroMQ itself admits peers.

        The socket's owner refuses the messages of strangers.
        """

    @override
    def send(self, who: bytes, frame: bytes) -> int:
        """Send a message to a peer, by its routing id."""
        try:
            try:
                self._send(who, NOW_MORE)
            except zmq.Again:
                # Only once a millisecond libzmq checks how much the other side has read. In a quick exchange a queue
                # may seem full and be empty. A request for the events makes libzmq check at once.
                self._get(EVENTS)
                self._send(who, NOW_MORE)
            self._send(frame, NOW)
        except zmq.Again:
            return FULL
        except zmq.ZMQError as fault:
            if fault.errno != zmq.EHOSTUNREACH:
                raise
            return GONE
        return SENT

    @override
    def next(self) -> Received | None:
        """Return the next message.

        The socket discards frames beyond the first, a few a call. So None may come before all are gone.
        """
        if not int(self._get(EVENTS)) & POLLIN:  # costs half of a recv that finds no message
            return None
        try:
            skips = 0
            while self._skipping:
                if skips == _MAX_SKIPPED:
                    return None
                self._recv(NOW)
                self._skipping, skips = bool(self._get(_MORE)), skips + 1
            who = self._recv(NOW)
        except zmq.Again:
            return None
        except zmq.ZMQError as fault:
            if fault.errno == errno.EINTR:
                return None
            raise
        key, frame = self._frame() if self._with_keys else (None, self._recv(NOW))  # an empty frame follows each id
        self._skipping = bool(self._get(_MORE))
        return who, MALFORMED if self._skipping else MESSAGE, frame, key

    def _frame(self) -> tuple[bytes | None, bytes]:
        frame = self.socket.recv(NOW, copy=False)
        return bytes.fromhex(str(frame.get("User-Id"))), frame.bytes

    @override
    def serve(self, until_ns: int) -> None:
        """Answer waiting handshakes."""
        if self._gatekeeper is not None:
            self._gatekeeper.serve()

    @override
    def arm(self, instant_ns: int) -> None:
        """Do nothing, because each wait sets its own timer here."""

    @override
    def wait(self, until_ns: int) -> bool:
        """Wait for a message.

        ZeroMQ's own time-outs are whole milliseconds. Its descriptor signals a message only once, so its events are
        read first.
        """
        if int(self._get(EVENTS)) & POLLIN:
            return True
        left_ns = until_ns - monotonic_ns()
        return left_ns > 0 and bool(select.select(self._watch, (), (), left_ns * 1e-9)[0])

    @override
    def connected(self, who: bytes) -> bool | None:
        """Return None, because only a send shows whether a peer is connected."""
        return None

    @override
    def close(self, linger_ms: int = 0) -> None:
        self.socket.close(linger=linger_ms)


_STEP_BACKLOG = 16
_EXCHANGE_BACKLOG = 8
_TELEMETRY_BACKLOG = 16
_TELEMETRY_BUFFER_BYTES = 16 * 1024
"""Bytes that the kernel stores for an observer; unread telemetry becomes old there."""
_MAX_EXCHANGE_BYTES = 1 << 20
_MAX_SUBSCRIPTION_BYTES = 1024


class SocketContexts:
    """Contexts of a plant's sockets.

    Parameters
    ----------
    threads : Threads
        Cores and priority of ZeroMQ's I/O threads.
    shared : bool, default False
        Whether the sockets use the program's own context, for peers in this program at endpoints inproc://NAME.
    secret : bytes, default b''
        The plant's secret key, with which the sockets are CURVE servers. Empty for none.
    name_of : Callable[[bytes], str | None] | None, optional
        Returns the name of an admitted key (32 bytes), or None for any other key.

    Attributes
    ----------
    gatekeepers : list of Gatekeeper
        One for each context; empty if no keys are required.
    """

    def __init__(
        self, threads: Threads, *, shared: bool = False, secret: bytes = b"",
        name_of: Callable[[bytes], str | None] | None = None,
    ) -> None:  # fmt: skip
        self._shared, self._secret = shared, secret
        item: zmq.Context[Socket] | None = zmq.Context.instance() if shared else None
        self._steps = item or _context(threads.step_cpu, threads.priority)
        self._others = item or _context(threads.exchange_cpu, None)
        self.gatekeepers: list[Gatekeeper] = []
        if name_of is not None:
            self.gatekeepers = [Gatekeeper(context, name_of) for context in (self._steps, self._others)]

    def steps(self, endpoint: str, role: str, may_move: bool) -> tuple[Router, str]:
        """Bind the step socket.

        Parameters
        ----------
        endpoint : str
            Address to bind.
        role : str
            Purpose of the endpoint, for error messages.
        may_move : bool
            Whether a free tcp port replaces a busy one.

        Returns
        -------
        tuple[Router, str]
            The socket and the bound address.

        Raises
        ------
        EndpointError
            If the address cannot be bound.
        """
        return self._router(0, self._steps, _STEP_BACKLOG, 4 * MAX_COMMAND_BYTES, endpoint, role, may_move)

    def exchange(self, endpoint: str, role: str, may_move: bool) -> tuple[Router, str]:
        """Bind the exchange socket.

        Parameters
        ----------
        endpoint : str
            Address to bind.
        role : str
            Purpose of the endpoint, for error messages.
        may_move : bool
            Whether a free tcp port replaces a busy one.

        Returns
        -------
        tuple[Router, str]
            The socket and the bound address.

        Raises
        ------
        EndpointError
            If the address cannot be bound.
        """
        return self._router(1, self._others, _EXCHANGE_BACKLOG, _MAX_EXCHANGE_BYTES, endpoint, role, may_move)

    def publisher(self, endpoint: str, role: str, may_move: bool) -> tuple[Publisher, str]:
        """Bind the telemetry socket.

        Parameters
        ----------
        endpoint : str
            Address to bind.
        role : str
            Purpose of the endpoint, for error messages.
        may_move : bool
            Whether a free tcp port replaces a busy one.

        Returns
        -------
        tuple[Publisher, str]
            The socket and the bound address.

        Raises
        ------
        EndpointError
            If the address cannot be bound.
        """

        def opened() -> Socket:
            socket: Socket = self._others.socket(zmq.PUB)
            socket.setsockopt(zmq.SNDHWM, _TELEMETRY_BACKLOG)
            socket.setsockopt(zmq.SNDBUF, _TELEMETRY_BUFFER_BYTES)
            socket.setsockopt(zmq.MAXMSGSIZE, _MAX_SUBSCRIPTION_BYTES)
            return socket

        def reopened() -> Socket:
            socket = opened()
            try:
                self._locked(socket, at)
                socket.bind(at)
            except BaseException:
                socket.close(linger=0)
                raise
            return socket

        socket = opened()
        at = self._bound(socket, endpoint, role, may_move)
        return Publisher(socket, reopened), at

    def close(self) -> None:
        """Close the contexts, after the sockets."""
        for gatekeeper in self.gatekeepers:
            gatekeeper.close()
        if not self._shared:
            self._steps.term()
            self._others.term()

    def _router(
        self, turn: int, context: zmq.Context[Socket], backlog: int, longest: int, endpoint: str, role: str, moves: bool
    ) -> tuple[Router, str]:
        socket: Socket = context.socket(zmq.ROUTER)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        socket.setsockopt(zmq.ROUTER_HANDOVER, 0)  # a new peer cannot have an identity that is in use
        socket.setsockopt(zmq.RCVHWM, backlog)
        socket.setsockopt(zmq.SNDHWM, backlog)
        socket.setsockopt(zmq.MAXMSGSIZE, longest)
        socket.setsockopt(zmq.HANDSHAKE_IVL, 5000)
        # No HEARTBEAT_IVL: up to libzmq 4.3.5 the process ends (assertion !_io_error) if a heartbeat is due on a
        # connection that its peer filled and then closed. Probes of rtmms.wire.plant.keepalive ask whether peers live.
        at = self._bound(socket, endpoint, role, moves)
        gatekeeper = self.gatekeepers[turn] if self.gatekeepers else None
        return Router(socket, gatekeeper, with_keys=turn == 1 and gatekeeper is not None), at

    def _locked(self, socket: Socket, endpoint: str) -> None:
        socket.setsockopt(zmq.LINGER, 0)
        if self._secret:
            lock(socket, self._secret)
        set_family(socket, endpoint)

    def _bound(self, socket: Socket, endpoint: str, role: str, may_move: bool) -> str:
        try:
            self._locked(socket, endpoint)
            try:
                socket.bind(endpoint)
            except zmq.ZMQError as fault:
                busy = fault.errno == errno.EADDRINUSE
                if not (may_move and busy and endpoint.startswith("tcp://")):
                    why = "is in use by another process" if busy else f"cannot be bound: {fault}"
                    raise EndpointError(f"{role} endpoint '{endpoint}' {why}") from None
                socket.bind(endpoint.rpartition(":")[0] + ":*")
            return str(socket.getsockopt_string(zmq.LAST_ENDPOINT))
        except BaseException:
            socket.close(linger=0)  # otherwise its context would wait for it for ever
            raise


def _context(cpu: int | None, priority: int | None) -> zmq.Context[Socket]:
    context: zmq.Context[Socket] = zmq.Context()
    if cpu is not None:
        context.set(zmq.THREAD_AFFINITY_CPU_ADD, cpu)
    if priority is not None:
        context.set(zmq.THREAD_PRIORITY, priority)
        context.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
    return context
