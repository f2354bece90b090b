"""Whatever a peer sends, in bytes or in well-formed nonsense: no crash, and only sound values reach the plant."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtmms.base.errors import ModelError
from rtmms.plant.protocol import Channel
from rtmms.wire.addresses import nearest, seen_from
from rtmms.wire.peer.decode import read_message, read_places, read_welcome
from rtmms.wire.protocol.limits import MAX_AHEAD_STEPS, MAX_EXCHANGE_BYTES
from rtmms.wire.protocol.messages import PROTOCOL, Refusal, decode, decode_from_plant, packer
from rtmms.wire.protocol.received_state import State
from rtmms.wire.protocol.welcome import channel_map
from rtmms.wire.stream.zmtp import GREETING, Reader, ZmtpError, message_of_frames, ready
from tests.parsers import frames_near, try_parser
from tests.wire.bench import Host, Raw

junk = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 64) - 1), st.floats(), st.text(max_size=6),
    st.binary(max_size=6), st.lists(st.floats(), max_size=3),
)  # fmt: skip
rods = st.sampled_from(["left.front", "left.back", "right.front", "right.back", "left.middle", ""])
sound = st.dictionaries(st.sampled_from(["left.front", "left.back"]), st.floats(-3.0, 3.0), max_size=2)
commands = st.fixed_dictionaries(
    {
        "type": st.one_of(st.just("command"), st.just("command"), st.sampled_from(["state", "tick", "hello"])),
        "seq": st.one_of(st.integers(0, 1 << 20), st.integers(0, 1 << 20), junk),
        "step": st.one_of(st.integers(-2, 80), st.integers(-2, 80), junk),
        "values": st.one_of(sound, st.dictionaries(rods, junk, max_size=3), junk),
    }
)
messages = st.one_of(commands, st.dictionaries(st.text(max_size=6), junk, max_size=4))


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A frame with some bytes changed, some lost, some put in."""
    frame = bytearray(msgpack.packb(draw(commands)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(frame) - 1)) if frame else 0
        what = draw(st.sampled_from(["change", "lose", "put"]))
        if what == "put" or not frame:
            frame.insert(at, draw(st.integers(0, 255)))
        elif what == "change":
            frame[at] = draw(st.integers(0, 255))
        else:
            del frame[at:]
    return bytes(frame)


frames = st.lists(st.one_of(messages.map(msgpack.packb), broken(), st.binary(max_size=40)), min_size=1, max_size=12)
shared = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def refused(read: Callable[[], None]) -> str:
    """The code of the refusal, '' for none; anything else that is raised is a failure."""
    try:
        read()
    except Refusal as refusal:
        return refusal.code
    return ""


@pytest.fixture
def driven(host: Host, raw: Raw) -> Host:
    raw.join(["left.*"])
    return host


@shared
@given(stream=frames)
def test_the_step_socket_survives_anything_a_peer_sends(driven: Host, stream: list[bytes]) -> None:
    port, peer = driven.server._port, driven.server._peers.claimants[0]
    driven.publish()
    for frame in stream:
        before = peer.seq
        port._command = driven.command
        if refused(lambda frame=frame: port._receive(peer, decode(frame, 4096))):
            assert peer.seq == before, "a refused message must not count"
        port._command = None
    driven.collect(0.0)
    assert np.isfinite(driven.command).all()
    assert (np.abs(driven.command) <= 1.2).all()
    assert (driven.command[2:] == 0.0).all(), "not its own"
    assert len(peer.queue) <= MAX_AHEAD_STEPS
    driven.step = (driven.step + 1) % 50
    peer.seq = -1


HELLO = {"type": "hello", "protocol": PROTOCOL, "name": "fuzz", "claim": ["left.*", "right.back"],
         "outputs": ["speed", "pos*"], "token": "secret", "every": 2, "ticks": True}  # fmt: skip
REQUESTS: list[dict[str, Any]] = [
    {"type": "request", "id": 1, "op": op, "args": args}
    for op, args in (("reset", {"seed": 3}), ("pause", {}), ("step", {"count": 2}), ("set", {"current": [0.1, 0.0]}),
                     ("restore", {"state": "AAAA"}), ("stop", None))
]  # fmt: skip
BYE = {"type": "bye", "reason": "done"}


def packed(*messages: dict[str, Any]) -> list[bytes]:
    pack = packer()
    return [bytes(pack(message)) for message in messages]


at_the_door = st.lists(frames_near(packed(HELLO, BYE, *REQUESTS)), min_size=1, max_size=6)


@shared
@given(stream=st.one_of(frames, at_the_door))
def test_the_entry_survives_anything_anyone_sends(host: Host, stream: list[bytes]) -> None:
    door = host.server._handshakes
    for frame in stream:
        refused(lambda frame=frame: door._receive(b"stranger", None, decode(frame, MAX_EXCHANGE_BYTES)))
    assert host.server.requests() == []
    assert not host.server.claimed.any()


# -- what a plant, or what pretends to be one, sends to a peer ------------------------------------------------------

RODS = ("left.front", "left.back", "right.front", "right.back")
OUTPUTS = (Channel("position", "m", (3,), "world"), Channel("speed", "m/s"), Channel("joint_angle", "rad", (1, 3, 5)))
STATE = {
    "type": "state", "step": 4, "timestamp": 0.004, "deadline_ns": 10**15, "budget_ns": 500_000,
    "outputs": {"position": [0.0, 1.0, 2.0], "speed": 0.5},
    "applied": {"seq": 3, "step": 3, "lateness_ns": -2000, "policy": "", "clamped": False},
}  # fmt: skip
WELCOME = {
    "type": "welcome", "protocol": PROTOCOL, "session": "5e", "identity": b"\x01" * 16, "robot": "toy", "dt": 1e-3,
    "mode": "realtime", "period_s": 1e-3, "deadline_s": 5e-4, "granted": list(RODS[:2]), "seed": 0,
    "step_endpoint": "tcp://127.0.0.1:9871", "telemetry_endpoint": "tcp://0.0.0.0:9872", "selected": ["speed"],
    "actuators": [channel_map(Channel(name, "rad", lower=-1.2, upper=1.2)) for name in RODS],
    "outputs": [channel_map(channel) for channel in OUTPUTS], "parameters": {"r1": 0.2, "body": "free"},
}  # fmt: skip


def test_a_peer_survives_anything_that_a_plant_sends() -> None:
    info = read_welcome(WELCOME)

    def read(frame: bytes) -> str:
        try:
            message = read_message(frame)
        except Refusal as refusal:
            return refusal.code
        if message["type"] not in ("state", "telemetry"):
            return str(message["type"])
        state = State(message, info)
        for name in state:
            with contextlib.suppress(ModelError):  # the plant has no such output, or not of this shape
                state[name]
        assert type(state.step) is int
        assert state.budget_s >= 0
        assert state.deadline_ns >= 0
        assert repr(state)
        return f"state, clamped {bool(state.applied.clamped)}"

    error = {"type": "error", "code": "seq", "text": "command: seq must rise"}
    samples = packed(STATE, STATE | {"type": "telemetry"}, STATE | {"step": -1, "outputs": {}}, error, BYE)
    outcomes = try_parser((read, samples), 2000)
    assert {"state, clamped False", "bye", "error", "wrong_type", "malformed"} <= set(outcomes)


def test_a_peer_survives_any_welcome() -> None:
    def read(frame: bytes) -> str:
        try:
            message = decode_from_plant(frame)
            info, (_, step_endpoint, near, telemetry_endpoint) = read_welcome(message), read_places(message)
        except Refusal as refusal:
            return refusal.code
        nearest("tcp://127.0.0.1:9870", step_endpoint, near)
        for endpoint in (step_endpoint, telemetry_endpoint):
            seen_from("tcp://127.0.0.1:9870", endpoint)
        return "all that was granted" if set(info.granted) <= {c.name for c in info.actuators} else "welcome"

    outcomes = try_parser((read, packed(WELCOME)), 1000)
    assert {"all that was granted", "wrong_type"} <= set(outcomes)


# -- the bytes of a connection -------------------------------------------------------------------------------------

MAX_FRAMES = 40
"""Frames of which the reader may look at each time that it is asked for a message."""


class CountingReader(Reader):
    """Counts the frames that it looks at."""

    frames = 0

    def next(self) -> tuple[str, bytes] | None:
        self.frames = 0
        result = super().next()
        assert self.frames <= MAX_FRAMES
        return result

    def _frame(self) -> tuple[int, bytes] | None:
        self.frames += 1
        return super()._frame()


def test_a_listener_survives_any_bytes() -> None:
    shaken, count = GREETING + ready(b"DEALER"), [0]

    def read(frame: bytes) -> str:
        count[0] += 1
        reader, last, cut = CountingReader(frozenset((b"DEALER",)), 512), "", count[0] % (len(frame) + 1)
        if count[0] % 2:
            reader.feed(shaken)
            reader.next()
        try:
            for piece in filter(None, (frame[:cut], frame[cut:])):
                whole = reader.at_once(piece)
                if whole is not None:
                    assert len(whole) <= 512
                    assert piece in (message_of_frames((whole,)), b"\x02" + len(whole).to_bytes(8, "big") + whole)
                    last = "message"
                    continue
                reader.feed(piece)
                while (result := reader.next()) is not None:
                    last = result[0]
                    assert len(result[1]) <= 512
                assert reader.held <= 4096 + 9
        except ZmtpError:
            return "closed"
        return last or "more to come"

    messages = b"".join(message_of_frames((b"x" * size,)) for size in (0, 5, 255, 256, 512, 600)) + message_of_frames(
        (b"a", b"b")
    )
    messages += b"\x04\x00" * MAX_FRAMES + b"\x01\x00" * 3 + b"\x00\x00"
    samples = [
        shaken + messages,
        messages,
        ready(b"DEALER"),
        shaken,
        message_of_frames((b"y" * 1500,)) + message_of_frames((b"z",)),
    ]
    outcomes = try_parser((read, samples), 2000)
    assert {"message", "ready", "closed", "more to come"} <= set(outcomes)
    assert set(outcomes) <= {"message", "malformed", "oversize", "ready", "closed", "more to come"}
