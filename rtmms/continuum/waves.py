"""Two strain fields: a wave of curvature that runs from head to tail, and curvature through nodes along the body."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

from rtmms.addresses import numbers_at
from rtmms.continuum.field import COAST, SETTLE, Field
from rtmms.jit import kernel
from rtmms.mechanism.joint_laws import ramp
from rtmms.spatial import Array, scalar

(PHASE, YAW_GAIN, YAW_OFFSET, PITCH_GAIN, PITCH_OFFSET, YAW, YAW_GROWTH, PITCH, PITCH_GROWTH, PITCH_LEAD, WAVELENGTH,
 RAMP) = range(12)  # fmt: skip
"""Parameters of `wave`: phase in periods, gains 1, offsets rad/m are driven; amplitudes rad/m and their growth rad/m2,
lead rad, wavelength m and soft start s stay."""
WAVE_SIZE = 12


@scalar
def bend(x: Any, f: Any, fd: Any, fdd: Any, p: Any, gain: Any, offset: Any, first: Any, lead: Any) -> Any:
    """K, K_t, K_tt of f (gain (first + growth x) sin(2 pi (phase - x / wavelength) + lead) + offset)."""
    envelope = p[0, first] + p[0, first + 1] * x
    angle = 2.0 * math.pi * (p[0, PHASE] - x / p[0, WAVELENGTH]) + lead
    w, wd = 2.0 * math.pi * p[1, PHASE], 2.0 * math.pi * p[2, PHASE]
    s, c = envelope * np.sin(angle), envelope * np.cos(angle)
    g, gd, gdd = p[0, gain], p[1, gain], p[2, gain]
    k = g * s + p[0, offset]
    kd = gd * s + g * w * c + p[1, offset]
    kdd = gdd * s + 2.0 * gd * w * c + g * (wd * c - w * w * s) + p[2, offset]
    return f * k, fd * k + f * kd, fdd * k + 2.0 * fd * kd + f * kdd


@kernel
def wave(x: float, t: float, p: Any, out: Any) -> None:
    """A strain field (rtmms.continuum.field): curvatures about e3 (yaw) and e2 (pitch) as waves along the body."""
    f, fd, fdd = ramp(t, p[0, RAMP])
    for i in range(3):
        for k in range(6):
            out[i, k] = 0.0
    out[0, 0] = 1.0
    out[0, 5], out[1, 5], out[2, 5] = bend(x, f, fd, fdd, p, YAW_GAIN, YAW_OFFSET, YAW, 0.0)
    if p[0, PITCH] != 0.0 or p[0, PITCH_GROWTH] != 0.0 or p[0, PITCH_OFFSET] != 0.0 or p[1, PITCH_OFFSET] != 0.0:
        out[0, 4], out[1, 4], out[2, 4] = bend(
            x, f, fd, fdd, p, PITCH_GAIN, PITCH_OFFSET, PITCH, p[0, PITCH_LEAD]
        )  # fmt: skip


@kernel
def wave_entry(x: float, t: float, p: int, k: int, out: int) -> None:
    wave(x, t, carray(numbers_at(p), (3, k)), carray(numbers_at(out), (3, 6)))


def wave_field(values: Array, driven: list[int]) -> Field:
    """values (WAVE_SIZE,), of PHASE its rate, 1/s; driven: the parameters that actuators give, one each."""
    follow = np.full(WAVE_SIZE, SETTLE)
    follow[PHASE] = COAST
    mix = np.zeros((WAVE_SIZE, len(driven)))
    mix[driven, range(len(driven))] = 1.0
    return Field(wave, np.array(values, dtype=float), follow, mix, wave_entry)


@kernel
def nodes(x: float, t: float, p: Any, out: Any) -> None:
    """A strain field: curvatures through cubic B-splines of equal pieces. p: whether there is pitch, length of a piece
    (m), then the coefficients of yaw and of pitch."""
    pitched = p[0, 0] > 0.0
    n = (p.shape[1] - 2) // 2 if pitched else p.shape[1] - 2
    u = x / p[0, 1]
    j = min(max(int(u), 0), n - 4)
    u -= j
    v = 1.0 - u
    a, d = v * v * v / 6.0, u * u * u / 6.0
    b, c = 2.0 / 3.0 - 0.5 * u * u * (1.0 + v), 2.0 / 3.0 - 0.5 * v * v * (1.0 + u)
    for i in range(3):
        for k in range(6):
            out[i, k] = 0.0
        m = 2 + j
        out[i, 5] = a * p[i, m] + b * p[i, m + 1] + c * p[i, m + 2] + d * p[i, m + 3]
        if pitched:
            m += n
            out[i, 4] = a * p[i, m] + b * p[i, m + 1] + c * p[i, m + 2] + d * p[i, m + 3]
    out[0, 0] = 1.0


@kernel
def nodes_entry(x: float, t: float, p: int, k: int, out: int) -> None:
    nodes(x, t, carray(numbers_at(p), (3, k)), carray(numbers_at(out), (3, 6)))


def through_nodes(n: int) -> Array:
    """(n + 2, n) coefficients of the cubic B-spline through n values at equal distances, its ends without bending (the
    natural spline)."""
    rows = np.zeros((n + 2, n + 2))
    for i in range(n):
        rows[i, i : i + 3] = np.array([1.0, 4.0, 1.0]) / 6.0
    rows[n, :3] = rows[n + 1, -3:] = [1.0, -2.0, 1.0]
    wanted = np.zeros((n + 2, n))
    wanted[:n] = np.eye(n)
    return np.asarray(np.linalg.solve(rows, wanted), dtype=float)


def nodes_field(length: float, n: int, pitched: bool) -> Field:
    """Curvatures of n >= 2 nodes from head to tail, about e3 and, where it is pitched, e2 after them."""
    through = through_nodes(n)
    size = (n + 2) * (2 if pitched else 1)
    start = np.zeros(2 + size)
    start[0], start[1] = float(pitched), length / (n - 1)
    mix = np.zeros((2 + size, 2 * n if pitched else n))
    mix[2 : n + 4, :n] = through
    if pitched:
        mix[n + 4 :, n:] = through
    return Field(nodes, start, np.full(2 + size, SETTLE), mix, nodes_entry)
