"""The learned policy of examples/learning: its file, its controller with numpy alone, and a short training."""

from __future__ import annotations

import importlib.util
import pickle
import sys
import zipfile
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rtmms

FOLDER = Path(__file__).parents[2] / "examples" / "learning"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return import_module("policy")


def policy_of(module: ModuleType, seed: int = 0, width: int = 15, actions: int = 3) -> Any:
    random = np.random.default_rng(seed)
    sizes = [width, 8, 6, actions]
    weights = tuple(random.normal(size=pair) for pair in pairwise(sizes))
    return module.Policy(
        random.normal(size=width), random.uniform(0.5, 2.0, width), weights,
        tuple(random.normal(size=size) for size in sizes[1:]),
    )  # fmt: skip


def state_of(module: ModuleType, seed: int) -> rtmms.State:
    random = np.random.default_rng(seed)
    outputs: dict[str, Any] = {name: random.normal(size=3).tolist() for name in module.INSTRUMENTS}
    outputs["depth.value"] = float(random.uniform(1.5, 2.5))
    channels = tuple(
        rtmms.Channel(name, "", () if isinstance(value, float) else (3,)) for name, value in outputs.items()
    )
    info = rtmms.PlantInfo("manta", 1e-3, "realtime", 1e-3, 1e-3, (), channels)
    return rtmms.State({"step": 0, "timestamp": 0.0, "outputs": outputs}, info)


def test_a_policy_has_the_same_actions_after_its_file(module: ModuleType, tmp_path: Path) -> None:
    policy = policy_of(module)
    policy.save(tmp_path / "p.npz")
    loaded = module.Policy.load(tmp_path / "p.npz")
    observation = np.random.default_rng(1).normal(size=(50, 15))
    np.testing.assert_allclose(loaded(observation), policy(observation), atol=1e-5)  # single precision
    loaded.save(tmp_path / "q.npz")
    np.testing.assert_array_equal(module.Policy.load(tmp_path / "q.npz")(observation), loaded(observation))


class Canary:
    def __reduce__(self) -> Any:
        return exec, ("import sys; sys.canary = 1",)


def write(path: Path, **changed: Any) -> None:
    with np.load(FOLDER / "depth.npz") as file:
        arrays = {name: file[name] for name in file.files}
    for name, value in changed.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value
    np.savez(path, **arrays)


def test_a_file_that_holds_objects_is_refused_and_runs_no_code(module: ModuleType, tmp_path: Path) -> None:
    write(tmp_path / "objects.npz", mean=np.array([Canary()], dtype=object))
    with zipfile.ZipFile(tmp_path / "plain.npz", "w") as archive:
        archive.writestr("mean.npy", pickle.dumps(Canary()))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Canary()))
    for name in ("objects", "plain", "pickle"):
        with pytest.raises(
            rtmms.ModelError, match=rf"{name}\.npz: expected a policy of learn\.py, got .*; train it anew"
        ):
            module.Policy.load(tmp_path / f"{name}.npz")
    assert not hasattr(sys, "canary")


@pytest.mark.parametrize(
    "changed",
    [
        {"mean": None}, {"bias_1": None}, {"weight_0": None}, {"mean": np.zeros(14)}, {"deviation": np.zeros(15)},
        {"weight_1": np.zeros((64, 63))}, {"bias_2": np.array([0.0, np.nan, 0.0])}, {"weight_2": np.zeros(3)},
        {"bias_0": np.array(["a"] * 64)},
    ],
    ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_layers_that_do_not_fit_are_refused(module: ModuleType, tmp_path: Path, changed: dict[str, Any]) -> None:
    write(tmp_path / "wrong.npz", **changed)
    with pytest.raises(rtmms.ModelError, match=r"wrong\.npz: expected .*train it anew"):
        module.Policy.load(tmp_path / "wrong.npz")


def test_a_policy_for_other_observations_or_actions_is_refused(module: ModuleType, tmp_path: Path) -> None:
    for name, sizes in {"seen": {"width": 4}, "acts": {"actions": 4}}.items():
        policy_of(module, **sizes).save(tmp_path / f"{name}.npz")
        with pytest.raises(rtmms.ModelError, match=rf"{name}\.npz: expected a policy for 15 observations"):
            module.Learned(weights=str(tmp_path / f"{name}.npz"))


def test_the_controller_commands_what_the_task_makes_of_the_policy_s_actions(module: ModuleType) -> None:
    """Rods, rad, over several updates: the memory of the beat is that of the environment."""
    from rtmms.gym.robot_tasks import MantaDepth

    controller = module.Learned(depth_m=2.2)
    policy, task = module.Policy.load(FOLDER / "depth.npz"), MantaDepth()
    controller.start(state_of(module, 0).plant)
    memory = {"phase": np.zeros(1), "held": np.zeros((1, 3)), "height": np.array([-2.2])}
    angles = []
    for k in range(8):
        state = state_of(module, k)
        measured = {name: np.atleast_1d(np.asarray(state[name]))[None] for name in module.INSTRUMENTS[1:]}
        measured["depth.value"] = np.array([state["depth.value"]])
        action = np.clip(policy(module.observe(measured, memory)), -1.0, 1.0)
        expected = task.commands(action, memory, 50, 1e-3)[0, -1]
        angles.append(list(controller.update(state).values()))
        np.testing.assert_array_equal(angles[-1], expected)
    assert np.ptp(angles, axis=0).min() > 0.05


def test_the_controller_refuses_another_time_between_two_actions(module: ModuleType) -> None:
    controller = module.Learned(every=20)
    with pytest.raises(rtmms.ModelError, match=r"every: expected 50 steps of 0\.001 s, as in training; got 20"):
        controller.start(state_of(module, 0).plant)


def test_environments_without_gymnasium_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import rtmms.gym

    monkeypatch.setattr("rtmms.gym.find_spec", lambda name: None)
    with pytest.raises(rtmms.ModelError, match=r"rtmms\.gym\.RobotVectorEnv needs gymnasium: .*gym"):
        _ = rtmms.gym.RobotVectorEnv
    assert rtmms.gym.Task.__name__ == "Task"


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("skrl") is None, reason="pip install 'rtmms[learn]'")
def test_a_short_training_changes_the_policy_and_numpy_acts_as_the_network(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    learn = import_module("learn")
    monkeypatch.setattr(learn, "ROLLOUT", 8)
    learn.config.jax.backend = "jax"
    learn.set_seed(0)
    many = learn.wrap_env(learn.environments(4, **learn.COARSE), wrapper="gymnasium")
    agent = learn.agent_for(many)
    before = learn.policy_of(agent)
    curve = learn.train(many, agent, minutes=60.0, updates=2)
    assert len(curve.rewards) == 2
    assert np.isfinite(curve.rewards).all()
    after = learn.policy_of(agent)
    assert not np.array_equal(before.weights[0], after.weights[0])
    assert not np.array_equal(before.mean, after.mean)
    after.save(tmp_path / "p.npz")
    loaded = module.Policy.load(tmp_path / "p.npz")
    observation, _ = many.reset()
    _, outputs = agent.act(observation, None, timestep=0, timesteps=0)
    network = np.asarray(outputs["mean_actions"])
    np.testing.assert_allclose(loaded(np.asarray(observation, dtype=float)), network, atol=1e-5)
    assert np.ptp(network) > 0.0
    learn.draw(curve, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000
