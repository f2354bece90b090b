"""The exchange socket: hello, requests and strangers. Served in the loop's slack only, a few messages at a time.

A flood here keeps neither the step socket's I/O thread nor the loop busy.
"""

from __future__ import annotations

import hmac
import itertools
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from time import monotonic_ns, sleep
from typing import Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms.user_file import owner_of
from rtmms.wire.endpoints.keys import Allowed
from rtmms.wire.plant.peer import LIVE, Peer, RateLimit
from rtmms.wire.plant.peers import Peers
from rtmms.wire.protocol.codec import decode, packer
from rtmms.wire.protocol.messages import (
    Hello,
    Reason,
    Refused,
    Request,
    not_a_message,
    read_figures,
    read_hello,
    read_id,
    read_request,
    read_settable,
    shown,
)
from rtmms.wire.protocol.port import MESSAGE, Answering, Guests

MOST_WAITING = 16
ANSWER_NS = 2_000_000_000
"""A peer has so long to say whether it takes the values."""

Reply = Callable[[Request, bool, Any, str | None], None]


class Relay:
    """What was passed on and not answered yet: MOST_WAITING at most.

    say     sends a message to a peer's connection at the exchange endpoint;  reply  answers a request
    """

    def __init__(self, peers: Peers, say: Callable[[bytes, Mapping[str, Any]], None], reply: Reply) -> None:
        self._peers, self._say, self._reply = peers, say, reply
        self._waiting: dict[int, tuple[Request, Peer, int]] = {}
        self._ids = itertools.count(1)

    @property
    def waiting(self) -> bool:
        """Something was passed on and is not answered."""
        return bool(self._waiting)

    def passes_on(self, request: Request) -> bool:
        """Whether it is for a peer, which then is asked; Refused where it is for several, or the peer has no such
        parameter."""
        if request.op != "set":
            return False
        named = {peer.name for peer in self._peers.all}
        owners = {owner_of(key, named) or key.partition(".")[0] for key in request.args if "." in key}
        if not owners & named:
            near = [one for owner in owners for one in get_close_matches(owner, named, n=1, cutoff=0.75)]
            if near:
                raise Refused(Reason.NOT_SETTABLE, f"set: no peer is called so; did you mean {near[0]}?")
            return False
        if len(owners) > 1 or not all("." in key for key in request.args):
            raise Refused(Reason.WRONG_TYPE, "set: parameters of one peer, or of the plant, at a time")
        owner = next(iter(owners))
        peer = next((one for one in self._peers.all if one.name == owner and one.settable), None)
        if peer is None:
            raise Refused(Reason.NOT_SETTABLE, f"set: '{owner}' has no parameters that can change while it runs")
        values = {key.removeprefix(owner + "."): value for key, value in request.args.items()}
        for name in values:
            if name not in peer.settable:
                raise Refused(
                    Reason.NOT_SETTABLE, f"set: {UnknownNameError(f'parameter of {owner}', name, peer.settable)}"
                )
        if len(self._waiting) >= MOST_WAITING:
            raise Refused(Reason.BUSY, f"set: {MOST_WAITING} wait for their peers already")
        ident = next(self._ids)
        self._waiting[ident] = (request, peer, monotonic_ns() + ANSWER_NS)
        self._say(peer.exchange_id, {"type": "parameters", "id": ident, "values": values})
        return True

    def heard(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """The peer's answer; Refused for one that answers nothing that it was asked."""
        ident = message.get("id")
        waiting = self._waiting.get(ident) if type(ident) is int else None
        if waiting is None or waiting[1] is not peer:
            raise Refused(Reason.WRONG_TYPE, "parameters: this answers nothing that you were asked")
        if message.get("ok") is True:
            peer.settable = read_settable(message) or peer.settable
            values = {name: peer.settable.get(name) for name in _names(waiting[0], peer.name)}
            self._reply(waiting[0], True, {"values": values}, None)
        else:
            error = message.get("error")
            told = error if isinstance(error, str) and 0 < len(error) <= 500 else "refused without a reason"
            self._reply(waiting[0], False, None, f"{peer.name}: {told}")
        del self._waiting[ident]  # type: ignore[arg-type]

    def serve(self, now_ns: int) -> None:
        """Tell those who waited in vain."""
        if self._waiting:
            for ident in [one for one, (_, _, until_ns) in self._waiting.items() if now_ns > until_ns]:
                request, peer, _ = self._waiting.pop(ident)
                self._reply(request, False, None, f"set: {peer.name} did not answer within {ANSWER_NS * 1e-9:g} s")


def _names(request: Request, owner: str) -> list[str]:
    return [key.removeprefix(owner + ".") for key in request.args]


_READS = 4
_WAITING_REQUESTS = 16
_STRANGERS_BURST = 50


class HandshakePort:
    """Answers hello with welcome, queues requests for the loop's owner, refuses the rest by name.

    token    what a claim or a request needs to have said in its hello
    cap      bytes of a message from one that is known;  count  is told the reason of each refusal
    enter    makes a peer of a checked hello and returns it with its welcome message; Refused if it may not
    allowed  the keys that may come in, each of which is as good as the token; None where the socket asks for none
    """

    def __init__(
        self, socket: Answering, peers: Peers, token: str, cap: int, count: Callable[[str], None],
        enter: Callable[[Hello, bytes, bool], Mapping[str, Any]], allowed: Allowed | None = None,
    ) -> None:  # fmt: skip
        self._allowed = allowed
        self._socket, self._peers, self._cap, self._count, self._enter = socket, peers, cap, count, enter
        socket.attend(Guests(known=peers.by_exchange_id.__contains__, refused=count), cap)
        self._token = token.encode()
        self._pack = packer()
        self._requests: list[Request] = []
        self._failures: list[str] = []
        self._strangers_told = RateLimit(_STRANGERS_BURST)
        self._relay = Relay(peers, self.say, self.reply)

    def serve(self, until_ns: int) -> bool:
        """Newcomers, and a few messages. Whether there was time to read one."""
        self._socket.serve(until_ns)
        self._relay.serve(monotonic_ns())
        for k in range(_READS):
            if monotonic_ns() >= until_ns:
                return k > 0
            if not self._read_one():
                return True
        return True

    def last_figures(self, until_ns: int) -> None:
        """After the plant's bye: what peers tell of themselves a last time, until each that told before has done so,
        went, or time is up. Nothing else is answered any more."""
        awaited = {peer.exchange_id for peer in self._peers.all if peer.figures and peer.state is LIVE}
        while awaited and monotonic_ns() < until_ns:
            self._socket.serve(until_ns)
            heard = self._socket.next()
            if heard is None:
                awaited = {one for one in awaited if self._socket.connected(one) is not False}
                sleep(5e-4)
                continue
            exchange_id, kind, frame, _ = heard
            peer = self._peers.by_exchange_id.get(exchange_id)
            if peer is None or kind != MESSAGE:
                continue
            try:
                message = decode(frame, self._cap)
                if message["type"] == "figures":
                    peer.figures = read_figures(message)
            except Refused:
                continue
            if message["type"] in ("figures", "bye"):
                awaited.discard(exchange_id)

    def requests(self) -> list[Request]:
        """What was asked since the last call, in order."""
        taken, self._requests = self._requests, []
        return taken

    def pass_on(self, values: Mapping[str, Any]) -> None:
        """Parameters of a peer, by 'PEER.NAME', as the run itself wants them; ModelError."""
        request = Request("run", "set", values, "the run")
        try:
            passed = self._relay.passes_on(request)
        except Refused as refusal:
            raise ModelError(refusal.text) from None
        if not passed:
            raise ModelError(f"set: no peer is called '{next(iter(values)).partition('.')[0]}'")

    def unanswered(self) -> bool:
        """A peer owes an answer to what was passed on."""
        return self._relay.waiting

    def failures(self) -> list[str]:
        """What was refused of what the run wanted, since the last call."""
        taken, self._failures = self._failures, []
        return taken

    def reply(self, request: Request, ok: bool, result: Any = None, error: str | None = None) -> None:
        """Answer a request; a result that cannot travel becomes an error."""
        if not request.exchange_id:  # the run's own
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

    def say(self, exchange_id: bytes, message: Mapping[str, Any]) -> None:
        self._socket.send(exchange_id, self._pack(message))

    def _read_one(self) -> bool:
        heard = self._socket.next()
        if heard is None:
            return False
        exchange_id, kind, frame, key = heard
        peer = self._peers.by_exchange_id.get(exchange_id)
        try:
            if kind != MESSAGE:
                raise not_a_message(kind, self._cap)
            if self._allowed is not None and key not in self._allowed.names:
                raise Refused(Reason.TOKEN, "this key is no longer among those that the plant lets in")
            self._hear(exchange_id, peer, decode(frame, self._cap), key)
        except Refused as refusal:
            self._count(refusal.code)
            if peer is not None:
                peer.refused(refusal.text)
            self._tell(exchange_id, peer, refusal)
        return True

    def _hear(self, exchange_id: bytes, peer: Peer | None, message: dict[str, Any], key: bytes | None = None) -> None:
        kind = message["type"]
        if kind == "hello":
            hello = read_hello(message)
            trusted = key is not None or hmac.compare_digest(hello.token.encode(), self._token)
            if (hello.claim or hello.ticks) and not trusted:
                raise Refused(
                    Reason.TOKEN, "hello: a claim needs the token of this session, which only its user can read"
                )
            welcome = self._enter(hello, exchange_id, trusted)
            if key is not None:
                self._peers.by_exchange_id[exchange_id].key = key
            self._socket.send(exchange_id, self._pack(welcome))
        elif kind == "request":
            try:
                self._take(exchange_id, peer, message)
            except Refused as refusal:
                refusal.id = read_id(message)
                raise
        elif kind == "bye":
            if peer is not None:
                self._peers.depart(peer)
        elif kind == "parameters" and peer is not None:
            self._relay.heard(peer, message)
        elif kind == "figures" and peer is not None:
            peer.figures = read_figures(message)
        else:
            expected = "hello, request, parameters, figures and bye"
            raise Refused(Reason.TYPE, f"the exchange socket takes {expected}, got type {shown(kind)}")

    def _take(self, exchange_id: bytes, peer: Peer | None, message: dict[str, Any]) -> None:
        if peer is None:
            raise Refused(Reason.TOKEN, "request: say hello with the session's token first")
        request = read_request(message, peer.name, exchange_id)
        if len(self._requests) >= _WAITING_REQUESTS:
            raise Refused(Reason.BUSY, f"request: {_WAITING_REQUESTS} are waiting already")
        if not self._relay.passes_on(request):
            self._requests.append(request)

    def _tell(self, exchange_id: bytes, peer: Peer | None, refusal: Refused) -> None:
        """Answer with the reason, at most so many a second: a flood must not make us busy answering it.

        Peers have a measure of their own, so that strangers cannot use up theirs.
        """
        told = self._strangers_told if peer is None else peer.told
        if not told.take(monotonic_ns()):
            return
        code, text = refusal.code, refusal.text
        if refusal.id is None:
            self.say(exchange_id, {"type": "error", "code": code, "text": text})
        elif peer is None:
            self.say(exchange_id, {"type": "error", "code": code, "text": text, "id": refusal.id})
        else:
            self.say(exchange_id, {"type": "reply", "id": refusal.id, "ok": False, "error": text, "code": code})
