"""Robots near the surface of the water: what the watch of a run sees of made-up motions, and what a run does then."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.loop.surface import CHECK_S, SurfaceWatch
from rtmms.plant.description import PlantDescription, describe_plant
from rtmms.plant.protocol import Channel, Environment
from rtmms.record.origin import describe, rebuild_plant
from tests.cli.shell import rtmms as shell

DT = 1e-3
SWIMMERS = ("manta", "eel", "continuous_eel", "fish", "torpedo", "bluerov2", "fluid_swimmer", "purcell")


def swimmer(half_span_m: float | None = 0.5, medium: str = "water", prefix: str = "", surface_m: float = 0.0) -> Any:
    around = Environment((0.0, 0.0, -9.81), 1000.0, surface_m)
    description = PlantDescription(medium=medium, half_span_m=half_span_m, environment=lambda: around)
    return SimpleNamespace(dt=DT, outputs=(Channel(f"{prefix}position", "m", (3,)),), description=description)


def follow(watch: SurfaceWatch, height: Any, seconds: float, name: str = "position") -> None:
    watch.start({name: np.array([0.0, 0.0, height(0.0)])})
    for step in range(round(seconds / DT)):
        if step == watch.due:
            t = (step + 1) * DT
            watch.after_step(step, t, {name: np.array([0.0, 0.0, height(t)])}, np.zeros(0), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ["", "truth."])
@pytest.mark.parametrize("surface_m", [0.0, 3.0])
def test_a_robot_that_comes_near_is_reported_with_its_time(prefix: str, surface_m: float) -> None:
    watch = SurfaceWatch(swimmer(prefix=prefix, surface_m=surface_m), "mine")
    follow(watch, lambda t: surface_m - 2.0 + t if t < 1.75 else surface_m - 1.0, 4.0, f"{prefix}position")
    (result,) = watch.report().items()
    assert result[0] == "mine"
    assert result[1]["first_s"] == pytest.approx(1.5, abs=2 * CHECK_S)
    assert result[1]["seconds"] == pytest.approx(0.25, abs=2 * CHECK_S)
    assert result[1]["highest_m"] == pytest.approx(surface_m - 0.25, abs=2 * CHECK_S)
    (news,) = watch.news()
    assert "mine is at z = " in news
    assert watch.news() == []
    assert "for 0.2" in watch.visits[0].sentence
    assert "below it" in watch.visits[0].sentence


@pytest.mark.parametrize(
    ("plant", "highest"),
    [
        (swimmer(), -0.51),
        (swimmer(medium="air"), 3.0),
        (swimmer(half_span_m=None), 3.0),
    ],
    ids=["deep enough", "in air", "no span"],
)
def test_others_are_not(plant: Any, highest: float) -> None:
    watch = SurfaceWatch(plant, "mine", stop=pytest.fail)
    follow(watch, lambda _: highest, 1.0)
    assert watch.report() == {}
    assert watch.news() == []


def test_stop_gets_one_sentence_at_once_and_a_reset_discards() -> None:
    stops: list[str] = []
    watch = SurfaceWatch(swimmer(), "mine", stops.append)
    follow(watch, lambda t: -2.0 + t, 3.0)
    (sentence,) = stops
    assert "t = 1.5" in sentence
    assert "--on-surface stop" in sentence
    watch.clear()
    assert watch.report() == {}


@pytest.mark.parametrize("name", SWIMMERS)
def test_swimming_robots_start_two_metres_deep(name: str) -> None:
    plant: Any = rtmms.load(name)
    assert plant.observe()["position"][2] == -2.0
    about = describe_plant(plant)
    assert about.half_span_m is not None
    assert 0.0 < about.half_span_m < 2.0
    higher: Any = rtmms.load(name, start_depth_m=0.25)
    higher.step(higher.neutral if hasattr(higher, "neutral") else np.zeros(len(higher.actuators)))
    higher.reset()
    assert higher.observe()["position"][2] == -0.25
    with pytest.raises(ModelError, match="start_depth_m"):
        rtmms.load(name, start_depth_m=-0.1)


@pytest.mark.parametrize("name", ["manta", "eel", "torpedo"])
def test_the_depth_changes_nothing_but_the_height(name: str) -> None:
    deep, top = rtmms.load(name), rtmms.load(name, start_depth_m=0.0)
    random = np.random.default_rng(1)
    for _ in range(200):
        command = random.uniform(-0.1, 0.1, len(deep.actuators))
        deep.step(command)
        top.step(command)
    below, above = deep.observe(), top.observe()
    assert below["position"][2] + 2.0 == pytest.approx(above["position"][2], abs=1e-12)
    for output in ("velocity", "angular_velocity", "quaternion"):
        assert np.array_equal(below[output], above[output]), output


@pytest.mark.parametrize("robot", ["manta", "world"])
def test_a_log_from_before_starts_where_its_robots_started(robot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [{"name": "one", "robot": "manta", "parameters": {}}, {"name": "two", "robot": "snake", "parameters": {}}]
    parameters = {"robots": members} if robot == "world" else {}
    plant = rtmms.load(robot, **parameters)
    run = {"robot": robot, "preset": None, "parameters": parameters, "seed": 0, "mode": "lockstep", "rate": 1.0}
    origin = describe(plant, run)
    position = "one.position" if robot == "world" else "position"
    assert rebuild_plant(origin).observe()[position][2] == -2.0
    for description in (origin["description"], (origin["robots"] or {}).get("one", {}).get("description")):
        if description:
            description.pop("start_depth_m", None)
    assert rebuild_plant(origin).observe()[position][2] == 0.0


def test_a_run_warns_stops_or_is_silent(tmp_path: Path) -> None:
    def run(*more: str) -> Any:
        return shell(
            tmp_path, "run", "manta", "--mode", "lockstep", "--controller", "none", "--duration", "0.2", "--quiet",
            "--set", "start_depth_m=0.5", *more,
        )  # fmt: skip

    warned = run("--json")
    report = json.loads(warned.out)
    assert warned.status == 0
    assert report["surface"]["manta"]["first_s"] == 0.0
    assert any("surface" in sentence for sentence in report["warnings"])
    stopped = run("--json", "--on-surface", "stop")
    assert (stopped.status, json.loads(stopped.out)["ended"]) == (1, "policy")
    assert "--on-surface stop" in stopped.err
    left = run("--json", "--on-surface", "ignore")
    assert (left.status, json.loads(left.out)["surface"]) == (0, {})
