"""Camera of films, stills and the browser: its direction, its distance, and how it follows."""

from __future__ import annotations

from collections.abc import Sequence
from math import radians, tan

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

VIEW_DEG = 28.0
"""Vertical angle of the camera's view, deg."""
FROM = np.array([0.60, -1.0, 0.50]) / np.linalg.norm([0.60, -1.0, 0.50])
"""Direction from a robot whose x is forward to the camera: from ahead, from its right, from above."""
FILLED = (0.78, 0.72)
"""Shares of a picture's width and height that the robot fills."""

SMOOTH_S = 1.0
"""Time over which the camera's own motion is averaged, s."""
MAX_DEVIATION = 0.15
"""Distance of the camera from the path, of the robot's size."""


def smooth_path(path: Array, time: Array, size: float) -> Array:
    """Smooth a path for a camera, so that it does not swing with the body.

    It is the mean over SMOOTH_S around each instant, shorter at the ends.

    Parameters
    ----------
    path : Array
        (n, 3) points of the path, m.
    time : Array
        (n,) times, s.
    size : float
        Size of the robot, m; the result is never further from the path than MAX_DEVIATION of it.

    Returns
    -------
    Array
        (n, 3) m.
    """
    n = max(1, round(0.5 * SMOOTH_S / max(float(time[-1]) / max(len(time) - 1, 1), 1e-9)))
    sums = np.vstack([np.zeros(3), np.cumsum(path, axis=0)])
    at = np.arange(len(path))
    half = np.minimum(np.minimum(at, len(path) - 1 - at), n)
    off = (sums[at + half + 1] - sums[at - half]) / (2 * half + 1)[:, None] - path
    away = np.linalg.norm(off, axis=1, keepdims=True)
    return np.asarray(path + off * np.minimum(1.0, MAX_DEVIATION * size / np.maximum(away, 1e-12)))


def frame(points: Sequence[Array] | Array, aspect: float, towards: Array = FROM) -> tuple[Array, float]:
    """Return the point to look at and the distance from which all points are visible.

    Parameters
    ----------
    points : Sequence[Array] | Array
        (n, 3) m, or several such.
    aspect : float
        Width over height of the picture.
    towards : Array, optional
        From the robot to the camera.

    Returns
    -------
    tuple[Array, float]
        (3,) m, and m.
    """
    cloud = np.concatenate(points) if isinstance(points, Sequence) else points
    middle = 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    up = np.cross(towards, right)
    slope = tan(radians(0.5 * VIEW_DEG))
    for _ in range(3):  # the middle of what is seen, which depends on the distance but little
        off = cloud - middle
        x, y, depth = off @ right, off @ up, off @ towards
        middle = middle + 0.5 * (x.max() + x.min()) * right + 0.5 * (y.max() + y.min()) * up
    off = cloud - middle
    x, y, depth = np.abs(off @ right), np.abs(off @ up), off @ towards
    distance = float(np.max(np.maximum(x / (FILLED[0] * aspect), y / FILLED[1]) / slope + depth))
    return middle, max(distance, 1e-6)
