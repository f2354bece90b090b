"""Courses in space: along waypoints, a helix, a figure of eight; and the distance of a point from them.

A course is a polyline, fine where it is curved, with its arc length, direction and curvature. World frame, z up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import Array

KINDS = ("waypoints", "helix", "eight")
_FINE_M = 0.02
REACH_M = 1.5
"""Arc length to either side of the last nearest point, within which the next one is searched, m."""
CUTS_M = 1.0
"""Distance before the tip of a reversal at which a robot may already turn back, m; half of it counts."""


def nearest_on(points: Any, length: Any, at: Any, near: float, reach: float) -> tuple[int, float, float]:
    """Find the point of a polyline that is nearest to `at`, close to a known arc length.

    Controllers and the report call this function from Python; the costs of `rtmms.planning` compile it.

    Parameters
    ----------
    points : Any
        (n, 3) m, the polyline.
    length : Any
        (n,) m, the arc length at each point.
    at : Any
        (3,) m, the place whose nearest point is searched.
    near, reach : float
        Arc lengths, m. Segments from arc length near - reach to near + reach are searched.

    Returns
    -------
    tuple[int, float, float]
        Segment, arc length (m), squared distance (m2). Of points that are equally near, one less than `CUTS_M` ahead of
        `near`, else the one that is closest to it.

    Notes
    -----
    Along the course the distance to `at` changes no faster than the arc length. So the segments that follow a point at
    the distance d are skipped for the length d - (smallest distance so far).
    """
    last = len(length) - 2
    home, other = 0, last
    while home < other:
        middle = (home + other + 1) // 2
        if length[middle] <= near:
            home = middle
        else:
            other = middle - 1
    x, y, z = at[0], at[1], at[2]
    result, arc, least = -1, 0.0, math.inf
    for side in range(2):
        step = 1 - 2 * side
        k = home - side
        while 0 <= k <= last:
            if (side == 0 and k != home and length[k] > near + reach) or (side == 1 and length[k + 1] < near - reach):
                break
            ax, ay, az = points[k][0], points[k][1], points[k][2]
            dx, dy, dz = points[k + 1][0] - ax, points[k + 1][1] - ay, points[k + 1][2] - az
            span = dx * dx + dy * dy + dz * dz
            share = 0.0
            if span > 0.0:
                share = min(1.0, max(0.0, ((x - ax) * dx + (y - ay) * dy + (z - az) * dz) / span))
            ex, ey, ez = x - ax - share * dx, y - ay - share * dy, z - az - share * dz
            off = ex * ex + ey * ey + ez * ez
            s = length[k] + share * (length[k + 1] - length[k])
            closer = abs(arc - near) - abs(s - near)  # m, and what is ahead counts as nearer than it is
            closer += (CUTS_M if s > near else 0.0) - (CUTS_M if arc > near else 0.0)
            tie = abs(off - least) <= 1e-12 * (1.0 + off)
            if (off < least and not tie) or (tie and (closer > 1e-9 or (closer > -1e-9 and k > result))):
                result, arc, least = k, s, off
            end = k + 1 - side
            ex, ey, ez = x - points[end][0], y - points[end][1], z - points[end][2]
            skip = math.sqrt(ex * ex + ey * ey + ez * ez) - math.sqrt(least)
            k += step
            while 0 <= k <= last and abs(length[k + 1 - side] - length[end]) < skip:
                k += step
    return result, arc, least


@dataclass(frozen=True, eq=False)
class Course:
    """Course as a polyline.

    Attributes
    ----------
    points : Array
        (n, 3) points, m, world.
    length : Array
        (n,) m along it.
    direction : Array
        (n, 3) unit vectors.
    curvature : Array
        (n,) 1/m, horizontal, > 0 to the left.

    Examples
    --------
    >>> from rtmms.analysis.courses import course
    >>> line = course("waypoints", waypoints="0 0 -1; 10 0 -1")
    >>> line.whole_m
    10.0
    """

    points: Array
    length: Array
    direction: Array
    curvature: Array

    @property
    def whole_m(self) -> float:
        """Length from end to end, m."""
        return float(self.length[-1])

    def at(self, s: float) -> tuple[Array, Array, float]:
        """Return point, direction and curvature at an arc length.

        Parameters
        ----------
        s : float
            Arc length, m; beyond the ends of the course, those of the ends.

        Returns
        -------
        tuple[Array, Array, float]
            (3,) m, (3,), and 1/m.
        """
        k = int(np.searchsorted(self.length, min(max(s, 0.0), self.whole_m), side="right")) - 1
        k = min(max(k, 0), len(self.length) - 2)
        span = self.length[k + 1] - self.length[k]
        share = min(max((s - self.length[k]) / span, 0.0), 1.0)
        return self.points[k] + share * (self.points[k + 1] - self.points[k]), self.direction[k], float(
            self.curvature[k]
        )  # fmt: skip

    def nearest(self, point: Array, near: float, reach: float = REACH_M) -> float:
        """Return the arc length of the point nearest to `point`, close to the arc length `near`; see `nearest_on`.

        Parameters
        ----------
        point : Array
            (3,) point, m, world.
        near : float
            Arc length around which the search goes, m.
        reach : float, default 1.5
            Length of the search to either side, m.

        Returns
        -------
        float
            m.
        """
        points, length = self._lists
        x, y, z = point
        return float(nearest_on(points, length, (float(x), float(y), float(z)), near, reach)[1])

    @cached_property
    def _lists(self) -> tuple[list[list[float]], list[float]]:
        """Points and lengths as lists: plain Python reads their numbers faster than those of arrays."""
        return self.points.tolist(), self.length.tolist()


WITHOUT_EFFECT = {
    "waypoints": ("radius_m", "rise_m", "turns", "heading_deg"), "helix": (), "eight": ("rise_m",),
}  # fmt: skip
"""Arguments of `course` that a kind does not use."""


def course(
    kind: str, *, waypoints: str = "", radius_m: float = 3.0, rise_m: float = -1.0, turns: float = 2.0,
    depth_m: float = 3.0, heading_deg: float = 0.0,
) -> Course:  # fmt: skip
    """Return a course by its name.

    It begins at (0, 0, -depth_m) in the direction of heading_deg, except for waypoints.

    Parameters
    ----------
    kind : str
        'waypoints', 'helix' (to the left), or 'eight' (a lemniscate, nowhere narrower than radius_m).
    waypoints : str, default ''
        'x y z; x y z; ...', m, world.
    radius_m : float, default 3.0
        Radius, m.
    rise_m : float, default -1.0
        Rise of a turn, m.
    turns : float, default 2.0
        Number of turns.
    depth_m : float, default 3.0
        Depth of the start, m.
    heading_deg : float, default 0.0
        Direction of the start, deg.

    Returns
    -------
    Course
        The course.

    Raises
    ------
    ModelError
        A point or a number is impossible; the message names it.
    UnknownNameError
        The name is unknown.
    """
    if kind not in KINDS:
        raise UnknownNameError("course", kind, KINDS)
    if kind == "waypoints":
        return _course(_waypoints(waypoints))
    for name, value, least in (("radius_m", radius_m, 0.1), ("turns", turns, 0.05)):
        if not (math.isfinite(value) and value >= least):
            raise ModelError(f"course {kind}: {name}: expected a number >= {least}, got {value}")
    for name, value in (("rise_m", rise_m), ("depth_m", depth_m), ("heading_deg", heading_deg)):
        if not math.isfinite(value):
            raise ModelError(f"course {kind}: {name}: expected a finite number, got {value}")
    n = max(16, math.ceil((6.0 if kind == "helix" else 16.0) * radius_m * turns / _FINE_M))
    t = np.linspace(0.0, 2.0 * math.pi * turns, n + 1)
    if kind == "helix":
        flat = np.array([radius_m * np.sin(t), radius_m * (1.0 - np.cos(t))])
        height = rise_m * t / (2.0 * math.pi)
    else:  # Bernoulli's lemniscate from its crossing on; its curvature is 3 / a at most
        u, a = t - 0.5 * math.pi, 3.0 * radius_m
        x, y = a * np.cos(u) / (1.0 + np.sin(u) ** 2), a * np.sin(u) * np.cos(u) / (1.0 + np.sin(u) ** 2)
        flat, height = np.array([x - y, x + y]) / math.sqrt(2.0), np.zeros_like(t)
    c, s = math.cos(math.radians(heading_deg)), math.sin(math.radians(heading_deg))
    flat = np.array([[c, -s], [s, c]]) @ flat
    return _course(np.array([flat[0], flat[1], height - depth_m]).T)


def _waypoints(text: str) -> Array:
    points = []
    for k, part in enumerate(text.split(";"), 1):
        try:
            numbers = [float(word) for word in part.split()]
        except ValueError:
            numbers = []
        if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
            raise ModelError(f"course: waypoint {k}: expected three finite numbers 'x y z' in m, got '{part.strip()}'")
        points.append(numbers)
    if len(points) < 2:
        raise ModelError(f"course: expected two waypoints or more, 'x y z; x y z; ...', got {len(points)}")
    for k in range(1, len(points)):
        if math.dist(points[k - 1], points[k]) < 1e-3:
            raise ModelError(
                f"course: waypoint {k + 1}: expected another place than waypoint {k}, got the same, "
                f"{text.split(';')[k].strip()}; remove one of them"
            )
    return np.array(points)


def _course(points: Array) -> Course:
    span = np.diff(points, axis=0)
    lengths = np.linalg.norm(span, axis=1)
    direction = span / lengths[:, None]
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    bearing = np.unwrap(np.arctan2(direction[:, 1], direction[:, 0]))
    curvature = np.zeros(len(points))
    if len(points) > 16:  # of a polyline's corners there is none to speak of
        curvature[1:-1] = np.diff(bearing) / (0.5 * (lengths[1:] + lengths[:-1]))
        curvature[0], curvature[-1] = curvature[1], curvature[-2]
    return Course(points, along, np.concatenate([direction, direction[-1:]]), curvature)


def read_course(text: str) -> Course:
    """Read a course from one text, as `course_text` writes it.

    Parameters
    ----------
    text : str
        'helix:radius_m=4.0;turns=2.0' or 'waypoints:0 0 -1; 10 0 -1'.

    Returns
    -------
    Course
        The course.

    Raises
    ------
    ModelError
        The text has a wrong name or number.
    """
    kind, _, remaining = text.partition(":")
    if kind == "waypoints":
        return course(kind, waypoints=remaining)
    numbers = {}
    for part in filter(None, remaining.split(";")):
        name, _, value = part.partition("=")
        try:
            numbers[name] = float(value)
        except ValueError:
            raise ModelError(f"course {kind}: {name}: expected a number, got '{value}'") from None
    try:
        return course(kind, **numbers)  # type: ignore[arg-type]
    except TypeError as fault:
        raise ModelError(f"course {kind}: {fault}") from None


def course_text(kind: str, waypoints: str, **numbers: float) -> str:
    """Return a course as one text.

    Parameters
    ----------
    kind : str
        Name of the course.
    waypoints : str
        Its waypoints, else ''.
    **numbers : float
        Its numbers by name.

    Returns
    -------
    str
        Text for `read_course`.

    Examples
    --------
    >>> from rtmms.analysis.courses import course_text
    >>> course_text("helix", "", radius_m=4.0, turns=2.0)
    'helix:radius_m=4.0;turns=2.0'
    """
    if kind == "waypoints":
        return f"waypoints:{waypoints}"
    return f"{kind}:" + ";".join(f"{name}={value!r}" for name, value in numbers.items())
