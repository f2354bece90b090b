"""Costs that are given: to follow a course, to hold depth, heading and speed. World frame, z up; SI.

Weights are those of experiments on the manta; of a course (e across, h in height, s along it, roll and pitch):

    running    e^2 + h^2 + 0.3 (s - s0 - U t)^2 + 0.1 roll^2 + 0.02 pitch^2 + w P
    terminal   0.5 ((e + tau e')^2 + 0.3 (h + tau h')^2) + 0.5 ((s - s0) / T - U)^2
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from rtmms.analysis.courses import Course
from rtmms.planning.cost import POSE, Cost

Array = npt.NDArray[np.float64]

TAU_S = 1.0
K, S, OFF, HIGH, SPEED_OFF, CLIMB_OFF, BEGUN = range(7)
"""Places in the memory of a run."""


@njit
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


@njit
def angles(q: Any) -> tuple[float, float, float]:
    """roll, pitch, yaw."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (
        math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        math.asin(min(1.0, max(-1.0, 2.0 * (w * y - z * x)))),
        math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )


@njit
def to_world(q: Any, v: Any) -> tuple[float, float, float]:
    """R v."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    a, b, c = v[0], v[1], v[2]
    p, r, s = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return a + w * p + y * s - z * r, b + w * r + z * p - x * s, c + w * s + x * r - y * p


@njit
def wrapped(angle: float) -> float:
    """Within [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


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


def _end_of_course(state: Any, memory: Any, data: Any) -> float:
    given = data[3]
    off, high = memory[OFF] + TAU_S * memory[SPEED_OFF], memory[HIGH] + TAU_S * memory[CLIMB_OFF]
    slow = (memory[S] - given[3]) / given[1] - given[0]
    return 0.5 * (off * off + 0.3 * high * high) + 0.5 * slow * slow  # type: ignore[no-any-return]


def along_course(way: Course, speed_m_s: float, horizon_s: float) -> Cost:
    """To follow a course at a speed over the ground; `begin_at` before each plan."""
    found = Cost(_along_course, POSE, 8)
    found.terminal(_end_of_course)
    found.data = (
        np.ascontiguousarray(way.points), np.ascontiguousarray(way.direction), np.ascontiguousarray(way.length),
        np.array([speed_m_s, horizon_s, 0.0, 0.0]),
    )  # fmt: skip
    return found


def begin_at(course: Cost, position: Array) -> float:
    """Where a plan of along_course begins; m along it."""
    points, direction, length, given = course.data
    k, s, _ = project(points, direction, length, int(given[2]), position)
    given[2], given[3] = k, s
    return float(s)


def _held(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Running cost of depth and heading. data: (height, heading, speed, horizon, x and y at first)"""
    roll, pitch, yaw = angles(state.quaternion)
    high, off = state.position[2] - data[0], wrapped(yaw - data[1])
    return high * high + 0.5 * off * off + 0.1 * roll * roll + 0.03 * pitch * pitch  # type: ignore[no-any-return]


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
    found = Cost(_held, POSE, 0)
    found.terminal(_end_of_hold)
    found.data = np.array([-depth_m, heading_rad, speed_m_s, horizon_s, 0.0, 0.0])
    return found


def hold_from(held: Cost, position: Array) -> None:
    """Where a plan of `hold` begins."""
    held.data[4:6] = position[:2]
