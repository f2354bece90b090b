"""Twists, wrenches, transforms and inertias: [linear; angular], body frames, everywhere.

The plain functions here are for building and checking models; kernels use the scalar ones at the end. A symmetric 6 x 6
inertia [[A, B], [B^T, C]] is packed into 21 numbers: A (xx xy xz yy yz zz), B by rows, C as A; see PACKED.
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
"""Place of each element of a symmetric 6 x 6 matrix among its packed numbers."""


def scalar(function: Callable[..., Any]) -> Any:
    """Decorate a small function of scalars so that it is compiled and inlined.

    Parameters
    ----------
    function : Callable[..., Any]
        The function.

    Returns
    -------
    Any
        The compiled function.
    """
    return kernel(function, inline=True)


def skew(v: Array) -> Array:
    """Return the matrix v^ with v^ u = v x u.

    Parameters
    ----------
    v : Array
        (3,) vector.

    Returns
    -------
    Array
        (3, 3) matrix.
    """
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def adjoint(rotation: Array, position: Array) -> Array:
    """Return the matrix from twists in frame i to twists in frame j.

    Parameters
    ----------
    rotation : Array
        (3, 3) attitude of frame j in frame i.
    position : Array
        (3,) position of frame j in frame i, m.

    Returns
    -------
    Array
        (6, 6) matrix.
    """
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = rotation.T
    out[:3, 3:] = -rotation.T @ skew(position)
    return out


def ad(twist: Array) -> Array:
    """Return the Lie bracket with a twist: ad_eta = [[W^, V^], [0, W^]].

    Parameters
    ----------
    twist : Array
        (6,) twist [linear, m/s; angular, rad/s].

    Returns
    -------
    Array
        (6, 6) matrix.
    """
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = skew(twist[3:])
    out[:3, 3:] = skew(twist[:3])
    return out


def inertia_matrix(mass: float, first_moment: Array, inertia: Array) -> Array:
    """Return the rigid inertia about the frame's origin.

    Parameters
    ----------
    mass : float
        Mass, kg.
    first_moment : Array
        (3,) first moment, kg m.
    inertia : Array
        (3, 3) inertia about the origin, kg m2.

    Returns
    -------
    Array
        (6, 6) matrix.
    """
    s = skew(np.asarray(first_moment, dtype=float))
    return np.block([[mass * np.eye(3), -s], [s, np.asarray(inertia, dtype=float)]])


def pack_inertia(matrix: Array) -> Array:
    """Return the packed numbers of a symmetric matrix.

    Parameters
    ----------
    matrix : Array
        (6, 6) symmetric matrix.

    Returns
    -------
    Array
        (21,) numbers.
    """
    upper = np.triu_indices(6)
    out = np.empty(PACKED_SIZE)
    out[PACKED[upper]] = matrix[upper]
    return out


def unpack_inertia(packed: Array) -> Array:
    """Return the matrix of packed numbers.

    Parameters
    ----------
    packed : Array
        (21,) numbers.

    Returns
    -------
    Array
        (6, 6) symmetric matrix.
    """
    out: Array = packed[PACKED]
    return out


def rotation_x(angle: float) -> Array:
    """Return the rotation about x.

    Parameters
    ----------
    angle : float
        Angle, rad.

    Returns
    -------
    Array
        (3, 3) matrix.
    """
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: float) -> Array:
    """Return the rotation about y.

    Parameters
    ----------
    angle : float
        Angle, rad.

    Returns
    -------
    Array
        (3, 3) matrix.
    """
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_z(angle: float) -> Array:
    """Return the rotation about z.

    Parameters
    ----------
    angle : float
        Angle, rad.

    Returns
    -------
    Array
        (3, 3) matrix.
    """
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_about(axis: Array, angle: float) -> Array:
    """Return the rotation about an axis, by Rodrigues' formula.

    Parameters
    ----------
    axis : Array
        (3,) unit vector.
    angle : float
        Angle, rad.

    Returns
    -------
    Array
        (3, 3) matrix.
    """
    k = skew(axis)
    return np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)


def rotation_to(axis: Array) -> Array:
    """Return a rotation with an axis as its z column.

    Parameters
    ----------
    axis : Array
        (3,) unit vector.

    Returns
    -------
    Array
        (3, 3) matrix; the identity if the axis is z.
    """
    x, y, z = axis
    if z < 0.0:
        flip: Array = rotation_to(-np.asarray(axis)) @ np.diag([1.0, -1.0, -1.0])
        return flip
    k = skew(np.array([-y, x, 0.0]))  # z x axis
    turn: Array = np.eye(3) + k + k @ k / (1.0 + z)
    return turn


def quaternion_matrix(quaternion: Array) -> Array:
    """Return the rotation matrix of a quaternion, which is normalised first.

    Parameters
    ----------
    quaternion : Array
        (w, x, y, z), body to world.

    Returns
    -------
    Array
        (3, 3) matrix.
    """
    w, x, y, z = np.asarray(quaternion) / np.sqrt(np.sum(np.asarray(quaternion) ** 2))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def matrix_quaternion(rotation: Array) -> Array:
    """Return the quaternion of a rotation matrix.

    Parameters
    ----------
    rotation : Array
        (3, 3) matrix.

    Returns
    -------
    Array
        (w, x, y, z) with w >= 0.
    """
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


def quaternion_product(item: Array, other: Array) -> Array:
    """Return the turn `other`, given in the frame that `item` turns to, then `item`.

    Parameters
    ----------
    item, other : Array
        Quaternions (w, x, y, z).

    Returns
    -------
    Array
        (4,) quaternion.
    """
    w, x, y, z = item
    product: Array = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]]) @ other
    return product


def rotation_vector(quaternion: Array) -> Array:
    """Return the rotation vector of a quaternion.

    Parameters
    ----------
    quaternion : Array
        (w, x, y, z) of any length > 0.

    Returns
    -------
    Array
        (3,) vector, rad, at most pi long.
    """
    w, v = float(quaternion[0]), np.asarray(quaternion[1:], dtype=float)
    if w < 0.0:
        w, v = -w, -v
    size = float(np.sqrt(v @ v))
    return v * (2.0 * math.atan2(size, w) / size if size > 1e-12 else 2.0 / w)


def heading(quaternion: Array) -> Array:
    """Return the yaw of body x in the world's horizontal plane, unwrapped.

    Parameters
    ----------
    quaternion : Array
        (k, 4) quaternions (w, x, y, z).

    Returns
    -------
    Array
        (k,) yaw, rad.
    """
    w, x, y, z = quaternion.T
    return np.unwrap(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


@scalar
def cross(ax: Any, ay: Any, az: Any, bx: Any, by: Any, bz: Any) -> Any:
    """Return a x b.

    Parameters
    ----------
    ax, ay, az, bx, by, bz : float
        Components in one frame.

    Returns
    -------
    tuple of 3 floats
        Components in that frame.
    """
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@scalar
def arctangent(y: Any, x: Any) -> Any:
    """Return atan2(y, x), also for complex numbers with tiny imaginary parts; 0 if both are 0.

    Parameters
    ----------
    y, x : float or complex
        The numbers.

    Returns
    -------
    float or complex
        Angle, rad.
    """
    a, b = y.real, x.real
    size = a * a + b * b
    turned = np.arctan2(a, b) + 0.0 * y
    if size > 0.0:
        turned += (b * (y - a) - a * (x - b)) / size
    return turned


@scalar
def quaternion_columns(w: Any, x: Any, y: Any, z: Any) -> Any:
    """Return the rotation matrix by rows of a quaternion of any length > 0.

    The quaternion is divided by its square, so that drift does no harm.

    Parameters
    ----------
    w, x, y, z : float
        The quaternion, body to world.

    Returns
    -------
    tuple of 9 floats
        The matrix by rows.
    """
    n = 2.0 / (w * w + x * x + y * y + z * z)
    return (
        1.0 - n * (y * y + z * z), n * (x * y - z * w), n * (x * z + y * w),
        n * (x * y + z * w), 1.0 - n * (x * x + z * z), n * (y * z - x * w),
        n * (x * z - y * w), n * (y * z + x * w), 1.0 - n * (x * x + y * y),
    )  # fmt: skip


@scalar
def unit_quaternion_rows(w: Any, x: Any, y: Any, z: Any) -> Any:
    """Return the rotation matrix by rows of a quaternion of length one.

    Parameters
    ----------
    w, x, y, z : float
        The quaternion, body to world.

    Returns
    -------
    tuple of 9 floats
        The matrix by rows.
    """
    return (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip


@scalar
def times(m: Any, j: Any, c: Any, vx: Any, vy: Any, vz: Any, wx: Any, wy: Any, wz: Any) -> Any:
    """Return [[A, B], [B^T, C]] (V; W) for a packed inertia.

    Parameters
    ----------
    m : (k, n) array
        Rows with packed inertias.
    j, c : int
        Row of the inertia, and its first column.
    vx, vy, vz, wx, wy, wz : float
        The twist (V; W), m/s and rad/s.

    Returns
    -------
    tuple of 6 floats
        The product.
    """
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
