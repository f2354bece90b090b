"""Many runs side by side against stepping by hand, bit by bit."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis import rollouts
from rtmms.plant.validation import apply_limits
from rtmms.robots.manta.rods import limit_commands
from tests.pendulum import Pendulum

RUNS = 5
STEPS = 60
EVERY = 15


@pytest.fixture(scope="module")
def quadrotor() -> Any:
    return rtmms.load("quadrotor")


@pytest.fixture(scope="module")
def manta() -> Any:
    return rtmms.load("manta")


def commands_of(plant: Any, runs: int = RUNS, steps: int = STEPS) -> np.ndarray:
    low, high = (np.array([getattr(actuator, end) for actuator in plant.actuators]) for end in ("lower", "upper"))
    random = np.random.default_rng(5).uniform(0.3, 0.6, (runs, steps, len(low)))
    return low + random * (high - low)


def by_hand(plant: Any, start: bytes, commands: np.ndarray, names: tuple[str, ...]) -> tuple[dict[str, Any], bytes]:
    plant.restore(start)
    observed: dict[str, Any] = {name: [] for name in names}
    for k, command in enumerate(commands):
        plant.step(command)
        if (k + 1) % EVERY == 0:
            outputs = plant.observe()
            for name in names:
                observed[name].append(outputs[name])
    return observed, plant.snapshot()


@pytest.mark.parametrize("robot", ["quadrotor", "manta"])
def test_a_rollout_has_the_bits_of_stepping_by_hand(robot: str, request: pytest.FixtureRequest) -> None:
    """Outputs that stand in the state and others, from a state on its way, for each number of threads."""
    plant = request.getfixturevalue(robot)
    names = tuple(channel.name for channel in plant.outputs)
    commands = commands_of(plant)
    plant.reset()
    for command in commands[0]:
        plant.step(command)
    start = plant.snapshot()
    result = [rtmms.rollout(plant, commands, outputs=names, every=EVERY, threads=k) for k in (1, 2, 4)]
    assert plant.snapshot() == start
    for runs in result:
        assert runs.status.tolist() == [0] * RUNS
        assert runs.steps.tolist() == [STEPS] * RUNS
    for run in range(RUNS):
        observed, final = by_hand(plant, start, commands[run], names)
        for runs in result:
            assert runs.final[run] == final
            for name in names:
                np.testing.assert_array_equal(runs.outputs[name][run], observed[name])
    plant.restore(start)


@pytest.mark.parametrize("robot", ["eel", "fish", "snakeboard"])
def test_no_output_of_a_tree_is_asked_for_in_python(robot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torques, energies and works, those of an audit and of contacts too, have the bits of `observe` at each step."""
    plant = rtmms.load(robot)
    names = tuple(channel.name for channel in plant.outputs)
    commands = np.zeros((1, 20, len(plant.actuators)))
    commands[0] = 0.1 * np.sin(0.3 * np.arange(20))[:, None]
    expected = []
    for command in commands[0]:
        plant.step(command)
        expected.append(plant.observe())
    plant.reset()
    with monkeypatch.context() as patched:
        patched.setattr(type(plant), "observe", None)
        runs = rtmms.rollout(plant, commands, outputs=names, threads=1)
    for name in names:
        assert np.array_equal(runs.outputs[name][0], [row[name] for row in expected]), name


def test_outputs_of_tendons_and_of_bodies_are_computed_by_compiled_code() -> None:
    m = rtmms.model
    links = [m.Body(name, 1.0, inertia=0.01 * np.eye(3)) for name in ("base", "tip")]
    tree = m.Mechanism("finger", links, [m.Joint("knuckle", "base", "tip", stiffness=1.0)], base="fixed")
    ropes = [m.Tendon(name, [("base", (0, y, 0)), ("tip", (0.1, y, 0))]) for name, y in (("a", 0.02), ("b", -0.02))]
    outputs = ["tendon_length", "tendon_rate", "tendon_tension", "power", "work", "tip.position", "joint_torque"]
    plant = rtmms.TreePlant(tree, 1e-3, actuators=ropes, outputs=outputs)
    commands = np.linspace(0.0, 3.0, 30)[:, None] * np.array([1.0, 0.5])
    runs = rtmms.rollout(plant, commands[None], outputs=outputs, threads=1)
    for k, command in enumerate(commands):
        plant.step(command)
        for name, value in plant.observe().items():
            assert np.array_equal(runs.outputs[name][0, k], value), name


def test_an_axis_of_length_1_stands_for_all_and_starts_may_differ(quadrotor: Any) -> None:
    quadrotor.reset()
    hover = np.full(len(quadrotor.actuators), 468.0)
    quadrotor.step(hover)
    starts = [quadrotor.snapshot()]
    quadrotor.step(0.9 * hover)
    starts.append(quadrotor.snapshot())
    item = rtmms.rollout(quadrotor, hover.reshape(1, 1, -1), initial=starts)
    assert item.outputs["position"].shape == (2, 1, 3)
    same = rtmms.rollout(quadrotor, np.tile(hover, (2, 1, 1)), initial=starts)
    assert item.final == same.final
    assert item.final[0] != item.final[1]
    assert rtmms.rollout(quadrotor, hover.reshape(1, 1, -1), initial=starts[1]).final == [item.final[1]]


def test_arrays_that_would_give_wrong_numbers_without_a_word_are_refused(quadrotor: Any) -> None:
    good = np.full((2, 4, 4), 400.0)
    before = quadrotor.snapshot()
    wrong: list[Any] = [
        good.astype(object), good.astype(str), good + 1j, good > 0.0, np.ma.array(good, mask=True),
        good.astype("M8[s]"), np.broadcast_to(np.float64(400.0), (1 << 20, 1 << 20, 4)), None, {},
    ]  # fmt: skip
    for commands in wrong:
        with pytest.raises(rtmms.ArgumentError, match="rollout: commands: "):
            rtmms.rollout(quadrotor, commands)
    shape, few = (2, 4, 3), np.zeros(64)
    outs: list[Any] = [
        np.lib.stride_tricks.as_strided(few, shape, (8, 8, 8)), np.zeros(shape, int), np.zeros(shape, object), None,
        np.zeros(shape, np.float32), np.broadcast_to(0.0, shape), good[:, :, :3], np.zeros((2, 4)), [0.0],
    ]  # fmt: skip
    for out in outs:
        with pytest.raises(rtmms.ArgumentError, match="rollout: out: position: expected"):
            rtmms.rollout(quadrotor, good, out={"position": out})
    assert np.array_equal(*(rtmms.rollout(quadrotor, good, every=count).time for count in (2, np.int64(2))))
    for every in (0, 1 << 70, 1.0, np.int64(0), np.float64(2.0)):
        with pytest.raises(rtmms.ArgumentError, match="rollout: every: expected a whole number"):
            rtmms.rollout(quadrotor, good, every=every)
    assert (good == 400.0).all()
    assert not few.any()
    assert quadrotor.snapshot() == before
    apart = np.zeros((2, 4, 6))[:, :, ::2]  # strided, each number for itself
    assert rtmms.rollout(quadrotor, good, out={"position": apart}).outputs["position"] is apart
    assert apart[:, -1, 2].all()


def test_outputs_go_where_they_are_asked_to_and_time_is_the_samples(quadrotor: Any) -> None:
    quadrotor.reset()
    mine = np.zeros((RUNS, STEPS // EVERY, 3))
    runs = rtmms.rollout(quadrotor, commands_of(quadrotor), every=EVERY, out={"position": mine})
    assert runs.outputs["position"] is mine
    assert np.isfinite(mine).all()
    assert mine.any()
    np.testing.assert_allclose(runs.time, quadrotor.dt * np.arange(EVERY, STEPS + 1, EVERY))


def test_parameters_differ_between_runs(manta: Any) -> None:
    manta.reset()
    commands, drag = commands_of(manta, 3, 30), np.array([0.5, 1.5, 0.5])
    commands[:] = commands[0]
    before, default = manta.snapshot(), manta.parameters.drag_coefficient
    runs = rtmms.rollout(manta, commands, parameters={"drag_coefficient": drag})
    assert manta.snapshot() == before
    assert manta.parameters.drag_coefficient == default
    ends = []
    for value in drag:
        manta.reset()
        manta.set(drag_coefficient=value)
        for command in commands[0]:
            manta.step(command)
        ends.append(manta.snapshot())
    manta.set(drag_coefficient=default)
    manta.reset()
    assert runs.final == ends
    assert runs.final[0] == runs.final[2] != runs.final[1]


@pytest.mark.parametrize(("robot", "name"), [("eel", "bandwidth_rad_s"), ("manta", "gravity_m_s2")])
def test_a_pool_that_is_kept_goes_by_the_parameters_of_now(robot: str, name: str) -> None:
    """Its forks are kept from call to call: what they have of the model must be the plant's."""
    plant: Any = rtmms.load(robot)
    default = getattr(plant.parameters, name)
    commands = commands_of(plant, 2, 20)
    with rtmms.Rollout(plant, threads=1) as pool:
        first = pool(commands)
        fork = pool.pool.forks[0]
        try:
            plant.set(**{name: 0.5 * default})
            plant.reset()
            other = pool(commands)
            fresh = rtmms.rollout(plant, commands)
        finally:
            plant.set(**{name: default})
            plant.reset()
        again = pool(commands)
    assert other.final == fresh.final
    assert other.outputs["position"].tobytes() == fresh.outputs["position"].tobytes()
    assert other.outputs["position"].tobytes() != first.outputs["position"].tobytes()
    assert again.final == first.final
    assert pool.pool.forks[0] is fork


def test_a_run_that_diverges_ends_alone(quadrotor: Any) -> None:
    """One begins beyond what can be squared; the others have the bits of a call without it."""
    quadrotor.reset()
    calm_start = quadrotor.snapshot()
    state, steps = quadrotor.present()
    state[quadrotor.fork().places["velocity"][0]] = 1e200
    quadrotor.put(state, steps)
    wild_start = quadrotor.snapshot()
    quadrotor.restore(calm_start)
    commands = commands_of(quadrotor, 3)
    calm = rtmms.rollout(quadrotor, commands, every=EVERY, threads=1)
    wild = rtmms.rollout(quadrotor, commands, [calm_start, wild_start, calm_start], every=EVERY, threads=1)
    assert calm.status.tolist() == [0, 0, 0]
    assert [int(item) != 0 for item in wild.status] == [False, True, False]
    assert "diverged" in wild.reason(1)
    assert wild.reason(0) == ""
    assert wild.steps[1] < STEPS
    assert np.isnan(wild.outputs["position"][1, -1]).all()
    np.testing.assert_array_equal(wild.outputs["position"][[0, 2]], calm.outputs["position"][[0, 2]])
    assert [wild.final[k] for k in (0, 2)] == [calm.final[k] for k in (0, 2)]


def test_plants_in_plain_python_go_through_the_same_call() -> None:
    plant = Pendulum()
    commands = np.random.default_rng(1).uniform(-1, 1, (3, 20, 2))
    start = plant.snapshot()
    runs = rtmms.rollout(plant, commands, outputs=("angle",), every=5)
    assert plant.snapshot() == start
    for run in range(3):
        plant.restore(start)
        for command in commands[run]:
            plant.step(command)
        assert runs.final[run] == plant.snapshot()
        assert runs.outputs["angle"][run, -1] == plant.observe()["angle"]
    plant.restore(start)
    plant.diverge_at = 0.1
    failed = rtmms.rollout(plant, commands, outputs=("angle",), every=5)
    assert (failed.status != 0).all()
    assert "diverged" in failed.reason(2)


def test_commands_come_back_as_they_were_obeyed(manta: Any) -> None:
    manta.reset()
    asked = np.array([[[9.0, -9.0, 0.1, 0.2]], [[0.9, -0.6, -1.0, 0.5]]])
    applied = rtmms.rollout(manta, asked).commands
    limit, coupled = manta.actuators[0].upper, manta.coupled[0].max_difference
    out = np.zeros(4)
    for run in range(2):
        limit_commands(-limit, limit, coupled, asked[run, 0], out, 0)
        np.testing.assert_allclose(applied[run, 0], out, rtol=0, atol=1e-15)
    assert abs(applied[0, 0, 0] - applied[0, 0, 1]) <= coupled
    np.testing.assert_array_equal(apply_limits(asked[0, 0, 2:], manta.actuators[2:]), asked[0, 0, 2:])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"commands": np.zeros((2, 3))},
            r"commands: expected an array of shape \(runs, steps, 4\), got shape \(2, 3\)",
        ),
        ({"commands": np.zeros((2, 3, 5))}, r"got shape \(2, 3, 5\)"),
        ({"commands": "all"}, "commands: expected numbers"),
        ({"commands": np.full((1, 2, 4), np.nan)}, r"must be finite, got nan in run 0, step 0"),
        ({"outputs": ("positon",)}, "unknown output 'positon'; did you mean position"),
        ({"outputs": "position"}, "expected a sequence of names"),
        ({"every": 0}, "every: expected a whole number from 1 to 1099511627776, got 0"),
        ({"threads": 0}, "threads: expected a whole number from 1 on, got 0"),
        (
            {"initial": [b""] * 3},
            "fits any number\\), got commands 2, initial 3",
        ),
        ({"initial": b"no snapshot"}, "expected a snapshot of this version"),
        ({"parameters": {"colour": [1.0, 2.0]}}, "unknown parameter that can differ between runs 'colour'"),
        ({"out": {"position": np.zeros((2, 2, 3))}}, r"out: position: expected \(2, 3, 3\)"),
    ],
)
def test_wrong_words_are_refused_in_a_sentence(quadrotor: Any, arguments: dict[str, Any], text: str) -> None:
    quadrotor.reset()
    before = quadrotor.snapshot()
    with pytest.raises(rtmms.RtmmsError, match=text):
        rtmms.rollout(**{"plant": quadrotor, "commands": np.zeros((2, 3, 4)), **arguments})
    assert quadrotor.snapshot() == before


@pytest.mark.parametrize("chosen", ["quadrotor", None, 7])
def test_what_is_no_plant_or_no_robot_is_refused(chosen: Any) -> None:
    with pytest.raises(rtmms.ArgumentError, match=r"rollout: expected a plant, as rtmms.load returns, got"):
        rtmms.rollout(chosen, np.zeros((1, 1, 4)))
    if not isinstance(chosen, str):
        with pytest.raises(rtmms.ArgumentError, match=r"robot: expected a name or a file as text, got"):
            rtmms.load(chosen)


def test_what_does_not_fit_is_refused_with_its_bytes(quadrotor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "_free_bytes", lambda: 100_000)
    with pytest.raises(rtmms.ModelError, match=r"10000 runs with 3 samples need [\d,]+ bytes, and 100,000 are free"):
        rtmms.rollout(quadrotor, np.zeros((10_000, 3, 4)))


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_all_runs(quadrotor: Any) -> None:
    quadrotor.reset()
    before = quadrotor.snapshot()
    hover = np.full((1, 1, len(quadrotor.actuators)), 468.0)
    long = np.repeat(hover, 3_000_000, axis=1)
    with rtmms.Rollout(quadrotor, 2) as pool:
        pool(hover)  # compiled
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            pool(long, initial=[before] * 4, every=long.shape[1])
        assert quadrotor.snapshot() == before
        assert pool(hover).status.tolist() == [0]


def test_the_pages_example(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "many_runs.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    heights = names["runs"].outputs["position"][:, -1, 2]
    assert (np.diff(heights) > 0).all()
    assert capsys.readouterr().out.strip()
