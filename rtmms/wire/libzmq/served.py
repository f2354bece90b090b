"""The three sockets of a plant by libzmq, with the options that keep a peer from hurting it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import zmq

from rtmms.wire.libzmq.publisher import Publisher
from rtmms.wire.libzmq.router import Router
from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.libzmq.zap import Gatekeeper, lock
from rtmms.wire.protocol.errors import EndpointError
from rtmms.wire.protocol.messages import COMMAND_BYTES

_STEP_BACKLOG, _DOOR_BACKLOG, _TELEMETRY_BACKLOG = 16, 8, 16
_TELEMETRY_ROOM = 16 * 1024  # bytes in the kernel: what one does not read grows old there
_LONGEST_AT_DOOR, _LONGEST_SUBSCRIPTION = 1 << 20, 1024

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
        self._others = one or _context(threads.door_cpu, None)
        self.gatekeepers: list[Gatekeeper] = []
        if name_of is not None:
            self.gatekeepers = [Gatekeeper(context, name_of) for context in (self._steps, self._others)]

    def steps(self, endpoint: str, role: str, may_move: bool) -> tuple[Router, str]:
        """The step socket and the address really bound. A busy tcp port gives way to a free one where it may move;
        otherwise EndpointError names the endpoint."""
        return self._router(0, self._steps, _STEP_BACKLOG, 4 * COMMAND_BYTES, endpoint, role, may_move)

    def door(self, endpoint: str, role: str, may_move: bool) -> tuple[Router, str]:
        """Likewise the exchange socket."""
        return self._router(1, self._others, _DOOR_BACKLOG, _LONGEST_AT_DOOR, endpoint, role, may_move)

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
