"""Times counted in the bins of an HDR histogram with three digits, whatever their number in a step: 0.1 us a step.

A bin holds what agrees in its first eleven binary digits; below 2048 ns each has its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.jit import kernel

_DIGITS = 10
_HALF = 1 << _DIGITS
LONGEST_NS = 3_600_000_000_000
BINS = 33_421


@kernel
def tally(ring: Any, begin: int, end: int, counts: Any) -> None:
    """Rows begin to end of a ring (rows, PARTS) of as many rows as a power of two, into counts (PARTS, BINS). What is
    below 0 is none."""
    mask = len(ring) - 1
    for k in range(begin, end):
        for part in range(ring.shape[1]):
            value = ring[k & mask, part]
            if value >= 0:
                counts[part, place(min(value, LONGEST_NS))] += 1


@kernel
def place(value: int) -> int:
    """The bin of a value of at least 0."""
    bucket = 0
    while value >> bucket >= 2 * _HALF:
        bucket += 1
    return (bucket << _DIGITS) + (value >> bucket)


def values_of(places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The least value in each of these bins."""
    bucket = np.maximum((places >> _DIGITS) - 1, 0)
    least: npt.NDArray[Any] = (places - (bucket << _DIGITS)) << bucket
    return least
