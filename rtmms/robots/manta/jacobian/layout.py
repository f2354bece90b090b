"""Memory of the derivatives of a manta's step: what they are made of, and the blocks of A and B that are not zero.

The head of the state is the body's coordinates and those of the rods; joints follow, (rate, fin, link, chain).
"""

from __future__ import annotations

from rtmms.memory import INTEGER, Layout, given, model, scratch
from rtmms.robots.manta.kernels.fin_layout import BASE_SIZE, DRIVE_SUMS, LANES

BODY = 18
"""Coordinates of the body: pose, twist, and the acceleration that the fins see a step late."""
ROD_WORDS = 3
"""Coordinates of each rod."""
HEAD = BODY + 4 * ROD_WORDS
INPUTS = 4
WRENCHES = 12
"""Of a fin: its wrench at both stages."""

JACOBIAN = Layout(
    "MantaJacobian",
    model("places", HEAD, dtype=INTEGER), model("places_after", BODY, dtype=INTEGER),
    model("by", "head + width"), given("origin", "wide"), given("reference", 7), given("commands", INPUTS, unit="rad"),
    scratch("head", "head", HEAD), scratch("below", "head", "count"), scratch("right", BODY, "count"),
    scratch("own", "width", "width", "groups"),
    scratch("bases", 2, 4 * BASE_SIZE), scratch("moved", 2, 4 * BASE_SIZE),
    scratch("sums", 3, 2, 2, "blocks", DRIVE_SUMS * LANES),
    scratch("kept", "rows", 2 * LANES), scratch("frames", 2, 9), scratch("after", 2, 24),
    scratch("body", 2, BODY), scratch("by_body", 2 * WRENCHES, BODY), scratch("by_fin", 2, WRENCHES, BODY),
    scratch("wrench", 3, 2, 2, 6), scratch("rods", 2, 4 * ROD_WORDS), scratch("lanes", WRENCHES, LANES),
    scratch("total", LANES), scratch("scalars", 7), scratch("recalled", "2 * links", LANES),
    scratch("first", "parts", "width + 12", "links + links + 6", LANES),
    scratch("second", "width + width + 12", "links + 6", LANES),
    scratch("ends", "parts", "width", "width + 24", LANES),
    scratch("wrenched", "parts", WRENCHES, "width + 24", LANES),
    scratch("by_base", 2, WRENCHES, 2 * BASE_SIZE), scratch("both", 2 * BASE_SIZE * LANES),
    scratch("on_support", 2, 2, 6), scratch("factors", 2 * BASE_SIZE), scratch("column", "width", LANES),
)  # fmt: skip
"""head, below, right, own are the blocks, the first two by columns:

head    (HEAD + INPUTS, HEAD) rows of the head by coordinates of the head, then by the commands
below   (HEAD + INPUTS, joints) rows of the joints by the same
right   (BODY, joints) rows of the body by the joints
own     (w, w, chains of both fins) of each chain its joints' angles and rates by the same
places  where coordinates of the head stand in the state;  by  steps to either side, of joints one for each of a chain
origin  the state;  commands (INPUTS,) rad;  reference (7,) the pose from which the pose after is told
"""
