"""The three sockets of a plant: the implementation of each, and its address."""

from __future__ import annotations

import contextlib
import os
import socket as plain
from typing import TypeVar

from rtmms.base.files import private_files
from rtmms.loop.machine import may_raise
from rtmms.wire.addresses import DEFAULTS, check_endpoint, endpoint_to_bind, listen, listen_near
from rtmms.wire.keys import AdmittedKeys, ServerKeys
from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.protocol.errors import AddressError
from rtmms.wire.protocol.limits import MAX_COMMAND_BYTES, MAX_EXCHANGE_BYTES
from rtmms.wire.protocol.port import Answering, Hosting, Publishing
from rtmms.wire.stream.listener import Listener
from rtmms.wire.stream.publisher import Publisher
from rtmms.wire.stream.steps import Steps

_EXCHANGE_BACKLOG = 1 << 18
_T = TypeVar("_T", bound=Hosting)


class Sockets:
    """Bound sockets of a plant.

    They may exist before there is a plant; peers wait in them. The sockets are streams of our own, which strangers may
    reach. With keys, or within one program, they are libzmq's. An endpoint that is None is the default one. A busy
    default moves to a free port if `free_ports` is set.

    Parameters
    ----------
    exchange, step, telemetry : str | None, optional
        Endpoints to bind.
    free_ports : bool, default False
        Whether a free port replaces a busy default.
    threads : Threads | None, optional
        Cores and priority of ZeroMQ's I/O threads.
    keys : ServerKeys | None, optional
        Keys of a CURVE server.
    inproc : bool, default False
        Whether the endpoints are inproc://NAME in the program's own context (zmq.Context.instance), see embed.py.
    libzmq : bool, default False
        Whether libzmq replaces our own streams, to compare them; it does not withstand strangers.

    Attributes
    ----------
    exchange : Answering
        The exchange socket.
    step : Answering
        The step socket.
    telemetry : Publishing
        The telemetry socket.
    endpoints : dict of str to str
        Bound address of exchange, step and telemetry.
    near_step : str
        Another address of the step socket, for this user's processes; empty for none.
    notes : list of str
        Failures of the set-up, for the report.
    allowed : AdmittedKeys or None
        Admitted keys; None if no keys are required.

    Raises
    ------
    EndpointError
        If an endpoint is busy; it names the endpoint.
    """

    exchange: Answering
    step: Answering
    telemetry: Publishing

    def __init__(
        self, exchange: str | None = None, step: str | None = None, telemetry: str | None = None, *,
        free_ports: bool = False, threads: Threads | None = None, keys: ServerKeys | None = None, inproc: bool = False,
        libzmq: bool = False,
    ) -> None:  # fmt: skip
        """Bind the sockets; see the class."""
        self._requested_endpoints = {"exchange": exchange, "step": step, "telemetry": telemetry}
        self._free_ports, self._keyed = free_ports, keys is not None
        self.notes: list[str] = []
        self.endpoints: dict[str, str] = {}
        self.near_step = ""
        self.inproc = inproc
        self.allowed = None if keys is None else AdmittedKeys(keys)
        self._linger_ms, self._closed = 0, False
        with contextlib.ExitStack() as bound:
            try:
                _apart(self._requested_endpoints, free_ports, inproc)
                if keys is not None or inproc or libzmq:
                    self._bind_libzmq(bound, threads or Threads(), b"" if keys is None else keys.secret)
                else:
                    self._bind_streams(bound)
            except BaseException:
                self._unlink()
                raise
            self._bound = bound.pop_all()

    def _bind_streams(self, bound: contextlib.ExitStack) -> None:
        def listening(role: str) -> plain.socket:
            opened, self.endpoints[role] = listen(self._asked(role), role, may_move=self._may_move(role))
            bound.callback(opened.close)
            return opened

        answering = Listener([listening("exchange")], MAX_EXCHANGE_BYTES, backlog=_EXCHANGE_BACKLOG)
        self.exchange = self._register_close(bound, answering)
        ways = [listening("step")]
        near = listen_near(self.endpoints["step"])
        if near is not None:
            ways.append(near[0])
            self.near_step = near[1]
        steps = Steps(ways, MAX_COMMAND_BYTES)
        self.step = self._register_close(bound, steps)
        publisher = Publisher(listening("telemetry"))
        self.telemetry = self._register_close(bound, publisher)
        everywhere = (answering, steps, publisher.listener)
        for item in everywhere:
            item.other_listeners = tuple(other for other in everywhere if other is not item)

    def _bind_libzmq(self, bound: contextlib.ExitStack, threads: Threads, secret: bytes) -> None:
        from rtmms.wire.libzmq.plant_sockets import SocketContexts

        if threads.priority is not None and not may_raise(threads.priority):
            # libzmq ends the process if it may not bind, so try here first
            self.notes.append(f"I/O thread priority {threads.priority}: not permitted")
            threads = Threads(None, threads.step_cpu, threads.exchange_cpu)
        name_of = None if self.allowed is None else self.allowed.name_of
        served = SocketContexts(threads, shared=self.inproc, secret=secret, name_of=name_of)
        bound.callback(served.close)

        def place(role: str) -> tuple[str, str, bool]:
            endpoint = endpoint_to_bind(self._asked(role), role, keyed=self._keyed, inproc=self.inproc)
            return endpoint, role, self._may_move(role)

        with private_files():
            answering, self.endpoints["exchange"] = served.exchange(*place("exchange"))
            self.exchange = self._register_close(bound, answering)
            step, self.endpoints["step"] = served.steps(*place("step"))
            self.step = self._register_close(bound, step)
            publisher, self.endpoints["telemetry"] = served.publisher(*place("telemetry"))
            self.telemetry = self._register_close(bound, publisher)

    def close(self, linger_ms: int = 100) -> None:
        """Close all sockets; a second call does nothing.

        Parameters
        ----------
        linger_ms : int, default 100
            Time for a last bye to leave, ms.
        """
        if not self._closed:
            self._linger_ms, self._closed = linger_ms, True
            self._unlink()  # while they are ours: later they may belong to the next plant
            self._bound.close()

    @property
    def io_thread(self) -> bool:
        """Whether a thread of ZeroMQ is between the loop and its peers."""
        return self.step.threaded

    def _register_close(self, bound: contextlib.ExitStack, socket: _T) -> _T:
        bound.callback(lambda: socket.close(self._linger_ms))
        return socket

    def _unlink(self) -> None:
        for endpoint in (*self.endpoints.values(), self.near_step):
            if endpoint.startswith("ipc://"):
                with contextlib.suppress(OSError):
                    os.unlink(endpoint[len("ipc://") :])

    def _asked(self, role: str) -> str:
        return self._requested_endpoints[role] or DEFAULTS[role]

    def _may_move(self, role: str) -> bool:
        return self._free_ports and self._requested_endpoints[role] is None


def _apart(asked: dict[str, str | None], free_ports: bool, inproc: bool) -> None:
    """Raise AddressError for two endpoints at one address, unless the later one is a default that may move."""
    roles: dict[str, str] = {}
    for role, address in asked.items():
        endpoint = check_endpoint(address or DEFAULTS[role], role, inproc=inproc)
        if endpoint.endswith((":*", ":0")) or (address is None and free_ports):
            continue
        if endpoint in roles:
            raise AddressError(
                f"{role} endpoint '{endpoint}': the {roles[endpoint]} endpoint has this address too; give "
                "each endpoint another"
            )
        roles[endpoint] = role
