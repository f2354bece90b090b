"""The robot in the figure of its run: the strip over a period, the robots along the path, the means of periods."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.robots import eel, moth
from rtmms.view import run_figure
from rtmms.view.cycles import period_means
from rtmms.view.figures import drawing, takes_outline
from rtmms.view.outline import figure_outline
from rtmms.view.robot_panels import (
    ABOVE,
    BEHIND,
    SIDE,
    ColouredSurface,
    RobotOutline,
    Surfaces,
    _view,
    along,
    stretch,
)
from tests.pendulum import Pendulum
from tests.report.test_run_figure import stored, texts

PERIOD = 2.0


@pytest.mark.full
@pytest.mark.parametrize(("robot", "make", "observed"), [
    ("eel", lambda: eel.load(joints=3), "from above"),
    ("moth", lambda: moth.load(start="rest"), "from behind and above"),
])  # fmt: skip
def test_the_robot_is_in_its_figure(tmp_path, monkeypatch, robot, make, observed):
    pages, write = [], run_figure.save
    monkeypatch.setattr(run_figure, "save", lambda page, path: (pages.append(page), write(page, path)))
    plant = make()
    outline = figure_outline(robot, plant)
    states = along(outline, plant, 60)
    states.start(plant.observe())
    run = stored(plant, 60)
    states.after_step(59, 60 * plant.dt, plant.observe(), plant.commanded, None)
    blob = plant.snapshot()
    drawing(robot, plant, RobotOutline(outline, states))(tmp_path / "run.svg", *run)
    assert plant.snapshot() == blob
    titles, parts = texts(pages[0])
    title = next(title for title in titles if title.startswith("The robot"))
    assert "one more period" in title
    assert title.endswith(f"seen {observed}")
    assert "t = 7/8 T" in parts
    assert sum(word.startswith("robot ") for word in parts) == 2  # one for each view of the path
    strip = pages[0].axes[titles.index(title)]
    assert len(strip.collections) == 8  # its faces, at each instant


def test_who_is_drawn():
    assert takes_outline("manta", eel.load(joints=3))
    assert figure_outline("pendulum", Pendulum()) is None


def test_where_a_motion_is_seen_from():
    still = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])

    def moved(*route):
        return [
            Surfaces([ColouredSurface((still + np.array(off))[None], (0.0, 0.0, 0.0))])
            for off in ((0.0, 0.0, 0.0), route)
        ]

    assert _view(moved(0.1, 0.5, 0.0)) is ABOVE
    assert _view(moved(0.1, 0.0, 0.5)) is SIDE
    assert _view(moved(0.0, 0.2, 0.5)) is BEHIND
    assert _view(moved(0.0, 0.0, 0.0)) is BEHIND


def test_the_last_period_of_what_moves_most():
    time = np.arange(0.0, 4.0, 0.01)
    angle = np.stack([0.1 * np.sin(2 * np.pi * time / 0.3), np.sin(2 * np.pi * time / 1.1)], axis=1)
    result = stretch(None, None, time, {"joint_position": angle})
    assert result.seconds == pytest.approx(1.1, abs=1e-3)
    assert result.time[-1] - result.time[0] == pytest.approx(1.1, abs=0.03)
    assert stretch(None, None, time, {"joint_position": 0.0 * angle}).seconds is None
    assert stretch(None, None, time[:0], {"joint_position": angle[:0]}) is None


def test_means_of_periods():
    """A robot that sways on its way at 0.3 m/s, with power 5 + 2 cos: the sway and the cosine leave the means alone."""
    time = np.arange(0.0, 9.0 + 1e-9, 0.01)
    angle = 2 * np.pi * time / PERIOD
    position = np.stack([0.3 * time, 0.1 * np.sin(angle), 0.0 * time], axis=1)
    power, work = 5.0 + 2.0 * np.cos(angle), 5.0 * time + 2.0 * np.sin(angle) * PERIOD / (2 * np.pi)
    result = {"mean_speed_m_s": 0.3, "mean_power_w": 5.0, "cost_of_transport": 5.0 / (0.3 * 20.0)}
    for values in ({"work": work}, {"power": power}):
        means = period_means(time, {"position": position, **values}, PERIOD, result)
        np.testing.assert_allclose(means.middle, [2.0, 4.0, 6.0, 8.0])
        np.testing.assert_allclose(means.speed, 0.3, rtol=1e-12)
        np.testing.assert_allclose(means.power, 5.0, rtol=1e-4)
        np.testing.assert_allclose(means.cost, 5.0 / (20.0 * 0.3), rtol=1e-4)
    assert period_means(time, {"position": position, "work": work}, PERIOD, {}).cost is None
    assert period_means(time[:100], {"position": position[:100]}, PERIOD, result) is None
