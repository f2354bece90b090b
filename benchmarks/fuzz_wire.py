"""What of the wire is fuzzed, by name: each as (read, samples), see benchmarks/fuzz.py and docs/fuzzing.md.

Each `read` is the code that a run uses, from the bytes on; only the socket is ours.
"""

from __future__ import annotations

import contextlib
import math
import random
import struct
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

import numpy as np
import zmq

from rtmms.errors import ModelError
from rtmms.plant import Channel
from rtmms.wire.endpoints.addresses import nearest, seen_from
from rtmms.wire.libzmq.server_sockets import Router, read_question
from rtmms.wire.peer.decode import read_message, read_places, read_welcome
from rtmms.wire.plant.handshake import HandshakePort
from rtmms.wire.plant.message_layouts import CommandPattern
from rtmms.wire.plant.peer import WARM, Peer
from rtmms.wire.plant.peers import Peers
from rtmms.wire.plant.selection import Selection, select
from rtmms.wire.plant.step_port import StepPort
from rtmms.wire.protocol.codec import decode, decode_from_plant, packer
from rtmms.wire.protocol.limits import COMMAND_BYTES, EXCHANGE_BYTES
from rtmms.wire.protocol.message_layout import numbers
from rtmms.wire.protocol.messages import PROTOCOL, Hello, Refused, channel_map
from rtmms.wire.protocol.port import GARBLED, MESSAGE, SENT, Guests, Heard
from rtmms.wire.protocol.state import State
from rtmms.wire.stream.zmtp import GREETING, Reader, ZmtpError, encoded, ready

Parser = tuple[Callable[[bytes], object], list[bytes]]

MOST_FRAMES = 40
RODS = ("left.front", "left.back", "right.front", "right.back")
ACTUATORS = tuple(Channel(name, "rad", lower=-1.2, upper=1.2) for name in RODS)
OUTPUTS = (Channel("position", "m", (3,), "world"), Channel("speed", "m/s"), Channel("joint_angle", "rad", (1, 3, 5)))

_HELLO = {"type": "hello", "protocol": PROTOCOL, "name": "fuzz", "claim": ["left.*", "right.back"],
          "outputs": ["speed", "pos*"], "token": "secret", "every": 2, "ticks": True}  # fmt: skip
_COMMAND = {"type": "command", "seq": 7, "step": 3, "values": dict.fromkeys(RODS[:2], 0.25)}
_STATE = {
    "type": "state", "step": 4, "timestamp": 0.004, "deadline_ns": 10**15, "budget_ns": 500_000,
    "outputs": {"position": [0.0, 1.0, 2.0], "speed": 0.5},
    "applied": {"seq": 3, "step": 3, "lateness_ns": -2000, "policy": "", "clamped": False},
}  # fmt: skip
_WELCOME = {
    "type": "welcome", "protocol": PROTOCOL, "session": "5e", "identity": b"\x01" * 16, "robot": "toy", "dt": 1e-3,
    "mode": "realtime", "period_s": 1e-3, "deadline_s": 5e-4, "granted": list(RODS[:2]), "seed": 0,
    "step_endpoint": "tcp://127.0.0.1:9871", "telemetry_endpoint": "tcp://0.0.0.0:9872", "selected": ["speed"],
    "actuators": [channel_map(channel) for channel in ACTUATORS], "outputs": [channel_map(c) for c in OUTPUTS],
    "parameters": {"r1": 0.2, "body": "free"},
}  # fmt: skip
_REQUESTS: list[dict[str, Any]] = [
    {"type": "request", "id": 1, "op": op, "args": args}
    for op, args in (("reset", {"seed": 3}), ("pause", {}), ("step", {"count": 2}), ("set", {"current": [0.1, 0.0]}),
                     ("restore", {"state": "AAAA"}), ("stop", None))
]  # fmt: skip
_BYE = {"type": "bye", "reason": "done"}
_ERROR = {"type": "error", "code": "seq", "text": "command: seq must rise"}


def _packed(*messages: dict[str, Any]) -> list[bytes]:
    pack = packer()
    return [bytes(pack(message)) for message in messages]


class FakeSocket:
    """A ROUTER that hands out what it is given and swallows what it is told: frames in, without the network."""

    def __init__(self) -> None:
        self._messages: deque[list[bytes]] = deque()
        self._rest: list[bytes] = []

    def put(self, *frames: bytes) -> None:
        self._messages.append(list(frames))

    def recv(self, flags: int = 0, copy: bool = True) -> bytes:
        if not self._rest:
            if not self._messages:
                raise zmq.Again
            self._rest = self._messages.popleft()
        return self._rest.pop(0)

    def recv_multipart(self, flags: int = 0) -> list[bytes]:
        frames = [self.recv()]
        while self._rest:
            frames.append(self.recv())
        return frames

    def getsockopt(self, option: int) -> int:
        if option == zmq.FD:
            return 0
        if option == zmq.EVENTS:
            return int(zmq.POLLIN if self._rest or self._messages else 0) | int(zmq.POLLOUT)
        return bool(self._rest) if option == zmq.RCVMORE else 0

    def send(self, frame: bytes, flags: int = 0) -> None:
        pass


class FakeStep:
    """An Answering that does the same."""

    threaded = False

    def __init__(self) -> None:
        self._messages: deque[Heard] = deque()

    def put(self, identity: bytes, frame: bytes, *more: bytes) -> None:
        self._messages.append((identity, GARBLED if more else MESSAGE, frame, None))

    def attend(self, guests: Guests, cap: int) -> None: ...

    def next(self) -> Heard | None:
        return self._messages.popleft() if self._messages else None

    def send(self, who: bytes, frame: bytes) -> int:
        return SENT

    def arm(self, instant_ns: int) -> None: ...

    def wait(self, until_ns: int) -> bool:
        return bool(self._messages)

    def serve(self, until_ns: int) -> None: ...

    def connected(self, who: bytes) -> bool | None:
        return None

    def close(self, linger_ms: int = 0) -> None: ...


def codec() -> Parser:
    """The decoder alone."""

    def read(frame: bytes) -> str:
        try:
            decode(frame, COMMAND_BYTES)
        except Refused as refusal:
            return refusal.code
        return "message"

    return read, _packed(_HELLO, _COMMAND, _STATE, _BYE, *_REQUESTS)


def step() -> Parser:
    """The step socket: commands, ticks and byes of a peer that drives, between the steps of a loop."""
    peers = Peers(ACTUATORS)
    socket = FakeStep()
    port = StepPort(socket, peers, ACTUATORS, free=False, behind_steps=500, external=True)
    command, outputs = np.zeros(len(ACTUATORS)), {"position": np.zeros(3), "speed": np.zeros(())}
    now, seen = [0, 0], [0]
    first = Selection(OUTPUTS[1:2])
    for _ in range(2):  # the second one is written in place: compiled by now, and no affair of the first frame
        first.packed(0, 0.0, 0, 0, outputs, port.applied)

    def join() -> Peer:
        hello = Hello("fuzz", ("left.*",), ("speed",), "secret")
        peer = peers.welcome(hello, b"door", Selection(OUTPUTS[1:2]), 0)
        peer.on(WARM)
        peers.admit(peer)
        return peer

    def read(frame: bytes) -> str:
        peer = peers.claimants[0] if peers.claimants else join()
        if seen[0] % 16 == 0:
            if seen[0] % 65536 == 0:
                now[0], peer.seq = 0, -1
                port.rejected.clear()
            now[0] += 1
            port.publish(now[0] % 1000, 0.0, 0, 0, outputs, port.applied)
            if now[0] % 8 == 0:
                peer.seq = -1
        seen[0] += 1
        before, refused = peer.seq, peer.rejected
        socket.put(peer.identity, *((frame, frame) if seen[0] % 97 == 0 else (frame,)))
        port.collect(now[0] % 1000, command, 0 if seen[0] % 3 == 0 else 1)
        port.read_in_slack(1 << 62)
        peer.error = peer.error or ("", "", "")
        code, peer.error = peer.error[0], None
        if port.ticks is not None and seen[0] % 64 == 0:
            port.ticks.drop()
        if peer.rejected > refused and peer.seq != before:
            raise AssertionError(f"a refused message ({code}) counted: seq {before} became {peer.seq}")
        if not (np.isfinite(command).all() and (np.abs(command) <= 1.2).all() and (command[2:] == 0.0).all()):
            raise AssertionError(f"a value got through that must not: {command}")
        return code or "taken"

    near = [_COMMAND | {"seq": seq, "step": step} for seq, step in ((0, 0), (1, 1), (9, 70), (40, 400), (10**6, 2))]
    return read, _packed(*near, {"type": "tick", "seq": 3}, _BYE, _COMMAND | {"values": {}},
                         _COMMAND | {"values": {"right.front": 0.1}})  # fmt: skip


def likely(samples: list[bytes], rng: random.Random) -> Callable[[], bytes]:
    """A source of commands with other numbers in their places, of any width and kind, some with a byte changed."""
    cut: list[list[bytes]] = []
    for sample in samples:
        parts, begin = [], 0
        for at, size, _ in numbers(sample):
            parts.append(sample[begin:at])
            begin = at + size
        cut.append([*parts, sample[begin:]])

    def number() -> bytes:
        kind = rng.randrange(14)
        if kind < 2:
            return bytes([rng.randrange(0x80) if kind else 0xE0 + rng.randrange(0x20)])
        if kind == 2:
            return struct.pack(">Bd", 0xCB, rng.choice((0.1, -2.0, math.inf, math.nan, 1e-320)))
        tag = (0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3, 0xCC)[kind - 3]
        return bytes([tag]) + rng.randbytes({0xCA: 4, 0xCB: 8}.get(tag, 1 << (tag - 0xCC & 3)))

    def source() -> bytes:
        *parts, last = rng.choice(cut)
        found = bytearray(b"".join(part + number() for part in parts) + last)
        for _ in range(rng.choice((0, 0, 1, 2))):
            found[rng.randrange(len(found)) : rng.randrange(len(found))] = rng.randbytes(rng.randrange(3))
        return bytes(found)

    return source


def pattern() -> Parser:
    """Commands of a known layout: what compiled code takes must be what the general reader says, number by number."""
    index = {name: i for i, name in enumerate(RODS)}
    samples = _packed(_COMMAND, _COMMAND | {"values": dict.fromkeys(RODS, -7)}, _COMMAND | {"at": [1, 2.5]})
    patterns = [CommandPattern(sample, index) for sample in samples]
    pattern_read = [known.read for known in patterns]
    for known in patterns:
        known.read(samples[0])  # compiled by now
    source = likely(samples, random.Random(7))

    def check(frame: bytes) -> bool:
        taken = [found for read_one in pattern_read if (found := read_one(frame)) is not None]
        for seq, step, values in taken:
            message = decode(frame, COMMAND_BYTES)
            told = {index[name]: value for name, value in message["values"].items()}
            plain = all(type(value) in (int, float) for value in told.values())
            same = plain and struct.pack(f"{len(told)}d", *map(float, told.values())) == struct.pack(
                f"{len(values)}d", *values.values()
            )
            if message["type"] != "command" or (message["seq"], message["step"]) != (seq, step) or not same:
                raise AssertionError(f"{message} was taken for {seq}, {step}, {values}")
            if list(told) != list(values) or type(message["seq"]) is not int or type(message["step"]) is not int:
                raise AssertionError(f"{message} was taken for {seq}, {step}, {values}")
        return bool(taken)

    def read(frame: bytes) -> str:
        likely_taken = check(source())  # of those that are near enough; the mutations seldom are
        return "as the general reader" if check(frame) or likely_taken else "left to it"

    return read, samples


def door() -> Parser:
    """The exchange socket: hellos, requests and byes of a stranger, and of a peer with the token."""
    peers, socket, rejected = Peers(ACTUATORS), FakeSocket(), dict[str, int]()

    def enter(hello: Hello, door: bytes, trusted: bool) -> dict[str, Any]:
        channels = select(OUTPUTS, hello.outputs)
        if trusted:
            peers.welcome(hello, door, Selection(channels), monotonic_ns())
        return _WELCOME

    def count(reason: str) -> None:
        rejected[reason] = rejected.get(reason, 0) + 1

    port = HandshakePort(Router(socket), peers, "secret", EXCHANGE_BYTES, count, enter)  # type: ignore[arg-type]
    seen = [0]

    def read(frame: bytes) -> str:
        seen[0] += 1
        known = seen[0] % 2 == 0
        if known and b"known" not in peers.by_exchange_id:
            enter(Hello("known", (), (), "secret"), b"known", True)
        before = sum(rejected.values())
        codes = dict(rejected)
        socket.put(b"known" if known else b"stranger", *((frame, b"") if seen[0] % 97 == 0 else (frame,)))
        port.serve(1 << 62)
        if len(port.requests()) > 1:
            raise AssertionError("one message became two requests")
        if peers.claimed.any():
            raise AssertionError("an actuator was claimed without a warm-up")
        peers.gone.clear()
        if sum(rejected.values()) == before:
            return "taken"
        return next(code for code in rejected if rejected[code] != codes.get(code, 0))

    return read, _packed(_HELLO, _HELLO | {"token": ""}, _HELLO | {"claim": []}, _BYE, *_REQUESTS)


def peer() -> Parser:
    """A peer's side: what a plant, or what pretends to be one, says to it on both its sockets."""
    info = read_welcome(_WELCOME)

    def read(frame: bytes) -> str:
        try:
            message = read_message(frame)
        except Refused as refusal:
            return refusal.code
        if message["type"] not in ("state", "telemetry"):
            return "error" if message["type"] == "error" else "bye" if message["type"] == "bye" else "passed over"
        state = State(message, info)
        for name in state:
            with contextlib.suppress(ModelError):  # what the plant does not have, or not in this shape: said so
                state[name]
        if not (type(state.step) is int and state.budget_s >= 0 and state.deadline_ns >= 0 and repr(state)):
            raise AssertionError("a state that says what cannot be")
        return "warm-up" if state.step < 0 else f"state, clamped {bool(state.applied.clamped)}"

    return read, _packed(_STATE, _STATE | {"type": "telemetry"}, _STATE | {"step": -1, "outputs": {}}, _ERROR, _BYE)


def welcome() -> Parser:
    """A peer's reading of the welcome."""

    def read(frame: bytes) -> str:
        try:
            message = decode_from_plant(frame)
            info, (_, step_endpoint, near, telemetry_endpoint) = read_welcome(message), read_places(message)
        except Refused as refusal:
            return refusal.code
        nearest("tcp://127.0.0.1:9870", step_endpoint, near)
        for endpoint in (step_endpoint, telemetry_endpoint):
            seen_from("tcp://127.0.0.1:9870", endpoint)
        return "all that was granted" if set(info.granted) <= {c.name for c in info.actuators} else "welcome"

    return read, _packed(_WELCOME)


def _length(size: int) -> bytes:
    return size.to_bytes(8, "big")


class Counting(Reader):
    """Counts the frames that it looks at."""

    frames = 0

    def next(self) -> tuple[str, bytes] | None:
        self.frames = 0
        found = super().next()
        if self.frames > MOST_FRAMES:
            raise AssertionError(f"{self.frames} frames in one look")
        return found

    def _frame(self) -> tuple[int, bytes] | None:
        self.frames += 1
        return super()._frame()


def zmtp() -> Parser:
    """The bytes of a connection, as the plant's own listeners read them, in two pieces; a look has a budget."""
    welcome = frozenset((b"DEALER",))
    shaken = GREETING + ready(b"DEALER")
    seen = [0]

    def read(frame: bytes) -> str:
        seen[0] += 1
        reader, last, cut = Counting(welcome, 512), "", seen[0] % (len(frame) + 1)
        if seen[0] % 2:
            reader.feed(shaken)
            reader.next()
        try:
            for piece in filter(None, (frame[:cut], frame[cut:])):
                whole = reader.at_once(piece)
                if whole is not None:
                    last = "message"
                    if len(whole) > 512 or piece not in (encoded((whole,)), b"\x02" + _length(len(whole)) + whole):
                        raise AssertionError("a message that is not what came")
                    continue
                reader.feed(piece)
                while (found := reader.next()) is not None:
                    last = found[0]
                    if len(found[1]) > 512:
                        raise AssertionError("a message that is longer than it may be")
                if reader.held > max(512 + 9, 4096 + 9):
                    raise AssertionError(f"{reader.held} bytes are kept")
        except ZmtpError:
            return "closed"
        return last or "more to come"

    messages = b"".join(encoded((b"x" * size,)) for size in (0, 5, 255, 256, 512, 600)) + encoded((b"a", b"b"))
    messages += b"\x04\x00" * MOST_FRAMES + b"\x01\x00" * 3 + b"\x00\x00"
    return read, [shaken + messages, messages, ready(b"DEALER"), shaken, encoded((b"y" * 1500,)) + encoded((b"z",))]


def zap() -> Parser:
    """A question about a key, its seven frames joined by a byte."""

    def read(frame: bytes) -> str:
        frames = frame.split(b"\x1f")
        _, key = read_question(frames)
        if key is not None and (len(frames) != 7 or frames[2] != b"rtmms" or len(key) != 32):
            raise AssertionError(f"let in: {frames}")
        return "asked" if key is not None else "no question"

    question = [b"1.0", b"1", b"rtmms", b"127.0.0.1", b"", b"CURVE", b"k" * 32]
    return read, [b"\x1f".join(question), b"\x1f".join([*question[:5], b"NULL", b""])]
