"""What bounds a joint: the most torque that may drive it, and stops that push back beyond its range.

bounds  (n, BOUND_WIDTH): most torque (inf for any), lower and upper (-inf, inf for none), stiffness and damping beyond,
        and whether any of these is there
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.model.layout import S_HELD
from rtmms.spatial import Array

MOST, LOWER, UPPER, STOP_STIFFNESS, STOP_DAMPING, BOUNDED = range(6)
BOUND_WIDTH = 6


def no_bounds(n: int) -> Array:
    """Of n joints that go where they please."""
    bounds = np.zeros((n, BOUND_WIDTH))
    bounds[:, MOST], bounds[:, LOWER], bounds[:, UPPER] = np.inf, -np.inf, np.inf
    return bounds


@kernel
def bind(bounds: Any, j: Any, q: Any, qd: Any, implicit: float, drive: Any, s: Any) -> None:
    """Cut the drive of joint j to what may be, and add its stops; S_HELD follows (see `evaluate`)."""
    most = bounds[j, MOST]
    if abs(drive[j].real) > most:
        drive[j] = most if drive[j].real > 0.0 else -most
        s[j + 1, S_HELD] = 0.0
    beyond = 0.0 * q
    if q.real < bounds[j, LOWER]:
        beyond = bounds[j, LOWER] - q
    elif q.real > bounds[j, UPPER]:
        beyond = bounds[j, UPPER] - q
    if beyond.real != 0.0:
        k, c = bounds[j, STOP_STIFFNESS], bounds[j, STOP_DAMPING]
        drive[j] += k * (beyond - implicit * qd) - c * qd
        s[j + 1, S_HELD] += implicit * (c + implicit * k)
