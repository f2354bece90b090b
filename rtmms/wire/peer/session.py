"""A peer's session with a plant: joining, requests and refusals at the exchange endpoint, and rejoining."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from numbers import Real
from time import monotonic
from typing import Any

from rtmms.errors import ModelError, UnknownNameError, shown
from rtmms.terminal import print_text
from rtmms.wire.peer.joining import Attachment, Terms
from rtmms.wire.protocol.codec import packer
from rtmms.wire.protocol.errors import NotConnectedError, RefusedError, RequestError
from rtmms.wire.protocol.limits import EXCHANGE_BYTES
from rtmms.wire.protocol.messages import Refused, read_figures

PRINT, RAISE, COLLECT = "print", "raise", "collect"
ERRORS = (PRINT, RAISE, COLLECT)
_KEPT = 32


class Refusals:
    """A link's.

    how   one of ERRORS;  all: the last ones as (code, text)
    """

    def __init__(self, how: str = COLLECT) -> None:
        self.how = how
        self.all: deque[tuple[str, str]] = deque(maxlen=_KEPT)
        self._told: set[str] = set()
        self._raised: RefusedError | None = None

    def add(self, code: str, text: str) -> None:
        """The plant said so."""
        self.all.append((code, text))
        if self.how == RAISE:
            self._raised = self._raised or RefusedError(text, code)
        elif self.how == PRINT and code not in self._told:
            self._told.add(code)
            once = "printed once for each kind; link.errors has all"
            print_text(f"rtmms: the plant refused: {shown(text)} ({once})", err=True)

    def due(self) -> None:
        """Raise what is to be raised, once."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


def check_command(values: Mapping[str, Any], granted: Collection[str]) -> None:
    """Names that are this peer's to drive, and finite numbers; UnknownNameError, ModelError. What the plant would
    refuse, told where it was said."""
    for name, value in values.items():
        if name not in granted:
            raise UnknownNameError("actuator of yours", str(name), granted)
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            raise ModelError(f"command: {name}: expected a finite number, got {value!r}")


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
        at.exchange.send(b"", frame)

    def request(self, at: Attachment, op: str, args: Mapping[str, Any] | None, timeout_s: float) -> Any:
        """See Link.request."""
        ident, frame = self._request(op, args)
        end, again = monotonic() + timeout_s, False
        if len(frame) > EXCHANGE_BYTES:
            self._introduce(at, op, end)  # from one that it does not know the plant takes no more than that
        if not at.say(frame, end):
            raise RequestError(f"request '{op}': no plant to ask within {timeout_s:g} s")
        while monotonic() < end:
            message = at.await_exchange(end)
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
            message = at.await_exchange(end)
            if message is not None and message["type"] == "welcome":
                return
            if message is not None and message["type"] == "error" and "id" not in message:
                raise RequestError(f"request '{op}': {message.get('text')}")
        raise RequestError(f"request '{op}': the plant did not answer our hello in time")

    def note(self, message: Mapping[str, Any], at: Attachment) -> None:
        """A reply or an error has come at the exchange endpoint: the one who posted the request is told."""
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


_AGAIN_FIRST_S, _AGAIN_LIMIT_S = 0.1, 2.0
GONE = "the plant is gone: its connection closed without a bye"


class Session:
    """What a Link has beside states and commands."""

    # a user's own attributes, and weak references, as any object has them
    __slots__ = (
        "__dict__", "__weakref__", "_again_at", "_at", "_closed", "_gap_s", "_looked_at", "_pack", "_reconnect",
        "_refusals", "_requests", "_terms", "ended", "errors", "exchange", "lost", "name", "plant", "settable",
    )  # fmt: skip

    def __init__(
        self, terms: Terms, timeout_s: float | None = 5.0, reconnect: bool = False, refusals: Refusals | None = None
    ) -> None:  # fmt: skip
        self._terms, self._reconnect, self._refusals = terms, reconnect, refusals or Refusals("collect")
        self.settable: Mapping[str, Any] = terms.settable.values if terms.settable is not None else {}
        self.exchange, self.name = terms.exchange, terms.hello.name
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
        """Read what came at the exchange endpoint, and look whether the plant is there, or there again. For those who
        wait by themselves."""
        self._looked_at = monotonic()
        if self.lost:
            self._rejoin()
            return
        while not self._closed and self._at.hear_exchange() is not None:
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

        Whoever drives in lockstep asks for reset, restore, pause, resume, and step by `post`: those are done when the
        next command has come, and an answer would be waited for in vain.

        Returns its result; RequestError if it refuses, does not answer in time, or takes none of that size.
        """
        if self._closed or self.lost:
            raise RequestError(f"request '{op}': {self.lost or 'this link is closed'}")
        return self._requests.request(self._at, op, args, timeout_s)

    def tell(self, figures: Mapping[str, Any]) -> None:
        """Numbers, flags and short texts of this peer, for the plant's report and `rtmms status`; the last ones count.
        ModelError for other values, or more than 16."""
        try:
            read_figures({"values": dict(figures)})
        except Refused as fault:
            raise ModelError(str(fault)) from None
        if not self._closed and not self.lost:
            self._at.exchange.send(b"", self._pack({"type": "figures", "values": dict(figures)}))

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
            self._at.exchange.send(b"", self._pack(self._terms.settable.take(message)))
        elif message["type"] == "reply":
            if "code" in message:  # refused at the exchange endpoint
                self._refusals.add(str(message["code"]), str(message.get("error", "")))
            self._requests.note(message, self._at)
