"""A state's velocities brought onto the rows of the ground: at a step's end, and where a plant is put."""

from __future__ import annotations

from typing import Any

from rtmms.dynamics.ground import add_change, slip, stop_slip
from rtmms.dynamics.recursion import configure, outward
from rtmms.dynamics.row_sets import LEAST, R_COUNT, WORST
from rtmms.jit import kernel
from rtmms.mechanism.engage import let_go
from rtmms.model.layout import REVOLUTE, T_KIND

AGREED = 1e-9
"""Rows that depend on others may slip by this part of the speeds before they contradict the joints' motion."""
WEAK, GAIN = 1e-4, 100.0
"""Where rows decide the whole twist with a part that small, and joints throw the base about that many times faster than
they move, there is no motion to speak of."""
HELD, AGAINST, SINGULAR = 0, 1, 2


@kernel
def keep_to_ground(tree: Any, work: Any, state: Any) -> int:
    """eta <- eta - A^+ (A eta + B rd), the least in the kinetic energy.

    HELD; AGAINST where imposed joints will not have it; SINGULAR where the rows all but leave a motion free.
    """
    topology, constant, gravity, imposed, ground = tree[0], tree[1], tree[3], tree[4], tree[6]
    s, torque, q, qd = work[0], work[3], work[4], work[5]
    n, room = topology.shape[0] - 1, ground[4]
    joints, base = 0.0, 0.0
    for j in range(n):
        q[j], qd[j] = state[7 + j], state[13 + n + j]
        rate = abs(qd[j])
        joints = max(joints, rate * ground[3] if topology[j + 1, T_KIND] == REVOLUTE else rate)
    for k in range(6):
        rate = abs(state[7 + n + k])
        base = max(base, rate if k < 3 else rate * ground[3])
    configure(topology, constant, state[3:7], gravity, q, s)
    outward(topology, state[7 + n : 13 + n], qd, s)
    rows, offset, reaction, active = ground[0], ground[5], ground[8], ground[10]
    slip(ground, s, qd, offset)
    for r in range(rows.shape[0]):  # what was let go and comes back hits the ground
        if offset[r] < 0.0:
            active[r] = 1.0
    for _ in range(rows.shape[0] + 1):
        stop_slip(topology, constant, ground, imposed, qd, s, torque)
        if not let_go(rows, reaction, active):
            break
    add_change(state, s, imposed, ground[9])
    # an impulse does work by the mean of the velocities before and after it, which are 0 after
    for r in range(rows.shape[0]):
        if active[r] > 0.0:
            ground[11][0] -= 0.5 * reaction[r] * offset[r]
    for j in range(n):
        if imposed[j]:
            ground[11][1] += torque[j] * qd[j]
    last = room.shape[0] - 1
    if not room[last, WORST] <= AGREED * max(joints, base) + 1e-14:
        return AGAINST
    if room[0, R_COUNT] == 6.0 and room[last, LEAST] < WEAK and base > GAIN * joints + 1e-9:
        return SINGULAR
    return HELD
