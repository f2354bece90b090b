"""The exchange socket: hello, requests and strangers. Served in the loop's slack only, a few messages at a time.

A flood here keeps neither the step socket's I/O thread nor the loop busy.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

from rtmms.errors import ModelError
from rtmms.wire.places.keys import Allowed
from rtmms.wire.plant.measure import Measure
from rtmms.wire.plant.peer import Peer
from rtmms.wire.plant.peers import Peers
from rtmms.wire.plant.relay import Relay
from rtmms.wire.protocol.codec import decode, packer
from rtmms.wire.protocol.messages import (
    Hello,
    Reason,
    Refused,
    Request,
    not_a_message,
    read_hello,
    read_id,
    read_request,
    shown,
)
from rtmms.wire.protocol.port import MESSAGE, Answering, Guests

_READS = 4
_WAITING_REQUESTS = 16
_STRANGERS_BURST = 50


class Door:
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
        socket.attend(Guests(known=peers.by_door.__contains__, refused=count), cap)
        self._token = token.encode()
        self._pack = packer()
        self._requests: list[Request] = []
        self._failures: list[str] = []
        self._strangers_told = Measure(_STRANGERS_BURST)
        self._relay = Relay(peers, self.say, self.reply)

    def serve(self, until_ns: int) -> None:
        self._socket.serve(until_ns)
        self._relay.serve(monotonic_ns())
        for _ in range(_READS):
            if monotonic_ns() >= until_ns or not self._read_one():
                return

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
        if not request.door:  # the run's own
            self._failures += [] if ok else [error or "refused"]
            return
        message: dict[str, Any] = {"type": "reply", "id": request.id, "ok": ok}
        message["result" if ok else "error"] = result if ok else (error or "refused")
        try:
            frame = self._pack(message)
        except (TypeError, ValueError, OverflowError) as fault:
            why = f"the result of {request.op} cannot be sent: {fault}"
            frame = self._pack({"type": "reply", "id": request.id, "ok": False, "error": why})
        self._socket.send(request.door, frame)

    def say(self, door: bytes, message: Mapping[str, Any]) -> None:
        self._socket.send(door, self._pack(message))

    def _read_one(self) -> bool:
        heard = self._socket.next()
        if heard is None:
            return False
        door, kind, frame, key = heard
        peer = self._peers.by_door.get(door)
        try:
            if kind != MESSAGE:
                raise not_a_message(kind, self._cap)
            if self._allowed is not None and key not in self._allowed.names:
                raise Refused(Reason.TOKEN, "this key is no longer among those that the plant lets in")
            self._hear(door, peer, decode(frame, self._cap), key)
        except Refused as refusal:
            self._count(refusal.code)
            if peer is not None:
                peer.refused(refusal.text)
            self._tell(door, peer, refusal)
        return True

    def _hear(self, door: bytes, peer: Peer | None, message: dict[str, Any], key: bytes | None = None) -> None:
        kind = message["type"]
        if kind == "hello":
            hello = read_hello(message)
            trusted = key is not None or hmac.compare_digest(hello.token.encode(), self._token)
            if (hello.claim or hello.ticks) and not trusted:
                raise Refused(
                    Reason.TOKEN, "hello: a claim needs the token of this session, which only its user can read"
                )
            welcome = self._enter(hello, door, trusted)
            if key is not None:
                self._peers.by_door[door].key = key
            self._socket.send(door, self._pack(welcome))
        elif kind == "request":
            try:
                self._take(door, peer, message)
            except Refused as refusal:
                refusal.id = read_id(message)
                raise
        elif kind == "bye":
            if peer is not None:
                self._peers.release(peer)
        elif kind == "parameters" and peer is not None:
            self._relay.heard(peer, message)
        else:
            expected = "hello, request, parameters and bye"
            raise Refused(Reason.TYPE, f"the exchange socket takes {expected}, got type {shown(kind)}")

    def _take(self, door: bytes, peer: Peer | None, message: dict[str, Any]) -> None:
        if peer is None:
            raise Refused(Reason.TOKEN, "request: say hello with the session's token first")
        request = read_request(message, peer.name, door)
        if len(self._requests) >= _WAITING_REQUESTS:
            raise Refused(Reason.BUSY, f"request: {_WAITING_REQUESTS} are waiting already")
        if not self._relay.passes_on(request):
            self._requests.append(request)

    def _tell(self, door: bytes, peer: Peer | None, refusal: Refused) -> None:
        """Answer with the reason, at most so many a second: a flood must not make us busy answering it.

        Peers have a measure of their own, so that strangers cannot use up theirs.
        """
        told = self._strangers_told if peer is None else peer.told
        if not told.take(monotonic_ns()):
            return
        code, text = refusal.code, refusal.text
        if refusal.id is None:
            self.say(door, {"type": "error", "code": code, "text": text})
        elif peer is None:
            self.say(door, {"type": "error", "code": code, "text": text, "id": refusal.id})
        else:
            self.say(door, {"type": "reply", "id": refusal.id, "ok": False, "error": text, "code": code})
