"""The door from Python to the step of a continuous body: one address, of a list of addresses and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from rtmms.continuum.layout import K_WIDTH, P_WIDTH, RATE_SIZE, TOLD, Y_SIZE
from rtmms.continuum.step import STAGES, look_at, take_step
from rtmms.jit import kernel
from rtmms.mechanism.addresses import integers_at, numbers_at
from rtmms.model.layout import S_WIDTH

(
    SECTION, INNER, GRAVITY, CURRENT, SCRATCH, BASE, SQUARE, HEAD, TOLD_AT, FOLLOW, MIX, MEMORY, RATES, Y, TOTAL, P,
    GIVEN, NUMBERS, FUNCTION, N, Q, PARAMETERS, COMMANDS,
) = range(23)  # fmt: skip
CELL, WAKE, BANDWIDTH, TIME, DT, SUBSTEPS = range(6)
COUNT = 6


@kernel(inline=True)
def parts_at(w: Any, x: Any) -> Any:
    """body, around, work, drive, memory, room of `take_step`, of the list w and the single numbers x."""
    n, q, k, u = w[N], w[Q], w[PARAMETERS], w[COMMANDS]
    body = (
        w[FUNCTION], carray(numbers_at(w[SECTION]), (n, K_WIDTH)), carray(numbers_at(w[INNER]), (q, q)), x[CELL]
    )  # fmt: skip
    around = (carray(numbers_at(w[GRAVITY]), (3,)), carray(numbers_at(w[CURRENT]), (3,)), x[WAKE] > 0.0)
    work = (
        carray(numbers_at(w[SCRATCH]), (n, P_WIDTH)), carray(numbers_at(w[BASE]), (1, S_WIDTH)),
        carray(numbers_at(w[SQUARE]), (6, 6)), carray(numbers_at(w[HEAD]), (3, 6)),
        carray(numbers_at(w[TOLD_AT]), (TOLD,)),
    )  # fmt: skip
    drive = (carray(integers_at(w[FOLLOW]), (k,)), x[BANDWIDTH], carray(numbers_at(w[MIX]), (k, u)))
    memory = carray(numbers_at(w[MEMORY]), (Y_SIZE + 3 * k,))
    room = (
        carray(numbers_at(w[RATES]), (STAGES, RATE_SIZE)), carray(numbers_at(w[Y]), (Y_SIZE,)),
        carray(numbers_at(w[TOTAL]), (RATE_SIZE,)), carray(numbers_at(w[P]), (3, k)),
    )  # fmt: skip
    return body, around, work, drive, memory, room


@kernel
def enter_step(address: int) -> int:
    """One step of the plant whose list stands at `address`; the status of `take_step`."""
    w = carray(integers_at(address), (COMMANDS + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    body, around, work, drive, memory, room = parts_at(w, x)
    given = carray(numbers_at(w[GIVEN]), (w[COMMANDS],))
    return take_step(body, around, work, drive, memory, room, given, x[TIME], x[DT], int(x[SUBSTEPS]))


@kernel
def enter_look(address: int) -> None:
    """`look_at` of that plant."""
    w = carray(integers_at(address), (COMMANDS + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    body, around, work, drive, memory, room = parts_at(w, x)
    look_at(body, around, work, drive, memory, room, x[TIME])


class Door:
    """The list of a plant's arrays, and the arrays, kept in place."""

    def __init__(self, function: int, arrays: list[Any], sizes: list[int]) -> None:
        """function: address of the strain field; arrays in the order of the list; sizes: points, points of a cell,
        parameters, commands."""
        for array in arrays:
            if not array.flags.c_contiguous or array.dtype not in (np.float64, np.int64):
                raise TypeError(f"not an array that kernels can read by its address: {array.dtype}, {array.strides}")
        self.arrays = arrays
        self.list = np.array([*(array.ctypes.data for array in arrays), function, *sizes], dtype=np.int64)
        self.address = self.list.ctypes.data
