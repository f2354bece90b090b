"""Chains of pseudo-rigid links on a moving support: O(m) articulated recursion, sixteen chains abreast.

All joints of a chain turn about the support's x axis, so a chain moves in its own y-z plane relative to the support.
Positions, velocities and forces are therefore kept in support axes, and a link's axes are d = (c, s) along it and
n = (-s, c) normal to it. The support's acceleration comes in as that of its origin (classical, A0) and W0'. Per joint
the generalised inertia of Qu 2024 (26) shrinks to its planar part (y, z, alpha); the rest (x, beta, gamma) cannot move
relative to the support and is summed as a rigid body.

A fin is cut into blocks of LANES chains, filled up with copies of the last chain whose masses, springs, dampers and
drag are all scaled by 2^-100: they move like the original, bit for bit, and vanish in every sum. What
belongs to one link of a block lies together in a row, field by field, lane fastest. The compiler turns the loops over
lanes into vector instructions only because each touches few rows, and within a row every offset but the lane is
constant: keep it so. Rows are indexed, not sliced: a slice costs an atomic count.

The implicit terms. With step t and gamma of a Rosenbrock method, g = gamma t: joint damping c and stiffness K enter as
the joint inertia g c + g^2 K, drag as the normal mass g |dF/dv|. They act against `recall` times the accelerations of
the stage before, the stiffness on the rate rate_q q' + rate_a q''. g = 0 gives the true accelerations.
"""

from __future__ import annotations

import numpy as np

from rtmms.jit import kernel

LANES = 16
LINKS_MAX = 24
INWARD = np.arange(LINKS_MAX)[::-1].copy()
"""Links from the tip to the root. Looked up, not counted down: the compiler moves its test whether rows overlap out of
a loop that counts down, finds that they might, and gives up on vectors."""

# parameters: (blocks, m + 1, LINK_FIELDS LANES), the last row holding the chain's own fields
(LENGTH, MASS, J_X, J_D, J_N, STIFFNESS, DRAG, ADDED, DAMPING) = range(9)
LINK_FIELDS = 9
STATION = 0

# motion of the support as the chains see it, one array a fin
(A0_X, A0_Y, A0_Z, W_X, W_Y, W_Z, DW_X, DW_Y, DW_Z, U_X, U_Y, U_Z) = range(12)
BASE_SIZE = 12
"""A0: classical acceleration of the support's origin, W, DW: angular velocity and its component derivative, U: velocity
of the origin relative to the water; all in support axes. A0 and DW are zero while the chains are being condensed."""

# what condensing leaves for the coupling: inertia felt at the support's origin and the force at zero acceleration
(YY, YZ, ZZ, YA, ZA, AA, SYY, SYZ, SZZ, SYA, SZA, SSYY, SSYZ, SSZZ, M, MY, MZ, IYY, IYZ, IZZ) = range(20)
(FX, FY, FZ, MX, MYB, MZB, SFY, SFZ) = range(20, 28)
SUMS = 28

# scratch: (fins, blocks, m, FIELDS LANES)
(Q, QD, QDD, AN, SUM_Q, SUM_QD, C, S, OMEGA, KAPPA, P_Y, P_Z, P_A, G_JOINT, TAU, U_YY, U_ZZ, U_AA, INV_D) = range(19)
FIELDS = 19
"""Q, QD are read; QDD, AN (normal acceleration of the link's middle) are written, and read as `recall`; SUM_* are the
integrators' own; the rest is what condensing leaves for accelerating."""

# handed from link to link, (CARRY_FIELDS, LANES)
(K_THETA, K_PY, K_PZ, K_VY, K_VZ, K_C, K_S, K_YY, K_YZ, K_ZZ, K_YA, K_ZA, K_AA, K_FY, K_FZ, K_FA) = range(16)
CARRY_FIELDS = 16


@kernel(inline=True)
def sine_cosine(q):
    """(sin q, cos q) for |q| <= pi, to 1e-15: Taylor series of the quarter angle, doubled twice. No call, so it
    vectorises."""
    z = 0.25 * q
    w = z * z
    s = z * (
        1.0
        + w
        * (
            -1.0 / 6.0
            + w
            * (
                1.0 / 120.0
                + w
                * (
                    -1.0 / 5040.0
                    + w * (1.0 / 362880.0 + w * (-1.0 / 39916800.0 + w * (1.0 / 6227020800.0 - w / 1307674368000.0)))
                )
            )
        )
    )
    c = 1.0 + w * (
        -0.5
        + w
        * (
            1.0 / 24.0
            + w
            * (
                -1.0 / 720.0
                + w
                * (
                    1.0 / 40320.0
                    + w
                    * (-1.0 / 3628800.0 + w * (1.0 / 479001600.0 + w * (-1.0 / 87178291200.0 + w / 20922789888000.0)))
                )
            )
        )
    )
    s, c = 2.0 * s * c, 1.0 - 2.0 * s * s
    return 2.0 * s * c, 1.0 - 2.0 * s * s


@kernel
def condense_block(m, f, b, params, scratch, water, normal, work, base, g, recall, rate_q, rate_a, carry, sums):
    """One block: forces and inertias of all links, then the recursion from the tips to the support.

    m, f, b    links a chain; which fin, which block
    params     (blocks, m + 1, LINK_FIELDS LANES) see the names above
    scratch    (2, blocks, m, FIELDS LANES) Q rad and QD rad/s are read, QDD and AN when recall or rate_a is not 0
    water      (2, blocks, m, 3 LANES) m/s, velocity of the water at each link beyond the uniform part, or None
    normal     (2, blocks, m, 3 LANES) direction that the drag acts along (support axes), or None for each link's own n
    work, base from work[base] on (BASE_SIZE,) motion of the support
    g          s                     gamma times step, 0 for none
    recall, rate_q, rate_a (s)       see above
    carry      (CARRY_FIELDS LANES,) scratch
    sums       (SUMS LANES,)         added to
    """
    wx, wy, wz = work[base + W_X], work[base + W_Y], work[base + W_Z]
    ux, uy, uz = work[base + U_X], work[base + U_Y], work[base + U_Z]
    for i in range(LANES):
        carry[K_THETA * LANES + i] = 0.0
        carry[K_PY * LANES + i] = 0.0
        carry[K_PZ * LANES + i] = 0.0
        carry[K_VY * LANES + i] = 0.0
        carry[K_VZ * LANES + i] = 0.0
        carry[K_C * LANES + i] = 1.0
        carry[K_S * LANES + i] = 0.0
        carry[K_YY * LANES + i] = 0.0
        carry[K_YZ * LANES + i] = 0.0
        carry[K_ZZ * LANES + i] = 0.0
        carry[K_YA * LANES + i] = 0.0
        carry[K_ZA * LANES + i] = 0.0
        carry[K_AA * LANES + i] = 0.0
        carry[K_FY * LANES + i] = 0.0
        carry[K_FZ * LANES + i] = 0.0
        carry[K_FA * LANES + i] = 0.0

    for j in range(m):
        for i in range(LANES):
            # pose and velocity relative to the support
            sq, cq = sine_cosine(scratch[f, b, j, Q * LANES + i])
            c0, s0 = carry[K_C * LANES + i], carry[K_S * LANES + i]
            c = c0 * cq - s0 * sq
            s = s0 * cq + c0 * sq
            qd = scratch[f, b, j, QD * LANES + i]
            td = carry[K_THETA * LANES + i] + qd
            om = wx + td
            py, pz = carry[K_PY * LANES + i], carry[K_PZ * LANES + i]
            vy, vz = carry[K_VY * LANES + i], carry[K_VZ * LANES + i]
            l = params[b, j, LENGTH * LANES + i]
            h = 0.5 * l
            cy, cz = py + h * c, pz + h * s
            dy, dz = vy - h * td * s, vz + h * td * c
            carry[K_C * LANES + i], carry[K_S * LANES + i], carry[K_THETA * LANES + i] = c, s, td
            carry[K_PY * LANES + i], carry[K_PZ * LANES + i] = py + l * c, pz + l * s
            carry[K_VY * LANES + i], carry[K_VZ * LANES + i] = vy - l * td * s, vz + l * td * c

            # velocity of the link's middle relative to the water, along x, d and n
            xi = wy * cz - wz * cy
            x = params[b, m, STATION * LANES + i]
            rx = ux + xi
            ry = uy + wz * x - wx * cz + dy
            rz = uz - wy * x + wx * cy + dz
            if water is not None:
                rx -= water[f, b, j, i]
                ry -= water[f, b, j, LANES + i]
                rz -= water[f, b, j, 2 * LANES + i]
            vd = c * ry + s * rz
            vn = c * rz - s * ry
            od = wy * c + wz * s
            on = wz * c - wy * s

            # (12), corrected: drag -1/2 rho C_D |V.n| (V.n) n dS at the middle of the link
            ma, mu = params[b, j, ADDED * LANES + i], params[b, j, MASS * LANES + i]
            jx, jd, jn = params[b, j, J_X * LANES + i], params[b, j, J_D * LANES + i], params[b, j, J_N * LANES + i]
            if normal is None:
                sd = -params[b, j, DRAG * LANES + i] * abs(vn)
                fx_drag = 0.0
                fd_drag = 0.0
                fn_drag = sd * vn
                slope = -2.0 * sd
            else:
                nx, ny, nz = normal[f, b, j, i], normal[f, b, j, LANES + i], normal[f, b, j, 2 * LANES + i]
                w = nx * rx + ny * ry + nz * rz
                sd = -params[b, j, DRAG * LANES + i] * abs(w)
                fx_drag = sd * w * nx
                nd, nn = c * ny + s * nz, c * nz - s * ny
                fd_drag = sd * w * nd
                fn_drag = sd * w * nn
                slope = -2.0 * sd * nn * nn
            kappa = ma + g * slope

            # forces at zero acceleration of the joint's centre, left side of Newton and Euler; the added mass with all
            # of Kirchhoff's terms
            fd = mu * (xi * on - h * om * om) - ma * vn * om - fd_drag
            ref = recall * scratch[f, b, j, AN * LANES + i]
            fn = ma * (rx * od - om * vd - xi * od) - mu * xi * od - fn_drag - g * slope * ref
            mx = (jn - jd) * od * on + ma * vn * vd
            (
                scratch[f, b, j, C * LANES + i],
                scratch[f, b, j, S * LANES + i],
                scratch[f, b, j, OMEGA * LANES + i],
                scratch[f, b, j, KAPPA * LANES + i],
            ) = c, s, om, kappa
            scratch[f, b, j, P_Y * LANES + i] = c * fd - s * fn
            scratch[f, b, j, P_Z * LANES + i] = s * fd + c * fn
            scratch[f, b, j, P_A * LANES + i] = h * fn + mx

            # (14), corrected: elastic torque -(2 EI/dl) tan(q/2) / cos^2(q/2) and its slope; (15) damping
            t = 1.0 / (1.0 + cq)
            t2 = t * t
            stiff = params[b, j, STIFFNESS * LANES + i] * t2
            slope_q = stiff * (2.0 - cq)
            cj = params[b, j, DAMPING * LANES + i]
            gj = g * cj + g * g * slope_q
            qdd = scratch[f, b, j, QDD * LANES + i]
            scratch[f, b, j, G_JOINT * LANES + i] = gj
            scratch[f, b, j, TAU * LANES + i] = (
                gj * recall * qdd - stiff * sq - cj * qd - g * slope_q * (rate_q * qd + rate_a * qdd)
            )

            # what cannot move relative to the support: x force, moments about y and z
            fx = mu * (wx * (wy * cy + wz * cz) + 2.0 * (wy * dz - wz * dy)) + ma * vn * od - fx_drag
            md = jd * td * on - (jn - jx) * on * om - ma * vn * rx
            mn = -jn * td * od - (jx - jd) * om * od
            sums[M * LANES + i] += mu
            sums[MY * LANES + i] += mu * cy
            sums[MZ * LANES + i] += mu * cz
            sums[IYY * LANES + i] += mu * cz * cz + jd * c * c + jn * s * s
            sums[IZZ * LANES + i] += mu * cy * cy + jd * s * s + jn * c * c
            sums[IYZ * LANES + i] += (jd - jn) * c * s - mu * cy * cz
            # the chain's own share -(W_y^2 + W_z^2) x of the classical acceleration along x
            ax = -(wy * wy + wz * wz) * x
            fx += mu * ax
            sums[FX * LANES + i] += fx
            sums[MYB * LANES + i] += cz * fx + c * md - s * mn
            sums[MZB * LANES + i] += s * md + c * mn - cy * fx

    for jj in range(m):
        j = INWARD[LINKS_MAX - m + jj]
        for i in range(LANES):
            yy, yz, zz = carry[K_YY * LANES + i], carry[K_YZ * LANES + i], carry[K_ZZ * LANES + i]
            ya, za, aa = carry[K_YA * LANES + i], carry[K_ZA * LANES + i], carry[K_AA * LANES + i]
            fy, fz, fa = carry[K_FY * LANES + i], carry[K_FZ * LANES + i], carry[K_FA * LANES + i]
            c, s = scratch[f, b, j, C * LANES + i], scratch[f, b, j, S * LANES + i]
            l, om = params[b, j, LENGTH * LANES + i], scratch[f, b, j, OMEGA * LANES + i]
            kappa, mu = scratch[f, b, j, KAPPA * LANES + i], params[b, j, MASS * LANES + i]
            # what hangs on the link, shifted from O_{j+1} to O_j: a_{j+1} = a_j + l (Omega' n - Omega^2 d)
            by, bz = -l * om * om * c, -l * om * om * s
            xy, xz = -l * s, l * c
            fa += ya * by + za * bz
            fy += yy * by + yz * bz
            fz += yz * by + zz * bz
            fa += xy * fy + xz * fz
            ty, tz = yy * xy + yz * xz, yz * xy + zz * xz
            aa += 2.0 * (ya * xy + za * xz) + ty * xy + tz * xz
            ya += ty
            za += tz
            # M_j about O_j plus that
            h = 0.5 * l
            e = h * (mu + kappa)
            yy += mu + kappa * s * s
            yz -= kappa * s * c
            zz += mu + kappa * c * c
            ya -= e * s
            za += e * c
            aa += h * e + params[b, j, J_X * LANES + i]
            fy += scratch[f, b, j, P_Y * LANES + i]
            fz += scratch[f, b, j, P_Z * LANES + i]
            fa += scratch[f, b, j, P_A * LANES + i]
            # condense the joint: A_j^T f_j = tau_j
            inv = 1.0 / (aa + scratch[f, b, j, G_JOINT * LANES + i])
            u = scratch[f, b, j, TAU * LANES + i] - fa
            scratch[f, b, j, U_YY * LANES + i] = ya
            scratch[f, b, j, U_ZZ * LANES + i] = za
            scratch[f, b, j, U_AA * LANES + i] = aa
            scratch[f, b, j, INV_D * LANES + i] = inv
            scratch[f, b, j, TAU * LANES + i] = u
            ui = u * inv
            yi, zi, ai = ya * inv, za * inv, aa * inv
            carry[K_YY * LANES + i], carry[K_YZ * LANES + i], carry[K_ZZ * LANES + i] = (
                yy - ya * yi, yz - ya * zi, zz - za * zi,
            )  # fmt: skip
            carry[K_YA * LANES + i], carry[K_ZA * LANES + i], carry[K_AA * LANES + i] = (
                ya - ya * ai, za - za * ai, aa - aa * ai,
            )  # fmt: skip
            carry[K_FY * LANES + i], carry[K_FZ * LANES + i], carry[K_FA * LANES + i] = (
                fy + ya * ui, fz + za * ui, fa + aa * ui,
            )  # fmt: skip

    for i in range(LANES):
        x = params[b, m, STATION * LANES + i]
        yy, yz, zz = carry[K_YY * LANES + i], carry[K_YZ * LANES + i], carry[K_ZZ * LANES + i]
        ya, za, aa = carry[K_YA * LANES + i], carry[K_ZA * LANES + i], carry[K_AA * LANES + i]
        # the root's classical acceleration at zero A0 and W0': W x (W x (x, 0, 0))
        by, bz = wx * wy * x, wx * wz * x
        fy = carry[K_FY * LANES + i] + yy * by + yz * bz
        fz = carry[K_FZ * LANES + i] + yz * by + zz * bz
        fa = carry[K_FA * LANES + i] + ya * by + za * bz
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


@kernel
def accelerate_block(m, f, b, params, work, base, scratch, carry):
    """Joint accelerations of one block, from the support out to the tips, once the support's acceleration is known.

    m, f, b, params  as there; from work[base] on (BASE_SIZE,) with A0 and DW filled in
    scratch  as `condense_block` left it; QDD rad/s2 and AN m/s2 written
    carry    (CARRY_FIELDS LANES,) scratch
    """
    ay0, az0, dwx, dwy, dwz = (
        work[base + A0_Y],
        work[base + A0_Z],
        work[base + DW_X],
        work[base + DW_Y],
        work[base + DW_Z],
    )
    wxy, wxz = work[base + W_X] * work[base + W_Y], work[base + W_X] * work[base + W_Z]
    for i in range(LANES):
        x = params[b, m, STATION * LANES + i]
        carry[i] = ay0 + (dwz + wxy) * x
        carry[LANES + i] = az0 + (wxz - dwy) * x
        carry[2 * LANES + i] = dwx
    for j in range(m):
        for i in range(LANES):
            ay, az, dom = carry[i], carry[LANES + i], carry[2 * LANES + i]
            u = (
                scratch[f, b, j, TAU * LANES + i]
                - scratch[f, b, j, U_YY * LANES + i] * ay
                - scratch[f, b, j, U_ZZ * LANES + i] * az
                - scratch[f, b, j, U_AA * LANES + i] * dom
            )
            qdd = u * scratch[f, b, j, INV_D * LANES + i]
            dom += qdd
            c, s, l, om = (
                scratch[f, b, j, C * LANES + i],
                scratch[f, b, j, S * LANES + i],
                params[b, j, LENGTH * LANES + i],
                scratch[f, b, j, OMEGA * LANES + i],
            )
            scratch[f, b, j, QDD * LANES + i] = qdd
            scratch[f, b, j, AN * LANES + i] = c * az - s * ay + 0.5 * l * dom
            carry[i] = ay - l * (dom * s + om * om * c)
            carry[LANES + i] = az + l * (dom * c - om * om * s)
            carry[2 * LANES + i] = dom


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


def padded(chains: int) -> int:
    """Number of lanes that `chains` fill, a whole number of blocks."""
    return -(-chains // LANES) * LANES


def pack_links(fields: np.ndarray, station: np.ndarray) -> np.ndarray:
    """Lay out a fin for the kernels.

    fields   (LINK_FIELDS, m, n) in the order of the names above
    station  (n,) m, where each chain stands on the support
    Returns (blocks, m + 1, LINK_FIELDS LANES), read-only; the surplus lanes repeat the last chain.
    """
    m, n = fields.shape[1], station.size
    lanes = np.minimum(np.arange(padded(n)), n - 1).reshape(-1, LANES)
    packed = np.zeros((len(lanes), m + 1, LINK_FIELDS, LANES))
    packed[:, :m] = fields[:, :, lanes].transpose(2, 1, 0, 3)
    packed[:, m, STATION] = station[lanes]
    surplus = np.arange(padded(n)).reshape(-1, LANES) >= n
    packed[:, :m, MASS:] *= np.where(surplus, 2.0**-100, 1.0)[:, None, None, :]
    packed = packed.reshape(len(lanes), m + 1, LINK_FIELDS * LANES)
    packed.flags.writeable = False
    return packed
