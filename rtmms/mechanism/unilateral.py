"""Contacts with the ground within a step: which one-sided rows hold, and velocities brought onto the rows.

Of rows that do not open (slip <= 0) all hold at first; one that would have to pull is let go, the worst first, and the
others are asked again. It follows from the state alone, so that a restored run chooses alike.
"""

from __future__ import annotations

from typing import Any

from rtmms.dynamics.ground import add_change, slip, stop_slip
from rtmms.dynamics.recursion import configure, outward
from rtmms.dynamics.row_sets import LEAST, R_COUNT, WORST
from rtmms.jit import kernel
from rtmms.mechanism.equations import evaluate
from rtmms.model.contact_rows import G_SIDE
from rtmms.model.layout import REVOLUTE, T_KIND

CLOSED = 1e-10
"""m/s: a row that opens no faster is closed."""
AGREED = 1e-9
"""Rows that depend on others may slip by this part of the speeds before they contradict the joints' motion."""
WEAK, GAIN = 1e-4, 100.0
"""Where rows decide the whole twist with a part that small, and joints throw the base about that many times faster than
they move, there is no motion to speak of."""
HELD, AGAINST, SINGULAR = 0, 1, 2


@kernel
def choose_contacts(system: Any, ground: Any, state: Any, t: float, rate: Any) -> None:
    """Set `active` of the rows, see rtmms.dynamics.ground; nothing for trees without. rate (12 + 2 n,) scratch.

    ground  the tree's, an argument so that it is known when compiled
    """
    if ground is not None:
        rows, offset, reaction, active = ground.rows, ground.offset, ground.reaction, ground.active
        sided = False
        for r in range(rows.shape[0]):
            sided = sided or rows[r, G_SIDE] > 0.0
        if not sided:
            return
        evaluate(system, state, t, 0.0, rate)
        slip(ground, system.work.s, system.work.qd, offset)
        for r in range(rows.shape[0]):
            active[r] = 1.0 if rows[r, G_SIDE] == 0.0 or offset[r] <= CLOSED else 0.0
        for _ in range(rows.shape[0]):
            evaluate(system, state, t, 0.0, rate)
            if not let_go(rows, reaction, active):
                return


@kernel
def let_go(rows: Any, reaction: Any, active: Any) -> bool:
    """Open the one-sided row that pulls most; False where none pulls."""
    worst, most = -1, 0.0
    largest = 0.0
    for r in range(rows.shape[0]):
        if active[r] > 0.0:
            largest = max(largest, abs(reaction[r]))
    for r in range(rows.shape[0]):
        if rows[r, G_SIDE] > 0.0 and active[r] > 0.0 and reaction[r] < min(most, -1e-9 * largest):
            worst, most = r, reaction[r]
    if worst >= 0:
        active[worst] = 0.0
    return worst >= 0


@kernel
def keep_to_ground(tree: Any, ground: Any, work: Any, state: Any) -> int:
    """eta <- eta - A^+ (A eta + B rd), the least in the kinetic energy: at a step's end, and where a plant is put.

    HELD; AGAINST where imposed joints will not have it; SINGULAR where the rows all but leave a motion free.
    """
    topology, constant, gravity, imposed = tree.topology, tree.constant, tree.gravity, tree.imposed
    s, torque, q, qd = work.s, work.torque, work.q, work.qd
    n, room, length, lost = topology.shape[0] - 1, ground.room, ground.length, ground.lost
    joints, base = 0.0, 0.0
    for j in range(n):
        q[j], qd[j] = state[7 + j], state[13 + n + j]
        rate = abs(qd[j])
        joints = max(joints, rate * length if topology[j + 1, T_KIND] == REVOLUTE else rate)
    for k in range(6):
        rate = abs(state[7 + n + k])
        base = max(base, rate if k < 3 else rate * length)
    configure(topology, constant, state[3:7], gravity, q, s)
    outward(topology, state[7 + n : 13 + n], qd, s)
    rows, offset, reaction, active = ground.rows, ground.offset, ground.reaction, ground.active
    slip(ground, s, qd, offset)
    for r in range(rows.shape[0]):  # what was let go and comes back hits the ground
        if offset[r] < 0.0:
            active[r] = 1.0
    for _ in range(rows.shape[0] + 1):
        stop_slip(topology, constant, ground, imposed, qd, s, torque)
        if not let_go(rows, reaction, active):
            break
    add_change(state, s, imposed, ground.change)
    # an impulse does work by the mean of the velocities before and after it, which are 0 after
    for r in range(rows.shape[0]):
        if active[r] > 0.0:
            lost[0] -= 0.5 * reaction[r] * offset[r]
    for j in range(n):
        if imposed[j]:
            lost[1] += torque[j] * qd[j]
    last = room.shape[0] - 1
    if not room[last, WORST] <= AGREED * max(joints, base) + 1e-14:
        return AGAINST
    if room[0, R_COUNT] == 6.0 and room[last, LEAST] < WEAK and base > GAIN * joints + 1e-9:
        return SINGULAR
    return HELD
