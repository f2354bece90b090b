"""Rows that compiled code writes into a recorder's ring: the memory by which it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rtmms.addresses import ARGUMENTS
from rtmms.loop.kernels import row_memory as rm

if TYPE_CHECKING:
    from array import array

    from rtmms.plant import Account
    from rtmms.record.ring import Ring


class CompiledRows:
    """What compiled code needs to write rows; see rtmms.loop.kernels.row_memory."""

    def __init__(self) -> None:
        self._words = np.zeros(rm.WORDS, dtype=np.int64)
        self._arguments = np.zeros(ARGUMENTS, dtype=np.int64)

    def bind(self, ring: Ring, head: array[int], sources: Sequence[tuple[int, int]], account: Account) -> int:
        """Its address.  sources  address and count of the numbers of a row, piece by piece"""
        self._pieces = np.array(_joined(sources), dtype=np.int64)
        self._arguments[: len(account.arguments)] = account.arguments
        words = self._words
        words[[rm.MADE, rm.FREED, rm.ROWS]] = ring.whereabouts()
        words[[rm.ROW_BYTES, rm.CAPACITY]] = ring.row_bytes, ring.capacity
        words[[rm.HEAD, rm.N_HEAD]] = head.buffer_info()
        words[[rm.SOURCES, rm.N_SOURCES]] = self._pieces.ctypes.data, len(self._pieces)
        words[[rm.ACCOUNT, rm.ARGUMENTS]] = account.function, self._arguments.ctypes.data
        return int(words.ctypes.data)


def _joined(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pieces of memory, those that lie next to each other as one."""
    found: list[tuple[int, int]] = []
    for at, count in parts:
        if found and found[-1][0] + 8 * found[-1][1] == at:
            found[-1] = (found[-1][0], found[-1][1] + count)
        else:
            found.append((at, count))
    return found
