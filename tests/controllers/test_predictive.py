"""Predictive control of the manta, step by step as lockstep would have it."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.planning.planner import Knots
from rtmms.planning.reconstructed_state import distance_apart
from rtmms.view.goals import candidate_motions, planned_motions
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.welcome import plain_parameters
from rtmms_controllers.plan_figures import summary
from rtmms_controllers.predictive import Predictive

PAGE = Path(__file__).resolve().parents[2] / "docs" / "predictive.md"
DT = 1e-2
SMALL: dict[str, Any] = {"chains": 4}


def info_of(plant: Any, robot: str = "manta", dt: float = DT) -> PlantInfo:
    return PlantInfo(
        robot, dt, "lockstep", None, None, plant.actuators, plant.outputs, parameters=plain_parameters(plant),
        every=1, delay=0,
    )  # fmt: skip


def swim(
    controller: Predictive, plant: Any, seconds: float, stuck: int | None = None, robot: str = "manta"
) -> np.ndarray:
    """(steps, 3) m."""
    info = info_of(plant, robot)
    controller.start(info)
    path = []
    for k in range(round(seconds / plant.dt)):
        outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
        path.append(outputs["position"])
        values = controller.update(State({"step": k, "timestamp": k * plant.dt, "outputs": outputs}, info))
        command = np.array([values[channel.name] for channel in plant.actuators])
        if stuck is not None:
            command[stuck] = 0.0
        plant.step(command)
    return np.array(path)


@pytest.fixture(scope="module")
def prepared() -> Predictive:
    """One that has compiled what all of them need."""
    controller = Predictive(samples=8)
    controller.prepare()
    return controller


@pytest.mark.full
def test_it_swims_a_course_and_finds_the_current(prepared: Predictive) -> None:
    """From rest, in a current that it does not know; a controller without feedback drifts metres away."""
    controller = Predictive(course="waypoints", waypoints="0 0 -0.5; 40 0 -0.5", depth_m=0.5)
    controller.prepare()
    plant = rtmms.load("manta", dt=DT, current_m_s=(0.0, 0.08, 0.0), **SMALL)
    plant.place(position=(0.0, 0.0, -0.5))  # type: ignore[attr-defined]
    path = swim(controller, plant, 20.0)
    assert np.abs(path[-600:, 1]).max() < 0.05
    assert np.abs(path[-600:, 2] + 0.5).max() < 0.05
    speed = (path[-1, 0] - path[-601, 0]) / 6.0
    assert speed == pytest.approx(0.4, abs=0.05)
    assert controller._observer is not None
    np.testing.assert_allclose(controller._observer.current, [0.0, 0.08, 0.0], atol=0.015)
    assert "199 plans" in summary(controller._plans, controller._late, controller.samples)
    controller.stop("")


def test_the_same_run_has_the_same_bits_and_begins_anew(prepared: Predictive) -> None:
    plant = rtmms.load("manta", dt=DT, **SMALL)
    first = swim(prepared, plant, 0.6)
    plant.reset()
    assert swim(prepared, plant, 0.6).tobytes() == first.tobytes()
    assert np.abs(first[-1]).max() > 1e-3
    shown = {name: getattr(prepared, name) for name in ("planned_motion", "planned_samples")}
    (motion,), others = planned_motions(shown), candidate_motions(shown)
    assert len(others) == 4
    assert all(path.shape == (4, 3) for path in others)
    assert max(np.abs(path[-1] - motion[-1]).max() for path in others) > 0.01
    assert np.abs(np.array(others)[:, 0] - motion[0]).max() == 0.0


CASES: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    ("manta", {}, {"heading_deg": 90.0, "depth_m": 4.0, "speed_m_s": 0.2}),
    ("manta", {"method": "ilqr"}, {"heading_deg": 90.0}),
    ("manta", {"course": "helix"}, {"speed_m_s": 0.1}),
    ("quadrotor", {}, {"x_m": 2.0, "yaw_deg": 45.0}),
]


@pytest.mark.parametrize(("robot", "chosen", "values"), [
    pytest.param(*case, marks=() if k == 0 else pytest.mark.full) for k, case in enumerate(CASES)
])  # fmt: skip
def test_a_plan_does_not_see_a_set_point_change(robot: str, chosen: dict[str, Any], values: dict[str, float]) -> None:
    """Whether the plan in work was finished when the set-point changed does not matter: the next plan uses it."""
    sent = []
    for is_finished in (False, True):
        controller = Predictive(model=robot, **({"samples": 8} if chosen.get("method") != "ilqr" else {}), **chosen)
        controller.prepare()
        plant = rtmms.load(robot, dt=0.002 if robot == "quadrotor" else DT, **(SMALL if robot == "manta" else {}))
        info = info_of(plant, robot, plant.dt)
        controller.start(info)
        think, changed = controller._think, threading.Event()

        def later(*inputs: Any, think: Any = think, changed: threading.Event = changed) -> Any:
            assert changed.wait(60.0)
            return think(*inputs)

        controller._think = later  # type: ignore[method-assign]
        steps = round(0.35 / plant.dt)
        commands = []
        for k in range(steps):
            outputs = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
            command = controller.update(State({"step": k, "timestamp": k * plant.dt, "outputs": outputs}, info))
            if k == 0:
                if is_finished:
                    changed.set()
                    assert controller._job is not None
                    controller._job.result()
                for name, value in values.items():
                    setattr(controller, name, value)
                controller.on_parameters_changed(values)
                changed.set()
            commands.append([command[channel.name] for channel in plant.actuators])
            plant.step(np.array(commands[-1]))
        controller.stop("")
        sent.append(np.array(commands))
    assert sent[0].tobytes() == sent[1].tobytes()


def test_it_reports_how_far_its_coarse_model_is_off(prepared: Predictive, capsys: pytest.CaptureFixture[str]) -> None:
    controller = Predictive(samples=8)
    controller.prepare()
    controller.start(info_of(rtmms.load("manta", dt=DT)))
    assert controller.model_error_m is not None
    assert 1e-4 < controller.model_error_m < 1e-2
    controller.start(replace(info_of(rtmms.load("manta", dt=0.02, **SMALL)), dt=0.02))
    assert controller.model_error_m == 0.0, "both are the same"
    swim(controller, rtmms.load("manta", dt=DT, **SMALL), 0.2)
    controller.stop("")
    assert re.search(
        r"after 2\.5 s of the first plan, .* differs by [\d.]+ cm",
        capsys.readouterr().err,
    )


def test_its_model_has_the_parameters_of_a_preset(tmp_path: Path, prepared: Predictive) -> None:
    """In place of what the plant sends; the plant's others, or those of the preset that the file names, stay."""
    file = tmp_path / "fitted.toml"
    plant = rtmms.load("manta", dt=DT, body_mass_kg=21.0, drag_coefficient=1.9, **SMALL)
    errors, masses, drags = [], [], []
    for text in ("drag_coefficient = 1.9", "drag_coefficient = 1.2\ndt = 0.3", 'preset = "default"'):
        file.write_text(text)
        controller = Predictive(samples=8, preset=str(file))
        controller.prepare()
        controller.start(info_of(plant))
        masses.append(controller._reconstructed.model.parameters.body_mass_kg)
        errors.append(controller.model_error_m)
        drags.append(controller._planner.model.parameters.drag_coefficient)
        controller.stop("")
    assert masses == [21.0, 21.0, 20.0]
    assert drags == [1.9, 1.2, 1.5]
    prepared.start(info_of(plant))
    assert errors[0] == prepared.model_error_m
    assert errors[1] is not None
    assert errors[1] > 5.0 * (errors[0] or 1.0)


@pytest.mark.parametrize(
    ("text", "robot", "output"),
    [
        (
            "drag_coefficient = 1.9",
            "quadrotor",
            "expected parameters of the quadrotor: unknown quadrotor parameter 'drag_coeffici",
        ),
        ("colour = 3", "manta", "fitted.toml: expected parameters of the manta: unknown manta parameter 'colour'"),
        ("drag_coefficient = 'x'", "manta", "'drag_coefficient': must be a number, got 'x'"),
        ("drag =", "manta", "preset: .*fitted.toml: not TOML"),
        (None, "manta", "preset: .*fitted.toml: there is no such file"),
    ],
)
def test_a_preset_that_is_none_of_the_robots_is_refused(
    tmp_path: Path, text: str | None, robot: str, output: str
) -> None:
    file = tmp_path / "fitted.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(
        rtmms.ModelError, match=f"controller 'predictive': preset: .*{output.removeprefix('preset: .*')}"
    ):
        Predictive(model=robot, preset=str(file)).prepare()


def test_models_are_compared_from_rest_wherever_they_are() -> None:
    coarse, fine = (rtmms.load("quadrotor", dt=step) for step in (0.02, 0.005))
    parts = Knots(coarse.actuators, 3, 0.4, np.array([468.0, 500.0, 468.0, 440.0]))
    parts.home[:] = [468.0, 500.0, 468.0, 440.0]
    apart = distance_apart(coarse, fine, parts, 0.4)
    coarse.place(position=(9.0, 0.0, 0.0))  # type: ignore[attr-defined]
    assert distance_apart(coarse, fine, parts, 0.4) == apart > 1e-6


@pytest.mark.full
def test_it_learns_of_a_rod_that_is_stuck_and_swims_on(prepared: Predictive) -> None:
    controller = Predictive(depth_m=0.0, speed_m_s=0.3, frequency_hz=0.9)
    controller.prepare()
    plant = rtmms.load("manta", dt=DT, **SMALL)
    path = swim(controller, plant, 16.0, stuck=0)
    assert controller._following.stuck == ("left.front",)
    assert set(controller._held) == {0}
    heading = np.degrees(np.arctan2(path[-1, 1] - path[-400, 1], path[-1, 0] - path[-400, 0]))
    assert abs(heading) < 15.0
    assert (path[-1, 0] - path[-401, 0]) / 4.0 > 0.15
    controller.stop("")


MINE, AHEAD = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
"""The page's own costs."""


@pytest.mark.full
def test_a_cost_of_ones_own(tmp_path: Path, prepared: Predictive) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    controller = Predictive(cost=f"{tmp_path}/mine.py:deep")
    controller.prepare()
    plant = rtmms.load("manta", dt=DT, start_depth_m=0.0, **SMALL)
    path = swim(controller, plant, 10.0)
    assert path[-1, 2] < -0.7
    assert getattr(controller, "setpoints") == ()  # noqa: B009
    controller.stop("")


NAN = """
import math

import rtmms


@rtmms.cost
def after(state, command, time):
    return math.nan if state.position[0] > {limit} else 0.0
"""


def test_costs_that_are_no_numbers_end_it_after_a_horizon(
    tmp_path: Path, prepared: Predictive, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(NAN.format(limit=-10.0))
    controller = Predictive(cost=f"{tmp_path}/mine.py:after", samples=4)
    controller.prepare()
    plant = rtmms.load("manta", dt=DT, **SMALL)
    with pytest.raises(rtmms.RtmmsError, match=r"cost '.*:after': no candidate had a finite cost"):
        swim(controller, plant, 6.0)
    assert capsys.readouterr().err.count("no candidate of a plan has a finite cost") == 1
    assert controller.failed_plans == controller.plans >= 10
    assert controller.least_cost is None
    controller.stop("")


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"method": "best"}, "method: .*'best'"),
        ({"rate_hz": 7.0}, "1 / rate_hz: expected whole steps of grid_s = 0.02 s"),
        ({"horizon_s": 2.51}, "horizon_s: expected whole steps"),
        ({"samples": 1}, "samples: expected a whole number from 2"),
        ({"course": "spiral"}, "'spiral'"),
        ({"waypoints": "0 0 0; 1 0 0"}, "waypoints: expected course=waypoints"),
        ({"cost": "a.py:b", "course": "helix"}, "cost, course: expected one of them"),
        ({"speed_m_s": float("nan")}, "speed_m_s: expected a number"),
        ({"model": "kat"}, "model: .*'kat'"),
        ({"model": "cat"}, "cost: 'cat' has no default cost; give cost=FILE.py:NAME"),
        ({"method": "ilqr", "stage_s": 0.07}, "stage_s: expected whole steps of grid_s = 0.02 s"),
        ({"method": "ilqr", "stage_s": 0.3}, "horizon_s: expected whole steps of stage_s = 0.3 s"),
        ({"model": "eel", "method": "ilqr"}, "cost: 'eel' by ilqr has no default cost; give cost=FILE.py:NAME"),
        ({"model": "quadrotor", "course": "helix"}, "course: a quadrotor cannot follow a course"),
        ({"horizon_s": 1.6}, "horizon_s: expected more than a beat, 1.67 s with frequency_hz=0.6, got 1.6 s"),
        ({"x_m": 1.0}, "x_m: a manta cannot fly to a place"),
        ({"iterations": 3}, "iterations: only ilqr uses it"),
        ({"method": "ilqr", "samples": 8}, "samples: only cem, mppi and ps use it"),
        ({"stage_s": 0.2}, "stage_s: only ilqr and linear use it"),
        ({"z_m": 2.0}, "z_m: a manta cannot fly to a place"),
        ({"model": "quadrotor", "depth_m": 3.0}, "depth_m: only robots in water use it; give x_m"),
        ({"model": "torpedo", "cost": "a.py:b", "depth_m": 3.0}, "depth_m: the cost replaces it"),
        ({"model": "torpedo", "cost": "a.py:b", "speed_m_s": 1.0}, "speed_m_s: the cost replaces it"),
        ({"model": "quadrotor", "cost": "a.py:b", "x_m": 4.0}, "x_m: the cost replaces it"),
        ({"radius_m": 2.0}, "radius_m: only a course uses it; give course="),
        ({"course_heading_deg": 20.0}, "course_heading_deg: only a course uses it"),
        ({"course": "eight", "rise_m": 2.0}, "rise_m: course=eight does not use it"),
        ({"course": "waypoints", "waypoints": "0 0 -1; 9 0 -1", "turns": 3.0}, "turns: course=waypoints does not"),
    ],
)
def test_wrong_words_are_refused(chosen: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Predictive(**chosen)


@pytest.mark.parametrize("arguments", [{}, {"method": "ilqr"}, {"model": "moth"}, {"model": "quadrotor", "x_m": 2.0}])
def test_what_it_has_made_of_its_words_it_takes_again(arguments: dict[str, Any]) -> None:
    """As a scenario does that looks at an event of it before the run."""
    item = Predictive(**arguments)
    assert replace(item, yaw_deg=0.0) == item


@pytest.mark.full
def test_by_ilqr_the_manta_goes_deeper_and_swims_straight(prepared: Predictive) -> None:
    controller = Predictive(method="ilqr", depth_m=0.3)
    controller.prepare()
    path = swim(controller, rtmms.load("manta", dt=DT, start_depth_m=0.0, **SMALL), 6.0)
    assert np.abs(path[-200:, 2] + 0.3).max() < 0.03
    assert np.abs(path[-200:, 1]).max() < 0.05
    assert (path[-1, 0] - path[-201, 0]) / 2.0 == pytest.approx(0.4, abs=0.1)
    assert 1.0 <= controller.iterations_a_plan <= 2.0
    assert "iterations a plan" in summary(controller._plans, 0, 2, iterating=True)
    controller.stop("")


@pytest.mark.full
def test_any_robot_is_planned_for_by_a_cost_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(AHEAD)
    controller = Predictive(
        model="torpedo", method="ilqr", horizon_s=4.0, stage_s=0.2, cost=f"{tmp_path}/mine.py:ahead"
    )
    controller.prepare()
    plant = rtmms.load("torpedo", dt=DT, start_depth_m=0.0)
    path = swim(controller, plant, 20.0, robot="torpedo")
    assert path[-1, 0] > 8.0
    np.testing.assert_allclose(path[-1, 1:], [0.5, -1.0], atol=0.05)
    controller.stop("")


def test_a_robot_from_a_file_has_the_parameters_of_the_plant(tmp_path: Path) -> None:
    """As far as its function takes them and the plant has others than its own."""
    (tmp_path / "mine.py").write_text(AHEAD)
    current = Path(__file__).resolve().parents[2] / "examples" / "13_own_robot.py"
    arguments: dict[str, Any] = {"model": f"{current}:robot", "samples": 8, "grid_s": 0.05}
    controller = Predictive(cost=f"{tmp_path}/mine.py:ahead", **arguments)
    controller.prepare()
    plant = rtmms.load(arguments["model"], dt=DT)
    path = swim(controller, plant, 0.5, robot="13_own_robot")
    assert controller._planner.model.dt == 0.05
    assert np.isfinite(path).all()
    assert controller.failed == 0.0
    with pytest.raises(rtmms.ModelError, match="expected a model of the plant 'quadrotor', got "):
        controller.start(info_of(rtmms.load("quadrotor"), "quadrotor"))
    controller.stop("")


@pytest.mark.full
@pytest.mark.parametrize(("x_m", "z_m", "more"), [
    (1.0, 0.5, {"rate_hz": 25.0}), (1.0, 0.5, {}), (0.5, 0.0, {}), (-0.7, 0.3, {}), (2.0, 1.0, {}),
])  # fmt: skip
def test_a_quadrotor_flies_to_a_place(x_m: float, z_m: float, more: dict[str, float]) -> None:
    """Near places, too: with two iterations the plans drifted aside, and it never settled."""
    controller = Predictive(model="quadrotor", method="ilqr", x_m=x_m, z_m=z_m, **more)
    controller.prepare()
    path = swim(controller, rtmms.load("quadrotor", dt=DT), 3.0, robot="quadrotor")
    np.testing.assert_allclose(path[-1], [x_m, 0.0, z_m], atol=0.06)
    assert np.abs(path[:, 1]).max() < 0.1
    assert getattr(controller, "setpoints") == ("x_m", "y_m", "z_m", "yaw_deg")  # noqa: B009
    controller.stop("")


@pytest.mark.full
def test_a_quadrotor_flies_to_a_place_by_sampling() -> None:
    controller = Predictive(model="quadrotor", x_m=1.0, z_m=0.5)
    controller.prepare()
    path = swim(controller, rtmms.load("quadrotor", dt=DT), 5.0, robot="quadrotor")
    assert np.abs(path[-100:] - [1.0, 0.0, 0.5]).max() < 0.15
    controller.stop("")


@pytest.mark.full
def test_a_quadrotor_flies_through_a_gate() -> None:
    """By the example's own cost: where it passes the wall it is near the gate's middle."""
    cost = PAGE.parents[1] / "examples" / "quadrotor" / "gate.py"
    controller = Predictive(model="quadrotor", method="ilqr", cost=f"{cost}:gate", rate_hz=25.0)
    controller.prepare()
    path = swim(controller, rtmms.load("quadrotor", dt=DT), 1.5, robot="quadrotor")
    at = path[np.argmax(path[:, 0] >= 2.0)]
    assert at[0] >= 2.0
    assert np.hypot(at[1] - 0.3, at[2] - 1.0) < 0.1
    controller.stop("")


@pytest.mark.full
def test_an_eel_turns_and_dives() -> None:
    controller = Predictive(model="eel", heading_deg=20.0, depth_m=0.1)
    controller.prepare()
    plant = rtmms.load("eel", dt=2e-2, gait="none", start_depth_m=0.0)
    path = swim(controller, plant, 10.0, robot="eel")
    beat = path[-62:]
    assert beat[:, 2].mean() == pytest.approx(-0.1, abs=0.04)
    q = plant.observe()["quaternion"]
    assert np.degrees(np.arctan2(2.0 * (q[0] * q[3] + q[1] * q[2]), 1.0 - 2.0 * (q[2] ** 2 + q[3] ** 2))) > 10.0
    assert getattr(controller, "setpoints") == ("depth_m", "heading_deg")  # noqa: B009
    controller.stop("")
    with pytest.raises(rtmms.ModelError, match="own gait is on; run it with --set gait=none"):
        Predictive(model="eel").start(info_of(rtmms.load("eel", dt=2e-2), "eel"))


def test_another_robot_than_it_expects_is_refused(prepared: Predictive) -> None:
    plant = rtmms.load("quadrotor", dt=DT)
    with pytest.raises(rtmms.ModelError, match=r"a model of the plant 'quadrotor', got manta; give model="):
        Predictive(method="ilqr").start(info_of(plant, "quadrotor"))


def test_a_cost_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rtmms.ModelError, match=r"expected FILE\.py:NAME"):
        Predictive(cost="deep").prepare()
    (tmp_path / "mine.py").write_text("x = 1\n")
    with pytest.raises(rtmms.ModelError, match="has none"):
        Predictive(cost=f"{tmp_path}/mine.py").prepare()
