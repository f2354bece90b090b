"""Compute A and B of one step of a manta by its structure, from generated derivatives.

A chain of a fin depends on its joints and on its support, and the support on the sum of the chains' wrenches. So the
derivatives of a chain are by its joints and by the motion of its support at both stages (chain_jacobian.py). The
derivatives of a support are by rods, twist, acceleration and water (support_jacobian.py). The derivatives of the body
are by the wrench of the fins at both stages (body_jacobian.py). With the sequential coupling the acceleration that the
fins use is a coordinate of the state. With the monolithic one it is that of the body itself: all chains then depend on
one another through twelve numbers, the body's accelerations at both stages.
"""

from __future__ import annotations

from typing import Any

from rtmms.analysis.block_matrices import ROWS as TILE
from rtmms.analysis.block_matrices import tile
from rtmms.analysis.run_batch import copy, rotation
from rtmms.base.jit import Array, kernel
from rtmms.dynamics.recursion import move_pose
from rtmms.robots.manta.body_jacobian import (
    current_in_body,
    lead,
    own_effect,
    slopes_by_wrench,
    slopes_of_attitude,
    slopes_of_force,
    slopes_of_pose,
)
from rtmms.robots.manta.chain_jacobian import GROUP, compose, first_slopes, second_slopes
from rtmms.robots.manta.coupling import put_water, stage
from rtmms.robots.manta.fin_layout import AN, BASE_SIZE, LANES, QDD
from rtmms.robots.manta.jacobian_layout import (
    ACCEL_AT,
    ACCEL_LATER_AT,
    AFTER_LATER,
    AFTERS,
    ATTITUDE_AT,
    COMMAND_AT,
    FORCE_WAYS,
    INPUTS,
    MOTIONS,
    ROD_WORDS,
    RODS_AT,
    STAGES,
    TWIST_AT,
    WRENCHES,
)
from rtmms.robots.manta.jacobian_layout import RODS as ROD_COORDINATES
from rtmms.robots.manta.layout import (
    ACCELERATION,
    MONOLITHIC,
    NOT_FINITE,
    OK,
    POSITION,
    RODS,
    SEQUENTIAL,
    SUPPORTS,
    TWIST,
    W_ACC,
    W_BASE,
    W_ON_SUPPORT,
    W_POSE,
    W_RODS,
    W_SUPPORT_END,
    W_WATER,
)
from rtmms.robots.manta.methods import LEADS
from rtmms.robots.manta.rods import ROD_SIZE, ROLL_MEAN
from rtmms.robots.manta.step import (
    begin,
    end_body,
    last_joints,
    move_rods,
    next_joints,
    place_body,
    settle_rods,
    sum_body,
    weigh_stage,
)
from rtmms.robots.manta.support_jacobian import (
    ACCEL,
    MOTION_ROWS,
    SIDE,
    WATER,
    WRENCH,
    rolling_slopes,
    upright_slopes,
)
from rtmms.robots.manta.support_jacobian import TWIST as TWIST_ROW

FIN_RODS = 2 * ROD_WORDS


@kernel
def take_step(finned: Any, body: Any, memory: Any, many: int | None, room: Any) -> int:
    """Take a step up to the change of the state, and store intermediate results: bases, on_support, accel, recalled.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    body : Record
        Record of `body.BODY`.
    memory : Record
        Record of `layout.MANTA`.
    many : int or None
        Number of links of a chain, or None for three: the compiler specialises on None.
    room : Record
        Record of `jacobian_layout.TRACED`.

    Returns
    -------
    int
        Status as of a step.
    """
    status = begin(finned, memory, memory.command)
    if status != OK:
        return int(status)
    state, work, links = memory.state, memory.work, finned.links
    acc, lagged = work[W_ACC : W_ACC + 6], state[ACCELERATION : ACCELERATION + 6]
    for i in range(STAGES):
        if i > 0:
            for part in range(2 * finned.blocks):
                for j in range(links):
                    row, stored = memory.rows[part * links + j], room.recalled[part]
                    for lane in range(LANES):
                        stored[j, lane], stored[links + j, lane] = row[QDD * LANES + lane], row[AN * LANES + lane]
            next_joints(finned, memory, i)
        place_body(finned, memory, i)
        supports, at = (state, SUPPORTS) if i == 0 else (work, W_SUPPORT_END)
        put_water(finned, work, None)
        guess = lagged if finned.coupling == SEQUENTIAL else acc
        status, _, _ = stage(
            finned.coupling, finned, body, memory, many, weigh_stage(finned, i), supports, at, guess, acc
        )
        if status != OK:
            return int(status)
        for f in range(2):
            for k in range(BASE_SIZE):
                room.bases[i, f, k] = work[W_BASE + BASE_SIZE * f + k]
            for k in range(6):
                room.on_support[i, f, k] = work[W_ON_SUPPORT + 6 * f + k]
        for k in range(6):
            room.accel[i, k] = acc[k]
        sum_body(finned, memory, i)
    sound = last_joints(finned, memory, STAGES - 1)
    return OK if end_body(finned, memory) and sound else NOT_FINITE


@kernel
def slopes_of_rods(finned: Any, memory: Any, room: Any) -> None:
    """Write rods_by (8, STAGES, fin, 6) and the rods' columns of the head, for both fins at once.

    rods_by has the angles, rates and accelerations of a fin's rods by their coordinates and commands.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    state, work, command, body = memory.state, memory.work, memory.command, room.head.shape[1] - ROD_COORDINATES
    for d in range(FIN_RODS + 2):
        is_command = d >= FIN_RODS
        m = body + d if not is_command else room.head.shape[1] + d - FIN_RODS
        other, by = m + 2 if is_command else m + FIN_RODS, room.by[m]
        for side in range(2):
            e = by if side == 0 else -by
            if is_command:
                command[d - FIN_RODS] = room.commands[d - FIN_RODS] + e
                command[d - FIN_RODS + 2] = room.commands[d - FIN_RODS + 2] + e
            else:
                state[room.places[m]] += e
                state[room.places[other]] += e
                settle_rods(finned, state)
            move_rods(finned, memory, command)
            for f in range(2):
                for q in range(2):
                    at = (2 * f + q) * ROD_SIZE
                    for k in range(3):
                        room.rods[side, 0, f, 2 * k + q] = state[RODS + at + k]
                        room.rods[side, 1, f, 2 * k + q] = work[W_RODS + at + k]
            for k in range(ROD_COORDINATES):
                room.rods_after[side, k] = work[W_RODS + room.places[body + k] - RODS]
            if is_command:
                for k in range(INPUTS):
                    command[k] = room.commands[k]
            else:
                for k in range(RODS, RODS + 4 * ROD_SIZE):
                    state[k] = room.origin[k]
        w = 0.5 / by
        for f in range(2):
            for k in range(6):
                for i in range(STAGES):
                    room.rods_by[d, i, f, k] = w * (room.rods[0, i, f, k] - room.rods[1, i, f, k])
            column = room.head[m if f == 0 else other]
            for k in range(FIN_RODS * f, FIN_RODS * (f + 1)):
                column[body + k] = w * (room.rods_after[0, k] - room.rods_after[1, k])


@kernel
def slopes_of_supports(finned: Any, memory: Any, room: Any) -> None:
    """Write motion and on_body of room (support_jacobian.py), and water_by (STAGES, ., 3).

    water_by has the current in body axes by attitude and twist.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    state, work, into, c = memory.state, memory.work, room.into, lead(finned)
    for i in range(STAGES):
        for k in range(7):
            work[W_POSE + k] = state[POSITION + k]
        if i > 0:
            move_pose(state, POSITION, state, TWIST, c, work, W_POSE)
        current_in_body(finned, work)
        x, y, z = work[W_WATER], work[W_WATER + 1], work[W_WATER + 2]
        h = ((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0))  # (R exp theta^)^T s = u + u x theta
        for m in range(6):
            for k in range(3):
                t = 0.0
                if i == 0:
                    t = h[k][m] if m < 3 else 0.0
                else:
                    for n in range(3):
                        t += h[k][n] * room.attitude_by[m, n]
                room.water_by[i, m if m < 3 else 3 + m, k] = t
        for f in range(2):
            lane = 2 * i + f
            rods, at = (state, RODS) if i == 0 else (work, W_RODS)
            for q in range(2):
                for k in range(3):
                    into[2 * k + q, lane] = rods[at + (2 * f + q) * ROD_SIZE + k]
            for k in range(6):
                a = state[ACCELERATION + k] if finned.coupling == SEQUENTIAL else room.accel[i, k]
                b = state[ACCELERATION + k] if finned.coupling == SEQUENTIAL else room.accel[0, k]
                into[TWIST_ROW + k, lane] = state[TWIST + k] + (c * b if i > 0 else 0.0)
                into[ACCEL + k, lane] = a
                into[WRENCH + k, lane] = room.on_support[i, f, k]
            for k in range(3):
                into[WATER + k, lane] = work[W_WATER + k]
            into[SIDE, lane] = 1.0 - 2.0 * f
    lengths = room.lengths
    lengths[0], lengths[1], lengths[2] = finned.support_length, finned.r_front, finned.r_back
    for k in range(3):
        lengths[3 + k] = finned.root[k]
    a, b, d, e = into.ctypes.data, lengths.ctypes.data, room.motion.ctypes.data, room.on_body.ctypes.data
    if finned.roll == ROLL_MEAN:
        rolling_slopes(a, b, d, e)
    else:
        upright_slopes(a, b, d, e)


@kernel
def slopes_of_motion(finned: Any, room: Any, still: bool) -> None:
    """Write moved and turned: the supports' motion by each way, and the wrench on the body by their rotation.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    still : bool
        Whether there is no uniform current.
    """
    motion, c, monolithic = room.motion, lead(finned), finned.coupling == MONOLITHIC
    for f in range(2):
        for i in range(STAGES):
            lane = 2 * i + f
            for r in range(BASE_SIZE):
                out = room.moved[f, BASE_SIZE * i + r]
                for k in range(6):
                    twist, accel = motion[TWIST_ROW + k, r, lane], motion[ACCEL + k, r, lane]
                    out[TWIST_AT + k] = twist
                    if monolithic:
                        out[ACCEL_AT + k] = accel if i == 0 else c * twist
                        out[ACCEL_LATER_AT + k] = accel if i > 0 else 0.0
                    else:
                        out[ACCEL_AT + k] = accel if i == 0 else accel + c * twist
                if not still:
                    for m in range(FORCE_WAYS):
                        t = 0.0
                        for n in range(3):
                            t += motion[WATER + n, r, lane] * room.water_by[i, m, n]
                        if m < 3:
                            out[ATTITUDE_AT + m] = t
                        else:
                            out[TWIST_AT + m - 3] += t
            for r in range(MOTION_ROWS):
                out = room.moved[f, BASE_SIZE * i + r] if r < BASE_SIZE else room.turned[f, 6 * i + r - BASE_SIZE]
                for d in range(FIN_RODS + 2):
                    t = 0.0
                    for k in range(6):
                        t += motion[k, r, lane] * room.rods_by[d, i, f, k]
                    out[(RODS_AT if d < FIN_RODS else COMMAND_AT - FIN_RODS) + d] = t


@kernel
def share_motion(room: Any) -> None:
    """Write shares: `moved` in the order of tiles, without rows that are zero there.

    Parameters
    ----------
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    for f in range(2):
        for t in range(room.moved.shape[2] // TILE):
            shares, rows, count = room.shares[f, t], room.rows_of[f, t], 0
            for k in range(MOTIONS):
                row, there = room.moved[f, k], False
                for i in range(TILE):
                    value = row[TILE * t + i]
                    shares[TILE * count + i] = value
                    there = there or value != 0.0
                rows[count] = k
                count += 1 if there else 0
            room.counts[f, t] = count


@kernel
def slopes_of_chains(finned: Any, memory: Any, links: Any, room: Any) -> None:
    """Write chain_blocks, pushed, below, and by_base: the wrench on the body at each stage by the motion of a support.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    links : tuple
        One member for each link of a chain.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    param, fins, m, blocks, chains = memory.param, memory.fins, finned.links, finned.blocks, finned.chains
    width, scalars, method, groups = 2 * m, room.scalars, finned.integrator, LANES // GROUP
    scalars[0], scalars[1], scalars[2], scalars[3] = weigh_stage(finned, STAGES - 1)
    scalars[4], scalars[5], scalars[6] = scalars[0], finned.dt * LEADS[method, STAGES - 1], finned.dt
    with_, first, second = scalars.ctypes.data, room.first.ctypes.data, room.second.ctypes.data
    ends, summed = room.ends.ctypes.data, room.summed.ctypes.data
    ways, panel = room.moved.shape[2] // TILE, ends + 8 * width * width * GROUP
    count = room.below.shape[1]
    for f in range(2):
        room.summed[:] = 0.0
        item, other = room.bases[0, f].ctypes.data, room.bases[1, f].ctypes.data
        for b in range(blocks):
            part = f * blocks + b
            for g in range(groups):
                lanes = min(GROUP, chains - b * LANES - g * GROUP)
                if lanes <= 0:
                    continue
                shift = 8 * GROUP * g
                p, r = param[f, b].ctypes.data + shift, fins[f, b].ctypes.data + shift
                joints, back = memory.joints[part * m].ctypes.data + shift, room.recalled[part].ctypes.data + shift
                first_slopes(links, p, joints, back, item, with_, first)
                second_slopes(links, p, r, back, other, with_, second)
                compose(links, first, second, with_ + 32, ends, room.pushed[part * groups + g].ctypes.data, summed)
                lane = b * LANES + g * GROUP
                for c in range(width):
                    for e in range(width):
                        chain_block = room.chain_blocks[e, c]
                        for i in range(lanes):
                            chain_block[f * chains + lane + i] = room.ends[c, e, i]
                for t in range(ways):
                    a, rows, to = (
                        room.shares[f, t].ctypes.data, room.rows_of[f, t].ctypes.data,
                        room.targets[f, TILE * t : TILE * t + TILE],
                    )  # fmt: skip
                    for e in range(width):
                        at = ((e // m * 2 + f) * m + e % m) * chains + lane
                        _put_tile(
                            a, rows, room.counts[f, t], panel + 8 * e * GROUP, width * GROUP, to, room.every,
                            room.below, at, count, lanes, room.tile,
                        )  # fmt: skip
        for i in range(STAGES):
            lane = 2 * i + f
            for k in range(MOTIONS):
                out = room.by_base[f, i, k]
                for r in range(6):
                    out[r] = 0.0
                for n in range(6):
                    s = room.summed[k, 6 * i + n]
                    wrench = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
                    for r in range(6):
                        out[r] += wrench * room.on_body[n, r, lane]


@kernel
def _put_tile(
    shares: int, rows: int, used: int, panel: int, stride: int, to: Array, every: Array, out: Array, at: int,
    out_stride: int, lanes: int, whole: Array,
) -> None:  # fmt: skip
    """Write a tile of which `lanes` columns are used, to columns `at` on of rows `to` of out.

    `whole` (TILE, GROUP) is scratch; `every` is 0, 1, 2 and so on.
    """
    if lanes == GROUP:
        tile(shares, rows, used, panel, stride, to.ctypes.data, out.ctypes.data + 8 * at, out_stride)
        return
    tile(shares, rows, used, panel, stride, every.ctypes.data, whole.ctypes.data, GROUP)
    for r in range(TILE):
        row = out[to[r]]
        for i in range(lanes):
            row[at + i] = whole[r, i]


@kernel
def slopes_of_wrench(room: Any) -> None:
    """Write wrench (fin, WRENCHES, ways): the wrench of each fin on the body at both stages by every way.

    Parameters
    ----------
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    ways = room.moved.shape[2]
    for f in range(2):
        for i in range(STAGES):
            for at in range(0, ways, GROUP):
                _put_tile(
                    room.by_base[f, i].ctypes.data, room.every.ctypes.data, MOTIONS,
                    room.moved[f].ctypes.data + 8 * at, ways, room.every[6 * i : 6 * i + 6], room.every, room.wrench[f],
                    at, ways, min(GROUP, ways - at), room.tile,
                )  # fmt: skip
        for n in range(WRENCHES):
            for d in range(RODS_AT, COMMAND_AT + 2):
                room.wrench[f, n, d] += room.turned[f, n, d]


@kernel
def put_right(finned: Any, room: Any) -> None:
    """Write right: the effect of the wrenches of each chain on the body, by its joints.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    m, blocks, chains, groups = finned.links, finned.blocks, finned.chains, LANES // GROUP
    tiles, count, every = room.right.shape[0] // TILE, room.right.shape[1], room.every
    for f in range(2):
        for i in range(STAGES):
            for n in range(6):
                for t in range(tiles):
                    share = room.by_fin[f, t, 6 * i + n]
                    for r in range(TILE):
                        share[r] = 0.0
                    for k in range(6):
                        by = room.on_body[n, k, 2 * i + f]
                        for r in range(TILE):
                            share[r] += by * room.applied[6 * i + k, TILE * t + r]
        for b in range(blocks):
            for g in range(groups):
                lane = b * LANES + g * GROUP
                lanes = min(GROUP, chains - lane)
                if lanes <= 0:
                    continue
                for c in range(2 * m):
                    at = (c // m * 2 + f) * m * chains + c % m * chains + lane
                    panel = room.pushed[(f * blocks + b) * groups + g, c].ctypes.data
                    for t in range(tiles):
                        _put_tile(
                            room.by_fin[f, t].ctypes.data, every.ctypes.data, WRENCHES, panel, GROUP,
                            every[TILE * t : TILE * t + TILE], every, room.right, at, count, lanes, room.tile,
                        )  # fmt: skip


@kernel
def _put_column(finned: Any, room: Any, m: int, column: int, push: Array) -> None:
    """Write the body's rows of a column of the head, from the wrench (WRENCHES,) and coordinate m itself; -1: none."""
    head, after = room.head[column], room.after
    body = room.head.shape[1] - ROD_COORDINATES
    for r in range(AFTERS):
        after[r] = 0.0
    if m >= 0:
        own_effect(finned, m, room, push, after)
    for n in range(WRENCHES):
        for r in range(AFTERS):
            after[r] += push[n] * room.applied[n, r]
    for r in range(body):
        head[r] = after[r]
    projection = room.projection[column]
    for r in range(projection.shape[0]):
        projection[r] = after[AFTER_LATER + r]


@kernel
def put_head(finned: Any, room: Any) -> None:
    """Write the body's rows of head, and projection.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    room : Record
        Record of `jacobian_layout.TRACED`.
    """
    heads, push, wrench = room.head.shape[1], room.push, room.wrench
    body = heads - ROD_COORDINATES
    for m in range(body):
        at = ATTITUDE_AT + m - 3 if m < 6 else TWIST_AT + m - 6 if m < 12 else ACCEL_AT + m - 12
        for n in range(WRENCHES):
            push[n] = wrench[0, n, at] + wrench[1, n, at] if m >= 3 else 0.0
        _put_column(finned, room, m if m < 12 else -1, m, push)
    for f in range(2):
        for d in range(FIN_RODS + 2):
            is_command = d >= FIN_RODS
            at = COMMAND_AT + d - FIN_RODS if is_command else RODS_AT + d
            for n in range(WRENCHES):
                push[n] = wrench[f, n, at]
            column = heads + 2 * f + d - FIN_RODS if is_command else body + FIN_RODS * f + d
            _put_column(finned, room, -1, column, push)


@kernel
def traced_jacobian(memory: Any, many: int | None, links: Any, room: Any) -> int:
    """Compute the blocks of A and B in `room`, of the state room.origin under room.commands.

    Parameters
    ----------
    memory : Record
        Record of `layout.MANTA`.
    many : int or None
        Number of links of a chain, or None for three: the compiler specialises on None.
    links : tuple
        One member for each link of a chain.
    room : Record
        Record of `jacobian_layout.TRACED`.

    Returns
    -------
    int
        Status as of a step.
    """
    finned, body, state, c = memory.finned, memory.body, memory.state, memory.finned.current
    copy(room.origin, state)
    for k in range(INPUTS):
        memory.command[k] = room.commands[k]
    rotation(room.origin[POSITION + 3 : POSITION + 7], room.frames[0])
    rotation(room.reference[3:7], room.frames[1])
    status = take_step(finned, body, memory, many, room)
    if status != OK:
        return int(status)
    slopes_of_attitude(finned, memory, room)
    slopes_of_supports(finned, memory, room)
    slopes_of_force(finned, body, memory, room)
    slopes_of_pose(memory, room)
    slopes_of_rods(finned, memory, room)
    slopes_of_motion(finned, room, c[0] == 0.0 and c[1] == 0.0 and c[2] == 0.0)
    share_motion(room)
    slopes_of_chains(finned, memory, links, room)
    slopes_of_wrench(room)
    slopes_by_wrench(finned, memory, room)
    put_right(finned, room)
    put_head(finned, room)
    return OK
