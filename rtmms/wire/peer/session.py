"""Session of a peer with a plant: hello, welcome, requests, refusals, and rejoining."""

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
from rtmms.wire.endpoints.addresses import INPROC, LOCAL_PREFIXES, nearest, seen_from
from rtmms.wire.endpoints.session_files import origin_of_token, read_token
from rtmms.wire.libzmq.key_pairs import ClientKeys
from rtmms.wire.libzmq.peer_sockets import MUTE, Dealers, Handshake
from rtmms.wire.peer.decode import read_places, read_welcome
from rtmms.wire.protocol.errors import NotConnectedError, RefusedError, RequestError
from rtmms.wire.protocol.hello import Hello, hello_message
from rtmms.wire.protocol.limits import MAX_EXCHANGE_BYTES, MAX_METRICS
from rtmms.wire.protocol.messages import PROTOCOL, Refusal, decode_from_plant, from_version, in_version, packer
from rtmms.wire.protocol.peer_values import read_figures, read_settable, read_watch
from rtmms.wire.protocol.port import SENT, ConnectedSocket
from rtmms.wire.protocol.state import PlantInfo
from rtmms.wire.stream.dealer import Dealer

# How a peer joins a plant: hello at the exchange endpoint until the welcome, then the socket for its states.


Change = Callable[[dict[str, Any]], None]


class TunableParameters:
    """Tunable parameters of a link; `values` has the present ones.

    Parameters
    ----------
    values : Mapping[str, Any]
        First values by name: numbers, flags, texts or None.
    change : Change | None, optional
        Receives new values before they count, and may refuse them by ModelError or ValueError.

    Raises
    ------
    ModelError
        If a value has another type.

    Examples
    --------
    >>> parameters = TunableParameters({"gain": 2.0})
    >>> parameters.take({"id": 1, "values": {"gain": 3.0}})["ok"]
    True
    >>> parameters.values
    {'gain': 3.0}
    """

    def __init__(self, values: Mapping[str, Any], change: Change | None = None) -> None:
        self.values = dict(values)
        self._change = change
        try:
            read_settable({"settable": self.values})
        except Refusal as fault:
            raise ModelError(f"tunable_parameters: {str(fault).removeprefix('settable').lstrip(': ')}") from None

    def __bool__(self) -> bool:
        """Return whether there are any parameters."""
        return bool(self.values)

    def take(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a plant's message `parameters`.

        The new values count if the answer confirms them.

        Parameters
        ----------
        message : Mapping[str, Any]
            The plant's message.

        Returns
        -------
        dict[str, Any]
            The answer.
        """
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
        """Return a value in the type of the present one; ModelError if it has another."""
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
            return str(value)  # the command line made a number of a text of digits
        return value


_CHECK_S = 0.1
ANSWER_TIMEOUT_S = 5.0
"""Time to wait for an answer, s."""
STARTING_TIMEOUT_S = 300.0
"""Time to wait for the answer of a plant of this user that is starting, s."""
_HELLO_RETRY_S = 2.0
_MAX_HELLO_RETRY_S = 8.0
_BACKGROUND_CHECK_S = 0.02
_LINGER_MS = 200
_STREAMS = sys.platform == "linux"
"""Whether the data socket is our own stream; other platforms connect in other ways, which ZeroMQ handles."""


@dataclass(frozen=True)
class PeerRequests:
    """Requests of a peer, and its way to the plant, as in `rtmms.connect`.

    Parameters
    ----------
    exchange : str
        The plant's exchange endpoint.
    hello : Hello
        The peer's hello without the token and the present values of tunable parameters.
    token : str | None, optional
        The session's token. None reads it from the file that the plant left for this user.
    keys : ClientKeys | None, optional
        Keys of the peer; None for a plant that requires none.
    meanwhile : Callable[[], None] | None, optional
        Called about every 20 ms while waiting for an answer.
    libzmq : bool, default False
        Whether the data socket is always ZeroMQ's, for comparisons.
    settable : TunableParameters | None, optional
        Tunable parameters; None for none.
    """

    exchange: str
    hello: Hello
    token: str | None = None
    keys: ClientKeys | None = None
    meanwhile: Callable[[], None] | None = None
    libzmq: bool = False
    settable: TunableParameters | None = None


class Attachment:
    """Sockets of one link to one plant.

    Parameters
    ----------
    terms : PeerRequests
        Requests of the peer.
    note : Callable[[Mapping[str, Any]], None]
        Receives each message at the exchange endpoint.

    Attributes
    ----------
    exchange : Dealer
        Socket for hello and requests.
    data : ConnectedSocket or None
        Socket for states and commands, or telemetry; None before `join`.
    near : bool
        Whether the plant is on this machine, so that its clock is ours.

    Raises
    ------
    NotConnectedError
        If the endpoint is invalid.
    """

    def __init__(self, terms: PeerRequests, note: Callable[[Mapping[str, Any]], None]) -> None:
        """Create the exchange socket without waiting."""
        self.terms, self._note = terms, note
        self._shared = terms.exchange.startswith(INPROC)  # a plant in this program
        self._pack = packer()
        self.data: ConnectedSocket | None = None
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
        """Send a hello, and wait for the welcome.

        Parameters
        ----------
        timeout_s : float | None
            Longest wait, s. None: ANSWER_TIMEOUT_S, and longer while a plant of this user is starting.
        watch_exchange : bool, default False
            Whether a closed exchange connection counts as the plant's end, because another plant may send telemetry
            then.

        Returns
        -------
        PlantInfo
            The plant.

        Raises
        ------
        NotConnectedError
            If the plant refuses, or if nobody answers in time. Then all is closed.
        """
        try:
            welcome = self._greet(timeout_s)
            plant = read_welcome(welcome)
            self._listen(plant, welcome)
            self.exchange.welcomed(watch_exchange)
        except Refusal as fault:
            self.close()
            raise NotConnectedError(
                f"the program at '{self.terms.exchange}' is not a plant of rtmms: {fault}"
            ) from None
        except BaseException:
            self.close()
            raise
        return plant

    def read_exchange(self) -> dict[str, Any] | None:
        """Return the next message at the exchange endpoint without waiting.

        Returns
        -------
        dict[str, Any] | None
            None if there is none.
        """
        received = self.exchange.next()
        if received is None:
            return None
        try:
            message = decode_from_plant(received[2])
        except Refusal:
            return None
        self._note(message)
        return message

    def await_exchange(self, until_s: float) -> dict[str, Any] | None:
        """Wait for the next message at the exchange endpoint.

        Parameters
        ----------
        until_s : float
            End of the wait, monotonic time, s.

        Returns
        -------
        dict[str, Any] | None
            None if no readable message has come.
        """
        return self.read_exchange() if self.exchange.wait(int(until_s * 1e9)) else None

    def send(self, frame: bytes, until_s: float) -> bool:
        """Send a message at the exchange endpoint as soon as there is a plant.

        Parameters
        ----------
        frame : bytes
            The packed message.
        until_s : float
            End of the wait, monotonic time, s.

        Returns
        -------
        bool
            False if there is no plant by then.
        """
        while self.exchange.send(b"", frame) != SENT:
            if monotonic() >= until_s:
                return False
            sleep(0.005)
        return True

    def hello_again(self, until_s: float = 0.0) -> None:
        """Introduce the peer on a new connection to the exchange endpoint, without waiting for the answer.

        Parameters
        ----------
        until_s : float, default 0.0
            End of the wait for the plant, monotonic time, s.
        """
        token = read_token(self.terms.exchange) if self.terms.token is None else self.terms.token
        self.send(self._hello(token), until_s)

    def watch(self) -> tuple[int, int]:
        """Return the descriptors to wait on.

        Returns
        -------
        tuple[int, int]
            Descriptors of the data and of the exchange endpoint.
        """
        assert self.data is not None
        return self.data.descriptor, self.exchange.descriptor

    def gone(self) -> bool:
        """Return whether the plant's end is closed for good.

        The call tries broken connections again.

        Returns
        -------
        bool
            True if it is.
        """
        gone = False
        for end in (self.data, self.exchange):
            if end is not None:
                end.serve(monotonic_ns())
                gone = gone or end.gone()
        return gone

    def close(self, last: bytes | None = None) -> None:
        """Send a last message, and close; a second call does nothing.

        Parameters
        ----------
        last : bytes | None, optional
            The packed message; None for none.
        """
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
        """Send hellos until the welcome.

        A starting plant's token file may be older than the plant, or not exist yet.
        """
        terms, place, handshake = self.terms, self.terms.exchange, self.exchange.handshake
        assert handshake is not None
        patient, timeout_s = timeout_s is None, ANSWER_TIMEOUT_S if timeout_s is None else timeout_s
        end = monotonic() + timeout_s
        again, gap = 0.0, _HELLO_RETRY_S
        sent = ""
        while (now := monotonic()) < end or patient:
            if now >= end:  # once: a plant leaves its token and listens before it compiles
                patient = False
                handshake.look()
                if not (handshake.mute and read_token(place)):
                    break
                sys.stderr.write(f"rtmms: a plant is starting at '{place}', waiting for it\n")
                end, timeout_s = now + STARTING_TIMEOUT_S - ANSWER_TIMEOUT_S, STARTING_TIMEOUT_S
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
                again, gap = monotonic() + gap, min(_MAX_HELLO_RETRY_S, 2.0 * gap)
            look_s = _CHECK_S if terms.meanwhile is None else _BACKGROUND_CHECK_S
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
        """Return the error after the time-out."""
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
        """Open the data socket; with keys, within a program, and for telemetry it is ZeroMQ's."""
        terms, steps = self.terms, bool(plant.granted) or plant.ticks
        self._identity, step_endpoint, near, telemetry_endpoint = read_places(welcome)
        endpoint = seen_from(terms.exchange, step_endpoint if steps else telemetry_endpoint)
        self.near = endpoint.startswith(LOCAL_PREFIXES)
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
        """Return a stream on the local socket if a plant listens there, else on the endpoint."""
        if shorter:
            dealer = Dealer(shorter, self._identity)
            if not dealer.broken:
                return dealer
            dealer.close()
        return Dealer(endpoint, self._identity)


# A peer's session with a plant: joining, requests and refusals at the exchange endpoint, and rejoining.


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
            print_text(f"rtmms: the plant refused: {shown(text)} ({once})", err=True)

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
    most : int
        Most bytes of a request, as the welcome states it; 0 for none.
    posted : dict
        Callbacks of pending answers by id.
    """

    def __init__(self) -> None:
        self.most = 0
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
        if 0 < self.most < len(frame):
            raise RequestError(
                f"request '{op}': expected at most {self.most} bytes, which this plant accepts, got {len(frame)}"
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
        self._requests.most = self.plant.request_bytes

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
