"""The door to the step of a tree with modal bodies: `Door`'s list with more at its end, and kernels of their own."""

from __future__ import annotations

from typing import Any

from numba import carray

from rtmms.jit import kernel
from rtmms.mechanism.account import POINT_WIDTH, account
from rtmms.mechanism.addresses import integers_at, numbers_at
from rtmms.mechanism.door import (
    CONSTANT,
    COUNT,
    DT,
    N_OUT,
    N_POINTS,
    NUMBERS,
    OUT,
    POINTS,
    RATE,
    SCRATCH,
    STATE,
    SUBSTEPS,
    TOPOLOGY,
    N,
    changing_at,
    system_at,
)  # fmt: skip
from rtmms.mechanism.take_step import take_step
from rtmms.model.layout import C_WIDTH, S_WIDTH, T_WIDTH
from rtmms.model.modal_rows import M_WIDTH

(BOOK, MEMBERS, SHAPE, ROOM, N_ROWS, N_MEMBERS, N_SHAPE, N_ROOM) = range(N_OUT + 1, N_OUT + 9)


@kernel(inline=True)
def modal_system_at(w: Any, x: Any) -> Any:
    """As `system_at`, with the modal bodies and the rows that have no coordinate."""
    tree, law, hold, fluid, work = system_at(w, x)
    rows = w[N_ROWS]
    modal = (
        carray(integers_at(w[BOOK]), (rows, M_WIDTH)), carray(integers_at(w[MEMBERS]), (w[N_MEMBERS],)),
        carray(numbers_at(w[SHAPE]), (w[N_SHAPE],)), carray(numbers_at(w[ROOM]), (w[N_ROOM],)),
    )  # fmt: skip
    topology = carray(integers_at(w[TOPOLOGY]), (rows, T_WIDTH))
    constant = carray(numbers_at(w[CONSTANT]), (rows, C_WIDTH))
    whole = (topology, constant, tree[2], tree[3], tree[4], tree[5], modal, True)
    scratch = carray(numbers_at(w[SCRATCH]), (rows, S_WIDTH))
    return whole, law, hold, fluid, (scratch, work[1], work[2], work[3], work[4], work[5], work[6])


@kernel
def enter_modal_step(address: int) -> int:
    """As `enter_step`."""
    w = carray(integers_at(address), (N_ROOM + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    method, changing, scratch, told, memory, last = changing_at(w, x)
    return take_step(modal_system_at(w, x), method, changing, scratch, told, memory, last, x[DT], int(x[SUBSTEPS]))


@kernel
def enter_modal_account(address: int) -> None:
    """As `enter_account`."""
    w = carray(integers_at(address), (N_ROOM + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    n = w[N]
    account(
        modal_system_at(w, x), carray(numbers_at(w[STATE]), (13 + 2 * n,)), carray(numbers_at(w[RATE]), (12 + 2 * n,)),
        carray(numbers_at(w[POINTS]), (w[N_POINTS], POINT_WIDTH)), carray(numbers_at(w[OUT]), (w[N_OUT],)),
    )  # fmt: skip
