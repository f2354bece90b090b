"""Task as an environment of gymnasium, alone and as a vector of many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from rtmms.base.errors import ArgumentError, Renamed, UnknownNameError
from rtmms.gym.episodes import MAX_RUNS, MAX_SEED, Episodes, check_whole
from rtmms.gym.ids import IDS
from rtmms.gym.task import Task


def task_of(task_word: Any, reward: Callable[..., Any] | None, more: Mapping[str, Any]) -> Task:
    """Return a task: the given one, one by its name (`MantaDepth`), or one made of a robot and a reward.

    Parameters
    ----------
    task_word : Any
        Task, its class, its name, or the name of a robot.
    reward : Callable[..., Any] | None
        (seen, action, memory) -> (runs,).
    more : Mapping[str, Any]
        Further members of `Task` by name.

    Returns
    -------
    Task
        The task.

    Raises
    ------
    UnknownNameError
        The name or a member is unknown.
    ArgumentError
        It is no task, or a required member is missing.
    """
    names = [task for task, _ in IDS.values()]
    if isinstance(task_word, str) and (reward is None or task_word in names):
        from rtmms.gym import robot_tasks as tasks

        if task_word not in names:
            raise UnknownNameError(
                "task", task_word, names, "for a robot of your own give a reward, or a rtmms.gym.Task"
            )
        built: Task = getattr(tasks, task_word)()
    elif isinstance(task_word, str):
        built = Task()
        built.robot = task_word
    elif isinstance(task_word, type) and issubclass(task_word, Task):
        built = task_word()
    else:
        built = copy(task_word)  # what follows writes into it, and another environment may have the given one
    if not isinstance(built, Task):
        raise ArgumentError(f"gym: expected a rtmms.gym.Task or a robot's name, got {task_word!r:.60}")
    if reward is not None:
        built.reward = reward  # type: ignore[method-assign]
    elif type(built).reward is Task.reward and "reward" not in vars(built):
        what = f"{type(built).__name__} has no reward(seen, action, memory)"
        raise ArgumentError(f"gym: task {what}; write this method, or give reward=FUNCTION")
    for name, value in more.items():
        if name.startswith("_") or not hasattr(Task, name):
            known = [
                name for name, member in vars(Task).items()
                if not name.startswith("_") and not isinstance(member, Renamed)
            ]  # fmt: skip
            raise UnknownNameError("attribute of rtmms.gym.Task", name, known)
        if name == "parameters" and isinstance(value, Mapping):
            value = {**built.parameters, **value}
        setattr(built, name, value)
    return built


def _refuse_render(mode: str | None) -> None:
    if mode is not None:
        raise ArgumentError(f"gym: render_mode: expected None, as the environments draw nothing, got {mode!r:.60}")


def _spaces(episodes: Episodes) -> tuple[Any, Any]:
    maximum, spaces = episodes.task.max_observation, gymnasium.spaces
    return (
        spaces.Box(-maximum, maximum, (episodes.width,), np.float32),
        spaces.Box(-1.0, 1.0, (episodes.actions,), np.float32),
    )


class RobotEnv(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """Environment of one robot at one task.

    `info` has `failed` where the robot's simulation diverged: the episode ends with a reward of -1.

    Parameters
    ----------
    task : Any
        A `Task`, its class, a name of rtmms.gym.robot_tasks, or the name of a robot together with a reward.
    reward : Callable[..., Any] | None, optional
        (seen, action, memory) -> (runs,), instead of the task's own.
    sensors, randomise : str | None, Mapping[str, Sequence[float]] | None
        See rtmms.gym.episodes.Episodes.
    render_mode : str | None, optional
        None: the environments draw nothing.
    **more : Any
        Further members of `Task` by name: outputs, step_s, ended, ...
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  gymnasium's own

    def __init__(
        self, task: Any, reward: Callable[..., Any] | None = None, *, sensors: str | None = None,
        randomise: Mapping[str, Sequence[float]] | None = None, render_mode: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        _refuse_render(render_mode)
        self.render_mode = render_mode
        self.episodes = Episodes(task_of(task, reward, more), 1, None, sensors, randomise)
        self.observation_space, self.action_space = _spaces(self.episodes)
        self._episode_mask = np.ones(1, dtype=bool)

    @property
    def plant(self) -> Any:
        """The robot; between steps it may be in any state."""
        return self.episodes.plant

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; the same seed gives the same one.

        Parameters
        ----------
        seed : int | None, optional
            Seed of the random numbers.
        options : dict[str, Any] | None, optional
            Not used.

        Returns
        -------
        tuple[Any, dict[str, Any]]
            Observation, and an empty info.
        """
        check_whole("seed", seed, MAX_SEED, 0)
        super().reset(seed=seed)
        self.episodes.random[0] = self.np_random
        self.episodes.start(self._episode_mask)
        return self.episodes.observe()[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by `step_s`.

        Parameters
        ----------
        action : Any
            (actions,) from -1 to 1.

        Returns
        -------
        tuple[Any, float, bool, bool, dict[str, Any]]
            Observation, reward, ended, truncated (False), info.
        """
        values = _action(action, (self.episodes.actions,))
        observed, reward, ended, failed = self.episodes.step(values[None, :], self._episode_mask)
        info = {"failed": True} if failed[0] else {}
        return self.episodes.observe(observed)[0], float(reward[0]), bool(ended[0]), False, info


class RobotVectorEnv(VectorEnv):  # type: ignore[misc]
    """Environment of `num_envs` robots at one task, stepped at once on compiled threads.

    The bits are those of as many single environments, each with the seed after the one before.

    Parameters
    ----------
    task, reward, sensors, randomise, render_mode, **more : Any, Callable[..., Any] | None, str | None, Mapping[str,
        Sequence[float]] | None
        See `RobotEnv`.
    num_envs : int, default 1
        Number of robots.
    max_episode_steps : int | None, optional
        Steps after which an episode is truncated.
    autoreset_mode : str | AutoresetMode, default AutoresetMode.NEXT_STEP
        NEXT_STEP (a run that ended starts anew in the next step, whose action does not count) or SAME_STEP (at once;
        its last observation is in info, `final_obs`).
    threads : int | None, optional
        None: as many as there are cores, for enough robots.

    Raises
    ------
    ArgumentError
        A number or the mode is wrong.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self, task: Any, num_envs: int = 1, reward: Callable[..., Any] | None = None, *,
        max_episode_steps: int | None = None, autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int | None = None, sensors: str | None = None,
        randomise: Mapping[str, Sequence[float]] | None = None, render_mode: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ArgumentError(f"gym: num_envs: expected a whole number from 1 on, got {num_envs!r:.60}")
        check_whole("num_envs", num_envs, MAX_RUNS)
        check_whole("max_episode_steps", max_episode_steps, 1 << 62)
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError:
            mode = AutoresetMode.DISABLED
        if mode == AutoresetMode.DISABLED:
            raise ArgumentError(f"gym: autoreset_mode: expected NextStep or SameStep, got {autoreset_mode!r:.60}")
        _refuse_render(render_mode)
        self.num_envs, self.render_mode, self.mode = num_envs, render_mode, mode
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.episodes = Episodes(task_of(task, reward, more), num_envs, threads, sensors, randomise)
        self.single_observation_space, self.single_action_space = _spaces(self.episodes)
        batched = gymnasium.vector.utils.batch_space
        self.observation_space = batched(self.single_observation_space, num_envs)
        self.action_space = batched(self.single_action_space, num_envs)
        self._longest = max_episode_steps
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._over = np.zeros(num_envs, dtype=bool)
        self._seeded = False

    @property
    def plant(self) -> Any:
        """The robot that all of them share; between steps it may be in any state."""
        return self.episodes.plant

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes of all robots.

        Parameters
        ----------
        seed : int | Sequence[int | None] | None, optional
            Seed of the first, or one for each.
        options : dict[str, Any] | None, optional
            Not used.

        Returns
        -------
        tuple[Any, dict[str, Any]]
            Observations, and an empty info.

        Raises
        ------
        ArgumentError
            There are not as many seeds as robots, or one is no whole number.
        """
        if type(seed) is not bool and (isinstance(seed, (int, np.integer)) or seed is None):
            seeds: list[int | None] = [None if seed is None else int(seed) + k for k in range(self.num_envs)]
        elif isinstance(seed, (list, tuple, np.ndarray)):
            seeds = list(seed)
        else:
            raise ArgumentError(f"gym: seed: expected a whole number, or one for each run, got {seed!r:.60}")
        for item in seeds:
            check_whole("seed", item, MAX_SEED, 0)
        if len(seeds) != self.num_envs:
            raise ArgumentError(f"gym: seed: expected one for each of {self.num_envs} runs, got {len(seeds)}")
        for run, item in enumerate(seeds):
            if item is not None or not self._seeded:
                self.episodes.random[run], _ = gymnasium.utils.seeding.np_random(item)
        self._seeded = True
        self.episodes.start(np.ones(self.num_envs, dtype=bool))
        self._lengths[:], self._over[:] = 0, False
        return self.episodes.observe(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance all robots by `step_s`.

        Parameters
        ----------
        actions : Any
            (num_envs, actions) from -1 to 1.

        Returns
        -------
        tuple[Any, Any, Any, Any, dict[str, Any]]
            Observations, rewards, ended, truncated, info.
        """
        values = _action(actions, (self.num_envs, self.episodes.actions))
        if not self._seeded:
            raise ArgumentError("gym: step: expected a reset before the first step")
        active = ~self._over
        observed, reward, ended, failed = self.episodes.step(values, active)
        self._lengths += active
        self._lengths[~active] = 0
        cut = np.zeros(self.num_envs, dtype=bool)
        if self._longest is not None:
            cut = active & (self._lengths >= self._longest)
        info: dict[str, Any] = {}
        if failed.any():
            info["failed"], info["_failed"] = failed.copy(), failed.copy()
        observation, over = self.episodes.observe(observed), ended | cut
        if self.mode == AutoresetMode.NEXT_STEP:
            self._over = over
        elif over.any():
            last = np.empty(self.num_envs, dtype=object)
            for run in np.flatnonzero(over).tolist():
                last[run] = observation[run].copy()
            info["final_obs"], info["_final_obs"] = last, over.copy()
            self.episodes.start(over)
            self._lengths[over] = 0
            observation = self.episodes.observe()
        return observation, reward, ended, cut, info


def _action(values: Any, shape: tuple[int, ...]) -> Any:
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "fiub":
            raise TypeError
        result = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"gym: action: expected numbers of shape {shape}, got {values!r:.60}") from None
    if result.shape != shape or not np.isfinite(result).all():
        got = f"shape {result.shape}" if result.shape != shape else "one that is not finite"
        raise ArgumentError(f"gym: action: expected finite numbers of shape {shape}, got {got}")
    return result
