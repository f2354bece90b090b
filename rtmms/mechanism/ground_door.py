"""The door to the step of a tree with contacts, or with commanded rates: `Door`'s list with more at its end.

Kernels of their own: trees without keep theirs, to the bit.
"""

from __future__ import annotations

from typing import Any

from numba import carray

from rtmms.dynamics.row_sets import R_WIDTH
from rtmms.jit import COMPILED, kernel
from rtmms.mechanism.account import POINT_WIDTH, account
from rtmms.mechanism.addresses import integers_at, numbers_at
from rtmms.mechanism.door import (
    COUNT,
    DT,
    N_OUT,
    N_POINTS,
    NUMBERS,
    OUT,
    POINTS,
    RATE,
    STATE,
    SUBSTEPS,
    N,
    changing_at,
    enter_account,
    enter_step,
    system_at,
)  # fmt: skip
from rtmms.mechanism.keep_to_ground import keep_to_ground
from rtmms.mechanism.modal_door import enter_modal_account, enter_modal_step
from rtmms.mechanism.take_step import take_step
from rtmms.model.contact_rows import G_WIDTH

(ROWS, FIRST, JOINT, LENGTH, ROOM, OFFSET, NET, SOFT, REACTION, CHANGE, ACTIVE, LOST, N_ROWS) = range(
    N_OUT + 1, N_OUT + 14
)


@kernel(inline=True)
def system_on_ground_at(w: Any, x: Any) -> Any:
    """As `system_at`, with the ground, and with commands that may be rates."""
    tree, law, hold, fluid, work = system_at(w, x)
    n, m = w[N], w[N_ROWS]
    ground = (
        carray(numbers_at(w[ROWS]), (m, G_WIDTH)), carray(integers_at(w[FIRST]), (n + 2,)),
        carray(integers_at(w[JOINT]), (n + 1,)), carray(numbers_at(w[LENGTH]), (1,))[0],
        carray(numbers_at(w[ROOM]), (n + 2, R_WIDTH)), carray(numbers_at(w[OFFSET]), (m,)),
        carray(numbers_at(w[NET]), (n,)), carray(numbers_at(w[SOFT]), (n,)), carray(numbers_at(w[REACTION]), (m,)),
        carray(numbers_at(w[CHANGE]), (n,)), carray(numbers_at(w[ACTIVE]), (m,)), carray(numbers_at(w[LOST]), (2,)),
    )  # fmt: skip
    return (*tree, ground), law, (*hold, True), fluid, work


@kernel
def enter_step_on_ground(address: int) -> int:
    """As `enter_step`."""
    w = carray(integers_at(address), (N_ROWS + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    method, changing, scratch, told, memory, last = changing_at(w, x)
    return take_step(system_on_ground_at(w, x), method, changing, scratch, told, memory, last, x[DT], int(x[SUBSTEPS]))


@kernel
def enter_account_on_ground(address: int) -> None:
    """As `enter_account`."""
    w = carray(integers_at(address), (N_ROWS + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    n = w[N]
    account(
        system_on_ground_at(w, x), carray(numbers_at(w[STATE]), (13 + 2 * n,)),
        carray(numbers_at(w[RATE]), (12 + 2 * n,)), carray(numbers_at(w[POINTS]), (w[N_POINTS], POINT_WIDTH)),
        carray(numbers_at(w[OUT]), (w[N_OUT],)),
    )  # fmt: skip


@kernel
def enter_keep_to_ground(address: int) -> int:
    """`keep_to_ground` of the plant's state: from here, so that the step's kernels serve."""
    w = carray(integers_at(address), (N_ROWS + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    tree, _, _, _, work = system_on_ground_at(w, x)
    return keep_to_ground(tree, work, carray(numbers_at(w[STATE]), (13 + 2 * w[N],)))


def doors(tree: Any) -> tuple[Any, Any] | None:
    """The two kernels that a tree enters by, its step's and its outputs'; None where kernels run as plain Python."""
    if not COMPILED:
        return None
    if len(tree) == 8:
        return enter_modal_step, enter_modal_account
    return (enter_step_on_ground, enter_account_on_ground) if len(tree) == 7 else (enter_step, enter_account)
