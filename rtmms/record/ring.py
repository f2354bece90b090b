"""Rows in shared memory from one process to another: the writer never waits; rows without room are dropped and counted.

There is one producer, one consumer, and fixed memory. A row is a stamp, some int64, some float64 and the stamp again.
The producer writes the row first and the count of rows (`head`) last. The consumer frees a place (`tail`) after it has
used its row. So neither sees an incomplete row if stores are seen in order (x86). On other processors `head` may be
seen before a row that Python writes. A consumer that takes only the rows of its previous look, some ms ago, is safe
there too. Compiled code (rtmms.loop.row_kernels) writes the same rows at the same places, in order everywhere.

`settled` counts the rows with messages outside the ring that were sent, too. A reader that needs those takes no others.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from rtmms.base.errors import RtmmsError
from rtmms.base.processes import shared_memory

MAGIC = 0x31676E6972736D72
"""Mark of a ring: 'rmsring1'."""
PAGE = 4096
_SHAPE = 0
"""Place of the shape in the first page, in int64."""
_HEAD = 64
"""Place of the producer's counters, in int64, in a cache line of their own."""
_TAIL = 128
"""Place of the consumer's counters, in int64, in a cache line of their own."""


class Row(NamedTuple):
    """Row as the consumer gets it.

    Attributes
    ----------
    ints : tuple[int, ...]
        Whole numbers, as they were pushed.
    floats : bytes
        Numbers, 8 bytes each, native order.
    """

    ints: tuple[int, ...]
    floats: bytes


class Ring:
    """Ring of rows in memory that a descriptor names.

    Parameters
    ----------
    descriptor : int
        Descriptor of the memory; the consumer's process inherits it (pass_fds) and opens it by `attach`.
    ints, floats : int
        Numbers of each kind in a row.
    capacity : int
        Number of rows, a power of two.

    Examples
    --------
    >>> ring = Ring.create(1, 1, 4)
    >>> ring.push((7,), bytes(8)), [row.ints for row in ring.take()]
    (True, [(7,)])
    >>> ring.close()
    """

    def __init__(self, descriptor: int, ints: int, floats: int, capacity: int) -> None:
        self.descriptor, self.ints, self.floats, self.capacity = descriptor, ints, floats, capacity
        self.row_bytes = _row_bytes(ints, floats)
        self._page = mmap.mmap(descriptor, PAGE + capacity * self.row_bytes)
        self._counters = memoryview(self._page)[:PAGE].cast("q")
        self._mask = capacity - 1
        self._front, self._stamp = struct.Struct(f"={1 + ints}q"), struct.Struct("=q")
        self._floats_at, self._end_at = 8 * (1 + ints), 8 * (1 + ints + floats)
        self._dropped = self._counters[_HEAD + 1]

    @classmethod
    def create(cls, ints: int, floats: int, capacity: int) -> Ring:
        """Return a new, empty ring with touched memory.

        Parameters
        ----------
        ints, floats : int
            Numbers of each kind in a row.
        capacity : int
            Number of rows.

        Returns
        -------
        Ring
            The ring.

        Raises
        ------
        ValueError
            If the capacity is not a power of two.
        """
        if capacity < 1 or capacity & (capacity - 1):
            raise ValueError(f"ring: capacity must be a power of two, got {capacity}")
        size = PAGE + capacity * _row_bytes(ints, floats)
        descriptor = shared_memory("rtmms-ring", size)
        ring = cls(descriptor, ints, floats, capacity)
        for at in range(0, size, PAGE):
            ring._page[at] = 0
        ring._counters[_SHAPE + 1], ring._counters[_SHAPE + 2], ring._counters[_SHAPE + 3] = ints, floats, capacity
        ring._counters[_SHAPE] = MAGIC
        return ring

    @classmethod
    def attach(cls, descriptor: int) -> Ring:
        """Return the ring of another process.

        Parameters
        ----------
        descriptor : int
            Its descriptor.

        Returns
        -------
        Ring
            The ring.

        Raises
        ------
        RtmmsError
            If the descriptor is no ring.
        """
        head = struct.unpack("=4q", os.pread(descriptor, 32, 0))
        if head[0] != MAGIC:
            raise RtmmsError(f"ring: descriptor {descriptor} is not a ring of rows")
        return cls(descriptor, *head[1:])

    # --- producer ---------------------------------------------------------------------------------------------------

    def push(self, ints: tuple[int, ...], floats: bytes) -> bool:
        """Write one row without waiting.

        Parameters
        ----------
        ints : tuple[int, ...]
            Whole numbers.
        floats : bytes
            Numbers, 8 bytes each; another length raises IndexError or ValueError.

        Returns
        -------
        bool
            False without room; then the row is counted as dropped.
        """
        counters = self._counters
        head = counters[_HEAD]
        if head - counters[_TAIL] >= self.capacity:
            self._dropped += 1
            counters[_HEAD + 1] = self._dropped
            return False
        page, at = self._page, PAGE + (head & self._mask) * self.row_bytes
        self._front.pack_into(page, at, head, *ints)
        page[at + self._floats_at : at + self._end_at] = floats
        self._stamp.pack_into(page, at + self._end_at, head)
        counters[_HEAD] = counters[_HEAD + 2] = head + 1
        return True

    def settle(self) -> None:
        """Declare that the messages of all written rows were sent; `push` does so for its row."""
        self._counters[_HEAD + 2] = self._counters[_HEAD]

    def whereabouts(self) -> tuple[int, int, int]:
        """Return addresses for compiled code that pushes, valid until `close`.

        Returns
        -------
        tuple[int, int, int]
            Addresses of `head`, `tail` and the first row.
        """
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        return at + 8 * _HEAD, at + 8 * _TAIL, at + PAGE

    @property
    def room(self) -> int:
        """Rows that can be pushed before one is dropped."""
        return self.capacity - (self._counters[_HEAD] - self._counters[_TAIL])

    # --- consumer ---------------------------------------------------------------------------------------------------

    def take(self, upto: int | None = None, max_rows: int | None = None) -> Iterable[Row]:
        """Yield the rows not yet taken, oldest first; each is freed when the next is requested.

        It ends early at a row with other stamps than its number, which is still being written.

        Parameters
        ----------
        upto : int | None, optional
            Take only rows before this count: a `head` that was read before.
        max_rows : int | None, optional
            Most rows.

        Yields
        ------
        Row
            Each row.
        """
        head = self._counters[_HEAD] if upto is None else min(upto, self._counters[_HEAD])
        head = head if max_rows is None else min(head, self._counters[_TAIL] + max_rows)
        page = self._page
        for number in range(self._counters[_TAIL], head):
            at = PAGE + (number & self._mask) * self.row_bytes
            first, *ints = self._front.unpack_from(page, at)
            floats = page[at + self._floats_at : at + self._end_at]
            (last,) = self._stamp.unpack_from(page, at + self._end_at)
            if first != number or last != number:
                return
            yield Row(tuple(ints), floats)
            self._counters[_TAIL] = number + 1

    # --- both -------------------------------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """Rows pushed since the ring was created."""
        return self._counters[_HEAD]

    @property
    def settled(self) -> int:
        """Rows of which everything was sent."""
        return self._counters[_HEAD + 2]

    @property
    def tail(self) -> int:
        """Rows that the consumer has finished."""
        return self._counters[_TAIL]

    @property
    def dropped(self) -> int:
        """Rows for which there was no room."""
        return self._counters[_HEAD + 1]

    def note(self, place: int, value: int | None = None) -> int:
        """Return, and optionally write, a number of the consumer's for the producer.

        Parameters
        ----------
        place : int
            Place of the number, 0 to 7.
        value : int | None, optional
            Number to write; None for none.

        Returns
        -------
        int
            The number.
        """
        at = _TAIL + 8 + place
        if value is not None:
            self._counters[at] = value
        return self._counters[at]

    def close(self) -> None:
        """Release the memory; other processes keep theirs."""
        self._counters.release()
        self._page.close()
        os.close(self.descriptor)


def _row_bytes(ints: int, floats: int) -> int:
    """Return the bytes of a row with both stamps, in whole cache lines."""
    return (8 * (2 + ints + floats) + 63) // 64 * 64
