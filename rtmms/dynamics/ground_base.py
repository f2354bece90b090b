"""The base of a constrained tree: at most six orthonormal rows, and what they leave free."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.row_sets import R_ALONG, R_BASE, R_COUNT, R_E, R_FORCE, R_G, R_KERNEL, R_REDUCED, R_RIGHT, R_ROW
from rtmms.jit import kernel
from rtmms.model.layout import S_ACCELERATION, S_BIAS, S_INERTIA
from rtmms.spatial import PACKED


@kernel
def span_kernel(room: Any, d: int) -> None:
    """H (6, d) of the base's rows, by columns in R_KERNEL: unit vectors of which most is left, made orthonormal."""
    w = room.shape[0] - 1
    count = 6 - d
    for c in range(d):
        best, most = 0, -1.0
        for k in range(6):
            left = 1.0
            for l in range(count):
                left -= (room[0, R_E + 6 * l + k] * room[0, R_E + 6 * l + k]).real
            for l in range(c):
                left -= (room[w, R_KERNEL + 6 * l + k] * room[w, R_KERNEL + 6 * l + k]).real
            if left > most:
                best, most = k, left
        new = R_KERNEL + 6 * c
        for k in range(6):
            room[w, new + k] = 0.0
        room[w, new + best] = 1.0
        for _ in range(2):
            for l in range(count + c):
                row, at = (0, R_E + 6 * l) if l < count else (w, R_KERNEL + 6 * (l - count))
                along = room[row, at] * room[w, new]
                for k in range(1, 6):
                    along += room[row, at + k] * room[w, new + k]
                for k in range(6):
                    room[w, new + k] -= along * room[row, at + k]
        square = room[w, new] * room[w, new]
        for k in range(1, 6):
            square += room[w, new + k] * room[w, new + k]
        for k in range(6):
            room[w, new + k] /= np.sqrt(square)


@kernel
def pushed(s: Any, room: Any, length: Any, k: int) -> Any:
    """Component k of M a + beta at the base, scaled; a stands in R_BASE."""
    w = room.shape[0] - 1
    total = s[0, S_BIAS + k]
    for b in range(6):
        total += s[0, S_INERTIA + PACKED[k, b]] * (room[w, R_BASE + b] if b < 3 else room[w, R_BASE + b] / length)
    return total if k < 3 else total / length


@kernel
def solve_base_on_ground(s: Any, room: Any, length: Any) -> None:
    """The base's acceleration: a_p = -E^T g, then what is free by Cholesky's method. NaN where it meets no inertia."""
    w, count = room.shape[0] - 1, int(room[0, R_COUNT].real)
    d = 6 - count
    for k in range(6):
        total = 0.0 * room[w, R_BASE]
        for l in range(count):
            total -= room[0, R_E + 6 * l + k] * room[0, R_G + l]
        room[w, R_BASE + k] = total
    if d > 0:
        span_kernel(room, d)
        for k in range(6):
            room[w, R_ROW + k] = pushed(s, room, length, k)
        for a in range(d):
            total = 0.0 * room[w, R_ROW]
            for k in range(6):
                total -= room[w, R_KERNEL + 6 * a + k] * room[w, R_ROW + k]
            room[w, R_RIGHT + a] = total
            for k in range(6):  # M h_a, scaled
                total = 0.0 * room[w, R_ROW]
                for b in range(6):
                    h = room[w, R_KERNEL + 6 * a + b]
                    total += s[0, S_INERTIA + PACKED[k, b]] * (h if b < 3 else h / length)
                room[w, R_ALONG + k] = total if k < 3 else total / length
            for b in range(a, d):
                total = 0.0 * room[w, R_ROW]
                for k in range(6):
                    total += room[w, R_KERNEL + 6 * b + k] * room[w, R_ALONG + k]
                room[w, R_REDUCED + 6 * b + a] = total
        reduce_and_solve(room, d)
        for k in range(6):
            for a in range(d):
                room[w, R_BASE + k] += room[w, R_KERNEL + 6 * a + k] * room[w, R_RIGHT + a]
    for k in range(6):
        s[0, S_ACCELERATION + k] = room[w, R_BASE + k] if k < 3 else room[w, R_BASE + k] / length
    for l in range(count):  # E^T lambda = M a + beta
        room[0, R_FORCE + l] = 0.0
    for k in range(6):
        value = pushed(s, room, length, k)
        for l in range(count):
            room[0, R_FORCE + l] += room[0, R_E + 6 * l + k] * value


@kernel
def reduce_and_solve(room: Any, d: int) -> None:
    """R_RIGHT = (H^T M H)^-1 R_RIGHT, by Cholesky's factors of the lower triangle in R_REDUCED."""
    w, n, f = room.shape[0] - 1, R_REDUCED, R_RIGHT
    for a in range(d):
        total = room[w, n + 7 * a]
        for k in range(a):
            total -= room[w, n + 6 * a + k] * room[w, n + 6 * a + k]
        pivot = np.sqrt(total)
        room[w, n + 7 * a] = pivot
        for b in range(a + 1, d):
            total = room[w, n + 6 * b + a]
            for k in range(a):
                total -= room[w, n + 6 * b + k] * room[w, n + 6 * a + k]
            room[w, n + 6 * b + a] = total / pivot
    for a in range(d):
        total = room[w, f + a]
        for k in range(a):
            total -= room[w, n + 6 * a + k] * room[w, f + k]
        room[w, f + a] = total / room[w, n + 7 * a]
    for a in range(d - 1, -1, -1):
        total = room[w, f + a]
        for k in range(a + 1, d):
            total -= room[w, n + 6 * k + a] * room[w, f + k]
        room[w, f + a] = total / room[w, n + 7 * a]
