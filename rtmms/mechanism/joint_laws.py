"""Provide laws of joints (gaits, offsets, servos) and their bounds (torques, springs beyond a range, limits).

A limit that is never passed bounds the acceleration. With x the position of the joint beyond its upper limit, x <= 0,
and T the limit's braking time,

    qdd <= -(x + 2 T qd) / T^2
    |qd| <= max_rate: qdd <= (max_rate - qd) / T

y = x + T qd then obeys y' <= -y / T, so that y, and x after it, stay below 0. The joint brakes critically from 2 T qd
before its limit on, whatever drives it. The stop's torque is f = H (bound - qdd) with a great inertia H that acts on
the joint only while the stop is active (S_HELD). Under a torque f the joint rests f T^2 / H beyond its limit.

The stop pushes only inwards: it takes energy from a joint that reaches its limit. A joint may leave a limit while
another torque pushes it back hard. It then receives some of that energy from the stop, because the bound smooths over T
any torque that turns a joint.

T is a parameter of the model, in seconds. An explicit method needs at least two steps in T: a plant with longer steps
brakes over two of them. A run in shorter steps then has another T, so the monitor of a run measures the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import FLAG, Layout, model, number, scratch, state
from rtmms.base.spatial import Array, scalar
from rtmms.model.layout import S_HELD
from rtmms.plant.protocol import Channel

TORQUE, OFFSET, GAIN = 0, 1, 2
"""Kind of an actuator's target."""


LAW = Layout(
    "Law",
    model("motion", "n", 3, unit="rad"), number("omega", unit="rad/s"), number("ramp", unit="s"),
    model("kp", "n", unit="N m/rad"), model("kd", "n", unit="N m s/rad"),
)  # fmt: skip
"""Record of a `Law`."""
HOLD = Layout(
    "Hold",
    state("torque", "n", unit="N m"), state("target", "n", 2, unit="rad"), state("servo", "n", 4, unit="rad, rad/s"),
    model("bandwidth", "n", unit="rad/s"), model("coast", "n", dtype=FLAG, optional=True), number("start", unit="s"),
    model("slew", "n", unit="rad/s"), number("slews", FLAG), scratch("goal", "n", unit="rad"),
)  # fmt: skip
"""Values that are constant over the plant's step.

`torque` and `target` (of offset, of gain) are the commands. `servo` has value and rate of the offset, value and rate of
the gain. `coast` marks joints whose commands are rates (bandwidth < 0); None where there are none. `slew` is the rate
at which the offset's target moves towards its command, `goal`; inf where it jumps (see `slewed`). `slews` is whether
any target moves at a limited rate.
"""


@dataclass(frozen=True, eq=False)
class Law:
    """Motion of joints, ramp(t) (offset + cosine cos omega t + sine sin omega t), and a servo about it.

    Parameters
    ----------
    motion : (n, 3) array
        offset, cosine, sine, rad or m.
    omega : float, default 1.0
        rad/s.
    ramp : float, default 0.0
        Duration of a quintic start, s; 0 for none.
    kp, kd : float or (n,) array, default 0.0
        N m/rad and N m s/rad: a servo about that motion, on the joints driven by torque.
    bandwidth : float or (n,) array, default 20.0
        rad/s: commanded offsets and gains are followed with it, critically damped.
    """

    motion: Array
    omega: float = 1.0
    ramp: float = 0.0
    kp: Any = 0.0
    kd: Any = 0.0
    bandwidth: Any = 20.0

    def at(self, time: float) -> tuple[Array, Array, Array]:
        """Return position, rate and acceleration at a time, without commanded offsets and gains.

        Parameters
        ----------
        time : float
            s.

        Returns
        -------
        (array, array, array)
            q, qd and qdd, (n,) each.
        """
        f, fd, fdd = ramp(time, self.ramp)
        c, s, w = np.cos(self.omega * time), np.sin(self.omega * time), self.omega
        offset, cosine, sine = np.asarray(self.motion, dtype=float).T
        wave = cosine * c + sine * s
        x, xd, xdd = offset + wave, w * (sine * c - cosine * s), -w * w * wave
        return f * x, fd * x + f * xd, fdd * x + 2.0 * fd * xd + f * xdd


@dataclass(frozen=True, eq=False)
class Actuator:
    """A channel and its target.

    Parameters
    ----------
    channel : Channel
        The channel.
    kind : int
        TORQUE, OFFSET, GAIN, or PUSH for an actuator on a body.
    joint : int
        Index of the joint, -1 for all joints.
    gain : float, default 1.0
        N m (N) for a command of 1 of a TORQUE; a joint adds the torques of its channels.
    """

    channel: Channel
    kind: int
    joint: int
    gain: float = 1.0


@scalar
def ramp(t: Any, length: float) -> Any:
    """Return the quintic from 0 at t = 0 to 1 at t = length, with its derivatives.

    Parameters
    ----------
    t : float
        s.
    length : float
        Duration, s; for 0 the value is 1.

    Returns
    -------
    (float, float, float)
        f, f' (1/s), f'' (1/s2).

    Notes
    -----
    Khalil 2007, eq 64.
    """
    if t >= length:
        return 1.0, 0.0, 0.0
    if t <= 0.0:
        return 0.0, 0.0, 0.0
    x = t / length
    f = x * x * x * (10.0 + x * (6.0 * x - 15.0))
    return f, 30.0 * x * x * (1.0 - x) ** 2 / length, 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / length**2


@scalar
def settle(value: Any, rate: Any, target: Any, w: float, t: Any) -> Any:
    """Return the exact solution of x'' = w^2 (target - x) - 2 w x', which smooths a command.

    Parameters
    ----------
    value, rate : float
        x and x' at t = 0.
    target : float
        Held target.
    w : float
        rad/s.
    t : float
        s.

    Returns
    -------
    (float, float, float)
        x, x', x'' at t.
    """
    a = value - target
    b = rate + w * a
    e = np.exp(-w * t)
    x = (a + b * t) * e
    v = (b - w * (a + b * t)) * e
    return target + x, v, -w * w * x - 2.0 * w * v


@scalar
def slewed(value: Any, rate: Any, target: Any, goal: Any, slew: float, w: float, t: Any) -> Any:
    """Return the exact solution of `settle` whose target moves to `goal` at the rate `slew`.

    Parameters
    ----------
    value, rate : float
        x and x' at t = 0.
    target, goal : float
        Target at t = 0, and its end.
    slew : float
        Rate of the target, > 0.
    w : float
        rad/s.
    t : float
        s.

    Returns
    -------
    (float, float, float)
        x, x', x'' at t.

    Notes
    -----
    While the target moves at v, x - v t + 2 v / w settles as with a constant target. From |x'| <= slew on, x' is a mean
    of rates of the target, so it is never faster than `slew`.
    """
    away = goal - target
    v = slew if away.real > 0.0 else -slew if away.real < 0.0 else 0.0
    time = abs(away.real) / slew
    going = t if t.real <= time else time
    behind = 2.0 * v / w
    x, xd, xdd = settle(value + behind, rate - v, target, w, going)
    x, xd = x + v * going - behind, xd + v
    if t.real > time:
        x, xd, xdd = settle(x, xd, goal, w, t - time)
    return x, xd, xdd


@scalar
def coast(value: Any, rate: Any, target: Any, w: float, t: Any) -> Any:
    """Return the exact solution of x'' = w (target - x'), which smooths a commanded rate.

    Parameters
    ----------
    value, rate : float
        x and x' at t = 0.
    target : float
        Held rate.
    w : float
        rad/s.
    t : float
        s.

    Returns
    -------
    (float, float, float)
        x, x', x'' at t.
    """
    b = (rate - target) * np.exp(-w * t)
    return value + target * t + (rate - target - b) / w, target + b, -w * b


@kernel
def reference_at_rate(law: Any, hold: Any, j: int, t: Any) -> Any:
    """Return `reference` of a joint whose target moves at a limited rate; a separate kernel keeps the others fast.

    Parameters
    ----------
    law : Record
        Record of `LAW`.
    hold : Record
        Record of `HOLD`.
    j : int
        Index of the coordinate.
    t : float
        Time, s.

    Returns
    -------
    (float, float, float)
        q, qd, qdd.
    """
    f, fd, fdd = ramp(t, law.ramp)
    since, w = t - hold.start, hold.bandwidth[j]
    c, s = np.cos(law.omega * t), np.sin(law.omega * t)
    a, b = law.motion[j, 1], law.motion[j, 2]
    y = law.motion[j, 0] + a * c + b * s
    yd = law.omega * (b * c - a * s)
    ydd = -law.omega * law.omega * (a * c + b * s)
    g, gd, gdd = settle(hold.servo[j, 2], hold.servo[j, 3], hold.target[j, 1], w, since)
    z, zd, zdd = f * y, fd * y + f * yd, fdd * y + 2.0 * fd * yd + f * ydd
    x, xd, xdd = slewed(hold.servo[j, 0], hold.servo[j, 1], hold.target[j, 0], hold.goal[j], hold.slew[j], w, since)
    return x + (1.0 + g) * z, xd + gd * z + (1.0 + g) * zd, xdd + gdd * z + 2.0 * gd * zd + (1.0 + g) * zdd


@scalar
def reference(law: Any, hold: Any, coast_: Any, j: Any, t: Any) -> Any:
    """Return the motion that a joint follows: ramp (1 + gain) (offset + wave) + commanded offset.

    Joints whose targets move at a limited rate use `reference_at_rate`.

    Parameters
    ----------
    law : Record
        Record of `LAW`.
    hold : Record
        Record of `HOLD`.
    coast_ : (n,) array or None
        hold.coast; an argument so that the compiler specialises on None.
    j : int
        Index of the coordinate.
    t : float
        Time, s.

    Returns
    -------
    (float, float, float)
        q, qd, qdd.
    """
    motion, omega, length = law.motion, law.omega, law.ramp
    target, servo, bandwidth, start = hold.target, hold.servo, hold.bandwidth, hold.start
    f, fd, fdd = ramp(t, length)
    c, s = np.cos(omega * t), np.sin(omega * t)
    a, b = motion[j, 1], motion[j, 2]
    w = motion[j, 0] + a * c + b * s
    wd = omega * (b * c - a * s)
    wdd = -omega * omega * (a * c + b * s)
    x, xd, xdd = settle(servo[j, 0], servo[j, 1], target[j, 0], bandwidth[j], t - start)
    if coast_ is not None:  # noqa: SIM102  known when compiled
        if coast_[j]:
            x, xd, xdd = coast(servo[j, 0], servo[j, 1], target[j, 0], -bandwidth[j], t - start)
    g, gd, gdd = settle(servo[j, 2], servo[j, 3], target[j, 1], bandwidth[j], t - start)
    g += 1.0
    return (
        g * f * w + x,
        gd * f * w + g * fd * w + g * f * wd + xd,
        gdd * f * w + g * fdd * w + g * f * wdd + 2.0 * (gd * fd * w + gd * f * wd + g * fd * wd) + xdd,
    )


@kernel
def follow(system: Any, state: Any, t: float) -> None:
    """Write imposed joints of a state from their law at t.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    state : (13 + 2 N,) array
        State vector of N >= n coordinates.
    t : float
        Time, s.
    """
    imposed, law, hold = system.tree.imposed, system.law, system.hold
    n = (state.shape[0] - 13) // 2
    for j in range(imposed.shape[0]):
        if imposed[j]:
            a, b, _ = reference(law, hold, hold.coast, j, t)
            state[7 + j], state[13 + n + j] = a, b
    if hold.slews:
        for j in range(imposed.shape[0]):
            if imposed[j] and hold.slew[j] < np.inf:
                a, b, _ = reference_at_rate(law, hold, j, t)
                state[7 + j], state[13 + n + j] = a, b


@kernel
def hold_commands(table: Any, command: Any, torque: Any, target: Any, slew: Any, goal: Any) -> None:
    """Distribute a command over joints; torques of several channels are added.

    Parameters
    ----------
    table : Record
        Kinds (0 torque, 1 offset, 2 gain), joints (-1: all of them) and gains of the channels.
    command : (n_actuators,) array
        The command.
    torque, target, slew, goal : array
        Arrays of `HOLD`.
    """
    kinds, joints, gains = table.kinds, table.joints, table.gains
    for a in range(kinds.shape[0]):
        for j in range(torque.shape[0]):
            if kinds[a] == 0 and (joints[a] == j or joints[a] < 0):
                torque[j] = 0.0
    for a in range(kinds.shape[0]):
        for j in range(torque.shape[0]):
            if joints[a] == j or joints[a] < 0:
                if kinds[a] == 0:
                    torque[j] += gains[a] * command[a]
                elif kinds[a] == 1 and slew[j] < np.inf:
                    goal[j] = command[a]
                else:
                    target[j, kinds[a] - 1] = command[a]


@kernel
def finish_at_rate(hold: Any, j: int, dt: float) -> None:
    """Advance the filters of a joint whose target moves at a limited rate, as `finish_servo`.

    Parameters
    ----------
    hold : Record
        Record of `HOLD`.
    j : int
        Index of the coordinate.
    dt : float
        Step, s.
    """
    target, servo, w, slew, goal = hold.target, hold.servo, hold.bandwidth[j], hold.slew[j], hold.goal[j]
    servo[j, 0], servo[j, 1], _ = slewed(servo[j, 0], servo[j, 1], target[j, 0], goal, slew, w, dt)
    servo[j, 2], servo[j, 3], _ = settle(servo[j, 2], servo[j, 3], target[j, 1], w, dt)
    target[j, 0] += min(max(goal - target[j, 0], -slew * dt), slew * dt)


@kernel
def finish_servo(hold: Any, coast_: Any, dt: float) -> None:
    """Advance the filters (value and rate of offset and gain) and targets to the end of a step.

    Parameters
    ----------
    hold : Record
        Record of `HOLD`.
    coast_ : (n,) array or None
        hold.coast; an argument so that the compiler specialises on None.
    dt : float
        Step, s.
    """
    target, servo, bandwidth = hold.target, hold.servo, hold.bandwidth
    for j in range(target.shape[0]):
        if hold.slew[j] < np.inf:
            finish_at_rate(hold, j, dt)
            continue
        for k in range(2):
            x, v, _ = settle(servo[j, 2 * k], servo[j, 2 * k + 1], target[j, k], bandwidth[j], dt)
            if coast_ is not None:  # noqa: SIM102
                if coast_[j]:
                    x, v, _ = coast(servo[j, 2 * k], servo[j, 2 * k + 1], target[j, k], -bandwidth[j], dt)
            servo[j, 2 * k], servo[j, 2 * k + 1] = x, v


# Columns of the bounds (n, BOUND_WIDTH): largest torque (inf for any); lower and upper of the spring (-inf, inf for
# none), its stiffness and damping; whether any of these exists; lower, upper (-inf, inf) and max_rate (inf) that are
# never passed, their H (0 for none) and T (s); whether the joint is held to its law as firmly, with the largest torque
# (HELD_FIRMLY), or whether the largest torque bounds its law at the step's end (SATURATES)


(
    MAX_TORQUE, LOWER, UPPER, STOP_STIFFNESS, STOP_DAMPING, BOUNDED,
    FLOOR, CEILING, MAX_SPEED, GREAT, BRAKING, FIRM,
) = range(12)  # fmt: skip
BOUND_WIDTH = 12
HELD_FIRMLY = 1.0
"""Value of FIRM of a joint that is held firmly."""
SATURATES = 2.0
"""Value of FIRM of a law that saturates.

Such a law is linearly implicit while it is within its torque, however stiff it is. Its torque is that of the solution,
drive - S_HELD qdd.
"""

RATIO = 1e6
"""H over the inertia of the joint with all others locked; a bound is violated by the inverse of it."""
BRAKING_S = 4e-3
"""Default braking time T of a limit, s."""
MIN_STEPS = 2.0
"""Smallest number of the method's steps in T; explicit methods then have an eigenvalue of -1/2, twice."""
BACK = 1.0
"""Highest rate at which a joint returns that was placed beyond its limits, rad/s or m/s."""

FREE, FROM_ABOVE, FROM_BELOW = 0, 1, -1
"""Active limit of a joint."""
TRACKING, TOO_MUCH, TOO_LITTLE = 0, 1, -1
"""State of a firmly held joint: its torque is sufficient, or at one of its limits."""


def no_bounds(n: int) -> Array:
    """Return the bounds of joints without limits.

    Parameters
    ----------
    n : int
        Number of joints.

    Returns
    -------
    (n, BOUND_WIDTH) array
        Infinite limits, default braking time.
    """
    bounds = np.zeros((n, BOUND_WIDTH))
    bounds[:, MAX_TORQUE], bounds[:, LOWER], bounds[:, UPPER] = np.inf, -np.inf, np.inf
    bounds[:, FLOOR], bounds[:, CEILING], bounds[:, MAX_SPEED] = -np.inf, np.inf, np.inf
    bounds[:, BRAKING] = BRAKING_S
    return bounds


def hard_limits(bounds: Array) -> Array:
    """Return which joints have limits that are never passed, or are held firmly.

    Parameters
    ----------
    bounds : (n, BOUND_WIDTH) array
        Bounds of the joints.

    Returns
    -------
    (n,) array of bool
        True for such joints.
    """
    firm = bounds[:, FIRM] > 0.0
    return np.asarray(np.isfinite(bounds[:, [FLOOR, CEILING, MAX_SPEED]]).any(axis=1) | firm)


@kernel
def bind(bounds: Any, j: Any, q: Any, qd: Any, implicit: float, drive: Any, s: Any) -> None:
    """Limit the drive of a joint and add its stops; S_HELD follows (see `evaluate`).

    Parameters
    ----------
    bounds : (n, BOUND_WIDTH) array
        Bounds of the joints.
    j : int
        Index of the coordinate.
    q, qd : float
        Position and rate of the joint.
    implicit : float
        Step of a linearly implicit solution, s; 0 for an explicit one.
    drive : (n,) array
        Drives of the joints; entry j is changed.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    maximum = bounds[j, MAX_TORQUE]
    if abs(drive[j].real) > maximum:
        drive[j] = maximum if drive[j].real > 0.0 else -maximum
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
def most_acceleration(limit: Any, max_rate: Any, time: Any, q: Any, qd: Any) -> Any:
    """Return the upper bound of a joint's acceleration; the lower bound is that of -q and -qd, negative.

    Parameters
    ----------
    limit : float
        Upper limit, rad or m; inf for none.
    max_rate : float
        Highest rate; inf for none.
    time : float
        Braking time T, s.
    q, qd : float
        Position and rate of the joint.

    Returns
    -------
    float
        rad/s2 or m/s2; inf for none.
    """
    bound = np.inf + 0.0 * q
    if limit < np.inf:
        bound = -((q - limit) + 2.0 * time * qd) / (time * time)
        back = (-BACK - qd) / time
        if q.real > limit and bound.real < back.real:
            bound = back
    if max_rate < np.inf:
        held = (max_rate - qd) / time
        if held.real < bound.real:
            bound = held
        least = (-max_rate - qd) / time
        if bound.real < least.real:
            bound = least
    return bound


@scalar
def braking_time(bounds: Any, j: Any, least: float) -> Any:
    """Return T of a joint.

    Parameters
    ----------
    bounds : (n, BOUND_WIDTH) array
        Bounds of the joints.
    j : int
        Index of the coordinate.
    least : float
        Shortest braking time, s, see `rtmms.mechanism.joint_laws.braking_time`.

    Returns
    -------
    float
        s.
    """
    return max(bounds[j, BRAKING], least)


@scalar
def acceleration_within(bounds: Any, j: Any, side: Any, q: Any, qd: Any, least: float) -> Any:
    """Return the acceleration bound of a joint from one side.

    Parameters
    ----------
    bounds : (n, BOUND_WIDTH) array
        Bounds of the joints.
    j : int
        Index of the coordinate.
    side : int
        FROM_ABOVE or FROM_BELOW.
    q, qd : float
        Position and rate of the joint.
    least : float
        Shortest braking time, MIN_STEPS steps of the method, s.

    Returns
    -------
    float
        rad/s2 or m/s2.
    """
    time, max_rate = braking_time(bounds, j, least), bounds[j, MAX_SPEED]
    if side == FROM_ABOVE:
        return most_acceleration(bounds[j, CEILING], max_rate, time, q, qd)
    return -most_acceleration(-bounds[j, FLOOR], max_rate, time, -q, -qd)


@scalar
def next_side(bounds: Any, j: Any, side: Any, q: Any, qd: Any, qdd: Any, least: float) -> Any:
    """Return the active limit of a joint after a solution with the present one; a stop never pulls.

    Parameters
    ----------
    bounds : (n, BOUND_WIDTH) array
        Bounds of the joints.
    j : int
        Index of the coordinate.
    side : int
        Present one of FREE, FROM_ABOVE, FROM_BELOW.
    q, qd, qdd : float
        Position, rate and acceleration of the joint.
    least : float
        Shortest braking time, MIN_STEPS steps of the method, s.

    Returns
    -------
    int
        FREE, FROM_ABOVE or FROM_BELOW.
    """
    if side == FREE:
        if qdd.real > acceleration_within(bounds, j, FROM_ABOVE, q, qd, least).real:
            return FROM_ABOVE
        if qdd.real < acceleration_within(bounds, j, FROM_BELOW, q, qd, least).real:
            return FROM_BELOW
        return FREE
    pushed = acceleration_within(bounds, j, side, q, qd, least).real - qdd.real
    return FREE if pushed * side > 0.0 else side


@scalar
def next_grip(bounds: Any, j: Any, grip: Any, wanted: Any, qdd: Any, joint_drive: Any, held: Any) -> Any:
    """Return whether the torque of a firmly held joint suffices, after a solution with the present grip.

    Parameters
    ----------
    bounds : (n, BOUND_WIDTH) array
        Bounds of the joints.
    j : int
        Index of the coordinate.
    grip : int
        Present one of TRACKING, TOO_MUCH, TOO_LITTLE.
    wanted, qdd : float
        Acceleration by the joint's law, and of the solution.
    joint_drive, held : float
        Drive and S_HELD of the joint's own law.

    Returns
    -------
    int
        TRACKING, TOO_MUCH or TOO_LITTLE.
    """
    if bounds[j, FIRM] == SATURATES:
        joint_torque = joint_drive.real - held.real * qdd.real
        return (
            TOO_MUCH
            if joint_torque > bounds[j, MAX_TORQUE]
            else TOO_LITTLE
            if joint_torque < -bounds[j, MAX_TORQUE]
            else TRACKING
        )
    if grip == TRACKING:
        torque = bounds[j, GREAT] * (wanted.real - qdd.real)
        if torque > bounds[j, MAX_TORQUE]:
            return TOO_MUCH
        return TOO_LITTLE if torque < -bounds[j, MAX_TORQUE] else TRACKING
    return TRACKING if (qdd.real - wanted.real) * grip > 0.0 else grip
