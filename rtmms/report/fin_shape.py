"""Where a manta's fins are, from rod and joint angles: for figures, in plain numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.robots.manta.kernels.support import POINT, ROTATION, SUPPORT_SIZE, support_motion

if TYPE_CHECKING:
    from rtmms.robots.manta import Manta

Array = npt.NDArray[np.float64]

LEFT, RIGHT = 0, 1
_support: Any = getattr(support_motion, "py_func", support_motion)  # a figure is no reason to compile


def fin_points(plant: Manta, fin: int, rods: Array, joints: Array) -> Array:
    """(m + 1, n, 3) m, body frame: the joints of every chain, root to free end, chains from the back rod to the front.

    fin     LEFT or RIGHT
    rods    (4,) rad, rod angles in the order of the plant's actuators
    joints  (2, m, n) rad, joint angles of both fins
    """
    finned, length = plant.model.finned, plant.model.links[0]
    support, zero = np.zeros(SUPPORT_SIZE), np.zeros(2)
    alpha = np.asarray(rods[2 * fin : 2 * fin + 2], dtype=np.float64)
    _support(finned.support_length, finned.r_front, finned.r_back, finned.roll, alpha, zero, zero, support, 0)
    m, n = length.shape
    angle = np.cumsum(joints[fin], axis=0)
    local = np.zeros((m + 1, n, 3))
    local[:, :, 0] = plant.model.station
    local[1:, :, 1] = np.cumsum(length * np.cos(angle), axis=0)
    local[1:, :, 2] = np.cumsum(length * np.sin(angle), axis=0)
    rotation = support[ROTATION : ROTATION + 9].reshape(3, 3)
    points: Array = finned.root + support[POINT : POINT + 3] + local @ rotation.T
    if fin == RIGHT:
        points[:, :, 1] *= -1.0
    return points
