"""Define the memory of the derivatives of a manta's step: intermediate results, and the nonzero blocks of A and B.

The head of the state is the body's coordinates and those of the rods; joints follow, (rate, fin, link, chain).
"""

from __future__ import annotations

from rtmms.base.memory import INTEGER, Layout, model, scratch, step_input
from rtmms.robots.manta.chain_jacobian import GROUP
from rtmms.robots.manta.fin_layout import BASE_SIZE, LANES
from rtmms.robots.manta.methods import METHODS
from rtmms.robots.manta.support_jacobian import MOTION_ROWS, ROWS, SUPPORT_LANES, WRENCH

BODY = 18
"""Number of coordinates of the body: pose, twist, and with the sequential coupling the fins' late acceleration."""
ROD_WORDS = 3
"""Number of coordinates of each rod."""
RODS = 4 * ROD_WORDS
INPUTS = 4
STAGES = len(METHODS["implicit"].c)
WRENCHES = 6 * STAGES
"""Numbers of a fin's wrench at both stages."""
MOTIONS = BASE_SIZE * STAGES
"""Numbers of the motion of a fin's support at both stages."""

TWIST_AT, RODS_AT, COMMAND_AT, ATTITUDE_AT, ACCEL_AT, ACCEL_LATER_AT = 0, 6, 12, 15, 18, 24
"""Ways in which supports are moved, columns of `moved`.

The body's twist; coordinates of the fin's own rods; their commands (and an unused place); attitude. Then the
acceleration that the fins use at both stages, or, with the monolithic coupling, the body's at the first; with that, the
body's at the second.
"""
AFTER_POSE, AFTER_TWIST, AFTER_LATER, AFTER_FIRST, AFTERS = 0, 6, 12, 18, 24
"""Results for the body, rows of `applied`: pose, twist, acceleration at the second stage, at the first."""
FORCE_WAYS = 9
"""Number of coordinates of the body's own force: attitude and twist."""

TRACED = Layout(
    "MantaTraced",
    model("places", "heads", dtype=INTEGER), model("places_after", BODY, dtype=INTEGER),
    model("by", "heads + 4 + width"), step_input("origin", "wide"), step_input("reference", 7),
    step_input("commands", INPUTS, unit="rad"), scratch("frames", 2, 9),
    scratch("head", "heads + 4", "heads"), scratch("chain_blocks", "width", "width", "groups"),
    model("targets", 2, "ways", dtype=INTEGER), model("every", 2 * MOTIONS, dtype=INTEGER),
    scratch("below", "heads + 4 + bound + 1", "count"), scratch("right", "tiles * 6", "count"),
    scratch("projection", "heads + 4", "bound"),
    scratch("bases", 2, 2, BASE_SIZE), scratch("on_support", 2, 2, 6), scratch("accel", 2, 6),
    scratch("recalled", "parts", "2 * links", LANES), scratch("scalars", 7),
    scratch("first", "width + 12", "links + links + 6", GROUP),
    scratch("second", "width + width + 12", "links + 6", GROUP),
    scratch("ends", "width + 24", "width", GROUP), scratch("pushed", "lanes", "width", WRENCHES, GROUP),
    scratch("summed", MOTIONS, WRENCHES, GROUP),
    scratch("into", ROWS, SUPPORT_LANES), scratch("lengths", 6), scratch("motion", WRENCH, MOTION_ROWS, SUPPORT_LANES),
    scratch("on_body", 6, 6, SUPPORT_LANES),
    scratch("rods", 2, 2, 2, 6), scratch("rods_after", 2, RODS), scratch("rods_by", 8, 2, 2, 6),
    scratch("moved", 2, MOTIONS, "ways"), scratch("turned", 2, WRENCHES, "ways"),
    scratch("shares", 2, "ways", MOTIONS * 6), scratch("rows_of", 2, "ways", MOTIONS, dtype=INTEGER),
    scratch("counts", 2, "ways", dtype=INTEGER), scratch("by_base", 2, 2, MOTIONS, 6),
    scratch("wrench", 2, WRENCHES, "ways"), scratch("force", 2, 6), scratch("force_by", 2, FORCE_WAYS, 6),
    scratch("attitude_by", 6, 3), scratch("water_by", 2, FORCE_WAYS, 3), scratch("pose_by", 12, 6),
    scratch("pose", 2, 8), scratch("xi", 6), scratch("xi_sides", 2, 6), scratch("inverse", 2, 6, 6),
    scratch("between", 6, 6), scratch("applied", WRENCHES, AFTERS), scratch("by_fin", 2, 4, WRENCHES, 6),
    scratch("push", WRENCHES), scratch("after", AFTERS), scratch("tile", 6, GROUP),
)  # fmt: skip
"""Inputs of the derivatives, and blocks. head, below, right, chain_blocks are the blocks, the first two by columns.

- head (heads + INPUTS, heads): rows of the head by coordinates of the head, then by the commands
- below (heads + INPUTS, joints): rows of the joints by the same
- right (body, joints): rows of the body by the joints
- chain_blocks (w, w, chains of both fins): of each chain its joints' angles and rates by the same
- places: indices of the head's coordinates in the state
- by: differences to either side, of joints one for each of a chain
- origin: the state; commands (INPUTS,): rad; reference (7,): pose to which the final pose is relative
- projection (heads + INPUTS, bound): with the monolithic coupling the body's accelerations by the head, second stage
  first. Rows AFTER_LATER and AFTER_FIRST of `right` are those by the joints. The rows of `below` behind those of the
  commands are the joints by them.
- targets: the row of `below` for each way to move a support
- moved (2, MOTIONS, ways): the supports' motion by each way
- turned: the wrench on the body by the support's rotation
- applied (WRENCHES, AFTERS): the effect of a wrench on the body at each stage
"""
