"""How a peer gets to a plant: hello at the door until the welcome, then the socket on which its states come."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

import zmq

from rtmms.wire.libzmq.dealer import ZmqData
from rtmms.wire.libzmq.handshake import MUTE, Handshake
from rtmms.wire.libzmq.presence import Presence
from rtmms.wire.peer.hearing import read_places, read_welcome
from rtmms.wire.places.endpoints import INPROC, seen_from, set_family
from rtmms.wire.places.keys import ClientKeys
from rtmms.wire.places.tokens import read_token
from rtmms.wire.protocol.codec import decode_from_plant, packer
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.messages import PROTOCOL, Refused
from rtmms.wire.protocol.state import PlantInfo
from rtmms.wire.stream.dealer import Data, DataLine, nearest

_NOW = zmq.NOBLOCK
_LOOK_S = 0.1
_HELLO_AGAIN_S = 2.0
_HELLO_GAP_S = 8.0
_MEANWHILE_MS = 20
_OWN_LINE = sys.platform == "linux"
"""Where the plant's step socket is its own, too; elsewhere sockets connect in other ways, and ZeroMQ knows them."""


@dataclass(frozen=True)
class Asked:
    """What a peer asks of a plant: the fields of its hello, and the keys it has. As in `rtmms.connect`.

    meanwhile  called about every 20 ms while an answer is waited for
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


class Connection:
    """The sockets of one link to one plant.

    door   for hello and requests;  data  states and commands, or telemetry; there once `join` is done
    note   is told each message that comes in at the door
    """

    def __init__(self, asked: Asked, note: Callable[[Mapping[str, Any]], None]) -> None:
        """Nothing is waited for. NotConnectedError for an endpoint that cannot be."""
        self.asked, self._note = asked, note
        self._shared = asked.exchange.startswith(INPROC)  # a plant in this program: in the program's own context
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance() if self._shared else zmq.Context()
        self._pack = packer()
        self.data: Data | None = None
        self._door_presence: Presence | None = None
        self._identity = b""
        self._closed = False
        self.door = self._socket(zmq.DEALER, asked.exchange)
        self._door_descriptor = int(self.door.getsockopt(zmq.FD))
        self._handshake = Handshake(self.door, asked.keys is not None)
        try:
            self.door.connect(asked.exchange)
        except zmq.ZMQError as fault:
            self.close()
            raise NotConnectedError(f"cannot connect to '{asked.exchange}': {fault}") from None

    def join(self, timeout_s: float, watch_door: bool = False) -> PlantInfo:
        """Get in. NotConnectedError with the plant's reason, or if nobody answers in time; all is closed then.

        watch_door   a door that closes counts as the plant's end, too: another plant may send telemetry in its place
        """
        try:
            welcome = self._greet(timeout_s)
            plant = read_welcome(welcome)
            self._handshake.close()
            self._listen(plant, welcome)
            self._door_presence = Presence(self.door) if watch_door else None
        except Refused as fault:
            self.close()
            raise NotConnectedError(f"what answers at '{self.asked.exchange}' is not a plant: {fault}") from None
        except zmq.ZMQError as fault:
            self.close()
            raise NotConnectedError(f"cannot connect to '{self.asked.exchange}': {fault}") from None
        except BaseException:
            self.close()
            raise
        return plant

    def hear_door(self) -> dict[str, Any] | None:
        """The next message at the door, if one is there."""
        try:
            message = decode_from_plant(self.door.recv_multipart(_NOW)[-1])
        except (zmq.Again, Refused):
            return None
        self._note(message)
        return message

    def hello_again(self) -> None:
        """On a door whose connection broke and came again: who this is. The answer is not waited for."""
        token = read_token(self.asked.exchange) if self.asked.token is None else self.asked.token
        with contextlib.suppress(zmq.Again):
            self.door.send(self._hello(token), _NOW)

    def watch(self) -> tuple[int, int]:
        """Descriptors to wait on: of the data, of the door."""
        assert self.data is not None
        return self.data.descriptor, self._door_descriptor

    def gone(self) -> bool:
        """The plant's end is closed, and stays so."""
        return any(end is not None and end.gone() for end in (self.data, self._door_presence))

    def close(self, last: bytes | None = None) -> None:
        """Send a last message, if any, and close. Twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self._handshake.close()
        if self._door_presence is not None:
            self._door_presence.close()
        if last is not None:
            with contextlib.suppress(zmq.ZMQError):  # it may be gone
                self.door.send(last, _NOW)
        if self.data is not None:
            self.data.close(last)
        self.door.close(linger=200)
        if not self._shared:
            self._context.term()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _socket(self, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 32)
        socket.setsockopt(zmq.SNDHWM, 32)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
        if kind == zmq.DEALER:
            socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is kept for a plant that is not there
        set_family(socket, endpoint)
        keys = self.asked.keys
        if keys is not None:
            socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server)
            socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
            socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
        return socket

    def _greet(self, timeout_s: float) -> dict[str, Any]:
        """Hello until welcome. A plant may still be starting: its token may be older than it, or not there yet."""
        asked, place = self.asked, self.asked.exchange
        end = monotonic() + timeout_s
        again, gap = 0.0, _HELLO_AGAIN_S
        sent = ""
        while monotonic() < end:
            if self._handshake.look():
                raise NotConnectedError(f"the plant at '{place}' refused: {self._handshake.refused}", "key")
            if asked.meanwhile is not None:
                asked.meanwhile()
            if monotonic() >= again:
                sent = read_token(place) if asked.token is None else asked.token
                try:
                    self.door.send(self._hello(sent), _NOW)
                except zmq.Again:
                    sleep(0.01)
                    continue
                # A plant that compiles reads nothing for half a minute: hellos must not fill its queue.
                again, gap = monotonic() + gap, min(_HELLO_GAP_S, 2.0 * gap)
            wait_ms = int(1e3 * min(_LOOK_S, min(end, again) - monotonic()))
            wait_ms = wait_ms if asked.meanwhile is None else min(wait_ms, _MEANWHILE_MS)
            if not self.door.poll(max(1, wait_ms)):
                continue
            message = self.hear_door()
            if message is None:
                continue
            if message["type"] == "welcome":
                return message
            if message["type"] == "error":
                code, text = str(message.get("code", "")), str(message.get("text", ""))
                if code == "token" and asked.token is None and read_token(place) != sent:
                    again = 0.0
                    continue
                raise NotConnectedError(f"the plant at '{place}' refused: {text}", code)
        hint = self._handshake.hint()
        if hint:
            raise NotConnectedError(f"no plant let us in at '{place}' within {timeout_s:g} s: {hint}", "key")
        why = MUTE if self._handshake.mute else "is one running (rtmms serve ROBOT)?"
        raise NotConnectedError(f"no plant answered at '{place}' within {timeout_s:g} s; {why}")

    def _hello(self, token: str) -> bytes:
        asked = self.asked
        hello = {"type": "hello", "protocol": PROTOCOL, "name": asked.name, "claim": list(asked.claim),
                 "outputs": list(asked.outputs), "token": token, "every": asked.every}  # fmt: skip
        more: dict[str, Any] = {"ticks": True} if asked.ticks else {}
        if self._identity:
            more["identity"] = self._identity
        return self._pack(hello | more)

    def _listen(self, plant: PlantInfo, welcome: Mapping[str, Any]) -> None:
        steps = bool(plant.granted) or plant.ticks
        identity, step_endpoint, near, telemetry_endpoint = read_places(welcome)
        self._identity = identity
        endpoint = seen_from(self.asked.exchange, step_endpoint if steps else telemetry_endpoint)
        if steps and _OWN_LINE and self.asked.keys is None and not self._shared:
            try:
                if nearest(self.asked.exchange, step_endpoint, near):
                    self.data = line = DataLine(near, identity)
                    if not line.broken:
                        return
                    line.close(None)
                self.data = DataLine(endpoint, identity)
            except (OSError, ValueError, OverflowError) as fault:
                why = getattr(fault, "strerror", None) or fault
                raise NotConnectedError(f"cannot connect to '{endpoint}': {why}") from None
            return
        socket = self._socket(zmq.DEALER if steps else zmq.SUB, endpoint)
        try:
            if steps:
                socket.setsockopt(zmq.ROUTING_ID, identity)
            else:
                socket.setsockopt(zmq.SUBSCRIBE, plant.robot.encode())
            self.data = ZmqData(socket, endpoint)
        except BaseException:
            socket.close(linger=0)  # or its context would wait for it for ever
            raise
