"""States and commands by the layout of the welcome, in plain Python: the same as the general reader's and writer's."""

from __future__ import annotations

import copy
import enum
import gc
import math
import pickle
import random
import struct
import weakref
from typing import Any

import msgpack
import numpy as np
import pytest

from rtmms.base.contract import APPLIED_POLICIES, Applied
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.plant.protocol import Channel
from rtmms.wire.peer.decode import read_message
from rtmms.wire.peer.step_messages import Head, ReceivedState, as_floats, command_writer, rehearse, state_heads
from rtmms.wire.plant.state_message import Selection
from rtmms.wire.protocol.messages import Refusal
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.stream.zmtp import message_of_frame

CHANNELS = (
    Channel("speed", "m/s"),
    Channel("velocity", "m/s", (3,)),
    Channel("thrust", "N", (2, 2)),
    Channel("one", "", (1,)),
)
NAMES = tuple(channel.name for channel in CHANNELS)
INFO = PlantInfo("toy", 1e-3, "realtime", 1e-3, 5e-4, (), (*CHANNELS, Channel("other")), selected=NAMES)
OUTPUTS = {"speed": 0.5, "velocity": [1.0, -2.0, math.inf], "thrust": [[1.0, 2.0], [3.0, 4.0]], "one": [7.0]}


def state(step: int = 1000, time: float = 1.5, applied: Applied | None = None, **outputs: Any) -> bytes:
    """As our plant writes it."""
    arrays = {name: np.array(value) for name, value in (OUTPUTS | outputs).items()}
    expected = Applied(1000, 999, -300_000) if applied is None else applied
    return Selection(CHANNELS).packed(step, time, 10**14, 400_000, arrays, expected)


def packed(message: Any) -> bytes:
    return bytes(msgpack.packb(message))


def arrive(heads: dict[int, Head], frame: bytes) -> ReceivedState | None:
    """As a link does it."""
    raw = message_of_frame(frame)
    head = heads.get(len(raw))
    if head is None:
        return None
    unpack, *alike, reader = head
    result = unpack(raw)
    return ReceivedState(raw, reader, result[1], result[3], INFO) if list(result[::2]) == alike else None


def same(mine: ReceivedState, general: State) -> None:
    assert (mine.step, repr(mine.time)) == (general.step, repr(general.time))
    for name in NAMES:
        assert read(mine, name) == read(general, name)
    assert (mine.budget_s, mine.deadline_ns, mine.applied) == (general.budget_s, general.deadline_ns, general.applied)
    assert repr(mine.outputs) == repr(general.outputs)
    assert list(mine) == list(general)


def read(state: State, name: str) -> str:
    """An output, or what is wrong with it."""
    try:
        return repr((type(state[name]), state[name]))
    except ModelError as fault:
        return str(fault)


@pytest.mark.parametrize("policy", APPLIED_POLICIES)
def test_a_state_of_our_plant_is_what_the_general_reader_reads(policy: str) -> None:
    frame = state(60_000, -2.25, Applied(1 << 40, -1, 5, policy, True), velocity=[4.0, 5.0, math.nan])
    mine = arrive(state_heads(INFO), frame)
    assert mine is not None
    assert mine._fields
    assert mine.plant is INFO
    same(mine, State(read_message(frame), INFO))
    assert "speed" in mine
    assert mine.with_outputs({"speed": 7.0})["speed"] == 7.0
    assert repr(mine) == repr(State(read_message(frame), INFO))
    for name in ("spede", "other"):
        with pytest.raises(UnknownNameError, match=name):
            mine[name]
    with pytest.raises(AttributeError):
        mine.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_states_of_other_plants_are_for_the_general_reader() -> None:
    """Such as those of a plant that writes integers in their shortest form."""
    heads, message = state_heads(INFO), read_message(state())
    others = [
        message, message | {"step": 1 << 40}, dict(reversed(message.items())), message | {"more": 1},
        message | {"applied": {}}, message | {"outputs": {"speed": 0.5}}, message | {"step": -1},
    ]  # fmt: skip
    assert [arrive(heads, packed(other)) for other in others] == [None] * len(others)
    for frame in (state()[:-1], state() + b"\x00", b""):
        assert arrive(heads, frame) is None


@pytest.mark.full
def test_any_frame_that_is_accepted_as_a_state_is_read_as_by_the_general_reader() -> None:
    rng, heads, good = random.Random(8), state_heads(INFO), state()
    accepted = refused = 0
    for _ in range(30_000):
        frame = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        mine = arrive(heads, bytes(frame))
        if mine is None:
            continue
        accepted += 1
        try:
            general = State(read_message(bytes(frame)), INFO)
        except Refusal:
            refused += not mine._fields
            if not mine._fields:  # else only the head, such as a deadline below 0, is what the general reader refuses
                for name in NAMES:
                    with pytest.raises(ModelError, match="the message of the plant cannot be read"):
                        mine[name]
            continue
        assert (mine.step, repr(mine.time)) == (general.step, repr(general.time))
        for name in NAMES:
            assert read(mine, name) == read(general, name)
    assert accepted > 5_000
    assert refused > 100


@pytest.mark.parametrize(
    ("selected", "shape"), [(("nothing",), (3,)), (NAMES, (1 << 40,)), (NAMES, (-3,)), (NAMES, (1 << 20, -1))]
)
def test_a_welcome_that_promises_the_impossible_costs_nothing(
    selected: tuple[str, ...], shape: tuple[int, ...]
) -> None:
    outputs = (Channel("speed", "m/s", shape), *CHANNELS[1:])
    assert state_heads(PlantInfo("toy", 1e-3, "realtime", 1e-3, 5e-4, (), outputs, selected=selected)) == {}


def test_a_state_can_be_copied_and_sent_to_another_process() -> None:
    mine = arrive(state_heads(INFO), state(1001))
    assert mine is not None
    for other in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), copy.copy(mine)):
        assert (other.step, other.time, other.outputs) == (1001, 1.5, mine.outputs)
        assert np.array_equal(other["velocity"], mine["velocity"])
        assert (other.deadline_ns, other.plant) == (mine.deadline_ns, INFO)


VALUES = {"left.front": 0.25, "left.back": -1e-310}


def command(seq: int, step: int, values: dict[str, float]) -> bytes:
    """The widest form of msgpack, written by hand."""
    frame = b"\x84" + packed("type") + packed("command") + packed("seq") + struct.pack(">Bq", 0xD3, seq)
    frame += (
        packed("step")
        + struct.pack(">Bq", 0xD3, step)
        + packed("values")
        + msgpack.Packer().pack_map_header(len(values))
    )
    frame += b"".join(packed(name) + struct.pack(">Bd", 0xCB, value) for name, value in values.items())
    assert msgpack.unpackb(frame) == {"type": "command", "seq": seq, "step": step, "values": values}
    return message_of_frame(frame)


def test_a_command_is_written_in_fixed_width() -> None:
    write = command_writer(tuple(VALUES))
    assert write is not None
    for seq, step in ((0, 0), (127, 128), (1 << 40, (1 << 63) - 1), (5, -10)):
        for values in ({"left.front": math.pi, "left.back": -0.0}, VALUES):
            assert write(seq, step, values) == command(seq, step, values)
    assert write(1, 2, dict(reversed(VALUES.items()))) == command(1, 2, VALUES)
    for step, values in (
        (900, {"left.front": 0.25}), (900, {"left.front": math.inf, "left.back": 0.5}),
        (900, {**VALUES, "right.back": 0.5}), (900, {"left.front": 1.0, "b": 2.0}),
        (900, {"left.front": 1, "left.back": 0.5}), (900, {"left.front": True, "left.back": 0.5}),
        (1 << 63, VALUES), (1.0, VALUES), (900, list(VALUES.items())), (900, {}),
    ):  # fmt: skip
        assert write(1000, step, values) is None  # type: ignore[arg-type]
    assert command_writer(()) is None


def test_numbers_of_other_types_become_floats_or_are_for_the_general_writer() -> None:
    assert as_floats({"a": 1, "b": np.float32(0.5), "c": 2.0}) == {"a": 1.0, "b": 0.5, "c": 2.0}
    for value in (True, "1", None, [1.0], 10**400, 1j):
        assert as_floats({"a": value}) is None


class Rod(enum.StrEnum):
    FRONT = "left.front"


class Hostile(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "print('never')"


@pytest.mark.parametrize("kind", [np.str_, Rod, Hostile])
def test_names_of_a_class_of_text_are_the_text_they_are(kind: type[str], capsys: Any) -> None:
    write = command_writer(("left.front",))
    assert write is not None
    floats = as_floats({kind("left.front"): 1})
    assert floats == {"left.front": 1.0}
    assert write(1000, 900, floats) == write(1000, 900, {kind("left.front"): 1.0})
    assert capsys.readouterr().out == ""


def test_names_in_a_welcome_are_text_and_not_code(capsys: Any) -> None:
    names = ("a'b", 'c"d\n', "{print('never')}", "\\", "ü; pass")
    write = command_writer(names)
    assert write is not None
    values = dict.fromkeys(names, 0.5)
    assert write(1, 2, values) == command(1, 2, values)
    assert capsys.readouterr().out == ""


def test_a_writer_is_not_referred_to_by_its_own_globals() -> None:
    write = command_writer(tuple(VALUES))
    gone = weakref.ref(write)  # type: ignore[arg-type]
    gc.disable()
    try:
        del write
        assert gone() is None
    finally:
        gc.enable()


def test_many_actuators_make_a_long_frame() -> None:
    values = {f"joint.{k}": k * 0.5 for k in range(300)}
    write = command_writer(tuple(values))
    assert write is not None
    assert msgpack.unpackb(write(70_001, 70_002, values)[9:])["values"] == values  # type: ignore[index]
    assert command_writer([f"joint.{k}" for k in range(401)]) is None


def test_a_rehearsal_leaves_nothing_behind() -> None:
    heads, write = state_heads(INFO), command_writer(tuple(VALUES))
    assert write is not None
    rehearse(heads, write, tuple(VALUES))
    same(arrive(heads, state()), State(read_message(state()), INFO))  # type: ignore[arg-type]
