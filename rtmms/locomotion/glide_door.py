"""The door from Python to a step without inertia: one address, of a list of addresses and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from rtmms.jit import kernel
from rtmms.locomotion.glide import JOINTS, glide
from rtmms.mechanism.addresses import integers_at, numbers_at
from rtmms.model.layout import C_WIDTH, S_WIDTH, T_WIDTH

(
    TOPOLOGY, CONSTANT, ROWS, UPRIGHT, WEIGHTLESS, BANDWIDTH, CHANNELS, GIVEN, MEMORY, SCRATCH, BASE, COUPLE, QD, Q,
    TWISTS, POSES, TURNED, LENGTHS, SERIES, TORQUE, STEP, N, DIM, COMMANDS,
) = range(24)  # fmt: skip


@kernel
def enter_glide(address: int) -> int:
    """One step of the plant whose list stands at `address`; the status of `glide`."""
    w = carray(integers_at(address), (24,))
    n, u = w[N], w[COMMANDS]
    tree = (
        carray(integers_at(w[TOPOLOGY]), (n + 1, T_WIDTH)), carray(numbers_at(w[CONSTANT]), (n + 1, C_WIDTH)),
        carray(integers_at(w[ROWS]), (w[DIM],)), carray(numbers_at(w[UPRIGHT]), (4,)),
        carray(numbers_at(w[WEIGHTLESS]), (3,)),
    )  # fmt: skip
    work = (
        carray(numbers_at(w[SCRATCH]), (n + 1, S_WIDTH)), carray(numbers_at(w[BASE]), (6, 6)),
        carray(numbers_at(w[COUPLE]), (6, n)), carray(numbers_at(w[QD]), (n,)), carray(numbers_at(w[Q]), (n,)),
    )  # fmt: skip
    room = (
        carray(numbers_at(w[TWISTS]), (3, 6)), carray(numbers_at(w[POSES]), (2, 7)),
        carray(numbers_at(w[TURNED]), (2,)), carray(numbers_at(w[LENGTHS]), (1,)),
        carray(numbers_at(w[SERIES]), (8, 6)), carray(numbers_at(w[TORQUE]), (n,)),
    )  # fmt: skip
    dt = carray(numbers_at(w[STEP]), (1,))[0]
    return glide(
        tree, carray(numbers_at(w[BANDWIDTH]), (n,)), carray(integers_at(w[CHANNELS]), (u,)),
        carray(numbers_at(w[GIVEN]), (u,)), carray(numbers_at(w[MEMORY]), (JOINTS + 3 * n + 1,)), work, room, dt,
    )  # fmt: skip


class GlideDoor:
    """The list of a plant's arrays, and the arrays, kept in place; arguments as `glide` gets them."""

    def __init__(
        self, tree: Any, bandwidth: Any, joints: Any, given: Any, memory: Any, work: Any, room: Any, dt: float
    ) -> None:  # fmt: skip
        self.arrays = [*tree, bandwidth, joints, given, memory, *work, *room, np.array([dt])]
        for array in self.arrays:
            if not array.flags.c_contiguous or array.dtype not in (np.float64, np.int64):
                raise TypeError(f"not an array that kernels can read by its address: {array.dtype}, {array.strides}")
        sizes = [len(tree[0]) - 1, len(tree[2]), len(given)]
        self.list = np.array([*(array.ctypes.data for array in self.arrays), *sizes], dtype=np.int64)
        self.address = self.list.ctypes.data
