"""Frames that are almost right, drawn by hypothesis, for everything that parses what others send."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.lines_of_python import Lines, excess

Parser = tuple[Callable[[bytes], object], list[bytes]]
"""What a function of the entry points rtmms.parsers returns: the code to try, and valid frames."""

numbers = st.one_of(
    st.sampled_from((127, 128, 255, 256, 65535, 65536, 1 << 31, 1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)),
    st.sampled_from((0.0, -0.0, 1e-320, 1e308, math.inf, -math.inf, math.nan)),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(-3.0, 3.0),
)
texts = st.one_of(
    st.sampled_from(("", "*", "[", "[!]", "a" * 65, "a" * 300, "\x00", "\n", "left.*", "command", "hello")),
    st.text(max_size=6),
)
others = st.sampled_from(
    (None, True, b"", b"\xff" * 40, [], {}, [[]], [0] * 40, [0] * 1500, {"": ""}, {"a": {"b": []}})
)
values = st.one_of(numbers, texts, others)
promises = st.sampled_from((
    b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdc\xff\xff",
    b"\xc9\xff\xff\xff\xff\x01", b"\xc1", b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", b"\x91" * 64, b"\x81\xa1a" * 64,
    b"[[[[[[[[", b'{"a":' * 32, b"\xff\xff\xff\xff", b"\x00\x00\x00\x00",
))  # fmt: skip
"""Heads of msgpack, JSON and others that promise more than follows."""


def frames_near(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Draw frames near valid ones: the samples, with values or bytes changed, and garbage.

    Parameters
    ----------
    samples : sequence of bytes
        Valid frames. Values are changed in those that are a map of msgpack or an object of JSON.
    """
    trees = [result for sample in samples if (result := _read(sample)) is not None]
    near = [st.sampled_from(samples), _changed_bytes(samples), st.binary(max_size=200)]
    return st.one_of(*near, *([_changed_values(trees)] * 2 if trees else []))


def try_parser(parser: Parser, frames: int) -> Counter[str]:
    """Read frames that are almost right, the same ones in each run; count the texts that the reader returned.

    The test fails where the reader raises, and where a frame makes it run more lines of Python than its bytes allow.
    """
    read, samples = parser
    outcomes, lines = Counter[str](), Lines()
    for sample in samples:
        read(sample)  # what it loads or compiles at its first frame is no work of a frame

    @seed(1)
    @settings(max_examples=frames, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(frames_near(samples))
    def reads(frame: bytes) -> None:
        outcome = lines.call(read, frame)
        assert excess(lines.count, len(frame)) <= 0, f"{lines.count} lines for {len(frame)} bytes"
        outcomes[str(outcome)] += 1

    reads()
    return outcomes


@st.composite
def _changed_bytes(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    frame = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(frame)))
        match draw(st.sampled_from(("write", "insert", "promise", "lose", "cut", "repeat", "splice"))):
            case "write":
                frame[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                frame[at:at] = draw(st.binary(min_size=1, max_size=4))
            case "promise":
                more = draw(promises)
                frame[at : at + draw(st.sampled_from((0, len(more))))] = more
            case "lose":
                del frame[at : at + draw(st.integers(1, 8))]
            case "cut":
                del frame[at:]
            case "repeat":
                frame[at:at] = frame[at : at + draw(st.integers(1, 32))] * draw(st.sampled_from((1, 2, 100)))
            case "splice":
                other = draw(st.sampled_from(samples))
                frame[at:] = other[draw(st.integers(0, len(other))) :]
    return bytes(frame)


@st.composite
def trees_near(draw: st.DrawFn, tree: Any) -> Any:
    """Draw tables and lists near one: up to three values of it are lost, doubled, or others."""
    for _ in range(draw(st.integers(1, 3))):
        tree = _change(draw, tree)
    return tree


@st.composite
def _changed_values(draw: st.DrawFn, trees: Sequence[tuple[Any, Callable[[Any], bytes]]]) -> bytes:
    tree, write = draw(st.sampled_from(trees))
    try:
        return write(draw(trees_near(tree)))
    except (ValueError, TypeError, OverflowError):
        return b""  # the format has no such value


def _change(draw: st.DrawFn, tree: Any) -> Any:
    """A copy of which one value, somewhere, is lost, doubled, or another one."""
    if isinstance(tree, dict) and tree:
        key, copy = draw(st.sampled_from(list(tree))), dict(tree)
        match draw(st.integers(0, 9)):
            case 0:
                del copy[key]
            case 1:
                copy[draw(texts)] = copy[key]
            case _:
                copy[key] = _change(draw, copy[key])
        return copy
    if isinstance(tree, list) and tree:
        at, items = draw(st.integers(0, len(tree) - 1)), list(tree)
        match draw(st.integers(0, 5)):
            case 0:
                del items[at]
            case 1:
                items[at:at] = [items[at]] * draw(st.sampled_from((1, 2, 1500)))
            case _:
                items[at] = _change(draw, items[at])
        return items
    if type(tree) is int:
        return draw(st.one_of(st.integers(tree - 4, tree + 4), values))
    return draw(values)


def _read(sample: bytes) -> tuple[Any, Callable[[Any], bytes]] | None:
    for read, write in ((msgpack.unpackb, msgpack.packb), (json.loads, lambda tree: json.dumps(tree).encode())):
        try:
            tree = read(sample)
        except Exception:
            continue
        if isinstance(tree, dict):
            return tree, write
    return None
