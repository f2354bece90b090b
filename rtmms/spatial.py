"""Twists, wrenches, transforms and inertias: [linear; angular], body frames, everywhere.

The plain functions here are for building and checking models; kernels use the scalar ones at the end.
A symmetric 6 x 6 inertia [[A, B], [B^T, C]] is packed into 21 numbers: A (xx xy xz yy yz zz), B by rows, C as A.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.jit import kernel

Array = npt.NDArray[np.float64]


def scalar(function: Callable[..., Any]) -> Any:
    """Decorator for small functions of scalars: compiled, and put in place where they are called."""
    return kernel(function, inline=True)


def skew(v: Array) -> Array:
    """v^ (3, 3) with v^ u = v x u."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def adjoint(rotation: Array, position: Array) -> Array:
    """(6, 6) twist in frame i -> twist in frame j, where frame j stands at (rotation, position) in frame i."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = rotation.T
    out[:3, 3:] = -rotation.T @ skew(position)
    return out


def ad(twist: Array) -> Array:
    """(6, 6) Lie bracket with a twist: ad_eta = [[W^, V^], [0, W^]]."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = skew(twist[3:])
    out[:3, 3:] = skew(twist[:3])
    return out


def inertia_matrix(mass: float, first_moment: Array, inertia: Array) -> Array:
    """(6, 6) rigid inertia about the frame's origin: mass kg, first moment kg m, inertia kg m2 about that origin."""
    s = skew(np.asarray(first_moment, dtype=float))
    return np.block([[mass * np.eye(3), -s], [s, np.asarray(inertia, dtype=float)]])


def pack_inertia(matrix: Array) -> Array:
    """(6, 6) symmetric -> (21,)."""
    a, b, c = matrix[:3, :3], matrix[:3, 3:], matrix[3:, 3:]
    upper = np.triu_indices(3)
    return np.concatenate([a[upper], b.ravel(), c[upper]])


def unpack_inertia(packed: Array) -> Array:
    """(21,) -> (6, 6)."""
    out = np.zeros((6, 6), dtype=packed.dtype)
    rows, columns = np.triu_indices(3)
    out[rows, columns] = out[columns, rows] = packed[:6]
    out[:3, 3:] = packed[6:15].reshape(3, 3)
    out[3:, :3] = out[:3, 3:].T
    out[rows + 3, columns + 3] = out[columns + 3, rows + 3] = packed[15:]
    return out


def rotation_x(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_z(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_about(axis: Array, angle: float) -> Array:
    """Rotation by `angle` (rad) about `axis` (unit): Rodrigues."""
    k = skew(axis)
    return np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)


def rotation_to(axis: Array) -> Array:
    """A rotation whose z column is the unit `axis`; the identity where the axis is z."""
    x, y, z = axis
    if z < 0.0:
        flip: Array = rotation_to(-np.asarray(axis)) @ np.diag([1.0, -1.0, -1.0])
        return flip
    k = skew(np.array([-y, x, 0.0]))  # z x axis
    turn: Array = np.eye(3) + k + k @ k / (1.0 + z)
    return turn


def quaternion_matrix(quaternion: Array) -> Array:
    """(w, x, y, z), body to world -> (3, 3); the quaternion is normalised first."""
    w, x, y, z = np.asarray(quaternion) / np.sqrt(np.sum(np.asarray(quaternion) ** 2))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def matrix_quaternion(rotation: Array) -> Array:
    """(3, 3) -> (w, x, y, z) with w >= 0."""
    r = np.asarray(rotation, dtype=float)
    k = np.array(
        [
            [r[0, 0] + r[1, 1] + r[2, 2], 0.0, 0.0, 0.0],
            [r[2, 1] - r[1, 2], r[0, 0] - r[1, 1] - r[2, 2], 0.0, 0.0],
            [r[0, 2] - r[2, 0], r[1, 0] + r[0, 1], r[1, 1] - r[0, 0] - r[2, 2], 0.0],
            [r[1, 0] - r[0, 1], r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], r[2, 2] - r[0, 0] - r[1, 1]],
        ]
    )
    _, vectors = np.linalg.eigh(k / 3.0, UPLO="L")
    q: Array = vectors[:, -1]
    return q if q[0] >= 0.0 else -q


@scalar
def cross(ax: Any, ay: Any, az: Any, bx: Any, by: Any, bz: Any) -> Any:
    """a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@scalar
def quaternion_columns(w: Any, x: Any, y: Any, z: Any) -> Any:
    """Rotation matrix by rows of a quaternion of any length > 0 (divided by its square, so that drift does no harm)."""
    n = 2.0 / (w * w + x * x + y * y + z * z)
    return (
        1.0 - n * (y * y + z * z), n * (x * y - z * w), n * (x * z + y * w),
        n * (x * y + z * w), 1.0 - n * (x * x + z * z), n * (y * z - x * w),
        n * (x * z - y * w), n * (y * z + x * w), 1.0 - n * (x * x + y * y),
    )  # fmt: skip
