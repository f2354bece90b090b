"""Slopes of steps of a fork by central differences, without Python (rtmms.analysis.derivatives)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

from rtmms.addresses import call, numbers_at
from rtmms.jit import kernel

FUNCTION, ARGUMENTS_AT, COMMAND_AT, SETTLE, SETTLE_AT, START_AT = range(6)
"""Words of what `slopes` and `ends` enter: a step and what puts a state in order, as functions with their arguments,
and where command and start of a step are written."""


@kernel
def turn(state: Any, at: int, axis: int, angle: float) -> None:
    """The quaternion at state[at] times the rotation by an angle about one of its own axes, 0 to 2."""
    c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
    w, x, y, z = state[at], state[at + 1], state[at + 2], state[at + 3]
    if axis == 0:
        w, x, y, z = w * c - x * s, x * c + w * s, y * c + z * s, z * c - y * s
    elif axis == 1:
        w, x, y, z = w * c - y * s, x * c - z * s, y * c + w * s, z * c + x * s
    else:
        w, x, y, z = w * c - z * s, x * c + y * s, y * c - x * s, z * c + w * s
    state[at], state[at + 1], state[at + 2], state[at + 3] = w, x, y, z


@kernel
def rotation(quaternion: Any, out: Any) -> None:
    """Its matrix by rows, out (9,)."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    out[0], out[1], out[2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    out[3], out[4], out[5] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    out[6], out[7], out[8] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


@kernel
def move(state: Any, words: Any, pose: int, frame: Any, m: int, by: float) -> None:
    """A state moved by so much along coordinate m; frame (9,) the rotation of its pose as it was."""
    if pose < 0 or m >= 6:
        state[words[m]] += by
    elif m < 3:  # p = p_ref + R_ref e
        for k in range(3):
            state[pose + k] += frame[3 * k + m] * by
    else:  # R = R_ref exp theta^
        turn(state, pose + 3, m - 3, by)


@kernel
def coordinates_of(state: Any, words: Any, pose: int, reference: Any, frame: Any, out: Any) -> None:
    """Words of a state as they are, and its pose (6,) from a reference (7,) whose rotation is `frame` (9,)."""
    first = 0
    if pose >= 0:
        first = 6
        dx, dy, dz = state[pose] - reference[0], state[pose + 1] - reference[1], state[pose + 2] - reference[2]
        for k in range(3):
            out[k] = frame[k] * dx + frame[3 + k] * dy + frame[6 + k] * dz
        w, x, y, z = reference[3], -reference[4], -reference[5], -reference[6]
        a, b, c, d = state[pose + 3], state[pose + 4], state[pose + 5], state[pose + 6]
        cosine = w * a - x * b - y * c - z * d
        ux, uy, uz = w * b + x * a + y * d - z * c, w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a
        sine = math.sqrt(ux * ux + uy * uy + uz * uz)
        if cosine < 0.0:  # the shorter way
            cosine, ux, uy, uz = -cosine, -ux, -uy, -uz
        factor = 2.0 * math.atan2(sine, cosine) / sine if sine > 1e-12 else 2.0
        out[3], out[4], out[5] = factor * ux, factor * uy, factor * uz
    for i in range(first, words.shape[0]):
        out[i] = state[words[i]]


@kernel
def difference(over: float, one: Any, other: Any, out: Any) -> None:
    """out = over (one - other), one by one: vector instructions."""
    for i in range(out.shape[0]):
        out[i] = over * (one[i] - other[i])


@kernel
def copy(source: Any, out: Any) -> None:
    """out = source, as well."""
    for i in range(out.shape[0]):
        out[i] = source[i]


@kernel
def run(entered: Any, state: Any, commands: Any, more: Any, sign: float, first: int, dt: float) -> int:
    """Steps with each row of commands (steps, n), `sign` times more (n,) added; the status of the last."""
    n = commands.shape[1]
    command, start = carray(numbers_at(entered[COMMAND_AT]), (n,)), carray(numbers_at(entered[START_AT]), (1,))
    for k in range(commands.shape[0]):
        for i in range(n):
            command[i] = commands[k, i] + sign * more[i]
        start[0] = (first + k) * dt
        status = call(entered[FUNCTION], entered[ARGUMENTS_AT])
        if status != 0:
            return int(status)
    return 0


@kernel
def settled(entered: Any, first: int, dt: float) -> int:
    """What follows from the coordinates, in order."""
    carray(numbers_at(entered[START_AT]), (1,))[0] = first * dt
    return int(call(entered[SETTLE], entered[SETTLE_AT]))


@kernel
def slopes(
    entered: Any, state: Any, origin: Any, commands: Any, reference: Any, words: Any, pose: int, woven: Any, by: Any,
    begin: int, end: int, first: int, dt: float, out: Any,
) -> int:  # fmt: skip
    """Slopes of the coordinates after the steps by those before and by the commands, begin to end of them, to out.

    entered    see FUNCTION and the like;  state (w,) of the fork
    origin     (w,) the state around which, as the fork's;  reference (7,) the pose from which the pose after is told
    commands   (steps, n): a slope by commands is one by what is added to all of them
    words, pose, woven   see rtmms.plant.Coordinates
    by         (k + n,) how far to either side
    first      steps before;  dt s
    out        (k + n, k) written: row m, the slope by the m-th
    Returns -1, or the first of them from which a step failed.
    """
    k, n = words.shape[0], commands.shape[1]
    x, y, more = np.empty(k), np.empty(k), np.zeros(n)
    frame, after = np.empty(9), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
        rotation(reference[3:7], after)
    for m in range(begin, end):
        for side in range(2):
            sign = 1.0 - 2.0 * side
            copy(origin, state)
            if m < k:
                move(state, words, pose, frame, m, sign * by[m])
                if woven[m] and settled(entered, first, dt) != 0:
                    return m
            else:
                more[m - k] = by[m]
            if run(entered, state, commands, more, sign, first, dt) != 0:
                return m
            if m >= k:
                more[m - k] = 0.0
            coordinates_of(state, words, pose, reference, after, x if side == 0 else y)
        difference(0.5 / by[m], x, y, out[m])
    return -1


@kernel
def ends(
    entered: Any, state: Any, origin: Any, commands: Any, reference: Any, words: Any, pose: int, by: Any, first: int,
    dt: float, out: Any,
) -> int:  # fmt: skip
    """What everything displaced at once becomes along a few directions.

    by     (d, k + n) a direction each
    out    (d, k) written: half the difference of both ends
    The status of the step that failed, 0 when none did.
    """
    directions, k, n = by.shape[0], words.shape[0], commands.shape[1]
    x, more = np.empty((2, k)), np.empty(n)
    frame, after = np.empty(9), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
        rotation(reference[3:7], after)
    for d in range(directions):
        for i in range(n):
            more[i] = by[d, k + i]
        for side in range(2):
            sign = 1.0 - 2.0 * side
            copy(origin, state)
            for m in range(k):
                move(state, words, pose, frame, m, sign * by[d, m])
            status = settled(entered, first, dt)
            if status == 0:
                status = run(entered, state, commands, more, sign, first, dt)
            if status != 0:
                return int(status)
            coordinates_of(state, words, pose, reference, after, x[side])
        difference(0.5, x[0], x[1], out[d])
    return 0


@kernel
def trace(entered: Any, state: Any, commands: Any, first: int, dt: float, out: Any) -> int:
    """Steps with each row of commands (steps, n) from a state, which is moved on; out (steps + 1, w) it before each and
    after the last. The status of the step that failed, 0 when none did."""
    nothing = np.zeros(commands.shape[1])
    copy(state, out[0])
    for k in range(commands.shape[0]):
        status = run(entered, state, commands[k : k + 1], nothing, 0.0, first + k, dt)
        if status != 0:
            return int(status)
        copy(state, out[k + 1])
    return 0
