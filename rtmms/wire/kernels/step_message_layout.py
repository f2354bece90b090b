"""Compiled reader and writer of a `StepLayout`: states and commands of both sides.

The reader accepts the exact layout and nothing else. Its caller passes any other message to the general reader.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import carray, types
from numba.extending import intrinsic

from rtmms.base.jit import kernel
from rtmms.base.pointers import address, bytes_at, words_at
from rtmms.base.structs import record_at, word_record
from rtmms.wire.protocol.step_message_layout import StepLayout

LAYOUT = word_record(
    "body_at", "mask_at", "body_bytes",
    "integers_at", "n_integers", "reals_at", "n_reals",  # offsets in the body
    "endings_at", "ending_rows_at", "n_endings",  # bytes of all endings; (n, 2) begin and size of each
)  # fmt: skip
layout_at = record_at(LAYOUT)


class CompiledLayout:
    """Layout in memory for compiled code.

    Parameters
    ----------
    layout : StepLayout
        The layout to store.

    Attributes
    ----------
    at : int
        Address of the record, valid as long as this object.
    """

    def __init__(self, layout: StepLayout) -> None:
        sizes = [len(ending) for ending in layout.endings]
        rows = [(sum(sizes[:k]), size) for k, size in enumerate(sizes)]
        self._record = np.zeros(1, dtype=LAYOUT)
        self._arrays: list[npt.NDArray[Any]] = [
            *(np.frombuffer(part, np.uint8).copy() for part in (layout.body, layout.mask, b"".join(layout.endings))),
            *(np.array(part, dtype=np.int64) for part in (layout.integers, layout.reals, rows)),
        ]
        body, mask, endings, integers, reals, ending_rows = map(address, self._arrays)
        self._record[0] = (
            body, mask, len(layout.body), integers, len(layout.integers), reals, len(layout.reals),
            endings, ending_rows, len(rows),
        )  # fmt: skip
        self.at = address(self._record)


def _reinterpreted(source: Any, target: Any) -> Any:
    """Return an intrinsic that takes the bits of one type for those of another."""

    @intrinsic
    def bits(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), generate

    return bits


real_of = _reinterpreted(types.int64, types.float64)
bits_of = _reinterpreted(types.float64, types.int64)


@kernel(inline=True)
def read_bits(frame: Any, at: int) -> Any:
    """Return eight big-endian bytes as an int64.

    Parameters
    ----------
    frame : array of uint8
        The message.
    at : int
        Offset of the first byte.

    Returns
    -------
    int64
        The number.
    """
    bits = np.int64(0)
    for k in range(8):
        bits = (bits << 8) | np.int64(frame[at + k])
    return bits


@kernel(inline=True)
def write_bits(frame: Any, at: int, bits: int) -> None:
    """Write an int64 as eight big-endian bytes.

    Parameters
    ----------
    frame : array of uint8
        The message.
    at : int
        Offset of the first byte.
    bits : int
        The number.
    """
    for k in range(8):
        frame[at + k] = (bits >> (8 * (7 - k))) & 0xFF


@kernel
def read_message(layout: int, frame: Any, begin: int, end: int, integers: Any, reals: Any) -> bool:
    """Read frame[begin:end] into integers and reals, and return whether it is a message of the layout.

    The reals may be any float64, finite or not. If the result is False, nothing is written.

    Parameters
    ----------
    layout : int
        Address of the record LAYOUT.
    frame : array of uint8
        The received bytes.
    begin, end : int
        Extent of the message.
    integers : array of int64
        Receives the integers.
    reals : array of float64
        Receives the reals.

    Returns
    -------
    bool
        Whether the message has this layout.
    """
    m = layout_at(layout)
    if end - begin < m.body_bytes:
        return False
    body, mask = carray(bytes_at(m.body_at), (m.body_bytes,)), carray(bytes_at(m.mask_at), (m.body_bytes,))
    different = 0
    for k in range(len(body)):
        different |= (frame[begin + k] ^ body[k]) & mask[k]
    if different or not _is_ending(m, frame, begin + m.body_bytes, end):
        return False
    offsets = carray(words_at(m.integers_at), (m.n_integers,))
    for k in range(len(offsets)):
        integers[k] = read_bits(frame, begin + offsets[k])
    offsets = carray(words_at(m.reals_at), (m.n_reals,))
    for k in range(len(offsets)):
        reals[k] = real_of(read_bits(frame, begin + offsets[k]))
    return True


@kernel
def _is_ending(m: Any, frame: Any, begin: int, end: int) -> bool:
    """Return whether frame[begin:end] is one of the endings."""
    rows = carray(words_at(m.ending_rows_at), (m.n_endings, 2))
    for n in range(len(rows)):
        size = rows[n, 1]
        if size != end - begin:
            continue
        ending = carray(bytes_at(m.endings_at + rows[n, 0]), (size,))
        k = 0
        while k < size and frame[begin + k] == ending[k]:
            k += 1
        if k == size:
            return True
    return False


@kernel(inline=True)
def write_integer(layout: Any, frame: Any, begin: int, place: int, value: int) -> None:
    """Write one integer of the message that begins at frame[begin].

    Parameters
    ----------
    layout : record LAYOUT
        See `layout_at`.
    frame : array of uint8
        The message.
    begin : int
        Offset of the message.
    place : int
        Index among `StepLayout.integers`.
    value : int
        The number.
    """
    write_bits(frame, begin + carray(words_at(layout.integers_at), (layout.n_integers,))[place], value)


@kernel(inline=True)
def write_reals(layout: Any, frame: Any, begin: int, first: int, values: Any) -> None:
    """Write successive reals of the message that begins at frame[begin].

    Parameters
    ----------
    layout : record LAYOUT
        See `layout_at`.
    frame : array of uint8
        The message.
    begin : int
        Offset of the message.
    first : int
        Index of the first real.
    values : array of float64
        The numbers.
    """
    offsets = carray(words_at(layout.reals_at), (layout.n_reals,))
    for k in range(len(values)):
        write_bits(frame, begin + offsets[first + k], bits_of(values[k]))
