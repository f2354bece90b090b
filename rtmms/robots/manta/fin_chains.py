"""Compute the chains of a fin, sixteen at once: the recursion, the sums over the lanes, and the paper's normals.

Chains of pseudo-rigid links on a moving support: O(m) articulated recursion. All joints of a chain turn about the
support's x axis, so a chain moves in its own y-z plane relative to the support. Positions, velocities and forces are
therefore in support axes, and a link's axes are d = (c, s) along it and n = (-s, c) normal to it. The support's
acceleration is that of its origin (classical, A0) and W0'. For each joint the generalised inertia of Qu 2024 (26)
shrinks to its planar part (y, z, alpha). The rest (x, beta, gamma) cannot move relative to the support and is summed as
a rigid body.

Arrays have the layout of rtmms.robots.manta.fin_layout. The compiler makes vector instructions of the loops over lanes.
It can do so only because each uses few arrays, and every offset but the lane is constant: preserve this.

The implicit terms: with step t and gamma of a Rosenbrock method, g = gamma t. Joint damping c and stiffness K enter as
the joint inertia g c + g^2 K, drag as the normal mass g |dF/dv|. They act against `recall` times the accelerations of
the stage before, the stiffness on the rate rate_q q' + rate_a q''. g = 0 gives the true accelerations.
"""

from __future__ import annotations

import numpy as np

from rtmms.base.jit import Array, Floats, kernel
from rtmms.robots.manta.fin_layout import (
    A0_X,
    A0_Y,
    A0_Z,
    AA,
    AN,
    CARRY_FIELDS,
    DRIVE_SUMS,
    DW_X,
    DW_Y,
    DW_Z,
    FX,
    FY,
    FZ,
    G_JOINT,
    INV_D,
    INWARD,
    IYY,
    IYZ,
    IZZ,
    KAPPA,
    LANES,
    LENGTH,
    MAX_LINKS,
    MX,
    MY,
    MYB,
    MZ,
    MZB,
    OMEGA,
    P_A,
    P_Y,
    P_Z,
    QDD,
    SFY,
    SFZ,
    SSYY,
    SSYZ,
    SSZZ,
    SYA,
    SYY,
    SYZ,
    SZA,
    SZZ,
    TAU,
    U_AA,
    U_X,
    U_Y,
    U_YY,
    U_Z,
    U_ZZ,
    W_X,
    W_Y,
    W_Z,
    YA,
    YY,
    YZ,
    ZA,
    ZZ,
    C,
    Chains,
    F,
    L,
    M,
    Q,
    S,
)
from rtmms.robots.manta.fin_link import (
    FREE_END,
    ROOT,
    add_nine,
    add_six,
    inertia_at,
    joint_at,
    keep,
    link_at,
    link_inward,
    link_outward,
    nine,
    put_nine,
    sine_cosine,
    vector_at,
)


@kernel(inline=True)
def add_chain(sums: Array, i: int, x: float, wx: float, wy: float, wz: float, beyond: Floats, shares: Floats) -> None:
    """Add a chain to the fin's sums.

    Parameters
    ----------
    sums : array
        Sums of the lanes; added to.
    i : int
        Lane.
    x : float
        Station of the chain on the support, m.
    wx, wy, wz : float
        Angular velocity of the support, rad/s, support axes.
    beyond : tuple of float
        Inertia and force at the chain's root.
    shares : tuple of float
        Sums over the links of what cannot move relative to the support.
    """
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
def push(x: float, motion: Floats, accel: Floats, beyond: Floats, shares: Floats) -> Floats:
    """Return the wrench of the support on a chain's root, about the support's origin, for a known acceleration.

    Parameters
    ----------
    x : float
        Station of the chain on the support, m.
    motion : tuple of float
        (W, U) of the support.
    accel : tuple of float
        A0 and W0' of the support.
    beyond, shares : tuple of float
        See `add_chain`.

    Returns
    -------
    tuple of float
        Force x, y, z, and moment x, y, z.
    """
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


@kernel(inline=True)
def _sum_lanes(a: Array, o: int) -> float:
    return (((a[o] + a[o + 1]) + (a[o + 2] + a[o + 3])) + ((a[o + 4] + a[o + 5]) + (a[o + 6] + a[o + 7]))) + (
        ((a[o + 8] + a[o + 9]) + (a[o + 10] + a[o + 11])) + ((a[o + 12] + a[o + 13]) + (a[o + 14] + a[o + 15]))
    )


@kernel
def collect_sums(sums: Array, work: Array, inertia: int, wrench: int) -> None:
    """Sum over the lanes, to the fin's inertia and wrench at the support.

    The support must push the fin with [F; M] = inertia [A0; W0'] + wrench, both about its origin, in its axes; A0 is
    the classical acceleration.

    Parameters
    ----------
    sums : array
        Sums of the lanes.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    inertia : int
        First index of the result (6, 6).
    wrench : int
        First index of the result (6,).
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
def collect_wrench(sums: Array, work: Array, wrench: int) -> None:
    """Sum the results of `drive_block` over the lanes.

    Parameters
    ----------
    sums : array
        Sums of the lanes.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    wrench : int
        First index of the result (6,).
    """
    for n in range(DRIVE_SUMS):
        work[wrench + n] = _sum_lanes(sums, n * LANES)


@kernel(inline=True)
def _move(p: Array, lo: int, r: Array, ro: int, i: int, floats: Floats, solve: Floats, at: Floats) -> Floats:
    """Write a link's joint acceleration, and return the acceleration (y, z, alpha) for the next link."""
    ay, az, dom = at
    c, s, om = floats[0], floats[1], floats[2]
    qdd = (solve[4] - solve[0] * ay - solve[1] * az - solve[2] * dom) * solve[3]
    dom += qdd
    l = p[lo + LENGTH * LANES + i]
    r[ro + QDD * LANES + i] = qdd
    r[ro + AN * LANES + i] = c * az - s * ay + 0.5 * l * dom
    return ay - l * (dom * s + om * om * c), az + l * (dom * c - om * om * s), dom


@kernel(inline=True)
def _accelerate(p: Array, lo: int, r: Array, ro: int, i: int, at: Floats) -> Floats:
    """Call `_move` with the values that `keep` stored."""
    stored = (r[ro + C * LANES + i], r[ro + S * LANES + i], r[ro + OMEGA * LANES + i])
    solve = (
        r[ro + U_YY * LANES + i], r[ro + U_ZZ * LANES + i], r[ro + U_AA * LANES + i], r[ro + INV_D * LANES + i],
        r[ro + TAU * LANES + i],
    )  # fmt: skip
    return _move(p, lo, r, ro, i, stored, solve, at)


@kernel(inline=True)
def _chain_of_three(
    p: Array,
    r: Array,
    i: int,
    x: float,
    motion: Floats,
    implicit: Floats,
    water: tuple[Floats | None, ...],
    normal: tuple[Floats | None, ...],
) -> tuple[Floats, Floats, tuple[Floats, ...], tuple[Floats, ...]]:
    """Compute a chain of three links outwards and inwards: (beyond, shares) at the root, (kept, solve) of each link."""
    at1, kept1, a = link_outward(ROOT, joint_at(r, 0, i), link_at(p, 0, i), x, motion, implicit, water[0], normal[0])
    at2, kept2, b = link_outward(at1, joint_at(r, F, i), link_at(p, L, i), x, motion, implicit, water[1], normal[1])
    _, kept3, c = link_outward(
        at2, joint_at(r, 2 * F, i), link_at(p, 2 * L, i), x, motion, implicit, water[2], normal[2]
    )
    beyond, solve3 = link_inward(FREE_END, kept3, inertia_at(p, 2 * L, i))
    beyond, solve2 = link_inward(beyond, kept2, inertia_at(p, L, i))
    beyond, solve1 = link_inward(beyond, kept1, inertia_at(p, 0, i))
    shares = (
        a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2], a[3] + b[3] + c[3], a[4] + b[4] + c[4],
        a[5] + b[5] + c[5], a[6] + b[6] + c[6], a[7] + b[7] + c[7], a[8] + b[8] + c[8],
    )  # fmt: skip
    return beyond, shares, (kept1, kept2, kept3), (solve1, solve2, solve3)


@kernel
def condense_block(many: int | None, f: int, b: int, chains: Chains, base: int, implicit: Floats) -> None:
    """Compute forces and inertias of all links of a block, then the recursion from the tips to the support.

    Parameters
    ----------
    many : int or None
        Number of links of a chain, or None for three: the compiler specialises on None.
    f, b : int
        Index of the fin and of its block.
    chains : Chains
        Arrays of both fins.
    base : int
        First index in chains.work of the support's motion (BASE_SIZE,).
    implicit : (float, float, float, float)
        g, recall, rate_q, rate_a of the stage; g = 0 for the true accelerations.
    """
    work, sums, flow, normal = chains.work, chains.sums, chains.water, chains.normal
    wx, wy, wz = work[base + W_X], work[base + W_Y], work[base + W_Z]
    motion = (wx, wy, wz, work[base + U_X], work[base + U_Y], work[base + U_Z])
    p, r = chains.params[f, b], chains.scratch[f, b]
    if many is None:
        # the usual number, with all that passes from link to link in registers
        for i in range(LANES):
            x = p[3 * L + i]
            water = (vector_at(flow, f, b, 0, i), vector_at(flow, f, b, 1, i), vector_at(flow, f, b, 2, i))
            across = (vector_at(normal, f, b, 0, i), vector_at(normal, f, b, 1, i), vector_at(normal, f, b, 2, i))
            beyond, share, stored, solve = _chain_of_three(p, r, i, x, motion, implicit, water, across)
            keep(r, 0, i, stored[0], solve[0])
            keep(r, F, i, stored[1], solve[1])
            keep(r, 2 * F, i, stored[2], solve[2])
            add_chain(sums, i, x, wx, wy, wz, beyond, share)
    else:
        _condense_any(many, f, b, chains, motion, implicit)
        station, carry = chains.params[f, b, many * L : many * L + LANES], chains.carry
        for i in range(LANES):
            add_chain(sums, i, station[i], wx, wy, wz, nine(carry, 7, i), nine(carry, 16, i))


@kernel
def _condense_any(m: int, f: int, b: int, chains: Chains, motion: Floats, implicit: Floats) -> None:
    """Do the same for any number of links; values from link to link are in `carry`."""
    params, scratch, flow, normal, carry = chains.params, chains.scratch, chains.water, chains.normal, chains.carry
    for i in range(LANES):
        for k in range(CARRY_FIELDS):
            carry[k * LANES + i] = 0.0
        carry[i] = 1.0
    station = params[f, b, m * L : m * L + LANES]
    for j in range(m):
        p = params[f, b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            before = (
                carry[i], carry[LANES + i], carry[2 * LANES + i], carry[3 * LANES + i], carry[4 * LANES + i],
                carry[5 * LANES + i], carry[6 * LANES + i],
            )  # fmt: skip
            before, stored, share = link_outward(
                before, joint_at(r, 0, i), link_at(p, 0, i), station[i], motion,
                implicit, vector_at(flow, f, b, j, i), vector_at(normal, f, b, j, i),
            )  # fmt: skip
            carry[i], carry[LANES + i], carry[2 * LANES + i], carry[3 * LANES + i] = (
                before[0], before[1], before[2], before[3],
            )  # fmt: skip
            carry[4 * LANES + i], carry[5 * LANES + i], carry[6 * LANES + i] = before[4], before[5], before[6]
            add_nine(carry, 16, i, share)
            r[C * LANES + i] = stored[0]
            r[S * LANES + i] = stored[1]
            r[OMEGA * LANES + i] = stored[2]
            r[KAPPA * LANES + i] = stored[3]
            r[P_Y * LANES + i] = stored[4]
            r[P_Z * LANES + i] = stored[5]
            r[P_A * LANES + i] = stored[6]
            r[G_JOINT * LANES + i] = stored[7]
            r[TAU * LANES + i] = stored[8]
    for jj in range(m):
        j = INWARD[MAX_LINKS - m + jj]
        p = params[f, b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            stored = (
                r[C * LANES + i], r[S * LANES + i], r[OMEGA * LANES + i],
                r[KAPPA * LANES + i], r[P_Y * LANES + i],
                r[P_Z * LANES + i], r[P_A * LANES + i],
                r[G_JOINT * LANES + i], r[TAU * LANES + i],
            )  # fmt: skip
            beyond, solve = link_inward(nine(carry, 7, i), stored, inertia_at(p, 0, i))
            put_nine(carry, 7, i, beyond)
            keep(r, 0, i, stored, solve)


@kernel
def accelerate_block(many: int | None, f: int, b: int, chains: Chains, base: int) -> None:
    """Compute the joint accelerations of a block, from support to tips, for a known acceleration of the support.

    A0 and DW are set, and the scratch is that of `condense_block`; QDD (rad/s2) and AN (m/s2) are written.

    Parameters
    ----------
    many : int or None
        Number of links of a chain, or None for three: the compiler specialises on None.
    f, b : int
        Index of the fin and of its block.
    chains : Chains
        Arrays of both fins.
    base : int
        First index in chains.work of the support's motion (BASE_SIZE,).
    """
    params, scratch, work, carry = chains.params, chains.scratch, chains.work, chains.carry
    ay0, az0 = work[base + A0_Y], work[base + A0_Z]
    dwx, dwy, dwz = work[base + DW_X], work[base + DW_Y], work[base + DW_Z]
    wxy, wxz = work[base + W_X] * work[base + W_Y], work[base + W_X] * work[base + W_Z]
    p, r = params[f, b], scratch[f, b]
    if many is None:
        for i in range(LANES):
            x = p[3 * L + i]
            at = (ay0 + (dwz + wxy) * x, az0 + (wxz - dwy) * x, dwx)
            at = _accelerate(p, 0, r, 0, i, at)
            at = _accelerate(p, L, r, F, i, at)
            at = _accelerate(p, 2 * L, r, 2 * F, i, at)
    else:
        station = params[f, b, many * L : many * L + LANES]
        for i in range(LANES):
            x = station[i]
            carry[i], carry[LANES + i], carry[2 * LANES + i] = ay0 + (dwz + wxy) * x, az0 + (wxz - dwy) * x, dwx
        for j in range(many):
            p = params[f, b, j * L : (j + 1) * L]
            r = scratch[f, b, j * F : (j + 1) * F]
            for i in range(LANES):
                at = _accelerate(p, 0, r, 0, i, (carry[i], carry[LANES + i], carry[2 * LANES + i]))
                carry[i], carry[LANES + i], carry[2 * LANES + i] = at[0], at[1], at[2]


@kernel
def drive_block(many: int | None, f: int, b: int, chains: Chains, base: int, implicit: Floats) -> None:
    """Compute joint accelerations of a block, and the wrench on its support, for a known acceleration of the support.

    It replaces `condense_block` and `accelerate_block`, with A0 and DW set before. Only the six sums DRIVE_SUMS are
    added to, the wrench about the support's origin.

    Parameters
    ----------
    many : int or None
        Number of links of a chain, or None for three: the compiler specialises on None.
    f, b : int
        Index of the fin and of its block.
    chains : Chains
        Arrays of both fins.
    base : int
        First index in chains.work of the support's motion (BASE_SIZE,).
    implicit : (float, float, float, float)
        g, recall, rate_q, rate_a of the stage; g = 0 for the true accelerations.
    """
    work, sums, flow, normal = chains.work, chains.sums, chains.water, chains.normal
    motion = (
        work[base + W_X], work[base + W_Y], work[base + W_Z], work[base + U_X], work[base + U_Y], work[base + U_Z],
    )  # fmt: skip
    accel = (
        work[base + A0_X], work[base + A0_Y], work[base + A0_Z], work[base + DW_X], work[base + DW_Y],
        work[base + DW_Z],
    )  # fmt: skip
    wxy, wxz = motion[0] * motion[1], motion[0] * motion[2]
    p, r = chains.params[f, b], chains.scratch[f, b]
    if many is None:
        for i in range(LANES):
            x = p[3 * L + i]
            water = (vector_at(flow, f, b, 0, i), vector_at(flow, f, b, 1, i), vector_at(flow, f, b, 2, i))
            across = (vector_at(normal, f, b, 0, i), vector_at(normal, f, b, 1, i), vector_at(normal, f, b, 2, i))
            beyond, share, stored, solve = _chain_of_three(p, r, i, x, motion, implicit, water, across)
            add_six(sums, i, push(x, motion, accel, beyond, share))
            at = (accel[1] + (accel[5] + wxy) * x, accel[2] + (wxz - accel[4]) * x, accel[3])
            at = _move(p, 0, r, 0, i, stored[0], solve[0], at)
            at = _move(p, L, r, F, i, stored[1], solve[1], at)
            at = _move(p, 2 * L, r, 2 * F, i, stored[2], solve[2], at)
    else:
        _condense_any(many, f, b, chains, motion, implicit)
        station, carry = chains.params[f, b, many * L : many * L + LANES], chains.carry
        for i in range(LANES):
            x = station[i]
            add_six(sums, i, push(x, motion, accel, nine(carry, 7, i), nine(carry, 16, i)))
        accelerate_block(many, f, b, chains, base)


@kernel(inline=True)
def _node(
    m: int, params: Array, scratch: Array, fin: int, chain: int, node: int
) -> tuple[float, float, float, float, float]:
    """Return (x, y, z) of the root (node 0) or of the far end of link `node` of a chain, and its direction there."""
    b, i = chain // LANES, chain % LANES
    y, z, c, s = 0.0, 0.0, 1.0, 0.0
    for j in range(node):
        sq, cq = sine_cosine(scratch[fin, b, j * F + Q * LANES + i])
        c, s = c * cq - s * sq, s * cq + c * sq
        l = params[fin, b, j * L + LENGTH * LANES + i]
        y += l * c
        z += l * s
    return params[fin, b, m * L + i], y, z, c, s


@kernel
def neighbour_normals(m: int, chains: int, fin: int, params: Array, scratch: Array, normals: Array | None) -> None:
    """Write unit normals n = R x d of every link, with R the line between the neighbouring chains at the link's joint.

    Parameters
    ----------
    m, chains : int
        Number of links of a chain, and of chains of a fin.
    fin : int
        0 for the left fin, 1 for the right.
    params, scratch : array
        As for `condense_block`.
    normals : (2, blocks, m, 3 LANES) array or None
        Result for this fin, support axes; surplus lanes have z. None where nothing uses them.

    Notes
    -----
    This is the paper's fin normal, across a link and the line between neighbouring chains (Qu 2024, eq. 11). The line
    is from the chain behind to the chain in front at the link's own joint. The chain behind alone makes the fin wriggle
    from chain to chain above 30 deg of amplitude. The link's far end would give 27 % more thrust than the links' own
    normals, where this gives 17 %.
    """
    if normals is None:
        return
    for b in range(params.shape[1]):
        for j in range(m):
            for i in range(LANES):
                normals[fin, b, j, i] = 0.0
                normals[fin, b, j, LANES + i] = 0.0
                normals[fin, b, j, 2 * LANES + i] = 1.0
    if chains < 2:
        for j in range(m):
            _, _, _, c, s = _node(m, params, scratch, fin, 0, j + 1)
            normals[fin, 0, j, LANES] = -s
            normals[fin, 0, j, 2 * LANES] = c
        return
    for chain in range(chains):
        b, i = chain // LANES, chain % LANES
        rear, front = max(chain - 1, 0), min(chain + 1, chains - 1)
        for j in range(m):
            x0, y0, z0, _, _ = _node(m, params, scratch, fin, rear, j)
            x1, y1, z1, _, _ = _node(m, params, scratch, fin, front, j)
            tx, ty, tz = x1 - x0, y1 - y0, z1 - z0
            _, _, _, c, s = _node(m, params, scratch, fin, chain, j + 1)
            nx, ny, nz = ty * s - tz * c, -tx * s, tx * c
            r = 1.0 / np.sqrt(nx * nx + ny * ny + nz * nz)
            normals[fin, b, j, i] = r * nx
            normals[fin, b, j, LANES + i] = r * ny
            normals[fin, b, j, 2 * LANES + i] = r * nz
