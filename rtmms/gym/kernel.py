"""One step of many environments, without Python (rtmms.gym.batch)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from rtmms.addresses import numbers_at
from rtmms.analysis.rollout_kernel import roll
from rtmms.jit import kernel

FUNCTION, ARGUMENTS_AT, COMMAND_AT, START_AT, STATE_AT = range(5)
WORDS = 5
"""Of the fork that a run is stepped on."""


@kernel
def advance(
    forks: Any, commands: Any, steps: int, states: Any, counts: Any, active: Any, begin: int, end: int, dt: float,
    status: Any,
) -> int:  # fmt: skip
    """Steps of runs begin to end, each from its own state, which is moved on where all went well.

    forks     (runs, WORDS) int64;  commands (runs, steps or 1, n)
    states    (runs, w);  counts (runs,) int64 steps since the reset
    active    (runs,) bool: the others stay;  status (runs,) written: 0, or what the step that failed returned
    Returns the run that failed, whose fork's scratch must be cleared before the next; -1 when all are done.
    """
    width = states.shape[1]
    places, told = np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64)
    out, kept = np.zeros((0, 0)), np.zeros((0, 0))
    stop, done = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for run in range(begin, end):
        status[run] = 0
        if not active[run]:
            continue
        fork = forks[run]
        state = carray(numbers_at(fork[STATE_AT]), (width,))
        own = states[run]
        for i in range(width):
            state[i] = own[i]
        found = roll(
            fork[FUNCTION], fork[ARGUMENTS_AT], fork[COMMAND_AT], commands[run], steps, state, fork[START_AT], dt,
            counts[run], 1, places, told, 0, 0, out, kept, stop, done,
        )  # fmt: skip
        status[run] = found
        if found != 0:
            return run
        for i in range(width):
            own[i] = state[i]
        counts[run] += steps
    return -1
