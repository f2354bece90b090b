"""One step of body and fins, by any method of tableaus.py.

The linearly implicit one is ROS2 of Verwer, written with accelerations a_1 = k_1, a_2 = k_2 + 2 k_1 in place of its
increments, M the mass matrix, G = g C + g^2 K, g = gamma dt, K and C the slopes of elasticity, damping and drag:

    (M + G) a_1 = Q(q, v) - g K v                       q_2 = q + dt (v + g a_1),  v_2 = v + dt a_1
    M a_2 + G (a_2 - 2 a_1) = Q(q_2, v_2) - g K (v_2 - 2 (v + g a_1)), the last bracket being -v_2 + 2 (dt - g) a_1
    v+ = v + dt/2 (a_1 + a_2)                           q+ = q + dt/2 (v + v_2 + g (a_2 - a_1))

It is a W-method: second order whatever approximates the slopes, so K and C may leave out what is small or costly.

The body moves on SE(3), in canonical coordinates xi about its pose at the start of the step. Every stage has its own
time, supports and water; the state changes at the end alone, once all is known to be sound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.rigid_body import exponential_rate, move_pose
from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling.drift import take_samples
from rtmms.robots.manta.coupling.interface import move_supports
from rtmms.robots.manta.coupling.joints import RATE_LIMIT, keep_joints, last_joints, next_joints, start_joints
from rtmms.robots.manta.coupling.layout import (
    ACCELERATION,
    BAD_COMMAND,
    BODY_EULER,
    ITERATIONS,
    NOT_FINITE,
    OK,
    POSITION,
    RESIDUAL,
    RODS,
    SEQUENTIAL,
    SINGULAR,
    STEP,
    SUPPORTS,
    TIME,
    TWIST,
    W_ACC,
    W_COMMAND,
    W_MIDDLE,
    W_POSE,
    W_RODS,
    W_SUPPORT,
    W_SUPPORT_END,
    W_TWIST,
    W_TWIST_FIN,
    W_TWIST_SUM,
    W_XI,
    W_XI_RATE,
    W_XI_SUM,
)
from rtmms.robots.manta.coupling.stage import put_water, stage
from rtmms.robots.manta.coupling.tableaus import (
    CURVED,
    EVEN,
    GAMMAS,
    HALVES,
    LEADS,
    NODES,
    OVER,
    RECALLS,
    STAGES,
    WEIGHTS,
)
from rtmms.robots.manta.kernels.rods import ROD_SIZE, advance_rods, limit_commands, stop_rods
from rtmms.robots.manta.kernels.support import SUPPORT_SIZE

TWIST_LIMIT = 1e4


@kernel(fused=False, merged=True)
def step(memory: Any) -> int:
    """One step of dt with memory.command: memory.state moved on, or left as it was when the step fails.

    memory   a record of layout.MANTA; command: left.front, left.back, right.front, right.back
    Returns OK, BAD_COMMAND, SINGULAR, NOT_FINITE or NOT_CONVERGED.
    """
    finned, body, many = memory.finned, memory.body, memory.many
    status = begin(finned, memory, memory.command)
    if status != OK:
        return status
    state, work, method = memory.state, memory.work, finned.integrator
    acc, lagged = work[W_ACC : W_ACC + 6], state[ACCELERATION : ACCELERATION + 6]
    sequential, passes, residual = finned.coupling == SEQUENTIAL, 0, 0.0
    last = STAGES[method] - 1
    for i in range(last + 1):
        if i > 0:
            next_joints(finned, memory, i)
        place_body(finned, memory, i)
        supports, at = (state, SUPPORTS) if i == 0 else (work, W_SUPPORT if NODES[method, i] < 1.0 else W_SUPPORT_END)
        take_samples(finned, memory, memory.flow, supports, at, finned.dt * NODES[method, i])
        put_water(finned, work, memory.body_drift)
        guess, g = lagged if sequential else acc, way(finned, i)
        status, n, r = stage(finned.coupling, finned, body, memory, many, g, supports, at, guess, acc)
        if status != OK:
            return status
        passes, residual = max(passes, n), max(residual, r)
        sum_body(finned, memory, i)
    sound = last_joints(finned, memory, last)
    if not (end_body(finned, memory) and sound):
        return NOT_FINITE
    finish(finned, body, memory)
    state[ITERATIONS], state[RESIDUAL] = passes, residual
    return OK


@kernel(fused=False)
def begin(finned: Any, memory: Any, command: Array) -> int:
    """Rods and supports over the step; the first stage's joints, and sums at nothing."""
    state, work = memory.state, memory.work
    for k in range(4):
        if not abs(command[k]) < np.inf:
            return BAD_COMMAND
    move_rods(finned, memory, command)
    halves = HALVES[finned.integrator]
    if halves and not move_supports(finned, work, W_MIDDLE, 3, work, W_SUPPORT):
        return SINGULAR
    if not move_supports(finned, work, W_RODS, ROD_SIZE, work, W_SUPPORT_END):
        return SINGULAR
    for k in range(6):
        work[W_ACC + k] = state[ACCELERATION + k]
        work[W_XI_SUM + k], work[W_TWIST_SUM + k] = 0.0, 0.0
    start_joints(memory)
    return OK


@kernel(fused=False)
def move_rods(finned: Any, memory: Any, command: Array) -> None:
    """W_RODS, W_MIDDLE: the rods' motion at the end and the middle of the step."""
    state, work = memory.state, memory.work
    for k in range(4 * ROD_SIZE):
        work[W_RODS + k] = state[RODS + k]
    halves = HALVES[finned.integrator]
    limit_commands(finned.servo[2], finned.servo[3], finned.difference, command, work, W_COMMAND)
    advance_rods(
        finned.actuation, finned.servo, finned.responses, finned.samples, finned.dt, work[W_COMMAND : W_COMMAND + 4],
        work, W_RODS, W_MIDDLE, halves,
    )  # fmt: skip
    if halves:
        stop_rods(finned.difference_stop, work, W_MIDDLE, 3)
    stop_rods(finned.difference_stop, work, W_RODS, ROD_SIZE)


@kernel(inline=True)
def way(finned: Any, i: int) -> tuple[float, float, float, float]:
    """(g, recall, rate_q, rate_a) of stage i for the chains, see fin_lanes."""
    method = finned.integrator
    g, recall = GAMMAS[method] * finned.dt, RECALLS[method, i]
    return g, recall, 1.0 - recall, recall * (finned.dt * LEADS[method, i] - g)


@kernel(fused=False)
def place_body(finned: Any, memory: Any, i: int) -> None:
    """Twist and pose of the body at stage i: as it is, and as the fins know it."""
    state, work, method = memory.state, memory.work, finned.integrator
    # the paper's body stands still while the fins move (forward Euler), ours is carried along
    c = 0.0 if finned.body_method == BODY_EULER else finned.dt * LEADS[method, i]
    for k in range(6):
        v, a = state[TWIST + k], work[W_ACC + k]
        work[W_TWIST + k] = v + c * a
        work[W_TWIST_FIN + k] = v + c * (state[ACCELERATION + k] if finned.coupling == SEQUENTIAL else a)
        work[W_XI + k] = c * work[W_XI_RATE + k] if i > 0 else 0.0
    if i > 0 or CURVED[method]:
        move_pose(state, POSITION, work, W_XI, 1.0, work, W_POSE)
    else:
        for k in range(7):
            work[W_POSE + k] = state[POSITION + k]


@kernel(fused=False)
def sum_body(finned: Any, memory: Any, i: int) -> None:
    """Add stage i's rates of twist and pose to their sums."""
    work, method = memory.work, finned.integrator
    w = 1.0 if EVEN[method] else finned.dt / OVER[method] * WEIGHTS[method, i]
    if CURVED[method]:
        exponential_rate(work, W_XI, work, W_TWIST, work, W_XI_RATE)
    else:
        for k in range(6):
            work[W_XI_RATE + k] = work[W_TWIST + k]
    for k in range(6):
        work[W_TWIST_SUM + k] += w * work[W_ACC + k]
        work[W_XI_SUM + k] += w * work[W_XI_RATE + k]


@kernel(fused=False)
def end_body(finned: Any, memory: Any) -> bool:
    """W_TWIST, W_XI: the twist at the end, and the way of the pose; False where they left their range."""
    state, work, method = memory.state, memory.work, finned.integrator
    w = finned.dt / OVER[method] * WEIGHTS[method, 0] if EVEN[method] else 1.0
    bad = 0
    for k in range(6):
        v, a = state[TWIST + k], work[W_ACC + k]
        if finned.body_method == BODY_EULER:
            work[W_TWIST + k], work[W_XI + k] = v + finned.dt * a, finned.dt * v
        else:
            work[W_TWIST + k], work[W_XI + k] = v + w * work[W_TWIST_SUM + k], w * work[W_XI_SUM + k]
        bad += not abs(a) < RATE_LIMIT
        bad += not abs(work[W_TWIST + k]) < TWIST_LIMIT
    return bad == 0


@kernel(fused=False)
def finish(finned: Any, body: Any, memory: Any) -> None:
    """All is sound: from here on the state changes."""
    state, work = memory.state, memory.work
    keep_joints(memory)
    for k in range(6):
        state[TWIST + k], state[ACCELERATION + k] = work[W_TWIST + k], work[W_ACC + k]
    if not body.fixed:
        move_pose(state, POSITION, work, W_XI, 1.0, state, POSITION)
    for k in range(4 * ROD_SIZE):
        state[RODS + k] = work[W_RODS + k]
    for k in range(2 * SUPPORT_SIZE):
        state[SUPPORTS + k] = work[W_SUPPORT_END + k]
    state[STEP] += 1.0
    state[TIME] = state[STEP] * finned.dt
