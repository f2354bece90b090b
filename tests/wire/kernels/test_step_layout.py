"""Layout of states and commands: what msgpack writes and reads, in Python and in compiled code, or nothing."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmms.base.contract import APPLIED_POLICIES, Applied
from rtmms.plant.protocol import Channel
from rtmms.wire.kernels.step_message_layout import CompiledLayout, layout_at, read_message, write_integer, write_reals
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.peer.step_messages import command_writer
from rtmms.wire.plant.state_message import Selection
from rtmms.wire.protocol.limits import MAX_COMMAND_BYTES
from rtmms.wire.protocol.messages import decode, decode_from_plant
from rtmms.wire.protocol.step_message_layout import StepLayout, command_layout, state_layout

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no compiled exchange here")

RODS = ("left.front", "left.back", "right.front", "right.back")
CHANNELS = (Channel("speed", "m/s"), Channel("velocity", "m/s", (3,)), Channel("thrust", "N", (2, 2)))

names = st.text(min_size=1, max_size=40).filter(lambda name: name.isprintable())
integers = st.integers(-(1 << 63), (1 << 63) - 1)
shapes = st.one_of(st.just(()), st.tuples(st.integers(0, 20)), st.tuples(st.integers(1, 4), st.integers(1, 9)))
channel_lists = st.lists(st.builds(Channel, names, st.just(""), shapes), max_size=5, unique_by=lambda c: c.name)


class Reader:
    """The compiled reader of a layout."""

    def __init__(self, layout: StepLayout) -> None:
        self.layout, self.compiled = layout, CompiledLayout(layout)
        self.integers = np.zeros(len(layout.integers), dtype=np.int64)
        self.reals = np.zeros(len(layout.reals))

    def read(self, frame: bytes, begin: int = 0) -> tuple[list[int], list[float]] | None:
        array = np.frombuffer(frame, np.uint8)
        if not read_message(self.compiled.at, array, begin, len(array), self.integers, self.reals):
            return None
        return self.integers.tolist(), self.reals.tolist()


def bits(values: Any) -> bytes:
    return struct.pack(f"{len(values)}d", *values)


def state_numbers(message: dict[str, Any]) -> tuple[list[int], list[float]]:
    """The same numbers of what the general reader read, in the layout's order."""
    applied = message["applied"]
    whole = [message["step"], message["deadline_ns"], message["budget_ns"]]
    whole += [applied["seq"], applied["step"], applied["lateness_ns"]]
    values = [value if isinstance(value, list) else [value] for value in message["outputs"].values()]
    return whole, [message["timestamp"], *(number for value in values for number in value)]


def command_numbers(message: dict[str, Any]) -> tuple[list[int], list[float]]:
    return [message["seq"], message["step"]], list(message["values"].values())


@given(
    channel_lists, st.lists(integers, min_size=6, max_size=6), st.floats(), st.sampled_from(APPLIED_POLICIES),
    st.booleans(), st.data(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_state_has_what_msgpack_reads_from_it(
    channels: list[Channel], whole: list[int], time: float, policy: str, clamped: bool, data: st.DataObject
) -> None:
    outputs = {
        c.name: np.array([data.draw(st.floats()) for _ in range(math.prod(c.shape))]).reshape(c.shape)
        for c in channels
    }  # fmt: skip
    mine, applied = Selection(channels), Applied(*whole[3:], policy, clamped)
    frame = mine.packed(whole[0], time, whole[1], whole[2], outputs, applied)
    message = decode_from_plant(frame)
    assert list(message) == ["type", "step", "timestamp", "deadline_ns", "budget_ns", "outputs", "applied"]
    assert message["applied"] == {name: getattr(applied, name) for name in Applied.__slots__ if name != "stale"}
    assert list(message["outputs"]) == [channel.name for channel in channels]
    flat = [time, *(number for value in outputs.values() for number in value.ravel())]
    expected = state_numbers(message)
    assert (expected[0], bits(expected[1])) == (whole, bits(flat))
    assert mine.message.layout.matches(frame)
    assert state_layout(channels).body == mine.message.layout.body  # both sides derive the same
    result = Reader(state_layout(channels)).read(frame)
    assert result is not None
    assert (result[0], bits(result[1])) == (whole, bits(flat))


@given(st.lists(names, min_size=1, max_size=6, unique=True), st.integers(0, 1 << 62), integers, st.data())
@settings(max_examples=60, deadline=None)
def test_a_command_has_what_msgpack_reads_from_it(
    actuators: list[str], seq: int, step: int, data: st.DataObject
) -> None:
    step = max(step, 1 - (1 << 63))
    values = {name: data.draw(st.floats(allow_nan=False, allow_infinity=False, width=32)) for name in actuators}
    write = command_writer(actuators)
    assert write is not None
    raw = write(seq, step, values)
    assert raw is not None
    frame = raw[2 if raw[0] == 0 else 9 :]
    assert decode(frame, MAX_COMMAND_BYTES) == {"type": "command", "seq": seq, "step": step, "values": values}
    assert list(decode(frame, MAX_COMMAND_BYTES)["values"]) == actuators
    result = Reader(command_layout(actuators)).read(raw, len(raw) - len(frame))
    assert result == ([seq, step], list(values.values()))


@given(st.lists(names, min_size=1, max_size=6, unique=True), st.integers(0, 1 << 62), st.integers(0, 1 << 62))
@settings(max_examples=60, deadline=None)
def test_a_command_with_an_age_has_a_layout_of_its_own(actuators: list[str], age_ns: int, fresh_ns: int) -> None:
    values = {name: 0.25 * k for k, name in enumerate(actuators)}
    write = command_writer(actuators, aged=True)
    assert write is not None
    raw = write(7, 8, age_ns, fresh_ns, values)
    assert raw is not None
    frame = raw[2 if raw[0] == 0 else 9 :]
    assert decode(frame, MAX_COMMAND_BYTES) == {
        "type": "command", "seq": 7, "step": 8, "age_ns": age_ns, "fresh_ns": fresh_ns, "values": values
    }  # fmt: skip
    plain, aged = command_layout(actuators), command_layout(actuators, aged=True)
    assert (plain.matches(frame), aged.matches(frame)) == (False, True)
    assert Reader(plain).read(raw, len(raw) - len(frame)) is None
    assert Reader(aged).read(raw, len(raw) - len(frame)) == ([7, 8, age_ns, fresh_ns], list(values.values()))


def sample_state(policy: str = "hold") -> bytes:
    outputs = {"speed": np.array(0.5), "velocity": np.array([1.0, -2.0, np.inf]), "thrust": np.full((2, 2), 3.0)}
    applied = Applied(1000, 999, -300_000, policy)
    return Selection(CHANNELS).packed(1000, 1.5, 10**14, 400_000, outputs, applied)


def sample_command() -> bytes:
    write = command_writer(RODS)
    assert write is not None
    raw = write(1000, 999, dict.fromkeys(RODS, 0.25))
    assert raw is not None
    return raw[2:]


KINDS: dict[str, tuple[StepLayout, bytes, Callable[[bytes], dict[str, Any]], Any]] = {
    "state": (state_layout(CHANNELS), sample_state(), decode_from_plant, state_numbers),
    "command": (command_layout(RODS), sample_command(), lambda f: decode(f, MAX_COMMAND_BYTES), command_numbers),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_byte_is_another_number_or_is_for_the_general_reader(kind: str) -> None:
    layout, good, general, numbers = KINDS[kind]
    reader, accepted = Reader(layout), set()
    for at in range(len(good)):
        others = {0, 1, 0x7F, 0x80, 0xC0, 0xC1, 0xC2, 0xC3, 0xCB, 0xD3, 0xFF, good[at] ^ 1, good[at] ^ 0x80}
        for value in others - {good[at]}:
            frame = good[:at] + bytes([value]) + good[at + 1 :]
            result = reader.read(frame)
            assert layout.matches(frame) == (result is not None)
            if result is None:
                continue
            accepted.add(at)
            expected = numbers(general(frame))
            assert (result[0], bits(result[1])) == (expected[0], bits(expected[1]))
    places = {at + k for at in (*layout.integers, *layout.reals) for k in range(8)}
    assert accepted >= places
    assert accepted - places == ({len(good) - 1} if kind == "state" else set())  # the flag `clamped`


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frames", [20_000])
def test_hostile_bytes_are_read_as_by_the_general_reader_or_not_at_all(kind: str, frames: int) -> None:
    layout, good, general, numbers = KINDS[kind]
    reader, rng, accepted = Reader(layout), random.Random(5), 0
    for _ in range(frames):
        frame = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(frame) + 1)
            what = rng.randrange(6)
            if what == 0:
                del frame[at:]
            elif what == 1:
                frame[at:at] = rng.randbytes(rng.randrange(4))
            elif what == 2:
                frame[at : at + rng.randrange(9)] = b""
            else:  # within the numbers, as a rule
                at = rng.choice((*layout.integers, *layout.reals)) + rng.randrange(-1, 9)
                frame[at : at + 1] = rng.randbytes(1)
        result = reader.read(bytes(frame))
        assert layout.matches(bytes(frame)) == (result is not None)
        if result is not None:
            accepted += 1
            expected = numbers(general(bytes(frame)))
            assert (result[0], bits(result[1])) == (expected[0], bits(expected[1]))
    assert frames // 10 < accepted < frames - frames // 10
    for strange in (b"", good[:-1], good + b"\x00", good * 2, b"\xdf\xff\xff\xff\xff" + good, b"\x91" * 5000):
        assert reader.read(strange) is None


def other_forms() -> list[Any]:
    """Valid commands for the same values that are not of the layout."""
    values = dict.fromkeys(RODS, 0.25)
    expected = {"type": "command", "seq": 1000, "step": 999, "values": values}
    return [
        expected, dict(reversed(expected.items())), expected | {"note": 1},
        expected | {"values": dict.fromkeys(RODS, 1)}, expected | {"values": dict(reversed(values.items()))},
        expected | {"values": {RODS[0]: 0.25}}, expected | {"seq": 1000.0},
        expected | {"seq": 1 << 63}, expected | {"step": None}, expected | {"values": dict.fromkeys(RODS, "x")},
    ]  # fmt: skip


def test_messages_of_other_forms_are_for_the_general_reader() -> None:
    reader = Reader(command_layout(RODS))
    assert [reader.read(msgpack.packb(message)) for message in other_forms()] == [None] * len(other_forms())


def test_compiled_code_writes_what_python_writes() -> None:
    from rtmms.base.jit import kernel

    @kernel
    def write(layout: int, frame: Any, whole: Any, reals: Any) -> None:
        record = layout_at(layout)
        for place in range(len(whole)):
            write_integer(record, frame, 0, place, whole[place])
        write_reals(record, frame, 0, 0, reals)

    for layout, good, general, numbers in KINDS.values():
        compiled = CompiledLayout(layout)
        frame = np.frombuffer(layout.body + good[len(layout.body) :], np.uint8).copy()
        whole, reals = numbers(general(good))
        write(compiled.at, frame, np.array(whole), np.array(reals))
        assert frame.tobytes() == good


def test_outputs_of_other_number_types_are_written_as_float64() -> None:
    mine = Selection((Channel("count"), Channel("list", "", (2,))))
    for value in (np.zeros(2), np.arange(2), np.ones(2, np.float32)):
        payload = mine.packed(1, 0.5, 0, 0, {"count": np.array(1), "list": value}, Applied())
        assert mine.message.layout.matches(payload)
        outputs = msgpack.unpackb(payload)["outputs"]
        assert (outputs["count"], outputs["list"]) == (1.0, value.tolist())


@pytest.mark.parametrize("count", [0, 1, 15, 16, 20, 70_000])
def test_lists_and_frames_of_each_length(count: int) -> None:
    mine = Selection((Channel("list", "", (count,)),))
    for policy in APPLIED_POLICIES:
        payload = mine.packed(3, 0.5, 0, 0, {"list": np.arange(float(count))}, Applied(policy=policy))
        assert msgpack.unpackb(payload)["outputs"]["list"] == list(range(count))
        frame = mine.message.frame
        head = bytes((0, len(payload))) if len(payload) < 256 else b"\x02" + len(payload).to_bytes(8, "big")
        assert frame == head + payload
        at = mine.message.budget_at
        assert msgpack.unpackb(frame[len(head) : at] + b"\x00" * 7 + b"\x05" + frame[at + 8 :])["budget_ns"] == 5
