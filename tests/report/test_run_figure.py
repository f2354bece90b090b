"""The page on a run of any plant: what it shows of eel, moth and a third party's, and what it leaves alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import rtmms
from rtmms.loop.ports import Applied
from rtmms.loop.statistics import UNDEFINED, Statistics
from rtmms.loop.trace import Recent, Trace
from rtmms.plant.protocol import Channel
from rtmms.robots import eel, moth
from rtmms.view import outputs_figure, run_figure
from rtmms.view.figures import drawing
from rtmms.view.run_figure import one_more_period
from tests.pendulum import Pendulum


class Cart(Pendulum):
    """A third party's plant that has only a position."""

    def __init__(self):
        super().__init__()
        self.outputs = (Channel("position", "m", (3,), "world"),)
        self.trace_outputs, self.recent_outputs = ("position",), ()

    def observe(self):
        return {"position": np.array([self.state[0], 0.0, 0.0])}

    def summarise(self, time, trace):
        return {"mean_speed_m_s": 0.25, "ratio": 3.0, "undefined": None}


def stored(plant, steps):
    """(trace, recent, statistics) of a run under neutral commands."""
    trace = Trace(plant.outputs, plant.trace_outputs, plant.dt, steps)
    recent = Recent(plant.outputs, plant.recent_outputs, plant.dt)
    statistics, command = Statistics(deadline_us=900.0), np.array([c.neutral for c in plant.actuators])
    trace.start(plant.observe())
    for k in range(steps):
        plant.step(command)
        statistics.record(20_000, 200_000, 30_000 + k, 700_000)
        statistics.count(0)
        outputs = plant.observe()
        for observer in (trace, recent):
            if k >= observer.due:
                observer.after_step(k, (k + 1) * plant.dt, outputs, command, Applied())
    return trace, recent, statistics


@pytest.fixture
def pages(monkeypatch):
    result, write = [], run_figure.save
    monkeypatch.setattr(run_figure, "save", lambda page, path: (result.append(page), write(page, path)))
    return result


def texts(page):
    titles = [axes.get_title(loc="left") for axes in page.axes]
    return titles, [text.get_text() for text in page.texts] + [t.get_text() for axes in page.axes for t in axes.texts]


@pytest.mark.full
@pytest.mark.parametrize(("robot", "make", "moving"), [
    ("eel", lambda: eel.load(joints=3), 3),
    ("eel", lambda: eel.load(joints=3, gait="none"), 0),
    ("moth", lambda: moth.load(start="rest"), 16),
])  # fmt: skip
def test_robots(tmp_path, pages, robot, make, moving):
    plant = make()
    run, blob = stored(plant, 60), plant.snapshot()
    draw = drawing(robot, plant)
    draw(tmp_path / "run.png", *run)
    assert plant.snapshot() == blob
    titles, parts = texts(pages[0])
    assert titles[:3] == ["Path, seen from above", "Path, seen from the side", "Velocity of the base, its own axes"]
    assert ("Attitude" in titles) == bool(np.any(np.abs(run[0].read()[1]["quaternion"][:, 1:]) > 1e-9))
    assert titles[-1].startswith("Slack")
    joints = [axes for axes in pages[0].axes if axes.get_title(loc="left").startswith("Joint position")]
    assert sum(len(axes.get_lines()) for axes in joints) == moving
    assert robot.capitalize() in parts
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_a_third_partys_plant(tmp_path, pages):
    plant = Cart()
    draw = drawing("cart", plant)
    draw(tmp_path / "run.svg", *stored(plant, 30))
    titles, parts = texts(pages[0])
    assert titles == ["Path, seen from above", "Path, seen from the side", "Velocity of the base, its own axes",
                      "Wake: start after its instant", "Exchange: state out, command in", "Plant: the step itself",
                      "Slack: left of the period"]  # fmt: skip
    assert "no velocity" in parts
    assert any("mean speed 0.25 m/s" in text and "ratio 3" in text for text in parts)
    assert "undefined" not in " ".join(parts)
    draw(tmp_path / "empty.svg", *stored(plant, 0))
    assert "no steps" in texts(pages[1])[1]


def test_who_gets_one():
    assert drawing("pendulum", Pendulum()).args[0] == "rtmms.view.outputs_figure"  # type: ignore[union-attr]
    assert drawing("fields", SimpleNamespace(outputs=(Channel("joints", shape=(2, 90)),))) is None  # type: ignore[arg-type]
    current = SimpleNamespace(figure=print, outputs=())
    assert drawing("anything", current) is print


def test_one_more_period_is_the_gaits():
    plant = eel.load(joints=3)
    time, values = one_more_period(plant)
    assert time[-1] - time[0] == pytest.approx(2.0)
    want = np.array([plant.law.at(t)[0] for t in time])
    np.testing.assert_allclose(values["joint_position"], want, atol=1e-12)
    assert one_more_period(eel.load(joints=3, dt=0.2)) is None


def test_power_that_no_actuator_reports_has_no_panel(tmp_path, pages):
    plant = rtmms.load("quadrotor")
    draw = drawing("quadrotor", plant)
    draw(tmp_path / "run.png", *stored(plant, 30))
    titles, _ = texts(pages[0])
    assert "Power" not in titles
    assert "Attitude" not in titles  # it falls without a turn


def test_angles_and_vectors_have_names(tmp_path, pages):
    plant = eel.load(joints=3)
    drawing("eel", plant)(tmp_path / "run.png", *stored(plant, 60))
    attitude = next(axes for axes in pages[0].axes if axes.get_title(loc="left") == "Attitude")
    assert [text.get_text() for text in attitude.get_legend().get_texts()] == ["roll", "pitch", "yaw"]


def test_a_mode_without_a_schedule_has_no_empty_panels(tmp_path, pages):
    plant = Cart()
    trace, recent, _ = stored(plant, 30)
    statistics = Statistics()
    for _ in range(30):
        statistics.record(UNDEFINED, 200_000, 30_000, UNDEFINED)
        statistics.count(0)
    drawing("cart", plant)(tmp_path / "run.png", trace, recent, statistics)
    titles, _ = texts(pages[0])
    assert titles[-2:] == ["Exchange: state out, command in", "Plant: the step itself"]


@pytest.mark.parametrize(
    ("robot", "title", "file"),
    [("manta", "Manta", ""), ("roller_racer", "Roller racer", ""), ("a/b/glider.py:robot", "Glider", "glider.py:robot"),
     ("c:/x/arms.py:octopus_two", "Octopus two", "arms.py:octopus_two"), ("/x/copter.urdf", "Copter", "copter.urdf"),
     ("my.fmu", "My", "my.fmu")],
)  # fmt: skip
def test_a_figure_is_named_after_the_robot_and_not_after_its_path(robot, title, file):
    assert run_figure.title_of(robot, Cart()) == (title, file)
    named = SimpleNamespace(model=SimpleNamespace(name="swimmer"))
    assert run_figure.title_of(robot, named) == (("Swimmer", file) if file else (title, file))


def test_several_robots_are_named_and_nothing_is_reported_to_developers(tmp_path, monkeypatch):
    result = []
    monkeypatch.setattr(outputs_figure, "save", lambda page, path: result.append(page))
    world = rtmms.World([("left", "quadrotor"), ("right", "quadrotor")])
    world.trace_outputs, world.recent_outputs = tuple(output.name for output in world.outputs), ()
    drawing("world", world)(tmp_path / "run.png", *stored(world, 30))
    output = [text.get_text() for text in result[0].texts]
    assert output[0] == "left (quadrotor), right (quadrotor)"
    assert "s simulated in 30 steps" in output[1]
    assert not any("trace_outputs" in text for text in output)
