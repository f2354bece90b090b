"""Displacements on SE(3): the exponential and the logarithm of a twist, brackets; twists are [linear; angular]."""

from __future__ import annotations

import math

import numpy as np

from rtmms.spatial import Array, quaternion_matrix, quaternion_product, rotation_vector, skew


def bracket(a: Array, b: Array) -> Array:
    """[a, b] = ad_a b (6,): [W_a x V_b + V_a x W_b; W_a x W_b]."""
    return np.concatenate([np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])


def left_jacobian(turn: Array) -> Array:
    """(3, 3) J with p = J V for exp of (V; turn)."""
    angle = float(np.sqrt(turn @ turn))
    hat = skew(turn)
    if angle < 1e-4:
        small: Array = np.eye(3) + (0.5 - angle**2 / 24.0) * hat + (1.0 / 6.0 - angle**2 / 120.0) * (hat @ hat)
        return small
    a, b = (1.0 - math.cos(angle)) / angle**2, (angle - math.sin(angle)) / angle**3
    out: Array = np.eye(3) + a * hat + b * (hat @ hat)
    return out


def logarithm(pose: Array) -> Array:
    """(6,) twist whose exponential is the pose (7,): position, quaternion; of the turn of at most pi."""
    turn = rotation_vector(pose[3:])
    return np.concatenate([np.linalg.solve(left_jacobian(turn), pose[:3]), turn])


def composed(one: Array, other: Array) -> Array:
    """(7,) pose of `other`, given in the frame `one`, in the frame that `one` is given in."""
    turn = quaternion_product(one[3:], other[3:])
    return np.concatenate([one[:3] + quaternion_matrix(one[3:]) @ other[:3], turn])


def inverted(pose: Array) -> Array:
    """(7,) the pose of the world seen from the frame at `pose`."""
    back = pose[3:] * np.array([1.0, -1.0, -1.0, -1.0])
    return np.concatenate([-quaternion_matrix(back) @ pose[:3], back])
