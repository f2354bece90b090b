"""A step of a plant without inertia: joints follow their commands, and the whole moves as the connection has it.

memory  position (3,) m and quaternion (4,), world; per joint: target, position, rate (3 p); work (1,) J
room    twists (3, 6), poses (2, 7), turned (2,), lengths (1,), z (8, 6), torque (p,): scratch
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.locomotion.local_form import effort, net_twist, resist
from rtmms.locomotion.transport import NODES, WEIGHTS, transport
from rtmms.mechanism.joint_laws import settle
from rtmms.mechanism.take_step import finite

POSE, JOINTS = 7, 7
SOUND, BAD_COMMAND, NOT_FINITE, SINGULAR = 0, 1, 2, 3
"""SINGULAR + row of the twist: what meets no drag."""


@kernel
def joints_at(memory: Any, bandwidth: Any, t: float, q: Any, qd: Any) -> None:
    """Joints t seconds on: a critically damped filter of second order towards their targets, exactly."""
    p = q.shape[0]
    for j in range(p):
        target, value, rate = memory[JOINTS + j], memory[JOINTS + p + j], memory[JOINTS + 2 * p + j]
        x, v, _ = settle(value, rate, target, bandwidth[j], t)
        q[j], qd[j] = x, v


@kernel
def glide(tree: Any, bandwidth: Any, joints: Any, given: Any, memory: Any, work: Any, room: Any, dt: float) -> int:
    """Advance by dt with the command `given` (u,) held for `joints` (u,). A status, see above."""
    twists, poses, turned, lengths, z, _ = room
    q, qd = work[4], work[3]
    p = q.shape[0]
    if not finite(given):
        return BAD_COMMAND
    for a in range(joints.shape[0]):
        memory[JOINTS + joints[a]] = given[a]
    spent = 0.0
    for i in range(3):
        joints_at(memory, bandwidth, NODES[i] * dt, q, qd)
        fault = net_twist(tree, q, qd, work, twists[i])
        if fault >= 0:
            return SINGULAR + fault
        spent += WEIGHTS[i] * dt * effort(tree, qd, twists[i], work)
    lengths[0] = dt
    for k in range(POSE):
        poses[0, k] = memory[k]
    transport(twists, lengths, poses, turned, z)
    if not (finite(poses[1]) and np.isfinite(spent)):
        return NOT_FINITE
    for k in range(POSE):
        memory[k] = poses[1, k]
    joints_at(memory, bandwidth, dt, q, qd)
    for j in range(p):
        memory[JOINTS + p + j], memory[JOINTS + 2 * p + j] = q[j], qd[j]
    memory[JOINTS + 3 * p] += spent
    return SOUND


@kernel
def observe(tree: Any, memory: Any, work: Any, room: Any) -> float:
    """Present twist into twists[0] and the joints' torques; returns the power, W."""
    twists, torque = room[0], room[5]
    q, qd = work[4], work[3]
    p = q.shape[0]
    for j in range(p):
        q[j], qd[j] = memory[JOINTS + p + j], memory[JOINTS + 2 * p + j]
    net_twist(tree, q, qd, work, twists[0])
    power = effort(tree, qd, twists[0], work)
    resist(tree, work, torque)
    return power
