"""Twists, wrenches, transforms and inertias: [linear; angular], body frames, everywhere.

The plain functions here are for building and checking models; kernels use the scalar ones at the end.
A symmetric 6 x 6 inertia [[A, B], [B^T, C]] is packed into 21 numbers: A (xx xy xz yy yz zz), B by rows, C as A; see
PACKED.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.jit import kernel

Array = npt.NDArray[np.float64]

(AXX, AXY, AXZ, AYY, AYZ, AZZ, BXX, BXY, BXZ, BYX, BYY, BYZ, BZX, BZY, BZZ, CXX, CXY, CXZ, CYY, CYZ, CZZ) = range(21)
PACKED_SIZE = 21
PACKED = np.array(
    [
        [AXX, AXY, AXZ, BXX, BXY, BXZ],
        [AXY, AYY, AYZ, BYX, BYY, BYZ],
        [AXZ, AYZ, AZZ, BZX, BZY, BZZ],
        [BXX, BYX, BZX, CXX, CXY, CXZ],
        [BXY, BYY, BZY, CXY, CYY, CYZ],
        [BXZ, BYZ, BZZ, CXZ, CYZ, CZZ],
    ]
)
"""Where each element of a symmetric 6 x 6 matrix stands among its packed numbers."""


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
    upper = np.triu_indices(6)
    out = np.empty(PACKED_SIZE)
    out[PACKED[upper]] = matrix[upper]
    return out


def unpack_inertia(packed: Array) -> Array:
    """(21,) -> (6, 6)."""
    out: Array = packed[PACKED]
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


def quaternion_product(one: Array, other: Array) -> Array:
    """(4,) the turn `other`, given in the frame that `one` turns to, then `one`."""
    w, x, y, z = one
    product: Array = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]]) @ other
    return product


def rotation_vector(quaternion: Array) -> Array:
    """(3,) rad, at most pi long, of (w, x, y, z)."""
    w, v = float(quaternion[0]), np.asarray(quaternion[1:], dtype=float)
    if w < 0.0:
        w, v = -w, -v
    size = float(np.sqrt(v @ v))
    return v * (2.0 * math.atan2(size, w) / size if size > 1e-12 else 2.0 / w)


def heading(quaternion: Array) -> Array:
    """(k,) rad, yaw of body x in the world's horizontal plane, unwrapped; quaternion (k, 4)."""
    w, x, y, z = quaternion.T
    return np.unwrap(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


@scalar
def cross(ax: Any, ay: Any, az: Any, bx: Any, by: Any, bz: Any) -> Any:
    """a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@scalar
def arctangent(y: Any, x: Any) -> Any:
    """atan2(y, x), also where both are complex with tiny imaginary parts; 0 where both are 0."""
    a, b = y.real, x.real
    size = a * a + b * b
    turned = np.arctan2(a, b) + 0.0 * y
    if size > 0.0:
        turned += (b * (y - a) - a * (x - b)) / size
    return turned


@scalar
def quaternion_columns(w: Any, x: Any, y: Any, z: Any) -> Any:
    """Rotation matrix by rows of a quaternion of any length > 0 (divided by its square, so that drift does no harm)."""
    n = 2.0 / (w * w + x * x + y * y + z * z)
    return (
        1.0 - n * (y * y + z * z), n * (x * y - z * w), n * (x * z + y * w),
        n * (x * y + z * w), 1.0 - n * (x * x + z * z), n * (y * z - x * w),
        n * (x * z - y * w), n * (y * z + x * w), 1.0 - n * (x * x + y * y),
    )  # fmt: skip


@scalar
def times(m: Any, j: Any, c: Any, vx: Any, vy: Any, vz: Any, wx: Any, wy: Any, wz: Any) -> Any:
    """[[A, B], [B^T, C]] (V; W), the packed inertia standing in m[j] from column c on."""
    axx, axy, axz, ayy, ayz, azz = (
        m[j, c + AXX], m[j, c + AXY], m[j, c + AXZ], m[j, c + AYY], m[j, c + AYZ], m[j, c + AZZ],
    )  # fmt: skip
    bxx, bxy, bxz = m[j, c + BXX], m[j, c + BXY], m[j, c + BXZ]
    byx, byy, byz = m[j, c + BYX], m[j, c + BYY], m[j, c + BYZ]
    bzx, bzy, bzz = m[j, c + BZX], m[j, c + BZY], m[j, c + BZZ]
    cxx, cxy, cxz, cyy, cyz, czz = (
        m[j, c + CXX], m[j, c + CXY], m[j, c + CXZ], m[j, c + CYY], m[j, c + CYZ], m[j, c + CZZ],
    )  # fmt: skip
    return (
        axx * vx + axy * vy + axz * vz + bxx * wx + bxy * wy + bxz * wz,
        axy * vx + ayy * vy + ayz * vz + byx * wx + byy * wy + byz * wz,
        axz * vx + ayz * vy + azz * vz + bzx * wx + bzy * wy + bzz * wz,
        bxx * vx + byx * vy + bzx * vz + cxx * wx + cxy * wy + cxz * wz,
        bxy * vx + byy * vy + bzy * vz + cxy * wx + cyy * wy + cyz * wz,
        bxz * vx + byz * vy + bzz * vz + cxz * wx + cyz * wy + czz * wz,
    )
