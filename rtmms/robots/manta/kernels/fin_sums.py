"""From chains to a fin: what the support must be pushed with, summed over the lanes."""

from __future__ import annotations

from rtmms.jit import Array, Floats, kernel
from rtmms.robots.manta.kernels import fin_layout as lay
from rtmms.robots.manta.kernels.fin_layout import LANES


@kernel(inline=True)
def add_chain(sums: Array, i: int, x: float, wx: float, wy: float, wz: float, beyond: Floats, shares: Floats) -> None:
    """Add a chain to the fin's sums: `beyond` as its root feels it, `shares` summed over its links."""
    yy, yz, zz, ya, za, aa, fy, fz, fa = beyond
    # the root's classical acceleration at zero A0 and W0': W x (W x (x, 0, 0))
    by, bz = wx * wy * x, wx * wz * x
    fy += yy * by + yz * bz
    fz += yz * by + zz * bz
    fa += ya * by + za * bz
    sums[lay.YY * LANES + i] += yy
    sums[lay.YZ * LANES + i] += yz
    sums[lay.ZZ * LANES + i] += zz
    sums[lay.YA * LANES + i] += ya
    sums[lay.ZA * LANES + i] += za
    sums[lay.AA * LANES + i] += aa
    sums[lay.SYY * LANES + i] += x * yy
    sums[lay.SYZ * LANES + i] += x * yz
    sums[lay.SZZ * LANES + i] += x * zz
    sums[lay.SYA * LANES + i] += x * ya
    sums[lay.SZA * LANES + i] += x * za
    sums[lay.SSYY * LANES + i] += x * x * yy
    sums[lay.SSYZ * LANES + i] += x * x * yz
    sums[lay.SSZZ * LANES + i] += x * x * zz
    sums[lay.FY * LANES + i] += fy
    sums[lay.FZ * LANES + i] += fz
    sums[lay.MX * LANES + i] += fa
    sums[lay.SFY * LANES + i] += x * fy
    sums[lay.SFZ * LANES + i] += x * fz
    sums[lay.M * LANES + i] += shares[0]
    sums[lay.MY * LANES + i] += shares[1]
    sums[lay.MZ * LANES + i] += shares[2]
    sums[lay.IYY * LANES + i] += shares[3]
    sums[lay.IZZ * LANES + i] += shares[4]
    sums[lay.IYZ * LANES + i] += shares[5]
    sums[lay.FX * LANES + i] += shares[6]
    sums[lay.MYB * LANES + i] += shares[7]
    sums[lay.MZB * LANES + i] += shares[8]


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
def _total(a: Array, field: int) -> float:
    """A field summed over the lanes."""
    o = field * LANES
    return (((a[o] + a[o + 1]) + (a[o + 2] + a[o + 3])) + ((a[o + 4] + a[o + 5]) + (a[o + 6] + a[o + 7]))) + (
        ((a[o + 8] + a[o + 9]) + (a[o + 10] + a[o + 11])) + ((a[o + 12] + a[o + 13]) + (a[o + 14] + a[o + 15]))
    )


@kernel
def collect_sums(sums: Array, work: Array, inertia: int, wrench: int) -> None:
    """Sum over the lanes: what the fin is to whoever moves the support.

    The support must be pushed with [F; M] = inertia [A0; W0'] + wrench, both about and of its origin, in its axes.
    From work[inertia] on (6, 6), from work[wrench] on (6,) are written; A0 is the classical acceleration.
    """
    yy, yz, zz = _total(sums, lay.YY), _total(sums, lay.YZ), _total(sums, lay.ZZ)
    ya, za, aa = _total(sums, lay.YA), _total(sums, lay.ZA), _total(sums, lay.AA)
    syy, syz, szz = _total(sums, lay.SYY), _total(sums, lay.SYZ), _total(sums, lay.SZZ)
    sya, sza = _total(sums, lay.SYA), _total(sums, lay.SZA)
    ssyy, ssyz, sszz = _total(sums, lay.SSYY), _total(sums, lay.SSYZ), _total(sums, lay.SSZZ)
    mass, my, mz = _total(sums, lay.M), _total(sums, lay.MY), _total(sums, lay.MZ)
    iyy, iyz, izz = _total(sums, lay.IYY), _total(sums, lay.IYZ), _total(sums, lay.IZZ)
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
    work[wrench + 0] = _total(sums, lay.FX)
    work[wrench + 1] = _total(sums, lay.FY)
    work[wrench + 2] = _total(sums, lay.FZ)
    work[wrench + 3] = _total(sums, lay.MX)
    work[wrench + 4] = _total(sums, lay.MYB) - _total(sums, lay.SFZ)
    work[wrench + 5] = _total(sums, lay.MZB) + _total(sums, lay.SFY)


@kernel
def collect_wrench(sums: Array, work: Array, wrench: int) -> None:
    """Sum what `drive_block` added up over the lanes, to work[wrench] on (6,)."""
    for n in range(lay.DRIVE_SUMS):
        work[wrench + n] = _total(sums, n)
