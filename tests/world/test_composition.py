"""Plants made of plants: forks of any composition step with the bits of the composition itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.jit import COMPILED
from rtmms.plant.description import describe_plant, present_values
from rtmms.sensing import read_profile, seen_through
from rtmms.sensing.faults import Faulty

STEPS = 40
EVERY = 8
pytestmark = pytest.mark.skipif(not COMPILED, reason="forks are compiled")


def sensed(plant: Any) -> Any:
    return seen_through(plant, read_profile("typical", plant))


def faulty(plant: Any) -> Any:
    plant = Faulty(plant)
    names = [channel.name for channel in plant.actuators]
    plant.set(**{f"fault.{names[0]}": "delay=0.005", f"fault.{names[1]}": "stuck"})
    return plant


COMPOSITIONS = {
    "sensors": lambda: sensed(rtmms.load("quadrotor")),
    "sensors of a plant with compiled outputs": lambda: sensed(rtmms.load("manta")),
    "faults": lambda: faulty(rtmms.load("quadrotor")),
    "sensors around faults": lambda: sensed(faulty(rtmms.load("manta"))),
    "world": lambda: rtmms.World([("one", "quadrotor"), ("two", "manta")], dt=1e-3),
    "world of sensed robots": lambda: rtmms.World(
        [("one", "manta", {"profile": "typical"}), ("two", "quadrotor", {"profile": "typical"})], dt=1e-3
    ),
}


@pytest.fixture(scope="module", params=COMPOSITIONS)
def plant(request: pytest.FixtureRequest) -> Any:
    return COMPOSITIONS[request.param]()


def commands_of(plant: Any, runs: int) -> Any:
    low, high = (np.array([getattr(actuator, end) for actuator in plant.actuators]) for end in ("lower", "upper"))
    return low + np.random.default_rng(3).uniform(0.4, 0.6, (runs, STEPS, len(low))) * (high - low)


def by_hand(plant: Any, start: bytes, commands: Any) -> tuple[dict[str, Any], bytes]:
    plant.restore(start)
    observed: dict[str, list[Any]] = {channel.name: [] for channel in plant.outputs}
    for k, command in enumerate(commands):
        plant.step(command)
        if (k + 1) % EVERY == 0:
            for name, value in plant.observe().items():
                observed[name].append(value)
    return {name: np.array(values) for name, values in observed.items()}, plant.snapshot()


def starts_of(plant: Any, runs: int) -> list[bytes]:
    """States on their way, each with a seed of its own."""
    result = []
    for seed in range(runs):
        plant.reset(seed)
        for command in commands_of(plant, 1)[0, : 5 + seed]:
            plant.step(command)
        result.append(plant.snapshot())
    return result


@pytest.mark.parametrize("threads", [1, 2])
def test_runs_on_forks_have_the_bits_of_single_runs_with_their_seeds(plant: Any, threads: int) -> None:
    assert plant.fork() is not None
    starts, commands = starts_of(plant, 3), commands_of(plant, 3)
    before = plant.snapshot()
    names = tuple(channel.name for channel in plant.outputs)
    runs = rtmms.rollout(plant, commands, initial=starts, outputs=names, every=EVERY, threads=threads)
    assert plant.snapshot() == before
    assert not runs.status.any()
    for k, start in enumerate(starts):
        observed, end = by_hand(plant, start, commands[k])
        assert runs.final[k] == end
        for name in names:
            np.testing.assert_array_equal(runs.outputs[name][k], observed[name], err_msg=name)
    other = [name for name in names if not np.array_equal(runs.outputs[name][0], runs.outputs[name][1])]
    assert other  # the runs differ: the comparison is not of constants


def test_a_state_is_put_back_to_the_bit(plant: Any) -> None:
    (start,) = starts_of(plant, 1)
    commands = commands_of(plant, 1)[0]
    plant.restore(start)
    state, steps = plant.present()
    expected, end = by_hand(plant, start, commands)
    plant.put(state, steps)
    assert plant.snapshot() == start
    observed, result = by_hand(plant, plant.snapshot(), commands)
    assert result == end
    for name, values in expected.items():
        np.testing.assert_array_equal(observed[name], values, err_msg=name)


def test_a_damaged_snapshot_changes_nothing(plant: Any) -> None:
    (start,) = starts_of(plant, 1)
    plant.step(commands_of(plant, 1)[0, 0])
    before = plant.snapshot()
    for at in np.linspace(0, len(start) - 1, 40).astype(int):
        broken = bytearray(start)
        broken[at] ^= 0x20
        with pytest.raises(rtmms.ModelError):
            plant.restore(bytes(broken))
        assert plant.snapshot() == before


@pytest.mark.parametrize("kind", ["sensors", "faults", "world"])
def test_a_run_that_fails_ends_where_a_single_run_ends(kind: str) -> None:
    """The state after a failed step, and the reason, are those of stepping by hand."""
    plant: Any = COMPOSITIONS[kind]()
    plant.reset(1)
    thrust = np.array([channel.upper or 0.0 for channel in plant.actuators])
    spin = {"quaternion": (1.0, 0.0, 0.0, 0.0), "angular_velocity": (0.0, 0.0, 3e4)}
    inner = plant.robots["one"] if kind == "world" else plant
    while not hasattr(inner, "place"):
        inner = inner.inner[0]
    inner.place(**spin)
    start = plant.snapshot()
    commands = np.repeat(thrust[None, None, :], 400, axis=1)
    runs = rtmms.rollout(plant, commands, initial=start, outputs=())
    plant.restore(start)
    reason = ""
    try:
        for command in commands[0]:
            plant.step(command)
    except rtmms.DivergedError as failure:
        reason = str(failure)
    assert runs.status[0] != 0
    assert runs.final[0] == plant.snapshot()
    assert runs.reasons[0] == reason != ""


def test_parameters_of_runs_reach_the_sensors() -> None:
    """Gravity is a parameter of the plant that an accelerometer measures."""
    plant: Any = sensed(rtmms.load("quadrotor"))
    plant.reset(2)
    start = plant.snapshot()
    commands, gravity = commands_of(plant, 1), np.array([3.0, 9.0])
    name = "gravity_m_s2"
    runs = rtmms.rollout(
        plant, commands, initial=start, outputs=("imu.accel",), every=EVERY, parameters={name: gravity}
    )
    for k, value in enumerate(gravity):
        current: Any = sensed(rtmms.load("quadrotor", **{name: float(value)}))
        current.reset(2)
        observed, _ = by_hand(current, current.snapshot(), commands[0])
        np.testing.assert_array_equal(runs.outputs["imu.accel"][k], observed["imu.accel"])


VARIED = ("gravity_m_s2", "drag_coefficient", "current_m_s")


def test_each_kind_of_parameter_differs_between_runs(plant: Any) -> None:
    """Numbers and vectors; of the plant, of one robot of a world, and of all robots of it."""
    plant.reset()
    about, before, commands = describe_plant(plant), plant.snapshot(), commands_of(plant, 1)[:, :3]
    names = [name for name in about.settable or () if name.rpartition(".")[2] in VARIED]
    assert names
    for name in names:
        default = present_values(about, [name])
        size = 3 if name.endswith("current_m_s") else 1
        value = 1.5 if size == 1 else np.array([0.1, -0.2, 0.0])
        values = np.array([value, 2.0 * value])
        runs = rtmms.rollout(plant, commands, outputs=(), parameters={name: values})
        assert plant.snapshot() == before
        assert str(present_values(about, [name])) == str(default)
        for k, item in enumerate(values.tolist()):
            plant.set(**{name: item})  # from the same state: a sensor has sampled in it
            for command in commands[0]:
                plant.step(command)
            assert plant.snapshot() == runs.final[k], name
            plant.set(**default)
            plant.restore(before)


def test_a_fault_is_no_number_that_differs_between_runs(plant: Any) -> None:
    faults = [name for name in describe_plant(plant).settable or () if name.startswith("fault.")]
    for name in faults[:3]:
        with pytest.raises(rtmms.ModelError, match="got a fault or a level, which has no"):
            rtmms.rollout(plant, commands_of(plant, 1), outputs=(), parameters={name: np.array([1.0, 2.0])})
