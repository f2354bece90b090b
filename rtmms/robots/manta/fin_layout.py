"""Define the memory layout of a fin: the fields of links, chains, supports and sums, and the packing of parameters.

A fin is divided into blocks of LANES chains. The last block is filled with copies of the last chain whose masses,
springs, dampers and drag are all scaled by 2^-100: they move like the original, bit for bit, and vanish in every sum.
Lost chains of a fin are scaled likewise. The fields of one link of a block are contiguous, field by field, lane
fastest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LANES = 16
VANISHING = 2.0**-100
MAX_LINKS = 24
"""Largest number of links of a chain."""
INWARD = np.arange(MAX_LINKS)[::-1].copy()
"""Links from the tip to the root, as a table.

In a loop that counts down, the compiler moves its test for overlapping rows out of the loop, finds that they might
overlap, and makes no vector instructions.
"""

# parameters, for each fin: (blocks, m LINK_FIELDS LANES + LANES), link by link, then the station of each chain
(LENGTH, MASS, J_X, J_D, J_N, STIFFNESS, DRAG, ADDED, DAMPING) = range(9)
LINK_FIELDS = 9

# motion of the support as the chains see it, one array a fin
(A0_X, A0_Y, A0_Z, W_X, W_Y, W_Z, DW_X, DW_Y, DW_Z, U_X, U_Y, U_Z) = range(12)
BASE_SIZE = 12
"""Numbers of the support's motion.

A0: classical acceleration of the support's origin. W, DW: angular velocity and its component derivative. U: velocity of
the origin relative to the water. All are in support axes. A0 and DW are zero while the chains are condensed.
"""

# what condensing leaves for the coupling: inertia felt at the support's origin and the force at zero acceleration
(YY, YZ, ZZ, YA, ZA, AA, SYY, SYZ, SZZ, SYA, SZA, SSYY, SSYZ, SSZZ, M, MY, MZ, IYY, IYZ, IZZ) = range(20)
(FX, FY, FZ, MX, MYB, MZB, SFY, SFZ) = range(20, 28)
SUMS = 28
DRIVE_SUMS = 6
"""Number of sums of `drive_block`: the wrench [F; M] alone."""

# scratch: (fins, blocks, m FIELDS LANES), link by link
(Q, QD, QDD, AN, SUM_Q, SUM_QD, C, S, OMEGA, KAPPA, P_Y, P_Z, P_A, G_JOINT, TAU, U_YY, U_ZZ, U_AA, INV_D) = range(19)
FIELDS = 19
"""Fields of a joint.

Q, QD are inputs. QDD, AN (normal acceleration of the link's middle) are outputs, and inputs as `recall`. SUM_* belong
to the integrators. The rest are results of condensing for the accelerations.
"""

L = LINK_FIELDS * LANES
F = FIELDS * LANES

CARRY_FIELDS = 25
"""Fields from link to link where m is not 3: seven of `link_outward`, nine of `link_inward`, nine sums of links."""


class Chains(NamedTuple):
    """The arrays of both fins that the loops over lanes read and write.

    Attributes
    ----------
    params : (2, blocks, m LINK_FIELDS LANES + LANES) array
        Parameters of `pack_links`.
    scratch : (2, blocks, m FIELDS LANES) array
        Q rad, QD rad/s, QDD and AN are inputs; see the names above.
    water : (2, blocks, m, 3 LANES) array or None
        Velocity of the water at each link beyond the uniform part, m/s.
    normal : (2, blocks, m, 3 LANES) array or None
        Direction of the drag (support axes); None for each link's own n.
    work : array
        Array that contains each fin's motion of the support (BASE_SIZE,).
    carry : (CARRY_FIELDS LANES,) array
        Scratch.
    sums : (SUMS LANES,) array
        Sums; added to.
    """

    params: Any
    scratch: Any
    water: Any
    normal: Any
    work: Any
    carry: Any
    sums: Any


def lane_count(chains: int) -> int:
    """Return the number of lanes of whole blocks.

    Parameters
    ----------
    chains : int
        Number of chains.

    Returns
    -------
    int
        Multiple of LANES.
    """
    return -(-chains // LANES) * LANES


def pack_links(fields: np.ndarray, station: np.ndarray, lost: int = 0) -> np.ndarray:
    """Return the parameters of a fin in the kernels' layout.

    Parameters
    ----------
    fields : (LINK_FIELDS, m, n) array
        In the order of the names above.
    station : (n,) array
        Place of each chain on the support, m.
    lost : int, default 0
        Number of first chains that are lost.

    Returns
    -------
    (blocks, m LINK_FIELDS LANES + LANES) array
        Read-only; the surplus lanes repeat the last chain.
    """
    m, n = fields.shape[1], station.size
    lanes = np.minimum(np.arange(lane_count(n)), n - 1).reshape(-1, LANES)
    links = fields[:, :, lanes].transpose(2, 1, 0, 3).copy()
    surplus = np.arange(lane_count(n)).reshape(-1, LANES) >= n
    links[:, :, MASS:] *= np.where(surplus | (lanes < lost), VANISHING, 1.0)[:, None, None, :]
    packed = np.concatenate([links.reshape(len(lanes), m * L), station[lanes]], axis=1)
    packed.flags.writeable = False
    return packed
