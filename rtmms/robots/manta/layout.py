"""Define the flat form of a body with two elastic fins for the step kernels; rtmms.robots.manta.model builds it.

The state is one float64 array, so that a snapshot is its bytes. Scratch has no values from step to step.
"""

from __future__ import annotations

from rtmms.base.memory import INTEGER, Layout, model, number, part, scratch, state, step_input, view, whole
from rtmms.robots.manta.body import BODY
from rtmms.robots.manta.fin_layout import BASE_SIZE, CARRY_FIELDS, FIELDS, LANES, SUMS
from rtmms.robots.manta.rods import RESPONSES, ROD_SIZE, SUPPORT_SIZE

SEQUENTIAL = 0
ITERATED = 1
MONOLITHIC = 2
BODY_MATCHED = 0
BODY_EULER = 1
NORMAL_LINK = 0
NORMAL_NEIGHBOUR = 1

OK, SINGULAR, NOT_FINITE, NOT_CONVERGED, BAD_COMMAND = 0, 1, 2, 3, 4
"""Status of a step; with anything but OK the state is still that before the step."""

FINNED = Layout(
    "Finned",
    number("dt", unit="s"), number("gamma"), number("support_length", unit="m"), number("r_front", unit="m"),
    number("r_back", unit="m"), number("difference", unit="rad"), number("difference_stop", unit="rad"),
    model("root", 3, unit="m"), model("current", 3, unit="m/s"), model("servo", 6), number("tolerance"),
    model("relaxation", 36), model("body_matrix", 36), number("max_iterations", INTEGER), number("roll", INTEGER),
    number("links", INTEGER), number("blocks", INTEGER), number("chains", INTEGER), number("actuation", INTEGER),
    number("coupling", INTEGER), number("integrator", INTEGER), number("body_method", INTEGER),
    number("normal", INTEGER), number("samples", INTEGER), model("responses", *RESPONSES),
)  # fmt: skip
"""Body with fins.

`gamma` belongs to the linearly implicit method, whichever is chosen. `servo`, `samples`, `responses`: see
rods.advance_rods. `difference`, `difference_stop`: see rods.limit_commands, stop_rods. `body_matrix` is diag(m, m, m,
J). `relaxation` is (M_b + M~)^-1 of the iterated coupling.
"""


# state: offsets into the flat array
TIME = 0
STEP = 1
ITERATIONS = 2
RESIDUAL = 3
POSITION = 4
QUATERNION = 7
TWIST = 11
ACCELERATION = 17
RODS = 23
SUPPORTS = RODS + 4 * ROD_SIZE
FINS = 128
assert SUPPORTS + 2 * SUPPORT_SIZE <= FINS


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


MANTA = Layout(
    "Manta",
    part("finned", FINNED), part("body", BODY), model("param", 2, "blocks", "packed"),
    state("head", FINS), state("joints", "2 * blocks * links", 2 * LANES), whole("state"),
    scratch("fins", 2, "blocks", f"links * {FIELDS * LANES}"),
    view("rows", "fins", "2 * blocks * links", FIELDS * LANES),
    scratch("work", WORK_SIZE), step_input("command", 4, unit="rad"), scratch("out", "out"),
    scratch("drift", 2, "blocks", "links", 3 * LANES, unit="m/s", optional=True),
    scratch("body_drift", 3, unit="m/s", optional=True),
    scratch("normals", 2, "blocks", "links", 3 * LANES, optional=True),
    number("flow", INTEGER, optional=True), number("many", INTEGER, optional=True),
)  # fmt: skip
"""All arrays of a manta's step.

- param: for each fin, of fin_layout.pack_links
- head: see above; joints: angles and rates, a row for each link of each block; state: both
- fins: scratch of the chains; rows: the same memory, a row for each link of each block
- out: result of `account`
- drift: water beyond the uniform current at each link in support axes; body_drift: the same at the body in world axes;
  the sampler at the address `flow` writes them; None without a current that varies
- normals: scratch for the neighbours' normals; None where each link has its own
- many: links of a chain where they are not three, else None
"""
MANY = ("many",)
VARYING = ("drift", "body_drift", "flow")
NORMALS = ("normals",)
finned_at, manta_at = FINNED.type().at(), MANTA.at(MANY, VARYING, NORMALS)
"""Records at addresses; the second with the optional parts, each None or a number: many, drift, normals."""
