"""The door from Python to the steps of body and fins: arrays pass as addresses, so that a call allocates nothing.

Handing an array to compiled code makes numba allocate a descriptor for it, each time; an address is a number. The plant
owns the memory and keeps it in place for as long as it lives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from rtmms.jit import kernel
from rtmms.robots.manta.coupling.account import O_JOINTS, account
from rtmms.robots.manta.coupling.layout import FINS, WORK_SIZE, Memory
from rtmms.robots.manta.coupling.records import body_at, finned_at, numbers_at
from rtmms.robots.manta.coupling.step import step
from rtmms.robots.manta.kernels.fin_layout import FIELDS, LANES, LINK_FIELDS

ARRAYS = 9
"""How many addresses come first among the arguments of both doors: records, then arrays."""


@kernel(inline=True)
def _memory(
    finned: Any, param: int, state: int, fins: int, work: int, drift: int | None, body_drift: int | None,
    normals: int | None,
) -> Memory:  # fmt: skip
    """The arrays at these addresses; their sizes follow from the record of the model."""
    m, blocks = finned.links, finned.blocks
    rows = 2 * blocks * m
    return Memory(
        carray(numbers_at(param), (2, blocks, (m * LINK_FIELDS + 1) * LANES)),
        carray(numbers_at(state), (FINS + rows * 2 * LANES,)),
        carray(numbers_at(state + 8 * FINS), (rows, 2 * LANES)),
        carray(numbers_at(fins), (2, blocks, m * FIELDS * LANES)),
        carray(numbers_at(fins), (rows, FIELDS * LANES)),
        carray(numbers_at(work), (WORK_SIZE,)),
        None if drift is None else carray(numbers_at(drift), (2, blocks, m, 3 * LANES)),
        None if body_drift is None else carray(numbers_at(body_drift), (3,)),
        None if normals is None else carray(numbers_at(normals), (2, blocks, m, 3 * LANES)),
    )


@kernel(fused=False)
def enter_step(
    finned: int, body: int, param: int, state: int, fins: int, work: int, drift: int | None, body_drift: int | None,
    normals: int | None, many: int | None, command: int, flow: int | None,
) -> int:  # fmt: skip
    """One step; every argument but `many` is an address or None. Returns the step's status."""
    finned_, body_ = carray(finned_at(finned), (1,)), carray(body_at(body), (1,))
    memory = _memory(finned_[0], param, state, fins, work, drift, body_drift, normals)
    return step(finned_, body_, memory, carray(numbers_at(command), (4,)), many, flow)


@kernel
def enter_account(
    finned: int, body: int, param: int, state: int, fins: int, work: int, drift: int | None, body_drift: int | None,
    normals: int | None, many: int | None, g: float, out: int,
) -> int:  # fmt: skip
    """All outputs of a state, by addresses; returns the status of their stage."""
    finned_, body_ = carray(finned_at(finned), (1,)), carray(body_at(body), (1,))
    memory = _memory(finned_[0], param, state, fins, work, drift, body_drift, normals)
    size = O_JOINTS + 4 * finned_[0].links * finned_[0].chains
    return account(finned_, body_, memory, many, g, carray(numbers_at(out), (size,)))


def address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data
