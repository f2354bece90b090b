"""Set-points in the picture: where they are, the course they come from, and beside which output they stand."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.analysis.courses import course_text
from rtmms.base.attitude import HOME
from rtmms.planning.shown_candidates import MAX_TEXT, as_text, choose_candidates, places
from rtmms.view.goals import ATTITUDE, candidate_motions, goal, planned_course, planned_motions, set_points_of_output
from rtmms.view.stage import output_curves

COURSE = {"cross_track_m": course_text("waypoints", "0 0 -1; 10 0 -1; 10 5 -2")}


def test_the_course_is_the_planned_path_and_its_nearest_point_the_goal() -> None:
    route = planned_course(COURSE)
    assert route is not None
    np.testing.assert_allclose(route, [[0, 0, -1], [10, 0, -1], [10, 5, -2]])
    assert goal(COURSE, ((4.0, 3.0, 0.0), HOME[1]), 1.0) == pytest.approx((4.0, 0.0, -1.0))


@pytest.mark.parametrize(
    ("points", "where"),
    [
        ({"x_m": 1.0, "y_m": -2.0, "z_m": 3.0, "yaw_deg": 40.0}, (1.0, -2.0, 3.0)),
        ({"depth_m": 1.5, "heading_deg": 90.0}, (5.0, 8.0, -1.5)),
        ({"altitude_m": 1.5}, (7.0, 6.0, 1.5)),  # its own heading: along x
        ({"speed_m_s": 0.4}, None),
        ({"cross_track_m": "nonsense"}, None),
        ({}, None),
    ],
)
def test_a_goal_is_where_the_set_points_states(points: dict[str, float], where: tuple[float, ...] | None) -> None:
    result = goal(points, ((5.0, 6.0, 7.0), HOME[1]), 2.0)
    assert result == (None if where is None else pytest.approx(where))
    assert planned_course(points) is None


def test_set_points_stand_beside_their_outputs() -> None:
    time = np.array([0.0, 1.0, 2.0, 3.0])
    result = [(0.5, {"depth_m": 1.0, "speed_m_s": 0.4}), (2.0, {"depth_m": 2.0, "speed_m_s": 0.4})]
    assert {name: set_point.tolist() for name, set_point in set_points_of_output("position", result, time).items()} == {
        "depth_m": [-1.0, -1.0, -2.0, -2.0]
    }
    assert list(set_points_of_output("velocity", result, time)) == ["speed_m_s"]
    shown = output_curves("truth.position", time, np.zeros((4, 3)), result)
    assert (shown.names[-1], shown.dashed, shown.colours) == ("depth_m set", 1, (0, 1, 2, 2))
    assert output_curves("rate", time, np.zeros((4, 1)), result).names == ("rate",)


def test_a_heading_is_held_to_the_nearest_of_the_same_direction() -> None:
    half = np.radians([170.0, 190.0, 350.0, 370.0]) / 2.0
    turning = np.stack([np.cos(half), 0.0 * half, 0.0 * half, np.sin(half)], axis=1)
    shown = output_curves(ATTITUDE, np.arange(4.0), turning, [(0.0, {"heading_deg": -175.0})])
    assert shown.names == ("roll", "pitch", "heading", "heading_deg set")
    np.testing.assert_allclose(shown.values[:, 2], [170.0, 190.0, 350.0, 370.0])
    np.testing.assert_allclose(shown.values[:, 3], [185.0, 185.0, 185.0, 545.0])


def test_the_motion_that_is_planned_is_a_line() -> None:
    result = {"planned_motion": "0.1,0.2,-0.3 1.0,0.2,-0.3", "one.planned_motion": "0,0,0 1,1,1 2,2,2", "depth_m": 1.0}
    assert [path.tolist() for path in planned_motions(result)] == [
        [[0.1, 0.2, -0.3], [1.0, 0.2, -0.3]], [[0.0] * 3, [1.0] * 3, [2.0] * 3],
    ]  # fmt: skip
    for nothing in ("", "0,0,0", "a,b,c 1,2,3", "0,0 1,1", "nan,0,0 1,1,1", 3.0):
        assert planned_motions({"planned_motion": nothing}) == []


def test_the_motions_that_were_tried_begin_where_the_plan_does() -> None:
    begin = np.array([10.0, -20.0, -1.0])
    paths = begin + np.array([[[0.4, 0.1 * k, 0.0], [0.8, 0.3 * k, 0.1], [1.2, 0.6 * k, 0.3]] for k in range(-2, 2)])
    parts = as_text(begin, paths)
    assert parts.startswith("40,-20,0 40,-40,10 40,-60,20;")
    assert len(parts) <= MAX_TEXT
    expected = {"one.planned_motion": "10.00,-20.00,-1.00 11,-20,-1", "one.planned_samples": parts}
    result = candidate_motions(expected)
    assert [len(path) for path in result] == [4] * 4
    np.testing.assert_allclose(np.array(result)[:, 1:], paths, atol=0.0051)
    assert candidate_motions(expected) == result  # the same ones: they are drawn once
    for nothing in ("", "1,2", "a,b,c", "1,2,nan", 3.0):
        assert candidate_motions({"planned_motion": "0,0,0 1,1,1", "planned_samples": nothing}) == []
    for motion in ({}, {"planned_motion": ""}):
        assert candidate_motions({"planned_samples": parts, **motion}) == []


def test_long_motions_are_drawn_by_their_ends_and_no_text_is_too_long() -> None:
    far = np.random.default_rng(3).uniform(-900.0, 900.0, (4, 3, 3))
    parts = as_text(np.zeros(3), far)
    assert 0 < len(parts) <= MAX_TEXT
    (first, *_) = candidate_motions({"planned_motion": "0,0,0 1,1,1", "planned_samples": parts})
    np.testing.assert_allclose(first, [[0.0] * 3, far[0, -1]], atol=0.0051)
    far[:] = np.nan
    assert as_text(np.zeros(3), far) == ""


def test_candidates_are_chosen_evenly_by_cost_from_the_best_to_the_median() -> None:
    costs = np.arange(33.0)[::-1].copy()
    assert choose_candidates(costs) == [28, 24, 20, 16]
    costs[:] = np.inf
    assert choose_candidates(costs) == []
    assert choose_candidates([3.0, 1.0, np.nan, 2.0], 1.0) == [3, 0]
    assert places(51).tolist() == [17, 33, 50]
