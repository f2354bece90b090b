"""The nearest point of a course: against a search of all points, and the same for all that follow one."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rtmms.analysis.courses import REACH_M, Course, course, nearest_on
from rtmms.base.errors import ModelError
from rtmms.loop.trace import Tracking
from rtmms.planning.tasks import along_course, begin_at, course_data, nearest, project
from rtmms_controllers.course_progress import STALLS_S, CourseProgress
from rtmms_controllers.guiding import Guide
from rtmms_controllers.pilot import Aim
from rtmms_controllers.senses import Motion


def course_words(points: Any) -> str:
    return "; ".join(" ".join(f"{item:.9g}" for item in point) for point in points)


def corner(degrees: float, leg: float = 6.0) -> str:
    turned = math.radians(degrees)
    tip = np.array([leg, 0.0, -1.0])
    return course_words([(0, 0, -1), tip, tip + leg * np.array([math.cos(turned), math.sin(turned), 0.1])])


WAYPOINTS = {
    "line": "0 0 -1; 12 0 -1", "dive": "0 0 -1; 0 0 -5", "two steps of a line": "0 0 -1; 3 0 -1; 3.01 0 -1; 9 1 -2",
    **{f"corner of {a} deg": corner(a) for a in (45, 74, 90, 120, 150, 170, -45, -90, -170)},
    "reversal": "0 0 -1; 6 0 -1; 0 0 -1", "two reversals": "0 0 -1; 5 0 -1; 0 0 -1; 5 0 -1",
    "closed square": "0 0 -1; 5 0 -1; 5 5 -1; 0 5 -1; 0 0 -1",
    "two rounds of a triangle": "0 0 -1; 4 0 -1; 2 3 -1; 0 0 -1; 4 0 -1; 2 3 -1; 0 0 -1",
    "slalom of 74 deg": course_words([(4 * k, 3 * (k % 2), -1) for k in range(6)]),
}  # fmt: skip
COURSES = {name: course("waypoints", waypoints=text) for name, text in WAYPOINTS.items()} | {
    "helix": course("helix", radius_m=1.0, turns=1.5), "eight": course("eight", radius_m=1.0, turns=1.0),
}  # fmt: skip
SPELLED = {name: f"waypoints:{text}" for name, text in WAYPOINTS.items()} | {
    "helix": "helix:radius_m=1.0;turns=1.5", "eight": "eight:radius_m=1.0;turns=1.0",
}  # fmt: skip


def searched(route: Course, at: Any, near: float) -> float:
    """Distance of the nearest point of all segments within reach, m."""
    least = math.inf
    for k in range(len(route.length) - 1):
        home = route.length[k] <= near <= route.length[k + 1] or (k == 0 and near < 0.0) or near > route.whole_m
        if home or (route.length[k] <= near + REACH_M and route.length[k + 1] >= near - REACH_M):
            span = route.points[k + 1] - route.points[k]
            share = float(np.clip((at - route.points[k]) @ span / (span @ span), 0.0, 1.0))
            least = min(least, float(np.linalg.norm(at - route.points[k] - share * span)))
    return least


@pytest.mark.parametrize("name", COURSES)
def test_the_nearest_point_is_that_of_a_search_of_all_segments(name: str) -> None:
    route, rng = COURSES[name], np.random.default_rng(3)
    for _ in range(40):
        near = float(rng.uniform(-0.5, route.whole_m + 0.5))
        at = route.at(near)[0] + rng.normal(scale=0.7, size=3)
        k, s, off = nearest_on(route.points, route.length, at, near, REACH_M)
        assert math.sqrt(off) == pytest.approx(searched(route, at, near), abs=1e-9)
        assert route.length[k] <= s <= route.length[k + 1]
        assert math.dist(at, route.at(s)[0]) == pytest.approx(math.sqrt(off), abs=1e-9)
        assert nearest(route.points, route.length, at, near, REACH_M) == pytest.approx((k, s, off), abs=1e-12)


def path_along(route: Course, seed: int) -> Any:
    """A robot that stays within 0.2 m of the course and overshoots each corner by 0.5 m before it turns."""
    rng, rows = np.random.default_rng(seed), []
    wander = np.zeros(3)
    corners = [k for k in range(1, len(route.points) - 1) if route.direction[k - 1] @ route.direction[k] < 0.8]
    stops = [0.0, *(float(route.length[k]) for k in corners), route.whole_m]
    for begin, end in pairwise(stops):
        for s in np.arange(begin, end, 0.05):
            wander = 0.95 * wander + 0.02 * rng.normal(size=3)
            rows.append(route.at(float(s))[0] + np.clip(wander, -0.11, 0.11))
        if end < route.whole_m:
            ahead = route.at(end - 1e-6)[1]
            out = [route.at(end)[0] + along * ahead for along in np.arange(0.0, 0.5, 0.05)]
            rows += [*out, *out[::-1]]
    return np.array([*rows, route.at(route.whole_m)[0] + 0.3 * route.direction[-1]])


@pytest.mark.parametrize("name", COURSES)
def test_path_predictive_and_the_report_have_the_same_nearest_point_up_to_the_end(name: str) -> None:
    route = COURSES[name]
    guide, aim, cost = Guide(route, 0.7, "none"), Aim(), along_course(route, 0.4, 2.5)
    tracking, result = Tracking(1e-3, lambda: {"cross_track_m": SPELLED[name]}), f"cross_track_m {SPELLED[name]}"
    points, direction, length, _ = course_data(route, 0.4, 2.5)
    largest = 0.0
    for k, at in enumerate(path_along(route, 5)):
        guide(Motion(0.1 * k, tuple(at)), 0.4, aim)
        outputs = {"position": at, "quaternion": np.array([1.0, 0, 0, 0]), "velocity": np.zeros(3)}
        tracking.after_step(k, 0.1 * k, outputs, np.zeros(0), None)  # type: ignore[arg-type]
        planned = begin_at(cost, at)
        assert tracking._courses[result][1] == guide.along
        assert min(max(planned, 0.0), route.whole_m) == pytest.approx(guide.along, abs=1e-9)
        _, _, x, y, z, _ = project(points, direction, length, planned, at)
        if 0.0 < planned < route.whole_m:
            assert math.hypot(x, y, z) == pytest.approx(math.dist(at, route.at(guide.along)[0]), abs=1e-9)
            largest = max(largest, math.hypot(x, y, z))
    assert guide.finished, "it reaches the end of the course, and skips no leg for ever"
    assert planned > route.whole_m, "beyond the end it continues straight on"
    assert largest < 0.75


def test_points_that_coincide_are_refused_by_their_number_and_others_are_not() -> None:
    with pytest.raises(ModelError, match="waypoint 3: expected another place than waypoint 2"):
        course("waypoints", waypoints="0 0 0; 1 0 0; 1 0 0; 2 0 0")
    straight = np.array([[0.0, 0, 0], [1, 0, 0], [1, 0, 0], [2, 0, 0]])
    k, s, off = nearest_on(straight, np.array([0.0, 1, 1, 2]), np.array([1.5, 0.5, 0.0]), 0.9, REACH_M)
    assert (k, s, off) == pytest.approx((2, 1.5, 0.25))


def test_a_robot_that_stays_before_a_corner_costs_more_and_more() -> None:
    """The reference point moves on, up to its lag, and turns the corner."""
    route = course("waypoints", waypoints="0 0 0; 5 0 0; 5 5 0")
    cost, still = along_course(route, 0.4, 1.0), np.tile([4.9, 0.0, 0.0], (1, 10, 1))
    expected = {
        "position": still, "quaternion": np.tile([1.0, 0, 0, 0], (1, 10, 1)), "velocity": np.zeros((1, 10, 3)),
        "angular_velocity": np.zeros((1, 10, 3)),
    }  # fmt: skip
    cost.data[3][2:] = 4.9
    result = []
    for _ in range(40):
        begin_at(cost, still[0, 0], 0.1)
        result.append(float(cost.total(expected, np.zeros((1, 1, 1)), 0.1, 1, np.array([10]))[0]))
    assert np.all(np.diff(result) >= -1e-12)
    assert result[-1] > result[0] + 0.5
    assert cost.data[3][3] == pytest.approx(5.9)
    towards = expected | {"quaternion": np.tile([math.sqrt(0.5), 0, 0, math.sqrt(0.5)], (1, 10, 1))}
    assert cost.total(towards, np.zeros((1, 1, 1)), 0.1, 1, np.array([10]))[0] < result[-1] - 0.5, "to turn costs less"


def test_missing_progress_is_reported_once_until_it_goes_on() -> None:
    received: list[str] = []
    progress = CourseProgress("predictive", 20.0, received.append)
    along = 0.0
    for k in range(800):
        along += 0.04 if not 200 <= k < 500 else 0.0
        progress(0.1 * k, along, 0.4)
    assert [("no progress" in item, "again" in item) for item in received] == [(True, False), (False, True)]
    assert f"{STALLS_S:g} s, at 8.00 m of 20.00 m" in received[0]
    for k in range(800, 1200):
        progress(0.1 * k, 20.0, 0.4)
    assert len(received) == 2, "at the end it warns of nothing"
