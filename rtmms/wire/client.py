"""A peer's side of the wire: `connect` to a plant, iterate over its states, answer with commands."""

from __future__ import annotations

import contextlib
import itertools
import select
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from time import monotonic, sleep
from types import TracebackType
from typing import Any

import zmq

from rtmms.errors import ModelError
from rtmms.wire.codec import decode_from_plant, packer
from rtmms.wire.controller import Controller, run_controller
from rtmms.wire.endpoints import EXCHANGE, checked
from rtmms.wire.errors import NotConnectedError, RequestError
from rtmms.wire.messages import PROTOCOL, Refused
from rtmms.wire.presence import Presence
from rtmms.wire.state import AppliedCommand, PlantInfo, State, read_welcome
from rtmms.wire.tokens import read_token

__all__ = ["AppliedCommand", "Controller", "Link", "PlantInfo", "State", "connect", "run_controller"]

_NOW = zmq.NOBLOCK
_LOOK_S = 0.1
_HELLO_AGAIN_S = 2.0
_HELLO_GAP_S = 8.0
_MEANWHILE_MS = 20
GONE = "the plant is gone: its connection closed without a bye"


def connect(
    exchange: str = EXCHANGE,
    *,
    name: str = "python",
    claim: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    timeout_s: float = 5.0,
    token: str | None = None,
    every: int = 1,
    meanwhile: Callable[[], None] | None = None,
) -> Link:
    """Say hello to a plant and return the link.

    exchange   its exchange endpoint
    claim      actuators to drive, as names or patterns ('left.*'); none: an observer, which gets telemetry
    outputs    outputs to receive, likewise; none: all but fields such as the joints of every chain
    timeout_s  how long to wait for an answer
    token      the session's; None reads it from where the plant left it for this user
    every      of a claimant: get each every-th state only; between them the last command stands
    meanwhile  called about every 20 ms while waiting, by those who have other things to look after
    NotConnectedError if nobody answers in time, or if the plant refuses: its `code` says why (claim_held, token, ...).
    """
    return Link(
        checked(exchange, "exchange"),
        name,
        (claim,) if isinstance(claim, str) else tuple(claim),
        (outputs,) if isinstance(outputs, str) else tuple(outputs),
        timeout_s,
        token,
        every,
        meanwhile,
    )


class Link:
    """A connection to a plant: a context manager, and an iterator over its states that ends when the plant does.

    plant    PlantInfo
    ended    why there will be no more states; '' while there may be
    errors   the last messages of the plant about what it refused, as (code, text)
    dropped  commands that could not leave at once
    """

    def __init__(
        self,
        exchange: str,
        name: str,
        claim: tuple[str, ...],
        outputs: tuple[str, ...],
        timeout_s: float,
        token: str | None,
        every: int = 1,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        self.exchange, self.name = exchange, name
        self._every, self._meanwhile = every, meanwhile
        self.ended = ""
        self.errors: deque[tuple[str, str]] = deque(maxlen=32)
        self.dropped = 0
        self._seq = 0
        self._step = -1
        self._ids = itertools.count(1)
        self._pack = packer()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._door = self._socket(zmq.DEALER)
        self._data: zmq.Socket[bytes] | None = None
        self._presence: Presence | None = None
        self._closed = False
        try:
            self._door.connect(exchange)
            welcome = self._greet(claim, outputs, timeout_s, token)
            self.plant = read_welcome(welcome)
            self._outputs = outputs
            self._listen(welcome)
        except zmq.ZMQError as fault:
            self.close()
            raise NotConnectedError(f"cannot connect to '{exchange}': {fault}") from None
        except BaseException:
            self.close()
            raise

    # -- states and commands -----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[State]:
        return self

    def __next__(self) -> State:
        """The newest state; waits for one. Ends when the plant said bye or is gone: `ended` says which."""
        data = self._data
        watch = list(self.filenos()) if data is not None and not self._closed else []
        while watch and not self.ended:
            message = self._newest()
            if message is not None:
                self._step = message["step"]
                return State(message, self.plant)
            if self._over():
                break
            readable, _, _ = select.select(watch, (), (), _LOOK_S)
            if not readable or watch[1] in readable:
                self._look_around()  # at once: when the connection closes, ZeroMQ throws away what was not read
        self.ended = self.ended or "the link is closed"
        raise StopIteration

    def filenos(self) -> tuple[int, int]:
        """Two descriptors to select on beside others: of states, and of what is said at the door.

        ZeroMQ tells on them that something may have come, once: call `poll` until it gives None before each wait, also
        after a command; and `look_around` when the second one is readable, and every 0.1 s."""
        if self._data is None or self._closed:
            raise ModelError("this link is closed")
        return int(self._data.getsockopt(zmq.FD)), int(self._door.getsockopt(zmq.FD))

    def poll(self) -> State | None:
        """The newest state that is there, None for none; does not wait. `ended` tells when there will be no more."""
        if self._data is None or self._closed:
            self.ended = self.ended or "the link is closed"
            return None
        message = self._newest()
        if message is None:
            return None
        self._step = message["step"]
        return State(message, self.plant)

    def look_around(self) -> None:
        """Has something been said at the door, is the plant still there? For those who wait by themselves."""
        self._look_around()

    def post(self, op: str, args: Mapping[str, Any] | None = None) -> None:
        """A request whose answer nobody waits for: one who is to answer a state must not wait for what is done
        between steps. What the plant refuses is in `errors`."""
        message = {"type": "request", "id": next(self._ids), "op": op, "args": dict(args or {})}
        with contextlib.suppress(zmq.Again):
            self._door.send(self._pack(message), _NOW)

    def command(self, values: Mapping[str, float], step: int | None = None) -> None:
        """Actuator values for `step` (None: that of the last state). Never blocks.

        Actuators of yours that are not named hold. Values are checked by the plant: what it refuses is in `errors`.
        """
        if self._closed or self._data is None or not self.plant.granted:
            raise ModelError("this link drives nothing: it was made without a claim, or is closed")
        self._seq += 1
        message = {
            "type": "command",
            "seq": self._seq,
            "step": self._step if step is None else step,
            "values": values if type(values) is dict else dict(values),
        }
        try:
            frame = self._pack(message)
        except (TypeError, ValueError, OverflowError) as fault:
            raise ModelError(f"command: expected actuator names and numbers, got {values!r}: {fault}") from None
        try:
            try:
                self._data.send(frame, _NOW)
            except zmq.Again:
                self._data.getsockopt(zmq.EVENTS)  # makes libzmq look at what the plant has read since
                self._data.send(frame, _NOW)
        except zmq.Again:
            self.dropped += 1

    def request(self, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = 5.0) -> Any:
        """Ask the plant for something (reset, pause, resume, step, set, snapshot, restore, stop), done between steps.

        Returns its result; RequestError if it refuses or does not answer in time.
        """
        ident = next(self._ids)
        self._door.send(self._pack({"type": "request", "id": ident, "op": op, "args": dict(args or {})}))
        refused = len(self.errors)
        end = monotonic() + timeout_s
        while (left := end - monotonic()) > 0:
            if not self._door.poll(max(1, int(left * 1e3))):
                continue
            message = self._hear_door()
            if message is None:
                continue
            if message["type"] == "reply" and message.get("id") == ident:
                if message.get("ok"):
                    return message.get("result")
                raise RequestError(f"request '{op}': {message.get('error')}")
            if message["type"] == "error" and len(self.errors) > refused:
                raise RequestError(f"request '{op}': {self.errors[-1][1]}")
        raise RequestError(f"request '{op}': no answer within {timeout_s:g} s")

    def close(self, reason: str = "done", *, bye: bool = True) -> None:
        """Say bye, which frees the claim, and close. Twice does nothing.

        bye   False: go without a word, as a process that dies would. The claim stays, and the plant's miss policy acts.
        """
        if self._closed:
            return
        self._closed = True
        self.ended = self.ended or "the link is closed"
        last = self._pack({"type": "bye", "reason": reason}) if bye else None
        if self._presence is not None:
            self._presence.close()
        for socket in (self._data, self._door):
            if socket is None:
                continue
            if last is not None:
                with contextlib.suppress(zmq.ZMQError):  # it may be gone; and a subscriber's socket cannot send
                    socket.send(last, _NOW)
            socket.close(linger=200)
        self._context.term()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        # a controller that fails has not let go of its actuators: that is a death, not a farewell
        stopped = fault is None or isinstance(fault, KeyboardInterrupt | GeneratorExit)
        stopped = stopped or (isinstance(fault, SystemExit) and not fault.code)
        self.close("done" if kind is None else kind.__name__, bye=stopped)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 32)
        socket.setsockopt(zmq.SNDHWM, 32)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
        if kind == zmq.DEALER:
            socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is kept for a plant that is not there
        return socket

    def _greet(
        self, claim: tuple[str, ...], outputs: tuple[str, ...], timeout_s: float, token: str | None
    ) -> dict[str, Any]:
        """Hello until welcome. A plant may still be starting: its token may be older than it, or not there yet."""
        end = monotonic() + timeout_s
        again, gap = 0.0, _HELLO_AGAIN_S
        sent = ""
        while monotonic() < end:
            if self._meanwhile is not None:
                self._meanwhile()
            if monotonic() >= again:
                sent = read_token(self.exchange) if token is None else token
                hello = {"type": "hello", "protocol": PROTOCOL, "name": self.name, "claim": list(claim),
                         "outputs": list(outputs), "token": sent, "every": self._every}  # fmt: skip
                try:
                    self._door.send(self._pack(hello), _NOW)
                except zmq.Again:
                    sleep(0.01)
                    continue
                # A plant that compiles reads nothing for half a minute: hellos must not fill its queue.
                again, gap = monotonic() + gap, min(_HELLO_GAP_S, 2.0 * gap)
            wait_ms = int(1e3 * (min(end, again) - monotonic()))
            wait_ms = wait_ms if self._meanwhile is None else min(wait_ms, _MEANWHILE_MS)
            if not self._door.poll(max(1, wait_ms)):
                continue
            message = self._hear_door()
            if message is None:
                continue
            if message["type"] == "welcome":
                return message
            if message["type"] == "error":
                code, text = str(message.get("code", "")), str(message.get("text", ""))
                if code == "token" and token is None and read_token(self.exchange) != sent:
                    again = 0.0
                    continue
                raise NotConnectedError(f"the plant at '{self.exchange}' refused: {text}", code)
        raise NotConnectedError(
            f"no plant answered at '{self.exchange}' within {timeout_s:g} s; is one running (rtmms serve ROBOT)?"
        )

    def _listen(self, welcome: Mapping[str, Any]) -> None:
        if self.plant.granted:
            self._data = self._socket(zmq.DEALER)
            self._data.setsockopt(zmq.ROUTING_ID, welcome["identity"])
            endpoint = welcome["step_endpoint"]
        else:
            self._data = self._socket(zmq.SUB)
            self._data.setsockopt(zmq.SUBSCRIBE, self.plant.robot.encode())
            endpoint = welcome["telemetry_endpoint"]
        self._presence = Presence(self._data)
        self._data.connect(str(endpoint))
        self._look_around()  # ZeroMQ signals on a descriptor only after a read that found nothing

    def _newest(self) -> dict[str, Any] | None:
        """Read all that is there and keep the newest state: one that slept must not answer a backlog."""
        assert self._data is not None
        newest = None
        while True:
            try:
                frames = self._data.recv_multipart(_NOW)
            except zmq.Again:
                return newest
            try:
                message = decode_from_plant(frames[-1])
                kind = message["type"]
                if kind in ("state", "telemetry"):
                    if message["step"] >= 0:
                        newest = self._mine(message) if kind == "telemetry" else message
                    elif self.plant.granted:
                        self.command({}, message["step"])  # a warm-up state: no affair of the user's
                else:
                    self._note(message)
            except (Refused, KeyError, TypeError) as fault:
                self.errors.append(("garbled", f"a message of the plant cannot be read: {fault}"))
            if self._presence is not None:
                self._presence.heard()

    def _over(self) -> bool:
        return bool(self.ended)

    def _mine(self, message: dict[str, Any]) -> dict[str, Any]:
        """Telemetry carries everything; an observer sees what it asked for."""
        if self._outputs:
            message["outputs"] = {
                name: value
                for name, value in message["outputs"].items()
                if any(fnmatchcase(name, pattern) for pattern in self._outputs)
            }
        return message

    def _note(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "bye":
            self.ended = f"the plant said bye: {message.get('reason', '')}"
        elif message["type"] == "error":
            self.errors.append((str(message.get("code", "")), str(message.get("text", ""))))

    def _hear_door(self) -> dict[str, Any] | None:
        try:
            message = decode_from_plant(self._door.recv_multipart(_NOW)[-1])
        except (zmq.Again, Refused):
            return None
        self._note(message)
        return message

    def _look_around(self) -> None:
        """Nothing has come for a while: has something been said at the door, is the plant still there?"""
        while self._hear_door() is not None:
            pass
        if not self.ended and self._presence is not None and self._presence.gone():
            self.ended = GONE
