"""Classical Runge-Kutta step of body and fins, explicit: order 4, for steps that the joints' damping leaves stable.

The body's pose moves in canonical coordinates about the pose at the start of the step (Munthe-Kaas), so that the order
holds on the group. `largest_step` says what the chains' linearisation allows; the plant refuses more than that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.rigid_body import exponential_rate, move_pose
from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling.interface import move_supports
from rtmms.robots.manta.coupling.layout import (
    ACCELERATION,
    BAD_COMMAND,
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
    W_RK,
    W_RODS,
    W_SUPPORT,
    W_TWIST,
    W_TWIST_FIN,
    W_WATER,
)
from rtmms.robots.manta.coupling.stage import stage
from rtmms.robots.manta.coupling.step_implicit import HALF_TURN, RATE_LIMIT, TWIST_LIMIT
from rtmms.robots.manta.kernels.fin_layout import LANES, QD, QDD, SUM_Q, SUM_QD, Q
from rtmms.robots.manta.kernels.rods import ROD_SIZE, advance_rods
from rtmms.robots.manta.kernels.support import SUPPORT_SIZE

REAL_LIMIT = 2.785
"""RK4 damps y' = -k y for k dt below this."""


@kernel(fused=False)
def step_rk4(
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
    """One step of dt; arguments and result as for `step_implicit.step_implicit`."""
    finned, body = finned_[0], body_[0]
    rows, coupling = 2 * finned.blocks * finned.links, finned.coupling
    dt = finned.dt
    for k in range(4):
        if not abs(command[k]) < np.inf:
            return BAD_COMMAND
    for k in range(4 * ROD_SIZE):
        work[W_RODS + k] = state[RODS + k]
    advance_rods(finned.actuation, finned.servo, dt, command, work, W_RODS, W_MIDDLE, True)
    middle, end = np.int64(W_SUPPORT), np.int64(W_SUPPORT + 2 * SUPPORT_SIZE)
    sound = move_supports(finned, work, W_MIDDLE, 3, work, middle)
    if not (move_supports(finned, work, W_RODS, ROD_SIZE, work, end) and sound):
        return SINGULAR
    lagged = state[ACCELERATION : ACCELERATION + 6]
    acc = work[W_ACC : W_ACC + 6]
    xi, rate, xi_sum, twist_sum = W_RK, W_RK + 6, W_RK + 12, W_RK + 18
    for k in range(6):
        acc[k] = lagged[k]
        work[xi + k], work[xi_sum + k], work[twist_sum + k] = 0.0, 0.0, 0.0
    passes, residual = 0, 0.0
    for s in range(4):
        # offset of this stage from the start of the step, and its weight
        c = dt * (0.0 if s == 0 else (1.0 if s == 3 else 0.5))
        w = dt / 6.0 * (1.0 if s == 0 or s == 3 else 2.0)
        for n in range(rows):
            for i in range(LANES):
                q0, v0 = joints[n, i], joints[n, LANES + i]
                if s == 0:
                    v, a = v0, 0.0
                    links[n, SUM_Q * LANES + i] = q0
                    links[n, SUM_QD * LANES + i] = v0
                else:
                    v, a = links[n, QD * LANES + i], links[n, QDD * LANES + i]
                links[n, Q * LANES + i] = q0 + c * v
                links[n, QD * LANES + i] = v0 + c * a
        for k in range(6):
            v = state[TWIST + k]
            work[W_TWIST + k] = v + c * acc[k]
            work[W_TWIST_FIN + k] = v + c * (lagged[k] if coupling == SEQUENTIAL else acc[k])
            work[xi + k] = c * work[rate + k] if s > 0 else 0.0
        move_pose(state, POSITION, work, xi, 1.0, work, W_POSE)
        for k in range(3):
            work[W_WATER + k] = finned.current[k]
            if body_drift is not None:
                work[W_WATER + k] += body_drift[0, k] + (body_drift[1, k] - body_drift[0, k]) * (c / dt)
        flow = None if drift is None else drift[1 if s == 3 else 0]
        guess = lagged if coupling == SEQUENTIAL else acc
        if s == 0:
            status, n, r = stage(
                coupling, finned, body, param, state, np.int64(SUPPORTS), guess, 0.0, 0.0, 0.0, 0.0,
                many, flow, normals, fins, work, acc,
            )  # fmt: skip
        else:
            status, n, r = stage(
                coupling, finned, body, param, work, end if s == 3 else middle, guess, 0.0, 0.0, 0.0, 0.0,
                many, flow, normals, fins, work, acc,
            )  # fmt: skip
        if status != OK:
            return status
        passes, residual = max(passes, n), max(residual, r)
        exponential_rate(work, xi, work, W_TWIST, work, rate)
        for k in range(6):
            work[twist_sum + k] += w * acc[k]
            work[xi_sum + k] += w * work[rate + k]
        for n in range(rows):
            for i in range(LANES):
                links[n, SUM_Q * LANES + i] += w * links[n, QD * LANES + i]
                links[n, SUM_QD * LANES + i] += w * links[n, QDD * LANES + i]

    bad = 0
    for n in range(rows):
        for i in range(LANES):
            bad += not abs(links[n, SUM_Q * LANES + i]) < HALF_TURN
            bad += not abs(links[n, SUM_QD * LANES + i]) < RATE_LIMIT
    for k in range(6):
        bad += not abs(acc[k]) < RATE_LIMIT
        bad += not abs(state[TWIST + k] + work[twist_sum + k]) < TWIST_LIMIT
    if bad:
        return NOT_FINITE
    # all is sound: from here on the state changes
    for n in range(rows):
        for i in range(LANES):
            joints[n, i] = links[n, SUM_Q * LANES + i]
            joints[n, LANES + i] = links[n, SUM_QD * LANES + i]
    for k in range(6):
        state[TWIST + k] += work[twist_sum + k]
        lagged[k] = acc[k]
    if not body.fixed:
        move_pose(state, POSITION, work, xi_sum, 1.0, state, POSITION)
    for k in range(4 * ROD_SIZE):
        state[RODS + k] = work[W_RODS + k]
    for k in range(2 * SUPPORT_SIZE):
        state[SUPPORTS + k] = work[end + k]
    state[STEP] += 1.0
    state[TIME] = state[STEP] * dt
    state[ITERATIONS], state[RESIDUAL] = passes, residual
    return OK


def largest_step(links: np.ndarray, tip_speed: float = 1.0) -> float:
    """Largest dt (s) at which RK4 holds every chain, straight and with its root at rest.

    links      (LINK_FIELDS, m, n) of fin_lanes
    tip_speed  m/s through the water, for the drag's share
    """
    length, mass, j_x, _, _, stiffness, drag, added, damping = links
    m, n = length.shape
    worst = 0.0
    for chain in range(n):
        at = np.concatenate([[0.0], np.cumsum(length[:, chain])])
        middle = 0.5 * (at[1:] + at[:-1])
        lever = np.clip(middle[:, None] - at[None, :-1], 0.0, None) * np.tri(m)
        turn = np.tri(m)
        inertia = lever.T @ np.diag(mass[:, chain] + added[:, chain]) @ lever + turn.T @ np.diag(j_x[:, chain]) @ turn
        slope = 2.0 * drag[:, chain] * tip_speed * middle / at[-1]
        c = np.diag(damping[:, chain]) + lever.T @ np.diag(slope) @ lever
        k = np.diag(stiffness[:, chain] / 4.0)
        inverse = np.linalg.inv(inertia)
        a = np.block([[np.zeros((m, m)), np.eye(m)], [-inverse @ k, -inverse @ c]])
        worst = max(worst, float(np.max(np.abs(np.linalg.eigvals(a)))))
    return REAL_LIMIT / worst
