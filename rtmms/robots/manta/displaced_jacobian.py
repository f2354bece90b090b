"""A and B of one step of a manta with the sequential coupling, by its structure, where chains have other numbers of
links than are traced (`traced.LINKS`).

In such a step no chain sees another, and none sees the body's new acceleration. So one coordinate of all chains of both
fins is displaced at once, and every chain keeps a wrench of its own; what moves the supports is displaced one by one,
but of both fins together where it is a rod's. What the wrenches do to the body is a matter of the body alone.
All by central differences, with steps as `rtmms.analysis.derivatives` takes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.analysis.fork_pool import coordinates_of, copy, move, rotation
from rtmms.base.jit import Array, kernel
from rtmms.dynamics.recursion import move_pose
from rtmms.robots.manta.body import body_force
from rtmms.robots.manta.body_jacobian import current_in_body
from rtmms.robots.manta.coupling import base_acceleration, base_velocity, fin_on_body, sequential_acceleration
from rtmms.robots.manta.fin_chains import collect_wrench, drive_block
from rtmms.robots.manta.fin_layout import (
    BASE_SIZE,
    CARRY_FIELDS,
    DRIVE_SUMS,
    LANES,
    SUM_Q,
    SUM_QD,
    Chains,
)
from rtmms.robots.manta.jacobian_layout import BODY, HEAD, INPUTS, ROD_WORDS, STAGES, WRENCHES
from rtmms.robots.manta.layout import (
    ACCELERATION,
    FINS,
    NOT_FINITE,
    OK,
    POSITION,
    RODS,
    SUPPORTS,
    W_ACC,
    W_BASE,
    W_CARRY,
    W_FORCE,
    W_ON_BODY,
    W_ON_SUPPORT,
    W_RODS,
    W_ROTATION,
    W_SUPPORT_END,
    W_TWIST,
    W_TWIST_SUM,
    W_WATER,
    W_XI,
    W_XI_RATE,
    W_XI_SUM,
)
from rtmms.robots.manta.rods import SUPPORT_SIZE
from rtmms.robots.manta.step import (
    begin,
    end_body,
    last_joints,
    next_joints,
    place_body,
    settle,
    start_joints,
    sum_body,
    way,
)

POSE, ATTITUDE = 6, 3
PUSH = 1e-6
"""m/s2, rad/s2: by so much the body's acceleration is displaced."""


@kernel
def support_motions(finned: Any, memory: Any, bases: Array) -> int:
    """Rods to the end of the step, and the motion of both supports at both stages, bases (STAGES 2 BASE_SIZE,)."""
    status = begin(finned, memory, memory.command)
    if status == OK:
        base_motions(finned, memory, bases)
    return int(status)


@kernel
def base_motions(finned: Any, memory: Any, bases: Array) -> None:
    """The same where the rods have been moved."""
    state, work = memory.state, memory.work
    lagged = state[ACCELERATION : ACCELERATION + 6]
    for i in range(STAGES):
        place_body(finned, memory, i)
        current_in_body(finned, work)
        ux, uy, uz = work[W_WATER], work[W_WATER + 1], work[W_WATER + 2]
        supports, at = (state, SUPPORTS) if i == 0 else (work, W_SUPPORT_END)
        for f in range(2):
            base_velocity(f, finned, supports, at + f * SUPPORT_SIZE, work, ux, uy, uz)
            base_acceleration(f, finned, supports, at + f * SUPPORT_SIZE, work, lagged)
        for k in range(2 * BASE_SIZE):
            bases[2 * BASE_SIZE * i + k] = work[W_BASE + k]
        for k in range(6):
            work[W_XI_RATE + k] = work[W_TWIST + k]


@kernel
def step_chains(finned: Any, memory: Any, many: int | None, bases: Array, sums: Array) -> int:
    """Both stages of all chains on supports that move so; angles and rates after are SUM_Q, SUM_QD of the scratch.

    sums   (STAGES, 2, blocks, 6 LANES) written: of each chain the wrench on the support
    """
    param, fins, work = memory.param, memory.fins, memory.work
    carry = work[W_CARRY : W_CARRY + CARRY_FIELDS * LANES]
    start_joints(memory)
    for i in range(STAGES):
        if i > 0:
            next_joints(finned, memory, i)
        implicit = way(finned, i)
        for f in range(2):
            for b in range(finned.blocks):
                own = sums[i, f, b]
                for k in range(DRIVE_SUMS * LANES):
                    own[k] = 0.0
                drive_block(
                    many, f, b, Chains(param, fins, None, None, bases, carry, own), BASE_SIZE * (2 * i + f), implicit
                )
    return OK if last_joints(finned, memory, STAGES - 1) else NOT_FINITE


@kernel
def fins_on_body(finned: Any, memory: Any, sums: Array, out: Array, on_support: Array) -> None:
    """The wrenches of the fins on the body at both stages, out (STAGES, 2, 6), of `step_chains`, and on supports."""
    work = memory.work
    for i in range(STAGES):
        supports, at = (memory.state, SUPPORTS) if i == 0 else (work, W_SUPPORT_END)
        for f in range(2):
            for k in range(6):
                out[i, f, k] = 0.0
            for b in range(finned.blocks):
                collect_wrench(sums[i, f, b], work, W_ON_SUPPORT + 6 * f)
                for k in range(6):
                    out[i, f, k] += work[W_ON_SUPPORT + 6 * f + k]
            for k in range(6):
                work[W_ON_SUPPORT + 6 * f + k] = out[i, f, k]
                on_support[i, f, k] = out[i, f, k]
            fin_on_body(f, finned, supports, at + f * SUPPORT_SIZE, work)
            for k in range(6):
                out[i, f, k] = work[W_ON_BODY + 6 * f + k]


@kernel
def step_body(finned: Any, body: Any, memory: Any, wrench: Array, room: Any, out: Array) -> None:
    """The body's coordinates after a step, out (BODY,), under wrenches (STAGES, 2, 6) of the fins."""
    state, work, after = memory.state, memory.work, room.after[0]
    for k in range(6):
        work[W_ACC + k], work[W_XI_SUM + k], work[W_TWIST_SUM + k] = 0.0, 0.0, 0.0
    for i in range(STAGES):
        place_body(finned, memory, i)
        current_in_body(finned, work)
        body_force(body, work, W_ROTATION, W_TWIST, W_WATER, W_FORCE)
        for f in range(2):
            for k in range(6):
                work[W_ON_BODY + 6 * f + k] = wrench[i, f, k]
        sequential_acceleration(finned, work, work[W_ACC : W_ACC + 6])
        sum_body(finned, memory, i)
    end_body(finned, memory)
    move_pose(state, POSITION, work, W_XI, 1.0, after, np.int64(0))
    for k in range(6):
        after[7 + k], after[13 + k] = work[W_TWIST + k], work[W_ACC + k]
    coordinates_of(after, room.places_after, np.int64(0), room.reference, room.frames[1], out)


@kernel
def slopes_of_body(finned: Any, body: Any, memory: Any, room: Any) -> None:
    """by_body: the body's coordinates after by its own before (12), then by what the left fin pushes at each stage; the
    right one pushes as well."""
    state, origin, pushed = memory.state, room.origin, room.wrench[2]
    for m in range(12 + WRENCHES):
        by = room.by[m] if m < 12 else PUSH * finned.body_matrix[7 * (m % 6)]
        for side in range(2):
            e = by if side == 0 else -by
            if m < 12:
                move(state, room.places, POSITION, room.frames[0], m, e)
            else:
                before = pushed[(m - 12) // 6, 0, m % 6]
                pushed[(m - 12) // 6, 0, m % 6] += e
            step_body(finned, body, memory, pushed, room, room.body[side])
            if m < 12:
                for k in range(FINS):
                    state[k] = origin[k]
            else:
                pushed[(m - 12) // 6, 0, m % 6] = before
        w, out = 0.5 / by, room.by_body[m]
        for k in range(BODY):
            out[k] = w * (room.body[0, k] - room.body[1, k])


@kernel
def _body_by_fins(finned: Any, memory: Any, room: Any) -> None:
    """by_fin: the body's coordinates after by the wrench on each support at each stage."""
    work = memory.work
    for i in range(STAGES):
        supports, at = (memory.state, SUPPORTS) if i == 0 else (work, W_SUPPORT_END)
        for f in range(2):
            for n in range(6):
                for k in range(6):
                    work[W_ON_SUPPORT + 6 * f + k] = 1.0 if k == n else 0.0
                fin_on_body(f, finned, supports, at + f * SUPPORT_SIZE, work)
                out = room.by_fin[f, 6 * i + n]
                for r in range(BODY):
                    out[r] = 0.0
                for k in range(6):
                    share, row = work[W_ON_BODY + 6 * f + k], room.by_body[12 + 6 * i + k]
                    for r in range(BODY):
                        out[r] += share * row[r]


@kernel
def _joints_difference(finned: Any, memory: Any, over: float, kept: Array, f: int, e: int, b: int, out: Array) -> None:
    """out (lanes,) = over times (kept less what is now) of coordinate e of the chains of a block."""
    links = finned.links
    row, rate = (f * finned.blocks + b) * links + e % links, e // links
    field = (SUM_QD if rate else SUM_Q) * LANES
    now = memory.rows[row]
    for i in range(out.shape[0]):
        out[i] = over * (kept[row, rate * LANES + i] - now[field + i])


@kernel
def _keep_joints(memory: Any, kept: Array) -> None:
    links = memory.rows
    for n in range(links.shape[0]):
        for i in range(LANES):
            kept[n, i], kept[n, LANES + i] = links[n, SUM_Q * LANES + i], links[n, SUM_QD * LANES + i]


@kernel
def slopes_by_chains(finned: Any, memory: Any, many: int | None, room: Any) -> int:
    """own and right: one coordinate of all chains at once."""
    joints, links, blocks, chains = memory.joints, finned.links, finned.blocks, finned.chains
    width = 2 * links
    for c in range(width):
        rate, j = c // links, c % links
        by = room.by[HEAD + INPUTS + c]
        for side in range(2):
            e = by if side == 0 else -2.0 * by
            for part in range(2 * blocks):
                for i in range(LANES):
                    joints[part * links + j, rate * LANES + i] += e
            status = step_chains(finned, memory, many, room.bases[0], room.sums[side])
            if status != OK:
                return int(status)
            if side == 0:
                _keep_joints(memory, room.kept)
        w = 0.5 / by
        for f in range(2):
            for b in range(blocks):
                row, at = (f * blocks + b) * links + j, FINS
                at += (2 * row + rate) * LANES
                for i in range(LANES):
                    joints[row, rate * LANES + i] = room.origin[at + i]
                first = b * LANES
                lanes = min(LANES, chains - first)
                for e in range(width):
                    _joints_difference(
                        finned, memory, w, room.kept, f, e, b,
                        room.own[e, c, f * chains + first : f * chains + first + lanes],
                    )  # fmt: skip
                pushed = room.lanes
                for i in range(STAGES):
                    one, other = room.sums[0, i, f, b], room.sums[1, i, f, b]
                    for n in range(6):
                        for lane in range(LANES):
                            pushed[6 * i + n, lane] = w * (one[n * LANES + lane] - other[n * LANES + lane])
                column = (rate * 2 + f) * links * chains + j * chains + first
                _push_body(room.by_fin[f], pushed, room.total, room.right[:, column : column + lanes])
    return OK


@kernel
def _push_body(by_fin: Array, pushed: Array, total: Array, out: Array) -> None:
    """out (BODY, lanes): what wrenches of the chains of a block, pushed (WRENCHES, LANES), do to the body."""
    for r in range(BODY):
        for lane in range(LANES):
            total[lane] = 0.0
        for n in range(WRENCHES):
            share = by_fin[n, r]
            for lane in range(LANES):
                total[lane] += share * pushed[n, lane]
        for lane in range(out.shape[1]):
            out[r, lane] = total[lane]


@kernel
def _put_head(finned: Any, memory: Any, room: Any, m: int, column: int, w: float, f: int) -> None:
    """A column of a displacement that is fin f's alone, or of both fins', f = 2."""
    links, blocks, chains = finned.links, finned.blocks, finned.chains
    head, below = room.head[column], room.below[column]
    first, last = (0, 2) if f == 2 else (f, f + 1)
    for r in range(BODY):
        head[r] = room.by_body[m, r] if m < 12 else 0.0
    for i in range(STAGES):
        for k in range(6):
            t = 0.0
            for g in range(first, last):
                t += w * (room.wrench[0, i, g, k] - room.wrench[1, i, g, k])
            row = room.by_body[12 + 6 * i + k]
            for r in range(BODY):
                head[r] += t * row[r]
    for g in range(first, last):
        if f < 2:
            for k in range(2 * ROD_WORDS):
                rod = 2 * ROD_WORDS * g + k
                head[BODY + rod] = w * (room.rods[0, rod] - room.rods[1, rod])
        for e in range(2 * links):
            at = ((e // links * 2 + g) * links + e % links) * chains
            for b in range(blocks):
                first_lane = b * LANES
                lanes = min(LANES, chains - first_lane)
                _joints_difference(
                    finned, memory, w, room.kept, g, e, b, below[at + first_lane : at + first_lane + lanes]
                )


@kernel
def slopes_by_head(finned: Any, memory: Any, many: int | None, room: Any) -> int:
    """head and below: what moves the supports, one by one; rods of both fins and their commands at once."""
    state, work, command, origin = memory.state, memory.work, memory.command, room.origin
    c = finned.current
    still = c[0] == 0.0 and c[1] == 0.0 and c[2] == 0.0
    rods = 2 * ROD_WORDS
    for k in range(POSE):  # nothing but the body's own coordinates depends on these, but for attitude in a current
        for r in range(BODY):
            room.head[k, r] = room.by_body[k, r]
    for m in range(POSE if still else ATTITUDE, HEAD + INPUTS):
        is_rod, is_command = BODY <= m < HEAD, m >= HEAD
        if (is_rod and m >= BODY + rods) or m >= HEAD + 2:
            continue
        by, other = room.by[m], m + 2 if is_command else m + rods
        for side in range(2):
            e = by if side == 0 else -by
            if is_command:
                command[m - HEAD] += e
                command[m - HEAD + 2] += e
            else:
                move(state, room.places, POSITION, room.frames[0], m, e)
                if is_rod:
                    move(state, room.places, POSITION, room.frames[0], other, e)
                    status = settle(memory)
                    if status != OK:
                        return int(status)
            status = support_motions(finned, memory, room.bases[1])
            if status == OK:
                status = step_chains(finned, memory, many, room.bases[1], room.sums[2])
            if status != OK:
                return int(status)
            fins_on_body(finned, memory, room.sums[2], room.wrench[side], room.on_support)
            for k in range(4 * ROD_WORDS):
                room.rods[side, k] = work[W_RODS + room.places[BODY + k] - RODS]
            if side == 0:
                _keep_joints(memory, room.kept)
            if is_command:
                command[m - HEAD], command[m - HEAD + 2] = room.commands[m - HEAD], room.commands[m - HEAD + 2]
            else:
                for k in range(FINS):
                    state[k] = origin[k]
        w = 0.5 / by
        if is_rod or is_command:
            _put_head(finned, memory, room, m, m, w, 0)
            _put_head(finned, memory, room, m, other, w, 1)
        else:
            _put_head(finned, memory, room, m, m, w, 2)
    return OK


@kernel
def displaced_jacobian(memory: Any, many: int | None, room: Any) -> int:
    """The blocks of A and B in `room`, of the state room.origin under room.commands; a status as of a step.

    many   links a chain where they are not three, else None
    """
    finned, body, state = memory.finned, memory.body, memory.state
    copy(room.origin, state)
    for k in range(INPUTS):
        memory.command[k] = room.commands[k]
    rotation(room.origin[POSITION + 3 : POSITION + 7], room.frames[0])
    rotation(room.reference[3:7], room.frames[1])
    status = support_motions(finned, memory, room.bases[0])
    if status == OK:
        status = step_chains(finned, memory, many, room.bases[0], room.sums[2])
    if status != OK:
        return int(status)
    fins_on_body(finned, memory, room.sums[2], room.wrench[2], room.on_support)
    slopes_of_body(finned, body, memory, room)
    _body_by_fins(finned, memory, room)
    status = slopes_by_chains(finned, memory, many, room)
    if status != OK:
        return int(status)
    return int(slopes_by_head(finned, memory, many, room))
