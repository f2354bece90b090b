"""A state's velocities brought onto the rows of the ground: at a step's end, and where a plant is put."""

from __future__ import annotations

from typing import Any

from rtmms.dynamics.ground import add_change, stop_slip
from rtmms.dynamics.recursion import configure, outward
from rtmms.dynamics.row_sets import WORST
from rtmms.jit import kernel
from rtmms.model.layout import REVOLUTE, T_KIND

AGREED = 1e-9
"""Rows that depend on others may slip by this part of the speeds before they contradict the joints' motion."""


@kernel
def keep_to_ground(tree: Any, work: Any, state: Any) -> bool:
    """eta <- eta - A^+ (A eta + B rd), the least in the kinetic energy; False where imposed joints will not have it.

    Which row is worst, and by how much (m/s), stays in the last line of room.
    """
    topology, constant, gravity, imposed, ground = tree[0], tree[1], tree[3], tree[4], tree[6]
    s, torque, q, qd = work[0], work[3], work[4], work[5]
    n, room = topology.shape[0] - 1, ground[4]
    speed = 0.0
    for j in range(n):
        q[j], qd[j] = state[7 + j], state[13 + n + j]
        rate = abs(qd[j])
        speed = max(speed, rate * ground[3] if topology[j + 1, T_KIND] == REVOLUTE else rate)
    for k in range(6):
        rate = abs(state[7 + n + k])
        speed = max(speed, rate if k < 3 else rate * ground[3])
    configure(topology, constant, state[3:7], gravity, q, s)
    outward(topology, state[7 + n : 13 + n], qd, s)
    stop_slip(topology, constant, ground, imposed, qd, s, torque)
    add_change(state, s, imposed, ground[9])
    return bool(room[room.shape[0] - 1, WORST] <= AGREED * speed + 1e-14)
