"""Drawings, poses and times that no run has: what can be drawn of them is, the rest is refused in a sentence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.plant.protocol import Channel
from rtmms.record.log import drawing
from rtmms.view.drawings import shape_of
from rtmms.view.goals import goal, set_points_of_output
from rtmms.view.recording import Recording
from rtmms.view.scene import Picture
from rtmms.wire.protocol.received_state import PlantInfo

pytestmark = pytest.mark.full

POSE = (Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"))
EEL: dict[str, Any] = {
    "joints": 3, "head_length_m": 0.4, "link_length_m": 0.1, "half_width_m": 0.06, "half_height_m": 0.09,
    "nose_length_m": 0.09, "tail_length_m": 0.09,
}  # fmt: skip


def info(expected: int, **parameters: Any) -> PlantInfo:
    outputs = (*POSE, Channel("joint_position", "rad", (expected,), ""))
    return PlantInfo("eel", 1e-3, "lockstep", None, None, (), outputs, parameters={**EEL, **parameters})


def test_a_drawing_is_as_large_as_its_outputs() -> None:
    assert shape_of(info(9)) is not None
    assert shape_of(info(2)) is None  # joints that it does not have
    for joints in (10**9, 1e300, math.inf, math.nan, "x", "1000000000", 0, -1, None, [3]):
        assert shape_of(info(9, joints=joints)) is None
    assert shape_of(info(9, head_length_m=None)) is None


def test_a_centre_line_without_points_is_not_drawn() -> None:
    line = Channel("centreline", "m", (0, 3), "body")
    values = {"half_width_m": 0.1, "half_height_m": 0.1, "length_m": 1.0}
    result = PlantInfo("continuous_eel", 1e-3, "lockstep", None, None, (), (*POSE, line), parameters=values)
    assert shape_of(result) is None
    assert shape_of(replace(result, outputs=(*POSE, replace(line, shape=(5, 3))))) is not None
    assert Picture(replace(result, parameters={**values, "length_m": 0.0})).visual is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e308, 0.0])
def test_a_pose_that_is_none_is_drawn_at_home(value: float) -> None:
    picture = Picture(info(9, half_width_m=1e300))
    drawn = picture.draw({"position": [value] * 3, "quaternion": [value] * 4, "joint_position": [value] * 9})
    picture.measure(drawn)
    assert drawn.pose == ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    assert 1e-6 < picture.size < 1e6


def recording(last_s: float) -> Recording:
    nothing = np.zeros(1, bool)
    return Recording(info(9), np.array([0.0, last_s]), np.zeros((2, 16), np.float32), np.zeros(1, np.int64),
                     np.zeros((1, 4)), nothing, nothing, {})  # fmt: skip


def test_a_film_has_not_more_pictures_than_a_run_has_states_for() -> None:
    assert len(recording(4.0).pictures(0.05)) == 81
    for last in (1e6, 1e300, math.inf, math.nan, -1.0):
        with pytest.raises(ModelError, match=r"expected at most 450 pictures, got .*, one every 0\.05 s"):
            recording(last).pictures(0.05)


def test_set_points_may_be_anything() -> None:
    points = {"depth_m": [1], "x_m": math.nan, "heading_deg": None, "y_m": "north", "altitude_m": 2.0}
    assert goal(points, ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)), 1.0) == (1.0, 0.0, 2.0)
    assert (
        list(set_points_of_output("position", [(0.0, points)], np.zeros(2)))
        == ["depth_m", "x_m", "y_m", "altitude_m"][3:]
    )


def test_what_cannot_be_drawn_is_reported_by_its_file() -> None:
    with pytest.raises(ModelError, match=r"run\.mcap: the log cannot be drawn: ValueError: no limits"):  # noqa: SIM117
        with drawing("run.mcap"):  # type: ignore[arg-type]
            raise ValueError("no limits\nof them")
    with pytest.raises(ModelError, match=r"^refused$"), drawing("run.mcap"):  # type: ignore[arg-type]
        raise ModelError("refused")
