"""Attitudes over time as angles that a person can read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def attitude_angles(q: Array) -> Array:
    """(k, 3) rad: roll about x, pitch about y, yaw about z, in the order yaw, pitch, roll; q (k, 4), w first.

    Roll and yaw do not jump: they go on beyond half a turn.
    """
    w, x, y, z = q.T
    roll = np.unwrap(np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.unwrap(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
    return np.stack([roll, pitch, yaw], axis=1)
