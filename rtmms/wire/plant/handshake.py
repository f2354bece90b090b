"""Exchange socket: hello, requests, strangers, ticks, and a peer's view of the plant."""

from __future__ import annotations

import hmac
import itertools
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from time import monotonic_ns, sleep
from typing import Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.trust import owner_of
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import HasRobots
from rtmms.plant.protocol import Channel, Plant
from rtmms.wire.keys import AdmittedKeys
from rtmms.wire.plant.peers import LIVE, READY, Peer, Peers, RateLimit
from rtmms.wire.protocol.hello import Hello, read_hello
from rtmms.wire.protocol.messages import (
    METRICS,
    Reason,
    Refusal,
    Request,
    decode,
    in_version,
    name_in,
    not_a_message,
    packer,
    peer_text,
    read_id,
    read_request,
)
from rtmms.wire.protocol.peer_values import read_figures, read_settable, read_watch
from rtmms.wire.protocol.port import MESSAGE, Answering, SocketCallbacks
from rtmms.wire.protocol.welcome import channel_map, environment_fields, plain_parameters, plain_shape

# The exchange socket: hello, requests and strangers. The loop serves it in its slack only, a few messages at a time.
#
# A flood here delays neither the I/O thread of the step socket nor the loop.


MAX_WAITING_MESSAGES = 16
ANSWER_NS = 2_000_000_000
"""Time in which a peer must accept or refuse new values, ns."""

Reply = Callable[[Request, bool, Any, str | None], None]


class Relay:
    """Requests that the plant has passed on to peers, MAX_WAITING_MESSAGES at most.

    Parameters
    ----------
    peers : Peers
        All peers.
    send : Callable[[bytes, Mapping[str, Any]], None]
        Sends a message to a peer's connection at the exchange endpoint.
    reply : Reply
        Answers a request.
    """

    def __init__(self, peers: Peers, send: Callable[[bytes, Mapping[str, Any]], None], reply: Reply) -> None:
        self._peers, self._send, self._reply = peers, send, reply
        self._waiting: dict[int, tuple[Request, Peer, int]] = {}
        self._ids = itertools.count(1)

    @property
    def waiting(self) -> bool:
        """Whether a peer owes an answer."""
        return bool(self._waiting)

    def passes_on(self, request: Request) -> bool:
        """Send a request to the peer for which it is meant.

        Parameters
        ----------
        request : Request
            Any request.

        Returns
        -------
        bool
            False if the request is not for a peer.

        Raises
        ------
        Refusal
            If it is for several peers, or if the peer has no such parameter.
        """
        if request.op != "set":
            return False
        named = {peer.name for peer in self._peers.all}
        owners = {owner_of(key, named) or key.partition(".")[0] for key in request.args if "." in key}
        if not owners & named:
            near = [
                close_match for owner in owners for close_match in get_close_matches(owner, named, n=1, cutoff=0.75)
            ]
            if near:
                raise Refusal(Reason.NOT_SETTABLE, f"set: no peer has this name; did you mean {near[0]}?")
            return False
        if len(owners) > 1 or not all("." in key for key in request.args):
            raise Refusal(
                Reason.WRONG_TYPE,
                (
                    "set: expected parameters of the plant only, or of one peer only, got a mixture; send one "
                    "request for each"
                ),
            )
        owner = next(iter(owners))
        peer = next((item for item in self._peers.all if item.name == owner and item.settable), None)
        if peer is None:
            raise Refusal(Reason.NOT_SETTABLE, f"set: '{owner}' has no parameters that can change while it runs")
        values = {key.removeprefix(owner + "."): value for key, value in request.args.items()}
        for name in values:
            if name not in peer.settable:
                raise Refusal(
                    Reason.NOT_SETTABLE, f"set: {UnknownNameError(f'parameter of {owner}', name, peer.settable)}"
                )
        if len(self._waiting) >= MAX_WAITING_MESSAGES:
            raise Refusal(
                Reason.BUSY, f"set: {MAX_WAITING_MESSAGES} earlier requests wait for their peers; try again later"
            )
        ident = next(self._ids)
        self._waiting[ident] = (request, peer, monotonic_ns() + ANSWER_NS)
        self._send(peer.exchange_id, {"type": "parameters", "id": ident, "values": values})
        return True

    def receive(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Read a peer's answer.

        Parameters
        ----------
        peer : Peer
            The peer.
        message : Mapping[str, Any]
            Its message.

        Raises
        ------
        Refusal
            If the message answers no request to this peer.
        """
        ident = message.get("id")
        waiting = self._waiting.get(ident) if type(ident) is int else None
        if waiting is None or waiting[1] is not peer:
            raise Refusal(
                Reason.WRONG_TYPE,
                (
                    "parameters: expected the id of a request that this peer received and has not "
                    f"answered, got {peer_text(ident)}"
                ),
            )
        if message.get("ok") is True:
            peer.settable = read_settable(message) or peer.settable
            values = {name: peer.settable.get(name) for name in _names(waiting[0], peer.name)}
            self._reply(waiting[0], True, {"values": values}, None)
        else:
            error = message.get("error")
            reason = error if isinstance(error, str) and 0 < len(error) <= 500 else "refused without a reason"
            self._reply(waiting[0], False, None, f"{peer.name}: {reason}")
        del self._waiting[ident]  # type: ignore[arg-type]

    def serve(self, now_ns: int) -> None:
        """Refuse requests that their peers have not answered in time.

        Parameters
        ----------
        now_ns : int
            Present instant of CLOCK_MONOTONIC, ns.
        """
        if self._waiting:
            for ident in [identity for identity, (_, _, until_ns) in self._waiting.items() if now_ns > until_ns]:
                request, peer, _ = self._waiting.pop(ident)
                self._reply(request, False, None, f"set: {peer.name} did not answer within {ANSWER_NS * 1e-9:g} s")


def _names(request: Request, owner: str) -> list[str]:
    return [key.removeprefix(owner + ".") for key in request.args]


_MAX_READS = 4
_MAX_WAITING_REQUESTS = 16
_STRANGERS_BURST = 50


class HandshakePort:
    """Answers at the exchange socket.

    It answers hello with welcome, queues requests for the loop's owner, and refuses everything else with a reason.

    Parameters
    ----------
    socket : Answering
        The exchange socket.
    peers : Peers
        All peers.
    token : str
        Token that a hello needs for a claim or a request.
    cap : int
        Most bytes of a message of a known peer.
    count : Callable[[str], None]
        Called with the reason of each refusal.
    enter : Callable[[Hello, bytes, bool], Mapping[str, Any]]
        Creates a peer from a checked hello and returns its welcome; it may raise Refused.
    allowed : AdmittedKeys | None, optional
        Admitted keys, each of which replaces the token. None if the socket requires none.
    """

    def __init__(
        self, socket: Answering, peers: Peers, token: str, cap: int, count: Callable[[str], None],
        enter: Callable[[Hello, bytes, bool], Mapping[str, Any]], allowed: AdmittedKeys | None = None,
    ) -> None:  # fmt: skip
        self._allowed = allowed
        self._socket, self._peers, self._cap, self._count, self._enter = socket, peers, cap, count, enter
        socket.attend(SocketCallbacks(known=peers.by_exchange_id.__contains__, refused=count), cap)
        self._token = token.encode()
        self._pack = packer()
        self._requests: list[Request] = []
        self._failures: list[str] = []
        self._answers_to_strangers = RateLimit(_STRANGERS_BURST)
        self._relay = Relay(peers, self.send, self.reply)

    def serve(self, until_ns: int) -> bool:
        """Admit newcomers, and read a few messages.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.

        Returns
        -------
        bool
            Whether there was time to read a message.
        """
        self._socket.serve(until_ns)
        self._relay.serve(monotonic_ns())
        for k in range(_MAX_READS):
            if monotonic_ns() >= until_ns:
                return k > 0
            if not self._read_one():
                return True
        return True

    def farewells(self, figures_until_ns: int, names: Collection[str] = (), until_ns: int = 0) -> None:
        """Read messages that peers send after the plant's bye, without answering them.

        Parameters
        ----------
        figures_until_ns : int
            End of the wait for the last metrics of each peer that sent some before, CLOCK_MONOTONIC, ns.
        names : Collection[str], optional
            Peers that should read the bye before their connection closes: ZeroMQ drops unread messages then.
        until_ns : int, default 0
            End of the wait for their own bye, or for the end of their connection, CLOCK_MONOTONIC, ns.
        """
        due = {
            peer.exchange_id: until_ns if peer.name in names else figures_until_ns
            for peer in self._peers.all if peer.name in names or ((peer.figures or peer.watch) and peer.state is LIVE)
        }  # fmt: skip
        while due:
            now_ns = monotonic_ns()
            self._socket.serve(max(due.values()))
            received = self._socket.next()
            if received is None:
                due = {identity: end for identity, end in due.items()
                       if now_ns < end and self._socket.connected(identity) is not False}  # fmt: skip
                sleep(5e-4)
                continue
            exchange_id, kind, frame, _ = received
            peer = self._peers.by_exchange_id.get(exchange_id)
            if peer is None or kind != MESSAGE:
                continue
            try:
                message = decode(frame, self._cap)
                if message["type"] in METRICS:
                    self._take_figures(peer, message)
            except Refusal:
                continue
            if message["type"] == "bye" or (message["type"] in METRICS and peer.name not in names):
                due.pop(exchange_id, None)
            due = {identity: end for identity, end in due.items() if now_ns < end}

    def requests(self) -> list[Request]:
        """Return the requests since the last call, in order.

        Returns
        -------
        list[Request]
            The requests.
        """
        pending_requests, self._requests = self._requests, []
        return pending_requests

    def pass_on(self, values: Mapping[str, Any]) -> None:
        """Send parameters to a peer for the run itself.

        Parameters
        ----------
        values : Mapping[str, Any]
            New values by 'PEER.NAME'.

        Raises
        ------
        ModelError
            If there is no such peer, or if it cannot change the parameter.
        """
        request = Request("run", "set", values, "the run")
        try:
            passed = self._relay.passes_on(request)
        except Refusal as refusal:
            raise ModelError(refusal.text) from None
        if not passed:
            raise ModelError(f"set: no peer has the name '{next(iter(values)).partition('.')[0]}'")

    def unanswered(self) -> bool:
        """Return whether a peer owes an answer to a request that was passed on.

        Returns
        -------
        bool
            True if one does.
        """
        return self._relay.waiting

    def failures(self) -> list[str]:
        """Return refusals of the run's own requests since the last call.

        Returns
        -------
        list[str]
            One text for each refusal.
        """
        pending_failures, self._failures = self._failures, []
        return pending_failures

    def reply(self, request: Request, ok: bool, result: Any = None, error: str | None = None) -> None:
        """Answer a request.

        A result that cannot be packed becomes an error.

        Parameters
        ----------
        request : Request
            The request.
        ok : bool
            Whether it succeeded.
        result : Any, optional
            Its result.
        error : str | None, optional
            Its error; None for none.
        """
        if not request.exchange_id:  # a request of the run itself
            self._failures += [] if ok else [error or "refused"]
            return
        message: dict[str, Any] = {"type": "reply", "id": request.id, "ok": ok}
        message["result" if ok else "error"] = result if ok else (error or "refused")
        try:
            frame = self._pack(message)
        except (TypeError, ValueError, OverflowError) as fault:
            why = f"the result of {request.op} cannot be sent: {fault}"
            frame = self._pack({"type": "reply", "id": request.id, "ok": False, "error": why})
        self._socket.send(request.exchange_id, frame)

    def send(self, exchange_id: bytes, message: Mapping[str, Any]) -> None:
        """Send a message at the exchange socket.

        Parameters
        ----------
        exchange_id : bytes
            Routing id of the receiver.
        message : Mapping[str, Any]
            The message.
        """
        self._socket.send(exchange_id, self._pack(message))

    def _read_one(self) -> bool:
        received = self._socket.next()
        if received is None:
            return False
        exchange_id, kind, frame, key = received
        peer = self._peers.by_exchange_id.get(exchange_id)
        try:
            if kind != MESSAGE:
                raise not_a_message(kind, self._cap)
            if self._allowed is not None and key not in self._allowed.names:
                raise Refusal(Reason.TOKEN, "the key of this peer is no longer among those that the plant allows")
            self._receive(exchange_id, peer, decode(frame, self._cap), key)
        except Refusal as refusal:
            self._count(refusal.code)
            if peer is not None:
                peer.refused(refusal.text)
            self._send_refusal(exchange_id, peer, refusal)
        return True

    def _receive(
        self, exchange_id: bytes, peer: Peer | None, message: dict[str, Any], key: bytes | None = None
    ) -> None:
        kind = message["type"]
        if kind == "hello":
            hello = read_hello(message)
            trusted = key is not None or hmac.compare_digest(hello.token.encode(), self._token)
            if (hello.claim or hello.ticks) and not trusted:
                raise Refusal(
                    Reason.TOKEN,
                    ("hello: a claim needs the token of this session; only the user who started the plant can read it"),
                )
            welcome = self._enter(hello, exchange_id, trusted)
            if key is not None:
                self._peers.by_exchange_id[exchange_id].key = key
            self._socket.send(exchange_id, self._pack(in_version(welcome, hello.protocol)))
        elif kind == "request":
            try:
                self._take(exchange_id, peer, message)
            except Refusal as refusal:
                refusal.id = read_id(message)
                raise
        elif kind == "bye":
            if peer is not None:
                self._peers.depart(peer)
        elif kind == "parameters" and peer is not None:
            self._relay.receive(peer, message)
        elif kind in METRICS and peer is not None:
            self._take_figures(peer, message)
        else:
            expected = "hello, request, parameters, metrics and bye"
            raise Refusal(Reason.TYPE, f"exchange socket: expected messages of type {expected}, got {peer_text(kind)}")

    def _take_figures(self, peer: Peer, message: dict[str, Any]) -> None:
        """Store a peer's metrics, and its report about its own peer; Refused if they are invalid."""
        figures, watch = read_figures(message), read_watch(message)
        peer.figures = figures
        if watch is not None:
            peer.watch = watch

    def _take(self, exchange_id: bytes, peer: Peer | None, message: dict[str, Any]) -> None:
        if peer is None:
            raise Refusal(Reason.TOKEN, "request: expected a hello with the token of this session before it")
        request = read_request(message, peer.name, exchange_id)
        if len(self._requests) >= _MAX_WAITING_REQUESTS:
            raise Refusal(Reason.BUSY, f"request: {_MAX_WAITING_REQUESTS} requests wait already; try again later")
        if not self._relay.passes_on(request):
            self._requests.append(request)

    def _send_refusal(self, exchange_id: bytes, peer: Peer | None, refusal: Refusal) -> None:
        """Answer with the reason of a refusal, at a limited rate.

        A flood must not occupy the plant with answers. Each peer has a limit of its own, so that strangers cannot
        exhaust it.
        """
        counts = self._answers_to_strangers if peer is None else peer.answers
        if not counts.take(monotonic_ns()):
            return
        code, text = name_in(1 if peer is None else peer.asked.protocol, refusal.code), refusal.text
        if refusal.id is None:
            self.send(exchange_id, {"type": "error", "code": code, "text": text})
        elif peer is None:
            self.send(exchange_id, {"type": "error", "code": code, "text": text, "id": refusal.id})
        else:
            self.send(exchange_id, {"type": "reply", "id": refusal.id, "ok": False, "error": text, "code": code})


# Ticks, in the mode external: their sender, and those that wait for their step. This code has no socket.


class Ticks:
    """Ticks of the mode external.

    One peer at a time ticks: the peer that asked for it in its hello, or else the first claimant that sends a tick.

    Parameters
    ----------
    peers : Peers
        All peers.

    Attributes
    ----------
    used : int
        Number of ticks that started a step.
    surplus : int
        Number of unused ticks: they came while MAX_WAITING_MESSAGES waited, or waited at a pause or a reset.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._arrived: deque[int] = deque()
        self.used = self.surplus = 0

    def read_message(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Read a tick of a peer on the step socket.

        Parameters
        ----------
        peer : Peer
            The peer.
        message : Mapping[str, Any]
            Its message.

        Raises
        ------
        Refusal
            If the peer may not tick, or if its seq does not rise.
        """
        seq = message.get("seq")
        if type(seq) is not int:
            raise Refusal(Reason.WRONG_TYPE, f"tick: expected a whole number seq, got {peer_text(seq)}")
        if peer.state not in (LIVE, READY):
            raise Refusal(Reason.TOO_EARLY, "tick: this peer must first answer the warm-up states (docs/protocol.md)")
        ticker = self._peers.ticker
        if ticker is not peer:
            if ticker is not None and ticker.state is LIVE:
                raise Refusal(
                    Reason.NOT_CLAIMED,
                    f"tick: expected one peer that sends ticks, got a second; peer '{ticker.name}' sends them already",
                )
            self._peers.let_tick(peer)
        if not peer.tick_seq < seq < 1 << 63:
            raise Refusal(Reason.SEQ, f"tick: seq must rise; newest {peer.tick_seq}, got {peer_text(seq)}")
        peer.tick_seq = seq
        if len(self._arrived) >= MAX_WAITING_MESSAGES:
            self.surplus += 1
        else:
            self._arrived.append(monotonic_ns())

    @property
    def waiting(self) -> int:
        """Number of waiting ticks."""
        return len(self._arrived)

    def take(self) -> int:
        """Remove the oldest waiting tick.

        Returns
        -------
        int
            Instant at which it came, CLOCK_MONOTONIC, ns; 0 for none.
        """
        if not self._arrived:
            return 0
        self.used += 1
        return self._arrived.popleft()

    def drop(self) -> None:
        """Discard the waiting ticks, because the schedule has changed."""
        self.surplus += len(self._arrived)
        self._arrived.clear()

    def report(self) -> dict[str, Any]:
        """Return the counts for the report.

        Returns
        -------
        dict[str, Any]
            `used`, `surplus`, and the name of the ticking peer.
        """
        ticker = self._peers.ticker
        return {"used": self.used, "surplus": self.surplus, "peer": None if ticker is None else ticker.name}


# The part of a plant that a peer sees: all of it, or one robot, under the names that the robot has alone.


@dataclass(frozen=True)
class Scope:
    """Plant as a peer sees it: the whole plant, or one of its robots under its own names.

    Parameters
    ----------
    robot : str
        Kind of the robot.
    plant : Plant
        The plant, through its sensors.
    prefix : str, default ''
        First characters of its names in the whole plant.
    extra_outputs : tuple[Channel, ...], optional
        Outputs of the robot in the whole plant that it does not have alone, such as its view of other robots.
    """

    robot: str
    plant: Plant
    prefix: str = ""
    extra_outputs: tuple[Channel, ...] = ()

    @property
    def actuators(self) -> tuple[Channel, ...]:
        """All actuators."""
        return self.plant.actuators

    @property
    def outputs(self) -> tuple[Channel, ...]:
        """All outputs."""
        return (*self.plant.outputs, *self.extra_outputs)

    def as_fields(self) -> dict[str, Any]:
        """Return the plant's present description for a welcome.

        Returns
        -------
        dict[str, Any]
            Fields of the welcome.
        """
        return {
            "robot": self.robot, "parameters": plain_parameters(self.plant), "geometry": plain_shape(self.plant),
            "environment": environment_fields(self.plant), "airframe": describe_plant(self.plant).airframe,
            "actuators": [channel_map(channel) for channel in self.actuators],
            "outputs": [channel_map(channel) for channel in self.outputs],
        }  # fmt: skip


class Scopes:
    """Scopes of one plant.

    Parameters
    ----------
    robot : str
        Name of the plant.
    plant : Plant
        The plant.

    Attributes
    ----------
    whole : Scope
        The whole plant.
    """

    def __init__(self, robot: str, plant: Plant) -> None:
        self.whole = Scope(robot, plant)
        self._robots: Mapping[str, Scope] = {}
        if isinstance(plant, HasRobots):
            self._robots = {
                name: Scope(
                    plant.robot_types[name], robot, f"{name}.", _select_extra_outputs(plant.outputs, robot, f"{name}.")
                )
                for name, robot in plant.robots.items()
            }

    def of(self, robot: str) -> Scope:
        """Return the scope of a robot.

        Parameters
        ----------
        robot : str
            Name of the robot; empty for the whole plant.

        Returns
        -------
        Scope
            The scope.

        Raises
        ------
        Refusal
            If there is no such robot.
        """
        if not robot:
            return self.whole
        if robot not in self._robots:
            why = str(UnknownNameError("robot", robot, self._robots)) if self._robots else "this plant is one robot"
            raise Refusal(Reason.UNKNOWN_ROBOT, f"hello: robot: {why}")
        return self._robots[robot]

    def robots(self) -> dict[str, Any]:
        """Return the description of each robot for a welcome.

        Returns
        -------
        dict[str, Any]
            Descriptions by name; empty for a single robot.
        """
        return {name: scope.as_fields() for name, scope in self._robots.items()}


def _select_extra_outputs(outputs: tuple[Channel, ...], robot: Plant, prefix: str) -> tuple[Channel, ...]:
    robot_outputs = {prefix + channel.name for channel in robot.outputs}
    return tuple(
        replace(channel, name=channel.name.removeprefix(prefix))
        for channel in outputs if channel.name.startswith(prefix) and channel.name not in robot_outputs
    )  # fmt: skip
