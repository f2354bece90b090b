"""Vector environments beside the rollout: environment steps a second, and their overhead over the plant's steps.

Blocks of each alternate, in one process; the least of each kind counts. The yardstick is `rtmms.Rollout` with as many
runs and steps, the same commands, and the same threads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .requirements import module, requires
from .setting import machine, refuse_less

IDS = ("MantaDepth", "QuadrotorHover", "EelCourse")


def measure(task: str, runs: int, steps: int, blocks: int, threads: int) -> dict[str, Any]:
    """Measure one id.

    Parameters
    ----------
    task : str
        Name of the task.
    runs : int
        Number of environments.
    steps : int
        Steps of a block.
    blocks : int
        Number of blocks.
    threads : int
        Number of threads.

    Returns
    -------
    dict[str, Any]
        steps_s: environment steps a second; rollout_s: the same of the rollout; overhead: of the environment beside the
        rollout; sensors: steps a second with typical sensors, as a share of those without.
    """
    import gymnasium

    import rtmms.gym

    many = gymnasium.make_vec(f"rtmms/{task}-v0", num_envs=runs, threads=threads)
    sensed = gymnasium.make_vec(f"rtmms/{task}-v0", num_envs=runs, threads=threads, sensors="typical")
    many.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (steps, *many.action_space.shape)).astype(np.float32)
    inside: Any = many.unwrapped
    episodes = inside.episodes
    memory = {name: value.copy() for name, value in episodes.memory.items()}
    commands = []
    for action in actions:
        rows = episodes.task.commands(action.astype(float), episodes.memory, episodes.steps, episodes.plant.dt)
        commands.append(np.broadcast_to(rows, (runs, episodes.steps, rows.shape[2])))
    episodes.memory.update(memory)
    whole = np.ascontiguousarray(np.concatenate(commands, axis=1))
    environment, rollout, through_sensors = [], [], []
    with rtmms.Rollout(episodes.plant, threads) as pool:
        for _ in range(blocks + 1):
            many.reset(seed=0)
            began = time.perf_counter()
            for action in actions:
                many.step(action)
            environment.append(time.perf_counter() - began)
            sensed.reset(seed=0)
            began = time.perf_counter()
            for action in actions:
                sensed.step(action)
            through_sensors.append(time.perf_counter() - began)
            began = time.perf_counter()
            pool(whole, every=episodes.steps)
            rollout.append(time.perf_counter() - began)
    count, environment_s, other = runs * steps, min(environment[1:]), min(rollout[1:])
    return {
        "task": task,
        "runs": runs,
        "step_s": episodes.task.step_s,
        "steps_s": count / environment_s,
        "rollout_s": count / other,
        "overhead": environment_s / other - 1.0,
        "sensors": environment_s / min(through_sensors[1:]),
    }


@requires(lambda **_: [module("gymnasium", "gym")])
def main(as_json: bool = False, runs: int = 64, steps: int = 50, blocks: int = 5, threads: int = 2) -> int:
    """Measure and print.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    runs, steps, blocks, threads : int
        See `measure`.

    Returns
    -------
    int
        0.
    """
    for name, value in (("runs", runs), ("steps", steps), ("blocks", blocks), ("threads", threads)):
        refuse_less(f"environments: --{name}", value, 1)
    results = [measure(task, runs, steps, blocks, threads) for task in IDS]
    result = {"machine": machine(), "tasks": results}
    print(json.dumps(result) if as_json else text(result))
    return 0


def text(result: Mapping[str, Any]) -> str:
    """Return the rows as `rtmms bench environments` prints them.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Lines.
    """
    lines = [f"{'task':16}{'runs':>6}{'steps a second':>16}{'of the rollout':>16}{'overhead':>10}{'sensors':>9}"]
    lines += [
        f"{item['task']:16}{item['runs']:6}{item['steps_s']:16.0f}{item['rollout_s']:16.0f}{item['overhead']:10.1%}"
        f"{item['sensors']:9.2f}"
        for item in result["tasks"]
    ]
    return "\n".join(lines)
