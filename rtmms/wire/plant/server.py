"""The plant's side of the wire: its sockets, telemetry, and keep-alive of claimants."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket as plain
from collections.abc import Collection, Mapping
from time import monotonic_ns, sleep
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rtmms.base.contract import PLANNED_MOTION, PLANNED_SAMPLES, Applied
from rtmms.base.errors import ModelError
from rtmms.base.files import private_files
from rtmms.loop.impairment import ImpairedLink
from rtmms.loop.machine import may_raise
from rtmms.plant.protocol import Plant, describe_plant
from rtmms.wire.endpoints.addresses import DEFAULTS, checked, cleared, listen, listen_near
from rtmms.wire.endpoints.keys import Allowed, ServerKeys
from rtmms.wire.endpoints.session_files import new_token, remove_token, write_token
from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.plant.fast_path import WireFastPath
from rtmms.wire.plant.handshake import HandshakePort, Scope, Scopes
from rtmms.wire.plant.peers import DEAD, LIVE, READY, WARMING, Missing, Peer, Peers, max_messages
from rtmms.wire.plant.state_message import MAX_PEERS_WORK, MAX_STRANGERS_WORK, Selection, select
from rtmms.wire.plant.step_port import StepPort, with_hint
from rtmms.wire.protocol.messages import (
    MAX_COMMAND_BYTES,
    MAX_EXCHANGE_BYTES,
    AddressError,
    Hello,
    Reason,
    Refused,
    Request,
    name_in,
    packer,
)
from rtmms.wire.protocol.port import Answering, Guests, Hosting, Publishing
from rtmms.wire.stream.listener import Listener
from rtmms.wire.stream.publisher import Publisher
from rtmms.wire.stream.steps import Steps

if TYPE_CHECKING:
    from rtmms.loop.ports import Array, FastPath, Flags, Memory, StepRecorder


# The three sockets of a plant: the implementation of each, and its address.


__all__ = ["Sockets", "Threads"]

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
    allowed : Allowed or None
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
        self._given = {"exchange": exchange, "step": step, "telemetry": telemetry}
        self._free_ports, self._keyed = free_ports, keys is not None
        self.notes: list[str] = []
        self.endpoints: dict[str, str] = {}
        self.near_step = ""
        self.inproc = inproc
        self.allowed = None if keys is None else Allowed(keys)
        self._linger_ms, self._closed = 0, False
        with contextlib.ExitStack() as bound:
            try:
                _apart(self._given, free_ports, inproc)
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

        door = Listener([listening("exchange")], MAX_EXCHANGE_BYTES, backlog=_EXCHANGE_BACKLOG)
        self.exchange = self._kept(bound, door)
        ways = [listening("step")]
        near = listen_near(self.endpoints["step"])
        if near is not None:
            ways.append(near[0])
            self.near_step = near[1]
        steps = Steps(ways, MAX_COMMAND_BYTES)
        self.step = self._kept(bound, steps)
        publisher = Publisher(listening("telemetry"))
        self.telemetry = self._kept(bound, publisher)
        everywhere = (door, steps, publisher.listener)
        for one in everywhere:
            one.beside = tuple(other for other in everywhere if other is not one)

    def _bind_libzmq(self, bound: contextlib.ExitStack, threads: Threads, secret: bytes) -> None:
        from rtmms.wire.libzmq.plant_sockets import Served

        if threads.priority is not None and not may_raise(threads.priority):
            # libzmq ends the process if it may not bind, so try here first
            self.notes.append(f"I/O thread priority {threads.priority}: not permitted")
            threads = Threads(None, threads.step_cpu, threads.exchange_cpu)
        name_of = None if self.allowed is None else self.allowed.name_of
        served = Served(threads, shared=self.inproc, secret=secret, name_of=name_of)
        bound.callback(served.close)

        def place(role: str) -> tuple[str, str, bool]:
            endpoint = cleared(self._asked(role), role, keyed=self._keyed, inproc=self.inproc)
            return endpoint, role, self._may_move(role)

        with private_files():
            door, self.endpoints["exchange"] = served.exchange(*place("exchange"))
            self.exchange = self._kept(bound, door)
            step, self.endpoints["step"] = served.steps(*place("step"))
            self.step = self._kept(bound, step)
            publisher, self.endpoints["telemetry"] = served.publisher(*place("telemetry"))
            self.telemetry = self._kept(bound, publisher)

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

    def _kept(self, bound: contextlib.ExitStack, socket: _T) -> _T:
        bound.callback(lambda: socket.close(self._linger_ms))
        return socket

    def _unlink(self) -> None:
        for endpoint in (*self.endpoints.values(), self.near_step):
            if endpoint.startswith("ipc://"):
                with contextlib.suppress(OSError):
                    os.unlink(endpoint[len("ipc://") :])

    def _asked(self, role: str) -> str:
        return self._given[role] or DEFAULTS[role]

    def _may_move(self, role: str) -> bool:
        return self._free_ports and self._given[role] is None


def _apart(asked: dict[str, str | None], free_ports: bool, inproc: bool) -> None:
    """Raise AddressError for two endpoints at one address, unless the later one is a default that may move."""
    roles: dict[str, str] = {}
    for role, given in asked.items():
        endpoint = checked(given or DEFAULTS[role], role, inproc=inproc)
        if endpoint.endswith((":*", ":0")) or (given is None and free_ports):
            continue
        if endpoint in roles:
            raise AddressError(
                f"{role} endpoint '{endpoint}': the {roles[endpoint]} endpoint has this address too; give "
                "each endpoint another"
            )
        roles[endpoint] = role


# Telemetry for observers: states at a steady rate of wall time, packed if there is time and sent in the slack.


class Telemetry:
    """States for observers at a steady rate of wall time.

    They are packed when there is time, and sent in the slack.

    Parameters
    ----------
    socket : Publishing
        The telemetry socket.
    plant : Plant
        The plant.
    robot : str
        Topic of the messages.
    hz : float
        Most states a second of wall time.
    """

    def __init__(self, socket: Publishing, plant: Plant, robot: str, hz: float) -> None:
        self._socket, self._topic = socket, robot.encode()
        self._selection = Selection(plant.outputs, "telemetry")
        self._gap_ns = round(1e9 / hz)
        self._frame = b""
        self._due_ns = 0

    @property
    def due(self) -> bool:
        """Whether the next state is to be packed now, because somebody may receive it."""
        return monotonic_ns() >= self._due_ns and self._socket.wanted

    def pack(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:
        """Pack one state.

        The next one is due on a grid, so that the mean rate is kept if steps come at about that rate. After a gap it is
        due a period from now.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        outputs : Mapping[str, Any]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
        now_ns, due_ns = monotonic_ns(), self._due_ns + self._gap_ns
        self._due_ns = due_ns if due_ns > now_ns else now_ns + self._gap_ns
        self._frame = self._selection.packed(step, time, deadline_ns, budget_ns, outputs, applied)

    def send(self) -> None:
        """Send the packed state."""
        if self._frame:
            frame, self._frame = self._frame, b""
            self._socket.send(self._topic, frame)

    def serve(self, until_ns: int) -> None:
        """Admit newcomers, and continue unfinished messages.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        self._socket.serve(until_ns)


# Care for claimants in the loop's slack: warm-up states, probes, pending errors. This code only sends, and never waits.


_ERROR_GAP_NS = 200_000_000
_PROBE_GAP_NS = 100_000_000
_PROBE_SLOW_GAP_NS = 2_000_000_000
_PROBES = 2
_WARM_LIMIT_NS = 5_000_000_000
_PROMPT_NS = 5_000_000
SILENT_NS = 1_500_000_000
"""Silence after which a peer without credits counts as dead, ns, even if its connection exists."""


class Tending:
    """Messages to peers on the step socket outside the steps: warm-up states, probes, and pending errors.

    Parameters
    ----------
    port : StepPort
        The step socket's port.
    peers : Peers
        All peers.
    """

    def __init__(self, port: StepPort, peers: Peers) -> None:
        self._port, self._peers = port, peers
        self._probe = packer()({
            "type": "state", "step": -1, "timestamp": 0.0, "deadline_ns": 0, "budget_ns": 0,
            "outputs": {}, "applied": {},
        })  # fmt: skip

    def serve(self, now_ns: int, outputs: Mapping[str, Any]) -> None:
        """Serve each peer once.

        Parameters
        ----------
        now_ns : int
            Present instant of CLOCK_MONOTONIC, ns.
        outputs : Mapping[str, Any]
            The plant's outputs, for the warm-up states.
        """
        while self._peers.displaced:
            peer, heir = self._peers.displaced.pop()
            self._port.send(peer, {"type": "bye", "reason": f"your claim passed to '{heir}' while you were gone"})
        for peer in list(self._peers.all):
            if peer.observer:
                continue
            if peer.error is not None and now_ns - peer.error_ns >= _ERROR_GAP_NS:
                code, text, unknown = peer.error
                text = with_hint(text, unknown, self._peers.names)
                self._port.send(peer, {"type": "error", "code": name_in(peer.asked.protocol, code), "text": text})
                peer.error, peer.error_ns = None, now_ns
            if peer.state in (WARMING, READY):
                self._warm_up(peer, now_ns, outputs)
            elif peer.state is LIVE and peer.owed <= self._port.credits:
                peer.since_ns = now_ns
                if peer.ticks and now_ns - peer.probe_ns > _PROBE_GAP_NS:
                    # no state leaves while its tick is awaited, so a probe shows whether the peer lives
                    peer.owed += self._send_probe(peer, now_ns)
            else:
                if peer.state is LIVE and now_ns - peer.since_ns > SILENT_NS:
                    peer.dies(self._port.step, starved=self._port.connected(peer) is True)
                self._look_for(peer, now_ns)

    def ask(self, peer: Peer) -> None:
        """Send a probe that shows whether a connection exists.

        Parameters
        ----------
        peer : Peer
            The peer.
        """
        self._port.transmit(peer, self._probe)

    def hasten(self, until_ns: int, outputs: Mapping[str, Any]) -> None:
        """Continue the warm-up while there is time, so that a returning peer is admitted within a few steps.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        outputs : Mapping[str, Any]
            The plant's outputs, for the warm-up states.
        """
        while (now_ns := monotonic_ns()) < until_ns and any(self._answers(peer, now_ns) for peer in self._peers.all):
            self._port.await_answer(min(until_ns, now_ns + _PROMPT_NS))
            self._port.read_in_slack(until_ns)
            self._port.admit_ready()
            self.serve(monotonic_ns(), outputs)

    @staticmethod
    def _answers(peer: Peer, now_ns: int) -> bool:
        """Return whether a peer was just sent a warm-up state, so that its answer may be waited for."""
        return peer.state is WARMING and peer.owed > 0 and now_ns - peer.since_ns < _PROMPT_NS

    def _warm_up(self, peer: Peer, now_ns: int, outputs: Mapping[str, Any]) -> None:
        """Send warm-up states, which perform both sides' first exchanges before they count.

        They differ from usual states by their steps. A newcomer that is not connected any more after a while loses its
        place. A connected one has as much time as it needs.
        """
        if peer.state is READY:
            return
        if peer.owed == 0:
            payload = peer.selection.packed(peer.warm_step, 0.0, 0, 0, outputs, self._port.applied)
            peer.selection.round = 0
            if self._port.transmit(peer, payload):
                peer.owed, peer.since_ns = 1, now_ns
        elif self._look_for(peer, now_ns):
            peer.since_ns = now_ns
        if now_ns - peer.since_ns > _WARM_LIMIT_NS:
            self._peers.release(peer)

    def _look_for(self, peer: Peer, now_ns: int) -> bool:
        """Return whether a peer is connected, if necessary by a probe.

        A probe is an empty state of step -1; a peer answers it like a warm-up state. Few probes may be unanswered on a
        connection, because a sleeping process must not wake to many of them. If only a send shows whether the
        connection is open, more follow slowly.
        """
        gap_ns = _PROBE_GAP_NS
        if peer.probes >= _PROBES:
            connected = self._port.connected(peer)
            if connected:
                return True
            if connected is None:
                gap_ns = _PROBE_SLOW_GAP_NS
        return now_ns - peer.probe_ns > gap_ns and self._send_probe(peer, now_ns)

    def _send_probe(self, peer: Peer, now_ns: int) -> bool:
        peer.probe_ns = now_ns
        there = self._port.transmit(peer, self._probe)
        peer.probes = peer.probes + 1 if there else 0
        return there


# The plant's side of the wire: the loop's Exchange, over ZeroMQ.
#
# There is no thread and no lock. The loop's own thread makes every call, and none waits beyond the instant that it
# receives.


_MAX_LAG_S = 0.5
"""Simulated time by which a command may be behind the present step, s."""
_MIN_LAG_STEPS = 16
"""Steps by which a command may be behind in any case."""
_FAREWELL_S = 0.02
_LAST_METRICS_NS = 250_000_000
_BYE_NS = 1_000_000_000
_LOOK_NS = 50_000
_WAKE_NS = 150_000
"""Margin of waits in the slack before its end, ns, because they may wake up late."""
_STRANGERS_MARGIN_NS = 250_000
"""Margin before the end of the slack, ns, in which strangers' messages are not read.

They are read for half of the slack at least. The rest is needed for the next state, and reading from a flooding
stranger may take a tenth of a millisecond.
"""
_MIN_DIVIDED_SLACK_NS = 100_000
"""Slack up to which strangers have all of it, ns, so that a request to end the run is always read."""


class Server:
    """The plant's side of the wire: peers, claims, commands and requests; it implements rtmms.loop.ports.Exchange.

    Parameters
    ----------
    plant : Plant
        The plant. Its actuators, outputs and dt are read; it is observed once here and never stepped.
    robot : str
        Name of the plant, and topic of its telemetry.
    mode : str, default 'realtime'
        'realtime', 'lockstep', 'free' or 'external', as peers receive it.
    rate : float, default 1.0
        Simulated over wall time.
    deadline_s : float | None, optional
        Time for an answer, s, as peers receive it. None if no clock paces the steps. It may be set later.
    exchange, step, telemetry : str | None, optional
        Endpoints to bind; None for the defaults.
    seed : int, default 0
        Seed of the run, as peers receive it.
    token : str | None, optional
        Token for claims. None creates one, and stores it where this user's `connect` finds it.
    free_ports : bool, default False
        Whether a free port replaces a busy default.
    io_priority : int | None, optional
        SCHED_FIFO priority of ZeroMQ's step thread.
    threads : Threads | None, optional
        Cores and priority of ZeroMQ's I/O threads.
    sockets : Sockets | None, optional
        Bound sockets, which replace the endpoints.
    telemetry_hz : float, default 100.0
        Most states a second of wall time for observers.
    keys : ServerKeys | None, optional
        Keys that encrypt, and that replace the token, see rtmms/wire/endpoints/keys.py.
    links : Mapping[str, ImpairedLink] | None, optional
        Impaired links by the name of the peer.
    duration_s : float | None, optional
        Simulated time of the run, s. None if it has no fixed end.

    Raises
    ------
    EndpointError
        If an endpoint cannot be bound.
    ModelError
        If the plant's outputs differ from its channels.
    """

    def __init__(
        self, plant: Plant, *, robot: str, mode: str = "realtime", rate: float = 1.0, deadline_s: float | None = None,
        exchange: str | None = None, step: str | None = None, telemetry: str | None = None, seed: int = 0,
        token: str | None = None, free_ports: bool = False, io_priority: int | None = None,
        threads: Threads | None = None, sockets: Sockets | None = None, telemetry_hz: float = 100.0,
        keys: ServerKeys | None = None, links: Mapping[str, ImpairedLink] | None = None,
        duration_s: float | None = None,
    ) -> None:  # fmt: skip
        self.robot, self.mode, self.rate, self.deadline_s, self.seed = robot, mode, rate, deadline_s, seed
        self.session = secrets.token_hex(8)
        self._plant = plant
        self._outputs: Mapping[str, Any] = _checked_outputs(plant)
        self._sockets = sockets or Sockets(
            exchange, step, telemetry, free_ports=free_ports, threads=threads or Threads(priority=io_priority),
            keys=keys,
        )  # fmt: skip
        self.endpoints, self.near_step = self._sockets.endpoints, self._sockets.near_step
        self.notes = self._sockets.notes
        self._token = "" if self._sockets.inproc else token or new_token()  # '' would admit everybody
        try:
            if self._token:  # a plant within a program needs no token
                write_token(self.endpoints["exchange"], self._token)
        except BaseException:
            self._sockets.close(0)
            raise
        behind = max(_MIN_LAG_STEPS, round(_MAX_LAG_S / plant.dt))
        self._peers = Peers(plant.actuators, links)
        self._port = StepPort(
            self._sockets.step, self._peers, plant.actuators, free=mode == "free", behind_steps=behind,
            external=mode == "external",
            max_messages=max_messages(plant.dt / rate) if mode == "realtime" else 0,
            coupled=describe_plant(plant).coupled,
        )  # fmt: skip
        self._peers.present_step, self._peers.dt = lambda: self._port.step, plant.dt
        self._peers.free = mode == "free"
        self._direct = WireFastPath(self._port, self._sockets.step, self._peers)
        self._tending = Tending(self._port, self._peers)
        self._allowed = self._sockets.allowed
        self._allowed_seen = 0
        self._request_bytes = room = MAX_EXCHANGE_BYTES + 2 * _snapshot_size(plant)
        self._handshakes = HandshakePort(
            self._sockets.exchange, self._peers, self._token, room, self._port.count, self._enter, self._allowed
        )
        self._sockets.telemetry.attend(Guests(refused=self._port.count), MAX_EXCHANGE_BYTES)
        self._telemetry = Telemetry(self._sockets.telemetry, plant, robot, telemetry_hz)
        self._telemetry_hz, self._scopes = telemetry_hz, Scopes(robot, plant)
        self._duration_s = duration_s
        self._prepared = -1
        self._selections: dict[tuple[str, tuple[str, ...], int], Selection] = {}
        self.claimed: Flags = self._port.claimed
        self.fresh: Flags = self._port.fresh
        self.renewed: Flags = self._port.renewed
        self.applied: Applied = self._port.applied
        self.looks, self._forced_looks, self._closed = 0, 0, False

    # -- Exchange ----------------------------------------------------------------------------------------------------

    def publish(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:
        """Send the state to the claimants.

        The observers' state is packed in the slack, or without slack while the claimants compute; `serve` sends it.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        outputs : Mapping[str, Array]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
        self._outputs = outputs
        self._port.publish(step, time, deadline_ns, budget_ns, outputs, applied)
        if step != self._prepared and self._telemetry.due:
            self._telemetry.pack(step, time, deadline_ns, budget_ns, outputs, applied)

    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:  # fmt: skip
        """Pack a state ahead of its step; see `Preparing`.

        Parameters
        ----------
        step : int
            Index of the step; -1 discards the prepared state.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        outputs : Mapping[str, Array]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
        self._prepared = step
        if step >= 0:
            self._outputs = outputs
        self._port.prepare(step, time, deadline_ns, outputs, applied)
        if step >= 0 and self._telemetry.due:
            self._telemetry.pack(step, time, deadline_ns, max(0, deadline_ns - monotonic_ns()), outputs, applied)

    def prepare_alone(self, step: int, deadline_ns: int) -> bool:
        """Write the state of a coming step without Python; see `Compiling`.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Its deadline, CLOCK_MONOTONIC, ns; 0 for none.

        Returns
        -------
        bool
            False if Python must prepare it.
        """
        if self._telemetry.due or not self._direct.prepare(step, deadline_ns):
            return False
        self._prepared = step
        if deadline_ns:
            self._sockets.step.arm(deadline_ns)
        return True

    def collect(self, step: int, command: Array, until_ns: int) -> bool:
        """Read commands for a step; see `Exchange`.

        Parameters
        ----------
        step : int
            Index of the step.
        command : Array
            The step's command, changed in place.
        until_ns : int
            Instant of CLOCK_MONOTONIC at which the wait ends, ns.

        Returns
        -------
        bool
            Whether all commands have come.
        """
        return self._port.collect(step, command, until_ns)

    def serve(self, until_ns: int) -> None:
        """Do the work of the slack: newcomers, requests, warm-up, telemetry.

        The work is bounded, and ends before the given instant.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        self._telemetry.send()
        left_ns = until_ns - monotonic_ns()
        strange_ns = until_ns - (min(_STRANGERS_MARGIN_NS, left_ns // 2) if left_ns > _MIN_DIVIDED_SLACK_NS else 0)
        self._sockets.step.serve(strange_ns)
        if self._allowed is not None:
            self._look_at_keys(self._allowed)
        self._port.read_in_slack(until_ns)
        self._port.admit_ready()
        if monotonic_ns() < strange_ns:
            self.looks += self._handshakes.serve(strange_ns)
            self._telemetry.serve(strange_ns)
        self._tend(until_ns)

    def look(self, until_ns: int) -> None:
        """Serve newcomers even without slack; see `Admitting`.

        The handshake endpoint comes first, then the connections of welcomed peers.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        self.looks += 1
        self._forced_looks += 1
        self._handshakes.serve(until_ns)
        self._sockets.step.serve(until_ns)
        self._port.read_in_slack(until_ns)
        self._port.admit_ready()
        self._tend(until_ns)

    def _tend(self, until_ns: int) -> None:
        """Serve the peers that are joining, and those that may have left."""
        now_ns = monotonic_ns()
        if now_ns < until_ns and self._peers.all:
            self._tending.serve(now_ns, self._outputs)
            self._tending.hasten(until_ns - _WAKE_NS, self._outputs)

    def fast_path(self, plant: Plant, memory: Memory, step_recorder: StepRecorder | None) -> FastPath | None:
        """Return the compiled steps; see `Compiling`.

        Parameters
        ----------
        plant : Plant
            The plant.
        memory : Memory
            The loop's memory.
        step_recorder : StepRecorder | None
            The step recorder; None for none.

        Returns
        -------
        FastPath | None
            None if compiled steps are impossible.
        """
        return self._direct if self._direct.bind(plant, memory, step_recorder) else None

    def next_tick(self, until_ns: int) -> int:
        """Wait for a tick; see `Ticking`.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC at which the wait ends, ns.

        Returns
        -------
        int
            Instant at which the oldest waiting tick came, ns; 0 for none.
        """
        return self._port.next_tick(until_ns)

    def ticks_waiting(self) -> int:
        """Return the number of waiting ticks; see `Ticking`.

        Returns
        -------
        int
            Number of ticks.
        """
        ticks = self._port.ticks
        assert ticks is not None
        self._port.read_in_slack(until_ns=monotonic_ns() + _LOOK_NS)
        return ticks.waiting

    def ticker(self) -> str:
        """Return the name of the live peer that ticks.

        Returns
        -------
        str
            Its name; empty for none.
        """
        peer = self._peers.ticker
        return peer.name if peer is not None and peer.state is LIVE else ""

    def drop_ticks(self) -> None:
        """Discard the waiting ticks; see `Ticking`."""
        assert self._port.ticks is not None
        self._port.ticks.drop()

    def waiting_for(self) -> tuple[str, ...]:
        """Return the claimants without a command for the present step.

        Returns
        -------
        tuple[str, ...]
            Their names.
        """
        return tuple(peer.name for peer in self._peers.claimants if not peer.fresh)

    def silent(self) -> tuple[Missing, ...]:
        """Return the same peers, which can report later whether they had died.

        Returns
        -------
        tuple[Missing, ...]
            The peers.
        """
        return tuple(Missing(peer, self._port.step) for peer in self._peers.claimants if not peer.fresh)

    def report(self) -> dict[str, Any]:
        """Return the counts for the report.

        It sends a probe to each claimant. Without a state since its end, a peer's death would be unknown.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        if not self._closed:
            for peer in list(self._peers.claimants):
                self._tending.ask(peer)
        peers = [*self._peers.gone, *map(self._peers.summary, self._peers.all)]
        ticks = self._port.ticks
        return {
            "late": self._port.late, "rejected": dict(self._port.rejected), "peers": peers,
            "set_points": self.set_points(), "ticks": None if ticks is None else ticks.report(),
            "forced_polls": self._forced_looks,
            "links": {name: link.report() for name, link in self._peers.links.items()},
        }  # fmt: skip

    def final_reports(self) -> list[dict[str, Any]]:
        """Return the last reports of each peer, in the order of the report's peers.

        After `close` they include the messages that came at the end.

        Returns
        -------
        list[dict[str, Any]]
            One entry for each peer.
        """
        now = self._peers.summary
        changing = (
            "metrics",
            "figures",
            "first_command_s",
            "silences",
            "losses",
            "restarts",
            "disconnected_s",
            "timeline",
            "watch",
        )
        return [
            {name: peer[name] for name in changing} for peer in (*self._peers.gone, *map(now, self._peers.all))
        ]  # fmt: skip

    # -- for the owner of the run ------------------------------------------------------------------------------------

    def admitted(self) -> set[str]:
        """Return the names of the admitted peers, observers with the token included.

        Returns
        -------
        set[str]
            Their names.
        """
        return {peer.name for peer in self._peers.all if peer.state is LIVE}

    def claimants(self) -> list[dict[str, Any]]:
        """Return the summaries of the live peers that hold actuators, as the report has them.

        Returns
        -------
        list[dict[str, Any]]
            One entry for each peer.
        """
        return [peer.summary() for peer in self._peers.claimants if peer.state is LIVE]

    def set_points(self) -> dict[str, Any]:
        """Return the set-points of the claimants, with their present values.

        They include a planned motion, with the alternatives that the planner evaluated, if the peer reported it.

        Returns
        -------
        dict[str, Any]
            Values by the name of the quantity; of one of several robots by NAME.quantity.
        """
        found = {
            peer.prefix + name: peer.settable.get(name, value)
            for peer in self._peers.claimants for name, value in peer.asked.tracks.items()
        }  # fmt: skip
        for peer in self._peers.claimants:
            for name in (PLANNED_MOTION, PLANNED_SAMPLES):
                if name in peer.figures:
                    found[peer.prefix + name] = peer.figures[name]
        return found

    def holders(self) -> set[str]:
        """Return the names of the peers that hold actuators, dead ones included.

        Returns
        -------
        set[str]
            Their names.
        """
        return {peer.name for peer in self._peers.claimants}

    def dead(self) -> tuple[str, ...]:
        """Return the names of the dead claimants.

        A dead claimant keeps its claim until another peer takes it.

        Returns
        -------
        tuple[str, ...]
            Their names.
        """
        return tuple(peer.name for peer in self._peers.claimants if peer.state is DEAD)

    def requests(self) -> list[Request]:
        """Return the requests of peers since the last call.

        Each must be answered by `reply`.

        Returns
        -------
        list[Request]
            The requests.
        """
        return self._handshakes.requests()

    def reply(self, request: Request, ok: bool = True, result: Any = None, error: str | None = None) -> None:
        """Answer a request.

        Parameters
        ----------
        request : Request
            The request.
        ok : bool, default True
            Whether it succeeded.
        result : Any, optional
            Its result.
        error : str | None, optional
            Its error; None for none.
        """
        self._handshakes.reply(request, ok, result, error)

    def pass_on(self, values: Mapping[str, Any]) -> None:
        """Send parameters to a peer for the run itself; see rtmms.loop.ports.Passing.

        Parameters
        ----------
        values : Mapping[str, Any]
            New values by 'PEER.NAME'.
        """
        self._handshakes.pass_on(values)

    def unanswered(self) -> bool:
        """Return whether a peer owes an answer; see `Passing`.

        Returns
        -------
        bool
            True if one does.
        """
        return self._handshakes.unanswered()

    def failures(self) -> list[str]:
        """Return refusals of the run's own requests since the last call; see `Passing`.

        Returns
        -------
        list[str]
            One text for each refusal.
        """
        return self._handshakes.failures()

    def close(self, reason: str = "the run ended", names: Collection[str] = ()) -> None:
        """Send bye to every peer, receive their last metrics, close the sockets, and remove the token.

        A second call does nothing.

        Parameters
        ----------
        reason : str, default 'the run ended'
            Reason in the bye.
        names : Collection[str], optional
            Peers that have a second to read the bye before their connection closes.
        """
        if self._closed:
            return
        self._closed = True
        for peer in self._peers.all:
            bye = {"type": "bye", "reason": reason}
            if not peer.observer:
                self._port.send(peer, bye)
            self._handshakes.send(peer.exchange_id, bye)
        if self._token:
            remove_token(self.endpoints["exchange"], self._token)
        now_ns = monotonic_ns()
        self._handshakes.farewells(now_ns + _LAST_METRICS_NS, names, now_ns + _BYE_NS)
        if self._peers.all:
            sleep(_FAREWELL_S)  # when a connection closes, the peer's ZeroMQ discards unread messages
        self._sockets.close()

    def __enter__(self) -> Server:
        """Return the server itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the server."""
        self.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _look_at_keys(self, allowed: Allowed) -> None:
        """Release the peers with keys that are not admitted any more."""
        allowed.look(monotonic_ns())
        if allowed.changes == self._allowed_seen:
            return
        self._allowed_seen = allowed.changes
        if allowed.taken_away:
            self._sockets.telemetry.hang_up()
        for peer in [peer for peer in self._peers.all if peer.key not in allowed.names]:
            bye = {"type": "bye", "reason": "your key was taken away"}
            if not peer.observer:
                self._port.send(peer, bye)
            self._handshakes.send(peer.exchange_id, bye)
            self._peers.release(peer)

    def _enter(self, hello: Hello, exchange_id: bytes, trusted: bool) -> Mapping[str, Any]:
        """Return the welcome for a checked hello.

        A peer without a token may only observe, and leaves no entry here.
        """
        scope = self._scopes.of(hello.robot)
        channels = select(scope.outputs, hello.outputs, MAX_PEERS_WORK if trusted else MAX_STRANGERS_WORK)
        if hello.ticks and self.mode != "external":
            raise Refused(Reason.MODE, f"hello: ticks need a plant with --mode external, got mode {self.mode}")
        identity, granted = b"", []
        if trusted:
            names = tuple(channel.name for channel in channels)
            if hello.identity:
                self._peers.known_again(hello.identity, exchange_id)
            peer = self._peers.by_exchange_id.get(exchange_id)
            if peer is None or peer.asked != hello or peer.selection.names != names:
                selection = self._selection(scope, names, hello.delay)
                peer = self._peers.welcome(hello, exchange_id, selection, monotonic_ns(), scope.prefix)
            identity, granted = (b"" if peer.observer else peer.identity), list(peer.index)
        plant, paced, allowed = self._plant, self.mode == "realtime", scope.as_fields()
        return {
            "type": "welcome", "protocol": hello.protocol, "session": self.session, "identity": identity,
            "step_endpoint": self.endpoints["step"], "robot": scope.robot, "dt": plant.dt, "mode": self.mode,
            "period_s": plant.dt / self.rate if paced else None,
            "deadline_s": self.deadline_s if paced or self.mode == "external" else None,
            "actuators": allowed["actuators"], "outputs": allowed["outputs"], "granted": granted,
            "telemetry_endpoint": self.endpoints["telemetry"], "seed": self.seed,
            "selected": [channel.name for channel in channels], "parameters": allowed["parameters"],
            "environment": allowed["environment"], "geometry": allowed["geometry"], "airframe": allowed["airframe"],
            "duration_s": self._duration_s,
            "every": hello.every, "delay": hello.delay, "ticks": bool(identity) and hello.ticks,
            "telemetry_hz": self._telemetry_hz, "request_bytes": self._request_bytes,
            "local_step_endpoint": self.near_step, "topic": self.robot, "robot_name": hello.robot,
            "robots": {} if hello.robot else self._scopes.robots(),
        }  # fmt: skip

    def _selection(self, scope: Scope, names: tuple[str, ...], delay: int) -> Selection:
        """Return the selection of some outputs.

        Peers with the same outputs share one, so that a state is packed once for all of them.
        """
        if len(self._selections) > 64:
            self._selections.clear()
        later_ns = round(delay * self._plant.dt / self.rate * 1e9) if self.mode == "realtime" else 0
        key = scope.prefix, names, later_ns
        if key not in self._selections:
            channels = [channel for channel in scope.outputs if channel.name in names]
            self._selections[key] = Selection(channels, later_ns=later_ns, prefix=scope.prefix)
        return self._selections[key]


def _checked_outputs(plant: Plant) -> Mapping[str, Any]:
    """Return one observation of the plant; ModelError if it differs from the plant's channels."""
    outputs = plant.observe()
    for channel in plant.outputs:
        if channel.name not in outputs:
            raise ModelError(f"output '{channel.name}': the plant declares it, but observe() does not return it")
        shape = np.shape(outputs[channel.name])
        if shape != tuple(channel.shape):
            raise ModelError(
                f"output '{channel.name}': expected the declared shape {tuple(channel.shape)} from observe(), "
                f"got {shape}"
            )
    return dict(outputs)


def _snapshot_size(plant: Plant) -> int:
    """Return the bytes of a snapshot; 0 for a plant without snapshots, such as some FMUs."""
    try:
        return len(plant.snapshot())
    except ModelError:
        return 0
