"""What bounds a joint: the most torque that may drive it, springs beyond its range, and limits that are never passed.

A limit that is never passed is a bound of the acceleration. With x how far the joint is beyond its upper limit,
x <= 0, and T the limit's braking time,

    qdd <= -(x + 2 T qd) / T^2,    |qd| <= fastest:  qdd <= (fastest - qd) / T

y = x + T qd then obeys y' <= -y / T, so that y, and x behind it, stay below 0: the joint is braked from 2 T qd before
its limit on, critically, whatever drives it. The stop's torque is what this takes, f = H (bound - qdd) with H a great
inertia that is on the joint only while it is held (S_HELD): under a torque f it rests f T^2 / H beyond its limit.
The stop pushes inwards alone: it takes energy from a joint that comes to its limit. A joint that goes away from a limit
while something pushes it back hard gets some of that energy from the stop: the bound smooths over T what turns a joint.

T is a parameter of the model, in seconds. An explicit method needs at least two steps in T: a plant with longer steps
brakes over two of them. A run in shorter steps then has another T, so the monitor of a run measures the difference.

bounds  (n, BOUND_WIDTH): most torque (inf for any); lower and upper of the spring (-inf, inf for none), its stiffness
        and damping; whether any of these is there; lower, upper (-inf, inf) and fastest (inf) that are never passed,
        H (0 for none of these) and T (s) of them; whether the joint is held to its law as firmly, with the most torque
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.model.layout import S_HELD
from rtmms.spatial import Array, scalar

(
    MOST, LOWER, UPPER, STOP_STIFFNESS, STOP_DAMPING, BOUNDED,
    FLOOR, CEILING, FASTEST, GREAT, BRAKING, FIRM,
) = range(12)  # fmt: skip
BOUND_WIDTH = 12

RATIO = 1e6
"""H over the inertia that the joint meets with all others locked: what is left of a bound is a part as small."""
BRAKING_S = 4e-3
"""s, T of a limit, unless an actuator has another."""
STEPS = 2.0
"""T is at least this many steps of the method: explicit ones then see an eigenvalue of -1/2, twice."""
BACK = 1.0
"""rad/s or m/s: no faster does a joint return that was put beyond its limits."""

FREE, FROM_ABOVE, FROM_BELOW = 0, 1, -1
"""Of a joint's limits: which of them holds it."""
TRACKING, TOO_MUCH, TOO_LITTLE = 0, 1, -1
"""Of a joint that is firmly held: whether its torque is enough, or at one of its limits."""


def no_bounds(n: int) -> Array:
    """Of n joints that go where they please."""
    bounds = np.zeros((n, BOUND_WIDTH))
    bounds[:, MOST], bounds[:, LOWER], bounds[:, UPPER] = np.inf, -np.inf, np.inf
    bounds[:, FLOOR], bounds[:, CEILING], bounds[:, FASTEST] = -np.inf, np.inf, np.inf
    bounds[:, BRAKING] = BRAKING_S
    return bounds


def limited(bounds: Array) -> Array:
    """(n,) bool: joints with limits that are never passed, and those held firmly."""
    firm = bounds[:, FIRM] > 0.0
    return np.asarray(np.isfinite(bounds[:, [FLOOR, CEILING, FASTEST]]).any(axis=1) | firm)


@kernel
def bind(bounds: Any, j: Any, q: Any, qd: Any, implicit: float, drive: Any, s: Any) -> None:
    """Cut the drive of joint j to what may be, and add its stops; S_HELD follows (see `evaluate`)."""
    most = bounds[j, MOST]
    if abs(drive[j].real) > most:
        drive[j] = most if drive[j].real > 0.0 else -most
        s[j + 1, S_HELD] = 0.0
    beyond = 0.0 * q
    if q.real < bounds[j, LOWER]:
        beyond = bounds[j, LOWER] - q
    elif q.real > bounds[j, UPPER]:
        beyond = bounds[j, UPPER] - q
    if beyond.real != 0.0:
        k, c = bounds[j, STOP_STIFFNESS], bounds[j, STOP_DAMPING]
        drive[j] += k * (beyond - implicit * qd) - c * qd
        s[j + 1, S_HELD] += implicit * (c + implicit * k)


@scalar
def most_acceleration(limit: Any, fastest: Any, time: Any, q: Any, qd: Any) -> Any:
    """The upper bound of a joint's acceleration, inf for none; the lower one is that of -q and -qd, negative."""
    bound = np.inf + 0.0 * q
    if limit < np.inf:
        bound = -((q - limit) + 2.0 * time * qd) / (time * time)
        back = (-BACK - qd) / time
        if q.real > limit and bound.real < back.real:
            bound = back
    if fastest < np.inf:
        held = (fastest - qd) / time
        if held.real < bound.real:
            bound = held
        least = (-fastest - qd) / time
        if bound.real < least.real:
            bound = least
    return bound


@scalar
def braking_time(bounds: Any, j: Any, least: float) -> Any:
    """T of joint j, s: at least `least`, STEPS steps of the method."""
    return max(bounds[j, BRAKING], least)


@scalar
def acceleration_within(bounds: Any, j: Any, side: Any, q: Any, qd: Any, least: float) -> Any:
    """The bound that holds joint j from a side. least: see `braking_time`."""
    time, fastest = braking_time(bounds, j, least), bounds[j, FASTEST]
    if side == FROM_ABOVE:
        return most_acceleration(bounds[j, CEILING], fastest, time, q, qd)
    return -most_acceleration(-bounds[j, FLOOR], fastest, time, -q, -qd)


@scalar
def next_side(bounds: Any, j: Any, side: Any, q: Any, qd: Any, qdd: Any, least: float) -> Any:
    """Which limit holds joint j, after a solution with the present one: a stop that would pull lets go."""
    if side == FREE:
        if qdd.real > acceleration_within(bounds, j, FROM_ABOVE, q, qd, least).real:
            return FROM_ABOVE
        if qdd.real < acceleration_within(bounds, j, FROM_BELOW, q, qd, least).real:
            return FROM_BELOW
        return FREE
    pushed = acceleration_within(bounds, j, side, q, qd, least).real - qdd.real
    return FREE if pushed * side > 0.0 else side


@scalar
def next_grip(bounds: Any, j: Any, grip: Any, wanted: Any, qdd: Any) -> Any:
    """Whether a firmly held joint still has its torque, after a solution with the present grip."""
    if grip == TRACKING:
        torque = bounds[j, GREAT] * (wanted.real - qdd.real)
        if torque > bounds[j, MOST]:
            return TOO_MUCH
        return TOO_LITTLE if torque < -bounds[j, MOST] else TRACKING
    return TRACKING if (qdd.real - wanted.real) * grip > 0.0 else grip
