"""States on the group: position, attitude and joints as one vector, and how a rate moves it.

state  (13 + 2 n,)  position 3 (m, world), quaternion 4 (w x y z, base to world), q n, twist 6 (base frame), qd n
rate   (12 + 2 n,)  world velocity 3, W 3 (rad/s, base frame), qd n, twist' 6, qdd n
A step along a rate turns the attitude by an exponential, Q exp(h W), so that it stays a rotation. A method of higher
order needs the rate of the exponential's own coordinate theta instead of W: W + theta x W / 2 +
theta x (theta x W) / 12 (Munthe-Kaas), exact enough up to order four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.spatial import quaternion_columns


@kernel
def displace(state: Any, rate: Any, h: float, out: Any) -> None:
    """out = state moved along `rate` for h seconds; out may be state."""
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
    """Turn the W of a stage's rate into the rate of theta = h W_before: the stage stood at Q exp(theta)."""
    x, y, z = h * before[3], h * before[4], h * before[5]
    a, b, c = rate[3], rate[4], rate[5]
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    rate[3] = a + 0.5 * d + (y * f - z * e) / 12.0
    rate[4] = b + 0.5 * e + (z * d - x * f) / 12.0
    rate[5] = c + 0.5 * f + (x * e - y * d) / 12.0


@kernel
def normalise(state: Any) -> None:
    """Quaternion back to unit length."""
    size = 1.0 / np.sqrt(state[3] * state[3] + state[4] * state[4] + state[5] * state[5] + state[6] * state[6])
    for k in range(3, 7):
        state[k] *= size


@kernel
def lead(state: Any, rate: Any, h: float) -> None:
    """Rates of position, attitude and joints as they are h seconds on, the velocities moved along their own rates."""
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
    """Rate of the group -> rate of the vector: the quaternion's own derivative Q (0, W) / 2 in place of W."""
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
