"""Rows of a recorder's ring, as rtmms.record.ring.Ring.push writes them, and bins of durations.

Numbers pass as words with the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from rtmms.base.jit import kernel
from rtmms.base.pointers import words_at
from rtmms.base.structs import record_at, word_record
from rtmms.loop.log_row import RowHead

# One word of memory that two processes share, with an order of memory accesses. On any processor, a process that reads
# the word also reads everything that the other process wrote before it.


@intrinsic
def load_acquire(typing_context: Any, address: Any) -> Any:
    """Return the int64 at an address; later reads are not done before it.

    Parameters
    ----------
    typing_context : Any
        Context of numba.
    address : Any
        The address.

    Returns
    -------
    tuple
        Signature and code generator, as an intrinsic returns them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        return builder.load_atomic(builder.inttoptr(args[0], word.as_pointer()), "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def store_release(typing_context: Any, address: Any, value: Any) -> Any:
    """Write an int64 to an address; earlier writes are visible before it.

    Parameters
    ----------
    typing_context : Any
        Context of numba.
    address : Any
        The address.
    value : Any
        The number.

    Returns
    -------
    tuple
        Signature and code generator, as an intrinsic returns them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


ROW_MEMORY = word_record(
    "made_at",  # of the number of written rows
    "freed_at",  # of the number of rows that are free again
    "rows_at",  # of the first row
    "row_bytes",
    "capacity",  # rows, a power of two
    "head_at",  # of the integers of the next row
    "n_head",
    "sources_at",  # of the numbers, in order: address and size of each piece
    "n_sources",
    "account",  # the plant's function that writes its outputs
    "arguments_at",
)
"""Memory with which compiled code writes the rows of a recorder (rtmms.record.recorder.CompiledRows)."""

ROW_HEAD = word_record(*RowHead._fields)

row_memory_at = record_at(ROW_MEMORY)
row_head_at = record_at(ROW_HEAD)


@kernel
def push_row(at: int) -> int:
    """Write a row without waiting.

    Parameters
    ----------
    at : int
        Address of the record ROW_MEMORY.

    Returns
    -------
    int
        1, or 0 without room; then nothing was done.
    """
    memory = row_memory_at(at)
    pushed_count = load_acquire(memory.made_at)
    if pushed_count - load_acquire(memory.freed_at) >= memory.capacity:
        return 0
    place = memory.rows_at + (pushed_count & (memory.capacity - 1)) * memory.row_bytes
    row = carray(words_at(place), (memory.row_bytes // 8,))
    head = carray(words_at(memory.head_at), (memory.n_head,))
    row[0] = pushed_count
    for i in range(len(head)):
        row[1 + i] = head[i]
    to = 1 + len(head)
    sources = carray(words_at(memory.sources_at), (memory.n_sources, 2))
    for k in range(len(sources)):
        part = carray(words_at(sources[k, 0]), (sources[k, 1],))
        for i in range(len(part)):
            row[to + i] = part[i]
        to += len(part)
    row[to] = pushed_count
    store_release(memory.made_at, pushed_count + 1)
    return 1


# Times in the bins of an HDR histogram with three digits, at 0.1 us a step for any number of times.
#
# The times of a bin have the same first eleven binary digits; below 2048 ns each time has a bin.


_DIGITS = 10
_HALF = 1 << _DIGITS
MAX_TIMED_NS = 3_600_000_000_000
BINS = 33_421


@kernel
def tally(ring: Any, begin: int, end: int, counts: Any) -> None:
    """Count durations in bins.

    Parameters
    ----------
    ring : (rows, PARTS) int64 array
        Durations, ns; the number of rows is a power of two. Negative ones are left out.
    begin, end : int
        First row, and row after the last.
    counts : (PARTS, BINS) int64 array
        Counts, changed in place.
    """
    mask = len(ring) - 1
    for k in range(begin, end):
        for part in range(ring.shape[1]):
            value = ring[k & mask, part]
            if value >= 0:
                counts[part, place(min(value, MAX_TIMED_NS))] += 1


@kernel
def place(value: int) -> int:
    """Return the bin of a value.

    Parameters
    ----------
    value : int
        Value of at least 0.

    Returns
    -------
    int
        Index of the bin.
    """
    bucket = 0
    while value >> bucket >= 2 * _HALF:
        bucket += 1
    return (bucket << _DIGITS) + (value >> bucket)


def values_of(places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return the smallest value of each bin.

    Parameters
    ----------
    places : npt.NDArray[np.int64]
        Indices of bins.

    Returns
    -------
    npt.NDArray[Any]
        Values, ns.
    """
    bucket = np.maximum((places >> _DIGITS) - 1, 0)
    least: npt.NDArray[Any] = (places - (bucket << _DIGITS)) << bucket
    return least
