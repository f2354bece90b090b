"""The plant's side of the wire: peers, claims, commands and requests, as the loop's Exchange over ZeroMQ.

There is no thread and no lock. The loop's own thread makes every call, and none waits beyond the instant that it
receives.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from time import monotonic_ns, sleep
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import PLANNED_MOTION, PLANNED_SAMPLES, Applied
from rtmms.base.errors import ModelError
from rtmms.base.override import override
from rtmms.loop.impairment import ImpairedLink
from rtmms.loop.ports import Exchange
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Plant
from rtmms.plant.validation import checked_outputs
from rtmms.wire.keys import AdmittedKeys, ServerKeys
from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.plant.allowance import max_messages
from rtmms.wire.plant.fast_path import WireFastPath
from rtmms.wire.plant.handshake import HandshakePort, Scope, Scopes
from rtmms.wire.plant.keepalive import KeepAlive
from rtmms.wire.plant.peers import DEAD, LIVE, MissingPeer, Peers
from rtmms.wire.plant.sockets import Sockets
from rtmms.wire.plant.state_message import MAX_PEERS_WORK, MAX_STRANGERS_WORK, Selection, select
from rtmms.wire.plant.step_port import StepPort
from rtmms.wire.plant.telemetry import Telemetry
from rtmms.wire.protocol.hello import Hello
from rtmms.wire.protocol.limits import MAX_EXCHANGE_BYTES
from rtmms.wire.protocol.messages import Reason, Refusal, Request
from rtmms.wire.protocol.port import SocketCallbacks
from rtmms.wire.session_files import new_token, remove_token, write_token

if TYPE_CHECKING:
    from rtmms.loop.ports import Array, FastPath, Flags, Memory, StepRecorder

_MAX_LAG_S = 0.5
"""Simulated time by which a command may be behind the present step, s."""
_MIN_LAG_STEPS = 16
"""Steps by which a command may be behind in any case."""
_FAREWELL_S = 0.02
_LAST_METRICS_NS = 250_000_000
_BYE_NS = 3_000_000_000
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


class Server(Exchange):
    """The plant's side of the wire: peers, claims, commands and requests.

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
        Keys that encrypt, and that replace the token, see rtmms/wire/keys.py.
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
        self._outputs: Mapping[str, Any] = checked_outputs(plant)
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
        self._peers.last_step = lambda: self._port.last_step
        self._peers.free = mode == "free"
        self._direct = WireFastPath(self._port, self._sockets.step, self._peers)
        self._keep_alive = KeepAlive(self._port, self._peers)
        self._allowed = self._sockets.allowed
        self._allowed_seen = 0
        self._request_bytes = room = MAX_EXCHANGE_BYTES + 2 * _snapshot_size(plant)
        self._handshakes = HandshakePort(
            self._sockets.exchange, self._peers, self._token, room, self._port.count, self._enter, self._allowed
        )
        self._sockets.telemetry.attend(SocketCallbacks(refused=self._port.count), MAX_EXCHANGE_BYTES)
        self._telemetry = Telemetry(self._sockets.telemetry, plant, robot, telemetry_hz)
        self._telemetry_hz, self._scopes = telemetry_hz, Scopes(robot, plant)
        self._duration_s = duration_s
        self._prepared = -1
        self._selections: dict[tuple[str, tuple[str, ...], int], Selection] = {}
        self.claimed: Flags = self._port.claimed
        self.fresh: Flags = self._port.fresh
        self.renewed: Flags = self._port.renewed
        self.applied: Applied = self._port.applied
        self.looks: int = 0
        self._forced_looks, self._closed = 0, False

    prepares = True

    # -- Exchange ----------------------------------------------------------------------------------------------------

    @override
    def publish(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:
        """Send the state to the claimants; `serve` sends it to the observers.

        Their state is packed in the slack, or without slack while the claimants compute.
        """
        self._outputs = outputs
        self._port.publish(step, time, deadline_ns, budget_ns, outputs, applied)
        if step != self._prepared and self._telemetry.due:
            self._telemetry.pack(step, time, deadline_ns, budget_ns, outputs, applied)

    @override
    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:  # fmt: skip
        self._prepared = step
        if step >= 0:
            self._outputs = outputs
        self._port.prepare(step, time, deadline_ns, outputs, applied)
        if step >= 0 and self._telemetry.due:
            self._telemetry.pack(step, time, deadline_ns, max(0, deadline_ns - monotonic_ns()), outputs, applied)

    @override
    def prepare_alone(self, step: int, deadline_ns: int) -> bool:
        if self._telemetry.due or not self._direct.prepare(step, deadline_ns):
            return False
        self._prepared = step
        if deadline_ns:
            self._sockets.step.arm(deadline_ns)
        return True

    @override
    def collect(self, step: int, command: Array, until_ns: int) -> bool:
        return self._port.collect(step, command, until_ns)

    @override
    def serve(self, until_ns: int) -> None:
        """Do the work of the slack: newcomers, requests, warm-up, telemetry; it is bounded."""
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

    @override
    def look(self, until_ns: int) -> None:
        """Serve the handshake endpoint first, then the connections of welcomed peers."""
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
            self._keep_alive.serve(now_ns, self._outputs)
            self._keep_alive.hasten(until_ns - _WAKE_NS, self._outputs)

    @override
    def fast_path(self, plant: Plant, memory: Memory, step_recorder: StepRecorder | None) -> FastPath | None:
        return self._direct if self._direct.bind(plant, memory, step_recorder) else None

    @override
    def next_tick(self, until_ns: int) -> int:
        return self._port.next_tick(until_ns)

    @override
    def ticks_waiting(self) -> int:
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

    @override
    def drop_ticks(self) -> None:
        assert self._port.ticks is not None
        self._port.ticks.drop()

    @override
    def waiting_for(self) -> tuple[str, ...]:
        return tuple(peer.name for peer in self._peers.claimants if not peer.fresh)

    @override
    def silent(self) -> tuple[MissingPeer, ...]:
        """Return the peers of `waiting_for`, which can report later whether they had died."""
        return tuple(MissingPeer(peer, self._port.step) for peer in self._peers.claimants if not peer.fresh)

    @override
    def report(self) -> dict[str, Any]:
        """Return the counts for the report.

        A probe goes to each claimant: without a state since its end, a peer's death would be unknown.
        """
        if not self._closed:
            for peer in list(self._peers.claimants):
                self._keep_alive.ask(peer)
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
        result = {
            peer.prefix + name: peer.settable.get(name, value)
            for peer in self._peers.claimants for name, value in peer.asked.tracks.items()
        }  # fmt: skip
        for peer in self._peers.claimants:
            for name in (PLANNED_MOTION, PLANNED_SAMPLES):
                if name in peer.figures:
                    result[peer.prefix + name] = peer.figures[name]
        return result

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

    @override
    def requests(self) -> list[Request]:
        return self._handshakes.requests()

    @override
    def reply(self, request: Request, ok: bool = True, result: Any = None, error: str | None = None) -> None:
        self._handshakes.reply(request, ok, result, error)

    @override
    def pass_on(self, values: Mapping[str, Any]) -> None:
        self._handshakes.pass_on(values)

    @override
    def unanswered(self) -> bool:
        return self._handshakes.unanswered()

    @override
    def failures(self) -> list[str]:
        return self._handshakes.failures()

    def close(self, reason: str = "the run ended", names: Collection[str] = ()) -> None:
        """Send bye to every peer, receive their last metrics, close the sockets, and remove the token.

        A second call does nothing.

        Parameters
        ----------
        reason : str, default 'the run ended'
            Reason in the bye.
        names : Collection[str], optional
            Peers that have 3 s to read the bye before their connection closes.
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

    def _look_at_keys(self, allowed: AdmittedKeys) -> None:
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
            raise Refusal(Reason.MODE, f"hello: ticks need a plant with --mode external, got mode {self.mode}")
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


def _snapshot_size(plant: Plant) -> int:
    """Return the bytes of a snapshot; 0 for a plant without snapshots, such as some FMUs."""
    try:
        return len(plant.snapshot())
    except ModelError:
        return 0
