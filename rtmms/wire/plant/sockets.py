"""The three sockets of a plant and what they live in, with the options that keep a peer from hurting it."""

from __future__ import annotations

import contextlib
import os
import select
import socket as plain
from dataclasses import dataclass

import zmq

from rtmms.loop.machine.realtime import may_raise
from rtmms.wire.libzmq.router import ZmqStep
from rtmms.wire.libzmq.zap import Allowed, Gatekeeper, StepGate, guard, lock
from rtmms.wire.places.endpoints import DEFAULTS, bind, checked, listen, listen_near, set_family
from rtmms.wire.places.keys import ServerKeys
from rtmms.wire.plant.doors import DoorLine, PlainDoor, PlainTelemetry, TelemetryLine, ZmqDoor, ZmqTelemetry
from rtmms.wire.protocol.errors import AddressError
from rtmms.wire.protocol.messages import COMMAND_BYTES, DOOR_BYTES
from rtmms.wire.stream.steps import StepLine

_STEP_BACKLOG = 16
_DOOR_BACKLOG = 8
_TELEMETRY_BACKLOG = 16


@dataclass(frozen=True)
class Threads:
    """Where ZeroMQ's I/O threads run.

    priority  SCHED_FIFO priority of the step socket's thread; None leaves it as it is
    step_cpu  core of the step socket's thread, best the loop's own; None anywhere
    door_cpu  core of the thread for the door and telemetry, which there is with keys alone; None anywhere
    """

    priority: int | None = None
    step_cpu: int | None = None
    door_cpu: int | None = None


def _apart(asked: dict[str, str | None], free_ports: bool, inproc: bool) -> None:
    """AddressError for two endpoints at one address, unless the later one is a default that may move."""
    roles: dict[str, str] = {}
    for role, given in asked.items():
        endpoint = checked(given or DEFAULTS[role], role, inproc=inproc)
        if endpoint.endswith((":*", ":0")) or (given is None and free_ports):
            continue
        if endpoint in roles:
            raise AddressError(f"{role} endpoint '{endpoint}': the {roles[endpoint]} endpoint is there, too; "
                               "each needs an address of its own")  # fmt: skip
        roles[endpoint] = role


class Sockets:
    """Bound sockets. They may be made before there is a plant: peers wait in them.

    endpoints  dict exchange, step, telemetry -> the address really bound
    near_step  another address of the step socket, for this user's processes; '' where there is none
    notes      what could not be set up, for the report
    allowed    the keys that may come in; None where no keys are asked for
    gatekeepers  who answers for them, one a context; empty where no keys are asked for
    gate       who may connect to the step endpoint where no keys are asked for
    """

    def __init__(
        self,
        exchange: str | None = None,
        step: str | None = None,
        telemetry: str | None = None,
        *,
        free_ports: bool = False,
        threads: Threads | None = None,
        keys: ServerKeys | None = None,
        inproc: bool = False,
    ) -> None:
        """Bind, with keys as servers of CURVE.

        An endpoint that is None is the default, and moves to a free port if that is busy and free_ports is set; any
        other that is busy raises EndpointError naming it.
        inproc: endpoints inproc://NAME in the program's own context (zmq.Context.instance), see embed.py.
        """
        threads = threads or Threads()
        asked = {"exchange": exchange, "step": step, "telemetry": telemetry}
        self.notes: list[str] = []
        self.endpoints: dict[str, str] = {}
        self.near_step = ""
        self.inproc = inproc
        shared: zmq.Context[zmq.Socket[bytes]] | None = zmq.Context.instance() if inproc else None
        self._step_context = shared or self._context(threads.step_cpu, threads.priority)
        self._door_context = shared or self._context(threads.door_cpu, None)
        self.allowed: Allowed | None = None
        self.gatekeepers: list[Gatekeeper] = []
        self.gate: StepGate | None = None
        self.step: ZmqStep | StepLine = None  # type: ignore[assignment]  # until it is bound
        self.exchange: DoorLine = None  # type: ignore[assignment]
        self.telemetry: TelemetryLine = None  # type: ignore[assignment]
        try:
            _apart(asked, free_ports, inproc)
            self._bind(asked, free_ports, keys)
        except BaseException:
            self.close(0)
            raise

    def _bind(self, asked: dict[str, str | None], free_ports: bool, keys: ServerKeys | None) -> None:
        """Listeners of our own where strangers come, but where keys keep them out, or it is all one program."""
        if keys is not None:
            self.allowed = Allowed(keys)
            for context in (self._step_context, self._door_context):
                self.gatekeepers.append(Gatekeeper(context, self.allowed))

        def bound(role: str, socket: zmq.Socket[bytes]) -> None:
            if keys is not None:
                lock(socket, keys)
            self.endpoints[role] = bind(
                socket, asked[role] or DEFAULTS[role], role, may_move=free_ports and asked[role] is None,
                keyed=keys is not None, inproc=self.inproc,
            )  # fmt: skip

        def listening(role: str) -> plain.socket:
            given = asked[role]
            opened, self.endpoints[role] = listen(given or DEFAULTS[role], role, may_move=free_ports and given is None)
            return opened

        if keys is None and not self.inproc:
            self.exchange = PlainDoor(listening("exchange"), DOOR_BYTES)
            if hasattr(select, "epoll"):
                ways = [listening("step")]
                near = listen_near(self.endpoints["step"])
                if near is not None:
                    ways.append(near[0])
                    self.near_step = near[1]
                self.step = StepLine(ways, COMMAND_BYTES)
            else:
                self.gate = StepGate(self._step_context)
                router = self._router()
                guard(router)
                bound("step", router)
            self.telemetry = PlainTelemetry(listening("telemetry"))
            return

        def reopened() -> zmq.Socket[bytes]:
            opened = _publisher(self._door_context)
            try:
                if keys is not None:
                    lock(opened, keys)
                set_family(opened, self.endpoints["telemetry"])
                opened.bind(self.endpoints["telemetry"])
            except BaseException:
                opened.close(linger=0)
                raise
            return opened

        router = self._router()
        door, publisher = _router(self._door_context, _DOOR_BACKLOG, 1 << 20), _publisher(self._door_context)
        self.exchange, self.telemetry = ZmqDoor(door, keys is not None), ZmqTelemetry(publisher, reopened)
        for role, socket in (("exchange", door), ("step", router), ("telemetry", publisher)):
            bound(role, socket)

    @property
    def io_thread(self) -> bool:
        """Whether a thread of ZeroMQ's stands between the loop and its peers."""
        return isinstance(self.step, ZmqStep)

    def _router(self) -> zmq.Socket[bytes]:
        """The step socket where it is ZeroMQ's; its context's thread begins with it."""
        router = _router(self._step_context, _STEP_BACKLOG, 4 * COMMAND_BYTES)
        self.step = ZmqStep(router)
        return router

    def _context(self, cpu: int | None, priority: int | None) -> zmq.Context[zmq.Socket[bytes]]:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        if cpu is not None:
            context.set(zmq.THREAD_AFFINITY_CPU_ADD, cpu)
        if priority is not None:
            if may_raise(priority):  # libzmq ends the process if it may not, so it is tried here first
                context.set(zmq.THREAD_PRIORITY, priority)
                context.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
            else:
                self.notes.append(f"I/O thread priority {priority}: not permitted")
        return context

    def close(self, linger_ms: int = 100) -> None:
        """Close all, giving a last bye linger_ms to leave."""
        for endpoint in (*self.endpoints.values(), self.near_step):
            if endpoint.startswith("ipc://"):  # while it is ours: afterwards it may be the next plant's
                with contextlib.suppress(OSError):
                    os.unlink(endpoint[len("ipc://") :])
        for gatekeeper in (*self.gatekeepers, self.gate):
            if gatekeeper is not None:
                gatekeeper.close()
        for line in (self.step, self.exchange, self.telemetry):
            if line is not None:
                line.close(linger_ms)
        if not self.inproc:
            self._step_context.term()
            self._door_context.term()


def _publisher(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    socket: zmq.Socket[bytes] = context.socket(zmq.PUB)
    socket.setsockopt(zmq.SNDHWM, _TELEMETRY_BACKLOG)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, 1024)  # all a subscriber sends is subscriptions
    return socket


def _router(context: zmq.Context[zmq.Socket[bytes]], backlog: int, longest: int) -> zmq.Socket[bytes]:
    socket: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.ROUTER_HANDOVER, 0)  # an identity in use is nobody else's
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVHWM, backlog)
    socket.setsockopt(zmq.SNDHWM, backlog)
    socket.setsockopt(zmq.MAXMSGSIZE, longest)
    socket.setsockopt(zmq.HANDSHAKE_IVL, 5000)
    # No HEARTBEAT_IVL: in libzmq up to 4.3.5 a heartbeat that falls due on a connection which its peer has filled and
    # then closed ends the process (assertion !_io_error). States of our own ask whether peers live: see tending.py.
    return socket
