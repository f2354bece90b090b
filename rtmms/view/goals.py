"""Goals of controllers: the planned path, the robot's wanted place, and set-points beside outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.courses import Course, read_course
from rtmms.base.attitude import Pose, Vector, rotate
from rtmms.base.contract import PLANNED_MOTION, PLANNED_SAMPLES
from rtmms.base.errors import ModelError
from rtmms.loop.trace import CROSS
from rtmms.planning.shown_candidates import of_text

Array = npt.NDArray[np.float64]

ATTITUDE = "attitude, deg"
"""Plot of roll, pitch and heading from the output `quaternion`."""
BELONGS: Mapping[str, tuple[str, int, float]] = {
    "depth_m": ("position", 2, -1.0), "altitude_m": ("position", 2, 1.0), "z_m": ("position", 2, 1.0),
    "x_m": ("position", 0, 1.0), "y_m": ("position", 1, 1.0), "speed_m_s": ("velocity", 0, 1.0),
    "roll_deg": (ATTITUDE, 0, 1.0), "pitch_deg": (ATTITUDE, 1, 1.0), "heading_deg": (ATTITUDE, 2, 1.0),
    "yaw_deg": (ATTITUDE, 2, 1.0),
}  # fmt: skip
"""Output of a tracked quantity, with the index of its number and its sign."""
PLACE = ("x_m", "y_m")
HEADINGS = ("heading_deg", "yaw_deg")
MAX_POINTS = 1500


def planned_course(points: Mapping[str, Any]) -> Array | None:
    """Return the course that a controller follows.

    Parameters
    ----------
    points : Mapping[str, Any]
        Set-points by name.

    Returns
    -------
    Array | None
        (n, 3) m, world; None without a course.
    """
    course = _course(points)
    return None if course is None else course.points[:: max(1, len(course.points) // MAX_POINTS)]


def planned_motions(points: Mapping[str, Any]) -> list[Array]:
    """Return the motions that controllers plan from now on.

    Parameters
    ----------
    points : Mapping[str, Any]
        Set-points by name.

    Returns
    -------
    list[Array]
        (n, 3) m, world, each.
    """
    result = []
    for name, set_point in points.items():
        if name.rpartition(".")[2] == PLANNED_MOTION and isinstance(set_point, str):
            path = _read_motion(set_point)
            if path is not None:
                result.append(path)
    return result


def candidate_motions(points: Mapping[str, Any]) -> list[Array]:
    """Return the motions that planners tried beside those of `planned_motions`.

    Parameters
    ----------
    points : Mapping[str, Any]
        Set-points by name.

    Returns
    -------
    list[Array]
        (n, 3) m, world, each.
    """
    result = []
    for name, set_point in points.items():
        prefix, _, last = name.rpartition(PLANNED_SAMPLES)
        motion = points.get(prefix + PLANNED_MOTION)
        if not last and prefix[-1:] in ("", ".") and isinstance(set_point, str) and isinstance(motion, str):
            result += _read_tried(set_point, motion)
    return result


@lru_cache(maxsize=8)
def _read_tried(text: str, motion: str) -> list[Array]:
    path = _read_motion(motion)
    return [] if path is None else of_text(text, path[0])


@lru_cache(maxsize=8)
def _read_motion(text: str) -> Array | None:
    """Read a motion; None for a malformed text, as other peers may send anything."""
    try:
        path = np.array([[float(x) for x in word.split(",")] for word in text.split()])
    except ValueError:
        return None
    return path if path.ndim == 2 and path.shape[1] == 3 and len(path) > 1 and np.abs(path).max() < 1e6 else None


def goal(points: Mapping[str, Any], pose: Pose, size: float) -> Vector | None:
    """Return the robot's wanted place.

    On a course it is the nearest point. Else it is the place of the set-points. Coordinates without a set-point are the
    robot's own, or `size` ahead in the wanted heading.

    Parameters
    ----------
    points : Mapping[str, Any]
        Set-points by name.
    pose : Pose
        Pose of the body in the world.
    size : float
        Size of the robot, m.

    Returns
    -------
    Vector | None
        m, world; None without a set-point of it.
    """
    course = _course(points)
    if course is not None:
        x, y, z = course.at(course.nearest(np.array(pose[0]), 0.0, course.whole_m + 1.0))[0].tolist()
        return x, y, z
    values = {name: float(value) for name, value in points.items() if name in BELONGS and _is_number(value)}
    heading = next((math.radians(values[name]) for name in HEADINGS if name in values), None)
    places = {BELONGS[name][1]: BELONGS[name][2] * values[name] for name in values if BELONGS[name][0] == "position"}
    if not places and heading is None:
        return None
    x, y, z = pose[0]
    if 0 not in places and 1 not in places:
        cos, sin, _ = rotate(pose[1], (1.0, 0.0, 0.0)) if heading is None else (
            math.cos(heading), math.sin(heading), 0.0)  # fmt: skip
        x, y = x + size * cos, y + size * sin
    return places.get(0, x), places.get(1, y), places.get(2, z)


def set_points_of_output(
    output: str, set_points: Sequence[tuple[float, Mapping[str, Any]]], time: Array
) -> dict[str, Array]:
    """Return the set-points that belong to an output, at each time; the first value holds before, too.

    Parameters
    ----------
    output : str
        Name of the output.
    set_points : Sequence[tuple[float, Mapping[str, Any]]]
        Time (s) and set-points of each change.
    time : Array
        (n,) times, s.

    Returns
    -------
    dict[str, Array]
        (n,) by name.
    """
    names = [name for name in dict.fromkeys(name for _, points in set_points for name in points)
             if name in BELONGS and BELONGS[name][0] == output]  # fmt: skip
    result = {}
    for name in names:
        numbers = [(t, float(points[name])) for t, points in set_points if _is_number(points.get(name))]
        since, values = np.array(numbers).reshape(-1, 2).T
        if len(since):
            rows = np.maximum(np.searchsorted(since, time + 1e-9, side="right") - 1, 0)
            result[name] = BELONGS[name][2] * values[rows]
    return result


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number, as set-points of other peers may be anything."""
    return isinstance(value, int | float) and abs(value) < 1e300


@lru_cache(maxsize=8)
def _read(text: str) -> Course | None:
    try:
        return read_course(text)
    except ModelError:
        return None


def _course(points: Mapping[str, Any]) -> Course | None:
    text = points.get(CROSS)
    return _read(text) if isinstance(text, str) else None
