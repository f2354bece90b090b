"""Stages of a motion on a fork, without Python: steps under commands that go in straight lines from knot to knot, with
feedback from how far the state is off, and slopes of a stage (rtmms.analysis.stages)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from rtmms.addresses import call, numbers_at
from rtmms.analysis.derivative_kernel import (
    ARGUMENTS_AT,
    COMMAND_AT,
    FUNCTION,
    START_AT,
    coordinates_of,
    copy,
    difference,
    move,
    rotation,
    settled,
)
from rtmms.jit import kernel


@kernel
def multiply(a: Any, b: Any, out: Any) -> None:
    """out = a b, without what is zero in a: for some hundred rows, and on the thread that asks alone, where a library's
    threads would wait for cores that are taken."""
    columns = out.shape[1]
    for i in range(out.shape[0]):
        for j in range(columns):
            out[i, j] = 0.0
        for k in range(a.shape[1]):
            share = a[i, k]
            if share != 0.0:
                for j in range(columns):
                    out[i, j] += share * b[k, j]


@kernel
def stage(
    entered: Any, before: Any, knot: Any, more_before: Any, more: Any, sign: float, steps: int, first: int, dt: float
) -> int:
    """Steps of one stage: in step j of s the command is (1 - w) before + w knot with w = (j + 1) / s; to both knots
    `sign` times `more_before` and `more` is added. The status of the step that failed, 0 when none did."""
    n = len(knot)
    command, start = carray(numbers_at(entered[COMMAND_AT]), (n,)), carray(numbers_at(entered[START_AT]), (1,))
    for j in range(steps):
        w = (j + 1) / steps
        for i in range(n):
            a, b = before[i] + sign * more_before[i], knot[i] + sign * more[i]
            command[i] = a + w * (b - a) if j < steps - 1 else b
        start[0] = (first + j) * dt
        status = call(entered[FUNCTION], entered[ARGUMENTS_AT])
        if status != 0:
            return int(status)
    return 0


@kernel
def _tell(told: Any, teller: int, teller_at: int, out: Any) -> None:
    """Numbers of outputs that do not stand in the state."""
    if len(told):
        call(teller, teller_at)
    at = 0
    for p in range(len(told)):
        numbers = carray(numbers_at(told[p, 0]), (told[p, 1],))
        for i in range(told[p, 1]):
            out[at] = numbers[i]
            at += 1


@kernel
def guided(
    entered: Any, state: Any, base: Any, base_knots: Any, correction: Any, gain: Any, share: float, lower: Any,
    upper: Any, steps: int, first: int, dt: float, words: Any, pose: int, told: Any, teller: int, teller_at: int,
    states: Any, knots: Any, more: Any,
) -> int:  # fmt: skip
    """Stages about a motion: u = u_base + share correction + gain (x - x_base, u_before - u_base_before), in its box.

    state        (w,) of the fork, where it begins;  base (s + 1, w), base_knots (s + 1, n) the motion
    correction   (s, n);  gain (s, n, k + n);  lower, upper (s, n)
    steps        of a stage;  first  steps before;  words, pose  see rtmms.plant.Coordinates
    told, teller, teller_at   as of rtmms.analysis.rollout_kernel.roll
    states (s + 1, w), knots (s + 1, n), more (s, numbers told)   written; knots[0] as it is
    Returns the stages that went well.
    """
    count, n, k = gain.shape[0], gain.shape[1], words.shape[0]
    off, frame, nothing = np.zeros(k + n), np.empty(9), np.zeros(n)
    copy(state, states[0])
    for t in range(count):
        if pose >= 0:
            rotation(base[t, pose + 3 : pose + 7], frame)
            coordinates_of(states[t], words, pose, base[t, pose : pose + 7], frame, off)
        first_word = 6 if pose >= 0 else 0
        for i in range(first_word, k):
            off[i] = states[t, words[i]] - base[t, words[i]]
        for i in range(n):
            off[k + i] = knots[t, i] - base_knots[t, i]
        for i in range(n):
            u = base_knots[t + 1, i] + share * correction[t, i]
            for j in range(k + n):
                u += gain[t, i, j] * off[j]
            knots[t + 1, i] = min(max(u, lower[t, i]), upper[t, i])
        if stage(entered, knots[t], knots[t + 1], nothing, nothing, 0.0, steps, first + t * steps, dt) != 0:
            return t
        copy(state, states[t + 1])
        _tell(told, teller, teller_at, more[t])
    return int(count)


@kernel
def stage_slopes(
    entered: Any, state: Any, origin: Any, before: Any, knot: Any, steps: int, reference: Any, words: Any, pose: int,
    woven: Any, by: Any, first: int, dt: float, out: Any,
) -> int:  # fmt: skip
    """Slopes of the coordinates after a stage by those before, by the knot before it and by its own, central.

    origin  (w,) the state before;  reference (7,) the pose from which the pose after is told
    by      (k + n,) how far to either side;  out (k + 2 n, k) written, row m the slope by the m-th
    Returns -1, or the first of them from which a step failed.
    """
    k, n = words.shape[0], len(knot)
    x, y, more_before, more = np.empty(k), np.empty(k), np.zeros(n), np.zeros(n)
    frame, after = np.empty(9), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
        rotation(reference[3:7], after)
    for m in range(k + 2 * n):
        if k <= m < k + n and steps == 1:  # the knot before is no part of it
            for i in range(k):
                out[m, i] = 0.0
            continue
        size = by[m] if m < k + n else by[m - n]
        for side in range(2):
            sign = 1.0 - 2.0 * side
            copy(origin, state)
            if m < k:
                move(state, words, pose, frame, m, sign * size)
                if woven[m] and settled(entered, first, dt) != 0:
                    return m
            elif m < k + n:
                more_before[m - k] = size
            else:
                more[m - k - n] = size
            if stage(entered, before, knot, more_before, more, sign, steps, first, dt) != 0:
                return m
            if m >= k + n:
                more[m - k - n] = 0.0
            elif m >= k:
                more_before[m - k] = 0.0
            coordinates_of(state, words, pose, reference, after, x if side == 0 else y)
        difference(0.5 / size, x, y, out[m])
    return -1


@kernel
def told_slopes(
    entered: Any, state: Any, origin: Any, words: Any, pose: int, woven: Any, by: Any, first: int, dt: float,
    told: Any, teller: int, teller_at: int, out: Any,
) -> int:  # fmt: skip
    """Slopes of outputs that do not stand in the state, out (k, numbers told), by its coordinates, central. Returns -1,
    or the coordinate at which there is no such state."""
    k, width = words.shape[0], out.shape[1]
    x, y, frame = np.empty(width), np.empty(width), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
    for m in range(k):
        for side in range(2):
            copy(origin, state)
            move(state, words, pose, frame, m, by[m] if side == 0 else -by[m])
            if woven[m] and settled(entered, first, dt) != 0:
                return m
            _tell(told, teller, teller_at, x if side == 0 else y)
        difference(0.5 / by[m], x, y, out[m])
    return -1


@kernel
def stage_trace(entered: Any, state: Any, before: Any, knot: Any, steps: int, first: int, dt: float,
                states: Any, commands: Any) -> int:  # fmt: skip
    """The states of a stage, states (s + 1, w) before each step and after the last, and its commands (s, n); the status
    of the step that failed, 0 when none did. state (w,): where it begins."""
    n = len(knot)
    nothing = np.zeros(n)
    copy(state, states[0])
    for j in range(steps):
        w = (j + 1) / steps
        for i in range(n):
            commands[j, i] = before[i] + w * (knot[i] - before[i]) if j < steps - 1 else knot[i]
        status = stage(entered, commands[j], commands[j], nothing, nothing, 0.0, 1, first + j, dt)
        if status != 0:
            return int(status)
        copy(state, states[j + 1])
    return 0
