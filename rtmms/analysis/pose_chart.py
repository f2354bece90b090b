"""Coordinates of a pose around another: e and theta in its body axes, p = p_ref + R_ref e, R = R_ref exp theta^."""

from __future__ import annotations

import math

import numpy as np

from rtmms.spatial import Array, matrix_quaternion, quaternion_matrix, rotation_about


def displaced(pose: Array, c: Array) -> Array:
    """(7,) position m and quaternion, of a pose (7,) moved by c (6,) m, rad."""
    out, r = pose.copy(), quaternion_matrix(pose[3:])
    out[:3] += r @ c[:3]
    angle = float(np.linalg.norm(c[3:]))
    if angle > 0.0:
        out[3:] = matrix_quaternion(r @ rotation_about(c[3:] / angle, angle))
        if out[3:] @ pose[3:] < 0.0:  # the same sheet, so that differences of quaternions stay small
            out[3:] *= -1.0
    return out


def displacement(pose: Array, other: Array) -> Array:
    """(6,) m, rad: the c that moves `pose` to `other`, both (7,)."""
    r = quaternion_matrix(pose[3:])
    turn = r.T @ quaternion_matrix(other[3:])
    axial = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    sine, cosine = float(np.linalg.norm(axial)) / 2.0, (float(np.trace(turn)) - 1.0) / 2.0
    theta = axial / 2.0 * (math.atan2(sine, cosine) / sine if sine > 1e-12 else 1.0)
    return np.concatenate([r.T @ (other[:3] - pose[:3]), theta])
