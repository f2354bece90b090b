"""Courses in space: along waypoints, a helix, a figure of eight; how far off one a point is.

A course is a polyline, fine where it is curved, with its arc length, direction and curvature. World frame, z up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rtmms.errors import ModelError, UnknownNameError
from rtmms.spatial import Array

KINDS = ("waypoints", "helix", "eight")
_FINE_M = 0.02


@dataclass(frozen=True, eq=False)
class Course:
    """points (n, 3) m;  length (n,) m along it;  direction (n, 3);  curvature (n,) 1/m, horizontal, > 0 to the left"""

    points: Array
    length: Array
    direction: Array
    curvature: Array

    @property
    def whole_m(self) -> float:
        """m, from end to end."""
        return float(self.length[-1])

    def at(self, s: float) -> tuple[Array, Array, float]:
        """Point, direction and curvature s metres along it; beyond its ends, those of the ends."""
        k = int(np.searchsorted(self.length, min(max(s, 0.0), self.whole_m), side="right")) - 1
        k = min(max(k, 0), len(self.length) - 2)
        span = self.length[k + 1] - self.length[k]
        share = min(max((s - self.length[k]) / span, 0.0), 1.0)
        return self.points[k] + share * (self.points[k + 1] - self.points[k]), self.direction[k], float(
            self.curvature[k]
        )  # fmt: skip

    def nearest(self, point: Array, near: float, reach: float = 1.5) -> float:
        """Arc length of the point nearest to `point`, looked for from `near` - reach to `near` + reach m."""
        first = int(np.searchsorted(self.length, near - reach))
        last = int(np.searchsorted(self.length, near + reach)) + 1
        first = max(0, min(first - 1, len(self.length) - 2))
        last = max(first + 2, min(last, len(self.length)))
        begin, end = self.points[first : last - 1], self.points[first + 1 : last]
        span = end - begin
        share = np.clip(np.sum((point - begin) * span, axis=1) / np.sum(span * span, axis=1), 0.0, 1.0)
        off = np.sum((begin + share[:, None] * span - point) ** 2, axis=1)
        k = int(np.argmin(off))
        return float(self.length[first + k] + share[k] * (self.length[first + k + 1] - self.length[first + k]))


def course(
    kind: str, *, waypoints: str = "", radius_m: float = 3.0, rise_m: float = -1.0, turns: float = 2.0,
    depth_m: float = 1.0, heading_deg: float = 0.0,
) -> Course:  # fmt: skip
    """By its name. It begins at (0, 0, -depth_m) in the direction of heading_deg, but for waypoints.

    waypoints   'x y z; x y z; ...', m, world
    helix       of radius_m, to the left, rise_m a turn, so many turns
    eight       a lemniscate, nowhere narrower than radius_m, turns times
    ModelError naming the point or the number that makes no sense.
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
        if len(numbers) != 3 or not all(math.isfinite(one) for one in numbers):
            raise ModelError(f"course: waypoint {k}: expected three finite numbers 'x y z' in m, got '{part.strip()}'")
        points.append(numbers)
    if len(points) < 2:
        raise ModelError(f"course: expected two waypoints or more, 'x y z; x y z; ...', got {len(points)}")
    for k in range(1, len(points)):
        if math.dist(points[k - 1], points[k]) < 1e-3:
            raise ModelError(f"course: waypoint {k + 1} is where waypoint {k} is: {text.split(';')[k].strip()}")
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


def read_course(words: str) -> Course:
    """From 'helix:radius_m=4.0;turns=2.0' or 'waypoints:0 0 -1; 10 0 -1', as `spelled` writes it."""
    kind, _, rest = words.partition(":")
    if kind == "waypoints":
        return course(kind, waypoints=rest)
    numbers = {}
    for part in filter(None, rest.split(";")):
        name, _, value = part.partition("=")
        try:
            numbers[name] = float(value)
        except ValueError:
            raise ModelError(f"course {kind}: {name}: expected a number, got '{value}'") from None
    try:
        return course(kind, **numbers)  # type: ignore[arg-type]
    except TypeError as fault:
        raise ModelError(f"course {kind}: {fault}") from None


def spelled(kind: str, waypoints: str, **numbers: float) -> str:
    """A course in one text."""
    if kind == "waypoints":
        return f"waypoints:{waypoints}"
    return f"{kind}:" + ";".join(f"{name}={value!r}" for name, value in numbers.items())
