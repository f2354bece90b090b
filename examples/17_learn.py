"""A manta learns to hold a depth: a linear policy, by the cross-entropy method on 64 environments at once.

python examples/17_learn.py [ROUNDS] [SECONDS] [FIGURE.png]
"""

from __future__ import annotations

import sys

import gymnasium
import numpy as np

import rtmms  # noqa: F401  gymnasium knows our ids from here on

RUNS = 64
ELITE = 12
SCALE = np.array([3.0, 5.0, 2.0, 2.0, 1.0, 0.5, 0.5, 0.5, 0.3, 0.3, 1.0, 1.0, 1.0])
"""What an observation is multiplied with, so that each counts about as much."""


def main(rounds: int = 12, seconds: float = 6.0, figure: str = "") -> list[float]:
    """Return the mean reward of a step in each round, over all policies of that round."""
    many = gymnasium.make_vec("rtmms/MantaDepth-v0", num_envs=RUNS)
    width, actions = many.single_observation_space.shape[0], many.single_action_space.shape[0]
    random = np.random.default_rng(0)
    mean, spread = np.zeros((actions, width)), np.full((actions, width), 0.5)
    curve = []
    for k in range(rounds):
        policies = mean + spread * random.normal(size=(RUNS, actions, width))
        observed, _ = many.reset(seed=1000 * k)
        total, alive = np.zeros(RUNS), np.ones(RUNS, dtype=bool)
        for _ in range(round(seconds / 0.02)):
            action = np.tanh(np.einsum("rak,rk->ra", policies, SCALE * observed))
            observed, reward, ended, cut, _ = many.step(action)
            total += np.where(alive, reward, -1.0)  # after its end a run has lost
            alive &= ~(ended | cut)
        best = policies[np.argsort(-total)[:ELITE]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05 * 0.8**k
        curve.append(float(total.mean() / round(seconds / 0.02)))
        print(f"round {k + 1:2}: {curve[-1]:+.3f} a step")
    many.close()
    if figure:
        draw(curve, figure)
    return curve


def draw(curve: list[float], path: str) -> None:
    """Draw the learning curve."""
    import matplotlib.pyplot as plt

    page, axis = plt.subplots(figsize=(6.0, 3.0), layout="constrained")
    axis.plot(np.arange(1, len(curve) + 1), curve, "o-", ms=4.0)
    axis.set(xlabel="round of 64 policies", ylabel="mean reward of a step", title="A manta learns to hold a depth")
    axis.grid(alpha=0.3)
    page.savefig(path, dpi=90)


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float, str), sys.argv[1:], strict=False)))
