"""Memory of the derivatives of a tree's step."""

from __future__ import annotations

from rtmms.memory import FLAG, INTEGER, Layout, given, model, number, scratch

POSE, TWIST, JOINTS = 0, 6, 12
"""Rows of tangents: pose error, twist, then q, qd and what drives each joint, and the lagged commands of
actuators on bodies and their commands."""
VALUE, RATE, TARGET, COMMAND = range(4)
FOLLOWED = 8
"""Columns of what a joint follows: of its offset and of its gain value, rate and target of the filter, and command."""

TREE_JACOBIAN = Layout(
    "TreeJacobian",
    model("place", "n", 2, dtype=INTEGER), model("followed", "n", FOLLOWED, dtype=INTEGER),
    model("torques", "n", dtype=INTEGER), model("motors", "pushes", 2, dtype=INTEGER),
    model("free", "unknown", dtype=INTEGER), model("reach", "commands"),
    model("far", 6), number("base", INTEGER), number("states", INTEGER), number("watered", FLAG),
    given("origin", "wide"), given("commands_given", "commands"), given("reference", 7),
    scratch("found", "words", "columns"), scratch("start", "rows", "columns"), scratch("at", "rows", "columns"),
    scratch("rates", "stages + 1", "moving", "columns"), scratch("solved", "unknown + 7", "columns"),
    scratch("before", "moving", "columns"), scratch("mixed", "moving", "columns"),
    scratch("turned", "parts", 3, "columns"), scratch("quaternions", "parts", 4),
    scratch("shares", "rows", 6), scratch("chosen", "rows", dtype=INTEGER), scratch("to", 6, dtype=INTEGER),
    scratch("residual", "unknown", "rows"), scratch("inertia", "unknown", "unknown"),
    scratch("index", "n", dtype=INTEGER),
    scratch("kept", "bodies", 18), scratch("by_twist", "bodies", 36), scratch("by_pose", "bodies", 36),
    scratch("frame", "bodies", 12), scratch("eta", "bodies", 6), scratch("axis", "bodies", 6),
    scratch("a", "bodies", 6),
    scratch("m", "bodies", 36), scratch("d", "bodies", 36), scratch("p", "bodies", 36), scratch("f", "bodies", 6),
    scratch("c", "bodies", 6), scratch("z", "bodies", 6), scratch("square", 4, 6, 6), scratch("vector", 4, 6),
    scratch("turn", 4, 9), scratch("slope", 2, 4, 3), scratch("weight", "n", 2), scratch("cut", "commands"),
)  # fmt: skip
"""place     columns of q and qd of each joint, -1 of an imposed one;  free  of each unknown its joint
followed  see FOLLOWED, -1 for what is no column;  torques  columns of the commands of torques, -1
motors    columns of the lagged command and of the command of each actuator on a body, -1
reach, far   how far commands and twists (m, rad: poses) are displaced to either side
base      6 where the base is free, else 0;  watered  whether a fluid acts, or a spinning rotor
found     (states, columns) A and B side by side;  start, at, rates  tangents, see POSE
residual  (unknown, rows) slopes of the unknown accelerations, inertia (unknown, unknown) the matrix before them
m, d, p, f   of each body, then of all that it carries, in the base's axes about its origin: inertia, slopes of the
          wrench by twist and by pose, the wrench
"""
