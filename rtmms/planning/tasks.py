"""Available costs: to follow a course, to hold depth, heading and speed. World frame, z up; SI.

Weights are those of experiments on the manta; of a course (e across, h in height, roll and pitch):

    running    e^2 + h^2 + 0.3 l^2 + 0.1 roll^2 + 0.02 pitch^2 + max(0, 0.87 - x . d)^2
    terminal   0.5 ((e + tau e')^2 + 0.3 (h + tau h')^2) + 0.5 (l / T)^2

e and h are to the nearest point, at a corner to the corner. A reference point r(t) moves along the course at the speed
U; l^2 = |p - r|^2 - e^2 - h^2, d is the direction at r, x the body's forward axis. Beyond its ends a course continues
in a straight line.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.courses import REACH_M, Course, nearest_on
from rtmms.base.jit import kernel
from rtmms.base.override import override
from rtmms.planning.cost import POSE, Cost

Array = npt.NDArray[np.float64]

Pose = namedtuple("Pose", ("position", "quaternion", "velocity", "angular_velocity"))
"""State of these costs."""
TAU_S = 1.0
MAX_LEAD_M = 1.0
"""Lead of a plan's reference over the robot, m."""
LEAD_DECAY_S = 5.0
"""Time constant of the lead's decay, s."""
STRAIGHT = 0.94
"""Cosine of the angle between two segments, 20 deg, up to which a course has no corner there."""
FACING = 0.87
"""Cosine of the angle between the robot and the course, 30 deg, up to which its heading costs nothing: in a current
from the side it has to point away from the course.
"""
S, OFF_X, OFF_Y, HIGH, SPEED_X, SPEED_Y, CLIMB_OFF, LATE, BEGUN = range(9)
"""Places in the memory of a run."""


nearest = kernel(nearest_on)


@kernel
def project(
    points: Any, direction: Any, length: Any, near: float, at: Any
) -> tuple[int, float, float, float, float, bool]:  # fmt: skip
    """Find the point of a course that is nearest to `at`, close to the arc length `near`.

    Beyond its ends the course continues in a straight line.

    Parameters
    ----------
    points : Any
        (n, 3) points, m.
    direction : Any
        (n, 3) directions of the segments.
    length : Any
        (n,) arc lengths of the points, m.
    near : float
        Arc length around which the search goes, m.
    at : Any
        (3,) place, m, world.

    Returns
    -------
    tuple[int, float, float, float, float, bool]
        Segment, arc length, the vector from that point to `at` (x, y, z), and whether the point is a corner that stays
        the nearest one while `at` moves a little.
    """
    k, s, _ = nearest(points, length, at, near, REACH_M)
    along = 0.0
    for j in range(3):
        along += (at[j] - points[k, j]) * direction[k, j]
    span = length[k + 1] - length[k]
    beyond = (k == 0 and along < 0.0) or (k == len(length) - 2 and along > span)
    if beyond:
        s = length[k] + along
    else:
        along = s - length[k]
    x = at[0] - points[k, 0] - along * direction[k, 0]
    y = at[1] - points[k, 1] - along * direction[k, 1]
    z = at[2] - points[k, 2] - along * direction[k, 2]
    corner = not beyond and not 0.0 < along < span
    if corner:  # a curve of short segments has none
        item = max(k - 1, 0) if along <= 0.0 else k
        straight = 0.0
        for j in range(3):
            straight += direction[item, j] * direction[item + 1, j]
        corner = straight < STRAIGHT
    return k, s, x, y, z, corner


@kernel
def late_by(points: Any, direction: Any, length: Any, s: float, at: Any) -> tuple[int, float]:
    """Return the segment of the point at an arc length, and its squared distance to `at`.

    Parameters
    ----------
    points : Any
        (n, 3) points, m.
    direction : Any
        (n, 3) directions of the segments.
    length : Any
        (n,) arc lengths of the points, m.
    s : float
        Arc length, m.
    at : Any
        (3,) place, m, world.

    Returns
    -------
    tuple[int, float]
        Segment, and m2.
    """
    first, other = 0, len(length) - 2
    while first < other:
        middle = (first + other + 1) // 2
        if length[middle] <= s:
            first = middle
        else:
            other = middle - 1
    result = 0.0
    for j in range(3):
        result += (at[j] - points[first, j] - (s - length[first]) * direction[first, j]) ** 2
    return first, result


@kernel
def angles(q: Any) -> tuple[float, float, float]:
    """Return roll, pitch and yaw of a quaternion.

    Parameters
    ----------
    q : Any
        (4,) body to world.

    Returns
    -------
    tuple[float, float, float]
        rad.
    """
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (
        math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        math.asin(min(1.0, max(-1.0, 2.0 * (w * y - z * x)))),
        math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )


@kernel
def to_world(q: Any, v: Any) -> tuple[float, float, float]:
    """Return R v.

    Parameters
    ----------
    q : Any
        (4,) body to world.
    v : Any
        (3,) vector, body.

    Returns
    -------
    tuple[float, float, float]
        Components, world.
    """
    w, x, y, z = q[0], q[1], q[2], q[3]
    a, b, c = v[0], v[1], v[2]
    p, r, s = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return a + w * p + y * s - z * r, b + w * r + z * p - x * s, c + w * s + x * r - y * p


@kernel
def wrap_angle(angle: float) -> float:
    """Wrap an angle into [-pi, pi).

    Parameters
    ----------
    angle : float
        Angle, rad.

    Returns
    -------
    float
        rad.
    """
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


@kernel
def facing(q: Any, direction: Any) -> float:
    """Return the cosine of the angle between the body's forward axis and a direction.

    Parameters
    ----------
    q : Any
        (4,) body to world.
    direction : Any
        (3,) unit vector, world.

    Returns
    -------
    float
        -1 to 1.
    """
    x, y, z = to_world(q, (1.0, 0.0, 0.0))
    return x * direction[0] + y * direction[1] + z * direction[2]  # type: ignore[no-any-return]


@kernel
def _along_course(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Return the running cost of a course; data: see `course_data`."""
    points, direction, length, values = data
    if memory[BEGUN] == 0.0:
        memory[BEGUN], memory[S] = 1.0, values[2]
    k, s, x, y, high, corner = project(points, direction, length, memory[S], state.position)
    dx, dy, dz = direction[k, 0], direction[k, 1], direction[k, 2]
    v = to_world(state.quaternion, state.velocity)
    # a nearest point that moves with the robot takes up the speed along the course
    flat = dx * dx + dy * dy + 1e-12
    ahead = 0.0 if corner else (v[0] * dx + v[1] * dy) / flat
    memory[S], memory[OFF_X], memory[OFF_Y], memory[HIGH] = s, x, y, high
    memory[SPEED_X], memory[SPEED_Y] = v[0] - ahead * dx, v[1] - ahead * dy
    memory[CLIMB_OFF] = v[2] - values[0] * dz
    roll, pitch, _ = angles(state.quaternion)
    to, late = late_by(points, direction, length, values[3] + values[0] * time, state.position)
    off = x * x + y * y + high * high
    late -= off  # along the course
    memory[LATE] = late
    astern = max(0.0, FACING - facing(state.quaternion, direction[to]))
    off += 0.3 * late + 0.1 * roll * roll + 0.02 * pitch * pitch
    return off + astern * astern  # type: ignore[no-any-return]


@kernel
def _end_of_course(state: Any, memory: Any, data: Any) -> float:
    values = data[3]
    x, y = memory[OFF_X] + TAU_S * memory[SPEED_X], memory[OFF_Y] + TAU_S * memory[SPEED_Y]
    high = memory[HIGH] + TAU_S * memory[CLIMB_OFF]
    slow = memory[LATE] / (values[1] * values[1])
    return 0.5 * (x * x + y * y + 0.3 * high * high) + 0.5 * slow  # type: ignore[no-any-return]


@kernel
def _course_totals(outputs: Any, dt: float, steps_taken: Any, memory: Any, data: Any, costs: Any) -> None:
    samples = outputs.position.shape[1]
    for run in range(len(costs)):
        if not steps_taken[run]:
            continue
        memory[:] = 0.0
        result = 0.0
        for k in range(samples):
            state = Pose(
                outputs.position[run, k], outputs.quaternion[run, k], outputs.velocity[run, k],
                outputs.angular_velocity[run, k],
            )  # fmt: skip
            result += _along_course(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                result += samples * _end_of_course(state, memory, data)
        if np.isfinite(result):
            costs[run] = result / samples


@kernel
def _hold_totals(outputs: Any, dt: float, steps_taken: Any, memory: Any, data: Any, costs: Any) -> None:
    samples = outputs.position.shape[1]
    for run in range(len(costs)):
        if not steps_taken[run]:
            continue
        result = 0.0
        for k in range(samples):
            state = Pose(
                outputs.position[run, k], outputs.quaternion[run, k], outputs.velocity[run, k],
                outputs.angular_velocity[run, k],
            )  # fmt: skip
            result += _held(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                result += samples * _end_of_hold(state, memory, data)
        if np.isfinite(result):
            costs[run] = result / samples


class CompiledCost(Cost):
    """Cost whose loop over runs is compiled and cached, as plants' kernels are.

    Parameters
    ----------
    running, terminal : Any
        Kernels of the costs.
    totals : Callable[..., None]
        Kernel of the loop.
    memory : int
        Numbers of a run's own.
    data : Any
        Last argument of the kernels.
    """

    def __init__(self, running: Any, terminal: Any, totals: Callable[..., None], memory: int, data: Any) -> None:
        super().__init__(running, POSE, memory, data)
        self.terminal(terminal)
        self._totals = totals

    @override
    def total(self, outputs: Mapping[str, Array], commands: Array, dt: float, every: int, steps_taken: Any) -> Array:
        pose = Pose(*(outputs[name] for name in POSE))
        runs, samples = pose.position.shape[:2]
        costs = np.full(runs, math.inf)
        whole = np.asarray(steps_taken) >= samples * every
        self._totals(pose, dt * every, whole, np.zeros(max(1, self.memory)), self.data, costs)
        return costs


def course_data(course: Course, speed_m_s: float, horizon_s: float) -> tuple[Array, ...]:
    """Return the data of a course's cost.

    Parameters
    ----------
    course : Course
        The course.
    speed_m_s : float
        Speed, m/s.
    horizon_s : float
        Horizon of a plan, s.

    Returns
    -------
    tuple[Array, ...]
        Points, direction, length, and (speed, horizon, arc length near which the search begins, arc length where a plan
        begins).
    """
    return (
        np.ascontiguousarray(course.points),
        np.ascontiguousarray(course.direction),
        np.ascontiguousarray(course.length),
        np.array([speed_m_s, horizon_s, 0.0, 0.0]),
    )


def along_course(course: Course, speed_m_s: float, horizon_s: float) -> Cost:
    """Return the cost to follow a course at a speed over the ground.

    Call `begin_at` before each plan.

    Parameters
    ----------
    course : Course
        The course.
    speed_m_s : float
        Speed, m/s.
    horizon_s : float
        Horizon of a plan, s.

    Returns
    -------
    Cost
        The cost.
    """
    return CompiledCost(_along_course, _end_of_course, _course_totals, 9, course_data(course, speed_m_s, horizon_s))


def begin_at(course: Cost, position: Array, passed_s: float = 0.0) -> float:
    """Begin the next plan of `along_course` at a place.

    The plan's reference has moved at the course's speed for `passed_s` since the last plan, at most `MAX_LEAD_M` ahead
    of the robot; its lead decays within some `LEAD_DECAY_S`. So the cost of a robot that stops at a corner rises until
    it continues, and that of a slightly slow robot does not.

    Parameters
    ----------
    course : Cost
        A cost of `along_course`.
    position : Array
        (3,) position, m, world.
    passed_s : float, default 0.0
        Time since the last plan, s.

    Returns
    -------
    float
        m along the course, of the place's nearest point.
    """
    points, direction, length, values = course.data
    # of two legs that are equally near, the one that the reference is on
    _, s, *_ = project(points, direction, length, max(float(values[2]), float(values[3])), position)
    lead = (values[3] + values[0] * passed_s - s) * math.exp(-passed_s / LEAD_DECAY_S)
    values[2], values[3] = s, s + min(max(lead, 0.0), MAX_LEAD_M)
    return float(s)


@kernel
def _held(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Return the running cost of depth and heading; data: (height, heading, speed, horizon, x and y at first)."""
    roll, pitch, yaw = angles(state.quaternion)
    high, off = state.position[2] - data[0], wrap_angle(yaw - data[1])
    return high * high + 0.5 * off * off + 0.1 * roll * roll + 0.03 * pitch * pitch  # type: ignore[no-any-return]


@kernel
def _end_of_hold(state: Any, memory: Any, data: Any) -> float:
    v = to_world(state.quaternion, state.velocity)
    _, _, yaw = angles(state.quaternion)
    high = state.position[2] - data[0] + TAU_S * v[2]
    off = wrap_angle(yaw - data[1] + TAU_S * state.angular_velocity[2])
    gone = (state.position[0] - data[4]) * math.cos(data[1]) + (state.position[1] - data[5]) * math.sin(data[1])
    slow = gone / data[3] - data[2]
    return 0.15 * high * high + 0.5 * off * off + 0.5 * slow * slow  # type: ignore[no-any-return]


def hold(depth_m: float, heading_rad: float, speed_m_s: float, horizon_s: float) -> Cost:
    """Return the cost to hold depth, heading and speed over the ground.

    Call `hold_from` before each plan.

    Parameters
    ----------
    depth_m : float
        Depth, m, positive down.
    heading_rad : float
        Heading, rad.
    speed_m_s : float
        Speed, m/s.
    horizon_s : float
        Horizon of a plan, s.

    Returns
    -------
    Cost
        The cost.
    """
    data = np.array([-depth_m, heading_rad, speed_m_s, horizon_s, 0.0, 0.0])
    return CompiledCost(_held, _end_of_hold, _hold_totals, 0, data)


def hold_from(held: Cost, position: Array) -> None:
    """Set the start of the next plan of `hold`.

    Parameters
    ----------
    held : Cost
        A cost of `hold`.
    position : Array
        (3,) position, m, world.
    """
    held.data[4:6] = position[:2]


@kernel
def _hovers(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Return the running cost of a place, as the distance where that is far; data: (x, y, z, yaw)."""
    _, _, yaw = angles(state.quaternion)
    off, slow = 0.0, 0.0
    for k in range(3):
        off += (state.position[k] - data[k]) ** 2
        slow += 0.12 * state.velocity[k] ** 2 + 0.01 * state.angular_velocity[k] ** 2
    turned = wrap_angle(yaw - data[3])
    tilt = state.quaternion[1] ** 2 + state.quaternion[2] ** 2
    return 2.0 * (math.sqrt(1.0 + off) - 1.0) + slow + 0.2 * turned * turned + tilt  # type: ignore[no-any-return]


@kernel
def _end_of_hover(state: Any, memory: Any, data: Any) -> float:
    off, fast = 0.0, 0.0
    v = to_world(state.quaternion, state.velocity)
    for k in range(3):
        off += (state.position[k] - data[k] + 0.5 * v[k]) ** 2
        fast += 0.3 * v[k] ** 2 + 0.01 * state.angular_velocity[k] ** 2
    tilt = state.quaternion[1] ** 2 + state.quaternion[2] ** 2
    return 4.0 * (math.sqrt(1.0 + off) - 1.0) + fast + tilt  # type: ignore[no-any-return]


@kernel
def _hover_totals(outputs: Any, dt: float, steps_taken: Any, memory: Any, data: Any, costs: Any) -> None:
    samples = outputs.position.shape[1]
    for run in range(len(costs)):
        if not steps_taken[run]:
            continue
        result = 0.0
        for k in range(samples):
            state = Pose(
                outputs.position[run, k], outputs.quaternion[run, k], outputs.velocity[run, k],
                outputs.angular_velocity[run, k],
            )  # fmt: skip
            result += _hovers(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                result += samples * _end_of_hover(state, memory, data)
        if np.isfinite(result):
            costs[run] = result / samples


def hover_at(x_m: float, y_m: float, z_m: float, yaw_rad: float) -> Cost:
    """Return the cost to fly to a place, and to stay there.

    Parameters
    ----------
    x_m, y_m, z_m : float
        Place, m, world.
    yaw_rad : float
        Yaw, rad.

    Returns
    -------
    Cost
        The cost.
    """
    return CompiledCost(_hovers, _end_of_hover, _hover_totals, 0, np.array([x_m, y_m, z_m, yaw_rad]))
