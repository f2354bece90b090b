"""What a method does not see of the motion that joints are given.

An imposed joint stands at each step's end where its law has it, exactly, whatever happened in between. The bodies and
the work meet that motion only at the method's stages, t + c_i h, with weights b_i: a filter that settles between two of
them moves the joint and is in no stage. Half steps may miss it just as well, so it is found from the law itself,

    Delta q - h sum_i b_i qd(t + c_i h)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.mechanism.joint_laws import slewed
from rtmms.mechanism.methods import Method
from rtmms.spatial import Array


def nodes(method: Method, substeps: int) -> tuple[Array, Array]:
    """(times, weights) (k,) of a whole step's stages, in steps: extrapolation and substeps included; the weights that
    the work is summed with."""
    times: dict[float, float] = {}
    tableau = method.tableau
    c, b = (0.0, 1.0) if method.multistep else tableau.c, (0.5, 0.5) if method.multistep else tableau.b
    over = 1.0 if method.multistep else tableau.over
    for parts, mix in zip(method.parts, method.mix, strict=True):
        count = parts * substeps
        for part in range(count):
            for node, weight in zip(c, b, strict=True):
                at = (part + node) / count
                times[at] = times.get(at, 0.0) + mix * weight / over / count
    return np.array(list(times)), np.array(list(times.values()))


def given_rates(
    law: Any, servo: Array, target: Array, bandwidth: Array, start: float, since: Array,
    slew: Array | None = None, goal: Array | None = None,
) -> Array:  # fmt: skip
    """(n, k) rad/s at times start + since: the rates of `joint_laws.reference`, of all joints.

    law     a record of joint_laws.LAW;  servo (n, 4), target (n, 2): at start
    slew, goal  (n,) how fast targets go, and where to: see joint_laws.HOLD; None where they go at once
    """
    motion, omega, length = law.motion, law.omega, law.ramp
    time = start + since
    x = np.clip(time / length, 0.0, 1.0) if length > 0.0 else np.ones_like(time)
    f = x**3 * (10.0 + x * (6.0 * x - 15.0))
    fd = 30.0 * (x * (1.0 - x)) ** 2 / length if length > 0.0 else np.zeros_like(time)
    c, s = np.cos(omega * time), np.sin(omega * time)
    wave = motion[:, :1] + motion[:, 1:2] * c + motion[:, 2:3] * s
    turning = omega * (motion[:, 2:3] * c - motion[:, 1:2] * s)
    w = np.abs(bandwidth)[:, None]
    e = np.exp(-w * since)
    a = servo[:, 0:3:2, None] - target[:, :, None]  # of offset and gain: settle()
    b = servo[:, 1:4:2, None] + w[:, None] * a
    led = a + b * since
    value, rate = target[:, :, None] + led * e[:, None], (b - w[:, None] * led) * e[:, None]
    coasting = target[:, :1] + (servo[:, 1:2] - target[:, :1]) * e
    offset = np.where(bandwidth[:, None] < 0.0, coasting, rate[:, 0])
    if slew is not None and goal is not None:
        for j in np.flatnonzero(np.isfinite(slew)):
            moved = [slewed(servo[j, 0], servo[j, 1], target[j, 0], goal[j], slew[j], bandwidth[j], t) for t in since]
            offset[j] = [one[1] for one in moved]
    gain = 1.0 + value[:, 1]
    return np.asarray(rate[:, 1] * f * wave + gain * (fd * wave + f * turning) + offset)
