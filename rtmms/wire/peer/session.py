"""A peer's session with a plant: hello, welcome, requests, refusals, and rejoining."""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from time import monotonic, monotonic_ns, sleep
from typing import Any

from rtmms.base.errors import ModelError, Renamed, RtmmsError, UnknownNameError, shown
from rtmms.base.terminal import print_text
from rtmms.wire.endpoints.addresses import INPROC, NEAR, nearest, seen_from
from rtmms.wire.endpoints.session_files import origin_of_token, read_token
from rtmms.wire.libzmq.key_pairs import ClientKeys
from rtmms.wire.libzmq.sockets import MUTE, Dealers, Handshake
from rtmms.wire.peer.decode import read_places, read_welcome
from rtmms.wire.protocol.messages import (
    EXCHANGE_BYTES,
    MAX_METRICS,
    PROTOCOL,
    Hello,
    NotConnectedError,
    Refused,
    RefusedError,
    RequestError,
    decode_from_plant,
    from_version,
    hello_message,
    in_version,
    packer,
    read_figures,
    read_settable,
    read_watch,
)
from rtmms.wire.protocol.port import SENT, Dialled
from rtmms.wire.protocol.state import PlantInfo
from rtmms.wire.stream.dealer import Dealer

# How a peer joins a plant: hello at the exchange endpoint until the welcome, then the socket for its states.


Change = Callable[[dict[str, Any]], None]


class Settable:
    """A link's. The values are in `values`, always the present ones.

    values   name to number, flag, text or None, as they are at first
    change   receives the new ones before they count, and may refuse them by raising ModelError or ValueError
    """

    def __init__(self, values: Mapping[str, Any], change: Change | None = None) -> None:
        self.values = dict(values)
        self._change = change
        try:
            read_settable({"settable": self.values})
        except Refused as fault:
            raise ModelError(f"settable: {fault}") from None

    def __bool__(self) -> bool:
        return bool(self.values)

    def take(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a plant's message `parameters`; the values count when it confirms them."""
        answer = {"type": "parameters", "id": message.get("id")}
        try:
            given = message.get("values")
            if type(given) is not dict:
                raise ModelError("values: expected a map")
            checked = {name: self._checked(name, value) for name, value in given.items()}
            if self._change is not None:
                self._change(checked)
        except (RtmmsError, ValueError, TypeError) as fault:
            return answer | {"ok": False, "error": str(fault)[:500] or type(fault).__name__}
        self.values.update(checked)
        return answer | {"ok": True, "settable": self.values}

    def _checked(self, name: str, value: Any) -> Any:
        """Of the kind of the present one; ModelError."""
        if name not in self.values:
            raise UnknownNameError("parameter", str(name), self.values)
        present = self.values[name]
        if isinstance(present, bool):
            if not isinstance(value, bool):
                raise ModelError(f"{name}: expected true or false, got {value!r}")
        elif isinstance(present, (int, float)) or present is None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                if present is None and value in (None, "none"):
                    return None
                raise ModelError(f"{name}: expected a number, got {value!r}")
            if not isfinite(value):
                raise ModelError(f"{name}: expected a finite number, got {value}")
            if isinstance(present, float):
                return float(value)
        elif isinstance(present, str) and not isinstance(value, str):
            return str(value)  # a text of digits came as a number
        return value


_LOOK_S = 0.1
USUAL_S, STARTING_S = 5.0, 300.0
"""How long an answer is waited for, and that of a plant of this user's which is starting."""
_HELLO_AGAIN_S = 2.0
_HELLO_GAP_S = 8.0
_MEANWHILE_S = 0.02
_LINGER_MS = 200
_STREAMS = sys.platform == "linux"
"""Elsewhere sockets connect in other ways, and ZeroMQ knows them."""


@dataclass(frozen=True)
class Terms:
    """What a peer asks of a plant, and how it gets there. As in `rtmms.connect`.

    hello      all that it states of itself but the token, and the present values of what is settable
    token      the session's; None reads it from where the plant left it for this user
    meanwhile  called about every 20 ms while an answer is waited for
    libzmq     the data socket is ZeroMQ's, also where ours would do: to compare them
    """

    exchange: str
    hello: Hello
    token: str | None = None
    keys: ClientKeys | None = None
    meanwhile: Callable[[], None] | None = None
    libzmq: bool = False
    settable: Settable | None = None


class Attachment:
    """The sockets of one link to one plant.

    door   for hello and requests;  data  states and commands, or telemetry; there once `join` is done
    near   the plant is on this machine, so that its clock is ours
    note   receives each message that comes in at the exchange endpoint
    """

    def __init__(self, terms: Terms, note: Callable[[Mapping[str, Any]], None]) -> None:
        """Nothing is waited for. NotConnectedError for an endpoint that cannot be."""
        self.terms, self._note = terms, note
        self._shared = terms.exchange.startswith(INPROC)  # a plant in this program
        self._pack = packer()
        self.data: Dialled | None = None
        self.near = False
        self._identity = b""
        self.protocol = PROTOCOL
        self._closed = False
        self._dealers = Dealers(terms.keys, self._shared)
        try:
            self.exchange = self._dealers.exchange(terms.exchange)
        except BaseException:
            self._dealers.close()
            raise

    def join(self, timeout_s: float | None, watch_exchange: bool = False) -> PlantInfo:
        """Get in. NotConnectedError with the plant's reason, or if nobody answers in time; all is closed then.

        timeout_s        None: USUAL_S, and longer where a plant of this user is starting

        watch_exchange   a closed exchange connection counts as the plant's end: another plant may send telemetry then
        """
        try:
            welcome = self._greet(timeout_s)
            plant = read_welcome(welcome)
            self._listen(plant, welcome)
            self.exchange.welcomed(watch_exchange)
        except Refused as fault:
            self.close()
            raise NotConnectedError(f"what answers at '{self.terms.exchange}' is not a plant: {fault}") from None
        except BaseException:
            self.close()
            raise
        return plant

    def read_exchange(self) -> dict[str, Any] | None:
        """The next message at the exchange endpoint, if one is there."""
        received = self.exchange.next()
        if received is None:
            return None
        try:
            message = decode_from_plant(received[2])
        except Refused:
            return None
        self._note(message)
        return message

    def await_exchange(self, until_s: float) -> dict[str, Any] | None:
        """The next message at the exchange endpoint; None when none has come by then, or one that cannot be read."""
        return self.read_exchange() if self.exchange.wait(int(until_s * 1e9)) else None

    def send(self, frame: bytes, until_s: float) -> bool:
        """At the door, as soon as there is a plant; False when there is none by then."""
        while self.exchange.send(b"", frame) != SENT:
            if monotonic() >= until_s:
                return False
            sleep(0.005)
        return True

    def hello_again(self, until_s: float = 0.0) -> None:
        """On a door whose connection broke and came again: who this is. The answer is not waited for."""
        token = read_token(self.terms.exchange) if self.terms.token is None else self.terms.token
        self.send(self._hello(token), until_s)

    def watch(self) -> tuple[int, int]:
        """Descriptors to wait on: of the data, of the exchange endpoint."""
        assert self.data is not None
        return self.data.descriptor, self.exchange.descriptor

    def gone(self) -> bool:
        """The plant's end is closed, and stays so. A connection that broke is tried again here."""
        gone = False
        for end in (self.data, self.exchange):
            if end is not None:
                end.serve(monotonic_ns())
                gone = gone or end.gone()
        return gone

    def close(self, last: bytes | None = None) -> None:
        """Send a last message, if any, and close. Twice does nothing."""
        if self._closed:
            return
        self._closed = True
        for end in (self.exchange, self.data):
            if end is not None:
                if last is not None:
                    end.send(b"", last)
                end.close(_LINGER_MS)
        self._dealers.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _greet(self, timeout_s: float | None) -> dict[str, Any]:
        """Hello until welcome. A plant may still be starting: its token may be older than it, or not there yet."""
        terms, place, handshake = self.terms, self.terms.exchange, self.exchange.handshake
        assert handshake is not None
        patient, timeout_s = timeout_s is None, USUAL_S if timeout_s is None else timeout_s
        end = monotonic() + timeout_s
        again, gap = 0.0, _HELLO_AGAIN_S
        sent = ""
        while (now := monotonic()) < end or patient:
            if now >= end:  # once: a plant leaves its token and listens before it compiles
                patient = False
                handshake.look()
                if not (handshake.mute and read_token(place)):
                    break
                sys.stderr.write(f"rtmms: a plant is starting at '{place}', waiting for it\n")
                end, timeout_s = now + STARTING_S - USUAL_S, STARTING_S
            if handshake.look():
                raise NotConnectedError(f"the plant at '{place}' refused: {handshake.refused}", "key")
            if terms.meanwhile is not None:
                terms.meanwhile()
            if now >= again:
                sent = read_token(place) if terms.token is None else terms.token
                if self.exchange.send(b"", self._hello(sent)) != SENT:
                    sleep(0.01)
                    continue
                # A plant that compiles reads nothing for half a minute: hellos must not fill its queue.
                again, gap = monotonic() + gap, min(_HELLO_GAP_S, 2.0 * gap)
            look_s = _LOOK_S if terms.meanwhile is None else _MEANWHILE_S
            message = self.await_exchange(min(end, again, monotonic() + look_s))
            if message is None:
                continue
            if message["type"] == "welcome":
                if message.get("protocol") == 1:
                    self.protocol = 1
                return from_version(message, self.protocol)
            if message["type"] == "error":
                code, text = str(message.get("code", "")), str(message.get("text", ""))
                if code == "protocol" and self.protocol != 1:  # a plant of an older rtmms
                    self.protocol, again = 1, 0.0
                    continue
                if code == "token" and terms.token is None and read_token(place) != sent:
                    again = 0.0
                    continue
                if code == "token" and terms.token is None and terms.keys is None and not self._shared:
                    text += f"; {origin_of_token(place)}"
                raise NotConnectedError(f"the plant at '{place}' refused: {text}", code)
        raise self._nobody(handshake, timeout_s)

    def _nobody(self, handshake: Handshake, timeout_s: float) -> NotConnectedError:
        """The message when time is up."""
        place, hint = self.terms.exchange, handshake.hint()
        if hint:
            return NotConnectedError(f"no plant let us in at '{place}' within {timeout_s:g} s: {hint}", "key")
        why = MUTE if handshake.mute else "is one running (rtmms serve ROBOT)?"
        return NotConnectedError(f"no plant answered at '{place}' within {timeout_s:g} s; {why}")

    def _hello(self, token: str) -> bytes:
        settable = self.terms.settable.values if self.terms.settable is not None else {}
        hello = replace(
            self.terms.hello, token=token, identity=self._identity, settable=settable, protocol=self.protocol
        )
        return self._pack(hello_message(hello))

    def _listen(self, plant: PlantInfo, welcome: Mapping[str, Any]) -> None:
        """Where the states come: with keys, within a program and for telemetry by ZeroMQ."""
        terms, steps = self.terms, bool(plant.granted) or plant.ticks
        self._identity, step_endpoint, near, telemetry_endpoint = read_places(welcome)
        endpoint = seen_from(terms.exchange, step_endpoint if steps else telemetry_endpoint)
        self.near = endpoint.startswith(NEAR)
        if not steps:
            self.data = self._dealers.telemetry(endpoint, plant.topic.encode())
        elif not _STREAMS or terms.libzmq or terms.keys is not None or self._shared:
            self.data = self._dealers.data(endpoint, self._identity)
        else:
            try:
                self.data = self._stream(endpoint, near if nearest(terms.exchange, step_endpoint, near) else "")
            except (OSError, ValueError, OverflowError) as fault:
                why = getattr(fault, "strerror", None) or fault
                raise NotConnectedError(f"cannot connect to '{endpoint}': {why}") from None

    def _stream(self, endpoint: str, shorter: str) -> Dealer:
        """By the shorter way where there is one and somebody listens."""
        if shorter:
            dealer = Dealer(shorter, self._identity)
            if not dealer.broken:
                return dealer
            dealer.close()
        return Dealer(endpoint, self._identity)


# A peer's session with a plant: joining, requests and refusals at the exchange endpoint, and rejoining.


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
        self._printed: set[str] = set()
        self._raised: RefusedError | None = None

    def add(self, code: str, text: str) -> None:
        """The plant sent bye."""
        self.all.append((code, text))
        if self.how == RAISE:
            self._raised = self._raised or RefusedError(text, code)
        elif self.how == PRINT and code not in self._printed:
            self._printed.add(code)
            once = "printed once for each kind; link.errors has all"
            print_text(f"rtmms: the plant refused: {shown(text)} ({once})", err=True)

    def due(self) -> None:
        """Raise what is to be raised, once."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


def check_command(values: Mapping[str, Any], granted: Collection[str]) -> None:
    """Names that are this peer's to drive, and finite numbers; UnknownNameError, ModelError. What the plant would
    refuse, at the place of the mistake."""
    for name, value in values.items():
        if name not in granted:
            raise UnknownNameError("actuator of yours", str(name), granted)
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            raise ModelError(f"command: {name}: expected a finite number, got {value!r}")


_MOST_POSTED = 64

Done = Callable[[bool, Any], None]


class Requests:
    """Numbers the requests of one link and finds the one that an answer belongs to.

    A door whose connection broke and came again is a stranger's to the plant, which then answers `token`: hello is sent
    again there, with the identity that the plant gave.

    most   bytes of a request that the plant takes, as its welcome has it; 0 where it has none
    posted  callbacks of the answers that are still to come, by their ids
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
        if not at.send(frame, end):
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
                text = str(message.get("text"))
                if message.get("code") == "token" and at.terms.token is None and at.terms.keys is None:
                    text += f"; {origin_of_token(at.terms.exchange)}"
                raise RequestError(f"request '{op}': {text}")
            again = True
            self._introduce(at, op, end)
            at.send(frame, end)
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
        """A reply or an error has come at the exchange endpoint: the callback of its request is called."""
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
        "__dict__", "__weakref__", "_again_at", "_at", "_closed", "_figures", "_gap_s", "_link_figures", "_looked_at",
        "_pack", "_reconnect", "_refusals", "_requests", "_terms", "ended", "errors", "exchange", "lost", "name",
        "plant", "tunable_parameters",
    )  # fmt: skip

    def __init__(
        self, terms: Terms, timeout_s: float | None = 5.0, reconnect: bool = False, refusals: Refusals | None = None
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
        while not self._closed and self._at.read_exchange() is not None:
            pass  # a callback may close the link
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

    settable = Renamed("tunable_parameters")
    tell = Renamed("report_metrics")

    def report_metrics(self, figures: Mapping[str, Any]) -> None:
        """Numbers, flags and short texts of this peer, for the plant's report and `rtmms status`; the last ones count.
        ModelError for other values, or more than 16."""
        try:
            read_figures({"values": dict(figures)})
        except Refused as fault:
            raise ModelError(str(fault)) from None
        self._figures = dict(figures)
        self._send_figures()

    def _send_metrics(self, figures: Mapping[str, Any]) -> None:
        """Send figures of the link itself with those of the peer, as far as there is room for them."""
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
        """Send the plant, for its report, what a bridge knows of the silences and losses of its own peer.

        The last message counts. ModelError for a map that `read_watch` refuses.
        """
        try:
            read_watch({"watch": dict(watch)})
        except Refused as fault:
            raise ModelError(str(fault)) from None
        self._send_figures({"watch": dict(watch)})

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
