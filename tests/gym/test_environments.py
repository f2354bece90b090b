"""Environments: gymnasium's own check, vectors against single ones bit by bit, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rtmms

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

import rtmms.gym  # noqa: E402
from rtmms.base.errors import ArgumentError  # noqa: E402
from rtmms.gym.ids import IDS  # noqa: E402

pytestmark = pytest.mark.full

FAST = ("rtmms/QuadrotorHover-v0", "rtmms/MantaDepth-v0", "rtmms/MantaPath-v0")
EACH = [pytest.param(name, marks=() if name in FAST else pytest.mark.full) for name in IDS]
RUNS = 5
STEPS = 30
LENGTH = 12


@pytest.mark.parametrize("name", EACH)
def test_gymnasium_finds_nothing_wrong(name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name).unwrapped, skip_render_check=True)


def actions_of(many: Any, steps: int = STEPS) -> Any:
    return np.random.default_rng(0).uniform(-1.0, 1.0, (steps, *many.action_space.shape)).astype(np.float32)


def compare(many: Any, singles: list[Any], steps: int = STEPS) -> int:
    """Bit by bit, and through ends of episodes; how many there were."""
    observed, _ = many.reset(seed=7)
    np.testing.assert_array_equal(observed, [item.reset(seed=7 + k)[0] for k, item in enumerate(singles)])
    over, ends = [False] * len(singles), 0
    for action in actions_of(many, steps):
        observed, reward, ended, cut, _ = many.step(action)
        for k, single in enumerate(singles):
            if over[k]:  # NEXT_STEP: this step starts it anew
                current, result = single.reset()[0], (0.0, False, False)
            else:
                current, *remaining = single.step(action[k])
                result = tuple(remaining[:3])
            over[k] = result[1] or result[2]
            ends += over[k]
            np.testing.assert_array_equal(observed[k], current)
            assert result == (reward[k], ended[k], cut[k])
    return ends


@pytest.mark.parametrize("name", EACH)
def test_a_vector_has_the_bits_of_single_ones(name: str):
    many = gymnasium.make_vec(name, num_envs=RUNS, max_episode_steps=LENGTH, threads=2)
    assert many.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    singles = [gymnasium.make(name, max_episode_steps=LENGTH) for _ in range(RUNS)]
    assert compare(many, singles) >= 2 * RUNS
    other = gymnasium.make_vec(name, num_envs=RUNS, max_episode_steps=LENGTH, threads=1)
    many.reset(seed=1)
    other.reset(seed=1)
    for action in actions_of(many, 3):
        np.testing.assert_array_equal(many.step(action)[0], other.step(action)[0])


class Fast(rtmms.gym.Task):
    """A quadrotor whose episodes end where it is lower than 1 cm below its start."""

    robot = "quadrotor"

    def start(self, random: Any, plant: Any) -> Any:
        plant.place(position=(0.0, 0.0, random.uniform(0.0, 0.2)))
        return {}

    def reward(self, observed: Any, action: Any, memory: Any) -> Any:
        return observed["position"][:, 2]

    def ended(self, observed: Any, memory: Any) -> Any:
        return observed["position"][:, 2] < -0.01


def test_same_step():
    """A run that ends starts at once: what it saw last is in info."""
    many = rtmms.gym.RobotVectorEnv(Fast(), 4, autoreset_mode="SameStep", max_episode_steps=60)
    assert many.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    many.reset(seed=0)
    over = np.zeros(4, dtype=bool)
    while not over.any():
        observed, _, ended, cut, info = many.step(np.full((4, 4), -1.0))
        over = ended | cut
    assert not over.all()
    np.testing.assert_array_equal(info["_final_obs"], over)
    for run in range(4):
        started = np.linalg.norm(observed[run, 7:10]) == 0.0  # at rest
        assert started == over[run]
        if over[run]:
            assert info["final_obs"][run][2] < -0.01 <= observed[run, 2]
    assert not many.step(np.full((4, 4), -1.0))[2][over].any()


def test_parameters_that_differ_from_episode_to_episode():
    """Drawn by each run's own generator: the vector has the bits of single ones, and runs differ."""
    values = {"randomise": {"drag_coefficient": (0.5, 2.0)}, "parameters": {"chains": 5}}
    name = "rtmms/MantaDepth-v0"
    many = gymnasium.make_vec(name, num_envs=2, max_episode_steps=5, **values)
    singles = [gymnasium.make(name, max_episode_steps=5, **values) for _ in range(2)]
    assert compare(many, singles, 12) >= 4
    item, default = (rtmms.gym.RobotEnv("MantaDepth", parameters={"chains": 5}, **more) for more in (
        {"randomise": {"drag_coefficient": (3.0, 3.0)}}, {"randomise": {"drag_coefficient": (0.1, 0.1)}}))  # fmt: skip
    np.testing.assert_array_equal(item.reset(seed=3)[0], default.reset(seed=3)[0])
    assert not np.array_equal(item.step(np.ones(3))[0], default.step(np.ones(3))[0])


def test_outputs_that_are_computed_have_the_parameters_of_their_run():
    """Energies and powers are not in a robot's state: they are computed when they are read."""
    names = ("buoyancy_energy", "drag_power")

    def observation(observed: Any, memory: Any) -> Any:
        return np.stack([observed[name] for name in names], axis=1)

    more = {
        "randomise": {"drag_coefficient": (0.5, 2.0), "gravity_m_s2": (9.0, 10.0)}, "observation": observation,
        "parameters": {"chains": 5}, "outputs": ("position", "quaternion", *names), "max_episode_steps": 5,
    }  # fmt: skip
    reward = lambda observed, action, memory: observed["drag_power"]
    many = gymnasium.make_vec("rtmms/MantaDepth-v0", num_envs=3, reward=reward, **more)
    singles = [gymnasium.make("rtmms/MantaDepth-v0", reward=reward, **more) for _ in range(3)]
    assert compare(many, singles, 12) >= 4


def test_a_range_with_one_end_is_refused():
    """Its middle and its sign would be guesses."""
    from rtmms.plant import Channel

    task = Fast()
    for values in (Channel("a", lower=5.0), Channel("a", upper=-5.0)):
        with pytest.raises(ArgumentError, match="actuator 'a' has a limit on its"):
            task.prepare(SimpleNamespace(actuators=(values,)))  # type: ignore[arg-type]


def test_pictures_and_steps_before_a_reset_are_refused():
    for make in (rtmms.gym.RobotEnv, rtmms.gym.RobotVectorEnv):
        with pytest.raises(ArgumentError, match="render_mode: expected None"):
            make(Fast(), render_mode="rgb_array")
    with pytest.raises(ArgumentError, match="expected a reset before the first step"):
        rtmms.gym.RobotVectorEnv(Fast(), 2).step(np.zeros((2, 4)))


def test_a_task_serves_several_environments():
    """Each has a copy: members that are given to one, and what `prepare` writes, are not in the other."""
    task = Fast()
    first = rtmms.gym.RobotEnv(task, step_s=0.02)
    rtmms.gym.RobotEnv(
        task, step_s=0.04, robot="manta", reward=lambda observed, action, memory: observed["position"][:, 2]
    )
    assert first.episodes.task.step_s == 0.02
    assert first.episodes.task.robot == Fast.robot
    assert task.step_s == Fast.step_s
    assert "reward" not in vars(first.episodes.task)


def test_a_step_that_is_known_to_be_too_long_is_a_warning():
    with pytest.warns(RuntimeWarning, match="manta: accuracy: dt = 0.05 s is known to be inaccurate"):
        rtmms.gym.RobotEnv("MantaDepth", dt=0.05, step_s=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rtmms.gym.RobotEnv("MantaDepth")


def test_through_sensors():
    """The agent sees what instruments read, with their noise; rewards are by the truth."""
    truth = gymnasium.make("rtmms/QuadrotorHover-v0")
    env = gymnasium.make("rtmms/QuadrotorHover-v0", sensors="typical")
    action, result = np.full(4, 0.1, dtype=np.float32), []
    truth.reset(seed=0)
    for seed in (0, 0, 1):
        env.reset(seed=seed)
        result.append([env.step(action)[0] for _ in range(5)])
    np.testing.assert_array_equal(result[0], result[1])
    assert not np.array_equal(result[0], result[2])
    env.reset(seed=0)
    for _ in range(5):
        assert env.step(action)[1] == truth.step(action)[1]
    many = gymnasium.make_vec("rtmms/QuadrotorHover-v0", num_envs=2, sensors="typical", max_episode_steps=4)
    singles = [gymnasium.make("rtmms/QuadrotorHover-v0", sensors="typical", max_episode_steps=4) for _ in range(2)]
    assert compare(many, singles, 6) >= 2


def test_an_observation_of_the_instruments_is_the_task_s():
    """And it has the bits of single environments, with parameters of their own, for sensors that read torques, too."""

    def observation(measured: Any, memory: Any) -> Any:
        torques = measured["current.value"] * 2.0
        return np.concatenate([memory["height"][:, None] + measured["depth.value"][:, None], torques], axis=1)

    more = {
        "sensors": "typical", "randomise": {"drag_coefficient": (0.8, 1.2)}, "sensor_observation": observation,
        "max_episode_steps": 5, "parameters": {"chains": 16},
    }  # fmt: skip
    many = gymnasium.make_vec("rtmms/MantaDepth-v0", num_envs=3, **more)
    singles = [gymnasium.make("rtmms/MantaDepth-v0", **more) for _ in range(3)]
    assert many.single_observation_space.shape == (5,)
    assert compare(many, singles, 8) >= 3
    with pytest.raises(ArgumentError, match=r"sensor_observation: expected numbers of shape \(2, k\), got \(2,\)"):
        hover(sensors="typical", sensor_observation=lambda measured, memory: np.zeros(2))


def test_a_robot_that_fails_ends_alone():
    class Wild(Fast):
        def start(self, random: Any, plant: Any) -> Any:
            if random.random() < 0.5:
                plant.place(velocity=(1e150, 0.0, 0.0), angular_velocity=(1e200, 1e200, 0.0))
            return {}

    many = rtmms.gym.RobotVectorEnv(Wild(), 8)
    many.reset(seed=0)
    observed, reward, ended, _, info = many.step(np.zeros((8, 4)))
    assert 0 < info["failed"].sum() < 8
    np.testing.assert_array_equal(ended, info["failed"])
    np.testing.assert_array_equal(reward[ended], -1.0)
    assert np.isfinite(observed).all()
    alone = rtmms.gym.RobotEnv(Wild())
    result = []
    for seed in range(8):
        alone.reset(seed=seed)
        result.append(alone.step(np.zeros(4))[2])
    assert result == ended.tolist()


def test_incidence_makes_a_manta_climb():
    many = gymnasium.make_vec("rtmms/MantaDepth-v0", num_envs=2)
    many.reset(seed=[4, 4])
    for _ in range(150):
        observed = many.step(np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]))[0]
    assert observed[0, 0] < observed[1, 0] - 0.1  # the first has less of the way up left


def test_a_robot_and_a_reward_alone():
    env = rtmms.gym.RobotEnv(
        "quadrotor", lambda observed, action, memory: -np.abs(observed["position"][:, 2]), step_s=0.01
    )
    env.reset(seed=0)
    assert env.episodes.steps == 5
    assert env.step(np.full(4, -1.0))[1] < 0.0


def test_gymnasium_knows_the_ids_when_both_are_imported():
    """And `import rtmms` alone loads neither gymnasium nor numba."""
    code = (
        "import sys, rtmms; assert not {'gymnasium', 'numba'} & set(sys.modules); import gymnasium, rtmms.gym; "
        "assert 'rtmms/EelCourse-v0' in gymnasium.registry and 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import gymnasium, rtmms; assert 'rtmms/EelCourse-v0' in gymnasium.registry"
    subprocess.run([sys.executable, "-c", code], check=True)


def hover(**values: Any) -> Any:
    return rtmms.gym.RobotVectorEnv("QuadrotorHover", **{"num_envs": 2, **values})


def worth(value: Any) -> None:
    stepped(rtmms.gym.RobotVectorEnv("quadrotor", 2, lambda observed, action, memory: value))


def stepped(built: Any = None, **values: Any) -> None:
    built = hover(**values) if built is None else built
    built.reset(seed=0)
    built.step(np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("wrong", "output"),
    [
        (lambda: rtmms.gym.RobotEnv("Hover"), "unknown task 'Hover'"),
        (lambda: rtmms.gym.RobotEnv(3), r"expected a rtmms\.gym\.Task or a robot's name, got 3"),
        (lambda: rtmms.gym.RobotEnv(Fast(), step_s=0.003), r"step_s: expected a whole number .* got 0.003 s"),
        (lambda: rtmms.gym.RobotEnv(Fast(), outputs=("depth",)), "unknown output 'depth'"),
        (lambda: rtmms.gym.RobotEnv(Fast(), reword=1.0), "unknown attribute of rtmms.gym.Task 'reword'"),
        (lambda: rtmms.gym.RobotEnv(Fast(), sensors="good"), "sensors 'good'"),
        (lambda: hover(num_envs=0), "num_envs: expected a whole number from 1 on, got 0"),
        (lambda: hover(autoreset_mode="never"), "autoreset_mode: expected NextStep or SameStep, got 'never'"),
        (lambda: hover(randomise={"mass": (1, 2)}), "unknown parameter that can change from episode to episode 'mass'"),
        (lambda: hover().reset(seed=[1]), "seed: expected one for each of 2 runs, got 1"),
        (lambda: hover().step(np.zeros(4)), r"action: expected finite numbers of shape \(2, 4\), got shape \(4,\)"),
        (lambda: hover().step(np.full((2, 4), np.nan)), "got one that is not finite"),
        (lambda: hover(num_envs=10**9), "num_envs: expected a number from 1 to 1000000, got 1000000000"),
        (lambda: hover(max_episode_steps="x"), "max_episode_steps: expected a whole number, got 'x'"),
        (lambda: hover(sensors=1.0), "sensors: expected a profile's name or a file, got 1.0"),
        (lambda: hover(step_s=1e300), r"step_s: expected a number > 0 and <= 1e\+06, got 1e\+300"),
        (lambda: hover(step_s=1e6), r"step_s: expected a whole number of .*, at most 1000000, got 1e\+06 s"),
        (lambda: hover(actions=2**40), "actions: expected a number from 0 to 10000"),
        (lambda: hover(outputs=(0,)), "outputs: expected names, got 0"),
        (lambda: hover(parameters=3), "parameters: expected a mapping, got 3"),
        (lambda: hover().reset(seed=0.5), "seed: expected a whole number, or one for each run, got 0.5"),
        (lambda: hover(randomise=3.0), r"randomise: expected \{parameter: \(lowest, highest\)\}, got 3.0"),
        (lambda: rtmms.gym.RobotEnv(type("Hover", (rtmms.gym.Task,), {"robot": "quadrotor"})), "Hover has no reward"),
        (lambda: stepped(start=lambda random, plant: 3), "start: expected a mapping of names to arrays, got 3"),
        (lambda: stepped(start=lambda random, plant: {"x": "a"}), "start: 'x': expected numbers, got 'a'"),
        (
            lambda: stepped(observation=lambda observed, memory: 0.5),
            r"observation: expected numbers of shape \(2, k\), got \(\)",
        ),
        (
            lambda: stepped(observation=lambda observed, memory: np.ones(2)),
            r"observation: expected numbers of shape \(2, k\)",
        ),
        (lambda: worth(np.nan), r"reward: expected numbers of shape \(2,\), got \(\)"),
        (lambda: worth(np.full(2, np.nan)), "reward: expected finite numbers"),
        (lambda: stepped(ended=lambda observed, memory: 1), r"expected bool of shape \(2,\), got int64 of shape \(\)"),
        (lambda: stepped(commands=lambda action, *_: np.inf), "commands: expected finite numbers, got inf"),
        (
            lambda: stepped(commands=lambda action, *_: action),
            r"commands: expected numbers of shape \(2, 10, 4\), got \(2, 4\)",
        ),
        (lambda: stepped(commands=lambda action, *_: action + 1j), "commands: expected numbers, got array"),
    ],
)
def test_what_is_refused(wrong: Any, output: str):
    with pytest.raises(rtmms.RtmmsError, match=output):
        wrong()


def test_the_pages_examples(capsys: pytest.CaptureFixture[str]):
    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert names["rewards"].shape == (64,)


def test_the_example_learns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    curve = import_module("17_learn").main(rounds=6, seconds=4.0)
    assert max(curve[3:]) > curve[0] + 0.05
