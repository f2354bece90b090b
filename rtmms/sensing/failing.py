"""What actuators that fail make of their commands, within a compiled step. See rtmms.sensing.faults for their words."""

from __future__ import annotations

import numpy as np
from numba import carray

from rtmms.addresses import ARGUMENTS, call, numbers_at
from rtmms.jit import Array, kernel
from rtmms.memory import INTEGER, Layout, given, model, number, state

A_STUCK, A_SLOW, A_BACKLASH, A_DEAD_BAND, A_DELAY, A_FREE = range(1, 7)
MOST_DELAY = 512
"""Steps."""
BEFORE, CODES, NUMBERS, RING = range(4)
"""Rows of the memory (3 + MOST_DELAY, n): what the plant got last, code and number of each one's fault, the last
commands, round."""

FAILING = Layout(
    "Failing",
    state("steps", 1, dtype=INTEGER), state("kept", 3 + MOST_DELAY, "actuators"), given("given", "actuators"),
    model("limits", 2, "actuators"), given("torque", "actuators", unit="N m"), number("dt", unit="s"),
    number("step", INTEGER), number("command", INTEGER), number("account", INTEGER), number("told", INTEGER),
    given("arguments", 2, ARGUMENTS, dtype=INTEGER),
)  # fmt: skip
"""kept: see above; limits: lower, upper; torque: of the rods. Addresses: of the plant's step and where it looks for its
command; of what writes its outputs (0: there is none), and where the torques are then (0: it tells none); words of both
functions in `arguments`."""
_failing_at = FAILING.type().at()


@kernel(fused=False)
def bend(memory: Array, at: int, given: Array, limits: Array, torque: Array, dt: float) -> None:
    """The command given at step `at` becomes what the plant gets, in memory[BEFORE]. No multiplication is fused with an
    addition here: all are as Python has them."""
    for i in range(given.shape[0]):
        memory[RING + at % MOST_DELAY, i] = given[i]
    for i in range(given.shape[0]):
        before, code, number, wanted = memory[BEFORE, i], int(memory[CODES, i]), memory[NUMBERS, i], given[i]
        if code == A_STUCK:
            wanted = number
        elif code == A_SLOW:
            most = number * dt
            wanted = min(max(wanted, before - most), before + most)
        elif code == A_BACKLASH:
            half = 0.5 * number
            wanted = min(max(before, wanted - half), wanted + half)
        elif code == A_DEAD_BAND and abs(wanted - before) <= number:
            wanted = before
        elif code == A_DELAY:
            wanted = memory[RING + (at - int(np.rint(number / dt))) % MOST_DELAY, i]
        elif code == A_FREE:
            wanted = before - dt * torque[i] / number
            wanted = min(max(wanted, limits[0, i]), limits[1, i])
        memory[BEFORE, i] = wanted


@kernel
def enter_bend(address: int) -> int:
    """The command that is in place becomes what the plant gets, torques in place where one is free."""
    w = _failing_at(address)
    bend(w.kept, w.steps[0], w.given, w.limits, w.torque, w.dt)
    w.steps[0] += 1
    return 0


@kernel
def enter_step(address: int) -> int:
    """The same, then the plant's step; its status."""
    w = _failing_at(address)
    memory, torque = w.kept, w.torque
    n = torque.shape[0]
    for i in range(n):
        if memory[CODES, i] == A_FREE:
            call(w.account, w.arguments[1].ctypes.data)
            told = carray(numbers_at(w.told), (n,))
            for k in range(n):
                torque[k] = told[k]
            break
    enter_bend(address)
    command = carray(numbers_at(w.command), (n,))
    for i in range(n):
        command[i] = memory[BEFORE, i]
    return int(call(w.step, w.arguments[0].ctypes.data))
