"""A row into a recorder's ring, as rtmms.record.ring.Ring.push writes it. Numbers pass as words: the same bits,
whatever they are."""

from __future__ import annotations

from numba import carray

from rtmms.addresses import integers_at
from rtmms.jit import kernel
from rtmms.loop.kernels.memory import record_at, words
from rtmms.loop.kernels.ordered import load_acquire, store_release
from rtmms.loop.log_row import Head

ROW_MEMORY = words(
    "made_at",  # of the count of rows that were made
    "freed_at",  # of the count of those that are free again
    "rows_at",  # of the first row
    "row_bytes",
    "capacity",  # rows, a power of two
    "head_at",  # of the whole numbers of the row to come
    "n_head",
    "sources_at",  # of the numbers, in order: address and count of each piece
    "n_sources",
    "account",  # the plant's function that writes its outputs
    "arguments_at",
)
"""By which compiled code writes the rows of a recorder (rtmms.record.recorder.CompiledRows)."""

ROW_HEAD = words(*Head._fields)

row_memory_at, row_head_at = record_at(ROW_MEMORY), record_at(ROW_HEAD)


@kernel
def push_row(at: int) -> int:
    """1; or 0 where there is no room: nothing was done then, and nothing counted. Never waits."""
    memory = row_memory_at(at)
    made = load_acquire(memory.made_at)
    if made - load_acquire(memory.freed_at) >= memory.capacity:
        return 0
    place = memory.rows_at + (made & (memory.capacity - 1)) * memory.row_bytes
    row = carray(integers_at(place), (memory.row_bytes // 8,))
    head = carray(integers_at(memory.head_at), (memory.n_head,))
    row[0] = made
    for i in range(len(head)):
        row[1 + i] = head[i]
    to = 1 + len(head)
    sources = carray(integers_at(memory.sources_at), (memory.n_sources, 2))
    for k in range(len(sources)):
        part = carray(integers_at(sources[k, 0]), (sources[k, 1],))
        for i in range(len(part)):
            row[to + i] = part[i]
        to += len(part)
    row[to] = made
    store_release(memory.made_at, made + 1)
    return 1
