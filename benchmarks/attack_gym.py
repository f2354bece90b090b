"""Numbers, shapes and counts that no learner means, for `rtmms bench attacks`: into environments of gymnasium."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .attack_arguments import _nothing, _refused
from .attack_cases import Case

NAN, INF = float("nan"), float("inf")
NUMBERS: tuple[Any, ...] = (0, -1, 2**31, 2**70, NAN, INF, -INF, 0.5, 1e-300, 1e300, "x", "", None, True, [1], {}, b"x")


def gym(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """Into RobotEnv and RobotVectorEnv: what makes one, resets one, and steps one."""
    tries = _tries()
    chance.shuffle(tries)
    for name, act in tries[:count]:
        yield Case(name, _nothing, partial(_refused, act))


def _tries() -> list[tuple[str, Callable[[], Any]]]:
    found: list[tuple[str, Callable[[], Any]]] = []
    for number in NUMBERS:
        told = f"{number!r:.20}"
        found += [
            (f"num_envs {told}", partial(_vector, num_envs=number)),
            (f"threads {told}", partial(_vector, threads=number)),
            (f"max_episode_steps {told}", partial(_vector, max_episode_steps=number)),
            (f"autoreset_mode {told}", partial(_vector, autoreset_mode=number)),
            (f"seed {told}", partial(_vector, seed=number)), (f"one seed {told}", partial(_one, seed=number)),
            (f"seeds {told}", partial(_vector, seed=[number, number])),
            (f"step_s {told}", partial(_one, step_s=number)), (f"dt {told}", partial(_one, dt=number)),
            (f"most {told}", partial(_one, most=number)), (f"actions {told}", partial(_one, actions=number)),
            (f"outputs {told}", partial(_one, outputs=number)), (f"output {told}", partial(_one, outputs=(number,))),
            (f"parameters {told}", partial(_one, parameters=number)),
            (f"mass {told}", partial(_one, parameters={"mass_kg": number})),
            (f"robot {told}", partial(_one, robot=number)), (f"task {told}", partial(_one, task=number)),
            (f"sensors {told}", partial(_one, sensors=number)), (f"randomise {told}", partial(_one, randomise=number)),
            (f"range {told}", partial(_one, randomise={"mass_kg": number})),
            (f"ranges {told}", partial(_one, randomise={"mass_kg": (number, number)})),
            (f"reward {told}", partial(_one, reward=lambda seen, action, memory, n=number: n)),
            (f"rewards {told}", partial(_vector, reward=lambda seen, action, memory, n=number: [n])),
            (f"no function {told}", partial(_one, reward=number)),
            (f"ended {told}", partial(_one, ended=lambda seen, memory, n=number: n)),
            (f"observation {told}", partial(_one, observation=lambda seen, memory, n=number: n)),
            (f"commands {told}", partial(_one, commands=lambda action, memory, steps, dt, n=number: n)),
            (f"start {told}", partial(_one, start=lambda random, plant, n=number: n)),
            (f"memory {told}", partial(_one, start=lambda random, plant, n=number: {"x": n})),
            (f"action {told}", partial(_one, action=number)),
            (f"actions of many {told}", partial(_vector, action=number)),
        ]  # fmt: skip
    arrays: dict[str, Any] = {
        "nan": np.full(4, NAN), "inf": np.full(4, INF), "wide": np.ones(5), "empty": np.ones(0),
        "text": np.full(4, "x"), "object": np.full(4, None), "complex": np.ones(4) + 1j,
        "huge": np.full(4, 1e300), "ints": np.ones(4, np.int8),
        "masked": np.ma.array(np.ones(4), mask=True), "date": np.zeros(4, "M8[s]"), "deep": np.ones((1, 1, 4)),
        "bool": np.ones(4, bool), "view": np.broadcast_to(1.0, (10**6, 10**6)), "swapped": np.ones(4, ">f8"),
    }  # fmt: skip
    for name, array in arrays.items():
        many = np.stack([array] * 2) if array.size < 100 else array
        found += [(f"action {name}", partial(_one, action=array)), (f"actions {name}", partial(_vector, action=many)),
                  (f"reward {name}", partial(_vector, reward=lambda seen, action, memory, a=array: a)),
                  (f"commands {name}", partial(_one, commands=lambda action, memory, steps, dt, a=array: a)),
                  (f"observation {name}", partial(_one, observation=lambda seen, memory, a=array: a)),
                  (f"ended {name}", partial(_vector, ended=lambda seen, memory, a=array: a))]  # fmt: skip
    for count in (10**4, 10**9, 2**62):
        found.append((f"num_envs {count}", partial(_vector, num_envs=count)))
    return found


def _reward(seen: Any, action: Any, memory: Any) -> Any:
    return -np.abs(seen["position"][:, 2])


def _one(
    task: Any = "quadrotor", reward: Any = _reward, seed: Any = 0, action: Any = None, robot: Any = "", **more: Any
) -> None:
    from rtmms.gym import RobotEnv

    env = RobotEnv(robot if robot != "" else task, reward, **more)
    _reset(env, seed)
    for _ in range(3):
        env.step(np.zeros(env.action_space.shape) if action is None else action)
    _sound(env.step(np.zeros(env.action_space.shape)))


def _vector(num_envs: Any = 2, reward: Any = _reward, seed: Any = 0, action: Any = None, **more: Any) -> None:
    from rtmms.gym import RobotVectorEnv

    env = RobotVectorEnv("quadrotor", num_envs, reward, **more)
    _reset(env, seed)
    for _ in range(3):
        env.step(np.zeros(env.action_space.shape) if action is None else action)
    _sound(env.step(np.zeros(env.action_space.shape)))


def _reset(env: Any, seed: Any) -> None:
    from gymnasium.error import Error

    try:
        env.reset(seed=seed)
    except Error as fault:  # gymnasium's own word for a seed that is none
        raise ValueError(str(fault)) from None


def _sound(told: tuple[Any, ...]) -> None:
    """What a learner gets is of the form that gymnasium promises: else this raises what no caller may see."""
    seen, reward = told[0], told[1]
    if not (np.isfinite(seen).all() and np.isfinite(np.asarray(reward, dtype=np.float64)).all()):
        raise RuntimeError("the environment handed out numbers that are not finite")
