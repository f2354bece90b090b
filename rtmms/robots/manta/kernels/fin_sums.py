"""From chains to a fin: what the support must be pushed with, summed over the lanes."""

from __future__ import annotations

from rtmms.jit import Array, Floats, kernel
from rtmms.robots.manta.kernels.fin_layout import (
    AA,
    DRIVE_SUMS,
    FX,
    FY,
    FZ,
    IYY,
    IYZ,
    IZZ,
    LANES,
    MX,
    MY,
    MYB,
    MZ,
    MZB,
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
    YA,
    YY,
    YZ,
    ZA,
    ZZ,
    M,
)


@kernel(inline=True)
def add_chain(sums: Array, i: int, x: float, wx: float, wy: float, wz: float, beyond: Floats, shares: Floats) -> None:
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
def push(x: float, motion: Floats, accel: Floats, beyond: Floats, shares: Floats) -> Floats:
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


@kernel(inline=True)
def _sum_lanes(a: Array, o: int) -> float:
    return (((a[o] + a[o + 1]) + (a[o + 2] + a[o + 3])) + ((a[o + 4] + a[o + 5]) + (a[o + 6] + a[o + 7]))) + (
        ((a[o + 8] + a[o + 9]) + (a[o + 10] + a[o + 11])) + ((a[o + 12] + a[o + 13]) + (a[o + 14] + a[o + 15]))
    )


@kernel
def collect_sums(sums: Array, work: Array, inertia: int, wrench: int) -> None:
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
def collect_wrench(sums: Array, work: Array, wrench: int) -> None:
    """Sum what `drive_block` added up over the lanes, to work[wrench] on (6,)."""
    for n in range(DRIVE_SUMS):
        work[wrench + n] = _sum_lanes(sums, n * LANES)
