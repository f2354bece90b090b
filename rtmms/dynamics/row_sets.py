"""Sets of constraint rows on a body's acceleration, E a = -g, with E orthonormal: at most six, whatever hangs below.

Each body of a constrained tree shows its parent, beside its inertia and bias, what the ground asks of it. Rows are
taken in one by one (Gram and Schmidt, twice where much is taken away): one that those before it imply adds nothing,
and what it then contradicts is noted. Angular parts are divided by a length, so that rows compare.

room  (n + 2, R_WIDTH)  one line a body; the last is scratch, and tells (RANKED ... WORST_ROW)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel

RANK = 1e-9
"""A row of which less than this part is new adds nothing."""
MOST = 7
"""Rows that a joint passes on: six of the body behind it, and its wheel's."""

R_COUNT = 0
R_E = 1  # (6, 6) by rows, orthonormal
R_G = 37  # (6,)
R_MIX = 43  # (6, 6) of the row that came in, along those before it
R_SIZE = 79  # (6,) what was new of it
R_SOURCE = 85  # (6,) where it came from: a row of contact, or -1 - (8 joint + place among what the joint passes on)
R_FORCE = 91  # (6,) multipliers
R_UP = 97  # how many rows the joint passes on
R_UP_E = 98  # (7, 6) on the parent's acceleration
R_UP_B = 140  # (7,) on the joint's
R_UP_G = 147  # (7,)
R_UP_SIZE = 154  # (7,) how large the row was before anything was taken from it
R_UP_FORCE = 161  # (7,)
R_PIVOT = 168  # the one that decides the joint's acceleration, or -1
R_ALPHA = 169  # (6,) and R_KAPPA: qdd = alpha . a_parent + kappa
R_KAPPA = 175
R_WIDTH = 180

# in the last line
R_ROW = 0  # (6,) a row on its way in
R_ALONG = 6  # (6,)
R_KERNEL = 12  # (6, 6)
R_REDUCED = 48  # (6, 6)
R_RIGHT = 84  # (6,)
R_BASE = 90  # (6,) the base's acceleration, scaled
# rank, least part of a row that was new, worst contradiction, which row of contact
RANKED, LEAST, WORST, WORST_ROW = 100, 101, 102, 103


@kernel
def clear(room: Any) -> None:
    """No rows anywhere."""
    last = room.shape[0] - 1
    for j in range(last):
        room[j, R_COUNT] = 0.0
        room[j, R_UP] = 0.0
        room[j, R_PIVOT] = -1.0
        for k in range(6):
            room[j, R_FORCE + k] = 0.0
        for k in range(MOST):
            room[j, R_UP_FORCE + k] = 0.0
    room[last, RANKED], room[last, LEAST], room[last, WORST], room[last, WORST_ROW] = 0.0, 1.0, 0.0, -1.0


@kernel
def take_in(room: Any, i: Any, g: Any, size: Any, source: Any) -> None:
    """Add the row that stands in R_ROW of the last line to body i's.

    g       its part of the right-hand side;  size  what it is compared with;  source  see R_SOURCE
    """
    w = room.shape[0] - 1
    count = int(room[i, R_COUNT].real)
    for l in range(count):
        room[w, R_ALONG + l] = 0.0
    square = 0.0 * g
    for _ in range(2):
        for l in range(count):
            e = R_E + 6 * l
            c = room[w, R_ROW] * room[i, e]
            for k in range(1, 6):
                c += room[w, R_ROW + k] * room[i, e + k]
            room[w, R_ALONG + l] += c
            for k in range(6):
                room[w, R_ROW + k] -= c * room[i, e + k]
        square = room[w, R_ROW] * room[w, R_ROW]
        for k in range(1, 6):
            square += room[w, R_ROW + k] * room[w, R_ROW + k]
        if square.real > 0.25 * (size * size).real:
            break  # little was taken away: once is enough
    left, rest = np.sqrt(square), g
    for l in range(count):
        rest -= room[w, R_ALONG + l] * room[i, R_G + l]
    part = left.real / size.real if size.real > 0.0 else 0.0
    if count < 6 and part > RANK:
        if part < room[w, LEAST].real:
            room[w, LEAST] = part
        for k in range(6):
            room[i, R_E + 6 * count + k] = room[w, R_ROW + k] / left
        for l in range(count):
            room[i, R_MIX + 6 * count + l] = room[w, R_ALONG + l]
        room[i, R_G + count] = rest / left
        room[i, R_SIZE + count] = left
        room[i, R_SOURCE + count] = source
        room[i, R_COUNT] = count + 1.0
        return
    wrong = abs(rest.real) / size.real if size.real > 0.0 else abs(rest.real)
    if wrong > room[w, WORST].real:
        room[w, WORST], room[w, WORST_ROW] = wrong, source


@kernel
def hand_out(room: Any, i: Any, reaction: Any) -> None:
    """Multipliers of body i's rows (R_FORCE) to the rows that they were made of; a row that added nothing takes none.

    reaction (m,) of the rows of contact, added to
    """
    for k in range(int(room[i, R_COUNT].real) - 1, -1, -1):
        force = room[i, R_FORCE + k] / room[i, R_SIZE + k]
        for l in range(k):
            room[i, R_FORCE + l] -= room[i, R_MIX + 6 * k + l] * force
        source = int(room[i, R_SOURCE + k].real)
        if source >= 0:
            reaction[source] += force
        else:
            source = -1 - source
            room[source // 8, R_UP_FORCE + source % 8] += force
