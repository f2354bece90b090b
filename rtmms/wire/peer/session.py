"""Session of a peer with a plant: requests and refusals at the exchange endpoint, and rejoining."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from numbers import Real
from time import monotonic
from typing import Any

from rtmms.base.errors import ModelError, Renamed, UnknownNameError, safe_text
from rtmms.base.terminal import print_text
from rtmms.wire.peer.attachment import Attachment, PeerRequests
from rtmms.wire.protocol.errors import NotConnectedError, RefusedError, RequestError
from rtmms.wire.protocol.limits import MAX_EXCHANGE_BYTES, MAX_METRICS
from rtmms.wire.protocol.messages import Refusal, in_version, packer
from rtmms.wire.protocol.peer_values import read_figures, read_watch
from rtmms.wire.session_files import origin_of_token

PRINT = "print"
RAISE = "raise"
COLLECT = "collect"
ERRORS = (PRINT, RAISE, COLLECT)
_MAX_STORED_ERRORS = 32
"""Errors of the plant that the session stores; older ones are dropped."""


class Refusals:
    """Refusals of the plant on a link.

    Parameters
    ----------
    how : str, default COLLECT
        One of ERRORS.

    Attributes
    ----------
    all : deque of (str, str)
        The last refusals, as code and text.
    """

    def __init__(self, how: str = COLLECT) -> None:
        self.how = how
        self.all: deque[tuple[str, str]] = deque(maxlen=_MAX_STORED_ERRORS)
        self._printed: set[str] = set()
        self._raised: RefusedError | None = None

    def add(self, code: str, text: str) -> None:
        """Record a refusal, and print the first of each kind if `how` is 'print'.

        Parameters
        ----------
        code : str
            Its code.
        text : str
            Its text.
        """
        self.all.append((code, text))
        if self.how == RAISE:
            self._raised = self._raised or RefusedError(text, code)
        elif self.how == PRINT and code not in self._printed:
            self._printed.add(code)
            once = "printed once for each kind; link.errors has the last ones"
            print_text(f"rtmms: the plant refused: {safe_text(text)} ({once})", err=True)

    def due(self) -> None:
        """Raise a refusal once, if `how` is 'raise'.

        Raises
        ------
        RefusedError
            If the plant refused something since the last call.
        """
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


def check_command(values: Mapping[str, Any], granted: Collection[str]) -> None:
    """Raise an error for a command that the plant would refuse.

    So the user sees the error at its origin.

    Parameters
    ----------
    values : Mapping[str, Any]
        Values by name of the actuator.
    granted : Collection[str]
        Names of the peer's actuators.

    Raises
    ------
    UnknownNameError
        If a name is not the peer's.
    ModelError
        If a value is no finite number.
    """
    for name, value in values.items():
        if name not in granted:
            raise UnknownNameError("claimed actuator", str(name), granted)
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            raise ModelError(f"command: {name}: expected a finite number, got {value!r}")


_MAX_POSTED = 64

Done = Callable[[bool, Any], None]


class Requests:
    """Requests of one link, and the answers to them.

    After a broken connection the plant treats the exchange socket as a stranger's, and answers `token`. Then a hello is
    sent again, with the identity from the welcome.

    Attributes
    ----------
    max_bytes : int
        Most bytes of a request, as the welcome states it; 0 for none.
    posted : dict
        Callbacks of pending answers by id.
    """

    def __init__(self) -> None:
        self.max_bytes = 0
        self._ids = itertools.count(1)
        self.posted: dict[int, Done] = {}
        self._pack = packer()

    def post(self, at: Attachment, op: str, args: Mapping[str, Any] | None, done: Done | None) -> None:
        """Send a request without waiting; see `Link.post`.

        Parameters
        ----------
        at : Attachment
            Sockets of the link.
        op : str
            Name of the operation.
        args : Mapping[str, Any] | None
            Its arguments.
        done : Done | None
            Callback of the answer.
        """
        ident, frame = self._request(op, args)
        while len(self.posted) >= _MAX_POSTED:
            del self.posted[next(iter(self.posted))]
        self.posted[ident] = done or _ignored
        at.exchange.send(b"", frame)

    def request(self, at: Attachment, op: str, args: Mapping[str, Any] | None, timeout_s: float) -> Any:
        """Send a request, and wait for its result; see `Link.request`.

        Parameters
        ----------
        at : Attachment
            Sockets of the link.
        op : str
            Name of the operation.
        args : Mapping[str, Any] | None
            Its arguments.
        timeout_s : float
            Longest wait, s.

        Returns
        -------
        Any
            The result.

        Raises
        ------
        RequestError
            If the plant refuses, or does not answer in time.
        """
        ident, frame = self._request(op, args)
        end, again = monotonic() + timeout_s, False
        if len(frame) > MAX_EXCHANGE_BYTES:
            self._introduce(at, op, end)  # The plant accepts larger messages only from a peer after its hello.
        if not at.send(frame, end):
            raise RequestError(f"request '{op}': no plant accepted the request within {timeout_s:g} s")
        while monotonic() < end:
            message = at.await_exchange(end)
            if message is None or message["type"] not in ("reply", "error") or message.get("id", ident) != ident:
                continue
            if message["type"] == "reply":
                if message.get("ok"):
                    return message.get("result")
                raise RequestError(f"request '{op}': {message.get('error')}", refused=True)
            if message.get("code") != "token" or again:
                text = str(message.get("text"))
                if message.get("code") == "token" and at.terms.token is None and at.terms.keys is None:
                    text += f"; {origin_of_token(at.terms.exchange)}"
                raise RequestError(f"request '{op}': {text}")
            again = True
            self._introduce(at, op, end)
            at.send(frame, end)
        raise RequestError(f"request '{op}': no answer within {timeout_s:g} s")

    def _introduce(self, at: Attachment, op: str, end: float) -> None:
        """Send a hello again, and wait for its welcome."""
        at.hello_again(end)
        while monotonic() < end:
            message = at.await_exchange(end)
            if message is not None and message["type"] == "welcome":
                return
            if message is not None and message["type"] == "error" and "id" not in message:
                raise RequestError(f"request '{op}': {message.get('text')}")
        raise RequestError(f"request '{op}': the plant did not answer the hello in time")

    def note(self, message: Mapping[str, Any], at: Attachment) -> None:
        """Call the callback of a reply or an error.

        Parameters
        ----------
        message : Mapping[str, Any]
            Message at the exchange endpoint.
        at : Attachment
            Sockets of the link.
        """
        ident = message.get("id")
        done = self.posted.pop(ident, None) if isinstance(ident, int) else None
        if done is None:
            return
        if message["type"] == "reply":
            ok = message.get("ok") is True
            done(ok, message.get("result") if ok else str(message.get("error", "")))
            return
        if message.get("code") == "token":
            at.hello_again()  # for the next request: the token may be out of date
        done(False, str(message.get("text", "")))

    def _request(self, op: str, args: Mapping[str, Any] | None) -> tuple[int, bytes]:
        ident = next(self._ids)
        try:
            frame = self._pack({"type": "request", "id": ident, "op": op, "args": dict(args or {})})
        except (TypeError, ValueError, OverflowError) as fault:
            raise ModelError(f"request '{op}': expected arguments by name, got {args!r}: {fault}") from None
        if 0 < self.max_bytes < len(frame):
            raise RequestError(
                f"request '{op}': expected at most {self.max_bytes} bytes, which this plant accepts, got {len(frame)}"
            )
        return ident, frame


def _ignored(ok: bool, result: Any) -> None:
    pass


_MIN_RECONNECT_S = 0.1
_MAX_RECONNECT_S = 2.0
GONE = "the plant is gone: its connection closed without a bye"


class Session:
    """Session of a link: everything except states and commands.

    Parameters
    ----------
    terms : PeerRequests
        Requests of the peer.
    timeout_s : float | None, default 5.0
        Longest wait for an answer, s.
    reconnect : bool, default False
        Whether the link joins the next plant after the plant's end.
    refusals : Refusals | None, optional
        Reaction to refusals of the plant.

    Raises
    ------
    NotConnectedError
        If no plant admits the peer.
    """

    # a user's attributes and weak references, as any object has them
    __slots__ = (
        "__dict__", "__weakref__", "_again_at", "_at", "_closed", "_figures", "_gap_s", "_link_figures", "_looked_at",
        "_pack", "_reconnect", "_refusals", "_requests", "_terms", "ended", "errors", "exchange", "lost", "name",
        "plant", "tunable_parameters",
    )  # fmt: skip

    def __init__(
        self, terms: PeerRequests, timeout_s: float | None = 5.0, reconnect: bool = False,
        refusals: Refusals | None = None,
    ) -> None:  # fmt: skip
        self._terms, self._reconnect, self._refusals = terms, reconnect, refusals or Refusals("collect")
        self.tunable_parameters: Mapping[str, Any] = terms.settable.values if terms.settable is not None else {}
        self.exchange, self.name = terms.exchange, terms.hello.name
        self.ended = self.lost = ""
        self._figures: Mapping[str, Any] = {}
        self._link_figures: Mapping[str, Any] = {}
        self.errors = self._refusals.all
        self._requests, self._pack = Requests(), packer()
        self._closed = False
        self._again_at, self._gap_s, self._looked_at = 0.0, _MIN_RECONNECT_S, 0.0
        self._at = Attachment(terms, self._note)
        self.plant = self._at.join(timeout_s, reconnect)
        self._took_up()
        self.look_around()  # ZeroMQ signals on a descriptor only after a read that found no message

    def look_around(self) -> None:
        """Read messages at the exchange endpoint, and check whether the plant is there.

        Callers that wait by themselves call this regularly.
        """
        self._looked_at = monotonic()
        if self.lost:
            self._rejoin()
            return
        while not self._closed and self._at.read_exchange() is not None:
            pass  # a callback may close the link
        if not self.ended and not self.lost and self._at.gone():
            self._lose(GONE)

    def post(
        self, op: str, args: Mapping[str, Any] | None = None, done: Callable[[bool, Any], None] | None = None
    ) -> None:
        """Send a request without waiting for its answer.

        A peer that must answer states uses it, because it must not wait for work between steps.

        Parameters
        ----------
        op : str
            Name of the operation.
        args : Mapping[str, Any] | None, optional
            Its arguments.
        done : Callable[[bool, Any], None] | None, optional
            Called with ok, and the result or the error, by `poll`, `look_around` or a wait.

        Raises
        ------
        RequestError
            If the request is larger than the plant accepts.
        """
        self._requests.post(self._at, op, args, done)

    def request(self, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = 5.0) -> Any:
        """Send a request, and wait for its result.

        Requests are reset, pause, resume, step, set, snapshot, restore and stop; the plant performs them between steps.

        A claimant in lockstep sends reset, restore, pause, resume and step by `post`. The plant performs them after the
        next command, so that it would wait for the answer in vain.

        Parameters
        ----------
        op : str
            Name of the operation.
        args : Mapping[str, Any] | None, optional
            Its arguments.
        timeout_s : float, default 5.0
            Longest wait, s.

        Returns
        -------
        Any
            The result.

        Raises
        ------
        RequestError
            If the plant refuses, does not answer in time, or accepts no request of that size.
        """
        if self._closed or self.lost:
            raise RequestError(f"request '{op}': {self.lost or 'this link is closed'}")
        return self._requests.request(self._at, op, args, timeout_s)

    settable = Renamed("tunable_parameters")
    tell = Renamed("report_metrics")

    def report_metrics(self, figures: Mapping[str, Any]) -> None:
        """Send metrics of this peer for the plant's report and `rtmms status`; the last ones count.

        Parameters
        ----------
        figures : Mapping[str, Any]
            Numbers, flags and short texts by name, 16 at most.

        Raises
        ------
        ModelError
            If there are more, or other values.
        """
        try:
            read_figures({"values": dict(figures)})
        except Refusal as fault:
            raise ModelError(str(fault)) from None
        self._figures = dict(figures)
        self._send_figures()

    def _send_metrics(self, figures: Mapping[str, Any]) -> None:
        """Send metrics of the link itself with those of the peer, if there is room for them."""
        self._link_figures = figures
        self._send_figures()

    def _send_figures(self, more: Mapping[str, Any] | None = None) -> None:
        if self._closed or self.lost:
            return
        values = {**self._link_figures, **self._figures}
        if len(values) > MAX_METRICS:
            values = dict(self._figures)
        message = {"type": "metrics", "values": values, **(more or {})}
        self._at.exchange.send(b"", self._pack(in_version(message, self._at.protocol)))

    def report_watch(self, watch: Mapping[str, Any]) -> None:
        """Send the silences and losses of a bridge's own peer for the plant's report; the last message counts.

        Parameters
        ----------
        watch : Mapping[str, Any]
            Entries of `read_watch`.

        Raises
        ------
        ModelError
            If `read_watch` refuses them.
        """
        try:
            read_watch({"watch": dict(watch)})
        except Refusal as fault:
            raise ModelError(str(fault)) from None
        self._send_figures({"watch": dict(watch)})

    # -- for the link ------------------------------------------------------------------------------------------------

    def _took_up(self) -> None:
        """Prepare for the plant, which may be another one."""
        self._requests.max_bytes = self.plant.request_bytes

    def _let_go(self) -> None:
        """Prepare for the loss of the plant."""

    def _lose(self, reason: str) -> None:
        """End the link, or wait for another plant."""
        self._let_go()
        if self._reconnect and not self._closed:
            if not self.lost:
                self.lost = reason
                self._again_at, self._gap_s = monotonic() + _MIN_RECONNECT_S, _MIN_RECONNECT_S
        else:
            self.ended = self.ended or reason

    def _rejoin(self) -> bool:
        """Try to join again if it is time; the intervals grow."""
        if monotonic() < self._again_at:
            return False
        self._at.close()
        self.lost = lost = self.lost or GONE
        try:
            self._at = Attachment(self._terms, self._note)
            self.plant = self._at.join(_MAX_RECONNECT_S, True)
            self._took_up()
        except NotConnectedError as fault:
            self.lost = lost
            self.errors.append((fault.code, str(fault)))
            self._again_at, self._gap_s = monotonic() + self._gap_s, min(2.0 * self._gap_s, _MAX_RECONNECT_S)
            return False
        self.lost = ""
        self.look_around()
        return True

    def _note(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "bye":
            self._lose(f"the plant sent bye: {message.get('reason', '')}")
        elif message["type"] == "error":
            self._refusals.add(str(message.get("code", "")), str(message.get("text", "")))
            self._requests.note(message, self._at)
        elif message["type"] == "parameters" and self._terms.settable is not None:
            self._at.exchange.send(b"", self._pack(self._terms.settable.take(message)))
        elif message["type"] == "reply":
            if "code" in message:  # refused at the exchange endpoint
                self._refusals.add(str(message["code"]), str(message.get("error", "")))
            self._requests.note(message, self._at)
