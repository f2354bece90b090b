"""The fin's active mechanism: two rods on parallel axes carry a support of fixed length (Qu 2024, sec. 3.1, corrected).

Frame F_l sits at the back rod's motor, parallel to the body. A = (0, r2 c2, r2 s2) is the tip of the back rod, B the
tip of the front rod, which slides along x. The support's frame F_0 has its origin at A and its x axis from A to B.
Everything is for the left fin; the right one is its mirror image.
"""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, Floats, kernel

ROLL_ZERO, ROLL_MEAN = 0, 1

SUPPORT_SIZE = 40
"""Length of the array `support_motion` writes; the offsets below say where each quantity starts."""
ROTATION, POINT, POINT_RATE, POINT_ACCEL, OMEGA, OMEGA_RATE = 0, 9, 12, 15, 18, 21
JACOBIAN_FRONT, JACOBIAN_BACK = 24, 30
SINGULAR_MARGIN = 1e-4


@kernel(inline=True, fused=False)
def _put(out: Array, o: int, x: float, y: float, z: float) -> None:
    out[o], out[o + 1], out[o + 2] = x, y, z


@kernel(fused=False)
def support_motion(
    length: float, r_front: float, r_back: float, roll: int, alpha: Floats, rate: Floats, accel: Floats, out: Array,
    start: int,
) -> bool:  # fmt: skip
    """Pose, velocity and acceleration of the support relative to the body.

    length, r_front, r_back   m; the support AB and the two rods
    roll      ROLL_MEAN: the support rolls with the mean of the rods; ROLL_ZERO: the paper's F_0 without roll
    alpha, rate, accel        (2,) rad, rad/s, rad/s2 of front and back rod
    out       SUPPORT_SIZE numbers from out[start] on are written: ROTATION (3, 3) F_0 to F_l; POINT, POINT_RATE,
              POINT_ACCEL (3,) of A in F_l axes; OMEGA, OMEGA_RATE (3,) rotation rate of F_0 relative to the body and
              its component derivative, in F_0; JACOBIAN_FRONT, JACOBIAN_BACK (6,) twist of F_0 relative to the body,
              in F_0, for unit rate of each rod
    Returns True, or False where the geometry is singular (X = 0; out is then not to be used).
    """
    a1, a2 = alpha[0], alpha[1]
    s1, c1, s2, c2 = np.sin(a1), np.cos(a1), np.sin(a2), np.cos(a2)
    d1, d2, dd1, dd2 = rate[0], rate[1], accel[0], accel[1]

    u = r_front * c1 - r_back * c2
    w = r_front * s1 - r_back * s2
    ud = -r_front * s1 * d1 + r_back * s2 * d2
    wd = r_front * c1 * d1 - r_back * c2 * d2
    udd = -r_front * (s1 * dd1 + c1 * d1 * d1) + r_back * (s2 * dd2 + c2 * d2 * d2)
    wdd = r_front * (c1 * dd1 - s1 * d1 * d1) - r_back * (c2 * dd2 - s2 * d2 * d2)

    X2 = length * length - u * u - w * w
    if not X2.real > SINGULAR_MARGIN * length * length:
        return False
    X = np.sqrt(X2)
    H2 = length * length - w * w
    H = np.sqrt(H2)
    # AB = (X, u, w): theta turns it about z, beta is minus its elevation
    st, ct, sb, cb = u / H, X / H, -w / length, H / length
    Xd = -(u * ud + w * wd) / X
    Xdd = -(ud * ud + u * udd + wd * wd + w * wdd + Xd * Xd) / X
    td = (X * ud - u * Xd) / H2
    tdd = (X * udd - u * Xdd + 2.0 * td * w * wd) / H2
    bd = -wd / H
    bdd = -(wdd + w * wd * wd / H2) / H

    if roll == ROLL_MEAN:
        g, gd, gdd, half = 0.5 * (a1 + a2), 0.5 * (d1 + d2), 0.5 * (dd1 + dd2), 0.5
    else:
        g, gd, gdd, half = 0.0 * a1, 0.0 * a1, 0.0 * a1, 0.0

    sg, cg = np.sin(g), np.cos(g)
    # R = Rz(theta) Ry(beta) Rx(gamma)
    r = start + ROTATION
    out[r], out[r + 1], out[r + 2] = ct * cb, ct * sb * sg - st * cg, ct * sb * cg + st * sg
    out[r + 3], out[r + 4], out[r + 5] = st * cb, st * sb * sg + ct * cg, st * sb * cg - ct * sg
    out[r + 6], out[r + 7], out[r + 8] = -sb, cb * sg, cb * cg
    _put(out, start + POINT, 0.0, r_back * c2, r_back * s2)
    _put(out, start + POINT_RATE, 0.0, -r_back * s2 * d2, r_back * c2 * d2)
    _put(out, start + POINT_ACCEL, 0.0, -r_back * (s2 * dd2 + c2 * d2 * d2), r_back * (c2 * dd2 - s2 * d2 * d2))
    # omega_r = Rx^T (Ry^T z theta' + y beta') + x gamma'
    b = cb * td
    bp = cb * tdd - sb * bd * td
    _put(out, start + OMEGA, gd - sb * td, cg * bd + sg * b, cg * b - sg * bd)
    o = start + OMEGA_RATE
    out[o] = gdd - sb * tdd - cb * bd * td
    out[o + 1] = cg * bdd + sg * bp + gd * (cg * b - sg * bd)
    out[o + 2] = cg * bp - sg * bdd - gd * (cg * bd + sg * b)

    # the same for unit rates: columns of the Jacobian, for the rods' torques by virtual power
    for rod in range(2):
        sign = 1.0 if rod == 0 else -1.0
        length_r = r_front if rod == 0 else r_back
        s = s1 if rod == 0 else s2
        c = c1 if rod == 0 else c2
        ju, jw = -sign * length_r * s, sign * length_r * c
        jX = -(u * ju + w * jw) / X
        jt = (X * ju - u * jX) / H2
        jb = -jw / H
        o = start + (JACOBIAN_FRONT if rod == 0 else JACOBIAN_BACK)
        py, pz = (0.0 * s, 0.0 * c) if rod == 0 else (-length_r * s, length_r * c)
        for k in range(3):  # R^T (0, py, pz)
            out[o + k] = out[r + 3 + k] * py + out[r + 6 + k] * pz
        _put(out, o + 3, half - sb * jt, cg * jb + sg * cb * jt, cg * cb * jt - sg * jb)
    return True
