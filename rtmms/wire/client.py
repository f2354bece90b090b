"""A peer's side of the wire: `connect` to a plant, iterate over its states, answer with commands."""

from __future__ import annotations

import contextlib
import itertools
import select
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
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
GONE = "the plant is gone: its connection closed without a bye"


def connect(
    exchange: str = EXCHANGE,
    *,
    name: str = "python",
    claim: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    timeout_s: float = 5.0,
    token: str | None = None,
    ticks: bool = False,
) -> Link:
    """Say hello to a plant and return the link.

    exchange   its exchange endpoint
    claim      actuators to drive, as names or patterns ('left.*'); none: an observer, which gets telemetry
    outputs    outputs to receive, likewise; none: all but fields such as the joints of every chain
    timeout_s  how long to wait for an answer
    token      the session's; None reads it from where the plant left it for this user
    ticks      ask to be the one whose `link.tick()` starts each step, in the mode external
    NotConnectedError if nobody answers in time, or if the plant refuses: its `code` says why (claim_held, token, ...).
    """
    return Link(
        checked(exchange, "exchange"),
        name,
        (claim,) if isinstance(claim, str) else tuple(claim),
        (outputs,) if isinstance(outputs, str) else tuple(outputs),
        timeout_s,
        token,
        ticks,
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
        ticks: bool = False,
    ) -> None:
        self.exchange, self.name = exchange, name
        self.ended = ""
        self.errors: deque[tuple[str, str]] = deque(maxlen=32)
        self.dropped = 0
        self._seq = self._tick_seq = 0
        self._waiting: State | None = None
        self._warm = False
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
            welcome = self._greet(claim, outputs, timeout_s, token, ticks)
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
        watch = self._watch
        while watch and not self.ended:
            state = self._take()
            if state is not None:
                return state
            if self._over():
                break
            readable, _, _ = select.select(watch, (), (), _LOOK_S)
            if not readable:
                self._look_around()
        self.ended = self.ended or "the link is closed"
        raise StopIteration

    def command(self, values: Mapping[str, float], step: int | None = None) -> None:
        """Actuator values for `step` (None: that of the last state). Never blocks.

        Actuators of yours that are not named hold. Values are checked by the plant: what it refuses is in `errors`.
        """
        if self._closed or not self.plant.granted:
            raise ModelError("this link drives nothing: it was made without a claim, or is closed")
        self._command(values, self._step if step is None else step)

    def tick(self, timeout_s: float = 5.0) -> None:
        """Start the plant's next step (mode external). The first call waits until the plant has admitted this link.

        States that come meanwhile are kept, the newest of them, for the iteration. ModelError for a link that was made
        with neither `ticks` nor a claim, or is closed; NotConnectedError if the plant is gone, or does not admit it.
        """
        if self._closed or not (self.plant.ticks or self.plant.granted):
            raise ModelError("this link cannot tick: it was made with neither ticks nor a claim, or is closed")
        end = monotonic() + timeout_s
        self._waiting = self._take() or self._waiting
        while not self._warm and not self.ended and monotonic() < end:
            select.select(self._watch, (), (), _LOOK_S)
            self._look_around()
            self._waiting = self._take() or self._waiting
        if self.ended or not self._warm:
            raise NotConnectedError(f"tick: {self.ended or f'not admitted within {timeout_s:g} s'}")
        self._tick_seq += 1
        self._send(self._pack({"type": "tick", "seq": self._tick_seq}))

    def _take(self) -> State | None:
        """The newest state that is there, or was put aside by a tick."""
        message, waiting, self._waiting = self._newest(), self._waiting, None
        if message is None:
            return waiting
        self._step = message["step"]
        return State(message, self.plant)

    @property
    def _watch(self) -> list[Any]:
        return [self._data.getsockopt(zmq.FD)] if self._data is not None and not self._closed else []

    def _command(self, values: Mapping[str, float], step: int) -> None:
        self._seq += 1
        message = {
            "type": "command",
            "seq": self._seq,
            "step": step,
            "values": values if type(values) is dict else dict(values),
        }
        try:
            frame = self._pack(message)
        except (TypeError, ValueError, OverflowError) as fault:
            raise ModelError(f"command: expected actuator names and numbers, got {values!r}: {fault}") from None
        self._send(frame)

    def _send(self, frame: bytes) -> None:
        assert self._data is not None
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
        self, claim: tuple[str, ...], outputs: tuple[str, ...], timeout_s: float, token: str | None, ticks: bool
    ) -> dict[str, Any]:
        """Hello until welcome. A plant may still be starting: its token may be older than it, or not there yet."""
        end = monotonic() + timeout_s
        again, gap = 0.0, _HELLO_AGAIN_S
        sent = ""
        while monotonic() < end:
            if monotonic() >= again:
                sent = read_token(self.exchange) if token is None else token
                hello = {"type": "hello", "protocol": PROTOCOL, "name": self.name, "claim": list(claim),
                         "outputs": list(outputs), "token": sent}  # fmt: skip
                hello |= {"ticks": True} if ticks else {}
                try:
                    self._door.send(self._pack(hello), _NOW)
                except zmq.Again:
                    sleep(0.01)
                    continue
                # A plant that compiles reads nothing for half a minute: hellos must not fill its queue.
                again, gap = monotonic() + gap, 2.0 * gap
            wait_ms = int(1e3 * (min(end, again) - monotonic()))
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
        if self.plant.granted or self.plant.ticks:
            self._data = self._socket(zmq.DEALER)
            self._data.setsockopt(zmq.ROUTING_ID, welcome["identity"])
            endpoint = welcome["step_endpoint"]
        else:
            self._data = self._socket(zmq.SUB)
            self._data.setsockopt(zmq.SUBSCRIBE, self.plant.robot.encode())
            endpoint = welcome["telemetry_endpoint"]
        self._presence = Presence(self._data)
        self._data.connect(str(endpoint))

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
                    elif kind == "state":
                        self._command({}, message["step"])  # a warm-up state: no affair of the user's
                        self._warm = self._warm or message["step"] == -1
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
