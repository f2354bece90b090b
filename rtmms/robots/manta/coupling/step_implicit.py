"""Two-stage linearly implicit step of body and fins: ROS2 of Verwer, second order, L-stable for gamma = 1 - 1/sqrt(2).

Written with accelerations in place of ROS2's increments (k1, and a2 = k2 + 2 k1), M the mass matrix, G = g C + g^2 K,
g = gamma dt, K and C the slopes of elasticity, damping and drag:

    (M + G) k1 = Q(q, v) - g K v                        q2 = q + dt (v + g k1),  v2 = v + dt k1
    M a2 + G (a2 - 2 k1) = Q(q2, v2) - g K (v2 - 2 (v + g k1)),  the last bracket being -v2 + 2 (dt - g) k1
    v+ = v + dt/2 (k1 + a2)                             q+ = q + dt/2 (v + v2 + g (a2 - k1))

It is a W-method: second order whatever approximates the slopes, so K and C may leave out what is small or costly. The
body moves on SE(3) with the mean of its twists at both stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.rigid_body import move_pose
from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling.interface import move_supports
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
    W_MIDDLE,
    W_POSE,
    W_RODS,
    W_SUPPORT,
    W_TWIST,
    W_TWIST_FIN,
    W_WATER,
)
from rtmms.robots.manta.coupling.stage import stage
from rtmms.robots.manta.kernels.fin_layout import LANES, QD, QDD, SUM_Q, SUM_QD, Q
from rtmms.robots.manta.kernels.rods import ROD_SIZE, advance_rods
from rtmms.robots.manta.kernels.support import SUPPORT_SIZE

HALF_TURN = 3.14159
RATE_LIMIT = 1e6
TWIST_LIMIT = 1e4


@kernel(fused=False)
def step_implicit(
    finned_: Any,
    body_: Any,
    param: Array,
    state: Array,
    joints: Array,
    links: Array,
    fins: Array,
    work: Array,
    command: Array,
    many: int | None,
    drift: Array | None,
    body_drift: Array | None,
    normals: Array | None,
) -> int:
    """One step of dt.

    finned_, body_  (1,) records of FINNED_DTYPE and BODY_DTYPE
    param    (blocks, ...) of fin_lanes.pack_links
    state    (state_size,) moved by dt, or left as it was when the step fails
    joints   (2 blocks links, 2 LANES) the part of `state` that holds the joints' angles and rates, as a view
    links    (2 blocks links, FIELDS LANES) scratch of the chains; fins (2, blocks, links FIELDS LANES) the same memory
    work     (WORK_SIZE,) scratch
    normals  (2, blocks, links, 3 LANES) scratch when the drag acts along the neighbours' normals, else None
    command  (4,) rad: left.front, left.back, right.front, right.back
    many     links a chain where they are not three, else None
    drift    (2, 2, blocks, links, 3 LANES) m/s, water beyond the uniform current at each link at the start and the end
             of the step, or None; body_drift (2, 3) m/s in world axes, the same at the body, or None
    Returns OK, SINGULAR, NOT_FINITE or NOT_CONVERGED.
    """
    finned, body = finned_[0], body_[0]
    rows, coupling = 2 * finned.blocks * finned.links, finned.coupling
    dt = finned.dt
    g = finned.gamma * dt
    for k in range(4):
        if not abs(command[k]) < np.inf:
            return BAD_COMMAND
    for k in range(4 * ROD_SIZE):
        work[W_RODS + k] = state[RODS + k]
    advance_rods(finned.actuation, finned.servo, dt, command, work, W_RODS, W_MIDDLE, False)
    if not move_supports(finned, work, W_RODS, ROD_SIZE, work, W_SUPPORT):
        return SINGULAR

    lagged = state[ACCELERATION : ACCELERATION + 6]
    acc1, acc2 = work[W_ACC : W_ACC + 6], work[W_ACC + 6 : W_ACC + 12]
    for k in range(6):
        work[W_TWIST + k] = state[TWIST + k]
        work[W_TWIST_FIN + k] = state[TWIST + k]
    for k in range(7):
        work[W_POSE + k] = state[POSITION + k]
    for k in range(3):
        work[W_WATER + k] = finned.current[k]
        if body_drift is not None:
            work[W_WATER + k] += body_drift[0, k]
    for n in range(rows):
        for i in range(LANES):
            links[n, Q * LANES + i], links[n, QD * LANES + i] = joints[n, i], joints[n, LANES + i]
    status, passes1, residual1 = stage(
        coupling, finned, body, param, state, np.int64(SUPPORTS), lagged, g, 0.0, 1.0, 0.0, many,
        None if drift is None else drift[0], normals, fins, work, acc1,
    )  # fmt: skip
    if status != OK:
        return status

    for n in range(rows):
        for i in range(LANES):
            v, k1 = joints[n, LANES + i], links[n, QDD * LANES + i]
            v2 = v + dt * k1
            links[n, Q * LANES + i] = joints[n, i] + dt * (v + g * k1)
            links[n, QD * LANES + i] = v2
            links[n, SUM_Q * LANES + i] = joints[n, i] + 0.5 * dt * (v + v2 - g * k1)
            links[n, SUM_QD * LANES + i] = v + 0.5 * dt * k1
    # the paper's body stands still while the fins move (forward Euler), ours is carried along
    ahead = 0.0 if finned.body_method == BODY_EULER else dt
    for k in range(6):
        v, a1 = state[TWIST + k], acc1[k]
        work[W_TWIST + k] = v + ahead * a1
        work[W_TWIST_FIN + k] = v + ahead * (lagged[k] if coupling == SEQUENTIAL else a1)
    move_pose(state, POSITION, state, TWIST, ahead, work, W_POSE)
    for k in range(3):
        work[W_WATER + k] = finned.current[k]
        if body_drift is not None:
            work[W_WATER + k] += body_drift[1, k]
    status, passes2, residual2 = stage(
        coupling, finned, body, param, work, np.int64(W_SUPPORT), lagged if coupling == SEQUENTIAL else acc1, g,
        2.0, -1.0, 2.0 * (dt - g), many, None if drift is None else drift[1], normals, fins, work, acc2,
    )  # fmt: skip
    if status != OK:
        return status

    bad = 0
    for n in range(rows):
        for i in range(LANES):
            a2 = links[n, QDD * LANES + i]
            q = links[n, SUM_Q * LANES + i] + 0.5 * dt * g * a2
            v = links[n, SUM_QD * LANES + i] + 0.5 * dt * a2
            links[n, SUM_Q * LANES + i], links[n, SUM_QD * LANES + i] = q, v
            bad += not abs(q) < HALF_TURN
            bad += not abs(v) < RATE_LIMIT
    for k in range(6):
        bad += not abs(acc2[k]) < RATE_LIMIT
        bad += not abs(work[W_TWIST + k]) < TWIST_LIMIT
    if bad:
        return NOT_FINITE

    # all is sound: from here on the state changes
    for n in range(rows):
        for i in range(LANES):
            joints[n, i], joints[n, LANES + i] = (
                links[n, SUM_Q * LANES + i],
                links[n, SUM_QD * LANES + i],
            )
    for k in range(6):
        v = state[TWIST + k]
        if finned.body_method == BODY_EULER:
            work[W_TWIST + k] = v
            state[TWIST + k] = v + dt * acc2[k]
        else:
            w = v + 0.5 * dt * (acc1[k] + acc2[k])
            work[W_TWIST + k] = 0.5 * (v + work[W_TWIST + k])
            state[TWIST + k] = w
        lagged[k] = acc2[k]
    if not body.fixed:
        move_pose(state, POSITION, work, W_TWIST, dt, state, POSITION)
    for k in range(4 * ROD_SIZE):
        state[RODS + k] = work[W_RODS + k]
    for k in range(2 * SUPPORT_SIZE):
        state[SUPPORTS + k] = work[W_SUPPORT + k]
    state[STEP] += 1.0
    state[TIME] = state[STEP] * dt
    state[ITERATIONS] = max(passes1, passes2)
    state[RESIDUAL] = max(residual1, residual2)
    return OK
