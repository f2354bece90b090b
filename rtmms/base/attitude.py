"""Vectors, attitudes and poses in plain Python: no array library loads.

Bridges, viewers and drawings of robots use it. Quaternions (w, x, y, z) turn body components into world components;
angles are in rad. `rtmms.base.spatial` has the same for arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import asin, atan2, cos, pi, sin

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


def rotate(q: Sequence[float], v: Sequence[float]) -> Vector:
    """Return the world components of a vector.

    Parameters
    ----------
    q : Sequence[float]
        Body-to-world quaternion (w, x, y, z) of length one.
    v : Sequence[float]
        Body components.

    Returns
    -------
    Vector
        World components, in the unit of `v`.

    Examples
    --------
    >>> rotate(turn(2, pi / 2.0), (1.0, 0.0, 0.0))[1]
    1.0
    """
    w, x, y, z = q
    # v + 2 w (u x v) + 2 u x (u x v), u = (x, y, z)
    a, b, c = y * v[2] - z * v[1], z * v[0] - x * v[2], x * v[1] - y * v[0]
    return (
        v[0] + 2.0 * (w * a + y * c - z * b),
        v[1] + 2.0 * (w * b + z * a - x * c),
        v[2] + 2.0 * (w * c + x * b - y * a),
    )


def rotate_back(q: Sequence[float], v: Sequence[float]) -> Vector:
    """Return the body components of a vector.

    Parameters
    ----------
    q : Sequence[float]
        Body-to-world quaternion (w, x, y, z) of length one.
    v : Sequence[float]
        World components.

    Returns
    -------
    Vector
        Body components, in the unit of `v`.
    """
    return rotate((q[0], -q[1], -q[2], -q[3]), v)


def cross(a: Sequence[float], b: Sequence[float]) -> Vector:
    """Return the cross product a x b.

    Parameters
    ----------
    a, b : Sequence[float]
        Components in one frame.

    Returns
    -------
    Vector
        Components in that frame.
    """
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def multiply(p: Sequence[float], q: Sequence[float]) -> Quaternion:
    """Return the product p q: the rotation q, then p.

    Parameters
    ----------
    p, q : Sequence[float]
        Quaternions (w, x, y, z).

    Returns
    -------
    Quaternion
        The product (w, x, y, z).
    """
    a, b, c, d = p
    w, x, y, z = q
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


def upright(q: Sequence[float]) -> Quaternion:
    """Return the same attitude with w >= 0.

    Parameters
    ----------
    q : Sequence[float]
        Quaternion (w, x, y, z).

    Returns
    -------
    Quaternion
        The quaternion or its negative.
    """
    w, x, y, z = q
    return (w, x, y, z) if w >= 0.0 else (-w, -x, -y, -z)


def euler(q: Sequence[float]) -> Vector:
    """Return roll, pitch and yaw: turns about z, then y, then x.

    Of FRD to NED they are the aircraft's. Of FLU to world they are ours, with pitch > 0 for nose down. At pitch of a
    quarter turn, roll is 0.

    Parameters
    ----------
    q : Sequence[float]
        Quaternion (w, x, y, z) of length one.

    Returns
    -------
    Vector
        Angles, rad.
    """
    w, x, y, z = q
    sine = 2.0 * (w * y - x * z)
    if abs(sine) > 1.0 - 1e-12:
        return 0.0, pi / 2.0 if sine > 0 else -pi / 2.0, -2.0 * atan2(x, w) if sine > 0 else 2.0 * atan2(x, w)
    return (
        atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        asin(sine),
        atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )


def from_euler(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Return the quaternion of roll, pitch and yaw, the inverse of `euler`.

    Parameters
    ----------
    roll, pitch, yaw : float
        Angles, rad.

    Returns
    -------
    Quaternion
        Quaternion (w, x, y, z) with w >= 0.
    """
    a, b, c = 0.5 * roll, 0.5 * pitch, 0.5 * yaw
    ca, sa, cb, sb, cc, sc = cos(a), sin(a), cos(b), sin(b), cos(c), sin(c)
    return upright((
        ca * cb * cc + sa * sb * sc, sa * cb * cc - ca * sb * sc, ca * sb * cc + sa * cb * sc,
        ca * cb * sc - sa * sb * cc,
    ))  # fmt: skip


Pose = tuple[Vector, Quaternion]
"""Position, m, and attitude (w, x, y, z), as of a part's frame in the body's."""

HOME: Pose = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))


def after(parent: Pose, child: Pose) -> Pose:
    """Return a child's pose in the frame of its parent's pose.

    Parameters
    ----------
    parent : Pose
        Pose of the parent.
    child : Pose
        Pose of the child, in the parent's frame.

    Returns
    -------
    Pose
        Pose of the child.
    """
    return at(parent, child[0]), multiply(parent[1], child[1])


def at(pose: Pose, point: Sequence[float]) -> Vector:
    """Return a point in the frame of a pose.

    Parameters
    ----------
    pose : Pose
        Pose of the point's frame.
    point : Sequence[float]
        The point in its frame, m.

    Returns
    -------
    Vector
        The point, m.
    """
    (x, y, z), q = pose
    a, b, c = rotate(q, point)
    return x + a, y + b, z + c


def turn(axis: int, angle: float) -> Quaternion:
    """Return the quaternion of a turn about an axis.

    Parameters
    ----------
    axis : int
        x (0), y (1) or z (2).
    angle : float
        Angle, rad.

    Returns
    -------
    Quaternion
        Quaternion (w, x, y, z).
    """
    part = [0.0, 0.0, 0.0]
    part[axis] = sin(0.5 * angle)
    return cos(0.5 * angle), part[0], part[1], part[2]


def wrap_angle(angle: float) -> float:
    """Return the same angle within (-pi, pi].

    Parameters
    ----------
    angle : float
        Angle, rad.

    Returns
    -------
    float
        rad.

    Examples
    --------
    >>> wrap_angle(1.5 * pi) == -0.5 * pi
    True
    """
    return -((-angle + pi) % (2.0 * pi) - pi)
