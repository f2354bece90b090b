"""Compute one step of any mechanism in a fluid: states on the group, contacts with the ground, stages of a method.

- state (13 + 2 n,): position 3 (m, world), quaternion 4 (w x y z, base to world), q n, twist 6 (base frame), qd n
- rate (12 + 2 n,): world velocity 3, W 3 (rad/s, base frame), qd n, twist' 6, qdd n

A step along a rate turns the attitude by an exponential, Q exp(h W), so that it remains a rotation. A method of higher
order needs the rate of the exponential's own coordinate theta instead of W: W + theta x W / 2 + theta x (theta x W) /
12 (Munthe-Kaas), exact enough up to order four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import INTEGER, Layout, scratch, state
from rtmms.base.spatial import quaternion_columns
from rtmms.dynamics.ground import add_change, slip, stop_slip
from rtmms.dynamics.ground_passes import MIN_PART, R_COUNT, WORST
from rtmms.dynamics.recursion import configure, outward
from rtmms.mechanism.audit import SPENT, spend_terms
from rtmms.mechanism.body_actuators import finish_motors, spend_spin
from rtmms.mechanism.equations import evaluate, spend
from rtmms.mechanism.floor import finish_floor
from rtmms.mechanism.joint_laws import finish_servo, follow, hold_commands
from rtmms.mechanism.methods import ADAMS
from rtmms.mechanism.tendons import finish_tendons, spend_tendons
from rtmms.model.contact_rows import G_SIDE
from rtmms.model.layout import REVOLUTE, T_KIND


@kernel
def displace(state: Any, rate: Any, h: float, out: Any) -> None:
    """Write a state moved along a rate.

    Parameters
    ----------
    state : (13 + 2 n,) array
        State vector.
    rate : (12 + 2 n,) array
        Rate of the group.
    h : float
        s.
    out : (13 + 2 n,) array
        Result; it may be `state`.
    """
    m = state.shape[0] - 7
    for k in range(3):
        out[k] = state[k] + h * rate[k]
    x, y, z = h * rate[3], h * rate[4], h * rate[5]
    square = x * x + y * y + z * z
    if square.real > 1e-8:
        angle = np.sqrt(square)
        c, s = np.cos(0.5 * angle), np.sin(0.5 * angle) / angle
    else:  # cos and sin(a/2)/a to order a^4
        c, s = 1.0 - square / 8.0 + square * square / 384.0, 0.5 - square / 48.0 + square * square / 3840.0
    x, y, z = s * x, s * y, s * z
    qw, qx, qy, qz = state[3], state[4], state[5], state[6]
    out[3] = qw * c - qx * x - qy * y - qz * z
    out[4] = qw * x + qx * c + qy * z - qz * y
    out[5] = qw * y - qx * z + qy * c + qz * x
    out[6] = qw * z + qx * y - qy * x + qz * c
    for k in range(m):
        out[7 + k] = state[7 + k] + h * rate[6 + k]


@kernel
def uncurl(rate: Any, before: Any, h: float) -> None:
    """Convert the W of a stage's rate to the rate of theta = h W_before, for a stage at Q exp(theta).

    Parameters
    ----------
    rate : (12 + 2 n,) array
        Rate of the group.
    before : (12 + 2 n,) array
        Rate along which the stage was reached.
    h : float
        s.
    """
    x, y, z = h * before[3], h * before[4], h * before[5]
    a, b, c = rate[3], rate[4], rate[5]
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    rate[3] = a + 0.5 * d + (y * f - z * e) / 12.0
    rate[4] = b + 0.5 * e + (z * d - x * f) / 12.0
    rate[5] = c + 0.5 * f + (x * e - y * d) / 12.0


@kernel
def normalise(state: Any) -> None:
    """Normalise the quaternion of a state.

    Parameters
    ----------
    state : (13 + 2 n,) array
        State vector.
    """
    size = 1.0 / np.sqrt(state[3] * state[3] + state[4] * state[4] + state[5] * state[5] + state[6] * state[6])
    for k in range(3, 7):
        state[k] *= size


@kernel
def lead(state: Any, rate: Any, h: float) -> None:
    """Extrapolate rates of position, attitude and joints by h seconds, with velocities moved along their own rates.

    Parameters
    ----------
    state : (13 + 2 n,) array
        State vector.
    rate : (12 + 2 n,) array
        Rate of the group.
    h : float
        s.
    """
    n = (state.shape[0] - 13) // 2
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    v0 = state[7 + n] + h * rate[6 + n]
    v1 = state[8 + n] + h * rate[7 + n]
    v2 = state[9 + n] + h * rate[8 + n]
    for k in range(3):
        rate[k] = r[3 * k] * v0 + r[3 * k + 1] * v1 + r[3 * k + 2] * v2
        rate[3 + k] += h * rate[9 + n + k]
    for j in range(n):
        rate[6 + j] += h * rate[12 + n + j]


@kernel
def plain_rate(state: Any, rate: Any, out: Any) -> None:
    """Convert a rate of the group to a rate of the vector: the quaternion's derivative Q (0, W) / 2 replaces W.

    Parameters
    ----------
    state : (13 + 2 n,) array
        State vector.
    rate : (12 + 2 n,) array
        Rate of the group.
    out : (13 + 2 n,) array
        Result.
    """
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


CLOSED = 1e-10
"""Opening rate up to which a row counts as closed, m/s."""
AGREED = 1e-9
"""Slip of dependent rows, as a part of the speeds, up to which they do not contradict the joints' motion."""
MIN_SINGULAR_VALUE = 1e-4
"""Singular value below which a motion counts as singular."""
MAX_SPEED_RATIO = 100.0
"""Ratio of the speeds of base and joints at which a motion counts as singular."""
HELD = 0
AGAINST = 1
SINGULAR = 2


@kernel
def choose_contacts(system: Any, ground: Any, state: Any, t: float, rate: Any) -> None:
    """Set `active` of the one-sided rows (rtmms.dynamics.ground); nothing happens for trees without contacts.

    At first all rows are active that do not open (slip <= 0). A row that would have to pull is released, the worst
    first, and the others are computed again. The result depends on the state alone, so that a restored run chooses
    alike.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    ground : Record or None
        tree.ground; an argument so that the compiler specialises on None.
    state : (13 + 2 n,) array
        State vector.
    t : float
        Time, s.
    rate : (12 + 2 n,) array
        Scratch.
    """
    if ground is not None:
        rows, offset, reaction, active = ground.rows, ground.offset, ground.reaction, ground.active
        sided = False
        for r in range(rows.shape[0]):
            sided = sided or rows[r, G_SIDE] > 0.0
        if not sided:
            return
        evaluate(system, state, t, 0.0, rate)
        slip(ground, system.work.s, system.work.qd, offset)
        for r in range(rows.shape[0]):
            active[r] = 1.0 if rows[r, G_SIDE] == 0.0 or offset[r] <= CLOSED else 0.0
        for _ in range(rows.shape[0]):
            evaluate(system, state, t, 0.0, rate)
            if not let_go(rows, reaction, active):
                return


@kernel
def let_go(rows: Any, reaction: Any, active: Any) -> bool:
    """Release the one-sided row that pulls most.

    Parameters
    ----------
    rows : (m, G_WIDTH) array
        Rows of contact.
    reaction : (m,) array
        Reactions, N or N m.
    active : (m,) array
        1 for active rows; changed.

    Returns
    -------
    bool
        False where no row pulls.
    """
    worst, lowest = -1, 0.0
    largest = 0.0
    for r in range(rows.shape[0]):
        if active[r] > 0.0:
            largest = max(largest, abs(reaction[r]))
    for r in range(rows.shape[0]):
        if rows[r, G_SIDE] > 0.0 and active[r] > 0.0 and reaction[r] < min(lowest, -1e-9 * largest):
            worst, lowest = r, reaction[r]
    if worst >= 0:
        active[worst] = 0.0
    return worst >= 0


@kernel
def keep_to_ground(tree: Any, ground: Any, work: Any, state: Any) -> int:
    """Project the velocity onto the rows of contact, with the least change of kinetic energy.

    It computes eta <- eta - A^+ (A eta + B rd), at a step's end, and where a plant is placed.

    Parameters
    ----------
    tree : Record
        Record of the compiled model.
    ground : Record
        Contacts of the tree.
    work : Record
        Scratch of an evaluation.
    state : (13 + 2 n,) array
        State vector.

    Returns
    -------
    int
        HELD; AGAINST where imposed joints contradict the rows; SINGULAR where the rows leave a motion nearly free.
    """
    topology, constant, gravity, imposed = tree.topology, tree.constant, tree.gravity, tree.imposed
    s, torque, q, qd = work.s, work.torque, work.q, work.qd
    n, room, length, lost = topology.shape[0] - 1, ground.room, ground.length, ground.lost
    joints, base = 0.0, 0.0
    for j in range(n):
        q[j], qd[j] = state[7 + j], state[13 + n + j]
        rate = abs(qd[j])
        joints = max(joints, rate * length if topology[j + 1, T_KIND] == REVOLUTE else rate)
    for k in range(6):
        rate = abs(state[7 + n + k])
        base = max(base, rate if k < 3 else rate * length)
    configure(topology, constant, state[3:7], gravity, q, s)
    outward(topology, state[7 + n : 13 + n], qd, s)
    rows, offset, reaction, active = ground.rows, ground.offset, ground.reaction, ground.active
    slip(ground, s, qd, offset)
    for r in range(rows.shape[0]):  # what was let go and comes back hits the ground
        if offset[r] < 0.0:
            active[r] = 1.0
    for _ in range(rows.shape[0] + 1):
        stop_slip(topology, constant, ground, imposed, qd, s, torque)
        if not let_go(rows, reaction, active):
            break
    add_change(state, s, imposed, ground.change)
    # an impulse does work by the mean of the velocities before and after it, which are 0 after
    for r in range(rows.shape[0]):
        if active[r] > 0.0:
            lost[0] -= 0.5 * reaction[r] * offset[r]
    for j in range(n):
        if imposed[j]:
            lost[1] += torque[j] * qd[j]
    last = room.shape[0] - 1
    if not room[last, WORST] <= AGREED * max(joints, base) + 1e-14:
        return AGAINST
    if room[0, R_COUNT] == 6.0 and room[last, MIN_PART] < MIN_SINGULAR_VALUE and base > MAX_SPEED_RATIO * joints + 1e-9:
        return SINGULAR
    return HELD


# A step by any method of rtmms.mechanism.methods.


MOTION = Layout(
    "Motion",
    state("vector", "13 + 2 * n"), state("history", 5, "13 + 2 * n"), state("counts", 1, dtype=INTEGER),
    state("spent", "spent", unit="J"), scratch("rates", "stages + 1", "12 + 2 * n"),
    scratch("states", 3, "13 + 2 * n"),
)  # fmt: skip
"""State and rates of a tree.

`vector` is the state. `history` has the rates at the last four steps, newest first, then the predicted one. `counts` is
the number of steps since the history was empty. `spent` has the work of joints, tendons and spinning rotors, and more
numbers for a tree that is audited (rtmms.mechanism.audit) or has tendons. `rates` has the rates of the stages and,
last, the mean rate that leads to a stage. `states` is scratch.
"""
BAD_COMMAND = -1
SOUND = 0
NOT_FINITE = 1
CONTRADICTED = 2
THROWN = 3
PREDICTOR, AHEAD, CORRECTOR, BACK = ADAMS


@kernel
def one_step(system: Any, state: Any, t: float, h: float, spent: Any, k: Any, y: Any) -> None:
    """Take a step of the tableau, in place.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    state : (13 + 2 n,) array
        State vector.
    t : float
        Time at the start, s.
    h : float
        Length of the step, s.
    spent : (k,) array
        Sums of work, J.
    k : (stages + 1, 12 + 2 n) array
        Rates of the stages; the last row is scratch.
    y : (13 + 2 n,) array
        Scratch.
    """
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
    """Add factor times a rate to a total, element by element, for vector instructions.

    Parameters
    ----------
    total : (m,) array
        Sum; changed.
    factor : float
        Factor.
    rate : (m,) array
        Rate.
    """
    for m in range(total.shape[0]):
        total[m] += factor * rate[m]


@kernel(merged=True)
def extrapolated(system: Any, state: Any, t: float, h: float, spent: Any, k: Any, y: Any) -> None:
    """Take a step in each number of parts and mix the results, and the work; with one number of parts it is `one_step`.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    state : (13 + 2 n,) array
        State vector.
    t : float
        Time at the start, s.
    h : float
        Length of the step, s.
    spent : (k,) array
        Sums of work, J.
    k : (stages + 1, 12 + 2 n) array
        Rates of the stages.
    y : (3, 13 + 2 n) array
        Scratch.
    """
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
    """Predict, evaluate and correct by ADAMS; the tableau takes the first steps.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    t : float
        Time at the start, s.
    h : float
        Length of the step, s.
    k : (stages + 1, 12 + 2 n) array
        Rates of the stages.
    y : (3, 13 + 2 n) array
        Scratch.
    """
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
    """Normalise the quaternion, write imposed joints, and project the velocity onto the contacts, at a step's end.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    ground : Record or None
        tree.ground; an argument so that the compiler specialises on None.
    state : (13 + 2 n,) array
        State vector.
    t : float
        Time, s.

    Returns
    -------
    int
        SOUND; NOT_FINITE where the state is not finite; CONTRADICTED where imposed joints contradict the contacts;
        THROWN where the contacts are nearly singular.
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
    """Take steps from the time hold.start.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    h : float
        Length of a step, s.
    substeps : int
        Number of steps.

    Returns
    -------
    int
        Status of `finish`.
    """
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
    """Return whether all values are finite.

    Parameters
    ----------
    values : (k,) array
        Values to check.

    Returns
    -------
    bool
        False for NaN or infinity.
    """
    sound = True
    for k in range(values.shape[0]):
        sound = sound and np.isfinite(values[k])
    return sound


@kernel(fused=False)
def saturate(values: Any, limits: Any) -> None:
    """Clamp values to limits, in place.

    Parameters
    ----------
    values : (k,) array
        Values; changed.
    limits : (k, 2) array
        Lower and upper limit of each.
    """
    for k in range(values.shape[0]):
        values[k] = min(max(values[k], limits[k, 0]), limits[k, 1])


@kernel(merged=True)
def take_step(system: Any) -> int:
    """Advance a plant that is a tree by dt.

    The command is checked, clamped and distributed. The tree advances, then filters and motors. The state before the
    step is in `last`.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.

    Returns
    -------
    int
        SOUND, the status of `advance`, or BAD_COMMAND, with which nothing has happened.
    """
    command, hold, pushes = system.command, system.hold, system.pushes
    values, memory, last, dt, substeps = command.values, system.memory, system.last, system.dt, system.substeps
    if not finite(values):
        return BAD_COMMAND
    saturate(values, command.limits)
    hold_commands(command, values, hold.torque, hold.target, hold.slew, hold.goal)
    for k in range(memory.shape[0]):
        last[k] = memory[k]
    for k in range(values.shape[0]):
        pushes.command[k] = values[k]
    status = advance(system, dt / substeps, substeps)
    if status == SOUND:
        finish_servo(hold, hold.coast, dt)
        finish_motors(pushes, dt)
        finish_tendons(system.tendons, pushes.command, dt)
        finish_floor(system.floor, system.tree, system.work, system.motion.vector)
    return status
