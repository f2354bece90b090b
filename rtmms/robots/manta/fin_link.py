"""Compute one link of a chain in scalars: its forces outwards, its part of the recursion inwards, its lane's fields.

The physics is that of fin_chains.py, which defines the symbols and axes. Tuples keep the argument lists short and cost
nothing once compiled.
"""

from __future__ import annotations

from numba import types
from numba.extending import overload

from rtmms.base.jit import INLINE, Array, Floats, kernel
from rtmms.robots.manta.fin_layout import (
    ADDED,
    AN,
    DAMPING,
    DRAG,
    INV_D,
    J_D,
    J_N,
    J_X,
    LANES,
    LENGTH,
    MASS,
    OMEGA,
    QD,
    QDD,
    STIFFNESS,
    TAU,
    U_AA,
    U_YY,
    U_ZZ,
    C,
    Q,
    S,
)

ROOT = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""State at the root of a chain.

Direction (c, s) of the link before, its rate relative to the support, position (y, z) of the joint and its velocity
relative to the support.
"""

FREE_END = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Load beyond the last link: planar inertia yy, yz, zz, y alpha, z alpha, alpha alpha; force y, z, moment alpha."""


@kernel(inline=True)
def sine_cosine(q: float) -> Floats:
    """Return (sin q, cos q) for |q| <= pi, to 1e-15.

    It uses Taylor series of the quarter angle, doubled twice, without a call, so that it vectorises.

    Parameters
    ----------
    q : float
        rad.

    Returns
    -------
    (float, float)
        Sine and cosine.
    """
    z = 0.25 * q
    w = z * z
    s = -1.0 / 1307674368000.0
    s = 1.0 / 6227020800.0 + w * s
    s = -1.0 / 39916800.0 + w * s
    s = 1.0 / 362880.0 + w * s
    s = -1.0 / 5040.0 + w * s
    s = 1.0 / 120.0 + w * s
    s = -1.0 / 6.0 + w * s
    s = z * (1.0 + w * s)
    c = 1.0 / 20922789888000.0
    c = -1.0 / 87178291200.0 + w * c
    c = 1.0 / 479001600.0 + w * c
    c = -1.0 / 3628800.0 + w * c
    c = 1.0 / 40320.0 + w * c
    c = -1.0 / 720.0 + w * c
    c = 1.0 / 24.0 + w * c
    c = -0.5 + w * c
    c = 1.0 + w * c
    s, c = 2.0 * s * c, 1.0 - 2.0 * s * s
    return 2.0 * s * c, 1.0 - 2.0 * s * s


@kernel(inline=True)
def link_outward(
    before: Floats, joint: Floats, link: Floats, x: float, motion: Floats, implicit: Floats, stream: Floats | None,
    across: Floats | None,
) -> tuple[Floats, Floats, Floats]:  # fmt: skip
    """Compute pose, velocity and forces of a link from those of the link before.

    Parameters
    ----------
    before : tuple of float
        See ROOT.
    joint : tuple of float
        q (rad), q' (rad/s), q'' and normal acceleration of the stage before.
    link : tuple of float
        Length, mass, J_x, J_d, J_n, stiffness 4 EI/dl, drag 1/2 rho C_D dS, added mass, damping.
    x : float
        Station of the chain on the support, m.
    motion : tuple of float
        (W, U) of the support, six numbers.
    implicit : tuple of float
        (g, recall, rate_q, rate_a).
    stream : tuple of float or None
        Velocity of the water beyond the uniform part, m/s, support axes.
    across : tuple of float or None
        Direction of the drag, support axes; None for the link's own normal.

    Returns
    -------
    (tuple, tuple, tuple)
        before: for the next link. kept: c, s, omega, kappa, force y, z and moment alpha about the joint, implicit
        inertia and torque of the joint, for `link_inward`. shares: what cannot move relative to the support, mass,
        first moments y, z, inertias yy, zz, yz, force x, moments y, z.
    """
    c0, s0, td0, py, pz, vy, vz = before
    q, qd, qdd, an = joint
    l, mu, jx, jd, jn, stiffness, drag, ma, cj = link
    wx, wy, wz, ux, uy, uz = motion
    g, recall, rate_q, rate_a = implicit
    # pose and velocity relative to the support
    sq, cq = sine_cosine(q)
    c = c0 * cq - s0 * sq
    s = s0 * cq + c0 * sq
    td = td0 + qd
    om = wx + td
    h = 0.5 * l
    hc, hs = h * c, h * s
    cy, cz = py + hc, pz + hs
    dy, dz = vy - td * hs, vz + td * hc
    onward = (c, s, td, cy + hc, cz + hs, dy - td * hs, dz + td * hc)

    # velocity of the link's middle relative to the water, along x, d and n
    xi = wy * cz - wz * cy
    rx = ux + xi
    ry = uy + wz * x - wx * cz + dy
    rz = uz - wy * x + wx * cy + dz
    if stream is not None:
        rx, ry, rz = rx - stream[0], ry - stream[1], rz - stream[2]
    vd, vn = c * ry + s * rz, c * rz - s * ry
    od, on = wy * c + wz * s, wz * c - wy * s

    # (12), corrected: drag -1/2 rho C_D |V.n| (V.n) n dS at the middle of the link, and its slope
    if across is None:
        sd = drag * abs(vn)
        fx_drag, fd_drag, fn_drag = 0.0, 0.0, sd * vn
        slope = 2.0 * sd
    else:
        w = across[0] * rx + across[1] * ry + across[2] * rz
        sd = drag * abs(w)
        nd, nn = c * across[1] + s * across[2], c * across[2] - s * across[1]
        fx_drag, fd_drag, fn_drag = sd * w * across[0], sd * w * nd, sd * w * nn
        slope = 2.0 * sd * nn * nn
    gs = g * slope

    # forces at zero acceleration of the joint's centre, left side of Newton and Euler; the added mass with all of
    # Kirchhoff's terms
    mv = ma * vn
    fd = mu * (xi * on - h * om * om) - mv * om + fd_drag
    fn = ma * (rx * od - om * vd - xi * od) - mu * xi * od + fn_drag - gs * recall * an
    mx = (jn - jd) * od * on + mv * vd

    # (14), corrected: elastic torque -(2 EI/dl) tan(q/2) / cos^2(q/2) and its slope; (15) damping
    t = 1.0 / (1.0 + cq)
    stiff = stiffness * t * t
    gk = g * stiff * (2.0 - cq)
    gj = g * (cj + gk)
    tau = gj * recall * qdd - stiff * sq - cj * qd - gk * (rate_q * qd + rate_a * qdd)

    # x force, moments about y and z; -(W_y^2 + W_z^2) x is the chain's own share of the classical acceleration along x
    ax = wx * (wy * cy + wz * cz) + 2.0 * (wy * dz - wz * dy) - (wy * wy + wz * wz) * x
    fx = mu * ax + mv * od + fx_drag
    md = jd * td * on - (jn - jx) * on * om - mv * rx
    mn = -jn * td * od - (jx - jd) * om * od
    my, mz = mu * cy, mu * cz
    jc, js = (jd - jn) * c, (jd - jn) * s
    stored = (c, s, om, ma + gs, c * fd - s * fn, s * fd + c * fn, h * fn + mx, gj, tau)
    shares = (
        mu, my, mz, mz * cz + jc * c + jn, my * cy + js * s + jn, jc * s - my * cz,
        fx, cz * fx + c * md - s * mn, s * md + c * mn - cy * fx,
    )  # fmt: skip
    return onward, stored, shares


@kernel(inline=True)
def link_inward(beyond: Floats, floats: Floats, link: Floats) -> tuple[Floats, Floats]:
    """Take one step of the articulated recursion: add the link to the load beyond it and condense its joint.

    Parameters
    ----------
    beyond : tuple of float
        See FREE_END, about the link's far end.
    floats : tuple of float
        From `link_outward`.
    link : (float, float, float)
        Length, mass, J_x.

    Returns
    -------
    (tuple, tuple)
        beyond: the same about the link's own joint with the joint condensed, as the link before feels it. solve: (y, z,
        alpha, 1/D, u), with q'' = (u - (y, z, alpha) . (a, Omega')) / D on the way out.
    """
    length, mass, j_x = link
    yy, yz, zz, ya, za, aa, fy, fz, fa = beyond
    c, s, om, kappa, py, pz, pa, gj, tau = floats
    # from the far end to the joint: a_far = a + l (Omega' n - Omega^2 d)
    xy, xz = -length * s, length * c
    o2 = om * om
    by, bz = -o2 * xz, o2 * xy
    fy += yy * by + yz * bz
    fz += yz * by + zz * bz
    fa += ya * by + za * bz + xy * fy + xz * fz
    ty, tz = yy * xy + yz * xz, yz * xy + zz * xz
    aa += 2.0 * (ya * xy + za * xz) + ty * xy + tz * xz
    ya += ty
    za += tz
    # M_j about O_j plus that
    h = 0.5 * length
    e = h * (mass + kappa)
    ks, kc = kappa * s, kappa * c
    yy += mass + ks * s
    yz -= ks * c
    zz += mass + kc * c
    ya -= e * s
    za += e * c
    aa += h * e + j_x
    fy += py
    fz += pz
    fa += pa
    # condense: A_j^T f_j = tau_j
    inv = 1.0 / (aa + gj)
    u = tau - fa
    yi, zi, ai, ui = ya * inv, za * inv, aa * inv, u * inv
    condensed = (
        yy - ya * yi, yz - ya * zi, zz - za * zi, ya - ya * ai, za - za * ai, aa - aa * ai,
        fy + ya * ui, fz + za * ui, fa + aa * ui,
    )  # fmt: skip
    return condensed, (ya, za, aa, inv, u)


@kernel(inline=True)
def nine(a: Array, k: int, i: int) -> Floats:
    """Return nine fields of a lane.

    Parameters
    ----------
    a : array
        Fields.
    k : int
        First field.
    i : int
        Lane.

    Returns
    -------
    tuple of float
        The fields.
    """
    return (
        a[k * LANES + i], a[(k + 1) * LANES + i], a[(k + 2) * LANES + i], a[(k + 3) * LANES + i],
        a[(k + 4) * LANES + i], a[(k + 5) * LANES + i], a[(k + 6) * LANES + i], a[(k + 7) * LANES + i],
        a[(k + 8) * LANES + i],
    )  # fmt: skip


@kernel(inline=True)
def add_six(a: Array, i: int, values: Floats) -> None:
    """Add six values to the first fields of a lane.

    Parameters
    ----------
    a : array
        Fields; added to.
    i : int
        Lane.
    values : tuple of float
        The values.
    """
    for n in range(6):
        a[n * LANES + i] += values[n]


@kernel(inline=True)
def put_nine(a: Array, k: int, i: int, values: Floats) -> None:
    """Write nine fields of a lane.

    Parameters
    ----------
    a : array
        Fields; changed.
    k : int
        First field.
    i : int
        Lane.
    values : tuple of float
        The values.
    """
    a[k * LANES + i], a[(k + 1) * LANES + i], a[(k + 2) * LANES + i] = values[0], values[1], values[2]
    a[(k + 3) * LANES + i], a[(k + 4) * LANES + i], a[(k + 5) * LANES + i] = values[3], values[4], values[5]
    a[(k + 6) * LANES + i], a[(k + 7) * LANES + i], a[(k + 8) * LANES + i] = values[6], values[7], values[8]


@kernel(inline=True)
def add_nine(a: Array, k: int, i: int, values: Floats) -> None:
    """Add nine values to fields of a lane.

    Parameters
    ----------
    a : array
        Fields; added to.
    k : int
        First field.
    i : int
        Lane.
    values : tuple of float
        The values.
    """
    for n in range(9):
        a[(k + n) * LANES + i] += values[n]


@kernel(inline=True)
def link_at(p: Array, o: int, i: int) -> Floats:
    """Return the parameters of a link, in the order of the names of fin_layout.

    Parameters
    ----------
    p : array
        Parameters of a block.
    o : int
        First index of the link.
    i : int
        Lane.

    Returns
    -------
    tuple of float
        The parameters.
    """
    return (
        p[o + LENGTH * LANES + i], p[o + MASS * LANES + i], p[o + J_X * LANES + i],
        p[o + J_D * LANES + i], p[o + J_N * LANES + i], p[o + STIFFNESS * LANES + i],
        p[o + DRAG * LANES + i], p[o + ADDED * LANES + i], p[o + DAMPING * LANES + i],
    )  # fmt: skip


@kernel(inline=True)
def inertia_at(p: Array, o: int, i: int) -> Floats:
    """Return length, mass and J_x of a link.

    Parameters
    ----------
    p : array
        Parameters of a block.
    o : int
        First index of the link.
    i : int
        Lane.

    Returns
    -------
    (float, float, float)
        m, kg, kg m2.
    """
    return p[o + LENGTH * LANES + i], p[o + MASS * LANES + i], p[o + J_X * LANES + i]


@kernel(inline=True)
def joint_at(r: Array, o: int, i: int) -> Floats:
    """Return the joint of a link.

    Parameters
    ----------
    r : array
        Scratch of a block.
    o : int
        First index of the link.
    i : int
        Lane.

    Returns
    -------
    tuple of float
        q (rad), q' (rad/s), q'' (rad/s2) and normal acceleration (m/s2).
    """
    return (
        r[o + Q * LANES + i], r[o + QD * LANES + i], r[o + QDD * LANES + i],
        r[o + AN * LANES + i],
    )  # fmt: skip


def vector_at(a: Array | None, f: int, b: int, j: int, i: int) -> Floats | None:
    """Return three fields of one link of an optional array.

    Parameters
    ----------
    a : array or None
        Array (2, blocks, m, 3 LANES).
    f, b, j : int
        Index of the fin, of its block and of the link.
    i : int
        Lane.

    Returns
    -------
    Floats or None
        None without an array.
    """
    return None if a is None else (a[f, b, j, i], a[f, b, j, LANES + i], a[f, b, j, 2 * LANES + i])


@overload(vector_at, jit_options=INLINE)
def _vector_compiled(a, f, b, j, i):  # type: ignore[no-untyped-def]  # numba wants it to look like the lambdas
    # chosen by type: left to the compiler's pruning, the array's case would have an optional result
    if isinstance(a, types.NoneType):
        return lambda a, f, b, j, i: None
    return lambda a, f, b, j, i: (a[f, b, j, i], a[f, b, j, LANES + i], a[f, b, j, 2 * LANES + i])


@kernel(inline=True)
def keep(r: Array, o: int, i: int, floats: Floats, solve: Floats) -> None:
    """Store the values of a link that `accelerate_block` needs.

    Parameters
    ----------
    r : array
        Scratch of a block; changed.
    o : int
        First index of the link.
    i : int
        Lane.
    floats, solve : tuple of float
        Results of `link_outward` and `link_inward`.
    """
    r[o + C * LANES + i] = floats[0]
    r[o + S * LANES + i] = floats[1]
    r[o + OMEGA * LANES + i] = floats[2]
    r[o + U_YY * LANES + i] = solve[0]
    r[o + U_ZZ * LANES + i] = solve[1]
    r[o + U_AA * LANES + i] = solve[2]
    r[o + INV_D * LANES + i] = solve[3]
    r[o + TAU * LANES + i] = solve[4]
