"""A plant's sockets by libzmq, with keys and within a program: ROUTER, PUB, and ZAP, for connection requests.

ZAP (RFC 27) has an endpoint in each context. A handshake waits for its answer, which is given in the loop's slack.
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

from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.protocol.errors import EndpointError
from rtmms.wire.protocol.limits import COMMAND_BYTES
from rtmms.wire.protocol.port import FULL, GARBLED, GONE, MESSAGE, SENT, Guests, Heard

_NOW, _NOW_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
DOMAIN = b"rtmms"
_ENDPOINT = "inproc://zeromq.zap.01"
_VERSION = b"1.0"
_MOST = 4


class Gatekeeper:
    """Answers the handshakes of one context.

    name_of  the name of a key (32 bytes) that may come in; None where it may not
    refused  counts the keys that were turned away
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], name_of: Callable[[bytes], str | None]) -> None:
        self._name_of = name_of
        self.refused = 0
        self._socket: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(_ENDPOINT)

    def serve(self) -> None:
        """A few questions at most; never waits."""
        for _ in range(_MOST):
            if not _question_waits(self._socket):
                return
            self._socket.send_multipart(self.answer(self._socket.recv_multipart(_NOW)), _NOW)

    def answer(self, frames: Sequence[bytes]) -> list[bytes]:
        """[version, request, domain, address, routing id, mechanism, key] -> the reply, 200 or 400."""
        request, key = read_question(frames)
        name = self._name_of(key) if key is not None else None
        if name is None:
            self.refused += 1
            return [_VERSION, request, b"400", b"this key is not in the plant's folder of clients", b"", b""]
        assert key is not None
        return [_VERSION, request, b"200", b"", key.hex().encode(), b""]

    def close(self) -> None:
        self._socket.close(linger=0)


def _question_waits(socket: zmq.Socket[bytes]) -> bool:
    """Whether a question waits: a tenth of what a recv costs that finds none."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def read_question(frames: Sequence[bytes]) -> tuple[bytes, bytes | None]:
    """The request's id, and the key that asks to come in; None where the question is not one of CURVE in our domain."""
    request = frames[1] if len(frames) > 1 else b""
    if len(frames) != 7 or frames[0] != _VERSION or frames[2] != DOMAIN or frames[5] != b"CURVE":
        return request, None
    return request, frames[6] if len(frames[6]) == 32 else None


def lock(socket: zmq.Socket[bytes], secret: bytes) -> None:
    """Make a socket that will be bound the server of CURVE; without an answer from a Gatekeeper nobody comes in."""
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
    socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


class Publisher:
    """Messages to whoever is subscribed to a topic that the message's begins with.

    reopened  opens and binds another PUB at the same address; ZMQError while it is in use
    """

    def __init__(self, publisher: zmq.Socket[bytes], reopened: Callable[[], zmq.Socket[bytes]]) -> None:
        self.socket: zmq.Socket[bytes] | None = publisher
        self._reopened = reopened

    @property
    def wanted(self) -> bool:
        """See Publishing. A PUB does not tell."""
        return True

    def attend(self, guests: Guests, cap: int) -> None:
        """All they say is subscriptions, and ZeroMQ hears them."""

    def next(self) -> Heard | None:
        """See attend."""
        return None

    def send(self, who: bytes, frame: bytes) -> int:
        """See Messages."""
        if self.socket is None:
            return FULL
        try:
            self.socket.send(who, _NOW_MORE)
            self.socket.send(frame, _NOW)
        except zmq.Again:
            return FULL
        return SENT

    def serve(self, until_ns: int) -> None:
        """After `hang_up`: open again, when its I/O thread has let go of the address."""
        if self.socket is None:
            with contextlib.suppress(zmq.ZMQError):
                self.socket = self._reopened()

    def wait(self, until_ns: int) -> bool:
        """Nothing comes."""
        return False

    def hang_up(self) -> None:
        """A PUB cannot do it to one alone."""
        if self.socket is not None:
            self.socket.close(linger=0)
            self.socket = None

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        if self.socket is not None:
            self.socket.close(linger=linger_ms)


_EVENTS, _POLLIN, _MORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.RCVMORE)
_SKIPS = 32


class Router:
    """Messages of those that are connected, each known by its routing id.

    gatekeeper  answers for the keys of all that connect in this context; None where no keys are asked for
    tells_keys  messages are told with the key that their sender came in with
    """

    threaded = True

    def __init__(self, socket: zmq.Socket[bytes], gatekeeper: Gatekeeper | None = None, tells_keys: bool = False):
        self.socket, self._gatekeeper, self._tells_keys = socket, gatekeeper, tells_keys
        self._send, self._recv, self._get = socket.send, socket.recv, socket.getsockopt
        self._watch: list[Any] = [socket.getsockopt(zmq.FD)]
        self._skipping = False

    def attend(self, guests: Guests, cap: int) -> None:
        """ZeroMQ lets in whom it wants to: what strangers say is its owner's to refuse."""

    def send(self, who: bytes, frame: bytes) -> int:
        """See Messages."""
        try:
            try:
                self._send(who, _NOW_MORE)
            except zmq.Again:
                # libzmq looks only once a millisecond at what the other side has read; a queue that seems full in a
                # quick exchange may be empty. Asking for events makes it look.
                self._get(_EVENTS)
                self._send(who, _NOW_MORE)
            self._send(frame, _NOW)
        except zmq.Again:
            return FULL
        except zmq.ZMQError as fault:
            if fault.errno != zmq.EHOSTUNREACH:
                raise
            return GONE
        return SENT

    def next(self) -> Heard | None:
        """Frames beyond the first are thrown away, a few a call: None may come before all are gone."""
        if not int(self._get(_EVENTS)) & _POLLIN:  # half as dear as a recv that finds none
            return None
        try:
            skips = 0
            while self._skipping:
                if skips == _SKIPS:
                    return None
                self._recv(_NOW)
                self._skipping, skips = bool(self._get(_MORE)), skips + 1
            who = self._recv(_NOW)
        except zmq.Again:
            return None
        except zmq.ZMQError as fault:
            if fault.errno == errno.EINTR:
                return None
            raise
        key, frame = self._frame() if self._tells_keys else (None, self._recv(_NOW))  # there is one behind each id
        self._skipping = bool(self._get(_MORE))
        return who, GARBLED if self._skipping else MESSAGE, frame, key

    def _frame(self) -> tuple[bytes | None, bytes]:
        frame = self.socket.recv(_NOW, copy=False)
        return bytes.fromhex(str(frame.get("User-Id"))), frame.bytes

    def serve(self, until_ns: int) -> None:
        """The handshakes that wait for an answer."""
        if self._gatekeeper is not None:
            self._gatekeeper.serve()

    def arm(self, instant_ns: int) -> None:
        """A wait sets its own timer here."""

    def wait(self, until_ns: int) -> bool:
        """ZeroMQ's own time-outs are whole milliseconds; its descriptor tells of news only once, so it is asked."""
        if int(self._get(_EVENTS)) & _POLLIN:
            return True
        left_ns = until_ns - monotonic_ns()
        return left_ns > 0 and bool(select.select(self._watch, (), (), left_ns * 1e-9)[0])

    def connected(self, who: bytes) -> bool | None:
        """See Answering."""
        return None

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        self.socket.close(linger=linger_ms)


_STEP_BACKLOG, _EXCHANGE_BACKLOG, _TELEMETRY_BACKLOG = 16, 8, 16
_TELEMETRY_ROOM = 16 * 1024  # bytes in the kernel: what one does not read grows old there
_LONGEST_AT_EXCHANGE, _LONGEST_SUBSCRIPTION = 1 << 20, 1024

Socket = zmq.Socket[bytes]


class Served:
    """What they live in.

    shared   the program's own context: peers are in this program, at endpoints inproc://NAME
    secret   the plant's secret key, which makes them servers of CURVE; b'' for none
    name_of  the name of a key (32 bytes) that may come in; None where it may not
    """

    def __init__(
        self, threads: Threads, *, shared: bool = False, secret: bytes = b"",
        name_of: Callable[[bytes], str | None] | None = None,
    ) -> None:  # fmt: skip
        self._shared, self._secret = shared, secret
        one: zmq.Context[Socket] | None = zmq.Context.instance() if shared else None
        self._steps = one or _context(threads.step_cpu, threads.priority)
        self._others = one or _context(threads.exchange_cpu, None)
        self.gatekeepers: list[Gatekeeper] = []
        if name_of is not None:
            self.gatekeepers = [Gatekeeper(context, name_of) for context in (self._steps, self._others)]

    def steps(self, endpoint: str, role: str, may_move: bool) -> tuple[Router, str]:
        """The step socket and the address really bound. A busy tcp port gives way to a free one where it may move;
        otherwise EndpointError names the endpoint."""
        return self._router(0, self._steps, _STEP_BACKLOG, 4 * COMMAND_BYTES, endpoint, role, may_move)

    def exchange(self, endpoint: str, role: str, may_move: bool) -> tuple[Router, str]:
        """Likewise the exchange socket."""
        return self._router(1, self._others, _EXCHANGE_BACKLOG, _LONGEST_AT_EXCHANGE, endpoint, role, may_move)

    def publisher(self, endpoint: str, role: str, may_move: bool) -> tuple[Publisher, str]:
        """Likewise telemetry."""

        def opened() -> Socket:
            socket: Socket = self._others.socket(zmq.PUB)
            socket.setsockopt(zmq.SNDHWM, _TELEMETRY_BACKLOG)
            socket.setsockopt(zmq.SNDBUF, _TELEMETRY_ROOM)
            socket.setsockopt(zmq.MAXMSGSIZE, _LONGEST_SUBSCRIPTION)
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
        """After the sockets."""
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
        socket.setsockopt(zmq.ROUTER_HANDOVER, 0)  # an identity in use is nobody else's
        socket.setsockopt(zmq.RCVHWM, backlog)
        socket.setsockopt(zmq.SNDHWM, backlog)
        socket.setsockopt(zmq.MAXMSGSIZE, longest)
        socket.setsockopt(zmq.HANDSHAKE_IVL, 5000)
        # No HEARTBEAT_IVL: in libzmq up to 4.3.5 a heartbeat that falls due on a connection which its peer has filled
        # and then closed ends the process (assertion !_io_error). States of our own ask whether peers live: tending.
        at = self._bound(socket, endpoint, role, moves)
        keeper = self.gatekeepers[turn] if self.gatekeepers else None
        return Router(socket, keeper, tells_keys=turn == 1 and keeper is not None), at

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
            socket.close(linger=0)  # or its context would wait for it for ever
            raise


def set_family(socket: Socket, endpoint: str) -> None:
    """IPv6 has to be asked for before an address of it is used."""
    if "[" in endpoint:
        socket.setsockopt(zmq.IPV6, 1)


def _context(cpu: int | None, priority: int | None) -> zmq.Context[Socket]:
    context: zmq.Context[Socket] = zmq.Context()
    if cpu is not None:
        context.set(zmq.THREAD_AFFINITY_CPU_ADD, cpu)
    if priority is not None:
        context.set(zmq.THREAD_PRIORITY, priority)
        context.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
    return context
