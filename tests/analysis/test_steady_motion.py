"""Steady motions of any plant: closed forms, what a run from there does, and what is refused or out of reach."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.steady_motion import MAX_CLOSING_ERROR, SteadyMotion
from rtmms.analysis.trim import fitting_dt
from rtmms.base.errors import ModelError
from rtmms.plant.loading import robots


def heading(quaternion: Any) -> float:
    """rad."""
    w, x, y, z = quaternion
    return math.atan2(2.0 * (x * y + w * z), 1.0 - 2.0 * (y * y + z * z))


def moved(plant: Any, motion: SteadyMotion) -> dict[str, float]:
    """Means of the second period of a run from the motion's start, seen at each step."""
    plant.restore(motion.snapshot)
    yaws, places = [], []
    for command in [*motion.commands, *motion.commands]:
        outputs = plant.observe()
        yaws.append(heading(outputs["quaternion"])), places.append(outputs["position"].copy())
        plant.step(command)
    outputs, n = plant.observe(), len(motion.commands)
    yaw = np.unwrap([*yaws[n:], heading(outputs["quaternion"])])
    route, turn = outputs["position"] - places[n], yaw[-1] - yaw[0]
    arc = 0.5 * turn / math.sin(0.5 * turn) if turn else 1.0
    along = route[0] * math.cos(np.mean(yaw)) + route[1] * math.sin(np.mean(yaw))
    seconds = motion.period_s
    return {"speed": arc * along / seconds, "turn_rate": turn / seconds, "climb": route[2] / seconds}


def test_a_quadrotor_hovers_at_the_speed_of_its_weight():
    """Four thrusts k w^2 carry m g, and the plant is left there."""
    plant = rtmms.load("quadrotor")
    motion = rtmms.trim(plant)
    assert motion.is_reached, motion.message
    p = plant.parameters
    speed = math.sqrt(plant.model.mass * p.gravity_m_s2 / (4.0 * p.thrust_n_s2))
    assert list(motion.variables.values()) == pytest.approx([speed] * 4, rel=1e-6)
    assert plant.snapshot() == motion.snapshot
    assert np.abs(moved(plant, motion)["climb"]) < 1e-5


@pytest.mark.parametrize("targets", [{"speed": 2.0, "turn_rate": 0.4, "climb": 0.3}, {"climb": -0.5}])
def test_a_run_from_there_does_what_was_asked_for(targets):
    plant = rtmms.load("quadrotor")
    motion = rtmms.trim(plant, **targets)
    assert motion.is_reached, motion.message
    run = moved(plant, motion)
    for name, value in targets.items():
        assert run[name] == pytest.approx(value, rel=5e-3)


def test_a_vehicle_in_water_turns_at_a_depth():
    plant = rtmms.load("torpedo")
    motion = rtmms.trim(plant, speed=0.5, turn_rate=0.05, depth=5.0)
    assert motion.is_reached, motion.message
    assert motion.motion["depth"] == pytest.approx(5.0, abs=0.01)
    run = moved(plant, motion)
    assert run["speed"] == pytest.approx(0.5, rel=5e-3)
    assert run["turn_rate"] == pytest.approx(0.05, rel=1e-2)
    assert -plant.observe()["position"][2] == pytest.approx(5.0, abs=0.02)


def test_a_target_out_of_reach_reports_how_near_it_came():
    """The propeller at its limit: the motion that is left is steady, and the fastest."""
    plant = rtmms.load("torpedo")
    motion = rtmms.trim(plant, speed=9.0)
    assert motion.is_steady
    assert not motion.is_reached
    assert set(motion.misses) >= {"speed"}
    assert "propeller.command" in motion.at_limit
    fastest = motion.motion["speed"]
    assert f"speed 9 m/s is not reached: the nearest is {fastest:.4g} m/s" in motion.message
    plant.reset()
    full = np.array([channel.neutral for channel in plant.actuators])
    full[0] = plant.actuators[0].upper
    for _ in range(6000):
        plant.step(full)
    assert fastest == pytest.approx(plant.observe()["velocity"][0], rel=0.02)


@pytest.mark.parametrize("targets", [{}, {"speed": 0.0}, {"speed": 1.0}])
def test_a_robot_that_can_fly_aside_does_not(targets: dict[str, float]) -> None:
    """A small roll would carry it aside at the same height, heading and speed ahead."""
    quadrotor = rtmms.load("quadrotor")
    assert rtmms.trim(quadrotor, **targets).is_reached
    ahead, aside, _ = quadrotor.observe()["velocity"]
    assert aside == pytest.approx(0.0, abs=1e-6)
    assert ahead == pytest.approx(targets.get("speed", 0.0), abs=1e-3)


def test_a_target_out_of_reach_leaves_the_others_met() -> None:
    """They are small beside it, so a search for the least sum of squares would end before it has met them."""
    torpedo = rtmms.load("torpedo")
    motion = rtmms.trim(torpedo, speed=1.5)
    assert set(motion.misses) == {"speed"}
    assert motion.motion["speed"] == pytest.approx(0.7099, abs=1e-3)
    turning = rtmms.trim(torpedo, speed=1.5, turn_rate=math.radians(5.0))
    assert math.degrees(turning.motion["turn_rate"]) == pytest.approx(5.0, rel=0.05)
    assert turning.motion["speed"] == pytest.approx(0.6975, abs=3e-3)


def test_a_plant_without_inertia_travels_by_its_stroke():
    plant = rtmms.load("purcell")
    motion = rtmms.trim(plant, speed=0.01)
    assert motion.is_reached, motion.message
    assert motion.drive == "stroke"
    assert 0.0 < motion.variables["amplitude"] < 1.0
    assert moved(plant, motion)["speed"] == pytest.approx(0.01, rel=5e-3)


@pytest.mark.full
def test_a_plant_with_a_gait_of_its_own_moves_so_with_the_found_amplitude() -> None:
    plant = rtmms.load("eel")
    motion = rtmms.trim(plant, speed=0.2)
    assert motion.is_reached, motion.message
    assert motion.amplitude_factor == motion.variables["amplitude"] != 1.0

    def turned() -> float:
        before = heading(plant.observe()["quaternion"])
        for command in motion.commands:
            plant.step(command)
        return abs(heading(plant.observe()["quaternion"]) - before)

    with motion.on(plant):
        assert max(turned() for _ in range(3)) < 1e-7
    plant.restore(motion.snapshot)
    assert turned() > 1e-2, "the snapshot alone has the plant's own amplitude"


@pytest.mark.parametrize(
    ("robot", "targets", "text"),
    [
        ("quadrotor", {"depth": 3.0}, "expected a robot in water, got the medium 'air'"),
        ("quadrotor", {"speed": math.nan}, "speed: expected a finite number in m/s"),
        ("quadrotor", {"speed": ["vx"]}, "see rtmms.analysis.trim"),
        ("quadrotor", {"climb": True}, "climb: expected a finite number"),
        ("purcell", {"depth": 1.0}, "cannot be placed at a depth"),
    ],
)
def test_wrong_targets_are_refused(robot, targets, text):
    with pytest.raises(ModelError, match=text):
        rtmms.trim(rtmms.load(robot), **targets)


def test_several_robots_are_refused():
    with pytest.raises(ModelError, match="expected one robot, got several"):
        rtmms.trim(rtmms.World([("one", "quadrotor"), ("two", "quadrotor")]))
    with pytest.raises(rtmms.ArgumentError, match=r"trim: plant: expected a plant, .*, got 'quadrotor'"):
        rtmms.trim("quadrotor")  # type: ignore[arg-type]


TARGETS: dict[str, dict[str, float]] = {
    "manta": {"speed": 0.3, "turn_rate": math.radians(5.0)}, "moth": {"speed": 0.1}, "eel": {"speed": 0.3},
    "torpedo": {"speed": 0.5}, "bluerov2": {"speed": 0.4},
    "snake": {"speed": 0.3, "turn_rate": 0.2}, "unicycle": {"speed": 0.4, "turn_rate": 0.2},
    "quadrotor": {"speed": 3.0}, "purcell": {"speed": 0.01}, "fluid_swimmer": {"speed": 0.02},
    "satellite": {"turn_rate": 0.1}, "continuous_eel": {"turn_rate": 0.1},
}  # fmt: skip
"""Of robots that reach some target; the others are tried without one."""


@pytest.mark.full  # seconds to minutes a robot
@pytest.mark.parametrize("robot", sorted(robots()))
def test_every_robot_reaches_a_target_or_reports_why_not(robot):
    plant = rtmms.load(robot)
    if getattr(plant, "trim_options", None):
        plant = rtmms.load(robot, dt=fitting_dt(plant))
    motion = rtmms.trim(plant, **TARGETS.get(robot, {}))
    assert motion.is_reached == (motion.message == "")
    assert motion.is_steady == (motion.residual <= MAX_CLOSING_ERROR)
    if robot in TARGETS:
        assert motion.is_reached, motion.message
    assert len(motion.commands) * plant.dt == pytest.approx(motion.period_s)
