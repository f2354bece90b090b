"""Frames that are almost right: what valid ones become when bytes or values of theirs are changed.

Everything is drawn from the `random.Random` that is passed in, so a seed gives the same frames again.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from msgpack import packb, unpackb  # type: ignore[attr-defined]

_LONGEST = 1 << 17
_MOST_KEPT = 8
_pack: Callable[[Any], bytes] = packb
_unpack: Callable[..., Any] = unpackb

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 127, 128, 255, 256, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 53) + 1, (1 << 63) - 1,
    1 << 63, (1 << 64) - 1, -(1 << 63), -(1 << 31), 0.0, -0.0, 0.5, 1e-320, 1e308, math.inf, -math.inf, math.nan,
)  # fmt: skip
TEXTS = (
    "",
    "*",
    "[",
    "[!]",
    "a" * 64,
    "a" * 65,
    "a" * 300,
    "\x00",
    "\n",
    "ß",
    "💧",
    "..",
    "left.*",
    "command",
    "hello",
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    b"",
    b"\x00" * 16,
    b"\xff" * 40,
    [],
    {},
    [[]],
    [0] * 40,
    {"": ""},
    {"a": {"b": []}},
)

# heads of msgpack and the like that promise more than there is
PROMISES = (
    b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdc\xff\xff",
    b"\xde\xff\xff", b"\xc9\xff\xff\xff\xff\x01", b"\xc1", b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", b"\x91" * 64,
    b"\x81\xa1a" * 64, b"\xd9\xff", b"[[[[[[[[", b'{"a":' * 32, b"\xff\xff\xff\xff", b"\x00\x00\x00\x00",
)  # fmt: skip


def _flip(draw: random.Random, frame: bytearray, _: Sequence[bytes]) -> None:
    if frame:
        frame[int(draw.random() * len(frame))] ^= 1 << int(draw.random() * 8)


def _write(draw: random.Random, frame: bytearray, _: Sequence[bytes]) -> None:
    if frame:
        frame[int(draw.random() * len(frame))] = int(draw.random() * 256)


def _insert(draw: random.Random, frame: bytearray, _: Sequence[bytes]) -> None:
    at = int(draw.random() * (len(frame) + 1))
    frame[at:at] = draw.randbytes(1 + int(draw.random() * 4))


def _promise(draw: random.Random, frame: bytearray, _: Sequence[bytes]) -> None:
    at = int(draw.random() * (len(frame) + 1))
    more = PROMISES[int(draw.random() * len(PROMISES))]
    frame[at : at + (len(more) if draw.random() < 0.5 else 0)] = more


def _lose(draw: random.Random, frame: bytearray, _: Sequence[bytes]) -> None:
    at = int(draw.random() * (len(frame) + 1))
    del frame[at : at + 1 + int(draw.random() * 8)]


def _cut(draw: random.Random, frame: bytearray, _: Sequence[bytes]) -> None:
    del frame[int(draw.random() * (len(frame) + 1)) :]


def _repeat(draw: random.Random, frame: bytearray, _: Sequence[bytes]) -> None:
    at = int(draw.random() * (len(frame) + 1))
    piece = frame[at : at + 1 + int(draw.random() * 32)]
    frame[at:at] = piece * (1 + int(draw.random() ** 4 * 200))


def _splice(draw: random.Random, frame: bytearray, samples: Sequence[bytes]) -> None:
    other = samples[int(draw.random() * len(samples))]
    at, from_ = int(draw.random() * (len(frame) + 1)), int(draw.random() * (len(other) + 1))
    frame[at:] = other[from_:]


_BYTES: tuple[Callable[[random.Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip, _write, _insert, _promise, _lose, _cut, _repeat, _splice,
)  # fmt: skip


class Mutations:
    """An endless source of frames near some valid ones.

    samples  valid frames. Those that are a map of msgpack or an object of JSON are also changed value by value.
    """

    def __init__(self, samples: Sequence[bytes], seed: str) -> None:
        self._samples = list(samples) or [b""]
        self._given = len(self._samples)
        self._draw = random.Random(seed)
        self._trees = [found for sample in self._samples if (found := _read(sample)) is not None]

    def keep(self, frame: bytes) -> None:
        """Go on from this one too, in place of the first that was kept where there are many."""
        if len(self._samples) >= self._given + _MOST_KEPT:
            del self._samples[self._given]
        self._samples.append(frame)

    def frame(self) -> bytes:
        """One of a hundred as it is, ten of them garbage, the rest changed in a few places."""
        draw = self._draw
        what = draw.random()
        if what < 0.01:
            return self._samples[int(draw.random() * len(self._samples))]
        if what < 0.10:
            return draw.randbytes(int(draw.random() ** 2 * 200))
        if what < 0.55 and self._trees:
            tree, write = self._trees[int(draw.random() * len(self._trees))]
            changed = tree
            for _ in range(1 + int(draw.random() * 3)):
                changed = self._changed(changed)
            try:
                return write(changed)[:_LONGEST]
            except (ValueError, TypeError, OverflowError, UnicodeEncodeError):
                pass  # this value has no such form
        frame = bytearray(self._samples[int(draw.random() * len(self._samples))])
        for _ in range(1 + int(draw.random() ** 2 * 5)):
            _BYTES[int(draw.random() * len(_BYTES))](draw, frame, self._samples)
        return bytes(frame[:_LONGEST])

    def _changed(self, tree: Any) -> Any:
        """A copy with one value, somewhere, lost, put in, or another one; the rest is shared."""
        draw = self._draw
        if isinstance(tree, dict) and tree and draw.random() < 0.95:
            keys = list(tree)
            key, what = keys[int(draw.random() * len(keys))], draw.random()
            copy = dict(tree)
            if what < 0.1:
                del copy[key]
            elif what < 0.2:
                copy[self._key()] = copy[key]
            else:
                copy[key] = self._changed(tree[key])
            return copy
        if isinstance(tree, list) and tree and draw.random() < 0.8:
            at, what = int(draw.random() * len(tree)), draw.random()
            items = list(tree)
            if what < 0.15:
                del items[at]
            elif what < 0.3:
                items[at:at] = [items[at]] * (1 + int(draw.random() ** 6 * 2000))
            else:
                items[at] = self._changed(items[at])
            return items
        if isinstance(tree, int | float) and draw.random() < 0.4:
            return self._near(tree)
        return self._value()

    def _near(self, number: float) -> Any:
        draw = self._draw
        return number + int(draw.random() * 9) - 4 if isinstance(number, int) else number * draw.uniform(-2.0, 2.0)

    def _text(self) -> str:
        return TEXTS[int(self._draw.random() * len(TEXTS))]

    def _key(self) -> Any:
        """Most often a text, as keys are."""
        if self._draw.random() < 0.8:
            return self._text()
        return NUMBERS[int(self._draw.random() * len(NUMBERS))]

    def _value(self) -> Any:
        draw = self._draw
        what = draw.random()
        if what < 0.5:
            return NUMBERS[int(draw.random() * len(NUMBERS))]
        if what < 0.75:
            return self._text()
        return OTHERS[int(draw.random() * len(OTHERS))]


def _read(sample: bytes) -> tuple[Any, Callable[[Any], bytes]] | None:
    """The tree in a sample, and how to write one; None where it is neither a map of msgpack nor an object of JSON."""
    for read, write in ((_unpack, _pack), (json.loads, _write_json)):
        try:
            tree = read(sample)
        except Exception:
            continue
        if isinstance(tree, dict):
            return tree, write
    return None


def _write_json(tree: Any) -> bytes:
    return json.dumps(tree).encode()
