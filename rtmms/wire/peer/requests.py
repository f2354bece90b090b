"""Requests of a link: what is asked at the plant's door, and what is done with the answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from rtmms.errors import ModelError
from rtmms.wire.peer.joining import Attachment
from rtmms.wire.protocol.codec import packer
from rtmms.wire.protocol.errors import RequestError
from rtmms.wire.protocol.messages import DOOR_BYTES

_MOST_POSTED = 64

Done = Callable[[bool, Any], None]


class Requests:
    """Numbers the requests of one link and finds the one that an answer belongs to.

    A door whose connection broke and came again is a stranger's to the plant, which then answers `token`: hello is said
    again there, with the identity that the plant gave.

    most   bytes of a request that the plant takes, as its welcome says; 0 where it does not say
    posted  what is to be told of the answers that are still to come, by their ids
    """

    def __init__(self) -> None:
        self.most = 0
        self._ids = itertools.count(1)
        self.posted: dict[int, Done] = {}
        self._pack = packer()

    def post(self, at: Attachment, op: str, args: Mapping[str, Any] | None, done: Done | None) -> None:
        """See Link.post."""
        ident, frame = self._request(op, args)
        while len(self.posted) >= _MOST_POSTED:
            del self.posted[next(iter(self.posted))]
        self.posted[ident] = done or _ignored
        at.door.send(b"", frame)

    def request(self, at: Attachment, op: str, args: Mapping[str, Any] | None, timeout_s: float) -> Any:
        """See Link.request."""
        ident, frame = self._request(op, args)
        end, again = monotonic() + timeout_s, False
        if len(frame) > DOOR_BYTES:
            self._introduce(at, op, end)  # from one that it does not know the plant takes no more than that
        if not at.say(frame, end):
            raise RequestError(f"request '{op}': no plant to ask within {timeout_s:g} s")
        while monotonic() < end:
            message = at.await_door(end)
            if message is None or message["type"] not in ("reply", "error") or message.get("id", ident) != ident:
                continue
            if message["type"] == "reply":
                if message.get("ok"):
                    return message.get("result")
                raise RequestError(f"request '{op}': {message.get('error')}", refused=True)
            if message.get("code") != "token" or again:
                raise RequestError(f"request '{op}': {message.get('text')}")
            again = True
            self._introduce(at, op, end)
            at.say(frame, end)
        raise RequestError(f"request '{op}': no answer within {timeout_s:g} s")

    def _introduce(self, at: Attachment, op: str, end: float) -> None:
        """Hello again, until its welcome."""
        at.hello_again(end)
        while monotonic() < end:
            message = at.await_door(end)
            if message is not None and message["type"] == "welcome":
                return
            if message is not None and message["type"] == "error" and "id" not in message:
                raise RequestError(f"request '{op}': {message.get('text')}")
        raise RequestError(f"request '{op}': the plant did not answer our hello in time")

    def note(self, message: Mapping[str, Any], at: Attachment) -> None:
        """A reply or an error has come at the door: the one who posted the request is told."""
        ident = message.get("id")
        done = self.posted.pop(ident, None) if isinstance(ident, int) else None
        if done is None:
            return
        if message["type"] == "reply":
            ok = message.get("ok") is True
            done(ok, message.get("result") if ok else str(message.get("error", "")))
            return
        if message.get("code") == "token":
            at.hello_again()  # for the next one: by now this one may be out of date
        done(False, str(message.get("text", "")))

    def _request(self, op: str, args: Mapping[str, Any] | None) -> tuple[int, bytes]:
        ident = next(self._ids)
        try:
            frame = self._pack({"type": "request", "id": ident, "op": op, "args": dict(args or {})})
        except (TypeError, ValueError, OverflowError) as fault:
            raise ModelError(f"request '{op}': expected arguments by name, got {args!r}: {fault}") from None
        if 0 < self.most < len(frame):
            raise RequestError(f"request '{op}': this plant takes {self.most} bytes at most, got {len(frame)}")
        return ident, frame


def _ignored(ok: bool, result: Any) -> None:
    pass
