"""A row into a recorder's ring, as rtmms.record.ring.Ring.push does it, by the memory of row_memory. Numbers pass as
words: the same bits, whatever they are."""

from __future__ import annotations

from numba import carray

from rtmms.addresses import integers_at
from rtmms.jit import kernel
from rtmms.loop.kernels.ordered import load_acquire, store_release
from rtmms.loop.kernels.row_memory import (
    CAPACITY,
    FREED,
    HEAD,
    MADE,
    N_HEAD,
    N_SOURCES,
    ROW_BYTES,
    ROWS,
    SOURCES,
    WORDS,
)


@kernel
def push_row(at: int) -> int:
    """1; or 0 where there is no room: nothing was done then, and nothing counted. Never waits."""
    r = carray(integers_at(at), (WORDS,))
    made = load_acquire(r[MADE])
    if made - load_acquire(r[FREED]) >= r[CAPACITY]:
        return 0
    place = r[ROWS] + (made & (r[CAPACITY] - 1)) * r[ROW_BYTES]
    row = carray(integers_at(place), (r[ROW_BYTES] // 8,))
    head = carray(integers_at(r[HEAD]), (r[N_HEAD],))
    row[0] = made
    for i in range(len(head)):
        row[1 + i] = head[i]
    to = 1 + len(head)
    sources = carray(integers_at(r[SOURCES]), (r[N_SOURCES], 2))
    for k in range(len(sources)):
        part = carray(integers_at(sources[k, 0]), (sources[k, 1],))
        for i in range(len(part)):
            row[to + i] = part[i]
        to += len(part)
    row[to] = made
    store_release(r[MADE], made + 1)
    return 1
