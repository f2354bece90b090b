"""Off a set-point: rms, mean and most of what counts, once settled, of made-up motions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmms.analysis.courses import course, course_text, read_course
from rtmms.base.errors import ModelError
from rtmms.loop.trace import SAMPLE_S, Tracking
from tests.growth import growth

DT = 1e-3
LINE = course_text("waypoints", "0 0 -1; 10 0 -1")


def tracked(points: dict[str, Any], motion: Any, seconds: float, prefix: str = "", **options: Any) -> dict[str, Any]:
    """motion(t) -> position, quaternion"""
    tracking = Tracking(DT, lambda: points, **options)
    tracking.start({})
    for step in range(round(seconds / DT)):
        if step == tracking.due:
            t = (step + 1) * DT
            position, quaternion = motion(t, points)
            observed = {
                "position": np.array(position),
                "quaternion": np.array(quaternion),
                "velocity": np.array([0.4, 0, 0]),
            }
            outputs = {prefix + name: value for name, value in observed.items()}
            tracking.after_step(step, t, outputs, np.zeros(0), None)  # type: ignore[arg-type]
    return tracking.report()


@pytest.mark.parametrize("prefix", ["", "truth."])
def test_of_a_depth_that_is_reached_and_then_off_by_a_little(prefix: str) -> None:
    def motion(t: float, points: Any) -> Any:
        return (0.0, 0.0, -min(1.0, 0.1 * t) - (0.02 if t > 12.0 else 0.0)), (1.0, 0.0, 0.0, 0.0)

    result = tracked({"depth_m": 1.0, "speed_m_s": 0.4, "unknown": 3.0}, motion, 20.0, prefix)
    assert result["depth_m"]["settled_s"] == pytest.approx(9.5, abs=2 * SAMPLE_S)
    assert result["depth_m"]["max"] == pytest.approx(0.05, abs=0.003)
    assert result["depth_m"]["mean"] == pytest.approx((0.02 * 8.0 - 0.025 * 0.5) / 10.5, abs=1e-3)
    assert result["speed_m_s"] == {"rms": 0.0, "max": 0.0, "mean": 0.0, "settled_s": 0.0}
    assert "unknown" not in result


def test_a_change_begins_anew_and_angles_go_round() -> None:
    def motion(t: float, points: Any) -> Any:
        if t >= 5.0:
            points["heading_deg"] = -170.0
        yaw = np.radians(175.0 if t < 7.0 else 188.0)
        return (0.0, 0.0, 0.0), (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))

    heading_deg = tracked({"heading_deg": 175.0}, motion, 10.0)["heading_deg"]
    assert heading_deg["settled_s"] == pytest.approx(2.0, abs=2 * SAMPLE_S)
    assert heading_deg["max"] == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("changes", [(4.0,), (2.0, 4.0)])
def test_a_set_point_that_changes_before_it_is_reached_does_not_count(changes: tuple[float, ...]) -> None:
    def motion(t: float, points: Any) -> Any:
        points["depth_m"] = 5.0 - 2.0 * sum(t >= change for change in changes)
        return (0.0, 0.0, -points["depth_m"] + (0.01 if t >= 6.0 else 1.0)), (1.0, 0.0, 0.0, 0.0)

    depth_m = tracked({"depth_m": 5.0}, motion, 12.0)["depth_m"]
    assert depth_m["settled_s"] == pytest.approx(2.0, abs=2 * SAMPLE_S)
    assert depth_m["max"] == pytest.approx(0.01, abs=1e-9)


def test_a_set_point_that_moves_all_the_time_counts() -> None:
    def motion(t: float, points: Any) -> Any:
        points["depth_m"] = 1.0 + 0.1 * t
        return (0.0, 0.0, -points["depth_m"] - 0.2), (1.0, 0.0, 0.0, 0.0)

    assert tracked({"depth_m": 1.0}, motion, 5.0)["depth_m"]["rms"] == pytest.approx(0.2)


def test_one_that_is_never_reached_reports_it_and_what_comes_before_does_not_count() -> None:
    def motion(t: float, points: Any) -> Any:
        return (0.0, 0.0, -0.5 if t < 8.0 else -0.7), (1.0, 0.0, 0.0, 0.0)

    depth_m = tracked({"depth_m": 1.0}, motion, 10.0, from_s=8.5)["depth_m"]
    assert depth_m["settled_s"] is None
    assert depth_m["rms"] == pytest.approx(0.3)


def test_off_a_course() -> None:
    parts = course_text("helix", "", radius_m=2.0, turns=1.0, rise_m=-1.0, depth_m=0.0)
    helix = read_course(parts)

    def motion(t: float, points: Any) -> Any:
        point, ahead, _ = helix.at(0.4 * t)
        return point + 0.1 * np.array([-ahead[1], ahead[0], 0.0]) / np.hypot(*ahead[:2]), (1.0, 0.0, 0.0, 0.0)

    assert tracked({"cross_track_m": parts}, motion, 20.0)["cross_track_m"]["rms"] == pytest.approx(0.1, rel=1e-3)


def test_courses_are_what_they_state() -> None:
    helix = course("helix", radius_m=3.0, rise_m=-1.0, turns=2.0, depth_m=1.0)
    assert helix.whole_m == pytest.approx(2.0 * np.hypot(6.0 * np.pi, 1.0), rel=1e-4)
    assert helix.points[-1] == pytest.approx([0.0, 0.0, -3.0], abs=1e-9)
    assert helix.curvature == pytest.approx(1.0 / 3.0, rel=0.02)
    eight = course("eight", radius_m=3.0, turns=1.0, depth_m=1.0)
    assert eight.points[0] == pytest.approx(eight.points[-1], abs=1e-9)
    assert eight.direction[0] == pytest.approx([1.0, 0.0, 0.0], abs=0.01)
    assert np.abs(eight.curvature).max() == pytest.approx(1.0 / 3.0, rel=0.05)
    line = course("waypoints", waypoints="0 0 -1; 10 0 -1; 10 10 -2")
    assert line.nearest(np.array([4.0, 1.0, -1.0]), 3.5) == pytest.approx(4.0)
    assert line.at(1e9)[0] == pytest.approx([10.0, 10.0, -2.0])


@pytest.mark.parametrize(("kind", "more", "place"), [
    ("waypoints", {"waypoints": "0 0 0; nan 0 0"}, "waypoint 2: expected three finite numbers"),
    ("waypoints", {"waypoints": "0 0 0; 1 0"}, "waypoint 2: expected three finite numbers"),
    ("waypoints", {"waypoints": "0 0 0"}, "two waypoints or more"),
    ("waypoints", {"waypoints": "0 0 0; 0 0 0"}, "waypoint 2: expected another place than waypoint 1"),
    ("helix", {"radius_m": -1.0}, "radius_m: expected a number"),
    ("helix", {"rise_m": float("inf")}, "rise_m: expected a finite number"),
    ("helixx", {}, "did you mean helix"),
])  # fmt: skip
def test_courses_that_make_no_sense_are_refused_with_their_place(kind: str, more: Any, place: str) -> None:
    with pytest.raises((ModelError, KeyError), match=place):
        course(kind, **more)


@pytest.mark.parametrize("prefix", ["", "truth."])
def test_samples_keep_no_objects(prefix: str) -> None:
    points = {"depth_m": 1.0, "heading_deg": 30.0, "speed_m_s": 0.4, "cross_track_m": LINE}
    tracking = Tracking(DT, lambda: points)
    observed = {"position": np.zeros(3), "quaternion": np.array([1.0, 0.0, 0.0, 0.0]), "velocity": np.zeros(3)}
    outputs = {prefix + name: value for name, value in observed.items()}

    def work() -> None:
        for step in range(200):
            tracking.after_step(step, step * DT, outputs, np.zeros(0), None)  # type: ignore[arg-type]

    work()
    assert growth(work) == 0
    for _ in range(30):
        work()
    assert tracking.report()["depth_m"]["rms"] == 1.0


def test_set_points_are_reported_when_they_are_others() -> None:
    points: dict[str, Any] = {"depth_m": 1.0}
    observed: list[tuple[int, dict[str, Any]]] = []

    def motion(t: float, points: Any) -> Any:
        points["depth_m"] = 1.0 if t < 0.5 else 2.0
        return (0.0, 0.0, -1.0), (1.0, 0.0, 0.0, 0.0)

    tracking = Tracking(DT, lambda: dict(points), report=lambda step, tracked: observed.append((step, dict(tracked))))
    for step in range(1000):
        if step == tracking.due:
            motion((step + 1) * DT, points)
            tracking.after_step(step, (step + 1) * DT, {}, np.zeros(0), None)  # type: ignore[arg-type]
    assert [points for _, points in observed] == [{"depth_m": 1.0}, {"depth_m": 2.0}]
    assert observed[0][0] == 0
    assert 0 <= observed[1][0] - 499 <= 1.7 * SAMPLE_S / DT


def test_a_set_point_that_nothing_can_be_compared_with_is_named() -> None:
    points = {"depth_m": 1.0, "height": 2.0, "one.speed": 3.0, "cross_track_m": "line", "planned_motion": "x"}
    tracking = Tracking(DT, lambda: points)
    outputs = {"position": np.zeros(3), "one.position": np.zeros(3)}
    tracking.start(outputs)
    for step in range(30):
        tracking.after_step(step, (step + 1) * DT, outputs, np.zeros(1), None)  # type: ignore[arg-type]
    (sentence,) = tracking.warnings()
    assert sentence.startswith(
        "set-points height, one.speed: expected names of quantities to compare them with: depth_m,"
    )
    assert Tracking(DT, lambda: {}).warnings() == []


@pytest.mark.parametrize("period", [0.005, SAMPLE_S, 2 * SAMPLE_S, 3 * SAMPLE_S, 0.1])
@pytest.mark.parametrize("phase", [0.0, 1.0, 2.5])
def test_samples_see_all_phases_of_a_stroke_whatever_its_period(period: float, phase: float) -> None:
    def motion(t: float, points: Any) -> Any:
        return (0.0, 0.0, -1.0 - 0.01 * np.sin(2 * np.pi * t / period + phase)), (1.0, 0.0, 0.0, 0.0)

    depth_m = tracked({"depth_m": 1.0}, motion, 20.0)["depth_m"]
    assert depth_m["mean"] == pytest.approx(0.0, abs=4e-4)
    assert depth_m["rms"] == pytest.approx(0.01 / np.sqrt(2.0), rel=0.05)
    assert depth_m["max"] == pytest.approx(0.01, rel=0.06)


def test_without_set_points_it_looks_once_a_second() -> None:
    """Each look ends a batch of compiled steps."""
    tracking, looks = Tracking(DT, lambda: {}), 0
    tracking.start({})
    for step in range(10_000):
        if step == tracking.due:
            looks += 1
            tracking.after_step(step, (step + 1) * DT, {}, np.zeros(0), None)  # type: ignore[arg-type]
    assert looks == 10


def test_a_run_that_begins_late_needs_no_more_work_for_its_first_sample() -> None:
    """Its samples are no catching up: the next one is near, as in a run from the start."""
    begin = 10**12
    tracking = Tracking(DT, lambda: {"depth_m": 1.0})
    tracking.start({})
    tracking.after_step(begin, (begin + 1) * DT, {}, np.zeros(0), None)  # type: ignore[arg-type]
    assert 0 < tracking.due - begin <= 3 * SAMPLE_S / DT
