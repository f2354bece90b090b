"""Attachment of a peer to a plant: hello at the exchange endpoint until the welcome, then the socket for its states."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from time import monotonic, monotonic_ns, sleep
from typing import Any

from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.wire.addresses import INPROC, LOCAL_PREFIXES, nearest, seen_from
from rtmms.wire.libzmq.key_pairs import ClientKeys
from rtmms.wire.libzmq.peer_sockets import MUTE, Dealers, Handshake
from rtmms.wire.peer.decode import read_places, read_welcome
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.hello import Hello, hello_message
from rtmms.wire.protocol.messages import PROTOCOL, Refusal, decode_from_plant, from_version, packer
from rtmms.wire.protocol.peer_values import read_settable
from rtmms.wire.protocol.port import SENT, ConnectedSocket
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.wire.session_files import origin_of_token, read_token
from rtmms.wire.stream.dealer import Dealer

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
            values = message.get("values")
            if type(values) is not dict:
                raise ModelError("values: expected a map")
            checked = {name: self._checked(name, value) for name, value in values.items()}
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
            return NotConnectedError(f"no plant admitted this peer at '{place}' within {timeout_s:g} s: {hint}", "key")
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
