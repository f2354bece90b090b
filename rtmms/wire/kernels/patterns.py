"""Messages of a known layout: bytes that must be equal, and between them numbers. rtmms.wire.plant.layouts makes them.

A pattern is the bytes of a message that was good, and a list of its numbers (k, 3): where the bytes before it begin,
how many they are, and what it is for. What is behind the last number follows as one more row.
"""

from __future__ import annotations

from typing import Any

from rtmms.jit import kernel
from rtmms.wire.kernels.numbers import FLOAT64, WHOLE, bits_of, put_whole, read_number, width, write_bits, write_whole

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
