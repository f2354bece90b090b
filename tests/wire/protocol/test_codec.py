"""Frames of every kind, whole and broken: a message or a named refusal, never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmms.wire.protocol.messages import Refusal, decode, decode_from_plant, packer

CAP = 4096
numbers = st.one_of(st.integers(-(1 << 63), (1 << 64) - 1), st.floats(allow_nan=False))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=20), st.binary(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
messages = st.dictionaries(st.text(max_size=8), values, max_size=5).map(lambda m: m | {"type": "command"})


@given(messages)
def test_a_message_survives_the_round_trip(message: dict[str, Any]) -> None:
    assert decode(packer()(message), 1 << 20) == message


@given(st.binary(max_size=300))
def test_garbage_is_refused_or_a_map_with_a_type(frame: bytes) -> None:
    try:
        output = type(decode(frame, CAP)["type"]).__name__
    except Refusal as refusal:
        output = refusal.code
    assert output in ("malformed", "unknown_type", "str")


@given(messages, st.data())
def test_a_truncated_frame_is_malformed(message: dict[str, Any], data: st.DataObject) -> None:
    frame = packer()(message)
    with pytest.raises(Refusal) as refused:
        decode(frame[: data.draw(st.integers(0, len(frame) - 1))], 1 << 20)
    assert refused.value.code == "malformed"


@given(messages, st.binary(min_size=1, max_size=9))
def test_a_frame_with_something_behind_it_is_malformed(message: dict[str, Any], tail: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        decode(packer()(message) + tail, 1 << 20)
    assert refused.value.code == "malformed"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"", "malformed"),
        (b"\x80" * (CAP + 1), "oversize"),
        (b"\x91" * CAP, "malformed"),  # lists within lists within lists
        (b"\xdd\xff\xff\xff\xff" * 800, "malformed"),  # each declares four thousand million entries
        (b"\x81\xa4type" + b"\xdc\x04\x00" * 1000, "malformed"),
        (b"\xdf\xff\xff\xff\xff", "malformed"),
        (b"\xdb\xff\xff\xff\xffabc", "malformed"),
        (b"\xc7\xff\x05" + b"x" * 255, "malformed"),
        (b"\x81\xa4type\xa2\xff\xfe", "malformed"),  # not UTF-8
        (b"\x81\x01\x02", "malformed"),  # a key that is no text
        (msgpack.packb([1, 2]), "malformed"),
        (msgpack.packb(3), "malformed"),
        (msgpack.packb({}), "unknown_type"),
        (msgpack.packb({"type": 3}), "unknown_type"),
        (msgpack.packb({"type": None}), "unknown_type"),
    ],
)
def test_a_hostile_frame_is_refused_by_name(frame: bytes, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode(frame, CAP)
    assert refused.value.code == code


def test_numbers_of_numpy_travel_as_float64() -> None:
    sent = {"type": "x", "a": np.float64(0.1), "b": np.float32(0.5), "c": np.int64(3), "d": np.array(2.0)}
    assert decode(packer()(sent), CAP) == {"type": "x", "a": 0.1, "b": 0.5, "c": 3.0, "d": 2.0}


RECORDED = [
    json.loads(line)
    for session in ("version1", "version1_ticks")
    for line in (Path(__file__).parents[1] / "fixtures" / f"{session}.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("entry", RECORDED, ids=lambda e: f"{e['from']}-{e['message']['type']}-{e['n']}")
def test_the_bytes_of_version_1_are_still_read_and_written(entry: dict[str, Any]) -> None:
    frame = bytes.fromhex(entry["hex"])
    message = decode_from_plant(frame)
    shown = {key: value.hex() if isinstance(value, bytes) else value for key, value in message.items()}
    assert json.dumps(shown) == json.dumps(entry["message"])  # as text: one of the values is NaN
    assert packer()(message) == frame
