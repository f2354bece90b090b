"""The moth's controller against its plant, step by step as lockstep would have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.robots import moth
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.welcome import plain_parameters
from rtmms_controllers.lqr import Lqr
from rtmms_controllers.moth_hover import MothHover


def info_of(plant: Any) -> PlantInfo:
    return PlantInfo(
        "moth", plant.dt, "lockstep", None, None, plant.actuators, plant.outputs, parameters=plain_parameters(plant)
    )


def fly(controller: MothHover, plant: Any, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Position at the end, and mean of its rate over the last half second."""
    info = info_of(plant)
    controller.start(info)
    path = []
    for k in range(round(seconds / plant.dt)):
        outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
        path.append(outputs["position"])
        values = controller.update(State({"step": k, "timestamp": k * plant.dt, "outputs": outputs}, info))
        plant.step(np.array([values[channel.name] for channel in plant.actuators]))
    last = round(0.48 / plant.dt)  # whole strokes
    return np.array(path[-1]), (np.array(path[-1]) - path[-1 - last]) / 0.48


def test_climbs_to_a_height_and_stays() -> None:
    end, rate = fly(MothHover(altitude_m=0.2), moth.load(), 3.0)
    np.testing.assert_allclose(end, [0.0, 0.0, 0.2], atol=5e-3)
    assert np.max(np.abs(rate)) < 5e-3


def test_flies_forward() -> None:
    end, rate = fly(MothHover(speed_m_s=0.3), moth.load(), 2.0)
    assert rate[0] == pytest.approx(0.3, abs=0.03)
    assert abs(end[2]) < 0.01


def test_catches_what_starts_at_rest() -> None:
    """With too small an amplitude it falls without a controller."""
    end, rate = fly(MothHover(), moth.load(start="rest"), 2.0)
    assert -0.06 < end[2] < 0.0
    assert abs(rate[2]) < 0.02
    alone = moth.load(start="rest")
    for _ in range(2000):
        alone.step(alone.neutral)
    assert alone.observe()["position"][2] < -0.1


def test_refused() -> None:
    with pytest.raises(rtmms.ModelError, match=r"speed_m_s: expected a number from -0\.5 to 0\.5"):
        MothHover(speed_m_s=3.0)
    with pytest.raises(rtmms.ModelError, match=r"at least 4 steps in a stroke of 0\.04 s, got dt = 0\.02"):
        MothHover().start(replace(info_of(moth.load(start="rest")), dt=0.02))


def test_the_regulator_holds_it_where_it_is_asked_and_its_loop_is_stable() -> None:
    plant, lqr = moth.load(), Lqr(x_m=0.03)
    info = info_of(plant)
    lqr.start(info)
    assert lqr.poles.max() < 1.0
    path = []
    for k in range(3000):
        outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
        values = lqr.update(State({"step": k, "timestamp": k * plant.dt, "outputs": outputs}, info))
        plant.step(np.array([values[channel.name] for channel in plant.actuators]))
        path.append(outputs["position"])
    strokes = np.mean(np.array(path[-400:]), axis=0)
    np.testing.assert_allclose(strokes, [0.03, 0.0, 0.0], atol=0.01)


def test_a_start_in_another_direction_is_refused() -> None:
    """Its feedback would have wrong signs there."""
    plant, lqr = moth.load(), Lqr()
    info = info_of(plant)
    lqr.start(info)
    outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
    w, x, y, z = outputs["quaternion"]
    for turn, refused in ((0.2, False), (np.pi / 2, True), (np.pi, True)):
        c, s = np.cos(turn / 2), np.sin(turn / 2)
        turned = outputs | {"quaternion": [c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w]}
        state = State({"step": 0, "timestamp": 0.0, "outputs": turned}, info)
        if refused:
            with pytest.raises(rtmms.ModelError, match=r"got one turned by \d+ deg; start with heading_deg = 0"):
                lqr.update(state)
        else:
            lqr.update(state)


def test_a_cost_or_a_step_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(rtmms.ModelError, match="controller 'lqr': word: expected"):
        Lqr(word=0.0)
    with pytest.raises(rtmms.ModelError, match=r"expected a stroke of 0\.04 s to be a whole number of steps"):
        Lqr().start(replace(info_of(moth.load()), dt=1.7e-3))
