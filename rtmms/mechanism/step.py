"""One step of any mechanism in a fluid, by any method of rtmms.mechanism.methods.

system   tree, law, hold, fluid, work: see rtmms.mechanism.equations and joint_laws
method   `Method.arrays`
memory   state (13 + 2 n,); history (5, 13 + 2 n) rates at the last four steps, newest first, then the predicted one;
         counts (1,) steps since it was empty; spent (1,) J, work of the joints, (3 SPENT,) of a tree that
         is audited (rtmms.mechanism.audit)
scratch  k (stages + 1, 12 + 2 n) the stages' rates and, last, where a stage stands; y (3, 13 + 2 n) states
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.mechanism.audit import SPENT, spend_terms
from rtmms.mechanism.engage import engage_all
from rtmms.mechanism.equations import evaluate, spend
from rtmms.mechanism.group import displace, lead, normalise, plain_rate, uncurl
from rtmms.mechanism.joint_laws import follow
from rtmms.mechanism.keep_to_ground import AGAINST, HELD, keep_to_ground
from rtmms.mechanism.methods import ADAMS

SOUND, NOT_FINITE, CONTRADICTED, THROWN = 0, 1, 2, 3
PREDICTOR, AHEAD, CORRECTOR, BACK = ADAMS


@kernel
def one_step(system: Any, method: Any, state: Any, t: float, h: float, spent: Any, k: Any, y: Any) -> None:
    """A step of the tableau, in place. k: rates of the stages, its last row scratch; y (13 + 2 n,) scratch."""
    tree, law, hold, fluid, work = system
    c, a, b, over, gamma, _, _, _ = method
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
        spend(work, h * b[i] / over, gamma * h, spent)
        if spent.shape[0] > 1:
            spend_terms(system, h * b[i] / over, spent)
        if gamma > 0.0:
            lead(at, k[i], gamma * h)
        if i > 0:
            uncurl(k[i], along, h)
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


@kernel(inline=True)
def add(total: Any, factor: float, rate: Any) -> None:
    """total += factor rate, one after the other: vector instructions."""
    for m in range(total.shape[0]):
        total[m] += factor * rate[m]


@kernel(merged=True)
def extrapolated(system: Any, method: Any, state: Any, t: float, h: float, spent: Any, k: Any, y: Any) -> None:
    """The step in each number of parts, mixed, and the work as well; in one part alone it is `one_step`."""
    parts, mix = method[5], method[6]
    if parts.shape[0] == 1:
        one_step(system, method, state, t, h, spent, k, y[0])
        return
    part, total, before, work = y[1], y[2], spent[0], 0.0
    audited = spent.shape[0] > 1
    if audited:
        for w in range(1, SPENT):
            spent[SPENT + w], spent[2 * SPENT + w] = spent[w], 0.0
    for m in range(state.shape[0]):
        total[m] = 0.0
    for p in range(parts.shape[0]):
        spent[0], length = 0.0, h / parts[p]
        if audited:
            for w in range(1, SPENT):
                spent[w] = 0.0
        for m in range(state.shape[0]):
            part[m] = state[m]
        for q in range(int(parts[p])):
            one_step(system, method, part, t + q * length, length, spent, k, y[0])
            follow(system[0], system[1], system[2], part, t + (q + 1) * length)
        for m in range(state.shape[0]):
            total[m] += mix[p] * part[m]
        work += mix[p] * spent[0]
        if audited:
            for w in range(1, SPENT):
                spent[2 * SPENT + w] += mix[p] * spent[w]
    for m in range(state.shape[0]):
        state[m] = total[m]
    spent[0] = before + work
    if audited:
        for w in range(1, SPENT):
            spent[w] = spent[SPENT + w] + spent[2 * SPENT + w]


@kernel(merged=True)
def multistep(system: Any, method: Any, memory: Any, t: float, h: float, k: Any, y: Any) -> None:
    """Predict, evaluate, correct by ADAMS; the tableau starts."""
    tree, law, hold, fluid, work = system
    state, f, counts, spent = memory
    evaluate(tree, law, hold, fluid, work, state, t, 0.0, k[0])
    for i in range(3, 0, -1):
        for m in range(state.shape[0]):
            f[i, m] = f[i - 1, m]
    count = counts[0]
    counts[0] += 1
    plain_rate(state, k[0], f[0])
    if count < 3:
        one_step(system, method, state, t, h, spent, k, y[0])
        return
    spend(work, 0.5 * h, 0.0, spent)
    if spent.shape[0] > 1:
        spend_terms(system, 0.5 * h, spent)
    p, q, guess = PREDICTOR, CORRECTOR, y[0]
    for m in range(state.shape[0]):
        guess[m] = state[m] + h / AHEAD * (p[0] * f[0, m] + p[1] * f[1, m] + p[2] * f[2, m] + p[3] * f[3, m])
    follow(tree, law, hold, guess, t + h)
    evaluate(tree, law, hold, fluid, work, guess, t + h, 0.0, k[0])
    spend(work, 0.5 * h, 0.0, spent)
    if spent.shape[0] > 1:
        spend_terms(system, 0.5 * h, spent)
    plain_rate(guess, k[0], f[4])
    for m in range(state.shape[0]):
        state[m] += h / BACK * (
            q[0] * f[4, m] + q[1] * f[0, m] + q[2] * f[1, m] + q[3] * f[2, m] + q[4] * f[3, m]
        )  # fmt: skip


@kernel
def finish(tree: Any, law: Any, hold: Any, work: Any, state: Any, t: float) -> int:
    """Quaternion, imposed joints and what the ground holds in order at a step's end.

    SOUND, NOT_FINITE where the state is no longer finite, CONTRADICTED where imposed joints will not have it, THROWN
    where the contacts are all but singular there.
    """
    normalise(state)
    follow(tree, law, hold, state, t)
    sound, held = True, HELD
    if len(tree) == 7:  # noqa: SIM102  known when compiled
        if tree[6][0].shape[0] > 0:
            held = keep_to_ground(tree, work, state)
    for m in range(state.shape[0]):
        sound = sound and np.isfinite(state[m])
    if not sound:
        return NOT_FINITE
    return SOUND if held == HELD else CONTRADICTED if held == AGAINST else THROWN


@kernel(merged=True)
def advance(system: Any, method: Any, memory: Any, scratch: Any, h: float, substeps: int) -> int:
    """`substeps` steps of h from time hold.start. Returns what `finish` says."""
    state, _, _, spent = memory
    k, y = scratch
    for i in range(substeps):
        t = system[2][4] + i * h
        engage_all(system[0], system, state, t, k[0])
        if method[7]:
            multistep(system, method, memory, t, h, k, y)
        else:
            extrapolated(system, method, state, t, h, spent, k, y)
        status = finish(system[0], system[1], system[2], system[4], state, t + h)
        if status != SOUND:
            return status
    return SOUND
