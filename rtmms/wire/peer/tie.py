"""A peer's standing with a plant: how it gets in, what is said at the door, and what it does when the plant is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from rtmms.wire.peer.joining import Attachment, Terms
from rtmms.wire.peer.refusals import Refusals
from rtmms.wire.peer.requests import Requests
from rtmms.wire.protocol.codec import packer
from rtmms.wire.protocol.errors import NotConnectedError, RequestError

_AGAIN_FIRST_S, _AGAIN_LIMIT_S = 0.1, 2.0
GONE = "the plant is gone: its connection closed without a bye"


class Tie:
    """What a Link has beside states and commands."""

    # a user's own attributes, and weak references, as any object has them
    __slots__ = (
        "__dict__", "__weakref__", "_again_at", "_at", "_closed", "_gap_s", "_looked_at", "_pack", "_reconnect",
        "_refusals", "_requests", "_terms", "ended", "errors", "exchange", "lost", "name", "plant", "settable",
    )  # fmt: skip

    def __init__(
        self, terms: Terms, timeout_s: float = 5.0, reconnect: bool = False, refusals: Refusals | None = None
    ) -> None:  # fmt: skip
        self._terms, self._reconnect, self._refusals = terms, reconnect, refusals or Refusals("collect")
        self.settable: Mapping[str, Any] = terms.settable.values if terms.settable is not None else {}
        self.exchange, self.name = terms.exchange, terms.name
        self.ended = self.lost = ""
        self.errors = self._refusals.all
        self._requests, self._pack = Requests(), packer()
        self._closed = False
        self._again_at, self._gap_s, self._looked_at = 0.0, _AGAIN_FIRST_S, 0.0
        self._at = Attachment(terms, self._note)
        self.plant = self._at.join(timeout_s, reconnect)
        self._took_up()
        self.look_around()  # ZeroMQ signals on a descriptor only after a read that found nothing

    def look_around(self) -> None:
        """Has something been said at the door, is the plant still there, or there again? For those who wait by
        themselves."""
        self._looked_at = monotonic()
        if self.lost:
            self._rejoin()
            return
        while not self._closed and self._at.hear_door() is not None:
            pass  # one who is told of an answer may close the link
        if not self.ended and not self.lost and self._at.gone():
            self._lose(GONE)

    def post(
        self, op: str, args: Mapping[str, Any] | None = None, done: Callable[[bool, Any], None] | None = None
    ) -> None:
        """A request whose answer nobody waits for: one who is to answer a state must not wait for what is done
        between steps. `done(ok, result or error)` is called from `poll`, `look_around` or a wait when it has come.
        RequestError for one that is larger than the plant takes."""
        self._requests.post(self._at, op, args, done)

    def request(self, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = 5.0) -> Any:
        """Ask the plant for something (reset, pause, resume, step, set, snapshot, restore, stop), done between steps.

        Returns its result; RequestError if it refuses, does not answer in time, or takes none of that size.
        """
        if self._closed or self.lost:
            raise RequestError(f"request '{op}': {self.lost or 'this link is closed'}")
        return self._requests.request(self._at, op, args, timeout_s)

    # -- for the link ------------------------------------------------------------------------------------------------

    def _took_up(self) -> None:
        """There is a plant, perhaps another one."""
        self._requests.most = self.plant.request_bytes

    def _let_go(self) -> None:
        """There is none, or soon none."""

    def _lose(self, reason: str) -> None:
        """There is no plant any more: the end, or until there is one again."""
        self._let_go()
        if self._reconnect and not self._closed:
            if not self.lost:
                self.lost = reason
                self._again_at, self._gap_s = monotonic() + _AGAIN_FIRST_S, _AGAIN_FIRST_S
        else:
            self.ended = self.ended or reason

    def _rejoin(self) -> bool:
        """One attempt, if it is time for one; later ones come at growing distances."""
        if monotonic() < self._again_at:
            return False
        self._at.close()
        self.lost = lost = self.lost or GONE
        try:
            self._at = Attachment(self._terms, self._note)
            self.plant = self._at.join(_AGAIN_LIMIT_S, True)
            self._took_up()
        except NotConnectedError as fault:
            self.lost = lost
            self.errors.append((fault.code, str(fault)))
            self._again_at, self._gap_s = monotonic() + self._gap_s, min(2.0 * self._gap_s, _AGAIN_LIMIT_S)
            return False
        self.lost = ""
        self.look_around()
        return True

    def _note(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "bye":
            self._lose(f"the plant said bye: {message.get('reason', '')}")
        elif message["type"] == "error":
            self._refusals.add(str(message.get("code", "")), str(message.get("text", "")))
            self._requests.note(message, self._at)
        elif message["type"] == "parameters" and self._terms.settable is not None:
            self._at.door.send(b"", self._pack(self._terms.settable.take(message)))
        elif message["type"] == "reply":
            if "code" in message:  # refused at the door
                self._refusals.add(str(message["code"]), str(message.get("error", "")))
            self._requests.note(message, self._at)
