"""Several robots on one clock: each has the bits that it has alone, by both ways of stepping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.jit import COMPILED
from rtmms.model import Body, Mechanism
from rtmms.plant.protocol import Plant
from rtmms.sensing.faults import Faulty
from tests.wire.bench import Toy

TURNED = {"position": (0.0, 1.0, -1.0), "heading_deg": 90.0}


@pytest.fixture(scope="module")
def world() -> rtmms.World:
    return rtmms.World([("one", "manta"), ("two", "manta", TURNED)])


def commands(steps: int) -> Any:
    return 0.3 * np.sin(0.02 * np.arange(steps)[:, None] + np.arange(8))


def alone(which: int) -> Plant:
    plant: Any = rtmms.load("manta")
    if which:
        half = np.radians(45.0)
        plant.initial_pose = {"position": TURNED["position"], "quaternion": (np.cos(half), 0.0, 0.0, np.sin(half))}
        plant.reset()
    return plant  # type: ignore[no-any-return]


def same(world: Plant, name: str, plant: Plant) -> bool:
    outputs = world.observe()
    return all(np.array_equal(outputs[f"{name}.{output}"], value) for output, value in plant.observe().items())


def test_channels_are_called_after_their_robot(world: rtmms.World) -> None:
    rods = ("left.front", "left.back", "right.front", "right.back")
    assert [c.name for c in world.actuators] == [f"{name}.{rod}" for name in ("one", "two") for rod in rods]
    assert world.actuators[5].lower == -world.actuators[5].upper  # type: ignore[operator]
    assert set(world.observe()) == {channel.name for channel in world.outputs}
    assert {item.first for item in world.coupled} == {0, 2, 4, 6}


def test_each_has_the_bits_that_it_has_alone(world: rtmms.World) -> None:
    world.reset()
    first, second = alone(0), alone(1)
    for command in commands(60):
        world.step(command)
        first.step(command[:4])
        second.step(command[4:])
    assert same(world, "one", first)
    assert same(world, "two", second)
    assert world.observe()["two.position"][1] > 0.9


@pytest.mark.skipif(not COMPILED, reason="plain Python has no entries")
def test_the_compiled_step_and_outputs_are_the_same(world: rtmms.World) -> None:
    from ctypes import CFUNCTYPE, c_double, c_int64

    kind = CFUNCTYPE(c_int64, *[c_int64] * 12, c_double)
    world.reset()
    account = world.compiled_outputs()
    assert account is not None
    for command in commands(20):
        entry = world.compiled_step()
        assert entry is not None
        (c_double * 8).from_address(entry.command)[:] = list(command)
        world.finish_compiled_step(kind(entry.function)(*entry.arguments, *[0] * (12 - len(entry.arguments)), 0.0))
    observed, after = world.observe(), world.snapshot()
    kind(account.function)(*account.arguments, *[0] * (12 - len(account.arguments)), 0.0)
    place, count = account.numbers["two.velocity"]
    assert list((c_double * count).from_address(place)) == observed["two.velocity"].tolist()
    world.reset()
    for command in commands(20):
        world.step(command)
    assert world.snapshot() == after


def test_a_snapshot_goes_on_with_the_same_bits(world: rtmms.World) -> None:
    world.reset()
    world.step(np.full(8, 0.2))
    blob = world.snapshot()
    world.step(np.full(8, 0.1))
    after = world.snapshot()
    world.restore(blob)
    world.step(np.full(8, 0.1))
    assert world.snapshot() == after
    with pytest.raises(rtmms.ModelError, match="restore"):
        world.restore(blob[:-1] + bytes([blob[-1] ^ 1]))
    assert world.snapshot() == after
    with pytest.raises(rtmms.ModelError, match="world: restore"):
        rtmms.World([("one", Toy()), ("two", Toy())]).restore(blob)


def test_a_robot_is_where_it_was_put_after_every_reset(world: rtmms.World) -> None:
    for _ in range(2):
        world.reset()
        assert world.observe()["two.position"].tolist() == [0.0, 1.0, -1.0]
        world.step(np.full(8, 0.3))


def test_sensors_of_each_have_a_seed_of_their_own() -> None:
    world = rtmms.World([("one", "manta", {"profile": "typical"}), ("two", "manta", {"profile": "typical"})])
    world.reset(seed=4)
    for _ in range(20):
        world.step(np.zeros(8))
    outputs = world.observe()
    message = [
        c.name.removeprefix("one.") for c in world.outputs if c.name.startswith("one.") and "truth" not in c.name
    ]
    assert not all(np.array_equal(outputs[f"one.{name}"], outputs[f"two.{name}"], equal_nan=True) for name in message)
    assert np.array_equal(outputs["one.truth.velocity"], outputs["two.truth.velocity"])
    again = rtmms.load("world", robots=world.described(), dt=world.dt)
    again.reset(seed=4)
    for _ in range(20):
        again.step(np.zeros(8))
    assert again.snapshot() == world.snapshot()
    assert "fault.two.imu" in world.settable


def test_what_is_set_of_one_is_its_own_and_of_all_is_shared(world: rtmms.World) -> None:
    world.reset()
    world.set(**{"one.body_drag_x": 0.5}) if "one.body_drag_x" in world.settable else None
    world.set(current_m_s=(0.1, 0.0, 0.0))
    result: Any = world.parameters
    assert result["one"].current_m_s == result["two"].current_m_s == (0.1, 0.0, 0.0)
    world.set(**{"two.current_m_s": (0.0, 0.2, 0.0)})
    assert world.parameters["one"].current_m_s == (0.1, 0.0, 0.0)
    with pytest.raises(rtmms.ModelError):
        world.set(**{"one.current_m_s": (0.3, 0.0, 0.0), "two.current_m_s": (float("nan"), 0.0, 0.0)})
    assert world.parameters["one"].current_m_s == (0.1, 0.0, 0.0)
    with pytest.raises(rtmms.UnknownNameError, match=r"did you mean .*current_m_s"):
        world.set(**{"three.current_m_s": (0.0, 0.0, 0.0)})
    world.set(current_m_s=(0.0, 0.0, 0.0))


class Failing(Toy):
    def step(self, command: Any) -> None:
        raise rtmms.DivergedError(0.1, "speed", {})


def test_a_tree_without_parameters_stands_beside_robots_that_have_some() -> None:
    buoy = rtmms.TreePlant(Mechanism("buoy", [Body("hull", 1.0, inertia=np.eye(3))]), medium="water")
    assert buoy.parameters is None
    world = rtmms.World([("one", "torpedo"), ("two", buoy)])
    world.set(**{"one.current_x_m_s": 0.1})
    with pytest.raises(rtmms.ModelError, match=r"two.*one\.current_m_s"):
        world.set(current_m_s=(0.1, 0.0, 0.0))


def test_the_one_that_diverges_is_named() -> None:
    world = rtmms.World([("good", Toy()), ("bad", Failing())])
    with pytest.raises(rtmms.DivergedError, match="bad: speed"):
        world.step(np.zeros(8))


TOY = Toy()


@pytest.mark.parametrize(
    ("robots", "message"),
    [
        ([("one", TOY), ("two", TOY)], "robot 'two': expected a plant object of its own, got the one of 'one'"),
        ([("one", TOY), ("two", Faulty(TOY))], "robot 'two': expected a plant object of its own, got the one of 'one'"),
        ([("one", "manta"), ("one", "eel")], "two robots have the name 'one'"),
        ([("one", "mante")], "robot 'one': unknown robot 'mante'; did you mean manta"),
        ([("a.b", "manta")], "expected a letter, then letters"),
        ([("truth", "manta")], "name of a robot"),
        ([], "expected 1 to 64 robots, got 0"),
        ("manta", r"expected \[\(name, robot\)"),
        ([("one", Toy(), {"positoin": (0, 0, 0)})], "unknown key of a robot 'positoin'; did you mean position"),
        ([("one", Toy(), {"position": (0, 0)})], "position: expected finite numbers of shape"),
        ([("one", Toy(), {"position": (0, 0, 0)})], "cannot be placed"),
        ([("one", Toy(), {"parameters": {"a": 1}})], ": parameters: expected none"),
        ([("one", Toy(), {"heading_deg": "north"})], "heading_deg: expected a finite number"),
        ([{"name": "one"}], "a robot needs a robot"),
        ([3], r"expected \(name, robot\)"),
    ],
)
def test_what_cannot_be_is_reported(robots: Any, message: str) -> None:
    with pytest.raises(rtmms.ModelError, match=message):
        rtmms.World(robots)


def test_robots_of_other_steps_get_the_shortest() -> None:
    slow = Toy()
    slow.dt = 5e-3
    with pytest.raises(rtmms.ModelError, match=r"'two' has steps of 0\.005 s, expected 0\.001 s"):
        rtmms.World([("one", Toy()), ("two", slow)])


# --- robots that sense one another ------------------------------------------------------------------------------------


def watched(**sees: Any) -> rtmms.World:
    """A follower that stands 4 m behind, 3 m to the right, and 2 m below of one that looks along +y; both of it."""
    places = {"leader": ((1.0, 2.0, -1.0), 90.0), "follower": ((4.0, -2.0, -3.0), 0.0)}
    return rtmms.World([
        (name, "manta", {"position": place, "heading_deg": heading, "parameters": {"chains": 16},
                         **({"sees": sees[name]} if name in sees else {})})
        for name, (place, heading) in places.items()
    ])  # fmt: skip


def test_a_robot_senses_another_in_its_own_axes() -> None:
    world = watched(leader=["follower"], follower=["leader"])
    outputs = world.observe()
    assert outputs["leader.follower.position"] == pytest.approx([-4.0, -3.0, -2.0], abs=1e-12)
    assert outputs["leader.follower.range"] == pytest.approx(np.sqrt(29.0))
    azimuth, elevation = outputs["leader.follower.bearing"]
    assert (azimuth, elevation) == pytest.approx((np.arctan2(-3.0, -4.0), np.arctan2(-2.0, 5.0)))
    assert outputs["follower.leader.position"] == pytest.approx([-3.0, 4.0, 2.0], abs=1e-12)
    assert outputs["leader.follower.valid"] == 1.0
    assert [c.unit for c in world.outputs if c.name.endswith("follower.range")] == ["m"]
    for command in commands(150):
        world.step(command)
    outputs = world.observe()
    assert outputs["leader.follower.time"] == pytest.approx(0.1)  # at 10 Hz


def test_what_is_reported_comes_late_and_wrong_by_the_sensors_errors() -> None:
    parts = {"rate_hz": 50.0, "latency_s": 0.1, "range_noise_m": 0.2, "bearing_noise_rad": 0.05}
    world = watched(leader={"follower": parts})
    assert world.observe()["leader.follower.time"] == -1.0
    result = []
    for _ in range(4000):
        world.step(np.zeros(8))
        outputs = world.observe()
        result.append((float(outputs["leader.follower.range"]), *outputs["leader.follower.bearing"].tolist()))
    assert outputs["leader.follower.time"] == pytest.approx(3.9)
    samples = np.array(result[200::20])
    there, here = outputs["follower.position"], outputs["leader.position"]
    assert samples[:, 0].mean() == pytest.approx(np.linalg.norm(there - here), abs=0.08)
    assert samples[:, 0].std() == pytest.approx(0.2, rel=0.2)
    assert samples[:, 2].std() == pytest.approx(0.05, rel=0.2)


def test_what_is_out_of_range_is_not_valid() -> None:
    world = watched(leader={"follower": {"limit_m": 5.0}}, follower={"leader": {"limit_m": 6.0}})
    outputs = world.observe()
    assert outputs["leader.follower.valid"] == 0.0
    assert outputs["follower.leader.valid"] == 1.0


def test_sights_are_the_same_again_and_by_both_ways_of_stepping() -> None:
    sees = {"leader": {"follower": {"rate_hz": 100.0, "range_noise_m": 0.1, "latency_s": 0.004, "dropout": 0.2}}}
    world = watched(**sees)
    world.reset(seed=5)
    for command in commands(40):
        world.step(command)
    blob, observed = world.snapshot(), world.observe()
    assert world.compiled_outputs() is None
    again = rtmms.load("world", robots=world.described(), dt=world.dt)
    again.reset(seed=5)
    for command in commands(40):
        again.step(command)
    assert again.snapshot() == blob
    world.step(np.zeros(8))
    world.restore(blob)
    assert world.snapshot() == blob
    assert all(np.array_equal(value, world.observe()[name]) for name, value in observed.items())
    without = watched()
    without.reset(seed=5)
    for command in commands(40):
        without.step(command)
    assert all(np.array_equal(value, observed[name]) for name, value in without.observe().items())
    if COMPILED:
        from ctypes import CFUNCTYPE, c_double, c_int64

        kind = CFUNCTYPE(c_int64, *[c_int64] * 12, c_double)
        world.reset(seed=5)
        for command in commands(40):
            entry = world.compiled_step()
            assert entry is not None
            (c_double * 8).from_address(entry.command)[:] = list(command)
            world.finish_compiled_step(kind(entry.function)(*entry.arguments, *[0] * (12 - len(entry.arguments)), 0.0))
        assert world.snapshot() == blob


def test_a_typical_robot_has_typical_sights_and_all_share_the_flow() -> None:
    world = rtmms.World(
        [("one", "manta", {"profile": "typical", "sees": ["two"]}), ("two", "eel", {"position": (0.0, 3.0, -1.0)})],
        current_m_s=(0.2, 0.0, 0.0),
    )
    (sensor,) = world.described()[0]["sees"].values()
    assert sensor["range_noise_m"] == 0.05
    for _ in range(400):
        world.step(np.zeros(len(world.actuators)))
    outputs = world.observe()
    assert outputs["one.two.valid"] == 1.0
    drift = [outputs["one.truth.velocity"][0], outputs["two.velocity"][0]]
    assert all(0.0 < speed < 0.2 for speed in drift), "both are carried along by the same current"
    world.set(current_m_s=(0.0, 0.1, 0.0))
    result: Any = world.parameters
    assert result["one"].current_m_s == (0.0, 0.1, 0.0)
    assert (result["two"].current_x_m_s, result["two"].current_y_m_s) == (0.0, 0.1)
    with pytest.raises(rtmms.ModelError, match="current_m_s: expected finite numbers"):
        rtmms.World([("one", "eel")], current_m_s=(0.2, 0.0))


@pytest.mark.full
def test_a_current_reaches_the_robots_in_water_and_there_must_be_one() -> None:
    world = rtmms.World([("air", "quadrotor"), ("one", "torpedo")], current_m_s=(0.2, 0.0, 0.0))
    assert world.parameters["one"].current_x_m_s == 0.2
    world.set(current_m_s=(0.1, 0.0, 0.0))
    assert world.parameters["one"].current_x_m_s == 0.1
    with pytest.raises(rtmms.ModelError, match="current_m_s: expected a robot in water, got none"):
        rtmms.World([("air", "quadrotor")], current_m_s=(0.2, 0.0, 0.0))


@pytest.mark.parametrize("second", ["bluerov2", "torpedo"])
def test_a_component_of_the_current_is_that_of_all_or_of_none(second: str) -> None:
    """A manta has the current as one vector, others by its components."""
    world = rtmms.World([("one", "manta"), ("two", second)])
    world.set(current_m_s=(0.2, 0.1, 0.0))
    assert "current_x_m_s" not in (world.settable or ())
    with pytest.raises(
        rtmms.ModelError, match=r"current_x_m_s: .* robot 'one' .*; current_m_s sets the current of all"
    ):
        world.set(current_x_m_s=0.4)
    result: Any = world.parameters
    assert result["one"].current_m_s == (0.2, 0.1, 0.0)
    assert result["two"].current_x_m_s == 0.2
    alike = rtmms.World([("one", second), ("two", second)], current_m_s="0.2,0.1,0")
    alike.set(current_x_m_s=0.4)
    values: Any = alike.parameters
    assert {(value.current_x_m_s, value.current_y_m_s) for value in values.values()} == {(0.4, 0.1)}


@pytest.mark.parametrize(
    ("sees", "message"),
    [
        ({"leader": ["folower"]}, "robot 'leader': sees: unknown robot 'folower'; did you mean follower"),
        ({"leader": ["leader"]}, "robot 'leader': sees: unknown robot 'leader'"),
        ({"leader": "follower"}, "sees: expected names of robots, or a table of them"),
        ({"leader": {"follower": 3}}, "sees: follower: expected a table"),
        ({"leader": {"follower": {"range_nois": 1.0}}}, "did you mean range_noise_m"),
        ({"leader": {"follower": {"rate_hz": -1.0}}}, "rate_hz: expected"),
        (
            {"leader": {"follower": {"position_m": [0.5, 0.0, 0.0]}}},
            "position_m: a robot measures .* from its own origin",
        ),
        ({"leader": {"follower": {"rotation_deg": [0, 0, 90]}}}, "rotation_deg: a robot measures another"),
    ],
)
def test_sights_that_cannot_be_are_reported(sees: Any, message: str) -> None:
    with pytest.raises(rtmms.ModelError, match=message):
        watched(**sees)
