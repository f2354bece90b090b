"""Where the numbers of a message stand in its bytes: what a later one of the same layout is read and written by."""

from __future__ import annotations

from typing import NamedTuple

from rtmms.base.contract import APPLIED_POLICIES
from rtmms.wire.protocol.messages import packer

_DEEPEST = 8
_pack = packer()
_NUMBERS = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}

Path = tuple[str | int, ...]


class Number(NamedTuple):
    """One number: where it begins, how many bytes it has with its tag, and the keys and places that lead to it."""

    at: int
    size: int
    path: Path


class UnlikelyError(Exception):
    """A message that has something else in it than what is said on this wire: it is not worth a layout."""


def numbers(frame: bytes, begin: int = 0) -> list[Number]:
    """All numbers of the one message in frame[begin:], in their order; UnlikelyError for what is not worth a layout:
    keys that are not text or come twice, types beyond JSON's and bytes, more nesting than there ever is."""
    try:
        found: list[Number] = []
        end = _walk(frame, begin, (), found, 0)
    except IndexError:
        raise UnlikelyError("cut off") from None
    if end != len(frame):
        raise UnlikelyError("something behind it")
    return found


def _walk(frame: bytes, at: int, path: Path, found: list[Number], depth: int) -> int:
    """Past the value at `at`: where the next one begins."""
    tag = frame[at]
    if tag < 0x80 or tag >= 0xE0:
        found.append(Number(at, 1, path))
        return at + 1
    if tag in _NUMBERS:
        found.append(Number(at, _NUMBERS[tag], path))
        return at + _NUMBERS[tag]
    if tag in (0xC0, 0xC2, 0xC3):
        return at + 1
    if 0xA0 <= tag < 0xC0 or tag in _TEXTS or tag in _BYTES:
        begin, size = _extent(frame, at)
        return begin + size
    if depth >= _DEEPEST:
        raise UnlikelyError("nested too deep")
    if 0x90 <= tag < 0xA0 or tag in (0xDC, 0xDD):
        size, at = _count(frame, at, tag & 0x0F, 0xDC)
        for place in range(size):
            at = _walk(frame, at, (*path, place), found, depth + 1)
        return at
    if 0x80 <= tag < 0x90 or tag in (0xDE, 0xDF):
        return _walk_map(frame, at, path, found, depth)
    raise UnlikelyError(f"type {tag:#x}")


def _walk_map(frame: bytes, at: int, path: Path, found: list[Number], depth: int) -> int:
    size, at = _count(frame, at, frame[at] & 0x0F, 0xDE)
    seen: set[str] = set()
    for _ in range(size):
        if not (0xA0 <= frame[at] < 0xC0 or frame[at] in _TEXTS):
            raise UnlikelyError("a key that is no text")
        begin, length = _extent(frame, at)
        try:
            key = frame[begin : begin + length].decode()
        except UnicodeDecodeError:
            raise UnlikelyError("a key that is no text") from None
        if key in seen:
            raise UnlikelyError("a key twice")
        seen.add(key)
        at = _walk(frame, begin + length, (*path, key), found, depth + 1)
    return at


def _extent(frame: bytes, at: int) -> tuple[int, int]:
    """Of text or bytes: where they begin, and how many there are."""
    tag = frame[at]
    if 0xA0 <= tag < 0xC0:
        return at + 1, tag & 0x1F
    size = _TEXTS.get(tag) or _BYTES[tag]
    begin = at + 1 + size
    return begin, int.from_bytes(frame[at + 1 : begin], "big")


def _count(frame: bytes, at: int, few: int, long: int) -> tuple[int, int]:
    """Of a list or map: how many entries, and where they begin."""
    if frame[at] < long:
        return few, at + 1
    size = 2 if frame[at] == long else 4
    return int.from_bytes(frame[at + 1 : at + 1 + size], "big"), at + 1 + size


def with_policy(tail: bytes, policy: str, clamped: bool | None = None) -> bytes:
    """What follows the last number of a state, with another policy, and another flag where one is given; UnlikelyError
    where it is no such text."""
    for said in APPLIED_POLICIES:
        before, found, after = tail.partition(_pack("policy") + _pack(said))
        if found:
            text = before + _pack("policy") + _pack(policy) + after
            if clamped is None:
                return text
            if text.endswith((b"\xc2", b"\xc3")):
                return text[:-1] + _pack(clamped)
    raise UnlikelyError("no policy behind the numbers")
