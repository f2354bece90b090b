"""Compute tendons in kernels: paths through points of bodies, their tension, and its forces at the points.

Segment k is from point k to point k + 1, l = sum l_k. A tendon of tension T_k pulls point k by T_k u_k and point k + 1
by -T_k u_k, with the segment's direction u_k. By virtual work the generalised force is -sum T_k dl_k/dq. The winch is
at the first point, and the tendon is fixed to the last one.

- tension: T_0 is the command after a lag.
- length: T_0 = k s + c s', s = l - L, where that is > 0 and s > 0; L follows the command by a critical filter.
- rate: the same, and L' follows the command by a lag.
- none: the same as length, with constant L; there is no command.

A rod that pushes as well (PUSHES) has T_0 = k s + c s' of either sign, or the command of either sign, without friction.

Friction at a point between segments, wrapped by theta (capstan), is T_k+1 = T_k exp(-mu theta sigma). In it sigma = v /
sqrt(v^2 + v_0^2) and v = -sum_{j > k} l_j', the rate of the tendon over the point towards the winch. It is smooth, and
0 at v = 0: there is no sticking, so that a tendon under load creeps at a part of v_0. The power lost to friction, sum_k
(T_k - T_0) l_k' = sum (T_k - T_k+1) v >= 0, is reported with that of the damper, (T_0 - k s) s' >= 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import Layout, model, scratch, state
from rtmms.base.spatial import Array, arctangent, cross, scalar
from rtmms.mechanism.body_actuators import lag_response
from rtmms.mechanism.joint_laws import coast, settle
from rtmms.model.layout import S_TWIST, S_WORLD_POS, S_WORLD_ROT, S_WRENCH

TENSION, LENGTH, RATE, FIXED = 0, 1, 2, 3
"""Commanded quantity of a tendon; FIXED has no command, and its channel is -1."""
# columns of a tendon: first point and how many, channel, what is commanded, N/m and N s/m, v_0 (m/s), bandwidth (rad/s)
# or time constant (s), command or length at the start, 1 where it pushes as well, N for a command of 1 (of a tension)
FIRST, COUNT, CHANNEL, KIND, STIFFNESS, DAMPING, SLIP, SPEED, START, PUSHES, FACTOR = range(11)
TENDON_WIDTH = 11
# of a point: row of the model, place in the row's frame, coefficient of friction; on a rod by strain modes (row -1 for
# the first rod, -2, ...) its place is the number of the rod's point, and y, z from there
ROW = 0
PLACE = 1
FRICTION = 4
POINT_WIDTH = 5
# results of the last evaluation of a tendon
RESULT_LENGTH, RESULT_RATE, RESULT_TENSION, RESULT_POWER, RESULT_LOSS, RESULT_ENERGY = range(6)
RESULTS = 6
# scratch of a point: where it is and moves (world), direction, rate and tension of the segment that begins there
AT = 0
MOVES = 3
ALONG = 6
SEGMENT_RATE = 9
SEGMENT_TENSION = 10
SCRATCH_NUMBERS = 11
TENDONS = Layout(
    "Tendons",
    model("numbers", "tendons", TENDON_WIDTH), model("points", "tendon_points", POINT_WIDTH),
    state("servo", "tendons", 2), scratch("results", "tendons", RESULTS),
    scratch("room", "tendon_points", SCRATCH_NUMBERS),
)  # fmt: skip
"""Tendons of a tree.

`servo` has the filtered command of each at the start of the plant's step, and its rate: N, or m and m/s of the length
L. `results` has, of the last evaluation, length (m), rate (m/s), tension at the winch (N), power of the winch (W),
power lost to friction and damper (W), and energy in the spring (J).
"""


@scalar
def filtered_command(numbers: Any, servo: Any, i: Any, command: Any, t: Any) -> Any:
    """Return the filtered command of a tendon and its rate, t seconds into the plant's step.

    Parameters
    ----------
    numbers : (t, TENDON_WIDTH) array
        Tendons.
    servo : (t, 2) array
        Filtered commands at the start of the step.
    i : int
        Index of the tendon.
    command : float
        Command of the tendon.
    t : float
        s.

    Returns
    -------
    (float, float)
        N and N/s, or m and m/s.
    """
    x, rate = lag_response(servo[i, 0], command, numbers[i, SPEED], t), 0.0 * command
    if numbers[i, KIND] == LENGTH:
        x, rate, _ = settle(servo[i, 0], servo[i, 1], command, numbers[i, SPEED], t)
    elif numbers[i, KIND] == RATE:
        x, rate, _ = coast(servo[i, 0], servo[i, 1], command, numbers[i, SPEED], t)
    elif numbers[i, KIND] == FIXED:
        x = servo[i, 0]
    return x, rate


@scalar
def command_of(numbers: Any, command: Any, i: Any, zero: Any) -> Any:
    """Return the command of a tendon.

    Parameters
    ----------
    numbers : (t, TENDON_WIDTH) array
        Tendons.
    command : (n_actuators,) array
        Commands of all actuators.
    i : int
        Index of the tendon.
    zero : float
        Result for a tendon without a command.

    Returns
    -------
    float
        N for a tension.
    """
    channel = int(numbers[i, CHANNEL])
    return numbers[i, FACTOR] * command[channel] if channel >= 0 else zero


@kernel
def place_points(points: Any, room: Any, first: int, count: int, s: Any) -> None:
    """Write positions and velocities of a tendon's points on bodies into `room`, after `place`.

    Parameters
    ----------
    points : (p, POINT_WIDTH) array
        Points of all tendons.
    room : (p, SCRATCH_NUMBERS) array
        Scratch of the points.
    first, count : int
        First point of the tendon, and number of points.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    """
    for k in range(first, first + count):
        if points[k, ROW] < 0.0:
            continue  # on a rod by strain modes (rtmms.continuum.soft_step)
        j = int(points[k, ROW])
        px, py, pz = points[k, PLACE], points[k, PLACE + 1], points[k, PLACE + 2]
        cx, cy, cz = cross(s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5], px, py, pz)
        vx, vy, vz = s[j, S_TWIST] + cx, s[j, S_TWIST + 1] + cy, s[j, S_TWIST + 2] + cz
        for a in range(3):
            r = S_WORLD_ROT + 3 * a
            room[k, AT + a] = s[j, S_WORLD_POS + a] + s[j, r] * px + s[j, r + 1] * py + s[j, r + 2] * pz
            room[k, MOVES + a] = s[j, r] * vx + s[j, r + 1] * vy + s[j, r + 2] * vz


@kernel
def run_along(room: Any, first: int, count: int) -> Any:
    """Write directions and rates of the segments between points, and return the tendon's length and rate.

    Parameters
    ----------
    room : (p, SCRATCH_NUMBERS) array
        Scratch of the points.
    first, count : int
        First point of the tendon, and number of points.

    Returns
    -------
    (float, float)
        m and m/s.
    """
    length, rate = 0.0 * room[first, AT], 0.0 * room[first, AT]
    for k in range(first, first + count - 1):
        dx, dy, dz = (
            room[k + 1, AT] - room[k, AT], room[k + 1, AT + 1] - room[k, AT + 1], room[k + 1, AT + 2] - room[k, AT + 2],
        )  # fmt: skip
        size = np.sqrt(dx * dx + dy * dy + dz * dz)
        back = 1.0 / size if size.real > 0.0 else 0.0 * size  # points that meet pull nowhere
        room[k, ALONG], room[k, ALONG + 1], room[k, ALONG + 2] = dx * back, dy * back, dz * back
        segment_rate = 0.0 * size
        for a in range(3):
            segment_rate += room[k, ALONG + a] * (room[k + 1, MOVES + a] - room[k, MOVES + a])
        room[k, SEGMENT_RATE] = segment_rate
        length, rate = length + size, rate + segment_rate
    return length, rate


@scalar
def wrap(room: Any, k: Any) -> Any:
    """Return the angle by which the tendon turns at point k: 2 atan(|u - u'| / |u + u'|).

    Parameters
    ----------
    room : (p, SCRATCH_NUMBERS) array
        Scratch of the points.
    k : int
        Index of the point.

    Returns
    -------
    float
        rad.
    """
    ux, uy, uz = room[k - 1, ALONG], room[k - 1, ALONG + 1], room[k - 1, ALONG + 2]
    vx, vy, vz = room[k, ALONG], room[k, ALONG + 1], room[k, ALONG + 2]
    dx, dy, dz = vx - ux, vy - uy, vz - uz
    ax, ay, az = vx + ux, vy + uy, vz + uz
    return 2.0 * arctangent(np.sqrt(dx * dx + dy * dy + dz * dz), np.sqrt(ax * ax + ay * ay + az * az))


@kernel
def write_tensions(tendons: Any, command: Any, elapsed: float, i: int, length: Any, rate: Any) -> None:
    """Write `results` of a tendon and the tensions of its segments, after `run_along`.

    Parameters
    ----------
    tendons : Record
        Record of `TENDONS`.
    command : (n_actuators,) array
        Commands of all actuators.
    elapsed : float
        Time since the start of the plant's step, s.
    i : int
        Index of the tendon.
    length, rate : float
        m and m/s.
    """
    numbers, points, servo, results, room = (
        tendons.numbers,
        tendons.points,
        tendons.servo,
        tendons.results,
        tendons.room,
    )
    first, last = int(numbers[i, FIRST]), int(numbers[i, FIRST]) + int(numbers[i, COUNT]) - 1
    x, paid = filtered_command(numbers, servo, i, command_of(numbers, command, i, 0.0 * length), elapsed)
    tension, loss, stored, power = x, 0.0 * x, 0.0 * x, -x * rate
    if numbers[i, PUSHES] > 0.0:
        if numbers[i, KIND] != TENSION:
            s, sd = length - x, rate - paid
            tension = numbers[i, STIFFNESS] * s + numbers[i, DAMPING] * sd
            loss, stored = numbers[i, DAMPING] * sd * sd, 0.5 * numbers[i, STIFFNESS] * s * s
            power = -tension * paid
    elif numbers[i, KIND] != TENSION:
        s, sd = length - x, rate - paid
        spring = numbers[i, STIFFNESS] * s if s.real > 0.0 else 0.0 * s
        tension = spring + numbers[i, DAMPING] * sd if s.real > 0.0 else 0.0 * s
        if tension.real < 0.0:
            tension = 0.0 * s  # slack
        loss, stored, power = (tension - spring) * sd, 0.5 * spring * s, -tension * paid
        if s.real <= 0.0:
            loss, stored = 0.0 * s, 0.0 * s
    elif tension.real < 0.0:
        tension, power = 0.0 * x, 0.0 * x
    here, beyond = tension, rate
    for k in range(first, last):
        if k > first and points[k, FRICTION] > 0.0:
            # T_k+1 = T_k exp(-mu theta sigma), the tendon running by -sum_{j > k} l_j' over the point
            v, v0 = -beyond, numbers[i, SLIP]
            here = here * np.exp(-points[k, FRICTION] * wrap(room, k) * v / np.sqrt(v * v + v0 * v0))
        room[k, SEGMENT_TENSION] = here
        beyond = beyond - room[k, SEGMENT_RATE]
        loss += (here - tension) * room[k, SEGMENT_RATE]
    results[i, RESULT_LENGTH], results[i, RESULT_RATE], results[i, RESULT_TENSION] = length, rate, tension
    results[i, RESULT_POWER], results[i, RESULT_LOSS], results[i, RESULT_ENERGY] = power, loss, stored


@scalar
def force(room: Any, k: Any, first: Any, last: Any) -> Any:
    """Return the force of a tendon on its point k, T_k u_k - T_k-1 u_k-1.

    Parameters
    ----------
    room : (p, SCRATCH_NUMBERS) array
        Scratch of the points.
    k : int
        Index of the point.
    first, last : int
        First and last point of the tendon.

    Returns
    -------
    (float, float, float)
        N, world.
    """
    fx, fy, fz = 0.0 * room[k, AT], 0.0 * room[k, AT], 0.0 * room[k, AT]
    if k < last:
        t = room[k, SEGMENT_TENSION]
        fx, fy, fz = t * room[k, ALONG], t * room[k, ALONG + 1], t * room[k, ALONG + 2]
    if k > first:
        t = room[k - 1, SEGMENT_TENSION]
        fx, fy, fz = fx - t * room[k - 1, ALONG], fy - t * room[k - 1, ALONG + 1], fz - t * room[k - 1, ALONG + 2]
    return fx, fy, fz


@kernel
def push_bodies(points: Any, room: Any, first: int, last: int, s: Any) -> None:
    """Add a tendon's forces on bodies to S_WRENCH, after `write_tensions`.

    Parameters
    ----------
    points : (p, POINT_WIDTH) array
        Points of all tendons.
    room : (p, SCRATCH_NUMBERS) array
        Scratch of the points.
    first, last : int
        First and last point of the tendon.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    for k in range(first, last + 1):
        if points[k, ROW] < 0.0:
            continue
        j, w = int(points[k, ROW]), S_WORLD_ROT
        x, y, z = force(room, k, first, last)
        fx = s[j, w] * x + s[j, w + 3] * y + s[j, w + 6] * z
        fy = s[j, w + 1] * x + s[j, w + 4] * y + s[j, w + 7] * z
        fz = s[j, w + 2] * x + s[j, w + 5] * y + s[j, w + 8] * z
        cx, cy, cz = cross(points[k, PLACE], points[k, PLACE + 1], points[k, PLACE + 2], fx, fy, fz)
        s[j, S_WRENCH] += fx
        s[j, S_WRENCH + 1] += fy
        s[j, S_WRENCH + 2] += fz
        s[j, S_WRENCH + 3] += cx
        s[j, S_WRENCH + 4] += cy
        s[j, S_WRENCH + 5] += cz


@kernel
def pull(tendons: Any, command: Any, elapsed: float, s: Any) -> None:
    """Add the tendons' forces to S_WRENCH, after `place`.

    Parameters
    ----------
    tendons : Record or None
        Record of `TENDONS`; an argument so that the compiler specialises on None.
    command : (n_actuators,) array
        Commands of all actuators.
    elapsed : float
        Time since the start of the plant's step, s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    if tendons is not None:
        numbers, points, room = tendons.numbers, tendons.points, tendons.room
        for i in range(numbers.shape[0]):
            first, last = int(numbers[i, FIRST]), int(numbers[i, FIRST]) + int(numbers[i, COUNT]) - 1
            place_points(points, room, first, last - first + 1, s)
            length, rate = run_along(room, first, last - first + 1)
            write_tensions(tendons, command, elapsed, i, length, rate)
            push_bodies(points, room, first, last, s)


@kernel
def spend_tendons(tendons: Any, h: float, spent: Any) -> None:
    """Add the winches' power and the tendons' losses at the evaluation just made, times h, to the work done.

    The losses are in the last number of the first third of `spent`. An audited tree counts them with its dampers too.

    Parameters
    ----------
    tendons : Record or None
        Record of `TENDONS`; an argument so that the compiler specialises on None.
    h : float
        Weighted length of the step, s.
    spent : (k,) array
        Sums of work, J.
    """
    if tendons is not None:
        results, last = tendons.results, spent.shape[0] // 3 - 1
        for i in range(results.shape[0]):
            spent[0] += h * results[i, RESULT_POWER]
            spent[last] += h * results[i, RESULT_LOSS]
            if last > 1:
                spent[last - 1] -= h * results[i, RESULT_LOSS]


@kernel
def tendon_energy(tendons: Any) -> float:
    """Return the energy in the tendons' springs at the evaluation just made.

    Parameters
    ----------
    tendons : Record or None
        Record of `TENDONS`; an argument so that the compiler specialises on None.

    Returns
    -------
    float
        J.
    """
    energy = 0.0
    if tendons is not None:
        for i in range(tendons.results.shape[0]):
            energy += tendons.results[i, RESULT_ENERGY]
    return energy


@kernel
def tendon_loss(tendons: Any) -> float:
    """Return the power lost to friction and dampers of tendons at the evaluation just made.

    Parameters
    ----------
    tendons : Record or None
        Record of `TENDONS`; an argument so that the compiler specialises on None.

    Returns
    -------
    float
        W.
    """
    power = 0.0
    if tendons is not None:
        for i in range(tendons.results.shape[0]):
            power += tendons.results[i, RESULT_LOSS]
    return power


@kernel
def finish_tendons(tendons: Any, command: Any, dt: float) -> None:
    """Advance the filtered commands to the end of a step.

    Parameters
    ----------
    tendons : Record or None
        Record of `TENDONS`; an argument so that the compiler specialises on None.
    command : (n_actuators,) array
        Commands of all actuators.
    dt : float
        Step, s.
    """
    if tendons is not None:
        numbers, servo = tendons.numbers, tendons.servo
        for i in range(numbers.shape[0]):
            x, rate = filtered_command(numbers, servo, i, command_of(numbers, command, i, 0.0), dt)
            servo[i, 0], servo[i, 1] = x, rate


class TendonStates(NamedTuple):
    """Filter of a tendon's command as a linear system, x' = a x + b command.

    Attributes
    ----------
    channel : int
        Index of the channel.
    a : (k, k) array
        Of the state.
    b : (k,) array
        Of the command.
    """

    channel: int
    a: Array
    b: Array

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.b)


def tendon_states(numbers: Array) -> list[TendonStates]:
    """Return the filter of each tendon.

    Parameters
    ----------
    numbers : (t, TENDON_WIDTH) array
        Tendons.

    Returns
    -------
    list[TendonStates]
        A tension without lag has no states.
    """
    result = []
    for row in numbers:
        w = float(row[SPEED])
        a, b = np.zeros((0, 0)), np.zeros(0)
        if row[KIND] == LENGTH:
            a, b = np.array([[0.0, 1.0], [-w * w, -2.0 * w]]), np.array([0.0, w * w])
        elif row[KIND] == RATE:
            a, b = np.array([[0.0, 1.0], [0.0, -w]]), np.array([0.0, w])
        elif row[KIND] == TENSION and w > 0.0:  # its time constant
            a, b = np.array([[-1.0 / w]]), np.array([1.0 / w])
        result.append(TendonStates(int(row[CHANNEL]), a, b))
    return result
