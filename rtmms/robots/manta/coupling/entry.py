"""The door from Python to the steps of body and fins: arrays pass as addresses, so that a call allocates nothing.

Handing an array to compiled code makes numba allocate a descriptor for it, each time; an address is a number. The plant
owns the memory and keeps it in place for as long as it lives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, from_dtype, types
from numba.extending import intrinsic

from rtmms.jit import kernel
from rtmms.robots.manta.coupling.account import O_JOINTS, account
from rtmms.robots.manta.coupling.layout import FINNED_DTYPE, FINS, WORK_SIZE
from rtmms.robots.manta.coupling.step_implicit import step_implicit
from rtmms.robots.manta.coupling.step_rk4 import step_rk4
from rtmms.robots.manta.kernels.body import BODY_DTYPE
from rtmms.robots.manta.kernels.fin_layout import FIELDS, LANES, LINK_FIELDS

FINNED_RECORD, BODY_RECORD = from_dtype(FINNED_DTYPE), from_dtype(BODY_DTYPE)


def _pointer_to(dtype: Any) -> Any:
    """An intrinsic that takes an address (int64) for a pointer to dtype."""

    @intrinsic
    def cast(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(types.CPointer(dtype)))

        return types.CPointer(dtype)(address), generate

    return cast


_numbers, _finned, _body = _pointer_to(types.float64), _pointer_to(FINNED_RECORD), _pointer_to(BODY_RECORD)


@kernel(fused=False)
def enter_step(
    rk4: int | None,
    finned: int,
    body: int,
    param: int,
    state: int,
    fins: int,
    work: int,
    command: int,
    many: int | None,
    drift: int | None,
    body_drift: int | None,
    normals: int | None,
) -> int:
    """One step; every argument but `rk4` and `many` is an address or None. Sizes follow from the record of the model.

    rk4 is None for the implicit step, 0 for RK4: only the one that is asked for gets compiled.
    Returns the step's status.
    """
    finned_, body_ = carray(_finned(finned), (1,)), carray(_body(body), (1,))
    m, blocks = finned_[0].links, finned_[0].blocks
    rows = 2 * blocks * m
    params = carray(_numbers(param), (blocks, (m * LINK_FIELDS + 1) * LANES))
    states = carray(_numbers(state), (FINS + rows * 2 * LANES,))
    joints = carray(_numbers(state + 8 * FINS), (rows, 2 * LANES))
    links = carray(_numbers(fins), (rows, FIELDS * LANES))
    chains = carray(_numbers(fins), (2, blocks, m * FIELDS * LANES))
    works = carray(_numbers(work), (WORK_SIZE,))
    commands = carray(_numbers(command), (4,))
    flow = None if drift is None else carray(_numbers(drift), (2, 2, blocks, m, 3 * LANES))
    body_flow = None if body_drift is None else carray(_numbers(body_drift), (2, 3))
    across = None if normals is None else carray(_numbers(normals), (2, blocks, m, 3 * LANES))
    if rk4 is None:
        return step_implicit(
            finned_, body_, params, states, joints, links, chains, works, commands, many, flow, body_flow, across
        )
    return step_rk4(
        finned_, body_, params, states, joints, links, chains, works, commands, many, flow, body_flow, across
    )


@kernel
def enter_account(
    finned: int,
    body: int,
    param: int,
    state: int,
    fins: int,
    work: int,
    many: int | None,
    drift: int | None,
    body_drift: int | None,
    normals: int | None,
    out: int,
) -> int:
    """All outputs of a state, by addresses; returns the status of their stage."""
    finned_, body_ = carray(_finned(finned), (1,)), carray(_body(body), (1,))
    m, n, blocks = finned_[0].links, finned_[0].chains, finned_[0].blocks
    rows = 2 * blocks * m
    params = carray(_numbers(param), (blocks, (m * LINK_FIELDS + 1) * LANES))
    states = carray(_numbers(state), (FINS + rows * 2 * LANES,))
    joints = carray(_numbers(state + 8 * FINS), (rows, 2 * LANES))
    links = carray(_numbers(fins), (rows, FIELDS * LANES))
    chains = carray(_numbers(fins), (2, blocks, m * FIELDS * LANES))
    works = carray(_numbers(work), (WORK_SIZE,))
    outs = carray(_numbers(out), (O_JOINTS + 4 * m * n,))
    flow = None if drift is None else carray(_numbers(drift), (2, blocks, m, 3 * LANES))
    body_flow = None if body_drift is None else carray(_numbers(body_drift), (3,))
    across = None if normals is None else carray(_numbers(normals), (2, blocks, m, 3 * LANES))
    return account(finned_, body_, params, states, joints, links, chains, works, many, flow, body_flow, across, outs)


def address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data
