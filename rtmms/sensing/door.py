"""The door from Python to a step of all sensors: one address of a list of words, so that a call makes no objects.

Where the plant's own step and its outputs can be had from compiled code (rtmms.plant.Accounted), a step of plant and
sensors is one such call; elsewhere Python puts the plant's motion into place, and the sensors alone are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import carray

from rtmms.addresses import call, integers_at, numbers_at
from rtmms.jit import Array, kernel
from rtmms.sensing.layout import B_WIDTH, M_BEFORE, M_GRAVITY, M_TIME, T_WIDTH
from rtmms.sensing.timing import look, start

(
    FUNCTION, ARGUMENTS, ACCOUNT, ACCOUNT_ARGUMENTS, GATHERED, N_GATHERED, FRESH,
    TIMING, SENSORS, BLOCK, BLOCKS, MOTION, N_MOTION, SCRATCH, N_SCRATCH, STATE, N_STATE, SEED, STEPS, DT,
) = range(20)  # fmt: skip
"""Of the plant: addresses of its step and of what writes its outputs, each with its words (ACCOUNT 0: Python has put
the motion into place), the address and the count of the rows below, and whether its outputs are those of its state.
Of the sensors: addresses and sizes of what rtmms.sensing.layout has; the seed, steps taken, the address of dt."""
WORDS = 20
Words = npt.NDArray[np.int64]

(FROM, COUNT, TO, ROW) = range(4)
"""A part of the motion: address of the plant's numbers, how many, where in the motion."""


@kernel
def _arrays(address: int) -> tuple[Array, Array, Array, Array, Array]:
    """timing, block, motion, scratch, state."""
    w = carray(integers_at(address), (WORDS,))
    return (
        carray(numbers_at(w[TIMING]), (w[SENSORS], T_WIDTH)), carray(numbers_at(w[BLOCK]), (w[BLOCKS], B_WIDTH)),
        carray(numbers_at(w[MOTION]), (w[N_MOTION],)), carray(numbers_at(w[SCRATCH]), (w[N_SCRATCH],)),
        carray(numbers_at(w[STATE]), (w[N_STATE],)),
    )  # fmt: skip


@kernel
def enter_start(address: int) -> int:
    """Power on."""
    w = carray(integers_at(address), (WORDS,))
    timing, block, _, _, state = _arrays(address)
    start(timing, block, w[SEED], state)
    return 0


@kernel
def enter_account(address: int) -> int:
    """The plant's outputs, where they are not those of its state already."""
    w = carray(integers_at(address), (WORDS,))
    if not w[FRESH]:
        call(w[ACCOUNT], w[ACCOUNT_ARGUMENTS])
        w[FRESH] = 1
    return 0


@kernel
def enter_look(address: int) -> int:
    """All sensors at the plant's present state."""
    w = carray(integers_at(address), (WORDS,))
    timing, block, motion, scratch, state = _arrays(address)
    motion[M_TIME] = float(w[STEPS]) * carray(numbers_at(w[DT]), (1,))[0]
    if w[ACCOUNT]:
        enter_account(address)
        rows = carray(integers_at(w[GATHERED]), (w[N_GATHERED], ROW))
        for r in range(len(rows)):
            part, to = carray(numbers_at(rows[r, FROM]), (rows[r, COUNT],)), rows[r, TO]
            for k in range(len(part)):
                motion[to + k] = part[k]
    look(timing, block, w[SEED], motion, scratch, state)
    return 0


@kernel
def enter_step(address: int) -> int:
    """The plant's step, its command in place, and all sensors after it; the plant's status, 0 when all is well."""
    w = carray(integers_at(address), (WORDS,))
    w[FRESH] = 0
    status = call(w[FUNCTION], w[ARGUMENTS])
    if status:
        return int(status)
    w[STEPS] += 1
    motion = carray(numbers_at(w[MOTION]), (w[N_MOTION],))
    for k in range(M_GRAVITY - M_BEFORE):
        motion[M_BEFORE + k] = motion[M_TIME + k]
    return int(enter_look(address))


def words_of(arrays: Mapping[int, Any]) -> Words:
    """The list, with the addresses of these arrays, whose owner keeps them in place."""
    words: Words = np.zeros(WORDS, dtype=np.int64)
    for at, array in arrays.items():
        words[at] = array.ctypes.data
    return words
