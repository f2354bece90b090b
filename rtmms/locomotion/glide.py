"""A step of a plant without inertia: joints follow their commands, and the whole moves as the connection has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.locomotion.local_form import WEIGHTED, WORK, effort, net_twist, resist
from rtmms.locomotion.transport import NODES, WEIGHTS, transport
from rtmms.mechanism.joint_laws import settle
from rtmms.mechanism.step import finite, saturate
from rtmms.memory import INTEGER, Layout, given, model, number, part, scratch, state, whole

POSE = 7
GLIDE = Layout(
    "Glide",
    state("pose", POSE), state("joints", 3, "n", unit="rad, rad/s"), state("spent", 1, unit="J"),
    part("tree", WEIGHTED), part("work", WORK), model("bandwidth", "n", unit="rad/s"),
    model("driven", "commands", dtype=INTEGER), given("given", "commands"), model("limits", "commands", 2),
    number("dt", unit="s"),
    scratch("twists", 3, 6), scratch("poses", 2, POSE), scratch("turned", 2), scratch("lengths", 1),
    scratch("series", 8, 6), scratch("torque", "n", unit="N m"), whole("memory"),
)  # fmt: skip
"""All that a plant without inertia steps with. pose: position (m) and quaternion, world; joints: target, position and
rate; spent: work; driven: the joint that each command moves."""
SOUND, BAD_COMMAND, NOT_FINITE, SINGULAR = 0, 1, 2, 3
"""SINGULAR + row of the twist: what meets no drag."""


@kernel
def joints_at(joints: Any, bandwidth: Any, t: float, q: Any, qd: Any) -> None:
    """Joints t seconds on: a critically damped filter of second order towards their targets, exactly."""
    for j in range(q.shape[0]):
        x, v, _ = settle(joints[1, j], joints[2, j], joints[0, j], bandwidth[j], t)
        q[j], qd[j] = x, v


@kernel
def glide(system: Any) -> int:
    """Advance by dt with the command held. A status, see above."""
    tree, work, joints, pose, dt = system.tree, system.work, system.joints, system.pose, system.dt
    twists, poses, lengths, bandwidth = system.twists, system.poses, system.lengths, system.bandwidth
    driven, given, q, qd = system.driven, system.given, work.q, work.qd
    if not finite(given):
        return BAD_COMMAND
    saturate(given, system.limits)
    for a in range(driven.shape[0]):
        joints[0, driven[a]] = given[a]
    spent = 0.0
    for i in range(3):
        joints_at(joints, bandwidth, NODES[i] * dt, q, qd)
        fault = net_twist(tree, q, qd, work, twists[i])
        if fault >= 0:
            return SINGULAR + fault
        spent += WEIGHTS[i] * dt * effort(tree, qd, twists[i], work)
    lengths[0] = dt
    for k in range(POSE):
        poses[0, k] = pose[k]
    transport(twists, lengths, poses, system.turned, system.series)
    if not (finite(poses[1]) and np.isfinite(spent)):
        return NOT_FINITE
    for k in range(POSE):
        pose[k] = poses[1, k]
    joints_at(joints, bandwidth, dt, q, qd)
    for j in range(q.shape[0]):
        joints[1, j], joints[2, j] = q[j], qd[j]
    system.spent[0] += spent
    return SOUND


@kernel
def observe(system: Any) -> float:
    """Present twist into twists[0] and the joints' torques; returns the power, W."""
    tree, work, twists, torque, joints = system.tree, system.work, system.twists, system.torque, system.joints
    q, qd = work.q, work.qd
    for j in range(q.shape[0]):
        q[j], qd[j] = joints[1, j], joints[2, j]
    net_twist(tree, q, qd, work, twists[0])
    power = effort(tree, qd, twists[0], work)
    resist(tree, work, torque)
    return power


_glide_at = GLIDE.type().at()


@kernel
def enter_glide(address: int) -> int:
    """One step of the plant whose record stands at `address`; the status of `glide`."""
    return glide(_glide_at(address))
