"""Commands and states of a known layout: the same verdicts, values and bytes as the general reader's and writer's."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest

from rtmms.base.contract import APPLIED_POLICIES, Applied
from rtmms.plant.protocol import Channel
from rtmms.wire.plant.message_layouts import CommandPattern, command_pattern
from rtmms.wire.plant.state_message import Selection
from rtmms.wire.protocol.message_layout import UnlikelyError, numbers
from rtmms.wire.protocol.messages import COMMAND_BYTES, decode

RODS = {"left.front": 0, "left.back": 1, "right.front": 2, "right.back": 3}


def frame(seq: Any = 7, step: Any = 3, values: Any = None, **more: Any) -> bytes:
    said = {"type": "command", "seq": seq, "step": step, "values": values or dict.fromkeys(RODS, 0.25)} | more
    return bytes(msgpack.packb(said))


@pytest.mark.parametrize(
    ("seq", "step", "values"),
    [
        (0, 0, [0.0, -0.0, 1e-320, 1e308]),
        (127, 128, [1, -1, 127, 128]),
        (255, 256, [-32, -33, -128, -129]),
        (65535, 65536, [32767, 32768, -32768, -32769]),
        ((1 << 32) - 1, 1 << 32, [1 << 31, (1 << 32) - 1, -(1 << 31), -(1 << 31) - 1]),
        ((1 << 63) - 1, (1 << 62), [(1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63)]),
        (9, 9, [float("inf"), -float("inf"), 0.1, 5]),
    ],
)
def test_numbers_of_every_width_are_read_where_they_stand(seq: int, step: int, values: list[Any]) -> None:
    known = CommandPattern(frame(), RODS)
    found = known.read(frame(seq, step, dict(zip(RODS, values, strict=True))))
    assert found == (seq, step, {i: float(value) for i, value in enumerate(values)})
    single = [struct.pack(">Bf", 0xCA, 0.1) for _ in RODS]
    parts, begin, made = numbers(frame()), 0, b""
    for (at, size, path), value in zip(parts, [b"\x07", b"\x03", *single], strict=True):
        made += frame()[begin:at] + value
        begin = at + size
        assert path[0] in ("seq", "step", "values")
    assert known.read(made) == (7, 3, dict.fromkeys(range(4), struct.unpack(">f", struct.pack(">f", 0.1))[0]))


def test_what_is_not_of_the_layout_is_for_the_general_reader() -> None:
    known, good = CommandPattern(frame(), RODS), frame()
    assert known.read(good) is not None
    others = [
        frame(seq=1.0), frame(seq=1 << 63), frame(step=True), frame(seq=None), frame(values={"left.front": 0.25}),
        frame(values=dict.fromkeys(reversed(RODS), 0.25)), frame(note=1), good + b"\x00", good[:-1], b"",
        frame(values=dict.fromkeys(RODS, "x")), frame(values=dict.fromkeys(RODS, None)),
    ]  # fmt: skip
    assert [known.read(other) for other in others] == [None] * len(others)


def test_unknown_fields_may_change_as_long_as_they_are_numbers() -> None:
    known = CommandPattern(frame(at=[1, 2.5], more={"n": 3}), RODS)
    assert known.read(frame(at=[1 << 40, 7], more={"n": -1.5})) == (7, 3, dict.fromkeys(range(4), 0.25))
    assert known.read(frame(at=[1 << 40], more={"n": -1.5})) is None


def test_no_pattern_is_made_of_what_is_unlikely() -> None:
    twice = b"\x84\xa3seq\x01\xa3seq\x02\xa4step\x01\xa6values\x80"
    for strange in (twice, b"\x82\x01\x02\xa3seq\x01", b"\xd4\x01\x02", frame()[:-3], frame() + b"\x01", b"\x91" * 20):
        assert command_pattern(strange, RODS) is None
    assert command_pattern(frame(values={"tail": 1.0}), RODS) is None
    with pytest.raises(UnlikelyError, match="key"):
        numbers(b"\x81\xc0\x01")


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


def same_as_the_general_reader(patterns: list[CommandPattern], frame: bytes) -> bool:
    """Whether compiled code takes the frame; if so, the general reader must say the same, number by number."""
    taken = [found for known in patterns if (found := known.read(frame)) is not None]
    for seq, step, values in taken:
        message = decode(frame, COMMAND_BYTES)
        said = {RODS[name]: value for name, value in message["values"].items()}
        assert message["type"] == "command"
        assert (type(message["seq"]), type(message["step"])) == (int, int)
        assert (message["seq"], message["step"]) == (seq, step)
        assert list(said) == list(values)
        assert all(type(value) in (int, float) for value in said.values())
        bits = [struct.pack(f"{len(said)}d", *map(float, one.values())) for one in (said, values)]
        assert bits[0] == bits[1]
    return bool(taken)


@pytest.mark.parametrize("frames", [100_000])
def test_frames_that_are_almost_right_get_the_verdict_and_the_values_of_the_general_reader(frames: int) -> None:
    some = dict.fromkeys(list(RODS)[:2], 0.25)
    samples = [frame(values=some), frame(values=dict.fromkeys(RODS, -7)), frame(values=some, at=[1, 2.5])]
    patterns = [CommandPattern(sample, RODS) for sample in samples]
    source = likely(samples, random.Random(5))
    taken = sum(same_as_the_general_reader(patterns, source()) for _ in range(frames))
    assert frames // 10 < taken < frames - frames // 10


def test_states_are_written_in_place_byte_for_byte_as_by_msgpack() -> None:
    channels = (Channel("speed", "m/s"), Channel("velocity", "m/s", (3,)), Channel("thrust", "N", (2, 2)))
    rng, mine = random.Random(3), Selection(channels)
    written = 0
    for k in range(4000):
        outputs = {
            "speed": np.array(rng.gauss(0, 1)), "velocity": np.array([rng.gauss(0, 1), np.nan, -0.0]),
            "thrust": np.full((2, 2), rng.choice([np.inf, 1e-310, 2.0])),
        }  # fmt: skip
        step = rng.choice([k, 127 + k, 65_000 + k, 1 << 33])
        applied = Applied(
            step - 11, step - 1, rng.choice([0, -5, -40_000, 90_000]), rng.choice(APPLIED_POLICIES), k % 3 == 0
        )
        deadline = rng.choice([0, 10**14 + k])
        said = {
            "type": "state", "step": step, "timestamp": step * 1e-3, "deadline_ns": deadline, "budget_ns": 400_000 + k,
            "outputs": {name: v.ravel().tolist() if v.ndim else float(v) for name, v in outputs.items()},
            "applied": {name: getattr(applied, name) for name in Applied.__slots__},
        }  # fmt: skip
        assert mine.packed(step, step * 1e-3, deadline, 400_000 + k, outputs, applied) == msgpack.packb(said)
        written += mine.templates.write(step, step * 1e-3, deadline, 400_000 + k, outputs, applied) is not None
    assert written > 3990  # of each policy, one is the general writer's, or a few before there are templates


def test_an_output_of_another_kind_goes_to_the_general_writer() -> None:
    mine = Selection((Channel("count"), Channel("list", "", (2,))))
    for value in (np.zeros(2), np.arange(2), np.zeros(2, np.float32)):
        for _ in range(2):
            payload = mine.packed(1, 0.5, 0, 0, {"count": np.array(1.0), "list": value}, Applied())
        assert msgpack.unpackb(payload)["outputs"]["list"] == value.tolist()
        found = mine.templates.write(1, 0.5, 0, 0, {"count": np.array(1.0), "list": value}, Applied())
        assert (found is not None) == (value.dtype == np.float64)
