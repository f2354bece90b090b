"""The wheeled robots: values computed twice elsewhere, rows that hold along a run, energy, bits, controllers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import locomotion
from rtmms.locomotion.paths import Sines
from rtmms.mechanism.joint_laws import Law
from rtmms.robots import roller_racer, snake, snakeboard, trikke, unicycle
from rtmms.robots.shape_gaits import GAITS
from rtmms_controllers.shape import Shape

NAMES = ("snake", "unicycle", "snakeboard", "roller_racer", "trikke")


def heading(plant: Any) -> float:
    q = plant.observe()["quaternion"]
    return 2.0 * math.atan2(q[3], q[0])


def run(plant: Any, steps: int) -> Any:
    for _ in range(steps):
        plant.step(plant.neutral)
    return plant


def slip(plant: Any) -> float:
    n, y = plant.model.n, plant.vector
    a, b = locomotion.rows(plant.model, y[7 : 7 + n])
    return float(np.abs(a @ y[7 + n : 13 + n] + b @ y[13 + n :]).max())


def board(steps: int, sine: tuple[float, float, float] = (0.7, 0.3, -0.3)) -> Any:
    """A period of 2 pi s of the gait `drive`, joints exactly on their sines."""
    law = Law(np.column_stack([np.zeros(3), np.zeros(3), sine]))
    return rtmms.TreePlant(snakeboard.describe(snakeboard.Snakeboard()), 2.0 * math.pi / steps, law)


def leader(steps: int) -> Any:
    """A period of 4 s: the head at 0.2 m/s, r1 = 0.6 sin(pi t / 2)."""
    description = snake.describe(snake.Snake())
    motion = np.zeros((8, 3))
    motion[0, 2] = 0.6
    speed = rtmms.model.JointSpeed("wheel", neutral=4.0)
    return rtmms.TreePlant(description, 4.0 / steps, Law(motion, 0.5 * math.pi), actuators=[speed])


def test_the_snakeboard_drives() -> None:
    plant = board(1500)
    before = float(plant.observe()["energy"])
    outputs = run(plant, 1500).observe()
    assert outputs["position"][:2] == pytest.approx([0.1244027847, -0.0011904385], abs=1e-8)
    assert heading(plant) == pytest.approx(-0.0604740265, abs=1e-8)
    assert outputs["velocity"][0] == pytest.approx(0.0399697886, abs=1e-8)
    assert float(outputs["work"]) == pytest.approx(float(outputs["energy"]) - before, abs=1e-9)  # the ground does none


def test_the_snake_follows_its_head() -> None:
    plant = run(leader(1500), 1500)
    assert plant.observe()["position"][:2] == pytest.approx([0.6949837115, -0.2855452070], abs=1e-8)
    assert heading(plant) == pytest.approx(0.0, abs=1e-8)


def test_a_step_is_of_fourth_order() -> None:
    ends = [run(board(n), n).observe()["position"][:2] for n in (50, 100, 200)]
    first, second = (np.linalg.norm(ends[k] - ends[k + 1]) for k in range(2))
    assert math.log2(first / second) == pytest.approx(4.0, abs=0.3)


def test_the_ground_is_alike_everywhere() -> None:
    """The same run from another place and heading is the same run, moved."""
    plant = board(400)
    here = run(plant, 400).observe()
    turn, there = 1.1, np.array([3.0, -2.0, 0.0])
    plant.reset()
    state = plant.state
    state.position, state.orientation = there, np.array([math.cos(0.5 * turn), 0.0, 0.0, math.sin(0.5 * turn)])
    plant.place(state)
    outputs = run(plant, 400).observe()
    c, s = math.cos(turn), math.sin(turn)
    moved = np.array([[c, -s], [s, c]]) @ here["position"][:2] + there[:2]
    assert outputs["position"][:2] == pytest.approx(moved, abs=1e-12)
    assert outputs["velocity"] == pytest.approx(here["velocity"], abs=1e-13)


def test_a_step_allocates_nothing() -> None:
    from numba.core.runtime import _nrt_python as runtime
    from numba.core.runtime import rtsys

    plant: Any = rtmms.load("trikke", fork="passive")
    command = plant.neutral + 0.1
    plant.step(command)
    runtime.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        for _ in range(100):
            plant.step(command)
        assert rtsys.get_allocation_stats().alloc == before
    finally:
        runtime.memsys_disable_stats()


def test_estimators_and_monitors_step_alike() -> None:
    """A plant's estimator gives the error of a step, on the ground too, and leaves the plant as it is."""
    plant: Any = rtmms.load("snakeboard")
    for k in range(50):
        plant.step(np.array([0.01 * k, 0.2, -0.2]))
    before = plant.snapshot()
    error = plant.step_error(np.array([0.5, 0.2, -0.2]))
    assert 0.0 < error.largest < 1e-4
    assert plant.snapshot() == before


def test_small_waves_run_down_the_snake() -> None:
    """r_{j+1} / r_j: gain 1, phase -2 atan(a w / v), from the slopes of the rows' rates at the straight shape."""
    model = rtmms.compile(snake.describe(snake.Snake(drive="torque")))
    n, v, w, a, h = model.n, 0.2, 1.3, 0.1, 1e-4

    def follow(r: np.ndarray, first: float) -> np.ndarray:
        twist = np.array([v, np.nan, np.nan, np.nan, np.nan, np.nan])
        return locomotion.rates(model, r, [first, *[np.nan] * (n - 1)], twist)[1]

    unit = np.eye(n)
    slope = np.column_stack([(follow(h * e, 0.0) - follow(-h * e, 0.0)) / (2 * h) for e in unit])
    push = follow(np.zeros(n), 1.0)
    # i w r = slope r + push i w r_1, r_1 = 1
    remaining = np.linalg.solve(1j * w * np.eye(n - 1) - slope[1:, 1:], slope[1:, 0] + 1j * w * push[1:])
    ratio = np.concatenate([[1.0], remaining])
    ratio = ratio[1:] / ratio[:-1]
    assert np.abs(ratio) == pytest.approx(np.ones(n - 1), abs=1e-6)
    assert np.angle(ratio) == pytest.approx(np.full(n - 1, -2.0 * math.atan(a * w / v)), abs=1e-6)


def transport(model: Any, path: list[tuple[float, float]]) -> np.ndarray:
    """(x, y, theta) after the wheels turned by each of these angles in turn: the form is constant, so exactly."""
    g = np.eye(3)
    form = locomotion.nonholonomic(model, np.zeros(2))
    for turn in path:
        v, w = (-form @ np.array(turn))[[0, 5]]
        c, s = math.cos(w), math.sin(w)
        x, y = (v * s / w, v * (1.0 - c) / w) if abs(w) > 1e-12 else (v, 0.0)
        g = g @ np.array([[c, -s, x], [s, c, y], [0.0, 0.0, 1.0]])
    return np.array([g[0, 2], g[1, 2], math.atan2(g[1, 0], g[0, 0])])


def test_the_unicycle_goes_round_a_rectangle_of_its_shape() -> None:
    p = unicycle.Unicycle()
    model = rtmms.compile(unicycle.describe(p))
    s, th = 0.37, 0.8
    ahead, turn = s / p.wheel_m, th * p.half_track_m / p.wheel_m
    path = [(ahead, ahead), (-turn, turn), (-ahead, -ahead), (turn, -turn)]
    end = transport(model, path)
    assert end == pytest.approx([s * (1 - math.cos(th)), -s * math.sin(th), 0.0], abs=1e-12)
    back = transport(model, [(-a, -b) for a, b in reversed(path)])
    assert back == pytest.approx([*(-end[:2]), 0.0], abs=1e-12)  # the reverse is the inverse
    halves = transport(model, [(0.5 * a, 0.5 * b) for a, b in path for _ in range(2)])
    assert halves == pytest.approx(end, abs=1e-12)  # the pace does not matter


@pytest.mark.parametrize("name", NAMES)
def test_rows_hold_along_a_run_and_snapshots_go_on(name: str) -> None:
    plant: Any = rtmms.load(name)
    gait = Shape(ramp_s=0.2)
    gait.start(SimpleNamespace(robot=name, actuators=plant.actuators, parameters={}))  # type: ignore[arg-type]
    names = [channel.name for channel in plant.actuators]

    def go(first: int, last: int) -> float:
        worst = 0.0
        for k in range(first, last):
            values = gait.update(SimpleNamespace(time=k * plant.dt))  # type: ignore[arg-type]
            plant.step(np.array([values[name] for name in names]))
            worst = max(worst, slip(plant))
        return worst

    plant.reset()
    assert go(0, 300) < 1e-12
    stored = plant.snapshot()
    assert go(300, 500) < 1e-12
    end = plant.snapshot()
    plant.restore(stored)
    go(300, 500)
    assert plant.snapshot() == end
    outputs = plant.observe()
    assert float(outputs["work"]) == pytest.approx(float(outputs["energy"]), rel=1e-4)
    assert abs(outputs["position"][2]) < 1e-12
    assert np.linalg.norm(outputs["position"]) > 1e-4
    weight = plant.model.mass * 9.81  # the plane bears it, and nothing else does
    assert outputs["reaction"][plant.model.ground.names.index(f"{plant.model.body_names[0]}.plane.z")] == pytest.approx(
        weight, rel=1e-9
    )


@pytest.mark.parametrize("name", ["unicycle", "snakeboard", "roller_racer", "trikke", "snake"])
def test_torques_drive_them_too(name: str) -> None:
    plant: Any = rtmms.load(name, drive="torque")
    push = 0.02 * np.cos(np.arange(len(plant.actuators)))
    for _ in range(400):
        plant.step(push)
    outputs = plant.observe()
    assert slip(plant) < 1e-12
    assert float(outputs["work"]) == pytest.approx(float(outputs["energy"]), rel=1e-6, abs=1e-12)


def test_the_trikke_with_a_passive_fork() -> None:
    """The spring brings the fork back, the damper takes energy, and swinging drives it still."""
    plant: Any = rtmms.load("trikke", fork="passive")
    for k in range(1500):
        plant.step(np.array([0.6 * math.sin(3.0 * k * plant.dt)]))
    outputs = plant.observe()
    assert [channel.name for channel in plant.actuators] == ["rider.angle"]
    assert 0.0 < float(outputs["energy"]) < float(outputs["work"]) + 1e-12
    assert abs(outputs["joint_position"][1]) > 1e-4


def test_any_number_of_links() -> None:
    plant = rtmms.load("snake", links=3)
    assert [channel.name for channel in plant.actuators] == ["wheel.speed", "j1.angle"]
    plant = rtmms.load("snake", links=20, drive="servo")
    assert len(plant.actuators) == 19


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("snake", {"links": 1}, "snake: links must be >= 2, got 1"),
        ("snake", {"drive": "rope"}, "snake: drive must be one of leader, torque, servo, got 'rope'"),
        ("unicycle", {"wheel_m": -1}, "unicycle: wheel_m must be > 0 m, got -1"),
        ("snakeboard", {"half_length_m": 0}, "snakeboard: half_length_m must be > 0 m, got 0"),
        ("roller_racer", {"bar_mm": 1}, "unknown roller_racer parameter 'bar_mm'; did you mean"),
        ("trikke", {"fork": "loose"}, "trikke: fork must be one of driven, passive, got 'loose'"),
    ],
)
def test_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(rtmms.ModelError) as error:
        rtmms.load(name, **arguments)
    assert message in str(error.value)


def test_no_presets() -> None:
    for module in (snake, unicycle, snakeboard, roller_racer, trikke):
        with pytest.raises(rtmms.UnknownNameError, match="preset"):
            module.load(preset="fast")


def started(robot: str, gait: Shape, *actuators: str) -> Shape:
    channels = tuple(rtmms.Channel(name) for name in actuators)
    gait.start(SimpleNamespace(robot=robot, actuators=channels, parameters={}))  # type: ignore[arg-type]
    return gait


def test_gaits_are_sines() -> None:
    gait = started("snakeboard", Shape("park", ramp_s=0.0, steer=0.1), "rotor.angle", "front.angle", "back.angle")
    t, w = 0.31, math.pi
    values = gait.update(SimpleNamespace(time=t))  # type: ignore[arg-type]
    assert values["rotor.angle"] == pytest.approx(0.7 * math.sin(3 * w * t))
    assert values["front.angle"] == pytest.approx(0.3 * math.sin(2 * w * t) + 0.1)
    assert values["back.angle"] == pytest.approx(-0.3 * math.sin(2 * w * t) - 0.1)
    for name in NAMES:
        assert isinstance(next(iter(GAITS[name].values())), Sines)


def test_gaits_that_do_not_fit() -> None:
    with pytest.raises(rtmms.UnknownNameError, match="unknown gait 'park2'; did you mean park"):
        started("snakeboard", Shape("park2"), "rotor.angle")
    with pytest.raises(rtmms.ModelError, match=r"expected actuators wheel.speed, j1.angle, got j1.torque"):
        started("snake", Shape(), "j1.torque")
    with pytest.raises(rtmms.ModelError, match=r"expected actuators that are angles, got left.front"):
        started("manta", Shape(), "left.front")
    with pytest.raises(rtmms.ModelError, match="amplitude"):
        Shape(amplitude=math.nan)
