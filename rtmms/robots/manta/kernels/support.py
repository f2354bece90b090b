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
    out[start + 0] = ct * cb
    out[start + 1] = ct * sb * sg - st * cg
    out[start + 2] = ct * sb * cg + st * sg
    out[start + 3] = st * cb
    out[start + 4] = st * sb * sg + ct * cg
    out[start + 5] = st * sb * cg - ct * sg
    out[start + 6] = -sb
    out[start + 7] = cb * sg
    out[start + 8] = cb * cg

    out[start + 9] = 0.0
    out[start + 10] = r_back * c2
    out[start + 11] = r_back * s2
    out[start + 12] = 0.0
    out[start + 13] = -r_back * s2 * d2
    out[start + 14] = r_back * c2 * d2
    out[start + 15] = 0.0
    out[start + 16] = -r_back * (s2 * dd2 + c2 * d2 * d2)
    out[start + 17] = r_back * (c2 * dd2 - s2 * d2 * d2)

    # omega_r = Rx^T (Ry^T z theta' + y beta') + x gamma'
    b = cb * td
    bp = cb * tdd - sb * bd * td
    out[start + 18] = gd - sb * td
    out[start + 19] = cg * bd + sg * b
    out[start + 20] = cg * b - sg * bd
    out[start + 21] = gdd - sb * tdd - cb * bd * td
    out[start + 22] = cg * bdd + sg * bp + gd * (cg * b - sg * bd)
    out[start + 23] = cg * bp - sg * bdd - gd * (cg * bd + sg * b)

    # the same for unit rates: columns of the Jacobian, for the rods' torques by virtual power
    for rod in range(2):
        sign = 1.0 if rod == 0 else -1.0
        r = r_front if rod == 0 else r_back
        s = s1 if rod == 0 else s2
        c = c1 if rod == 0 else c2
        ju, jw = -sign * r * s, sign * r * c
        jX = -(u * ju + w * jw) / X
        jt = (X * ju - u * jX) / H2
        jb = -jw / H
        o = start + (JACOBIAN_FRONT if rod == 0 else JACOBIAN_BACK)
        py, pz = (0.0 * s, 0.0 * c) if rod == 0 else (-r * s, r * c)
        out[o] = out[start + 3] * py + out[start + 6] * pz
        out[o + 1] = out[start + 4] * py + out[start + 7] * pz
        out[o + 2] = out[start + 5] * py + out[start + 8] * pz
        out[o + 3] = half - sb * jt
        out[o + 4] = cg * jb + sg * cb * jt
        out[o + 5] = cg * cb * jt - sg * jb
    return True
