"""Flat form of a body with two elastic fins: what the step kernels see. Built by rtmms.robots.manta.model.

State is one float64 array, so that a snapshot is its bytes; scratch carries nothing from step to step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rtmms.robots.manta.kernels.fin_layout import BASE_SIZE, CARRY_FIELDS, LANES, SUMS
from rtmms.robots.manta.kernels.rods import ROD_SIZE
from rtmms.robots.manta.kernels.servo import RESPONSES
from rtmms.robots.manta.kernels.support import SUPPORT_SIZE

SEQUENTIAL, ITERATED, MONOLITHIC = 0, 1, 2
BODY_MATCHED, BODY_EULER = 0, 1
NORMAL_LINK, NORMAL_NEIGHBOUR = 0, 1

OK, SINGULAR, NOT_FINITE, NOT_CONVERGED, BAD_COMMAND = 0, 1, 2, 3, 4
"""What a step returns; on anything but OK the state is still that before the step."""

FINNED_DTYPE = np.dtype([
    ("dt", "f8"), ("gamma", "f8"), ("support_length", "f8"), ("r_front", "f8"), ("r_back", "f8"),
    ("difference", "f8"), ("difference_stop", "f8"),
    ("root", "f8", (3,)), ("current", "f8", (3,)), ("servo", "f8", (6,)), ("tolerance", "f8"),
    ("relaxation", "f8", (36,)), ("body_matrix", "f8", (36,)), ("max_iterations", "i8"), ("roll", "i8"),
    ("links", "i8"), ("blocks", "i8"), ("chains", "i8"), ("actuation", "i8"), ("coupling", "i8"),
    ("integrator", "i8"), ("body_method", "i8"), ("normal", "i8"), ("samples", "i8"), ("responses", "f8", RESPONSES),
])  # fmt: skip
"""gamma: of the linearly implicit method, whichever is chosen. servo, samples, responses: see rods.advance_rods.
difference, difference_stop: rods.limit_commands, stop_rods. body_matrix: diag(m, m, m, J). relaxation: (M_b + M~)^-1 of
the iterated coupling."""


class Memory(NamedTuple):
    """The arrays of a manta as its kernels see them; rows = 2 blocks links, one for each link of each block.

    param    (2, blocks, links LINK_FIELDS LANES + LANES), for each fin, of fin_layout.pack_links
    state    (state_size,), and its part joints (rows, 2 LANES): angles and rates
    fins     (2, blocks, links FIELDS LANES) scratch of the chains; links (rows, FIELDS LANES) the same memory
    work     (WORK_SIZE,) scratch
    drift    (2, blocks, links, 3 LANES) m/s, water beyond the uniform current at each link in support axes, and at the
             body, body_drift (3,) in world axes; None without a current that varies
    normals  (2, blocks, links, 3 LANES) scratch for the neighbours' normals; None where each link has its own
    """

    param: Any
    state: Any
    joints: Any
    fins: Any
    links: Any
    work: Any
    drift: Any
    body_drift: Any
    normals: Any


# state: offsets into the flat array
TIME, STEP, ITERATIONS, RESIDUAL = 0, 1, 2, 3
POSITION, QUATERNION, TWIST, ACCELERATION = 4, 7, 11, 17
RODS = 23
SUPPORTS = RODS + 4 * ROD_SIZE
FINS = 128
assert SUPPORTS + 2 * SUPPORT_SIZE <= FINS


def state_size(blocks: int, links: int) -> int:
    """Per fin and block (links, 2, LANES): joint angles and rates."""
    return FINS + 2 * blocks * links * 2 * LANES


# scratch: offsets; the big arrays follow the small ones
W_BASE = 0
W_BIAS = W_BASE + 2 * BASE_SIZE
W_INERTIA = W_BIAS + 12
W_WRENCH = W_INERTIA + 72
W_ON_BODY = W_WRENCH + 12
W_ON_SUPPORT = W_ON_BODY + 12
W_MATRIX = W_ON_SUPPORT + 12
W_FORCE = W_MATRIX + 36
W_ACC = W_FORCE + 6  # accelerations of the body at up to four stages
W_TWIST = W_ACC + 24
W_TWIST_FIN = W_TWIST + 6
W_POSE = W_TWIST_FIN + 6  # position, quaternion
W_ROTATION = W_POSE + 8
W_WATER = W_ROTATION + 9
W_RODS = W_WATER + 3
W_MIDDLE = W_RODS + 4 * ROD_SIZE
W_COMMAND = W_MIDDLE + 12
W_SUPPORT = W_COMMAND + 4  # supports at the middle and the end of the step
W_SUPPORT_END = W_SUPPORT + 2 * SUPPORT_SIZE
W_XI = W_SUPPORT_END + 2 * SUPPORT_SIZE  # the pose's coordinates at a stage, from the step's start
W_XI_RATE = W_XI + 6
W_XI_SUM = W_XI_RATE + 6
W_TWIST_SUM = W_XI_SUM + 6
W_SUMS = -(-(W_TWIST_SUM + 6) // 8) * 8
W_CARRY = W_SUMS + SUMS * LANES
WORK_SIZE = W_CARRY + CARRY_FIELDS * LANES
