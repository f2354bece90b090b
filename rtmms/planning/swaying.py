"""Costs of a swimmer whose head swings with its beat, such as the eel. World frame, z up; SI.

A momentary heading or velocity depends on the head's phase in the beat. So the cost at the end of a horizon of whole
beats uses means over its halves. With 1 and 2 the means of the first and the second half, along a course:

    running    e^2 + h^2
    terminal   w ((2 e2 - e1)^2 + (2 h2 - h1)^2) + ((s - s0) / T - U)^2

e, horizontal, is a vector to the nearest point of the course.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.courses import Course
from rtmms.base.jit import kernel
from rtmms.planning.cost import Cost
from rtmms.planning.tasks import CompiledCost, Pose, angles, course_data, project, wrap_angle

Array = npt.NDArray[np.float64]

AHEAD = 2.0
"""Weight w of the error at the end and its trend."""
FIRST, SECOND, S, BEGUN, COUNTS = 0, 3, 6, 7, 8
"""Places in the memory of a run: sums of three quantities over either half, the course's, samples of either half."""
MEMORY = 10


@kernel
def _summed(first: float, second: float, third: float, time: float, horizon: float, memory: Any) -> None:
    half = 0 if time <= 0.5 * horizon + 1e-9 else 1
    memory[FIRST + 3 * half] += first
    memory[FIRST + 3 * half + 1] += second
    memory[FIRST + 3 * half + 2] += third
    memory[COUNTS + half] += 1.0


@kernel
def _going(which: int, memory: Any) -> float:
    """Return 2 e2 - e1 of one quantity."""
    first, second = max(memory[COUNTS], 1.0), max(memory[COUNTS + 1], 1.0)
    return 2.0 * memory[SECOND + which] / second - memory[FIRST + which] / first  # type: ignore[no-any-return]


@kernel
def _along(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Return the running cost of a course; data as rtmms.planning.tasks.course_data."""
    points, direction, length, values = data
    if memory[BEGUN] == 0.0:
        memory[BEGUN], memory[S] = 1.0, values[2]
    _, s, x, y, high, _ = project(points, direction, length, memory[S], state.position)
    memory[S] = s
    _summed(x, y, high, time, values[1], memory)
    return x * x + y * y + high * high  # type: ignore[no-any-return]


@kernel
def _end_along(state: Any, memory: Any, data: Any) -> float:
    values = data[3]
    x, y, high = _going(0, memory), _going(1, memory), _going(2, memory)
    slow = (memory[S] - values[3]) / values[1] - values[0]
    return AHEAD * (x * x + y * y + high * high) + slow * slow  # type: ignore[no-any-return]


@kernel
def _along_totals(outputs: Any, dt: float, steps_taken: Any, memory: Any, data: Any, costs: Any) -> None:
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
            result += _along(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                result += samples * _end_along(state, memory, data)
        if np.isfinite(result):
            costs[run] = result / samples


@kernel
def _holding(state: Any, command: Any, time: float, memory: Any, data: Any) -> float:
    """Return the running cost of depth and heading; data as of rtmms.planning.tasks.hold."""
    _, _, yaw = angles(state.quaternion)
    off, high = wrap_angle(yaw - data[1]), state.position[2] - data[0]
    _summed(off, high, 0.0, time, data[3], memory)
    return 0.5 * off * off + high * high  # type: ignore[no-any-return]


@kernel
def _end_holding(state: Any, memory: Any, data: Any) -> float:
    off, high = _going(0, memory), _going(1, memory)
    gone = (state.position[0] - data[4]) * math.cos(data[1]) + (state.position[1] - data[5]) * math.sin(data[1])
    slow = gone / data[3] - data[2]
    return AHEAD * (0.5 * off * off + high * high) + slow * slow  # type: ignore[no-any-return]


@kernel
def _holding_totals(outputs: Any, dt: float, steps_taken: Any, memory: Any, data: Any, costs: Any) -> None:
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
            result += _holding(state, memory, (k + 1) * dt, memory, data)
            if k == samples - 1:
                result += samples * _end_holding(state, memory, data)
        if np.isfinite(result):
            costs[run] = result / samples


def sway_along(course: Course, speed_m_s: float, horizon_s: float) -> Cost:
    """Return the cost to follow a course at a speed over the ground.

    Call rtmms.planning.tasks.begin_at before each plan.

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
    return CompiledCost(_along, _end_along, _along_totals, MEMORY, course_data(course, speed_m_s, horizon_s))


def sway_holding(depth_m: float, heading_rad: float, speed_m_s: float, horizon_s: float) -> Cost:
    """Return the cost to hold depth, heading and speed.

    Call rtmms.planning.tasks.hold_from before each plan.

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
    return CompiledCost(_holding, _end_holding, _holding_totals, MEMORY, data)
