"""Operators on twists and wrenches, and the motion of a fin's support, in plain Python, for plain_manta.py.

Twists and wrenches are [linear; angular]; a dash marks the derivative of components. Equation numbers are those of Qu
et al. 2024 with the corrections of docs/manta.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.robots.manta.parameters import MantaParameters

Array = npt.NDArray[np.float64]

AXIS = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
"""A_j: every joint of a fin turns about its frame's x."""


def skew(v: Array) -> Array:
    """The matrix of v x."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def adjoint(rotation: Array, point: Array) -> Array:
    """(6, 6) twist at the parent's origin in parent axes to the twist at `point` in the child's axes, eq. (2)."""
    ad = np.zeros((6, 6))
    ad[:3, :3] = rotation.T
    ad[:3, 3:] = -rotation.T @ skew(point)
    ad[3:, 3:] = rotation.T
    return ad


def ad_operator(eta: Array) -> Array:
    """(6, 6) the operator ad of a twist, eq. (4)."""
    ad = np.zeros((6, 6))
    ad[:3, :3] = ad[3:, 3:] = skew(eta[3:])
    ad[:3, 3:] = skew(eta[:3])
    return ad


def rotation_of(quaternion: Array) -> Array:
    """(3, 3) body to world from (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@dataclass
class Support:
    """The support AB seen from the body: where it is, how it turns, and what each rod contributes."""

    rotation: Array  # (3, 3) support to body
    point: Array  # (3,) of end A in F_l
    point_rate: Array
    point_acceleration: Array
    omega: Array  # (3,) relative to the body, support axes
    omega_rate: Array
    rates_of_rods: Array  # (6, 2) [R^T dPd/d(rod rate); domega/d(rod rate)], front rod first


def support_motion(p: MantaParameters, angle: Array, rate: Array, acceleration: Array) -> Support:
    """The left fin's support from its rods, front rod first: angle, rate and acceleration each (2,)."""
    a1, a2 = angle
    d1, d2 = rate
    e1, e2 = acceleration
    r1, r2, length = p.front_rod_m, p.back_rod_m, p.support_length_m
    s1, c1, s2, c2 = math.sin(a1), math.cos(a1), math.sin(a2), math.cos(a2)
    u, w = r1 * c1 - r2 * c2, r1 * s1 - r2 * s2
    ud, wd = -r1 * s1 * d1 + r2 * s2 * d2, r1 * c1 * d1 - r2 * c2 * d2
    udd = -r1 * (c1 * d1**2 + s1 * e1) + r2 * (c2 * d2**2 + s2 * e2)
    wdd = r1 * (-s1 * d1**2 + c1 * e1) - r2 * (-s2 * d2**2 + c2 * e2)
    x = math.sqrt(length**2 - u**2 - w**2)
    hh = length**2 - w**2
    h = math.sqrt(hh)
    theta, beta = math.atan2(u, x), -math.asin(w / length)
    xd = -(u * ud + w * wd) / x
    xdd = -(ud**2 + u * udd + wd**2 + w * wdd + xd**2) / x
    thetad, betad = (x * ud - u * xd) / hh, -wd / h
    thetadd = (x * udd - u * xdd + 2 * thetad * w * wd) / hh
    betadd = -(wdd + w * wd**2 / hh) / h
    mean = p.support_roll == "mean"
    gamma, gammad, gammadd = ((a1 + a2) / 2, (d1 + d2) / 2, (e1 + e2) / 2) if mean else (0.0, 0.0, 0.0)

    st, ct, sb, cb, sg, cg = *sine_cosine(theta), *sine_cosine(beta), *sine_cosine(gamma)
    rz = np.array([[ct, -st, 0.0], [st, ct, 0.0], [0.0, 0.0, 1.0]])
    ry = np.array([[cb, 0.0, sb], [0.0, 1.0, 0.0], [-sb, 0.0, cb]])
    rx = np.array([[1.0, 0.0, 0.0], [0.0, cg, -sg], [0.0, sg, cg]])
    rotation = rz @ ry @ rx
    ex, ey, z_seen = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([-sb, 0.0, cb])
    turning = rx.T @ (thetad * z_seen + betad * ey)  # (10), with the roll after it
    turning_rate = rx.T @ (thetadd * z_seen + thetad * betad * np.array([-cb, 0.0, -sb]) + betadd * ey)

    def by_rod(ud_i: float, wd_i: float, back: float) -> Array:
        """[R^T Pd; omega] for one rod at unit rate, the other at rest."""
        xd_i = -(u * ud_i + w * wd_i) / x
        spin = rx.T @ ((x * ud_i - u * xd_i) / hh * z_seen - wd_i / h * ey) + (0.5 if mean else 0.0) * ex
        return np.concatenate([rotation.T @ np.array([0.0, -r2 * s2 * back, r2 * c2 * back]), spin])

    return Support(
        rotation,
        np.array([0.0, r2 * c2, r2 * s2]),
        np.array([0.0, -r2 * s2 * d2, r2 * c2 * d2]),
        np.array([0.0, -r2 * (c2 * d2**2 + s2 * e2), r2 * (-s2 * d2**2 + c2 * e2)]),
        turning + gammad * ex,
        turning_rate - gammad * np.cross(ex, turning) + gammadd * ex,
        np.column_stack([by_rod(-r1 * s1, r1 * c1, 0.0), by_rod(r2 * s2, -r2 * c2, 1.0)]),
    )


def sine_cosine(angle: float) -> tuple[float, float]:
    return math.sin(angle), math.cos(angle)


def support_base(p: MantaParameters, s: Support, eta_b: Array) -> tuple[Array, Array, Array]:
    """Twist at end A, its rate without the body's acceleration, and what multiplies that: (10), corrected."""
    rt = s.rotation.T
    v, w = eta_b[:3], eta_b[3:]
    r = np.array(p.fin_root_m) + s.point
    w_seen = rt @ w
    v0 = rt @ (v + np.cross(w, r) + s.point_rate)
    v0_rate = rt @ (np.cross(w, s.point_rate) + s.point_acceleration) - np.cross(s.omega, v0)
    w0_rate = -np.cross(s.omega, w_seen) + s.omega_rate
    return np.concatenate([v0, w_seen + s.omega]), np.concatenate([v0_rate, w0_rate]), adjoint(s.rotation, r)
