"""Parameters of peers, changed through the plant: a request `set` with a name PEER.PARAMETER is passed on to that peer,
and its answer back to who asked. No socket here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from time import monotonic_ns
from typing import Any

from rtmms.errors import UnknownNameError
from rtmms.wire.plant.peer import Peer
from rtmms.wire.plant.peers import Peers
from rtmms.wire.protocol.messages import Reason, Refused, Request, read_settable

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
        owners = {key.partition(".")[0] for key in request.args if "." in key}
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
        values = {key.partition(".")[2]: value for key, value in request.args.items()}
        for name in values:
            if name not in peer.settable:
                raise Refused(
                    Reason.NOT_SETTABLE, f"set: {UnknownNameError(f'parameter of {owner}', name, peer.settable)}"
                )
        if len(self._waiting) >= MOST_WAITING:
            raise Refused(Reason.BUSY, f"set: {MOST_WAITING} wait for their peers already")
        ident = next(self._ids)
        self._waiting[ident] = (request, peer, monotonic_ns() + ANSWER_NS)
        self._say(peer.door, {"type": "parameters", "id": ident, "values": values})
        return True

    def heard(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """The peer's answer; Refused for one that answers nothing that it was asked."""
        ident = message.get("id")
        waiting = self._waiting.get(ident) if type(ident) is int else None
        if waiting is None or waiting[1] is not peer:
            raise Refused(Reason.WRONG_TYPE, "parameters: this answers nothing that you were asked")
        if message.get("ok") is True:
            peer.settable = read_settable(message) or peer.settable
            values = {name: peer.settable.get(name) for name in _names(waiting[0])}
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


def _names(request: Request) -> list[str]:
    return [key.partition(".")[2] for key in request.args]
