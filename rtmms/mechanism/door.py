"""The door from Python to a tree's step: one address, of a list of addresses and sizes, so that a call makes nothing.

`Door` keeps the arrays in place and writes the list; `enter_step` and `enter_account` read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from rtmms.fluids.ambient import SAMPLE_ROOM
from rtmms.fluids.blade_element import BLADE_WIDTH
from rtmms.fluids.immersed import COMMON_WIDTH
from rtmms.fluids.morison import STRIP_WIDTH
from rtmms.fluids.tether import TETHER_WIDTH
from rtmms.fluids.wake import WAKE_WIDTH
from rtmms.jit import kernel
from rtmms.mechanism.account import POINT_WIDTH, account
from rtmms.mechanism.addresses import flags_at, integers_at, numbers_at
from rtmms.mechanism.body_actuators import PUSH_WIDTH
from rtmms.mechanism.joint_bounds import BOUND_WIDTH
from rtmms.mechanism.take_step import take_step
from rtmms.model.layout import C_WIDTH, S_WIDTH, T_WIDTH

(
    TOPOLOGY, CONSTANT, GRAVITY, IMPOSED, BOUNDS, MOTION, KP, KD, TORQUE, TARGET, SERVO, BANDWIDTH, ROWS, COMMON,
    STRIPS, BLADES, STRIP_GAUSS, BLADE_GAUSS, WAKES, TETHERS, FLOW, HELD, AMBIENT, PUSHES, CURVE, COMMANDED, MOTOR,
    SCRATCH, BASE, QDD, TAU, Q, QD, DRIVE, NODES, MATRIX, WEIGHTS, PARTS, MIX, STATE, HISTORY, COUNTS, SPENT, RATES,
    STATES, MEMORY, LAST, GIVEN, KINDS, JOINTS, NUMBERS, POINTS, OUT, RATE, N, E, N_STRIPS, N_BLADES, N_STRIP_GAUSS,
    N_BLADE_GAUSS, N_WAKES, N_TETHERS, N_FLOW, N_PUSHES, N_CURVE, N_COMMANDS, N_STAGES, N_PARTS, N_MEMORY, N_POINTS,
    N_SPENT, N_OUT,
) = range(72)  # fmt: skip
"""The list: addresses of arrays, then sizes."""

(BASE_MODE, OMEGA, RAMP, START, OVER, GAMMA, MULTISTEP, DT, SUBSTEPS, MOVING) = range(10)
"""Single numbers, in one array."""
COUNT = 10


@kernel(inline=True)
def system_at(w: Any, x: Any) -> Any:
    """tree, law, hold, fluid, work of rtmms.mechanism.equations, of the list w and the single numbers x."""
    n, e = w[N], w[E]
    tree = (
        carray(integers_at(w[TOPOLOGY]), (n + 1, T_WIDTH)), carray(numbers_at(w[CONSTANT]), (n + 1, C_WIDTH)),
        int(x[BASE_MODE]), carray(numbers_at(w[GRAVITY]), (3,)), carray(flags_at(w[IMPOSED]), (n,)),
        carray(numbers_at(w[BOUNDS]), (n, BOUND_WIDTH)),
    )  # fmt: skip
    law = (
        carray(numbers_at(w[MOTION]), (n, 3)), x[OMEGA], x[RAMP], carray(numbers_at(w[KP]), (n,)),
        carray(numbers_at(w[KD]), (n,)),
    )  # fmt: skip
    hold = (
        carray(numbers_at(w[TORQUE]), (n,)), carray(numbers_at(w[TARGET]), (n, 2)),
        carray(numbers_at(w[SERVO]), (n, 4)), carray(numbers_at(w[BANDWIDTH]), (n,)), x[START],
    )  # fmt: skip
    pushes = (
        carray(numbers_at(w[PUSHES]), (w[N_PUSHES], PUSH_WIDTH)), carray(numbers_at(w[CURVE]), (w[N_CURVE], 2)),
        carray(numbers_at(w[COMMANDED]), (w[N_COMMANDS],)), carray(numbers_at(w[MOTOR]), (w[N_PUSHES],)),
    )  # fmt: skip
    fluid = (
        carray(integers_at(w[ROWS]), (e,)), carray(numbers_at(w[COMMON]), (e, COMMON_WIDTH)),
        carray(numbers_at(w[STRIPS]), (w[N_STRIPS], STRIP_WIDTH)),
        carray(numbers_at(w[BLADES]), (w[N_BLADES], BLADE_WIDTH)),
        carray(numbers_at(w[STRIP_GAUSS]), (2, w[N_STRIP_GAUSS])),
        carray(numbers_at(w[BLADE_GAUSS]), (2, w[N_BLADE_GAUSS])),
        carray(numbers_at(w[WAKES]), (w[N_WAKES], WAKE_WIDTH)),
        carray(numbers_at(w[TETHERS]), (w[N_TETHERS], TETHER_WIDTH)), carray(numbers_at(w[FLOW]), (w[N_FLOW], 8)),
        x[MOVING] > 0.0, carray(numbers_at(w[HELD]), (e, 3)), carray(numbers_at(w[AMBIENT]), (e, SAMPLE_ROOM)), pushes,
    )  # fmt: skip
    work = (
        carray(numbers_at(w[SCRATCH]), (n + 1, S_WIDTH)), carray(numbers_at(w[BASE]), (6, 6)),
        carray(numbers_at(w[QDD]), (n,)), carray(numbers_at(w[TAU]), (n,)), carray(numbers_at(w[Q]), (n,)),
        carray(numbers_at(w[QD]), (n,)), carray(numbers_at(w[DRIVE]), (n,)),
    )  # fmt: skip
    return tree, law, hold, fluid, work


@kernel(inline=True)
def changing_at(w: Any, x: Any) -> Any:
    """method, changing, scratch, told, memory, last of `take_step`."""
    n, stages, commands = w[N], w[N_STAGES], w[N_COMMANDS]
    method = (
        carray(numbers_at(w[NODES]), (stages,)), carray(numbers_at(w[MATRIX]), (stages, stages)),
        carray(numbers_at(w[WEIGHTS]), (stages,)), x[OVER], x[GAMMA],
        carray(numbers_at(w[PARTS]), (w[N_PARTS],)), carray(numbers_at(w[MIX]), (w[N_PARTS],)), x[MULTISTEP] > 0.0,
    )  # fmt: skip
    changing = (
        carray(numbers_at(w[STATE]), (13 + 2 * n,)), carray(numbers_at(w[HISTORY]), (5, 13 + 2 * n)),
        carray(integers_at(w[COUNTS]), (1,)), carray(numbers_at(w[SPENT]), (w[N_SPENT],)),
    )  # fmt: skip
    scratch = (
        carray(numbers_at(w[RATES]), (stages + 1, 12 + 2 * n)), carray(numbers_at(w[STATES]), (3, 13 + 2 * n)),
    )  # fmt: skip
    told = (
        carray(numbers_at(w[GIVEN]), (commands,)), carray(integers_at(w[KINDS]), (commands,)),
        carray(integers_at(w[JOINTS]), (commands,)),
    )  # fmt: skip
    memory, last = carray(numbers_at(w[MEMORY]), (w[N_MEMORY],)), carray(numbers_at(w[LAST]), (w[N_MEMORY],))
    return method, changing, scratch, told, memory, last


@kernel
def enter_step(address: int) -> int:
    """One step of the plant whose list stands at `address`; the status of `take_step`."""
    w = carray(integers_at(address), (N_OUT + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    method, changing, scratch, told, memory, last = changing_at(w, x)
    return take_step(system_at(w, x), method, changing, scratch, told, memory, last, x[DT], int(x[SUBSTEPS]))


@kernel
def enter_account(address: int) -> None:
    """The outputs of the present state, into the plant's `out`; see `account`."""
    w = carray(integers_at(address), (N_OUT + 1,))
    x = carray(numbers_at(w[NUMBERS]), (COUNT,))
    n = w[N]
    account(
        system_at(w, x), carray(numbers_at(w[STATE]), (13 + 2 * n,)), carray(numbers_at(w[RATE]), (12 + 2 * n,)),
        carray(numbers_at(w[POINTS]), (w[N_POINTS], POINT_WIDTH)), carray(numbers_at(w[OUT]), (w[N_OUT],)),
    )  # fmt: skip


class Door:
    """The list of a plant's arrays, and the arrays, kept in place."""

    def __init__(
        self, system: Any, method: Any, changing: Any, scratch: Any, told: Any, memory: Any, observed: Any, numbers: Any
    ) -> None:  # fmt: skip
        """system, method, changing, scratch, told: as `take_step` gets them; memory: whole, last; observed: rate,
        points, out; numbers (COUNT,)."""
        tree, law, hold, fluid, work = system
        topology, constant, _, gravity, imposed, bounds = tree[:6]
        *elements, _, held, ambient, (pushes, curve, commanded, motor) = fluid
        c, a, b, _, _, parts, mix, _ = method
        rate, points, out = observed
        self.arrays = [
            topology, constant, gravity, imposed, bounds, law[0], law[3], law[4], *hold[:4], *elements, held, ambient,
            pushes, curve, commanded, motor, *work, c, a, b, parts, mix, *changing, *scratch, *memory, *told, numbers,
            points, out, rate,
        ]  # fmt: skip
        sizes = [
            len(imposed), len(elements[0]), len(elements[2]), len(elements[3]), elements[4].shape[1],
            elements[5].shape[1], len(elements[6]), len(elements[7]), len(elements[8]), len(pushes),
            len(curve), len(commanded), len(c), len(parts), len(memory[0]), len(points), len(changing[3]),
            len(out),
        ]  # fmt: skip
        ground = tree[6] if len(tree) > 6 else ()
        more = [np.array([part]) if isinstance(part, float) else part for part in ground]
        for array in (*self.arrays, *more):
            if not array.flags.c_contiguous or array.dtype not in (np.float64, np.int64, np.bool_):
                raise TypeError(f"not an array that kernels can read by its address: {array.dtype}, {array.strides}")
        if ground:  # see rtmms.mechanism.ground_door
            sizes += [*(array.ctypes.data for array in more), len(ground[0])]
        if len(tree) == 8:  # see rtmms.mechanism.modal_door
            sizes += [len(array) for array in ground[1:]]
        self.list = np.array([*(array.ctypes.data for array in self.arrays), *sizes], dtype=np.int64)
        self.arrays += more
        self.address = self.list.ctypes.data
