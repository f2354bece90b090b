"""The controller of shapes against its plants, step by step as lockstep would have it."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.robots.shape_gaits import GAITS
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.shape import Shape


def info_of(plant: Any, robot: str) -> PlantInfo:
    return PlantInfo(
        robot=robot, dt=plant.dt, mode="lockstep", period_s=None, deadline_s=None, actuators=plant.actuators,
        outputs=plant.outputs, parameters=asdict(plant.parameters),
    )  # fmt: skip


def played(controller: Any, plant: Any, robot: str, seconds: float) -> np.ndarray:
    """(k, u) what it commands."""
    info = info_of(plant, robot)
    controller.start(info)
    names = [channel.name for channel in plant.actuators]
    rows = []
    for k in range(round(seconds / plant.dt)):
        values = controller.update(State({"step": k, "timestamp": k * plant.dt, "outputs": {}}, info))
        rows.append([values[name] for name in names])
    return np.array(rows)


def test_a_circle_after_a_soft_start() -> None:
    plant = rtmms.load("purcell", dt=0.01)
    rows = played(Shape(gait="circle", a=0.8, c1=0.1, period_s=2.0, ramp_s=1.0), plant, "purcell", 5.0)
    np.testing.assert_array_equal(rows[0], [0.0, 0.0])
    t = 2.0 * math.pi * (0.01 * np.arange(100, 500) - 1.0) / 2.0
    np.testing.assert_allclose(rows[100:], np.column_stack([0.1 + 0.8 * np.cos(t), 0.8 * np.sin(t)]), atol=1e-7)
    assert np.max(np.abs(np.diff(rows, axis=0))) < 0.03


def test_so_many_cycles_and_then_it_stays() -> None:
    plant = rtmms.load("satellite", dt=0.01)
    rows = played(Shape(period_s=2.0, ramp_s=0.0, cycles=2), plant, "satellite", 6.0)
    assert rows.max() == pytest.approx(10.0)
    np.testing.assert_allclose(rows[402:], 0.0, atol=1e-12)
    assert np.abs(rows[390]).max() > 0.1


def test_a_file_of_shapes(tmp_path: Path) -> None:
    file = tmp_path / "triangle.csv"
    file.write_text("left,right\n0,0\n1,0\n0,1\n")
    rows = played(Shape(file=str(file), period_s=3.0, ramp_s=0.0), rtmms.load("purcell", dt=0.01), "purcell", 3.0)
    for k, corner in ((0, (0, 0)), (100, (1, 0)), (200, (0, 1))):
        np.testing.assert_allclose(rows[k], corner, atol=1e-9)
    file.write_text("right,left\n0,0\n1,0\n0,1\n")
    rows = played(Shape(file=str(file), period_s=3.0, ramp_s=0.0), rtmms.load("purcell", dt=0.01), "purcell", 3.0)
    np.testing.assert_allclose(rows[100], (0, 1), atol=1e-9)
    file.write_text("a,b\n0,0\n1,0\n0,1\n")
    with pytest.raises(rtmms.ModelError, match="expected the heading left,right, in any order, got 'a,b'"):
        Shape(file=str(file)).start(info_of(rtmms.load("purcell"), "purcell"))


@pytest.mark.parametrize("robot", Shape.robots)
def test_each_robot_has_a_gait_that_it_can_do(robot: str) -> None:
    plant = rtmms.load(robot)
    for name in GAITS[robot]:
        if (robot, name) != ("unicycle", "park"):  # a path of its wheels' angles, for `rtmms gaits`; it takes speeds
            Shape(gait=name).start(info_of(plant, robot))
    Shape().start(info_of(plant, robot))


@pytest.mark.parametrize(
    ("make", "robot", "more", "text"),
    [
        (lambda: Shape(gait="circl"), "purcell", {}, "did you mean circle"),
        (lambda: Shape(gait="circle", a=4.0), "purcell", {}, "left.angle would move from -4 to 4 rad"),
        (lambda: Shape(gait="circle", b=1.0), "purcell", {}, "unknown parameter of gait 'circle' 'b'"),
        (lambda: Shape(file="a.txt"), "purcell", {}, "expected FILE.csv"),
        (lambda: Shape(file="a.csv", gait="circle"), "purcell", {}, "gait, file: expected one of them, got both"),
        (lambda: Shape(), "cat", {"drive": "torque"}, "run the robot with drive=motion"),
        (lambda: Shape(period_s=0.0), "cat", {}, "period_s: expected a number"),
        (lambda: Shape("park"), "unicycle", {}, "gait 'park': expected actuators that are angles, got left.speed"),
        (lambda: Shape("lead", a=1.0), "snake", {}, "gait 'lead': expected actuators that are angles, got wheel.speed"),
    ],
)
def test_refused(make: Any, robot: str, more: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make().start(info_of(rtmms.load(robot, **more), robot))


@pytest.mark.full
def test_it_starts_without_numba_and_scipy() -> None:
    program = "import sys, rtmms_controllers.shape; print([m for m in ('numba', 'scipy') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


def test_sines_play_as_a_closed_path_for_so_many_cycles() -> None:
    plant = rtmms.load("snakeboard", dt=0.01)
    rows = played(Shape(gait="rotate", period_s=2.0, ramp_s=0.0, cycles=1), plant, "snakeboard", 3.0)
    t = math.pi * 0.01 * np.arange(201)
    wanted = [0.7 * np.sin(2.0 * t), 0.3 * np.sin(t), -0.3 * np.sin(t)]
    np.testing.assert_allclose(rows[:201], np.column_stack(wanted), atol=1e-6)
    np.testing.assert_allclose(rows[202:], 0.0, atol=1e-12)


def at(controller: Any, step: int) -> np.ndarray:
    return np.array(
        list(controller.update(State({"step": step, "timestamp": 0.01 * step, "outputs": {}}, BOARD)).values())
    )


BOARD = PlantInfo(
    "snakeboard", 0.01, "lockstep", None, None,
    tuple(rtmms.Channel(f"{name}.angle", "rad", lower=-1.4, upper=1.4) for name in ("rotor", "front", "back")), (),
)  # fmt: skip


@pytest.mark.parametrize("cycles", [0, 100])
@pytest.mark.parametrize("pace", [{"frequency_hz": 1.1}, {"period_s": 0.9}])
def test_its_pace_changes_without_a_jump(cycles: int, pace: dict[str, float]) -> None:
    item = Shape(ramp_s=0.0, cycles=cycles)
    item.start(BOARD)
    before, last = at(item, 0), np.zeros(3)
    for step in range(1, 624):
        before, last = last, at(item, step)
    item.on_parameters_changed(pace)
    assert np.max(np.abs(at(item, 624) - last)) <= 6.0 * np.max(np.abs(last - before)) + 1e-3
    assert np.max(np.abs(at(item, 640) - last)) > 1e-2


def test_amplitude_and_steering_change_at_once() -> None:
    item, fresh = Shape(ramp_s=0.0), Shape(ramp_s=0.0, amplitude=0.5, steer=0.1)
    for each in (item, fresh):
        each.start(BOARD)
    at(item, 50)
    item.on_parameters_changed({"amplitude": 0.5, "steer": 0.1})
    np.testing.assert_array_equal(at(item, 51), at(fresh, 51))
    around, half = Shape("drive", ramp_s=0.0, cycles=9), Shape("drive", ramp_s=0.0, cycles=9, amplitude=0.5)
    for each in (around, half):
        each.start(BOARD)
        at(each, 0)
    np.testing.assert_allclose(0.5 * at(around, 30), at(half, 30), atol=1e-15)


@pytest.mark.parametrize(
    ("make", "arguments", "text"),
    [
        (Shape, {"amplitude": 3.0}, "rotor.angle would move from -2.1 to 2.1 rad, beyond its limits -1.4 to 1.4"),
        (Shape, {"steer": -1.3}, "front.angle would move from -1.6 to -1 rad"),
        (Shape, {"frequency_hz": -1.0}, "frequency_hz: expected a number from 0 to 50"),
        (Shape, {"frequency_hz": 1.0, "period_s": 1.0}, "period_s, frequency_hz: expected one of them"),
        (
            lambda **more: Shape(cycles=3, **more),
            {"steer": 0.1},
            "expected 0 for a closed path, which cannot steer, got 0.1",
        ),
        (lambda **more: Shape(cycles=3, **more), {"amplitude": 3.0}, "rotor.angle would move from -2.1 to 2.1 rad"),
    ],
)
def test_refused_at_the_start_and_while_it_runs(make: Any, arguments: dict[str, float], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make(**arguments).start(BOARD)
    item = make()
    item.start(BOARD)
    known = dict(vars(item))
    with pytest.raises(rtmms.ModelError, match=text):
        item.on_parameters_changed(arguments)
    assert vars(item) == known


def test_a_reset_begins_anew() -> None:
    item, fresh = Shape(ramp_s=0.0, frequency_hz=0.7), Shape(ramp_s=0.0)
    item.start(BOARD)
    fresh.start(BOARD)
    at(fresh, 70)
    fresh.on_parameters_changed({"frequency_hz": 0.7})
    for step in (0, 13):
        np.testing.assert_array_equal(at(item, step), at(fresh, step))
