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
from rtmms.robots.manta.kernels import fin_layout as lay
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
from rtmms.robots.manta.kernels.fin_layout import LANES, F, L
from rtmms.robots.manta.kernels.fin_link import FREE_END, ROOT, link_inward, link_outward
from rtmms.robots.manta.kernels.fin_sums import add_chain, push


@kernel(inline=True)
def _move(p: Array, lo: int, r: Array, ro: int, i: int, kept: Floats, solve: Floats, at: Floats) -> Floats:
    """A link's joint from the acceleration (y, z, alpha) of its centre and of the link before; the next link's."""
    ay, az, dom = at
    c, s, om = kept[0], kept[1], kept[2]
    qdd = (solve[4] - solve[0] * ay - solve[1] * az - solve[2] * dom) * solve[3]
    dom += qdd
    l = p[lo + lay.LENGTH * LANES + i]
    r[ro + lay.QDD * LANES + i] = qdd
    r[ro + lay.AN * LANES + i] = c * az - s * ay + 0.5 * l * dom
    return ay - l * (dom * s + om * om * c), az + l * (dom * c - om * om * s), dom


@kernel(inline=True)
def _accelerate(p: Array, lo: int, r: Array, ro: int, i: int, at: Floats) -> Floats:
    """The same with what `keep` stored."""
    kept = (r[ro + lay.C * LANES + i], r[ro + lay.S * LANES + i], r[ro + lay.OMEGA * LANES + i])
    solve = (
        r[ro + lay.U_YY * LANES + i], r[ro + lay.U_ZZ * LANES + i], r[ro + lay.U_AA * LANES + i],
        r[ro + lay.INV_D * LANES + i], r[ro + lay.TAU * LANES + i],
    )  # fmt: skip
    return _move(p, lo, r, ro, i, kept, solve, at)


@kernel(inline=True)
def _chain_of_three(
    p: Array, r: Array, i: int, x: float, motion: Floats, implicit: Floats, water1: Floats | None,
    water2: Floats | None, water3: Floats | None, normal1: Floats | None, normal2: Floats | None,
    normal3: Floats | None,
) -> tuple[Floats, Floats, tuple[Floats, ...], tuple[Floats, ...]]:  # fmt: skip
    """Out and in along a chain of three links: (beyond, shares) at the root, (kept, solve) of each link."""
    at1, kept1, a = link_outward(ROOT, joint_at(r, 0, i), link_at(p, 0, i), x, motion, implicit, water1, normal1)
    at2, kept2, b = link_outward(at1, joint_at(r, F, i), link_at(p, L, i), x, motion, implicit, water2, normal2)
    _, kept3, c = link_outward(at2, joint_at(r, 2 * F, i), link_at(p, 2 * L, i), x, motion, implicit, water3, normal3)
    beyond, solve3 = link_inward(FREE_END, kept3, inertia_at(p, 2 * L, i))
    beyond, solve2 = link_inward(beyond, kept2, inertia_at(p, L, i))
    beyond, solve1 = link_inward(beyond, kept1, inertia_at(p, 0, i))
    shares = (
        a[0] + b[0] + c[0], a[1] + b[1] + c[1], a[2] + b[2] + c[2], a[3] + b[3] + c[3], a[4] + b[4] + c[4],
        a[5] + b[5] + c[5], a[6] + b[6] + c[6], a[7] + b[7] + c[7], a[8] + b[8] + c[8],
    )  # fmt: skip
    return beyond, shares, (kept1, kept2, kept3), (solve1, solve2, solve3)


@kernel
def condense_block(
    many: int | None, f: int, b: int, params: Array, scratch: Array, water: Array | None, normal: Array | None,
    work: Array, base: int, g: float, recall: float, rate_q: float, rate_a: float, carry: Array, sums: Array,
) -> None:  # fmt: skip
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
    wx, wy, wz = work[base + lay.W_X], work[base + lay.W_Y], work[base + lay.W_Z]
    motion = (wx, wy, wz, work[base + lay.U_X], work[base + lay.U_Y], work[base + lay.U_Z])
    implicit = (g, recall, rate_q, rate_a)
    p, r = params[b], scratch[f, b]
    if many is None:
        # the usual number, with all that passes from link to link in registers
        for i in range(LANES):
            x = p[3 * L + i]
            beyond, share, kept, solve = _chain_of_three(
                p, r, i, x, motion, implicit, vector_at(water, f, b, 0, i), vector_at(water, f, b, 1, i),
                vector_at(water, f, b, 2, i), vector_at(normal, f, b, 0, i), vector_at(normal, f, b, 1, i),
                vector_at(normal, f, b, 2, i),
            )  # fmt: skip
            keep(r, 0, i, kept[0], solve[0])
            keep(r, F, i, kept[1], solve[1])
            keep(r, 2 * F, i, kept[2], solve[2])
            add_chain(sums, i, x, wx, wy, wz, beyond, share)
    else:
        _condense_any(many, f, b, params, scratch, water, normal, motion, implicit, carry)
        station = params[b, many * L : many * L + LANES]
        for i in range(LANES):
            add_chain(sums, i, station[i], wx, wy, wz, nine(carry, 7, i), nine(carry, 16, i))


@kernel
def _condense_any(
    m: int, f: int, b: int, params: Array, scratch: Array, water: Array | None, normal: Array | None, motion: Floats,
    implicit: Floats, carry: Array,
) -> None:  # fmt: skip
    """The same for any number of links: what passes from link to link goes through `carry`."""
    for i in range(LANES):
        for k in range(lay.CARRY_FIELDS):
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
                before, joint_at(r, 0, i), link_at(p, 0, i), station[i], motion,
                implicit, vector_at(water, f, b, j, i), vector_at(normal, f, b, j, i),
            )  # fmt: skip
            carry[i], carry[LANES + i], carry[2 * LANES + i], carry[3 * LANES + i] = (
                before[0], before[1], before[2], before[3],
            )  # fmt: skip
            carry[4 * LANES + i], carry[5 * LANES + i], carry[6 * LANES + i] = before[4], before[5], before[6]
            add_nine(carry, 16, i, share)
            r[lay.C * LANES + i] = kept[0]
            r[lay.S * LANES + i] = kept[1]
            r[lay.OMEGA * LANES + i] = kept[2]
            r[lay.KAPPA * LANES + i] = kept[3]
            r[lay.P_Y * LANES + i] = kept[4]
            r[lay.P_Z * LANES + i] = kept[5]
            r[lay.P_A * LANES + i] = kept[6]
            r[lay.G_JOINT * LANES + i] = kept[7]
            r[lay.TAU * LANES + i] = kept[8]
    for jj in range(m):
        j = lay.INWARD[lay.LINKS_MAX - m + jj]
        p = params[b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            kept = (
                r[lay.C * LANES + i], r[lay.S * LANES + i], r[lay.OMEGA * LANES + i],
                r[lay.KAPPA * LANES + i], r[lay.P_Y * LANES + i],
                r[lay.P_Z * LANES + i], r[lay.P_A * LANES + i],
                r[lay.G_JOINT * LANES + i], r[lay.TAU * LANES + i],
            )  # fmt: skip
            beyond, solve = link_inward(nine(carry, 7, i), kept, inertia_at(p, 0, i))
            put_nine(carry, 7, i, beyond)
            keep(r, 0, i, kept, solve)


@kernel
def accelerate_block(
    many: int | None, f: int, b: int, params: Array, work: Array, base: int, scratch: Array, carry: Array
) -> None:
    """Joint accelerations of one block, from the support out to the tips, once the support's acceleration is known.

    many, f, b, params  as there; from work[base] on (BASE_SIZE,) with A0 and DW filled in
    scratch  as `condense_block` left it; QDD rad/s2 and AN m/s2 written
    carry    (CARRY_FIELDS LANES,) scratch
    """
    ay0, az0 = work[base + lay.A0_Y], work[base + lay.A0_Z]
    dwx, dwy, dwz = work[base + lay.DW_X], work[base + lay.DW_Y], work[base + lay.DW_Z]
    wxy, wxz = work[base + lay.W_X] * work[base + lay.W_Y], work[base + lay.W_X] * work[base + lay.W_Z]
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


@kernel
def drive_block(
    many: int | None, f: int, b: int, params: Array, scratch: Array, water: Array | None, normal: Array | None,
    work: Array, base: int, g: float, recall: float, rate_q: float, rate_a: float, carry: Array, sums: Array,
) -> None:  # fmt: skip
    """One block on a support whose acceleration is known: joint accelerations, and the force that this takes.

    As `condense_block` and `accelerate_block` in one, with A0 and DW filled in beforehand; only the six sums DRIVE_SUMS
    are added to, the wrench about the support's origin.
    """
    motion = (
        work[base + lay.W_X], work[base + lay.W_Y], work[base + lay.W_Z],
        work[base + lay.U_X], work[base + lay.U_Y], work[base + lay.U_Z],
    )  # fmt: skip
    accel = (
        work[base + lay.A0_X], work[base + lay.A0_Y], work[base + lay.A0_Z],
        work[base + lay.DW_X], work[base + lay.DW_Y], work[base + lay.DW_Z],
    )  # fmt: skip
    implicit = (g, recall, rate_q, rate_a)
    wxy, wxz = motion[0] * motion[1], motion[0] * motion[2]
    p, r = params[b], scratch[f, b]
    if many is None:
        for i in range(LANES):
            x = p[3 * L + i]
            beyond, share, kept, solve = _chain_of_three(
                p, r, i, x, motion, implicit, vector_at(water, f, b, 0, i), vector_at(water, f, b, 1, i),
                vector_at(water, f, b, 2, i), vector_at(normal, f, b, 0, i), vector_at(normal, f, b, 1, i),
                vector_at(normal, f, b, 2, i),
            )  # fmt: skip
            add_six(sums, i, push(x, motion, accel, beyond, share))
            at = (accel[1] + (accel[5] + wxy) * x, accel[2] + (wxz - accel[4]) * x, accel[3])
            at = _move(p, 0, r, 0, i, kept[0], solve[0], at)
            at = _move(p, L, r, F, i, kept[1], solve[1], at)
            at = _move(p, 2 * L, r, 2 * F, i, kept[2], solve[2], at)
    else:
        _condense_any(many, f, b, params, scratch, water, normal, motion, implicit, carry)
        station = params[b, many * L : many * L + LANES]
        for i in range(LANES):
            x = station[i]
            add_six(sums, i, push(x, motion, accel, nine(carry, 7, i), nine(carry, 16, i)))
        accelerate_block(many, f, b, params, work, base, scratch, carry)
