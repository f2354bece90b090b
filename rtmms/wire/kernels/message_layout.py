"""Messages of a known layout: bytes that must be equal, and between them numbers of msgpack, big-endian.

A pattern is the bytes of a message that was good, and a list of its numbers (k, 3): where the bytes before it begin,
how many they are, and what it is for. What is behind the last number follows as one more row.
rtmms.wire.plant.message_layouts makes patterns. Numbers are read in any width, and written in the width that is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from rtmms.base.jit import kernel

WHOLE, REAL, HUGE, NONE = range(4)
"""What stood there: an int64 or a float64; a whole number beyond them, of which only the float64 is told; no number."""

FALSE, TRUE = 0xC2, 0xC3
FLOAT32, FLOAT64, U8, U16, U32, U64, I8, I16, I32, I64 = 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3


def _reinterpreted(source: Any, target: Any) -> Any:
    """An intrinsic that takes the bits of one type for those of another."""

    @intrinsic
    def bits(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), generate

    return bits


real_of = _reinterpreted(types.int64, types.float64)
bits_of = _reinterpreted(types.float64, types.int64)
_single_of = _reinterpreted(types.int32, types.float32)


@kernel(inline=True)
def width(tag: int) -> int:
    """Bytes of the number that begins with this one; 0 where it is none."""
    if tag < 0x80 or tag >= 0xE0:
        return 1
    if tag in (FLOAT64, U64, I64):
        return 9
    if tag in (FLOAT32, U32, I32):
        return 5
    if tag in (U16, I16):
        return 3
    if tag in (U8, I8):
        return 2
    return 0


@kernel
def read_number(frame: Any, at: int) -> tuple[Any, Any, Any]:
    """What stands at frame[at], all of it being there (`width`): its kind, as int64, as float64."""
    tag = int(frame[at])
    if tag < 0x80:
        return WHOLE, tag, float(tag)
    if tag >= 0xE0:
        return WHOLE, tag - 0x100, float(tag - 0x100)
    size = width(tag) - 1
    bits = np.int64(0)
    for k in range(1, 1 + size):
        bits = (bits << 8) | np.int64(frame[at + k])
    if tag == FLOAT64:
        return REAL, 0, real_of(bits)
    if tag == FLOAT32:
        return REAL, 0, float(_single_of(np.int32(bits)))
    if tag >= I8:  # the sign is that of the first byte
        shift = 64 - 8 * size
        value = (bits << shift) >> shift
        return WHOLE, value, float(value)
    if bits < 0:
        return HUGE, 0, float(np.uint64(bits))
    return WHOLE, bits, float(bits)


@kernel(inline=True)
def tag_of(value: int) -> int:
    """How msgpack begins this whole number in its least width; 0 of those that are one byte, 1 of those below 0."""
    if value >= 0:
        if value < 0x80:
            return 0
        if value < 0x100:
            return U8
        if value < 0x10000:
            return U16
        return U32 if value < 0x100000000 else U64
    if value >= -32:
        return 1
    if value >= -0x80:
        return I8
    if value >= -0x8000:
        return I16
    return I32 if value >= -0x80000000 else I64


@kernel(inline=True)
def kind_of(tag: int) -> int:
    """The same of a byte that is there: `tag_of` of the number that begins so."""
    return 0 if tag < 0x80 else 1 if tag >= 0xE0 else tag


@kernel
def write_whole(frame: Any, at: int, value: int) -> bool:
    """In place, if it takes as many bytes as are there, and as msgpack would."""
    tag = int(frame[at])
    if kind_of(tag) != tag_of(value):
        return False
    size = width(tag) - 1
    if size == 0:
        frame[at] = value & 0xFF
        return True
    for k in range(size):
        frame[at + 1 + k] = (value >> (8 * (size - 1 - k))) & 0xFF
    return True


@kernel
def put_whole(frame: Any, at: int, value: int) -> int:
    """In its least width; where the next byte stands."""
    tag = tag_of(value)
    if tag < 2:
        frame[at] = value & 0xFF
        return at + 1
    frame[at] = tag
    size = width(tag)
    write_bits(frame, at + 1, value, size - 1)
    return at + size


@kernel(inline=True)
def write_bits(frame: Any, at: int, bits: int, size: int) -> None:
    """The last `size` bytes of a word."""
    for k in range(size):
        frame[at + k] = (bits >> (8 * (size - 1 - k))) & 0xFF


SEQ, STEP, OTHER = -1, -2, -3
"""What a number of a command is for; from 0 on: the value of that place."""

HEAD_SEQ, HEAD_STEP = range(2)


@kernel
def read_command(frame: Any, begin: int, end: int, pattern: Any, rows: Any, head: Any, values: Any) -> bool:
    """Whether frame[begin:end] is the pattern with other numbers; then head (seq, step) and values have them.

    seq and step are whole numbers of 64 bits with a sign; a value may be any number, finite or not. False says only
    that it is for the general reader.
    """
    at, last = begin, len(rows) - 1
    for k in range(last + 1):
        start, size, target = rows[k, 0], rows[k, 1], rows[k, 2]
        if at + size > end:
            return False
        for j in range(size):
            if frame[at + j] != pattern[start + j]:
                return False
        at += size
        if k == last:
            break
        if at >= end:
            return False
        size = width(int(frame[at]))
        if size == 0 or at + size > end:
            return False
        kind, whole, real = read_number(frame, at)
        at += size
        if target >= 0:
            values[target] = real
        elif target != OTHER:
            if kind != WHOLE:
                return False
            head[HEAD_SEQ if target == SEQ else HEAD_STEP] = whole
    return at == end


@kernel
def write_state(frame: Any, wholes: Any, reals: Any, given: Any, numbers: Any) -> bool:
    """Numbers into a state message in place; False where one takes another width, and the message is to be made anew.

    wholes (k,), given (k,)   where whole numbers begin, and what they are to be
    reals (m,), numbers (m,)  the same of float64, which all have nine bytes
    """
    for k in range(len(wholes)):
        if not write_whole(frame, wholes[k], given[k]):
            return False
    for k in range(len(reals)):
        write_bits(frame, reals[k] + 1, bits_of(numbers[k]), 8)
    return True


@kernel
def lay_out(
    frame: Any, pieces: Any, ends: Any, order: Any, wholes: Any, reals: Any, given: Any, numbers: Any
) -> int:  # fmt: skip
    """The same from its beginning, each whole number in its least width; how many bytes it takes. wholes and reals are
    written: where each begins now.

    pieces, ends   the bytes between the numbers, and where those before each number end
    order (k + m,) the place in `given` of each number of the message; k and beyond: in `numbers`
    """
    at = begin = 0
    for n in range(len(order)):
        for j in range(begin, ends[n]):
            frame[at] = pieces[j]
            at += 1
        begin, k = ends[n], order[n]
        if k < len(wholes):
            wholes[k] = at
            at = put_whole(frame, at, given[k])
        else:
            reals[k - len(wholes)] = at
            frame[at] = FLOAT64
            write_bits(frame, at + 1, bits_of(numbers[k - len(wholes)]), 8)
            at += 9
    for j in range(begin, len(pieces)):
        frame[at] = pieces[j]
        at += 1
    return at
