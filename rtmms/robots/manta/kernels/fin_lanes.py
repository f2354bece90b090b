"""Chains of pseudo-rigid links on a moving support: O(m) articulated recursion, sixteen chains abreast.

All joints of a chain turn about the support's x axis, so a chain moves in its own y-z plane relative to the support.
Positions, velocities and forces are therefore kept in support axes, and a link's axes are d = (c, s) along it and
n = (-s, c) normal to it. The support's acceleration comes in as that of its origin (classical, A0) and W0'. Per joint
the generalised inertia of Qu 2024 (26) shrinks to its planar part (y, z, alpha); the rest (x, beta, gamma) cannot move
relative to the support and is summed as a rigid body.

Arrays are laid out as rtmms.robots.manta.kernels.fin_layout says. The compiler turns the loops over lanes into vector
instructions only because each touches few arrays, and every offset but the lane is constant: keep it so.

The implicit terms. With step t and gamma of a Rosenbrock method, g = gamma t: joint damping c and stiffness K enter as
the joint inertia g c + g^2 K, drag as the normal mass g |dF/dv|. They act against `recall` times the accelerations of
the stage before, the stiffness on the rate rate_q q' + rate_a q''. g = 0 gives the true accelerations.
"""

from __future__ import annotations

from rtmms.jit import Array, Floats, kernel
from rtmms.robots.manta.kernels.fin_fields import (
    add_nine,
    add_six,
    inertia_at,
    joint_at,
    keep,
    link_at,
    nine,
    put_nine,
    vector_at,
)
from rtmms.robots.manta.kernels.fin_layout import (
    A0_X,
    A0_Y,
    A0_Z,
    AN,
    CARRY_FIELDS,
    DW_X,
    DW_Y,
    DW_Z,
    G_JOINT,
    INV_D,
    INWARD,
    KAPPA,
    LANES,
    LENGTH,
    LINKS_MAX,
    OMEGA,
    P_A,
    P_Y,
    P_Z,
    QDD,
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
    C,
    Chains,
    F,
    L,
    S,
)
from rtmms.robots.manta.kernels.fin_link import FREE_END, ROOT, link_inward, link_outward
from rtmms.robots.manta.kernels.fin_sums import add_chain, push


@kernel(inline=True)
def _move(p: Array, lo: int, r: Array, ro: int, i: int, kept: Floats, solve: Floats, at: Floats) -> Floats:
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
def _accelerate(p: Array, lo: int, r: Array, ro: int, i: int, at: Floats) -> Floats:
    """The same with what `keep` stored."""
    kept = (r[ro + C * LANES + i], r[ro + S * LANES + i], r[ro + OMEGA * LANES + i])
    solve = (
        r[ro + U_YY * LANES + i], r[ro + U_ZZ * LANES + i], r[ro + U_AA * LANES + i], r[ro + INV_D * LANES + i],
        r[ro + TAU * LANES + i],
    )  # fmt: skip
    return _move(p, lo, r, ro, i, kept, solve, at)


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
    """Out and in along a chain of three links: (beyond, shares) at the root, (kept, solve) of each link."""
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
    """One block: forces and inertias of all links, then the recursion from the tips to the support.

    many      number of links a chain, or None for three: compiled with their number known, the usual case
    f, b      which fin, which block
    base      from chains.work[base] on (BASE_SIZE,) the motion of the support
    implicit  (g, recall, rate_q, rate_a), see above; g s is gamma times step, 0 for none
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
            beyond, share, kept, solve = _chain_of_three(p, r, i, x, motion, implicit, water, across)
            keep(r, 0, i, kept[0], solve[0])
            keep(r, F, i, kept[1], solve[1])
            keep(r, 2 * F, i, kept[2], solve[2])
            add_chain(sums, i, x, wx, wy, wz, beyond, share)
    else:
        _condense_any(many, f, b, chains, motion, implicit)
        station, carry = chains.params[f, b, many * L : many * L + LANES], chains.carry
        for i in range(LANES):
            add_chain(sums, i, station[i], wx, wy, wz, nine(carry, 7, i), nine(carry, 16, i))


@kernel
def _condense_any(m: int, f: int, b: int, chains: Chains, motion: Floats, implicit: Floats) -> None:
    """The same for any number of links: what passes from link to link goes through `carry`."""
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
            before, kept, share = link_outward(
                before, joint_at(r, 0, i), link_at(p, 0, i), station[i], motion,
                implicit, vector_at(flow, f, b, j, i), vector_at(normal, f, b, j, i),
            )  # fmt: skip
            carry[i], carry[LANES + i], carry[2 * LANES + i], carry[3 * LANES + i] = (
                before[0], before[1], before[2], before[3],
            )  # fmt: skip
            carry[4 * LANES + i], carry[5 * LANES + i], carry[6 * LANES + i] = before[4], before[5], before[6]
            add_nine(carry, 16, i, share)
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
        p = params[f, b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            kept = (
                r[C * LANES + i], r[S * LANES + i], r[OMEGA * LANES + i],
                r[KAPPA * LANES + i], r[P_Y * LANES + i],
                r[P_Z * LANES + i], r[P_A * LANES + i],
                r[G_JOINT * LANES + i], r[TAU * LANES + i],
            )  # fmt: skip
            beyond, solve = link_inward(nine(carry, 7, i), kept, inertia_at(p, 0, i))
            put_nine(carry, 7, i, beyond)
            keep(r, 0, i, kept, solve)


@kernel
def accelerate_block(many: int | None, f: int, b: int, chains: Chains, base: int) -> None:
    """Joint accelerations of one block, from the support out to the tips, once the support's acceleration is known.

    many, f, b, chains, base   as there, with A0 and DW filled in and the scratch as `condense_block` left it; QDD
                               rad/s2 and AN m/s2 are written
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
    """One block on a support whose acceleration is known: joint accelerations, and the force that this takes.

    As `condense_block` and `accelerate_block` in one, with A0 and DW filled in beforehand; only the six sums DRIVE_SUMS
    are added to, the wrench about the support's origin.
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
            beyond, share, kept, solve = _chain_of_three(p, r, i, x, motion, implicit, water, across)
            add_six(sums, i, push(x, motion, accel, beyond, share))
            at = (accel[1] + (accel[5] + wxy) * x, accel[2] + (wxz - accel[4]) * x, accel[3])
            at = _move(p, 0, r, 0, i, kept[0], solve[0], at)
            at = _move(p, L, r, F, i, kept[1], solve[1], at)
            at = _move(p, 2 * L, r, 2 * F, i, kept[2], solve[2], at)
    else:
        _condense_any(many, f, b, chains, motion, implicit)
        station, carry = chains.params[f, b, many * L : many * L + LANES], chains.carry
        for i in range(LANES):
            x = station[i]
            add_six(sums, i, push(x, motion, accel, nine(carry, 7, i), nine(carry, 16, i)))
        accelerate_block(many, f, b, chains, base)
