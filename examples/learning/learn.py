"""A manta learns to hold a depth by its sensors: PPO of skrl (https://skrl.readthedocs.io) on 64 environments at once.

pip install 'rtmms[learn]', without CUDA; then
python examples/learning/learn.py [--minutes 10] [--policy depth.npz] [--figure learning_ppo.png]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import gymnasium
import jax.numpy as jnp
import numpy as np
from policy import STEP_S, Policy, observe
from skrl import config
from skrl.agents.jax.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.jax import wrap_env
from skrl.memories.jax import RandomMemory
from skrl.models.jax import DeterministicMixin, GaussianMixin, Model
from skrl.resources.preprocessors.jax import RunningStandardScaler
from skrl.resources.schedulers.jax import KLAdaptiveLR
from skrl.utils import set_seed

import rtmms  # noqa: F401  registers our environments with gymnasium

RUNS = 64
"""Environments at once."""
ROLLOUT = 40
"""Steps of each environment between two updates of the agent."""
UNITS = 64
"""Units of a layer of the networks."""
EPISODE_S = 20.0
"""Length of an episode, s."""
SETTLED_S = 10.0
"""Time in an episode from which on the depth counts as settled, s."""
RANDOMISE = {"drag_coefficient": (0.8, 1.2)}
COARSE = {"dt": 5e-3, "parameters": {"chains": 16}}
"""The training's robot: five times as fast as the default one (1 ms, 30 chains), and within 1e-3 m of it after 8 s."""


class Actor(GaussianMixin, Model):  # type: ignore[misc]
    """Mean action of two layers with tanh; the deviation does not depend on the observation."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self, min_log_std=-3.0)

    @nn.compact
    def __call__(self, inputs: Any, role: str) -> Any:
        layer = inputs["observations"]
        for _ in range(2):
            layer = nn.tanh(nn.Dense(UNITS)(layer))
        mean = nn.Dense(self.num_actions, kernel_init=nn.initializers.normal(0.01))(layer)
        return mean, {"log_std": self.param("log_std", lambda _: jnp.full(self.num_actions, -1.0))}


class Critic(DeterministicMixin, Model):  # type: ignore[misc]
    """Value of two layers with tanh."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)

    @nn.compact
    def __call__(self, inputs: Any, role: str) -> Any:
        layer = inputs["observations"]
        for _ in range(2):
            layer = nn.tanh(nn.Dense(UNITS)(layer))
        return nn.Dense(1)(layer), {}


class Curve(NamedTuple):
    """What a training recorded.

    seconds   (n,) wall time since its start, s
    rewards   (n,) mean reward of a step
    errors_m  (n,) mean size of the depth error in the second half of an episode, m; NaN where no run was there
    """

    seconds: list[float]
    rewards: list[float]
    errors_m: list[float]


def environments(runs: int, **more: Any) -> Any:
    """Return the environments as the policy is used: an action every 50 ms, observations of the sensors.

    more : dt and parameters of the robot, where they differ from its defaults.
    """
    return gymnasium.make_vec(
        "rtmms/MantaDepth-v0", num_envs=runs, sensors="typical", randomise=RANDOMISE, step_s=STEP_S,
        sensor_observation=observe, max_episode_steps=round(EPISODE_S / STEP_S), **more,
    )  # fmt: skip


def agent_for(many: Any) -> PPO:
    """Return the untrained agent."""
    spaces = {"observation_space": many.observation_space, "action_space": many.action_space, "device": many.device}
    models = {"policy": Actor(**spaces), "value": Critic(**spaces)}
    for role, model in models.items():
        model.init_state_dict(role=role)
    settings = PPO_CFG(
        rollouts=ROLLOUT, learning_epochs=8, mini_batches=4, discount_factor=0.99, gae_lambda=0.95, learning_rate=1e-3,
        learning_rate_scheduler=KLAdaptiveLR, learning_rate_scheduler_kwargs={"kl_threshold": 0.01},
        observation_preprocessor=RunningStandardScaler,
        observation_preprocessor_kwargs={"size": many.observation_space, "device": many.device},
        value_preprocessor=RunningStandardScaler, value_preprocessor_kwargs={"size": 1, "device": many.device},
        time_limit_bootstrap=True, experiment={"write_interval": 0, "checkpoint_interval": 0},
    )  # fmt: skip
    memory = RandomMemory(memory_size=ROLLOUT, num_envs=many.num_envs, device=many.device)
    agent = PPO(models=models, memory=memory, cfg=settings, **spaces)
    agent.init()
    agent.enable_training_mode(True)
    return agent


def policy_of(agent: PPO) -> Policy:
    """Return the agent's mean action as a policy for numpy."""
    scaler, layers = agent._observation_preprocessor, agent.policy.state_dict.params["params"]
    names = sorted((name for name in layers if name.startswith("Dense_")), key=lambda name: int(name[6:]))
    return Policy(
        np.asarray(scaler.running_mean, dtype=float),
        np.sqrt(np.asarray(scaler.running_variance, dtype=float)) + scaler.epsilon,
        tuple(np.asarray(layers[name]["kernel"], dtype=float) for name in names),
        tuple(np.asarray(layers[name]["bias"], dtype=float) for name in names),
    )


def train(many: Any, agent: PPO, minutes: float, updates: int | None = None) -> Curve:
    """Train the agent for a wall time, or for so many updates, and print the progress."""
    curve, settled = Curve([], [], []), round(SETTLED_S / STEP_S)
    inside, lengths = many.unwrapped, np.zeros(many.num_envs)
    began, step = time.perf_counter(), 0
    observation, _ = many.reset()
    while time.perf_counter() - began < 60.0 * minutes and len(curve.rewards) != updates:
        rewards, errors = [], []
        for _ in range(ROLLOUT):
            agent.pre_interaction(timestep=step, timesteps=0)
            action, _ = agent.act(observation, None, timestep=step, timesteps=0)
            observed, reward, ended, cut, info = many.step(action)
            agent.record_transition(
                observations=observation, states=None, actions=action, rewards=reward, next_observations=observed,
                next_states=None, terminated=ended, truncated=cut, infos=info, timestep=step, timesteps=0,
            )  # fmt: skip
            agent.post_interaction(timestep=step, timesteps=0)
            rewards.append(float(np.mean(reward)))
            lengths += 1.0
            errors.append(depth_error(inside)[lengths > settled])
            lengths[np.asarray(ended | cut)[:, 0] > 0] = -1.0  # the next step begins another episode
            observation, step = observed, step + 1
        curve.seconds.append(time.perf_counter() - began)
        curve.rewards.append(float(np.mean(rewards)))
        late = np.concatenate(errors)
        curve.errors_m.append(float(late.mean()) if late.size else float("nan"))
        if len(curve.rewards) % 10 == 0:
            print(
                f"{curve.seconds[-1]:5.0f} s, {step * inside.num_envs:7} steps: reward {curve.rewards[-1]:+.3f}, "
                f"depth error {100.0 * curve.errors_m[-1]:.1f} cm", flush=True,
            )  # fmt: skip
    return curve


def depth_error(inside: Any) -> Any:
    """Return the size of the true depth error of each run (runs,), m."""
    episodes = inside.episodes
    return np.abs(episodes.memory["height"] - episodes.see()["position"][:, 2])


def evaluate(policy: Policy, runs: int = RUNS, seed: int = 1 << 20) -> float:
    """Return the mean size of the depth error after settling, m, over episodes that the training has not had."""
    many = environments(runs)
    observed, _ = many.reset(seed=seed)
    errors = []
    for k in range(round(EPISODE_S / STEP_S) - 1):
        observed, _, ended, _, _ = many.step(policy(observed.astype(float)))
        if ended.any():
            return float("inf")
        if (k + 1) * STEP_S > SETTLED_S:
            errors.append(depth_error(many.unwrapped))
    many.close()
    return float(np.mean(errors))


def draw(curve: Curve, path: Path) -> None:
    """Draw the learning curve: reward, and depth error once settled, over the wall time."""
    import matplotlib.pyplot as plt

    # the episodes of all runs begin together, so a point is of all updates within one episode
    each = round(EPISODE_S / STEP_S / ROLLOUT)
    count = max(1, len(curve.rewards) // each)
    minutes, rewards, errors = (np.array_split(np.array(values)[: count * each], count) for values in curve)
    page, axes = plt.subplots(2, 1, figsize=(6.0, 4.5), sharex=True, layout="constrained")
    at = [part[-1] / 60.0 for part in minutes]
    axes[0].plot(at, [part.mean() for part in rewards], "o-", ms=3.0)
    axes[0].set(ylabel="mean reward of a step", title="PPO: a manta learns to hold a depth by its sensors")
    axes[1].plot(at, [100.0 * np.ma.masked_invalid(part).mean() for part in errors], "o-", ms=3.0)
    axes[1].axhline(3.0, ls="--", color="0.5")
    axes[1].set(xlabel="wall time, min", ylabel="depth error, cm", yscale="log", yticks=[1, 3, 10, 30])
    axes[1].set_yticklabels(["1", "3", "10", "30"])
    for axis in axes:
        axis.grid(alpha=0.3)
    page.savefig(path, dpi=90)


def main(minutes: float = 10.0, policy: Path = Path("depth.npz"), figure: Path | None = None, seed: int = 0) -> float:
    """Train, write the policy and the learning curve; return the depth error after settling, m."""
    config.jax.backend = "jax"
    set_seed(seed)
    many = wrap_env(environments(RUNS, **COARSE), wrapper="gymnasium")
    agent = agent_for(many)
    curve = train(many, agent, minutes)
    learned = policy_of(agent)
    learned.save(policy)
    if figure is not None:
        draw(curve, figure)
    error = evaluate(learned)
    print(f"{len(curve.rewards)} updates in {curve.seconds[-1]:.0f} s")
    print(f"mean depth error after settling: {100.0 * error:.2f} cm")
    return error


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--minutes", type=float, default=10.0)
    reader.add_argument("--policy", type=Path, default=Path("depth.npz"))
    reader.add_argument("--figure", type=Path)
    reader.add_argument("--seed", type=int, default=0)
    main(**vars(reader.parse_args()))
