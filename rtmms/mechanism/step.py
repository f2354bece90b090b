"""One step of any mechanism in a fluid: the methods. Arguments: see rtmms.mechanism.equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.mechanism.equations import evaluate, spend
from rtmms.mechanism.group import displace, normalise, uncurl
from rtmms.mechanism.joint_laws import follow
from rtmms.spatial import quaternion_columns

SOUND, NOT_FINITE, UNSTABLE = 0, 1, 2


@kernel
def rk4(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, monitor: Any, k: Any, y: Any
) -> float:  # fmt: skip
    """Runge-Kutta of order 4 on the group; k (4, 12 + 2 n), y (13 + 2 n,) scratch.

    Returns an estimate of (lambda h)^2: how much the rates of the joint rates differ where these differ; -1 for none.
    """
    evaluate(tree, law, hold, fluid, work, state, t, 0.0, k[0])
    spend(work, h / 6.0, monitor)
    displace(state, k[0], 0.5 * h, y)
    evaluate(tree, law, hold, fluid, work, y, t + 0.5 * h, 0.0, k[1])
    spend(work, h / 3.0, monitor)
    uncurl(k[1], k[0], 0.5 * h)
    displace(state, k[1], 0.5 * h, y)
    evaluate(tree, law, hold, fluid, work, y, t + 0.5 * h, 0.0, k[2])
    spend(work, h / 3.0, monitor)
    uncurl(k[2], k[1], 0.5 * h)
    displace(state, k[2], h, y)
    evaluate(tree, law, hold, fluid, work, y, t + h, 0.0, k[3])
    spend(work, h / 6.0, monitor)
    uncurl(k[3], k[2], h)
    n = tree[4].shape[0]
    above, below = 0.0, 0.0
    for m in range(12 + n, 12 + 2 * n):
        if not tree[4][m - 12 - n]:
            above += (k[2, m] - k[1, m]) ** 2
            below += (0.5 * (k[1, m] - k[0, m])) ** 2
    for m in range(k.shape[1]):
        k[0, m] = (k[0, m] + 2.0 * (k[1, m] + k[2, m]) + k[3, m]) / 6.0
    displace(state, k[0], h, state)
    return above / below if below > 0.0 and above > 0.0 else -1.0


@kernel
def implicit_euler(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, monitor: Any, rate: Any
) -> None:
    """Linearly implicit in springs, dampers and servos, order 1: (M + h C + h^2 K) a = Q - h K v, then v, x."""
    evaluate(tree, law, hold, fluid, work, state, t, h, rate)
    spend(work, h, monitor)
    n = tree[4].shape[0]
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    v0 = state[7 + n] + h * rate[6 + n]
    v1 = state[8 + n] + h * rate[7 + n]
    v2 = state[9 + n] + h * rate[8 + n]
    for k in range(3):
        rate[k] = r[3 * k] * v0 + r[3 * k + 1] * v1 + r[3 * k + 2] * v2
        rate[3 + k] += h * rate[9 + n + k]
    for j in range(n):
        rate[6 + j] += h * rate[12 + n + j]
    displace(state, rate, h, state)


@kernel
def implicit_step(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, order: int, monitor: Any,
    k: Any, y: Any,
) -> None:  # fmt: skip
    """One step of order 1, or of order 2 by extrapolating one step against two half steps."""
    if order == 2:
        for m in range(state.shape[0]):
            y[m] = state[m]
        spent = monitor[3]
        implicit_euler(tree, law, hold, fluid, work, y, t, h, monitor, k[0])
        monitor[3] = spent
        follow(tree, law, hold, y, t + h)
        implicit_euler(tree, law, hold, fluid, work, state, t, 0.5 * h, monitor, k[0])
        follow(tree, law, hold, state, t + 0.5 * h)
        implicit_euler(tree, law, hold, fluid, work, state, t + 0.5 * h, 0.5 * h, monitor, k[0])
        for m in range(state.shape[0]):
            state[m] = 2.0 * state[m] - y[m]
    else:
        implicit_euler(tree, law, hold, fluid, work, state, t, h, monitor, k[0])


@kernel
def plain_rate(state: Any, rate: Any, out: Any) -> None:
    """Rate of the group -> rate of the vector: the quaternion's own derivative Q (0, W) / 2 in place of W."""
    for k in range(3):
        out[k] = rate[k]
    w, x, y, z = state[3], state[4], state[5], state[6]
    a, b, c = 0.5 * rate[3], 0.5 * rate[4], 0.5 * rate[5]
    out[3] = -x * a - y * b - z * c
    out[4] = w * a + y * c - z * b
    out[5] = w * b + z * a - x * c
    out[6] = w * c + x * b - y * a
    for k in range(6, rate.shape[0]):
        out[k + 1] = rate[k]


@kernel
def abam(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, history: Any, count: int,
    monitor: Any, k: Any, y: Any,
) -> float:  # fmt: skip
    """Adams-Bashforth 4 predicts, Adams-Moulton 5 corrects, evaluate again (PECE); RK4 starts.

    history  (5, 13 + 2 n): rates at the last four steps, newest first, then room for the predicted one
    count    how many of them are there; below 4 the step is RK4's
    monitor  (4,)  the third is the squared size of the last correction of the joint rates
    Returns an estimate of (lambda h)^2 as `rk4` does.
    """
    evaluate(tree, law, hold, fluid, work, state, t, 0.0, k[0])
    for i in range(3, 0, -1):
        for m in range(state.shape[0]):
            history[i, m] = history[i - 1, m]
    f, n = history, tree[4].shape[0]
    plain_rate(state, k[0], f[0])
    if count < 3:
        rk4(tree, law, hold, fluid, work, state, t, h, monitor, k, y)
        return -1.0
    spend(work, 0.5 * h, monitor)
    above = 0.0  # rates of the last step's prediction (f[4]) and of what it was corrected to (f[0])
    for m in range(13 + n, 13 + 2 * n):
        if not tree[4][m - 13 - n]:
            above += (h * (f[0, m] - f[4, m])) ** 2
    ratio = above / monitor[2] if count > 3 and above > 0.0 and monitor[2] > 0.0 else -1.0
    for m in range(state.shape[0]):
        y[m] = state[m] + h / 24.0 * (55.0 * f[0, m] - 59.0 * f[1, m] + 37.0 * f[2, m] - 9.0 * f[3, m])
    follow(tree, law, hold, y, t + h)
    evaluate(tree, law, hold, fluid, work, y, t + h, 0.0, k[0])
    spend(work, 0.5 * h, monitor)
    plain_rate(y, k[0], f[4])
    for m in range(state.shape[0]):
        state[m] += h / 720.0 * (
            251.0 * f[4, m] + 646.0 * f[0, m] - 264.0 * f[1, m] + 106.0 * f[2, m] - 19.0 * f[3, m]
        )  # fmt: skip
    monitor[2] = 0.0
    for m in range(13 + n, 13 + 2 * n):
        if not tree[4][m - 13 - n]:
            monitor[2] += (state[m] - y[m]) ** 2
    return ratio


@kernel
def watch(monitor: Any, ratio: float) -> float:
    """|lambda| h over the last hundred steps or so: the geometric mean of its estimates, which swing with the phase.

    monitor (4,)  mean of ln (lambda h)^2, how many estimates, the method's own memory, work done (J). 0 before twenty
                  estimates.
    """
    if ratio > 0.0 and np.isfinite(ratio):
        monitor[1] += 1.0
        monitor[0] += (np.log(ratio) - monitor[0]) / min(monitor[1], 100.0)
    return np.exp(0.5 * monitor[0]) if monitor[1] > 20.0 else 0.0


@kernel
def _finish(tree: Any, law: Any, hold: Any, state: Any, t: float) -> bool:
    """Quaternion and imposed joints in order at a step's end; False where the state is no longer finite."""
    normalise(state)
    follow(tree, law, hold, state, t)
    sound = True
    for m in range(state.shape[0]):
        sound = sound and np.isfinite(state[m])
    return sound


@kernel
def advance_rk4(
    order: int, tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, h: float, substeps: int,
    history: Any, counts: Any, monitor: Any, limit: float, k: Any, y: Any,
) -> int:  # fmt: skip
    """`substeps` steps of h from time hold.start; one function a method, so that only what is used is compiled.

    order    of the method;  history (5, 13 + 2 n) and counts (1,), steps since it was empty: of `abam`
    monitor  (4,) see `watch`;  limit  |lambda| h that the method bears
    Returns SOUND, or what went wrong.
    """
    for i in range(substeps):
        t = hold[4] + i * h
        seen = watch(monitor, rk4(tree, law, hold, fluid, work, state, t, h, monitor, k, y))
        sound = _finish(tree, law, hold, state, t + h)
        if seen > limit:
            return UNSTABLE
        if not sound:
            return NOT_FINITE
    return SOUND


@kernel
def advance_abam(
    order: int, tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, h: float, substeps: int,
    history: Any, counts: Any, monitor: Any, limit: float, k: Any, y: Any,
) -> int:  # fmt: skip
    """As `advance_rk4`, by `abam`."""
    for i in range(substeps):
        t = hold[4] + i * h
        ratio = abam(tree, law, hold, fluid, work, state, t, h, history, counts[0], monitor, k, y)
        counts[0] += 1
        seen = watch(monitor, ratio)
        sound = _finish(tree, law, hold, state, t + h)
        if seen > limit:
            return UNSTABLE
        if not sound:
            return NOT_FINITE
    return SOUND


@kernel
def advance_implicit(
    order: int, tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, h: float, substeps: int,
    history: Any, counts: Any, monitor: Any, limit: float, k: Any, y: Any,
) -> int:  # fmt: skip
    """As `advance_rk4`, by `implicit_step` of order 1 or 2."""
    for i in range(substeps):
        t = hold[4] + i * h
        implicit_step(tree, law, hold, fluid, work, state, t, h, order, monitor, k, y)
        if not _finish(tree, law, hold, state, t + h):
            return NOT_FINITE
    return SOUND
