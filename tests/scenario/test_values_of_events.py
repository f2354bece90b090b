"""Values of a scenario's events are checked before the first step, by their declarations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rtmms.base.errors import ModelError
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.quadrotor import Quadrotor
from rtmms.scenario.plant import check_plant_event


@pytest.mark.parametrize(
    ("parameters", "name", "value", "text"),
    [
        (Quadrotor(), "drag_area_m2", -1.0, "drag_area_m2: expected a number >= 0, got -1.0"),
        (Quadrotor(), "wind_x_m_s", "3", "wind_x_m_s: expected a finite number, got '3'"),
        (Quadrotor(), "wind_x_m_s", True, "wind_x_m_s: expected a finite number, got True"),
        (Quadrotor(), "wind_x_m_s", [3.0], r"wind_x_m_s: expected a finite number, got \[3.0\]"),
        (MantaParameters(), "current_m_s", [0.1, 0.2], "current_m_s"),
        (MantaParameters(), "gravity_m_s2", "low", "gravity_m_s2"),
    ],
)
def test_a_value_that_the_robot_cannot_have_is_refused(parameters: Any, name: str, value: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        check_plant_event(name, value, SimpleNamespace(parameters=parameters))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parameters", "name", "value"),
    [
        (Quadrotor(), "wind_x_m_s", -3),
        (MantaParameters(), "current_m_s", [0.1, 0.2, 0.0]),
        (Quadrotor(), "other", "any"),
    ],
)
def test_a_value_that_it_can_have_passes(parameters: Any, name: str, value: Any) -> None:
    check_plant_event(name, value, SimpleNamespace(parameters=parameters))  # type: ignore[arg-type]
