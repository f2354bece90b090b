"""Joint angles and rates through the stages of a step, on all lanes of both fins.

Explicit:            q_i = q + h a v_{i-1},            v_i = v + h a k_{i-1},    q+ = q + h sum b_i v_i
linearly implicit:   q_i = q + h a (v_{i-1} + g k_{i-1}) with g = gamma h, and so in q+: two stages of equal weight
"""

from __future__ import annotations

from typing import Any

from rtmms.jit import kernel
from rtmms.robots.manta.coupling.tableaus import GAMMAS, LEADS, OVER, RECALLS, WEIGHTS
from rtmms.robots.manta.kernels.fin_layout import LANES, QD, QDD, SUM_Q, SUM_QD, Q

HALF_TURN = 3.14159
RATE_LIMIT = 1e6


@kernel(fused=False)
def start_joints(memory: Any) -> None:
    """The first stage stands where the step starts, and so do the sums."""
    joints, links = memory.joints, memory.rows
    for n in range(joints.shape[0]):
        for i in range(LANES):
            q, v = joints[n, i], joints[n, LANES + i]
            links[n, Q * LANES + i], links[n, QD * LANES + i] = q, v
            links[n, SUM_Q * LANES + i], links[n, SUM_QD * LANES + i] = q, v


@kernel(fused=False)
def next_joints(finned: Any, memory: Any, i: int) -> None:
    """To stage i > 0, from the rate QD and the acceleration QDD of the stage before, which the sums take up."""
    method, dt = finned.integrator, finned.dt
    c, g = dt * LEADS[method, i], GAMMAS[method] * dt
    unit = dt / OVER[method]
    before, now, back = unit * WEIGHTS[method, i - 1], unit * WEIGHTS[method, i], 1.0 - RECALLS[method, i]
    joints, links = memory.joints, memory.rows
    if g == 0.0:
        for n in range(joints.shape[0]):
            for lane in range(LANES):
                v, k = links[n, QD * LANES + lane], links[n, QDD * LANES + lane]
                links[n, SUM_Q * LANES + lane] += before * v
                links[n, SUM_QD * LANES + lane] += before * k
                links[n, Q * LANES + lane] = joints[n, lane] + c * v
                links[n, QD * LANES + lane] = joints[n, LANES + lane] + c * k
    else:
        for n in range(joints.shape[0]):
            for lane in range(LANES):
                v, k = links[n, QD * LANES + lane], links[n, QDD * LANES + lane]
                ahead = joints[n, LANES + lane] + c * k
                links[n, SUM_Q * LANES + lane] += now * (v + ahead + back * g * k)
                links[n, SUM_QD * LANES + lane] += before * k
                links[n, Q * LANES + lane] = joints[n, lane] + c * (v + g * k)
                links[n, QD * LANES + lane] = ahead


@kernel(fused=False)
def last_joints(finned: Any, memory: Any, i: int) -> bool:
    """The sums take up the last stage; False where a joint has bent by half a turn, or is not finite."""
    method = finned.integrator
    g = GAMMAS[method] * finned.dt
    w = finned.dt / OVER[method] * WEIGHTS[method, i]
    links, bad = memory.rows, 0
    for n in range(links.shape[0]):
        for lane in range(LANES):
            rate, k = links[n, QD * LANES + lane], links[n, QDD * LANES + lane]
            q = links[n, SUM_Q * LANES + lane] + (w * g * k if g > 0.0 else w * rate)
            v = links[n, SUM_QD * LANES + lane] + w * k
            links[n, SUM_Q * LANES + lane], links[n, SUM_QD * LANES + lane] = q, v
            bad += not abs(q) < HALF_TURN
            bad += not abs(v) < RATE_LIMIT
    return bad == 0


@kernel(fused=False)
def keep_joints(memory: Any) -> None:
    """The sums are the state."""
    joints, links = memory.joints, memory.rows
    for n in range(joints.shape[0]):
        for i in range(LANES):
            joints[n, i], joints[n, LANES + i] = links[n, SUM_Q * LANES + i], links[n, SUM_QD * LANES + i]
