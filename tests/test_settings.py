"""Each setting that can change while a plant runs, in each composition: it acts as on the plant alone, or is refused.

The list is what `settable` has: a new robot or setting is in it by itself.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.contract import TRUTH
from rtmms.base.errors import ModelError
from rtmms.plant.levels import Levels
from rtmms.plant.loading import robots
from rtmms.sensing import Sensed
from rtmms.sensing.data_sheets import Imu
from rtmms.sensing.faults import Faulty
from rtmms.sensing.sensed import Estimated

QUICK = ("manta", "torpedo")
"""Robots of the default suite; the others take longer to compile."""
OPTIONAL_PARTS: Mapping[str, Mapping[str, Any]] = {"fish": {"flow": "shear"}, "eel": {"drive": "torque"}}
"""Parameters with which more of a robot's settings matter."""
IDLE = {
    "fish": {"acceleration_m_s2", "along_n_m", "kp_n_m", "kd_n_m_s", "gravity_m_s2"},
    "eel": {"bandwidth_rad_s", "gravity_m_s2"}, "continuous_eel": {"c3", "c4", "gravity_m_s2"},
    "moth": {"kp_n_m", "kd_n_m_s"},
}  # fmt: skip
"""Settings of a part that the robot as it is built here has not (another flow, drive or mooring), and the weight of
those that weigh what they displace."""


def build(robot: str) -> Any:
    return rtmms.load(robot, **OPTIONAL_PARTS.get(robot, {}))


def tunable() -> list[str]:
    """Robots that have settings; which, is known once they are built, so all but the quick ones are tried."""
    return [name for name in robots() if name not in ("urdf", "world", "fmu")]


CASES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in sorted(tunable())]
SENSORS = {"imu": Imu(rate_hz=50.0)}


def in_a_world(plant: Any) -> Any:
    return rtmms.World([("one", plant)])


COMPOSITIONS: Mapping[str, Callable[[Any], Any]] = {
    "sensors": lambda plant: Sensed(plant, SENSORS), "estimate": lambda plant: Estimated(plant, SENSORS),
    "faults": Faulty, "faults and sensors": lambda plant: Sensed(Faulty(plant), SENSORS), "levels": Levels,
    "world": in_a_world, "sensors in a world": lambda plant: in_a_world(Sensed(plant, SENSORS)),
}  # fmt: skip


def values_of(plant: Any) -> dict[str, Any]:
    result = plant.parameters
    if not dataclasses.is_dataclass(result):
        return dict(result)
    return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}


def another(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if "limit" in name:  # one that is met
        return 0.02 * value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 1.2 * value if value else 0.05
    return tuple(1.2 * item + 0.01 for item in value)


def command_of(plant: Any) -> np.ndarray:
    """Something that moves it in each direction: no two actuators cancel."""
    result = []
    for k, channel in enumerate(plant.actuators):
        span = min(abs(channel.upper or 0.0), abs(channel.lower or 0.0)) or 0.1
        result.append(channel.neutral + (0.2 + 0.1 * k / len(plant.actuators)) * span * (-1) ** k)
    return np.array(result)


def went(plant: Any, name: str, value: Any, prefix: str = "") -> np.ndarray:
    """The true position, attitude and twist after 30 steps with the setting, all from a reset."""
    plant.reset(0)
    command = command_of(plant)
    for k in range(40):
        if k == 10 and name:
            plant.set(**{name: value})
        plant.step(command)
    outputs = plant.observe()
    names = [item for item in ("position", "quaternion", "velocity", "joint_position") if prefix + item in outputs]
    return np.concatenate([np.ravel(outputs[prefix + name]) for name in names])


@pytest.mark.parametrize("robot", CASES)
def test_a_setting_acts_in_each_composition_as_on_the_plant_alone(robot: str) -> None:
    plant, settings = build(robot), list[str]()
    if hasattr(plant, "settable"):
        settings = [name for name in plant.settable if not isinstance(values_of(plant)[name], str)]
    if not settings:
        pytest.skip("it has no setting that can change while it runs")
    before = {name: values_of(plant)[name] for name in settings}
    plain = went(plant, "", None)
    alone, refused = {}, {}
    for name in settings:
        try:
            alone[name] = went(plant, name, another(name, before[name]))
        except ModelError as fault:  # it goes with an option that this robot is built without
            refused[name] = str(fault)
            continue
        assert values_of(plant)[name] == another(name, before[name])
        if name not in IDLE.get(robot, ()):
            assert not np.array_equal(alone[name], plain), f"{name} changes nothing"
        plant.set(**{name: before[name]})
    for kind, composed in COMPOSITIONS.items():
        try:
            whole = composed(build(robot))
        except ModelError:  # no cheaper variants, no pose to sense
            assert kind in ("levels", "sensors", "estimate", "faults and sensors", "sensors in a world")
            continue
        world, sensed = "world" in kind, "sensors" in kind or kind == "estimate"
        prefix = "one." * world + TRUTH * sensed
        for name in settings:
            assert ("one." * world + name) in whole.settable, f"{kind}: {name}"
            for key in (name, f"one.{name}") if world else (name,):
                if name in refused:
                    with pytest.raises(ModelError, match=re.escape(refused[name])):
                        whole.set(**{key: another(name, before[name])})
                    continue
                result = went(whole, key, another(name, before[name]), prefix)
                assert result.tobytes() == alone[name].tobytes(), f"{kind}: {key}"
                expected = whole.parameters["one"] if world else whole.parameters
                assert (getattr(expected, name) if dataclasses.is_dataclass(expected) else expected[name]) == another(
                    name, before[name]
                )
                whole.set(**{key: before[name]})
        with pytest.raises(ModelError, match="no_such_thing"):
            whole.set(no_such_thing=1.0)


@pytest.mark.parametrize("robots_of_it", [("manta", "torpedo"), pytest.param(
    ("manta", "torpedo", "eel", "continuous_eel"), marks=pytest.mark.full)])  # fmt: skip
def test_a_current_that_is_set_reaches_every_robot_of_a_world(robots_of_it: tuple[str, ...]) -> None:
    """As one that the robots are built in from the start, and as NAME.current_m_s of each."""
    current = (0.1, -0.2, 0.05)
    names = [f"r{k}" for k in range(len(robots_of_it))]
    members = list(zip(names, robots_of_it, strict=True))
    dt = 5e-3
    built, later, one_by_one = rtmms.World(members, dt=dt, current_m_s=current), rtmms.World(members, dt=dt), None
    one_by_one = rtmms.World(members, dt=dt)
    later.set(current_m_s=current)
    one_by_one.set(**{f"{name}.current_m_s": current for name in names})
    assert "current_m_s" in later.settable
    for world in (built, later, one_by_one):
        world.reset(0)
        for _ in range(20):
            world.step(command_of(world))
    for output, value in built.observe().items():
        assert value.tobytes() == later.observe()[output].tobytes() == one_by_one.observe()[output].tobytes(), output
    assert all(np.linalg.norm(later.observe()[f"{name}.velocity"]) > 0.0 for name in names)


def test_a_robot_in_the_water_that_cannot_change_its_current_is_named(tmp_path: Any) -> None:
    from tests.sensing.mover import Mover

    world = rtmms.World([("one", rtmms.load("torpedo")), ("two", Mover(dt=5e-3))])
    with pytest.raises(ModelError, match=r"current_m_s: .* robot 'two' \(Mover\) cannot; .*: one.current_m_s"):
        world.set(current_m_s=(0.1, 0.0, 0.0))
    assert "current_m_s" not in world.settable
    world.set(**{"one.current_m_s": (0.1, 0.0, 0.0)})
    assert world.robots["one"].parameters.current_x_m_s == 0.1


def test_an_event_of_a_scenario_names_that_robot_before_the_run() -> None:
    from rtmms.scenario.plant import check_setting
    from tests.sensing.mover import Mover

    world = rtmms.World([("one", rtmms.load("torpedo")), ("two", Mover(dt=5e-3))])
    with pytest.raises(ModelError, match=r"scenario:3: set: current_m_s: .* robot 'two'"):
        check_setting("current_m_s", [0.1, 0.0, 0.0], world, "scenario:3")
    check_setting("one.current_m_s", [0.1, 0.0, 0.0], world, "scenario:3")
    with pytest.raises(ModelError, match=r"scenario:3: .*curent_m_s"):
        check_setting("curent_m_s", [0.1, 0.0, 0.0], world, "scenario:3")


@pytest.mark.parametrize("kind", [composition for composition in COMPOSITIONS if composition != "levels"])
def test_a_plant_that_was_placed_stays_there_in_each_composition(kind: str) -> None:
    plant = rtmms.load("torpedo")
    plant.place(position=(3.0, -2.0, -1.0), velocity=(0.5, 0.0, 0.0))  # type: ignore[attr-defined]
    whole = COMPOSITIONS[kind](plant)
    outputs = whole.observe()
    name = next(
        item for item in outputs if item.endswith("position") and "joint" not in item and "estimate" not in item
    )
    np.testing.assert_array_equal(outputs[name], [3.0, -2.0, -1.0])
    estimates = [item for item in outputs if item.endswith("estimate.position")]
    assert bool(estimates) == (kind == "estimate")
    for estimate in estimates:
        np.testing.assert_allclose(outputs[estimate], [3.0, -2.0, -1.0], atol=1e-12)
    whole.reset(0)
    assert np.linalg.norm(whole.observe()[name]) < 3.0, "a reset puts it to where it begins by itself"


@pytest.mark.parametrize("robot", ["manta", "torpedo"])
def test_gravity_that_is_set_in_flight_reaches_the_estimate_sample_by_sample(robot: str) -> None:
    """A sample of the imu counts with the gravity of its time, however late it comes: the estimate is as near as
    without the change."""
    from rtmms.sensing import read_profile

    errors = []
    for gravity in (None, 3.0):
        plant = rtmms.load(robot, dt=5e-3)
        plant = Estimated(plant, read_profile("typical", plant))
        plant.reset(1)
        neutral = np.array([channel.neutral for channel in plant.actuators])
        for k in range(1400):
            if k == 700 and gravity is not None:
                plant.set(gravity_m_s2=gravity)
            plant.step(neutral)
        outputs = plant.observe()
        errors.append(float(np.linalg.norm(outputs["estimate.position"] - outputs["truth.position"])))
        assert not plant.estimator.estimate().lost
    assert errors[1] < errors[0] + 0.02


def test_sensors_begin_anew_where_a_plant_is_placed() -> None:
    plant = Estimated(rtmms.load("torpedo"), {"imu": Imu(rate_hz=200.0)})
    neutral = np.array([channel.neutral for channel in plant.actuators])
    for _ in range(20):
        plant.step(neutral)
    plant.place(position=(3.0, -2.0, -1.0), velocity=(1.0, 0.0, 0.0))
    for _ in range(20):
        plant.step(neutral)
        assert np.linalg.norm(plant.observe()["imu.accel"]) < 20.0, "the jump is no acceleration"
    outputs = plant.observe()
    np.testing.assert_allclose(outputs["estimate.position"], outputs["truth.position"], atol=0.02)
    blob = plant.snapshot()
    plant.step(neutral)
    plant.restore(blob)
    assert plant.snapshot() == blob
