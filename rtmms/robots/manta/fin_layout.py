"""How a fin lies in memory: names of the fields of links, chains, supports and sums, and the packing of its parameters.

A fin is cut into blocks of LANES chains, filled up with copies of the last chain whose masses, springs, dampers and
drag are all scaled by 2^-100: they move like the original, bit for bit, and vanish in every sum. So do chains
that a fin has lost. What belongs to one link of a block lies together, field by field, lane fastest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LANES = 16
VANISHING = 2.0**-100
LINKS_MAX = 24
INWARD = np.arange(LINKS_MAX)[::-1].copy()
"""Links from the tip to the root. Looked up, not counted down: the compiler moves its test whether rows overlap out of
a loop that counts down, finds that they might, and gives up on vectors."""

# parameters, for each fin: (blocks, m LINK_FIELDS LANES + LANES), link by link, then the station of each chain
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


class Chains(NamedTuple):
    """The arrays that the loops over lanes read and write, of both fins.

    params   (2, blocks, m LINK_FIELDS LANES + LANES) of pack_links
    scratch  (2, blocks, m FIELDS LANES) Q rad, QD rad/s, QDD and AN are read; see the names above
    water    (2, blocks, m, 3 LANES) m/s, velocity of the water at each link beyond the uniform part, or None
    normal   (2, blocks, m, 3 LANES) direction that the drag acts along (support axes), or None for each link's own n
    work     what holds each fin's motion of the support (BASE_SIZE,) somewhere
    carry    (CARRY_FIELDS LANES,) scratch
    sums     (SUMS LANES,) added to
    """

    params: Any
    scratch: Any
    water: Any
    normal: Any
    work: Any
    carry: Any
    sums: Any


def padded(chains: int) -> int:
    """Number of lanes that `chains` fill, a whole number of blocks."""
    return -(-chains // LANES) * LANES


def pack_links(fields: np.ndarray, station: np.ndarray, lost: int = 0) -> np.ndarray:
    """Lay out a fin for the kernels.

    fields   (LINK_FIELDS, m, n) in the order of the names above
    station  (n,) m, where each chain stands on the support
    lost     so many of the first are gone
    Returns (blocks, m LINK_FIELDS LANES + LANES), read-only; the surplus lanes repeat the last chain.
    """
    m, n = fields.shape[1], station.size
    lanes = np.minimum(np.arange(padded(n)), n - 1).reshape(-1, LANES)
    links = fields[:, :, lanes].transpose(2, 1, 0, 3).copy()
    surplus = np.arange(padded(n)).reshape(-1, LANES) >= n
    links[:, :, MASS:] *= np.where(surplus | (lanes < lost), VANISHING, 1.0)[:, None, None, :]
    packed = np.concatenate([links.reshape(len(lanes), m * L), station[lanes]], axis=1)
    packed.flags.writeable = False
    return packed
