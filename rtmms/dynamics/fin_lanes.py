"""Chains of pseudo-rigid links on a moving support: O(m) articulated recursion, sixteen chains abreast.

All joints of a chain turn about the support's x axis, so a chain moves in its own y-z plane relative to the support.
Positions, velocities and forces are therefore kept in support axes, and a link's axes are d = (c, s) along it and
n = (-s, c) normal to it. The support's acceleration comes in as that of its origin (classical, A0) and W0'. Per joint
the generalised inertia of Qu 2024 (26) shrinks to its planar part (y, z, alpha); the rest (x, beta, gamma) cannot move
relative to the support and is summed as a rigid body.

A fin is cut into blocks of LANES chains, filled up with copies of the last chain whose masses, springs, dampers and
drag are all scaled by 2^-100: they move like the original, bit for bit, and vanish in every sum. What
belongs to one link of a block lies together, field by field, lane fastest. The compiler turns the loops over lanes into
vector instructions only because each touches few arrays, and every offset but the lane is constant: keep it so.

The implicit terms. With step t and gamma of a Rosenbrock method, g = gamma t: joint damping c and stiffness K enter as
the joint inertia g c + g^2 K, drag as the normal mass g |dF/dv|. They act against `recall` times the accelerations of
the stage before, the stiffness on the rate rate_q q' + rate_a q''. g = 0 gives the true accelerations.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from rtmms.dynamics.fin_link import FREE_END, ROOT, link_inward, link_outward
from rtmms.jit import INLINE, kernel

LANES = 16
LINKS_MAX = 24
INWARD = np.arange(LINKS_MAX)[::-1].copy()
"""Links from the tip to the root. Looked up, not counted down: the compiler moves its test whether rows overlap out of
a loop that counts down, finds that they might, and gives up on vectors."""

# parameters: (blocks, m LINK_FIELDS LANES + LANES), link by link, then the station of each chain
(LENGTH, MASS, J_X, J_D, J_N, STIFFNESS, DRAG, ADDED, DAMPING) = range(9)
LINK_FIELDS = 9

# motion of the support as the chains see it, one array a fin
(A0_X, A0_Y, A0_Z, W_X, W_Y, W_Z, DW_X, DW_Y, DW_Z, U_X, U_Y, U_Z) = range(12)
BASE_SIZE = 12
"""A0: classical acceleration of the support's origin, W, DW: angular velocity and its component derivative, U: velocity
of the origin relative to the water; all in support axes. A0 and DW are zero while the chains are being condensed."""

# what condensing leaves for the coupling: inertia felt at the support's origin and the force at zero acceleration
(YY, YZ, ZZ, YA, ZA, AA, SYY, SYZ, SZZ, SYA, SZA, SSYY, SSYZ, SSZZ, M, MY, MZ, IYY, IYZ, IZZ) = range(20)
(FX, FY, FZ, MX, MYB, MZB, SFY, SFZ) = range(20, 28)
SUMS = 28
DRIVE_SUMS = 6
"""The wrench [F; M] alone, of `drive_block`."""

# scratch: (fins, blocks, m FIELDS LANES), link by link
(Q, QD, QDD, AN, SUM_Q, SUM_QD, C, S, OMEGA, KAPPA, P_Y, P_Z, P_A, G_JOINT, TAU, U_YY, U_ZZ, U_AA, INV_D) = range(19)
FIELDS = 19
"""Q, QD are read; QDD, AN (normal acceleration of the link's middle) are written, and read as `recall`; SUM_* are the
integrators' own; the rest is what condensing leaves for accelerating."""

L, F = LINK_FIELDS * LANES, FIELDS * LANES

CARRY_FIELDS = 25
"""Passed from link to link where m is not 3: seven of `link_outward`, nine of `link_inward`, nine sums of links."""


@kernel(inline=True)
def _nine(a, k, i):
    """Nine fields of a lane, from field k on."""
    return (
        a[k * LANES + i], a[(k + 1) * LANES + i], a[(k + 2) * LANES + i], a[(k + 3) * LANES + i],
        a[(k + 4) * LANES + i], a[(k + 5) * LANES + i], a[(k + 6) * LANES + i], a[(k + 7) * LANES + i],
        a[(k + 8) * LANES + i],
    )  # fmt: skip


@kernel(inline=True)
def _add_six(a, i, values):
    for n in range(6):
        a[n * LANES + i] += values[n]


@kernel(inline=True)
def _put_nine(a, k, i, values):
    a[k * LANES + i], a[(k + 1) * LANES + i], a[(k + 2) * LANES + i] = values[0], values[1], values[2]
    a[(k + 3) * LANES + i], a[(k + 4) * LANES + i], a[(k + 5) * LANES + i] = values[3], values[4], values[5]
    a[(k + 6) * LANES + i], a[(k + 7) * LANES + i], a[(k + 8) * LANES + i] = values[6], values[7], values[8]


@kernel(inline=True)
def _add_nine(a, k, i, values):
    for n in range(9):
        a[(k + n) * LANES + i] += values[n]


@kernel(inline=True)
def _link(p, o, i):
    """Parameters of the link that starts at p[o], in the order of the names above."""
    return (
        p[o + LENGTH * LANES + i], p[o + MASS * LANES + i], p[o + J_X * LANES + i],
        p[o + J_D * LANES + i], p[o + J_N * LANES + i], p[o + STIFFNESS * LANES + i],
        p[o + DRAG * LANES + i], p[o + ADDED * LANES + i], p[o + DAMPING * LANES + i],
    )  # fmt: skip


@kernel(inline=True)
def _inertia(p, o, i):
    return p[o + LENGTH * LANES + i], p[o + MASS * LANES + i], p[o + J_X * LANES + i]


@kernel(inline=True)
def _joint(r, o, i):
    return (
        r[o + Q * LANES + i], r[o + QD * LANES + i], r[o + QDD * LANES + i],
        r[o + AN * LANES + i],
    )  # fmt: skip


def _vector(a, f, b, j, i):
    """The three fields of one link of an optional array, or None."""
    return None if a is None else (a[f, b, j, i], a[f, b, j, LANES + i], a[f, b, j, 2 * LANES + i])


@overload(_vector, jit_options=INLINE)
def _vector_compiled(a, f, b, j, i):
    # chosen by type: left to the compiler's pruning, the array's case would have an optional result
    if isinstance(a, types.NoneType):
        return lambda a, f, b, j, i: None
    return lambda a, f, b, j, i: (a[f, b, j, i], a[f, b, j, LANES + i], a[f, b, j, 2 * LANES + i])


@kernel(inline=True)
def _keep(r, o, i, kept, solve):
    """Store what `accelerate_block` needs of a link."""
    r[o + C * LANES + i] = kept[0]
    r[o + S * LANES + i] = kept[1]
    r[o + OMEGA * LANES + i] = kept[2]
    r[o + U_YY * LANES + i] = solve[0]
    r[o + U_ZZ * LANES + i] = solve[1]
    r[o + U_AA * LANES + i] = solve[2]
    r[o + INV_D * LANES + i] = solve[3]
    r[o + TAU * LANES + i] = solve[4]


@kernel(inline=True)
def _move(p, lo, r, ro, i, kept, solve, at):
    """A link's joint from the acceleration (y, z, alpha) of its centre and of the link before; the next link's."""
    ay, az, dom = at
    c, s, om = kept[0], kept[1], kept[2]
    qdd = (solve[4] - solve[0] * ay - solve[1] * az - solve[2] * dom) * solve[3]
    dom += qdd
    l = p[lo + LENGTH * LANES + i]
    r[ro + QDD * LANES + i] = qdd
    r[ro + AN * LANES + i] = c * az - s * ay + 0.5 * l * dom
    return ay - l * (dom * s + om * om * c), az + l * (dom * c - om * om * s), dom


@kernel(inline=True)
def _accelerate(p, lo, r, ro, i, at):
    """The same with what `_keep` stored."""
    kept = (r[ro + C * LANES + i], r[ro + S * LANES + i], r[ro + OMEGA * LANES + i])
    solve = (
        r[ro + U_YY * LANES + i], r[ro + U_ZZ * LANES + i], r[ro + U_AA * LANES + i], r[ro + INV_D * LANES + i],
        r[ro + TAU * LANES + i],
    )  # fmt: skip
    return _move(p, lo, r, ro, i, kept, solve, at)


@kernel(inline=True)
def _add_chain(sums, i, x, wx, wy, wz, beyond, shares):
    """Add a chain to the fin's sums: `beyond` as its root feels it, `shares` summed over its links."""
    yy, yz, zz, ya, za, aa, fy, fz, fa = beyond
    # the root's classical acceleration at zero A0 and W0': W x (W x (x, 0, 0))
    by, bz = wx * wy * x, wx * wz * x
    fy += yy * by + yz * bz
    fz += yz * by + zz * bz
    fa += ya * by + za * bz
    sums[YY * LANES + i] += yy
    sums[YZ * LANES + i] += yz
    sums[ZZ * LANES + i] += zz
    sums[YA * LANES + i] += ya
    sums[ZA * LANES + i] += za
    sums[AA * LANES + i] += aa
    sums[SYY * LANES + i] += x * yy
    sums[SYZ * LANES + i] += x * yz
    sums[SZZ * LANES + i] += x * zz
    sums[SYA * LANES + i] += x * ya
    sums[SZA * LANES + i] += x * za
    sums[SSYY * LANES + i] += x * x * yy
    sums[SSYZ * LANES + i] += x * x * yz
    sums[SSZZ * LANES + i] += x * x * zz
    sums[FY * LANES + i] += fy
    sums[FZ * LANES + i] += fz
    sums[MX * LANES + i] += fa
    sums[SFY * LANES + i] += x * fy
    sums[SFZ * LANES + i] += x * fz
    sums[M * LANES + i] += shares[0]
    sums[MY * LANES + i] += shares[1]
    sums[MZ * LANES + i] += shares[2]
    sums[IYY * LANES + i] += shares[3]
    sums[IZZ * LANES + i] += shares[4]
    sums[IYZ * LANES + i] += shares[5]
    sums[FX * LANES + i] += shares[6]
    sums[MYB * LANES + i] += shares[7]
    sums[MZB * LANES + i] += shares[8]


@kernel(inline=True)
def _chain_of_three(p, r, i, x, motion, implicit, water1, water2, water3, normal1, normal2, normal3):
    """Out and in along a chain of three links: (beyond, shares) at the root, (kept, solve) of each link."""
    at1, kept1, a = link_outward(ROOT, _joint(r, 0, i), _link(p, 0, i), x, motion, implicit, water1, normal1)
    at2, kept2, b = link_outward(at1, _joint(r, F, i), _link(p, L, i), x, motion, implicit, water2, normal2)
    _, kept3, c = link_outward(at2, _joint(r, 2 * F, i), _link(p, 2 * L, i), x, motion, implicit, water3, normal3)
    beyond, solve3 = link_inward(FREE_END, kept3, _inertia(p, 2 * L, i))
    beyond, solve2 = link_inward(beyond, kept2, _inertia(p, L, i))
    beyond, solve1 = link_inward(beyond, kept1, _inertia(p, 0, i))
    shares = (
        a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2], a[3] + b[3] + c[3], a[4] + b[4] + c[4],
        a[5] + b[5] + c[5], a[6] + b[6] + c[6], a[7] + b[7] + c[7], a[8] + b[8] + c[8],
    )  # fmt: skip
    return beyond, shares, (kept1, kept2, kept3), (solve1, solve2, solve3)


@kernel
def condense_block(many, f, b, params, scratch, water, normal, work, base, g, recall, rate_q, rate_a, carry, sums):
    """One block: forces and inertias of all links, then the recursion from the tips to the support.

    many       number of links a chain, or None for three: compiled with their number known, the usual case
    f, b       which fin, which block
    params     (blocks, m LINK_FIELDS LANES + LANES) see the names above
    scratch    (2, blocks, m FIELDS LANES) Q rad, QD rad/s, QDD and AN are read
    water      (2, blocks, m, 3 LANES) m/s, velocity of the water at each link beyond the uniform part, or None
    normal     (2, blocks, m, 3 LANES) direction that the drag acts along (support axes), or None for each link's own n
    work, base from work[base] on (BASE_SIZE,) motion of the support
    g          s                     gamma times step, 0 for none
    recall, rate_q, rate_a (s)       see above
    carry      (CARRY_FIELDS LANES,) scratch
    sums       (SUMS LANES,)         added to
    """
    wx, wy, wz = work[base + W_X], work[base + W_Y], work[base + W_Z]
    motion = (wx, wy, wz, work[base + U_X], work[base + U_Y], work[base + U_Z])
    implicit = (g, recall, rate_q, rate_a)
    p, r = params[b], scratch[f, b]
    if many is None:
        # the usual number, with all that passes from link to link in registers
        for i in range(LANES):
            x = p[3 * L + i]
            beyond, share, kept, solve = _chain_of_three(
                p, r, i, x, motion, implicit, _vector(water, f, b, 0, i), _vector(water, f, b, 1, i),
                _vector(water, f, b, 2, i), _vector(normal, f, b, 0, i), _vector(normal, f, b, 1, i),
                _vector(normal, f, b, 2, i),
            )  # fmt: skip
            _keep(r, 0, i, kept[0], solve[0])
            _keep(r, F, i, kept[1], solve[1])
            _keep(r, 2 * F, i, kept[2], solve[2])
            _add_chain(sums, i, x, wx, wy, wz, beyond, share)
    else:
        _condense_any(many, f, b, params, scratch, water, normal, motion, implicit, carry)
        station = params[b, many * L : many * L + LANES]
        for i in range(LANES):
            _add_chain(sums, i, station[i], wx, wy, wz, _nine(carry, 7, i), _nine(carry, 16, i))


@kernel
def _condense_any(m, f, b, params, scratch, water, normal, motion, implicit, carry):
    """The same for any number of links: what passes from link to link goes through `carry`."""
    for i in range(LANES):
        for k in range(CARRY_FIELDS):
            carry[k * LANES + i] = 0.0
        carry[i] = 1.0
    station = params[b, m * L : m * L + LANES]
    for j in range(m):
        p = params[b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            before = (
                carry[i], carry[LANES + i], carry[2 * LANES + i], carry[3 * LANES + i], carry[4 * LANES + i],
                carry[5 * LANES + i], carry[6 * LANES + i],
            )  # fmt: skip
            before, kept, share = link_outward(
                before, _joint(r, 0, i), _link(p, 0, i), station[i], motion,
                implicit, _vector(water, f, b, j, i), _vector(normal, f, b, j, i),
            )  # fmt: skip
            carry[i], carry[LANES + i], carry[2 * LANES + i], carry[3 * LANES + i] = (
                before[0], before[1], before[2], before[3],
            )  # fmt: skip
            carry[4 * LANES + i], carry[5 * LANES + i], carry[6 * LANES + i] = before[4], before[5], before[6]
            _add_nine(carry, 16, i, share)
            r[C * LANES + i] = kept[0]
            r[S * LANES + i] = kept[1]
            r[OMEGA * LANES + i] = kept[2]
            r[KAPPA * LANES + i] = kept[3]
            r[P_Y * LANES + i] = kept[4]
            r[P_Z * LANES + i] = kept[5]
            r[P_A * LANES + i] = kept[6]
            r[G_JOINT * LANES + i] = kept[7]
            r[TAU * LANES + i] = kept[8]
    for jj in range(m):
        j = INWARD[LINKS_MAX - m + jj]
        p = params[b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            kept = (
                r[C * LANES + i], r[S * LANES + i], r[OMEGA * LANES + i],
                r[KAPPA * LANES + i], r[P_Y * LANES + i],
                r[P_Z * LANES + i], r[P_A * LANES + i],
                r[G_JOINT * LANES + i], r[TAU * LANES + i],
            )  # fmt: skip
            beyond, solve = link_inward(_nine(carry, 7, i), kept, _inertia(p, 0, i))
            _put_nine(carry, 7, i, beyond)
            _keep(r, 0, i, kept, solve)


@kernel
def accelerate_block(many, f, b, params, work, base, scratch, carry):
    """Joint accelerations of one block, from the support out to the tips, once the support's acceleration is known.

    many, f, b, params  as there; from work[base] on (BASE_SIZE,) with A0 and DW filled in
    scratch  as `condense_block` left it; QDD rad/s2 and AN m/s2 written
    carry    (CARRY_FIELDS LANES,) scratch
    """
    ay0, az0 = work[base + A0_Y], work[base + A0_Z]
    dwx, dwy, dwz = work[base + DW_X], work[base + DW_Y], work[base + DW_Z]
    wxy, wxz = work[base + W_X] * work[base + W_Y], work[base + W_X] * work[base + W_Z]
    p, r = params[b], scratch[f, b]
    if many is None:
        for i in range(LANES):
            x = p[3 * L + i]
            at = (ay0 + (dwz + wxy) * x, az0 + (wxz - dwy) * x, dwx)
            at = _accelerate(p, 0, r, 0, i, at)
            at = _accelerate(p, L, r, F, i, at)
            at = _accelerate(p, 2 * L, r, 2 * F, i, at)
    else:
        station = params[b, many * L : many * L + LANES]
        for i in range(LANES):
            x = station[i]
            carry[i], carry[LANES + i], carry[2 * LANES + i] = ay0 + (dwz + wxy) * x, az0 + (wxz - dwy) * x, dwx
        for j in range(many):
            p = params[b, j * L : (j + 1) * L]
            r = scratch[f, b, j * F : (j + 1) * F]
            for i in range(LANES):
                at = _accelerate(p, 0, r, 0, i, (carry[i], carry[LANES + i], carry[2 * LANES + i]))
                carry[i], carry[LANES + i], carry[2 * LANES + i] = at[0], at[1], at[2]


@kernel(inline=True)
def _push(x, motion, accel, beyond, shares):
    """What the support must push a chain's root with when its own acceleration is known: F, M about its origin."""
    wx, wy, wz = motion[0], motion[1], motion[2]
    ax, ay, az, dx, dy, dz = accel
    yy, yz, zz, ya, za, aa, fy, fz, fa = beyond
    by, bz = ay + (dz + wx * wy) * x, az + (wx * wz - dy) * x
    fy += yy * by + yz * bz + ya * dx
    fz += yz * by + zz * bz + za * dx
    fa += ya * by + za * bz + aa * dx
    mass, my, mz, iyy, izz, iyz, fx, sy, sz = shares
    fx += mass * ax + mz * dy - my * dz
    sy += mz * ax + iyy * dy + iyz * dz - x * fz
    sz += -my * ax + iyz * dy + izz * dz + x * fy
    return fx, fy, fz, fa, sy, sz


@kernel
def drive_block(many, f, b, params, scratch, water, normal, work, base, g, recall, rate_q, rate_a, carry, sums):
    """One block on a support whose acceleration is known: joint accelerations, and the force that this takes.

    As `condense_block` and `accelerate_block` in one, with A0 and DW filled in beforehand; only the six sums DRIVE_SUMS
    are added to, the wrench about the support's origin.
    """
    motion = (
        work[base + W_X], work[base + W_Y], work[base + W_Z], work[base + U_X], work[base + U_Y], work[base + U_Z],
    )  # fmt: skip
    accel = (
        work[base + A0_X], work[base + A0_Y], work[base + A0_Z], work[base + DW_X], work[base + DW_Y],
        work[base + DW_Z],
    )  # fmt: skip
    implicit = (g, recall, rate_q, rate_a)
    wxy, wxz = motion[0] * motion[1], motion[0] * motion[2]
    p, r = params[b], scratch[f, b]
    if many is None:
        for i in range(LANES):
            x = p[3 * L + i]
            beyond, share, kept, solve = _chain_of_three(
                p, r, i, x, motion, implicit, _vector(water, f, b, 0, i), _vector(water, f, b, 1, i),
                _vector(water, f, b, 2, i), _vector(normal, f, b, 0, i), _vector(normal, f, b, 1, i),
                _vector(normal, f, b, 2, i),
            )  # fmt: skip
            _add_six(sums, i, _push(x, motion, accel, beyond, share))
            at = (accel[1] + (accel[5] + wxy) * x, accel[2] + (wxz - accel[4]) * x, accel[3])
            at = _move(p, 0, r, 0, i, kept[0], solve[0], at)
            at = _move(p, L, r, F, i, kept[1], solve[1], at)
            at = _move(p, 2 * L, r, 2 * F, i, kept[2], solve[2], at)
    else:
        _condense_any(many, f, b, params, scratch, water, normal, motion, implicit, carry)
        station = params[b, many * L : many * L + LANES]
        for i in range(LANES):
            x = station[i]
            _add_six(sums, i, _push(x, motion, accel, _nine(carry, 7, i), _nine(carry, 16, i)))
        accelerate_block(many, f, b, params, work, base, scratch, carry)


@kernel(inline=True)
def _sum_lanes(a, o):
    return (((a[o] + a[o + 1]) + (a[o + 2] + a[o + 3])) + ((a[o + 4] + a[o + 5]) + (a[o + 6] + a[o + 7]))) + (
        ((a[o + 8] + a[o + 9]) + (a[o + 10] + a[o + 11])) + ((a[o + 12] + a[o + 13]) + (a[o + 14] + a[o + 15]))
    )


@kernel
def collect_sums(sums, work, inertia, wrench):
    """Sum over the lanes: what the fin is to whoever moves the support.

    The support must be pushed with [F; M] = inertia [A0; W0'] + wrench, both about and of its origin, in its axes.
    From work[inertia] on (6, 6), from work[wrench] on (6,) are written; A0 is the classical acceleration.
    """
    yy, yz, zz = _sum_lanes(sums, YY * LANES), _sum_lanes(sums, YZ * LANES), _sum_lanes(sums, ZZ * LANES)
    ya, za, aa = _sum_lanes(sums, YA * LANES), _sum_lanes(sums, ZA * LANES), _sum_lanes(sums, AA * LANES)
    syy, syz, szz = _sum_lanes(sums, SYY * LANES), _sum_lanes(sums, SYZ * LANES), _sum_lanes(sums, SZZ * LANES)
    sya, sza = _sum_lanes(sums, SYA * LANES), _sum_lanes(sums, SZA * LANES)
    ssyy, ssyz, sszz = _sum_lanes(sums, SSYY * LANES), _sum_lanes(sums, SSYZ * LANES), _sum_lanes(sums, SSZZ * LANES)
    mass, my, mz = _sum_lanes(sums, M * LANES), _sum_lanes(sums, MY * LANES), _sum_lanes(sums, MZ * LANES)
    iyy, iyz, izz = _sum_lanes(sums, IYY * LANES), _sum_lanes(sums, IYZ * LANES), _sum_lanes(sums, IZZ * LANES)
    # a root at (x, 0, 0): a_y = A_y + W'_z x, a_z = A_z - W'_y x; M_y -= x F_z, M_z += x F_y
    n = inertia
    work[n], work[n + 1], work[n + 2] = mass, 0.0, 0.0
    work[n + 3], work[n + 4], work[n + 5] = 0.0, mz, -my
    work[n + 6], work[n + 7], work[n + 8] = 0.0, yy, yz
    work[n + 9], work[n + 10], work[n + 11] = ya, -syz, syy
    work[n + 12], work[n + 13], work[n + 14] = 0.0, yz, zz
    work[n + 15], work[n + 16], work[n + 17] = za, -szz, syz
    work[n + 18], work[n + 19], work[n + 20] = 0.0, ya, za
    work[n + 21], work[n + 22], work[n + 23] = aa, -sza, sya
    work[n + 24], work[n + 25], work[n + 26] = mz, -syz, -szz
    work[n + 27], work[n + 28], work[n + 29] = -sza, iyy + sszz, iyz - ssyz
    work[n + 30], work[n + 31], work[n + 32] = -my, syy, syz
    work[n + 33], work[n + 34], work[n + 35] = sya, iyz - ssyz, izz + ssyy
    work[wrench + 0] = _sum_lanes(sums, FX * LANES)
    work[wrench + 1] = _sum_lanes(sums, FY * LANES)
    work[wrench + 2] = _sum_lanes(sums, FZ * LANES)
    work[wrench + 3] = _sum_lanes(sums, MX * LANES)
    work[wrench + 4] = _sum_lanes(sums, MYB * LANES) - _sum_lanes(sums, SFZ * LANES)
    work[wrench + 5] = _sum_lanes(sums, MZB * LANES) + _sum_lanes(sums, SFY * LANES)


@kernel
def collect_wrench(sums, work, wrench):
    """Sum what `drive_block` added up over the lanes, to work[wrench] on (6,)."""
    for n in range(DRIVE_SUMS):
        work[wrench + n] = _sum_lanes(sums, n * LANES)


def padded(chains: int) -> int:
    """Number of lanes that `chains` fill, a whole number of blocks."""
    return -(-chains // LANES) * LANES


def pack_links(fields: np.ndarray, station: np.ndarray) -> np.ndarray:
    """Lay out a fin for the kernels.

    fields   (LINK_FIELDS, m, n) in the order of the names above
    station  (n,) m, where each chain stands on the support
    Returns (blocks, m LINK_FIELDS LANES + LANES), read-only; the surplus lanes repeat the last chain.
    """
    m, n = fields.shape[1], station.size
    lanes = np.minimum(np.arange(padded(n)), n - 1).reshape(-1, LANES)
    links = fields[:, :, lanes].transpose(2, 1, 0, 3).copy()
    surplus = np.arange(padded(n)).reshape(-1, LANES) >= n
    links[:, :, MASS:] *= np.where(surplus, 2.0**-100, 1.0)[:, None, None, :]
    packed = np.concatenate([links.reshape(len(lanes), m * L), station[lanes]], axis=1)
    packed.flags.writeable = False
    return packed
