"""Costs that are given: to follow a course, to hold depth, heading and speed. World frame, z up; SI.

Weights are those of experiments on the manta; of a course (e across, h in height, s along it, roll and pitch):

    running    e^2 + h^2 + 0.3 (s - s0 - U t)^2 + 0.1 roll^2 + 0.02 pitch^2 + w P
    terminal   0.5 ((e + tau e')^2 + 0.3 (h + tau h')^2) + 0.5 ((s - s0) / T - U)^2
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.courses import Course
from rtmms.jit import kernel
from rtmms.planning.cost import POSE, Cost

Array = npt.NDArray[np.float64]

Pose = namedtuple("Pose", ("position", "quaternion", "velocity", "angular_velocity"))
"""The state that these costs see."""
TAU_S = 1.0
K, S, OFF, HIGH, SPEED_OFF, CLIMB_OFF, BEGUN = range(7)
"""Places in the memory of a run."""


@kernel
def project(points: Any, direction: Any, length: Any, k: int, at: Any) -> tuple[int, float, float]:
    """(segment, arc length, way along the segment) of the point of a course nearest to `at`, from segment k on."""
    last = len(length) - 2
    while k < last:
        along = 0.0
        for j in range(3):
            along += (at[j] - points[k + 1, j]) * direction[k, j]
        if along <= 0.0:
            break
        k += 1
    along = 0.0
    for j in range(3):
        along += (at[j] - points[k, j]) * direction[k, j]
    while k > 0 and along < 0.0:
        k -= 1
        along = 0.0
        for j in range(3):
            along += (at[j] - points[k, j]) * direction[k, j]
    return k, length[k] + along, along


@kernel
def angles(q: Any) -> tuple[float, float, float]:
    """roll, pitch, yaw."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (
        math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        math.asin(min(1.0, max(-1.0, 2.0 * (w * y - z * x)))),
        math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )


@kernel
def to_world(q: Any, v: Any) -> tuple[float, float, float]:
    """R v."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    a, b, c = v[0], v[1], v[2]
    p, r, s = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return a + w * p + y * s - z * r, b + w * r + z * p - x * s, c + w * s + x * r - y * p


@kernel
def wrapped(angle: float) -> float:
    """Within [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


@kernel
def _along_course(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Running cost of a course. data: points, direction, length, (speed, horizon, segment and arc length at first)"""
    points, direction, length, given = data
    if memory[BEGUN] == 0.0:
        memory[BEGUN], memory[K] = 1.0, given[2]
    k, s, along = project(points, direction, length, int(memory[K]), state.position)
    dx, dy, dz = direction[k, 0], direction[k, 1], direction[k, 2]
    flat = math.sqrt(dx * dx + dy * dy) + 1e-12
    p, v = state.position, to_world(state.quaternion, state.velocity)
    off = (-(p[0] - points[k, 0]) * dy + (p[1] - points[k, 1]) * dx) / flat
    high = p[2] - points[k, 2] - along * dz
    memory[K], memory[S], memory[OFF], memory[HIGH] = k, s, off, high
    memory[SPEED_OFF] = (-v[0] * dy + v[1] * dx) / flat
    memory[CLIMB_OFF] = v[2] - given[0] * dz
    roll, pitch, _ = angles(state.quaternion)
    late = s - given[3] - given[0] * time
    return off * off + high * high + 0.3 * late * late + 0.1 * roll * roll + 0.02 * pitch * pitch  # type: ignore[no-any-return]


@kernel
def _end_of_course(state: Any, memory: Any, data: Any) -> float:
    given = data[3]
    off, high = memory[OFF] + TAU_S * memory[SPEED_OFF], memory[HIGH] + TAU_S * memory[CLIMB_OFF]
    slow = (memory[S] - given[3]) / given[1] - given[0]
    return 0.5 * (off * off + 0.3 * high * high) + 0.5 * slow * slow  # type: ignore[no-any-return]


@kernel
def _course_totals(outputs: Any, dt: float, taken: Any, memory: Any, data: Any, costs: Any) -> None:
    samples = outputs.position.shape[1]
    for run in range(len(costs)):
        if not taken[run]:
            continue
        memory[:] = 0.0
        found = 0.0
        for k in range(samples):
            state = Pose(
                outputs.position[run, k], outputs.quaternion[run, k], outputs.velocity[run, k],
                outputs.angular_velocity[run, k],
            )  # fmt: skip
            found += _along_course(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                found += samples * _end_of_course(state, memory, data)
        if np.isfinite(found):
            costs[run] = found / samples


@kernel
def _hold_totals(outputs: Any, dt: float, taken: Any, memory: Any, data: Any, costs: Any) -> None:
    samples = outputs.position.shape[1]
    for run in range(len(costs)):
        if not taken[run]:
            continue
        found = 0.0
        for k in range(samples):
            state = Pose(
                outputs.position[run, k], outputs.quaternion[run, k], outputs.velocity[run, k],
                outputs.angular_velocity[run, k],
            )  # fmt: skip
            found += _held(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                found += samples * _end_of_hold(state, memory, data)
        if np.isfinite(found):
            costs[run] = found / samples


class Given(Cost):
    """A cost whose loop over runs is compiled and kept, as plants' kernels are."""

    def __init__(self, running: Any, terminal: Any, totals: Callable[..., None], memory: int, data: Any) -> None:
        super().__init__(running, POSE, memory, data)
        self.terminal(terminal)
        self._totals = totals

    def total(self, outputs: Mapping[str, Array], commands: Array, dt: float, every: int, taken: Any) -> Array:
        """See Cost."""
        given = Pose(*(outputs[name] for name in POSE))
        runs, samples = given.position.shape[:2]
        costs = np.full(runs, math.inf)
        whole = np.asarray(taken) >= samples * every
        self._totals(given, dt * every, whole, np.zeros(max(1, self.memory)), self.data, costs)
        return costs


def course_data(way: Course, speed_m_s: float, horizon_s: float) -> tuple[Array, ...]:
    """points, direction, length, (speed, horizon, segment and arc length where a plan begins)."""
    return (
        np.ascontiguousarray(way.points), np.ascontiguousarray(way.direction), np.ascontiguousarray(way.length),
        np.array([speed_m_s, horizon_s, 0.0, 0.0]),
    )  # fmt: skip


def along_course(way: Course, speed_m_s: float, horizon_s: float) -> Cost:
    """To follow a course at a speed over the ground; `begin_at` before each plan."""
    return Given(_along_course, _end_of_course, _course_totals, 8, course_data(way, speed_m_s, horizon_s))


def begin_at(course: Cost, position: Array) -> float:
    """Where a plan of along_course begins; m along it."""
    points, direction, length, given = course.data
    k, s, _ = project(points, direction, length, int(given[2]), position)
    given[2], given[3] = k, s
    return float(s)


@kernel
def _held(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Running cost of depth and heading. data: (height, heading, speed, horizon, x and y at first)"""
    roll, pitch, yaw = angles(state.quaternion)
    high, off = state.position[2] - data[0], wrapped(yaw - data[1])
    return high * high + 0.5 * off * off + 0.1 * roll * roll + 0.03 * pitch * pitch  # type: ignore[no-any-return]


@kernel
def _end_of_hold(state: Any, memory: Any, data: Any) -> float:
    v = to_world(state.quaternion, state.velocity)
    _, _, yaw = angles(state.quaternion)
    high = state.position[2] - data[0] + TAU_S * v[2]
    off = wrapped(yaw - data[1] + TAU_S * state.angular_velocity[2])
    gone = (state.position[0] - data[4]) * math.cos(data[1]) + (state.position[1] - data[5]) * math.sin(data[1])
    slow = gone / data[3] - data[2]
    return 0.15 * high * high + 0.5 * off * off + 0.5 * slow * slow  # type: ignore[no-any-return]


def hold(depth_m: float, heading_rad: float, speed_m_s: float, horizon_s: float) -> Cost:
    """To hold depth (positive down), heading and speed over the ground; `hold_from` before each plan."""
    data = np.array([-depth_m, heading_rad, speed_m_s, horizon_s, 0.0, 0.0])
    return Given(_held, _end_of_hold, _hold_totals, 0, data)


def hold_from(held: Cost, position: Array) -> None:
    """Where a plan of `hold` begins."""
    held.data[4:6] = position[:2]


@kernel
def _hovers(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Running cost of a place, as the distance where that is far. data: (x, y, z, yaw)"""
    _, _, yaw = angles(state.quaternion)
    off, slow = 0.0, 0.0
    for k in range(3):
        off += (state.position[k] - data[k]) ** 2
        slow += 0.12 * state.velocity[k] ** 2 + 0.01 * state.angular_velocity[k] ** 2
    turned = wrapped(yaw - data[3])
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
def _hover_totals(outputs: Any, dt: float, taken: Any, memory: Any, data: Any, costs: Any) -> None:
    samples = outputs.position.shape[1]
    for run in range(len(costs)):
        if not taken[run]:
            continue
        found = 0.0
        for k in range(samples):
            state = Pose(
                outputs.position[run, k], outputs.quaternion[run, k], outputs.velocity[run, k],
                outputs.angular_velocity[run, k],
            )  # fmt: skip
            found += _hovers(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                found += samples * _end_of_hover(state, memory, data)
        if np.isfinite(found):
            costs[run] = found / samples


def hover_at(x_m: float, y_m: float, z_m: float, yaw_rad: float) -> Cost:
    """To fly to a place, and to stay there."""
    return Given(_hovers, _end_of_hover, _hover_totals, 0, np.array([x_m, y_m, z_m, yaw_rad]))
