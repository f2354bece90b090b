"""How a peer gets to a plant: hello at the door until the welcome, then the socket on which its states come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic, monotonic_ns, sleep
from typing import Any

from rtmms.wire.libzmq.curve import ClientKeys
from rtmms.wire.libzmq.dealer import Dealers
from rtmms.wire.libzmq.handshake import MUTE, Handshake
from rtmms.wire.peer.hearing import read_places, read_welcome
from rtmms.wire.peer.settable import Settable
from rtmms.wire.places.endpoints import INPROC, NEAR, nearest, seen_from
from rtmms.wire.places.tokens import read_token
from rtmms.wire.protocol.codec import decode_from_plant, packer
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.messages import HOLD, PROTOCOL, Refused
from rtmms.wire.protocol.port import SENT, Dialled
from rtmms.wire.protocol.state import PlantInfo
from rtmms.wire.stream.dealer import Dealer

_LOOK_S = 0.1
_HELLO_AGAIN_S = 2.0
_HELLO_GAP_S = 8.0
_MEANWHILE_S = 0.02
_LINGER_MS = 200
_STREAMS = sys.platform == "linux"
"""Elsewhere sockets connect in other ways, and ZeroMQ knows them."""


@dataclass(frozen=True)
class Terms:
    """What a peer asks of a plant: the fields of its hello, and the keys it has. As in `rtmms.connect`.

    meanwhile  called about every 20 ms while an answer is waited for
    libzmq     the data socket is ZeroMQ's, also where ours would do: to compare them
    """

    exchange: str
    name: str
    claim: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    token: str | None = None
    every: int = 1
    ticks: bool = False
    keys: ClientKeys | None = None
    meanwhile: Callable[[], None] | None = None
    libzmq: bool = False
    delay: int = 0
    between: str = "hold"
    settable: Settable | None = None
    tracks: Mapping[str, Any] | None = None


class Attachment:
    """The sockets of one link to one plant.

    door   for hello and requests;  data  states and commands, or telemetry; there once `join` is done
    near   the plant is on this machine, so that its clock is ours
    note   is told each message that comes in at the door
    """

    def __init__(self, terms: Terms, note: Callable[[Mapping[str, Any]], None]) -> None:
        """Nothing is waited for. NotConnectedError for an endpoint that cannot be."""
        self.terms, self._note = terms, note
        self._shared = terms.exchange.startswith(INPROC)  # a plant in this program
        self._pack = packer()
        self.data: Dialled | None = None
        self.near = False
        self._identity = b""
        self._closed = False
        self._dealers = Dealers(terms.keys, self._shared)
        try:
            self.door = self._dealers.door(terms.exchange)
        except BaseException:
            self._dealers.close()
            raise

    def join(self, timeout_s: float, watch_door: bool = False) -> PlantInfo:
        """Get in. NotConnectedError with the plant's reason, or if nobody answers in time; all is closed then.

        watch_door   a door that closes counts as the plant's end, too: another plant may send telemetry in its place
        """
        try:
            welcome = self._greet(timeout_s)
            plant = read_welcome(welcome)
            self._listen(plant, welcome)
            self.door.welcomed(watch_door)
        except Refused as fault:
            self.close()
            raise NotConnectedError(f"what answers at '{self.terms.exchange}' is not a plant: {fault}") from None
        except BaseException:
            self.close()
            raise
        return plant

    def hear_door(self) -> dict[str, Any] | None:
        """The next message at the door, if one is there."""
        heard = self.door.next()
        if heard is None:
            return None
        try:
            message = decode_from_plant(heard[2])
        except Refused:
            return None
        self._note(message)
        return message

    def await_door(self, until_s: float) -> dict[str, Any] | None:
        """The next message at the door; None when none has come by then, or one that cannot be read."""
        return self.hear_door() if self.door.wait(int(until_s * 1e9)) else None

    def say(self, frame: bytes, until_s: float) -> bool:
        """At the door, as soon as there is a plant; False when there is none by then."""
        while self.door.send(b"", frame) != SENT:
            if monotonic() >= until_s:
                return False
            sleep(0.005)
        return True

    def hello_again(self, until_s: float = 0.0) -> None:
        """On a door whose connection broke and came again: who this is. The answer is not waited for."""
        token = read_token(self.terms.exchange) if self.terms.token is None else self.terms.token
        self.say(self._hello(token), until_s)

    def watch(self) -> tuple[int, int]:
        """Descriptors to wait on: of the data, of the door."""
        assert self.data is not None
        return self.data.descriptor, self.door.descriptor

    def gone(self) -> bool:
        """The plant's end is closed, and stays so. A connection that broke is tried again here."""
        gone = False
        for end in (self.data, self.door):
            if end is not None:
                end.serve(monotonic_ns())
                gone = gone or end.gone()
        return gone

    def close(self, last: bytes | None = None) -> None:
        """Send a last message, if any, and close. Twice does nothing."""
        if self._closed:
            return
        self._closed = True
        for end in (self.door, self.data):
            if end is not None:
                if last is not None:
                    end.send(b"", last)
                end.close(_LINGER_MS)
        self._dealers.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _greet(self, timeout_s: float) -> dict[str, Any]:
        """Hello until welcome. A plant may still be starting: its token may be older than it, or not there yet."""
        terms, place, handshake = self.terms, self.terms.exchange, self.door.handshake
        assert handshake is not None
        end = monotonic() + timeout_s
        again, gap = 0.0, _HELLO_AGAIN_S
        sent = ""
        while (now := monotonic()) < end:
            if handshake.look():
                raise NotConnectedError(f"the plant at '{place}' refused: {handshake.refused}", "key")
            if terms.meanwhile is not None:
                terms.meanwhile()
            if now >= again:
                sent = read_token(place) if terms.token is None else terms.token
                if self.door.send(b"", self._hello(sent)) != SENT:
                    sleep(0.01)
                    continue
                # A plant that compiles reads nothing for half a minute: hellos must not fill its queue.
                again, gap = monotonic() + gap, min(_HELLO_GAP_S, 2.0 * gap)
            look_s = _LOOK_S if terms.meanwhile is None else _MEANWHILE_S
            message = self.await_door(min(end, again, monotonic() + look_s))
            if message is None:
                continue
            if message["type"] == "welcome":
                return message
            if message["type"] == "error":
                code, text = str(message.get("code", "")), str(message.get("text", ""))
                if code == "token" and terms.token is None and read_token(place) != sent:
                    again = 0.0
                    continue
                raise NotConnectedError(f"the plant at '{place}' refused: {text}", code)
        raise self._nobody(handshake, timeout_s)

    def _nobody(self, handshake: Handshake, timeout_s: float) -> NotConnectedError:
        """What to say when time is up."""
        place, hint = self.terms.exchange, handshake.hint()
        if hint:
            return NotConnectedError(f"no plant let us in at '{place}' within {timeout_s:g} s: {hint}", "key")
        why = MUTE if handshake.mute else "is one running (rtmms serve ROBOT)?"
        return NotConnectedError(f"no plant answered at '{place}' within {timeout_s:g} s; {why}")

    def _hello(self, token: str) -> bytes:
        terms = self.terms
        hello = {"type": "hello", "protocol": PROTOCOL, "name": terms.name, "claim": list(terms.claim),
                 "outputs": list(terms.outputs), "token": token, "every": terms.every}  # fmt: skip
        more: dict[str, Any] = {"ticks": True} if terms.ticks else {}
        if terms.delay:
            more["delay"] = terms.delay
        if terms.settable:
            more["settable"] = terms.settable.values
        if terms.tracks:
            more["tracks"] = dict(terms.tracks)
        if terms.between != HOLD:
            more["between"] = terms.between
        if self._identity:
            more["identity"] = self._identity
        return self._pack(hello | more)

    def _listen(self, plant: PlantInfo, welcome: Mapping[str, Any]) -> None:
        """Where the states come: with keys, within a program and for telemetry by ZeroMQ."""
        terms, steps = self.terms, bool(plant.granted) or plant.ticks
        self._identity, step_endpoint, near, telemetry_endpoint = read_places(welcome)
        endpoint = seen_from(terms.exchange, step_endpoint if steps else telemetry_endpoint)
        self.near = endpoint.startswith(NEAR)
        if not steps:
            self.data = self._dealers.telemetry(endpoint, plant.robot.encode())
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
