"""Provide motion on SE(3): exponential, logarithm, brackets, and transport along a twist.

Twists are [linear; angular].

Notes
-----
`transport` moves a pose along the group, g' = g eta, by Magnus series of sixth order on Gauss's three nodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, quaternion_matrix, quaternion_product, rotation_vector, skew
from rtmms.dynamics.recursion import move_pose


def bracket(a: Array, b: Array) -> Array:
    """Return [a, b] = ad_a b = [W_a x V_b + V_a x W_b; W_a x W_b].

    Parameters
    ----------
    a, b : (6,) array
        Twists.

    Returns
    -------
    array
        (6,).
    """
    return np.concatenate([np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])


def left_jacobian(turn: Array) -> Array:
    """Return J with p = J V for the exponential of (V; turn).

    Parameters
    ----------
    turn : (3,) array
        Rotation vector, rad.

    Returns
    -------
    (3, 3) array
        J.
    """
    angle = float(np.sqrt(turn @ turn))
    hat = skew(turn)
    if angle < 1e-4:
        small: Array = np.eye(3) + (0.5 - angle**2 / 24.0) * hat + (1.0 / 6.0 - angle**2 / 120.0) * (hat @ hat)
        return small
    a, b = (1.0 - math.cos(angle)) / angle**2, (angle - math.sin(angle)) / angle**3
    out: Array = np.eye(3) + a * hat + b * (hat @ hat)
    return out


def logarithm(pose: Array) -> Array:
    """Return the twist whose exponential is a pose, with the turn of at most pi.

    Parameters
    ----------
    pose : (7,) array
        Position and quaternion.

    Returns
    -------
    (6,) array
        m, rad.
    """
    turn = rotation_vector(pose[3:])
    return np.concatenate([np.linalg.solve(left_jacobian(turn), pose[:3]), turn])


def compose_poses(item: Array, other: Array) -> Array:
    """Return the pose of `other`, given in the frame `item`, in the frame in which `item` is given.

    Parameters
    ----------
    item, other : (7,) array
        Position and quaternion.

    Returns
    -------
    (7,) array
        Position and quaternion.
    """
    turn = quaternion_product(item[3:], other[3:])
    return np.concatenate([item[:3] + quaternion_matrix(item[3:]) @ other[:3], turn])


def inverted(pose: Array) -> Array:
    """Return the pose of the world in the frame at a pose.

    Parameters
    ----------
    pose : (7,) array
        Position and quaternion.

    Returns
    -------
    (7,) array
        Position and quaternion.
    """
    back = pose[3:] * np.array([1.0, -1.0, -1.0, -1.0])
    return np.concatenate([-quaternion_matrix(back) @ pose[:3], back])


ROOT = float(np.sqrt(0.6))
NODES = np.array([0.5 - 0.5 * ROOT, 0.5, 0.5 + 0.5 * ROOT])
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
"""Gauss's nodes and weights on (0, 1), order 6."""


@kernel
def add_bracket(factor: float, a: Any, b: Any, out: Any) -> None:
    """Add factor [a, b] to a twist; [a, b] = [W_a x V_b + V_a x W_b; W_a x W_b].

    Parameters
    ----------
    factor : float
        Factor of the bracket.
    a, b : (6,) array
        Twists.
    out : (6,) array
        Sum; read and written.
    """
    out[0] += factor * (a[4] * b[2] - a[5] * b[1] + a[1] * b[5] - a[2] * b[4])
    out[1] += factor * (a[5] * b[0] - a[3] * b[2] + a[2] * b[3] - a[0] * b[5])
    out[2] += factor * (a[3] * b[1] - a[4] * b[0] + a[0] * b[4] - a[1] * b[3])
    out[3] += factor * (a[4] * b[5] - a[5] * b[4])
    out[4] += factor * (a[5] * b[3] - a[3] * b[5])
    out[5] += factor * (a[3] * b[4] - a[4] * b[3])


@kernel
def magnus(first: Any, two: Any, three: Any, h: float, z: Any) -> None:
    """Write the logarithm of the motion over a step to z[0].

    Parameters
    ----------
    first, two, three : (6,) array
        Twists of the body at the three nodes.
    h : float
        Length of the step, s.
    z : (8, 6) array
        Scratch; z[0] has the result.

    Notes
    -----
    Blanes and Casas, order 6. For g' = g eta the brackets have the sign opposite to that for Y' = A Y.
    """
    omega, a1, a2, a3, c1, c2, left, right = z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7]
    for k in range(6):
        a1[k] = h * two[k]
        a2[k] = np.sqrt(15.0) / 3.0 * h * (three[k] - first[k])
        a3[k] = 10.0 / 3.0 * h * (three[k] - 2.0 * two[k] + first[k])
        c1[k] = c2[k] = 0.0
        omega[k] = a1[k] + a3[k] / 12.0
    add_bracket(-1.0, a1, a2, c1)  # C1 = [a1, a2]
    for k in range(6):
        right[k] = 2.0 * a3[k] + c1[k]
    add_bracket(1.0 / 60.0, a1, right, c2)  # C2 = -[a1, 2 a3 + C1] / 60
    for k in range(6):
        left[k] = -20.0 * a1[k] - a3[k] + c1[k]
        right[k] = a2[k] + c2[k]
    add_bracket(-1.0 / 240.0, left, right, omega)  # + [-20 a1 - a3 + C1, a2 + C2] / 240


@kernel
def transport(twists: Any, lengths: Any, poses: Any, turned: Any, z: Any) -> None:
    """Move a pose over m steps.

    Parameters
    ----------
    twists : (3 m, 6) array
        Twists of the body at the nodes of the steps.
    lengths : (m,) array
        Lengths of the steps, s.
    poses : (m + 1, 7) array
        Poses from poses[0] on; the rest is written.
    turned : (m + 1,) array
        Sum of turns about z from turned[0] on, rad: in the plane the heading, not cut at pi; written.
    z : (8, 6) array
        Scratch.
    """
    for i in range(lengths.shape[0]):
        magnus(twists[3 * i], twists[3 * i + 1], twists[3 * i + 2], lengths[i], z)
        move_pose(poses[i], 0, z[0], 0, 1.0, poses[i + 1], 0)
        turned[i + 1] = turned[i] + z[0, 5]
