"""One step of any mechanism in a fluid, by any method of rtmms.mechanism.methods.

system   a record of rtmms.mechanism.entry.SYSTEM
k, y     motion.rates and motion.states, or parts of them
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.mechanism.audit import SPENT, spend_terms
from rtmms.mechanism.body_actuators import finish_motors, spend_spin
from rtmms.mechanism.equations import evaluate, spend
from rtmms.mechanism.group import displace, lead, normalise, plain_rate, uncurl
from rtmms.mechanism.joint_laws import finish_servo, follow, hold_commands
from rtmms.mechanism.methods import ADAMS
from rtmms.mechanism.tendons import finish_tendons, spend_tendons
from rtmms.mechanism.unilateral import AGAINST, HELD, choose_contacts, keep_to_ground
from rtmms.memory import INTEGER, Layout, scratch, state

MOTION = Layout(
    "Motion",
    state("vector", "13 + 2 * n"), state("history", 5, "13 + 2 * n"), state("counts", 1, dtype=INTEGER),
    state("spent", "spent", unit="J"), scratch("rates", "stages + 1", "12 + 2 * n"),
    scratch("states", 3, "13 + 2 * n"),
)  # fmt: skip
"""vector: see rtmms.mechanism.group. history: rates at the last four steps, newest first, then the predicted one;
counts: steps since it was empty. spent: work of joints, tendons and spinning rotors, and more of a tree that is
audited (rtmms.mechanism.audit) or has tendons.
rates: of the stages, and, last, where a stage stands; states: scratch."""
BAD_COMMAND, SOUND, NOT_FINITE, CONTRADICTED, THROWN = -1, 0, 1, 2, 3
PREDICTOR, AHEAD, CORRECTOR, BACK = ADAMS


@kernel
def one_step(system: Any, state: Any, t: float, h: float, spent: Any, k: Any, y: Any) -> None:
    """A step of the tableau, in place. k: rates of the stages, its last row scratch; y (13 + 2 n,) scratch."""
    method, work = system.method, system.work
    c, a, b, over, gamma = method.nodes, method.matrix, method.weights, method.over, method.gamma
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
        evaluate(system, at, t + c[i] * h, gamma * h, k[i])
        spend(work, h * b[i] / over, gamma * h, spent)
        if spent.shape[0] >= 3 * SPENT:
            spend_terms(system, h * b[i] / over, spent)
        spend_tendons(system.tendons, h * b[i] / over, spent)
        elapsed = t + c[i] * h - system.hold.start
        spend_spin(system.pushes, system.pushes.momentum, elapsed, work.s, h * b[i] / over, spent)
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
def extrapolated(system: Any, state: Any, t: float, h: float, spent: Any, k: Any, y: Any) -> None:
    """The step in each number of parts, mixed, and the work as well; in one part alone it is `one_step`."""
    parts, mix = system.method.parts, system.method.mix
    if parts.shape[0] == 1:
        one_step(system, state, t, h, spent, k, y[0])
        return
    part, total, before, work = y[1], y[2], spent[0], 0.0
    works = spent.shape[0] // 3
    for w in range(1, works):
        spent[works + w], spent[2 * works + w] = spent[w], 0.0
    for m in range(state.shape[0]):
        total[m] = 0.0
    for p in range(parts.shape[0]):
        spent[0], length = 0.0, h / parts[p]
        for w in range(1, works):
            spent[w] = 0.0
        for m in range(state.shape[0]):
            part[m] = state[m]
        for q in range(int(parts[p])):
            one_step(system, part, t + q * length, length, spent, k, y[0])
            follow(system, part, t + (q + 1) * length)
        for m in range(state.shape[0]):
            total[m] += mix[p] * part[m]
        work += mix[p] * spent[0]
        for w in range(1, works):
            spent[2 * works + w] += mix[p] * spent[w]
    for m in range(state.shape[0]):
        state[m] = total[m]
    spent[0] = before + work
    for w in range(1, works):
        spent[w] = spent[works + w] + spent[2 * works + w]


@kernel(merged=True)
def multistep(system: Any, t: float, h: float, k: Any, y: Any) -> None:
    """Predict, evaluate, correct by ADAMS; the tableau starts."""
    motion, work = system.motion, system.work
    state, f, counts, spent = motion.vector, motion.history, motion.counts, motion.spent
    evaluate(system, state, t, 0.0, k[0])
    for i in range(3, 0, -1):
        for m in range(state.shape[0]):
            f[i, m] = f[i - 1, m]
    count = counts[0]
    counts[0] += 1
    plain_rate(state, k[0], f[0])
    if count < 3:
        one_step(system, state, t, h, spent, k, y[0])
        return
    spend(work, 0.5 * h, 0.0, spent)
    if spent.shape[0] >= 3 * SPENT:
        spend_terms(system, 0.5 * h, spent)
    spend_tendons(system.tendons, 0.5 * h, spent)
    spend_spin(system.pushes, system.pushes.momentum, t - system.hold.start, work.s, 0.5 * h, spent)
    p, q, guess = PREDICTOR, CORRECTOR, y[0]
    for m in range(state.shape[0]):
        guess[m] = state[m] + h / AHEAD * (p[0] * f[0, m] + p[1] * f[1, m] + p[2] * f[2, m] + p[3] * f[3, m])
    follow(system, guess, t + h)
    evaluate(system, guess, t + h, 0.0, k[0])
    spend(work, 0.5 * h, 0.0, spent)
    if spent.shape[0] >= 3 * SPENT:
        spend_terms(system, 0.5 * h, spent)
    spend_tendons(system.tendons, 0.5 * h, spent)
    spend_spin(system.pushes, system.pushes.momentum, t + h - system.hold.start, work.s, 0.5 * h, spent)
    plain_rate(guess, k[0], f[4])
    for m in range(state.shape[0]):
        state[m] += h / BACK * (
            q[0] * f[4, m] + q[1] * f[0, m] + q[2] * f[1, m] + q[3] * f[2, m] + q[4] * f[3, m]
        )  # fmt: skip


@kernel
def finish(system: Any, ground: Any, state: Any, t: float) -> int:
    """Quaternion, imposed joints and what the ground holds in order at a step's end.

    SOUND, NOT_FINITE where the state is no longer finite, CONTRADICTED where imposed joints will not have it, THROWN
    where the contacts are all but singular there.
    ground  the tree's, an argument so that it is known when compiled
    """
    normalise(state)
    follow(system, state, t)
    sound, held = True, HELD
    if ground is not None:  # noqa: SIM102
        if ground.rows.shape[0] > 0:
            held = keep_to_ground(system.tree, ground, system.work, state)
    for m in range(state.shape[0]):
        sound = sound and np.isfinite(state[m])
    if not sound:
        return NOT_FINITE
    return SOUND if held == HELD else CONTRADICTED if held == AGAINST else THROWN


@kernel(merged=True)
def advance(system: Any, h: float, substeps: int) -> int:
    """`substeps` steps of h from time hold.start. Returns what `finish` says."""
    motion, tree = system.motion, system.tree
    state, spent, k, y = motion.vector, motion.spent, motion.rates, motion.states
    for i in range(substeps):
        t = system.hold.start + i * h
        choose_contacts(system, tree.ground, state, t, k[0])
        if system.method.multistep:
            multistep(system, t, h, k, y)
        else:
            extrapolated(system, state, t, h, spent, k, y)
        status = finish(system, tree.ground, state, t + h)
        if status != SOUND:
            return status
    return SOUND


@kernel(fused=False)
def finite(values: Any) -> bool:
    sound = True
    for k in range(values.shape[0]):
        sound = sound and np.isfinite(values[k])
    return sound


@kernel(fused=False)
def saturate(values: Any, limits: Any) -> None:
    """Each within its limits (n, 2)."""
    for k in range(values.shape[0]):
        values[k] = min(max(values[k], limits[k, 0]), limits[k, 1])


@kernel(merged=True)
def take_step(system: Any) -> int:
    """Advance a plant that is a tree by dt: the command is checked, brought within its limits and spread, the tree
    advances, filters and motors too.

    Returns SOUND, what `advance` says, or BAD_COMMAND: nothing has happened then. The state before is in `last`.
    """
    command, hold, pushes = system.command, system.hold, system.pushes
    given, memory, last, dt, substeps = command.given, system.memory, system.last, system.dt, system.substeps
    if not finite(given):
        return BAD_COMMAND
    saturate(given, command.limits)
    hold_commands(command.kinds, command.joints, given, hold.torque, hold.target, hold.slew, hold.goal)
    for k in range(memory.shape[0]):
        last[k] = memory[k]
    for k in range(given.shape[0]):
        pushes.command[k] = given[k]
    status = advance(system, dt / substeps, substeps)
    if status == SOUND:
        finish_servo(hold, hold.coast, dt)
        finish_motors(pushes, dt)
        finish_tendons(system.tendons, pushes.command, dt)
    return status
