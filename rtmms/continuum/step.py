"""One step of a continuous body: parameters follow their commands, and Runge and Kutta's fourth-order step moves it.

memory   state (15,), then for each parameter target, value, rate (3 k)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.continuum.dynamics import evaluate
from rtmms.continuum.field import COAST
from rtmms.continuum.layout import BAD_POINT, Y_SIZE
from rtmms.jit import kernel
from rtmms.mechanism.group import displace, normalise, uncurl
from rtmms.mechanism.joint_laws import coast, settle
from rtmms.mechanism.take_step import finite

SOUND, BAD_COMMAND, NOT_FINITE, BAD_STRAIN = 0, 1, 2, 3
STAGES = 4


@kernel
def parameters_at(memory: Any, follow: Any, bandwidth: float, t: float, p: Any) -> None:
    """p (3, k), t seconds after the memory's own time."""
    n = p.shape[1]
    for k in range(n):
        target, value, rate = memory[Y_SIZE + k], memory[Y_SIZE + n + k], memory[Y_SIZE + 2 * n + k]
        if follow[k] == COAST:
            a, b, c = coast(value, rate, target, bandwidth, t)
        else:
            a, b, c = settle(value, rate, target, bandwidth, t)
        p[0, k], p[1, k], p[2, k] = a, b, c


@kernel
def advance(body: Any, around: Any, work: Any, drive: Any, memory: Any, room: Any, t: float, h: float) -> int:
    """One step of h from time t. drive: follow, bandwidth, mix; room: k (4, 14), y (15,), along (14,), p (3, k)."""
    follow, bandwidth, _ = drive
    rates, y, total, p = room
    state = memory[:Y_SIZE]
    status = SOUND
    for i in range(STAGES):
        c = 0.0 if i == 0 else 1.0 if i == 3 else 0.5
        if i > 0:
            displace(state, rates[i - 1], c * h, y)
        else:
            for m in range(Y_SIZE):
                y[m] = state[m]
        parameters_at(memory, follow, bandwidth, c * h, p)
        evaluate(body, around, work, p, y, t + c * h, rates[i])
        if work[4][BAD_POINT] >= 0.0:
            status = BAD_STRAIN
        if i > 0:
            for m in range(total.shape[0]):
                total[m] = c * rates[i - 1, m]
            uncurl(rates[i], total, h)
    for m in range(total.shape[0]):
        total[m] = (rates[0, m] + 2.0 * rates[1, m] + 2.0 * rates[2, m] + rates[3, m]) / 6.0
    displace(state, total, h, y)
    normalise(y)
    if status == SOUND and not finite(y):
        status = NOT_FINITE
    if status != SOUND:
        return status
    for m in range(Y_SIZE):
        state[m] = y[m]
    parameters_at(memory, follow, bandwidth, h, p)
    n = p.shape[1]
    for k in range(n):
        memory[Y_SIZE + n + k], memory[Y_SIZE + 2 * n + k] = p[0, k], p[1, k]
    return SOUND


@kernel
def take_step(
    body: Any, around: Any, work: Any, drive: Any, memory: Any, room: Any, given: Any, t: float, dt: float,
    substeps: int,
) -> int:  # fmt: skip
    """Advance by dt with the command `given` (u,). A status, see above: where it is not SOUND the state is that of the
    last sound substep."""
    if not finite(given):
        return BAD_COMMAND
    mix = drive[2]
    for k in range(mix.shape[0]):
        driven, total = False, 0.0
        for u in range(mix.shape[1]):
            if mix[k, u] != 0.0:
                driven = True
                total += mix[k, u] * given[u]
        if driven:
            memory[Y_SIZE + k] = total
    h = dt / substeps
    for i in range(substeps):
        status = advance(body, around, work, drive, memory, room, t + i * h, h)
        if status != SOUND:
            return status
    return SOUND


@kernel
def look_at(body: Any, around: Any, work: Any, drive: Any, memory: Any, room: Any, t: float) -> None:
    """Everything at the present state into `work`."""
    parameters_at(memory, drive[0], drive[1], 0.0, room[3])
    evaluate(body, around, work, room[3], memory[:Y_SIZE], t, room[2])


@kernel
def many(times: int, body: Any, around: Any, work: Any, p: Any, state: Any, t: float, rate: Any) -> None:
    """`evaluate` over and over, for benchmarks."""
    for i in range(times):
        evaluate(body, around, work, p, state, t + 1e-9 * np.float64(i), rate)
