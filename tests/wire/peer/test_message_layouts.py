"""States and commands by the layout of the last of their kind, in plain Python: the same as the general reader's."""

from __future__ import annotations

import copy
import enum
import gc
import math
import pickle
import random
import weakref
from typing import Any

import msgpack
import numpy as np
import pytest

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.plant.protocol import Channel
from rtmms.wire.peer.decode import read_message
from rtmms.wire.peer.message_layouts import Arrived, StateLayouts, command_layout
from rtmms.wire.protocol.messages import Refused
from rtmms.wire.protocol.state import PlantInfo, State
from rtmms.wire.stream.zmtp import framed

OUTPUTS = (Channel("speed", "m/s"), Channel("velocity", "m/s", (3,)), Channel("thrust", "N", (2, 2)), Channel("flag"))
INFO = PlantInfo("toy", 1e-3, "realtime", 1e-3, 5e-4, (), OUTPUTS)


def state(step: Any = 1000, **more: Any) -> dict[str, Any]:
    outputs = {"speed": 0.5, "velocity": [1.0, -2.0, math.inf], "thrust": [1.0, 2.0, 3.0, 4.0], "flag": 1}
    said = {
        "type": "state", "step": step, "timestamp": 1.5, "deadline_ns": 10**14, "budget_ns": 400_000,
        "outputs": outputs,
        "applied": {"seq": 1000, "step": 999, "lateness_ns": -300_000, "policy": "", "clamped": False},
    }  # fmt: skip
    return said | more


def packed(message: Any) -> bytes:
    return bytes(msgpack.packb(message))


def arrive(layouts: StateLayouts, frame: bytes) -> Arrived | None:
    """As a link does it."""
    raw = framed(frame)
    head = layouts.known.get(len(raw))
    if head is None:
        return None
    unpack, *alike, layout = head
    found = unpack(raw)
    return Arrived(raw, layout, found[1], found[3], INFO) if list(found[::2]) == alike else None


def test_a_state_like_the_last_one_says_what_the_general_reader_says() -> None:
    layouts = StateLayouts()
    layouts.learn(packed(state()))
    other = state(60_000, timestamp=-2.25, budget_ns=99_999)
    other["outputs"] |= {"speed": -1.0, "velocity": [4.0, 5.0, math.nan]}
    other["applied"] |= {"clamped": True, "lateness_ns": -299_999}
    mine, general = arrive(layouts, packed(other)), State(read_message(packed(other)), INFO)
    assert mine is not None
    assert (mine.step, mine.time, mine.plant) == (60_000, -2.25, INFO)
    for name in ("speed", "velocity", "thrust", "flag"):
        one, two = mine[name], general[name]
        assert type(one) is type(two)
        assert repr(one) == repr(two)
    assert (mine.budget_s, mine.deadline_ns, mine.applied) == (general.budget_s, general.deadline_ns, general.applied)
    assert repr(mine.outputs) == repr(general.outputs)
    assert list(mine) == list(general)
    assert "speed" in mine
    assert repr(mine) == repr(general)
    assert mine.with_outputs({"speed": 7.0})["speed"] == 7.0
    with pytest.raises(UnknownNameError, match="spede"):
        mine["spede"]
    with pytest.raises(AttributeError):
        mine.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_not_like_it_is_for_the_general_reader() -> None:
    layouts, good = StateLayouts(), packed(state())
    layouts.learn(good)
    others = [
        state(100_000), state(step=-1), state(type="stats"), state(timestamp=1), state(deadline_ns=0),
        state(outputs={"speed": 0.5}), state() | {"applied": {}}, state(step=1.0),
    ]  # fmt: skip
    assert [arrive(layouts, packed(other)) for other in others] == [None] * len(others)
    assert arrive(layouts, good[:-1]) is None
    assert arrive(layouts, b"") is None


def told(state: State, name: str) -> str:
    """An output, or what is wrong with it."""
    try:
        return repr(state[name])
    except ModelError as fault:
        return str(fault)


@pytest.mark.full
def test_any_frame_that_is_taken_for_a_state_is_one() -> None:
    rng, layouts, good = random.Random(8), StateLayouts(), packed(state())
    layouts.learn(good)
    taken = refused = 0
    for _ in range(30_000):
        frame = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        mine = arrive(layouts, bytes(frame))
        if mine is None:
            continue
        taken += 1
        try:
            general = State(read_message(bytes(frame)), INFO)
        except Refused:
            refused += 1
            for name in ("speed", "velocity", "thrust", "flag"):
                with pytest.raises(ModelError, match="what the plant sent cannot be read"):
                    mine[name]
            continue
        assert (mine.step, repr(mine.time)) == (general.step, repr(general.time))
        for name in ("speed", "velocity", "thrust", "flag"):
            assert told(mine, name) == told(general, name)
    assert taken > 5_000
    assert refused > 100


@pytest.mark.parametrize("deadline_ns", [0, 10**14])
def test_states_of_lockstep_have_a_layout_too(deadline_ns: int) -> None:
    layouts = StateLayouts()
    layouts.learn(packed(state(deadline_ns=deadline_ns, budget_ns=0)))
    assert arrive(layouts, packed(state(2000, deadline_ns=deadline_ns, budget_ns=0))) is not None


def test_states_that_are_never_alike_are_not_learnt_for_ever() -> None:
    layouts = StateLayouts()
    for k in range(3000):
        layouts.learn(packed(state() | {"more": "x" * (k % 700)}))
    assert len(layouts.known) <= 8
    assert layouts._learnt < 250


VALUES = {"left.front": 0.25, "left.back": -1e-310}


def test_a_command_is_written_byte_for_byte_as_by_msgpack() -> None:
    def command(seq: int, step: int, values: dict[str, float]) -> bytes:
        return packed({"type": "command", "seq": seq, "step": step, "values": values})

    layout = command_layout(command(1000, 900, VALUES), VALUES)
    assert layout is not None
    for seq, step, values in ((256, 65_535, {"left.front": math.pi, "left.back": -0.0}), (65_535, 256, VALUES)):
        assert layout.write(seq, step, values) == framed(command(seq, step, values))
    for seq, step, values in (
        (255, 900, VALUES), (65_536, 900, VALUES), (1000, 255, VALUES), (1000, 65_536, VALUES),
        (1000, 900, {"left.front": 0.25}), (1000, 900, {"left.front": math.inf, "left.back": 0.5}),
        (1000, 900, {**VALUES, "right.back": 0.5}), (1000, 900, {"left.front": 1.0, "b": 2.0}),
        (1000, 900, {"left.front": 1, "left.back": 0.5}), (1000, 900, {"left.front": True, "left.back": 0.5}),
    ):  # fmt: skip
        assert layout.write(seq, step, values) is None
    turned = dict(reversed(VALUES.items()))
    assert layout.write(1000, 900, turned) == framed(command(1000, 900, VALUES))
    few = command_layout(command(5, 900, VALUES), VALUES)
    assert few is not None
    for seq in (0, 1, 127):
        assert few.write(seq, 901, VALUES) == framed(command(seq, 901, VALUES))
    assert few.write(128, 901, VALUES) is few.write(-1, 901, VALUES) is few.write(5, 127, VALUES) is None
    assert command_layout(command(-1, 900, VALUES), VALUES) is None
    assert command_layout(command(1000, 900, {"a": 1}), {"a": 1}) is None
    empty = command_layout(command(1000, 900, {}), {})
    assert empty is not None
    assert empty.write(1001, 901, {}) == framed(command(1001, 901, {}))


class Rod(enum.StrEnum):
    FRONT = "left.front"


class Hostile(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "print('never')"


@pytest.mark.parametrize("kind", [np.str_, Rod, Hostile])
def test_names_of_a_class_of_text_are_the_text_they_are(kind: type[str], capsys: Any) -> None:
    values = {kind("left.front"): 0.5}
    message = {"type": "command", "seq": 1000, "step": 900, "values": {"left.front": 0.5}}
    layout = command_layout(packed(message), values)
    assert layout is not None
    assert layout.write(1000, 900, values) == layout.write(1000, 900, {"left.front": 0.5}) == framed(packed(message))
    assert capsys.readouterr().out == ""


def test_a_writer_is_not_kept_by_its_own_globals() -> None:
    layout = command_layout(packed({"type": "command", "seq": 1000, "step": 900, "values": VALUES}), VALUES)
    assert layout is not None
    gone = weakref.ref(layout.write)
    gc.disable()
    try:
        del layout
        assert gone() is None
    finally:
        gc.enable()


def test_a_state_can_be_copied_and_sent_to_another_process() -> None:
    layouts = StateLayouts()
    layouts.learn(packed(state()))
    mine = arrive(layouts, packed(state(1001)))
    assert mine is not None
    for other in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), copy.copy(mine)):
        assert (other.step, other.time, other.outputs) == (1001, 1.5, mine.outputs)
        assert np.array_equal(other["velocity"], mine["velocity"])
        assert (other.deadline_ns, other.plant) == (mine.deadline_ns, INFO)


def test_many_actuators_make_a_long_frame() -> None:
    values = {f"joint.{k}": k * 0.5 for k in range(300)}
    message = {"type": "command", "seq": 70_000, "step": 70_000, "values": values}
    layout = command_layout(packed(message), values)
    assert layout is not None
    assert layout.write(70_001, 70_002, values) == framed(packed(message | {"seq": 70_001, "step": 70_002}))


def test_wrong_numbers_are_told_as_ever() -> None:
    layouts = StateLayouts()
    bad = state()
    bad["outputs"] |= {"velocity": ["x", 1.0, 2.0]}
    layouts.learn(packed(bad))
    mine = arrive(layouts, packed(bad))
    assert mine is not None
    with pytest.raises(ModelError, match="velocity"):
        mine["velocity"]
