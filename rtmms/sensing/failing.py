"""What actuators that fail make of their commands, within a compiled step. See rtmms.sensing.faults for their words."""

from __future__ import annotations

import numpy as np
from numba import carray

from rtmms.addresses import call, integers_at, numbers_at
from rtmms.jit import Array, kernel

A_STUCK, A_SLOW, A_BACKLASH, A_DEAD_BAND, A_DELAY, A_FREE = range(1, 7)
MOST_DELAY = 512
"""Steps."""
BEFORE, CODES, NUMBERS, RING = range(4)
"""Rows of the memory (3 + MOST_DELAY, n): what the plant got last, code and number of each one's fault, the last
commands, round."""

(
    ACTUATORS, STEPS, MEMORY, GIVEN, LIMITS, TORQUE, DT,
    FUNCTION, ARGUMENTS, COMMAND, ACCOUNT, ACCOUNT_ARGUMENTS, TOLD,
) = range(13)  # fmt: skip
"""Words: how many, steps so far; addresses of the memory, of the command, of the limits (2, n), of the rods' torques
(n,), of dt; of the plant's step, its words and where it looks for its command; of what writes its outputs, with its
words (0: there is none), and where the torques are then (0: it tells none)."""
WORDS = 13


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
    w = carray(integers_at(address), (WORDS,))
    n = w[ACTUATORS]
    bend(
        carray(numbers_at(w[MEMORY]), (RING + MOST_DELAY, n)), w[STEPS], carray(numbers_at(w[GIVEN]), (n,)),
        carray(numbers_at(w[LIMITS]), (2, n)), carray(numbers_at(w[TORQUE]), (n,)),
        carray(numbers_at(w[DT]), (1,))[0],
    )  # fmt: skip
    w[STEPS] += 1
    return 0


@kernel
def enter_step(address: int) -> int:
    """The same, then the plant's step; its status."""
    w = carray(integers_at(address), (WORDS,))
    n = w[ACTUATORS]
    memory = carray(numbers_at(w[MEMORY]), (RING, n))
    for i in range(n):
        if memory[CODES, i] == A_FREE:
            call(w[ACCOUNT], w[ACCOUNT_ARGUMENTS])
            told, torque = carray(numbers_at(w[TOLD]), (n,)), carray(numbers_at(w[TORQUE]), (n,))
            for k in range(n):
                torque[k] = told[k]
            break
    enter_bend(address)
    command = carray(numbers_at(w[COMMAND]), (n,))
    for i in range(n):
        command[i] = memory[BEFORE, i]
    return int(call(w[FUNCTION], w[ARGUMENTS]))
