"""Take one step of body and fins, with its joints, its entry points for Python, and its compilation ahead.

Joint angles and rates through the stages of a step, on all lanes of both fins, are

- explicit: q_i = q + h a v_{i-1}, v_i = v + h a k_{i-1}, q+ = q + h sum b_i v_i
- linearly implicit: q_i = q + h a (v_{i-1} + g k_{i-1}) with g = gamma h, and so in q+: two stages of equal weight

The linearly implicit method is ROS2 of Verwer, with accelerations a_1 = k_1, a_2 = k_2 + 2 k_1 in place of its
increments. M is the mass matrix, G = g C + g^2 K, g = gamma dt, K and C are the slopes of elasticity, damping and drag:

    (M + G) a_1 = Q(q, v) - g K v
    q_2 = q + dt (v + g a_1), v_2 = v + dt a_1
    M a_2 + G (a_2 - 2 a_1) = Q(q_2, v_2) - g K (v_2 - 2 (v + g a_1)), the last bracket being -v_2 + 2 (dt - g) a_1
    v+ = v + dt/2 (a_1 + a_2)
    q+ = q + dt/2 (v + v_2 + g (a_2 - a_1))

It is a W-method: second order whatever approximates the slopes, so K and C may omit terms that are small or costly.

The body moves on SE(3), in canonical coordinates xi about its pose at the start of the step. Every stage has its own
time, supports and water. The state changes only at the end, once all is known to be sound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types

from rtmms.base.jit import Array, kernel
from rtmms.base.memory import Record
from rtmms.dynamics.recursion import exponential_rate, move_pose
from rtmms.robots.manta.body import BODY, body_force
from rtmms.robots.manta.coupling import (
    add_to_body,
    base_acceleration,
    fin_on_body,
    fin_on_support,
    iterated_acceleration,
    monolithic_acceleration,
    move_supports,
    put_water,
    sequential_acceleration,
    stage,
)
from rtmms.robots.manta.current import take_samples
from rtmms.robots.manta.fin_chains import accelerate_block, collect_sums, condense_block
from rtmms.robots.manta.fin_layout import LANES, QD, QDD, SUM_Q, SUM_QD, Chains, Q
from rtmms.robots.manta.layout import (
    ACCELERATION,
    BAD_COMMAND,
    BODY_EULER,
    FINNED,
    ITERATIONS,
    MANTA,
    MANY,
    NORMALS,
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
    VARYING,
    W_ACC,
    W_COMMAND,
    W_FORCE,
    W_MATRIX,
    W_MIDDLE,
    W_POSE,
    W_RODS,
    W_ROTATION,
    W_SUPPORT,
    W_SUPPORT_END,
    W_TWIST,
    W_TWIST_FIN,
    W_TWIST_SUM,
    W_WATER,
    W_XI,
    W_XI_RATE,
    W_XI_SUM,
    manta_at,
)
from rtmms.robots.manta.methods import CURVED, EVEN, GAMMAS, HALVES, LEADS, NODES, OVER, RECALLS, STAGES, WEIGHTS
from rtmms.robots.manta.outputs import account
from rtmms.robots.manta.rods import (
    ROD_SIZE,
    SERVO,
    SUPPORT_SIZE,
    advance_rods,
    limit_commands,
    servo_acceleration,
    stop_rods,
)

HALF_TURN = 3.14159
RATE_LIMIT = 1e6


@kernel(fused=False)
def start_joints(memory: Any) -> None:
    """Set the first stage and the sums to the start of the step.

    Parameters
    ----------
    memory : Record
        Record of `layout.MANTA`.
    """
    joints, links = memory.joints, memory.rows
    for n in range(joints.shape[0]):
        for i in range(LANES):
            q, v = joints[n, i], joints[n, LANES + i]
            links[n, Q * LANES + i], links[n, QD * LANES + i] = q, v
            links[n, SUM_Q * LANES + i], links[n, SUM_QD * LANES + i] = q, v


@kernel(fused=False)
def next_joints(finned: Any, memory: Any, i: int) -> None:
    """Compute stage i > 0 from the rate QD and the acceleration QDD of the stage before, and add these to the sums.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    i : int
        Index of the stage.
    """
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
    """Add the last stage to the sums.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    i : int
        Index of the stage.

    Returns
    -------
    bool
        False where a joint has bent by half a turn, or is not finite.
    """
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
    """Copy the sums to the state.

    Parameters
    ----------
    memory : Record
        Record of `layout.MANTA`.
    """
    joints, links = memory.joints, memory.rows
    for n in range(joints.shape[0]):
        for i in range(LANES):
            joints[n, i], joints[n, LANES + i] = links[n, SUM_Q * LANES + i], links[n, SUM_QD * LANES + i]


TWIST_LIMIT = 1e4


@kernel(fused=False, merged=True)
def step(memory: Any) -> int:
    """Take one step of dt with memory.command; a failed step leaves memory.state unchanged.

    Parameters
    ----------
    memory : Record
        Record of `layout.MANTA`; its command is left.front, left.back, right.front, right.back.

    Returns
    -------
    int
        OK, BAD_COMMAND, SINGULAR, NOT_FINITE or NOT_CONVERGED.
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
        guess, g = lagged if sequential else acc, weigh_stage(finned, i)
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
    """Move rods and supports over the step, and set the first stage's joints and the sums.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    command : (4,) array
        rad.

    Returns
    -------
    int
        OK, BAD_COMMAND or SINGULAR.
    """
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
    """Write W_RODS and W_MIDDLE: the rods' motion at the end and the middle of the step.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    command : (4,) array
        rad.
    """
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
def weigh_stage(finned: Any, i: int) -> tuple[float, float, float, float]:
    """Return (g, recall, rate_q, rate_a) of a stage for the chains, see `fin_chains`.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    i : int
        Index of the stage.

    Returns
    -------
    tuple[float, float, float, float]
        s, 1, 1, s.
    """
    method = finned.integrator
    g, recall = GAMMAS[method] * finned.dt, RECALLS[method, i]
    return g, recall, 1.0 - recall, recall * (finned.dt * LEADS[method, i] - g)


@kernel(fused=False)
def place_body(finned: Any, memory: Any, i: int) -> None:
    """Write twist and pose of the body at a stage: the true ones, and the fins' version.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    i : int
        Index of the stage.
    """
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
    """Add a stage's rates of twist and pose to their sums.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    i : int
        Index of the stage.
    """
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
    """Write W_TWIST and W_XI: the twist at the end, and the displacement of the pose.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.

    Returns
    -------
    bool
        False where they left their range.
    """
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
    """Change the state: all is sound.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    body : Record
        Record of `body.BODY`.
    memory : Record
        Record of `layout.MANTA`.
    """
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


@kernel
def settle_rods(finned: Any, s: Array) -> None:
    """Compute the dependent numbers of the rods' motion in a state.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    s : array
        State of the manta; changed.
    """
    servo, dt = finned.servo, finned.dt
    for r in range(4):
        at = RODS + r * ROD_SIZE
        if finned.actuation == SERVO:
            s[at + 2] = servo_acceleration(s[at], s[at + 1], s[at + 3], servo[0], servo[1], servo[4], servo[5])
        else:
            last, before = s[at + 3], s[at + 4]
            third = 6.0 * s[at] - 4.0 * before - last  # the spline's oldest control point
            s[at + 1], s[at + 2] = (last - third) / (2.0 * dt), (last - 2.0 * before + third) / (dt * dt)


@kernel
def settle(manta: Any) -> int:
    """Compute the dependent elements of manta.state (rtmms.robots.manta.chart): rods, supports, lanes without a chain.

    Parameters
    ----------
    manta : Record
        Record of `layout.MANTA`.

    Returns
    -------
    int
        SINGULAR where the supports are singular, else OK.
    """
    finned, s, joints = manta.finned, manta.state, manta.joints
    settle_rods(finned, s)
    links, blocks = finned.links, finned.blocks
    last_chain_count = (
        finned.chains - (blocks - 1) * LANES
    )  # chains of a fin's last block; its other lanes move as the last of them
    for f in range(2):
        for j in range(links):
            row = ((f + 1) * blocks - 1) * links + j
            for lane in range(last_chain_count, LANES):
                joints[row, lane], joints[row, LANES + lane] = (
                    joints[row, last_chain_count - 1],
                    joints[row, LANES + last_chain_count - 1],
                )
    return OK if move_supports(finned, s, RODS, ROD_SIZE, s, SUPPORTS) else SINGULAR


@kernel(fused=False)
def enter_step(address: int, many: int | None, drift: int | None, normals: int | None) -> int:
    """Take one step of the manta whose record is at `address`.

    Parameters
    ----------
    address : int
        Address of the manta's record.
    many, drift, normals : int or None
        None where the manta lacks the part, else any number.

    Returns
    -------
    int
        Status of `step`.
    """
    return step(manta_at(address, (many, drift, normals)))


@kernel
def enter_account(address: int, many: int | None, drift: int | None, normals: int | None, g: float) -> int:
    """Compute all outputs of the state.

    Parameters
    ----------
    address : int
        Address of the manta's record.
    many, drift, normals : int or None
        None where the manta lacks the part, else any number.
    g : float
        See `account`, s.

    Returns
    -------
    int
        Status of their stage.
    """
    return account(manta_at(address, (many, drift, normals)), g)


@kernel
def enter_settle(address: int, many: int | None, drift: int | None, normals: int | None) -> int:
    """Compute the elements of the state that depend on its coordinates.

    Parameters
    ----------
    address : int
        Address of the manta's record.
    many, drift, normals : int or None
        None where the manta lacks the part, else any number.

    Returns
    -------
    int
        Status of `settle`.
    """
    return settle(manta_at(address, (many, drift, normals)))


def arguments(manta: Record) -> tuple[int, int | None, int | None, int | None]:
    """Return the arguments of the entry points.

    Parameters
    ----------
    manta : Record
        Record of `layout.MANTA`.

    Returns
    -------
    (int, int or None, int or None, int or None)
        Address, many, drift, normals.
    """
    absent = (manta.many is None, manta.drift is None, manta.normals is None)
    many, drift, normals = (None if lacks else 1 for lacks in absent)
    return manta.address, many, drift, normals


def jobs(many: bool, drift: bool, normals: bool) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield kernels with the types of their arguments, for a second process that compiles beside the first.

    They are in order from the end of the first process's work to its middle. An entry that no longer fits costs time
    alone: the plant compiles what is not in the cache.

    Parameters
    ----------
    many : bool
        Whether chains have other than three links.
    drift : bool
        Whether the current varies.
    normals : bool
        Whether normals are those of the neighbours.

    Yields
    ------
    (kernel, tuple of types)
        The kernel, and the types of its arguments.
    """
    i, f = types.int64, types.float64
    line, cube, four = (types.Array(f, n, "C") for n in (1, 3, 4))
    links = i if many else types.none
    water, across = four if drift else types.none, four if normals else types.none
    there = ((many, MANY), (drift, VARYING), (normals, NORMALS))
    memory = MANTA.type(*(name for is_there, names in there if not is_there for name in names))
    finned, body, at = FINNED.type(), BODY.type(), types.literal
    chains = types.NamedTuple((cube, cube, water, across, line, line, line), Chains)
    yield condense_block, (links, i, i, chains, i, types.UniTuple(f, 4))
    yield accelerate_block, (links, i, i, chains, i)
    yield add_to_body, (i, finned, line, i, line)
    yield monolithic_acceleration, (line, at(W_MATRIX), at(W_FORCE), line)
    yield iterated_acceleration, (finned, line, line)
    yield sequential_acceleration, (finned, line, line)
    yield fin_on_support, (i, line)
    yield fin_on_body, (i, finned, line, i, line)
    yield body_force, (body, line, at(W_ROTATION), at(W_TWIST), at(W_WATER), at(W_FORCE))
    yield collect_sums, (line, line, i, i)
    yield base_acceleration, (i, finned, line, i, line, line)
    yield begin, (finned, memory, line)
    yield next_joints, (finned, memory, i)
    yield place_body, (finned, memory, i)
    yield sum_body, (finned, memory, i)
    yield last_joints, (finned, memory, i)
    yield end_body, (finned, memory)
    yield finish, (finned, body, memory)
    yield start_joints, (memory,)


def compile_ahead(many: bool, drift: bool, normals: bool) -> None:
    """Compile the kernels of `jobs` into the cache.

    Parameters
    ----------
    many, drift, normals : bool
        See `jobs`.
    """
    for item, arguments in jobs(many, drift, normals):
        item.get_call_template(arguments, {})
