"""One step of any mechanism in a fluid, by any method of rtmms.mechanism.methods.

system   tree, law, hold, fluid, work: see rtmms.mechanism.equations and joint_laws
method   `Method.arrays`
memory   state (13 + 2 n,); history (5, 13 + 2 n) rates at the last four steps, newest first, then the predicted one;
         counts (1,) steps since it was empty; monitor (4,) mean of ln (lambda h)^2, how many estimates, the squared
         size of the last correction, work done (J)
scratch  k (stages + 1, 12 + 2 n) the stages' rates and, last, where a stage stands; y (3, 13 + 2 n) states
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.mechanism.equations import evaluate, spend
from rtmms.mechanism.group import displace, lead, normalise, plain_rate, uncurl
from rtmms.mechanism.joint_laws import follow
from rtmms.mechanism.methods import ADAMS

SOUND, NOT_FINITE, UNSTABLE = 0, 1, 2
PREDICTOR, AHEAD, CORRECTOR, BACK = ADAMS


@kernel
def one_step(system: Any, method: Any, state: Any, t: float, h: float, monitor: Any, k: Any, y: Any) -> float:
    """A step of the tableau, in place. k: rates of the stages, its last row scratch; y (13 + 2 n,) scratch.

    Returns an estimate of (lambda h)^2: how much the rates of the joint rates differ where these differ; -1 for none.
    """
    tree, law, hold, fluid, work = system
    c, a, b, over, gamma, pair, _, _, _ = method
    stages, along, at = c.shape[0], k[k.shape[0] - 1], state
    for i in range(stages):
        if i > 0:
            for m in range(k.shape[1]):
                along[m] = 0.0
            for j in range(i):
                if a[i, j] != 0.0:
                    add(along, a[i, j], k[j])
            displace(state, along, h, y)
            at = y
        evaluate(tree, law, hold, fluid, work, at, t + c[i] * h, gamma * h, k[i])
        spend(work, h * b[i] / over, monitor)
        if gamma > 0.0:
            lead(at, k[i], gamma * h)
        if i > 0:
            uncurl(k[i], along, h)
    ratio = growth(tree[4], a, pair, k)
    for m in range(k.shape[1]):
        along[m] = 0.0
    first = 0
    for i in range(stages):  # neighbours of equal weight are added first, into the first of them
        if i > first:
            add(k[first], 1.0, k[i])
        if i == stages - 1 or b[i + 1] != b[i]:
            add(along, b[i], k[first])
            first = i + 1
    for m in range(k.shape[1]):
        along[m] /= over
    displace(state, along, h, state)
    return ratio


@kernel(inline=True)
def add(total: Any, factor: float, rate: Any) -> None:
    """total += factor rate, one after the other: vector instructions."""
    for m in range(total.shape[0]):
        total[m] += factor * rate[m]


@kernel
def growth(imposed: Any, a: Any, i: int, k: Any) -> float:
    """(lambda h)^2 from stages i and i + 1, which stand at one time; -1 for i < 0 or where nothing moves."""
    if i < 0:
        return -1.0
    n = imposed.shape[0]
    above, below = 0.0, 0.0
    for m in range(12 + n, 12 + 2 * n):
        if not imposed[m - 12 - n]:
            apart = 0.0
            for j in range(i + 1):
                apart += (a[i + 1, j] - a[i, j]) * k[j, m]
            above += (k[i + 1, m] - k[i, m]) ** 2
            below += apart**2
    return above / below if below > 0.0 and above > 0.0 else -1.0


@kernel
def extrapolated(system: Any, method: Any, state: Any, t: float, h: float, monitor: Any, k: Any, y: Any) -> float:
    """The step in each number of parts, mixed; in one part alone it is `one_step`. Work counts from the finest."""
    parts, mix = method[6], method[7]
    if parts.shape[0] == 1:
        return one_step(system, method, state, t, h, monitor, k, y[0])
    part, total, spent, ratio = y[1], y[2], monitor[3], -1.0
    for m in range(state.shape[0]):
        total[m] = 0.0
    for p in range(parts.shape[0]):
        monitor[3], length = spent, h / parts[p]
        for m in range(state.shape[0]):
            part[m] = state[m]
        for q in range(int(parts[p])):
            ratio = one_step(system, method, part, t + q * length, length, monitor, k, y[0])
            follow(system[0], system[1], system[2], part, t + (q + 1) * length)
        for m in range(state.shape[0]):
            total[m] += mix[p] * part[m]
    for m in range(state.shape[0]):
        state[m] = total[m]
    return ratio


@kernel
def multistep(system: Any, method: Any, memory: Any, t: float, h: float, k: Any, y: Any) -> float:
    """Predict, evaluate, correct by ADAMS; the tableau starts. Returns an estimate of (lambda h)^2 as `one_step`."""
    tree, law, hold, fluid, work = system
    state, f, counts, monitor = memory
    evaluate(tree, law, hold, fluid, work, state, t, 0.0, k[0])
    for i in range(3, 0, -1):
        for m in range(state.shape[0]):
            f[i, m] = f[i - 1, m]
    n, count = tree[4].shape[0], counts[0]
    counts[0] += 1
    plain_rate(state, k[0], f[0])
    if count < 3:
        one_step(system, method, state, t, h, monitor, k, y[0])
        return -1.0
    spend(work, 0.5 * h, monitor)
    above = 0.0  # rates of the last step's prediction (f[4]) and of what it was corrected to (f[0])
    for m in range(13 + n, 13 + 2 * n):
        if not tree[4][m - 13 - n]:
            above += (h * (f[0, m] - f[4, m])) ** 2
    ratio = above / monitor[2] if count > 3 and above > 0.0 and monitor[2] > 0.0 else -1.0
    p, q, guess = PREDICTOR, CORRECTOR, y[0]
    for m in range(state.shape[0]):
        guess[m] = state[m] + h / AHEAD * (p[0] * f[0, m] + p[1] * f[1, m] + p[2] * f[2, m] + p[3] * f[3, m])
    follow(tree, law, hold, guess, t + h)
    evaluate(tree, law, hold, fluid, work, guess, t + h, 0.0, k[0])
    spend(work, 0.5 * h, monitor)
    plain_rate(guess, k[0], f[4])
    for m in range(state.shape[0]):
        state[m] += h / BACK * (
            q[0] * f[4, m] + q[1] * f[0, m] + q[2] * f[1, m] + q[3] * f[2, m] + q[4] * f[3, m]
        )  # fmt: skip
    monitor[2] = 0.0
    for m in range(13 + n, 13 + 2 * n):
        if not tree[4][m - 13 - n]:
            monitor[2] += (state[m] - guess[m]) ** 2
    return ratio


@kernel
def watch(monitor: Any, ratio: float) -> float:
    """|lambda| h over the last hundred steps or so: the geometric mean of its estimates, which swing with the phase.

    0 before twenty estimates.
    """
    if ratio > 0.0 and np.isfinite(ratio):
        monitor[1] += 1.0
        monitor[0] += (np.log(ratio) - monitor[0]) / min(monitor[1], 100.0)
    return np.exp(0.5 * monitor[0]) if monitor[1] > 20.0 else 0.0


@kernel
def finish(system: Any, state: Any, t: float) -> bool:
    """Quaternion and imposed joints in order at a step's end; False where the state is no longer finite."""
    normalise(state)
    follow(system[0], system[1], system[2], state, t)
    sound = True
    for m in range(state.shape[0]):
        sound = sound and np.isfinite(state[m])
    return sound


@kernel
def advance(system: Any, method: Any, memory: Any, scratch: Any, h: float, substeps: int, limit: float) -> int:
    """`substeps` steps of h from time hold.start. limit: |lambda| h that the method bears.

    Returns SOUND, or what went wrong.
    """
    state, _, _, monitor = memory
    k, y = scratch
    for i in range(substeps):
        t = system[2][4] + i * h
        if method[8]:
            ratio = multistep(system, method, memory, t, h, k, y)
        else:
            ratio = extrapolated(system, method, state, t, h, monitor, k, y)
        seen = watch(monitor, ratio)
        sound = finish(system, state, t + h)
        if seen > limit:
            return UNSTABLE
        if not sound:
            return NOT_FINITE
    return SOUND
