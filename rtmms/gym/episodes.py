"""Episodes of a task side by side: the common part of a single environment and a vector of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import TRUTH
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.gym.batch import batch
from rtmms.gym.task import Array, Mask, Memory, Task
from rtmms.plant.description import describe_plant
from rtmms.plant.loading import load
from rtmms.plant.protocol import Plant
from rtmms.plant.step_advice import known_step

MAX_STEPS = 1_000_000
"""Largest number of the plant's steps in a step of an environment."""
MAX_SEED = (1 << 128) - 1
MAX_RUNS = 1_000_000
MAX_THREADS = 4096
MAX_ACTIONS = 10_000


def check_whole(place: str, value: Any, maximum: int, least: int = 1) -> None:
    """Check that a value is None or a whole number in a range.

    Parameters
    ----------
    place : str
        Name of the argument, for messages.
    value : Any
        The value.
    maximum, least : int
        Limits.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    if value is not None and (type(value) is bool or not isinstance(value, (int, np.integer))):
        raise ArgumentError(f"gym: {place}: expected a whole number, got {value!r:.60}")
    if value is not None and not least <= value <= maximum:
        raise ArgumentError(f"gym: {place}: expected a number from {least} to {maximum}, got {value!r:.60}")


def _refuse_members(task: Task) -> None:
    """Raise ArgumentError where a member of the task has another type than that of `Task`."""
    value: Any
    for name in ("start", "commands", "observation", "sensor_observation", "reward", "ended", "prepare"):
        value = getattr(task, name)
        if not callable(value):
            raise ArgumentError(f"gym: {name}: expected a function, got {value!r:.60}")
    for name, maximum in (("step_s", 1e6), ("max_observation", 1e38)):
        value = getattr(task, name)
        if type(value) is bool or not isinstance(value, (int, float, np.floating)) or not 0.0 < value <= maximum:
            raise ArgumentError(f"gym: {name}: expected a number > 0 and <= {maximum:g}, got {value!r:.60}")
    check_whole("actions", task.actions, MAX_ACTIONS, 0)
    value = task.parameters
    if not isinstance(value, Mapping):
        raise ArgumentError(f"gym: parameters: expected a mapping, got {value!r:.60}")
    for value in task.parameters:
        if not isinstance(value, str) or value in ("robot", "dt"):
            more = f"; give {value}= beside it" if value in ("robot", "dt") else ""
            raise ArgumentError(f"gym: parameters: expected names of the robot's parameters, got {value!r:.60}{more}")
    for value in (task.robot, *(task.outputs if isinstance(task.outputs, (tuple, list)) else (task.outputs,))):
        if not isinstance(value, str):
            raise ArgumentError(f"gym: robot, outputs: expected names, got {value!r:.60}")


class Episodes:
    """Episodes of a task on one plant.

    Parameters
    ----------
    task : Task
        The task.
    runs : int
        Number of episodes.
    threads : int | None, optional
        None: as many as there are cores, for enough runs.
    sensors : str | None, optional
        Profile ('typical', a file): the agent observes the sensors' measurements; the reward uses the truth.
    randomise : Mapping[str, Sequence[float]] | None, optional
        {parameter: (lowest, highest)} of `plant.settable`, drawn anew for each episode.

    Raises
    ------
    ArgumentError, ModelError, UnknownNameError
        The task, or an argument, does not fit the plant.
    """

    def __init__(
        self, task: Task, runs: int, threads: int | None = None, sensors: str | None = None,
        randomise: Mapping[str, Sequence[float]] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(task, Task):
            raise ArgumentError(f"gym: expected a rtmms.gym.Task, got {task!r:.60}")
        _refuse_members(task)
        profile: object = sensors
        if profile is not None and not isinstance(profile, str):
            raise ArgumentError(f"gym: sensors: expected a profile's name or a file, got {sensors!r:.60}")
        check_whole("threads", threads, MAX_THREADS)
        plant = load(task.robot, dt=task.dt, **task.parameters)
        self.prefix, self.measured = "", tuple[str, ...]()
        if sensors is not None:
            from rtmms.sensing import read_profile, seen_through

            plant = seen_through(plant, read_profile(sensors, plant))
        if describe_plant(plant).truth is not None:
            self.prefix = TRUTH
            self.measured = tuple(output.name for output in plant.outputs if not output.name.startswith(TRUTH))
        self.task, self.plant, self.runs = task, plant, runs
        known = known_step(plant, (f"task {type(task).__name__}",))
        if known is not None and known.warning:
            warnings.warn(f"gym: {task.robot}: {known.warning}", RuntimeWarning, stacklevel=4)
        steps = task.step_s / plant.dt
        self.steps = round(steps)
        if not 1 <= self.steps <= MAX_STEPS or abs(self.steps - steps) > 1e-6 * steps:
            raise ModelError(
                f"gym: step_s: expected a whole number of the plant's steps of {plant.dt:g} s, at most {MAX_STEPS}, "
                f"got {task.step_s:g} s"
            )
        there = {channel.name for channel in plant.outputs}
        for name in task.outputs:
            if self.prefix + name not in there:
                raise UnknownNameError("output", name, {item.removeprefix(self.prefix) for item in there})
        self.names = tuple(self.prefix + name for name in task.outputs)
        self.randomise = _ranges(plant, randomise or {})
        task.prepare(plant)
        try:
            self.batch = batch(plant, runs, threads)
        except MemoryError:
            raise ArgumentError(
                f"gym: num_envs: {runs} runs of {task.robot} need more memory than there is; give fewer"
            ) from None
        self.actions = task.actions or len(plant.actuators)
        self.shapes = ((runs, self.steps, len(plant.actuators)), (runs, 1, len(plant.actuators)))
        self.random: list[np.random.Generator] = [np.random.default_rng() for _ in range(runs)]
        self.memory: Memory = {}
        self.width = self._first()

    def _first(self) -> int:
        """Return the length of an observation, from an extra episode."""
        before, self.random[0] = self.random[0], np.random.default_rng(0)
        self.start(np.arange(self.runs) == 0)
        for run in range(1, self.runs):
            self.batch.keep(run, {})
        for value in self.memory.values():
            value[:] = value[0]
        width = int(self.observe().shape[1])
        self.random[0] = before
        return width

    def start(self, which: Mask) -> None:
        """Start new episodes of some runs.

        Parameters
        ----------
        which : Mask
            (runs,) mask of these runs.

        Raises
        ------
        ArgumentError
            The task's `start` returns no mapping.
        """
        plant: Any = self.plant
        for run in np.flatnonzero(which).tolist():
            random = self.random[run]
            values = {name: float(random.uniform(low, high)) for name, (low, high) in self.randomise.items()}
            if values:
                plant.set(**values)
            plant.reset(seed=int(random.integers(1 << 31)))
            truth = plant.truth if self.prefix else plant
            remembered = self.task.start(random, truth)
            if not isinstance(remembered, Mapping):
                raise ArgumentError(f"gym: Task.start: expected a mapping of names to arrays, got {remembered!r:.60}")
            self.batch.keep(run, values)
            for name, value in remembered.items():
                known = self.memory.get(name)
                array = _numbers(f"start: {name!r:.40}", value, None if known is None else known.shape[1:])
                if known is None:
                    known = self.memory[name] = np.zeros((self.runs, *array.shape))
                known[run] = array

    def see(self) -> dict[str, Array]:
        """Return the outputs that the task's reward uses: the truth, by its own names.

        Returns
        -------
        dict[str, Array]
            (runs, *shape) by name.
        """
        result = self.batch.see(self.names)
        return {name.removeprefix(self.prefix): value for name, value in result.items()}

    def observe(self, observed: dict[str, Array] | None = None) -> npt.NDArray[np.float32]:
        """Return the observations.

        Parameters
        ----------
        observed : dict[str, Array] | None, optional
            Outputs from `see`, if they are known.

        Returns
        -------
        npt.NDArray[np.float32]
            (runs, k), clipped to -most and most.

        Raises
        ------
        ArgumentError
            The task's observation has another shape.
        """
        if self.measured:
            place = "sensor_observation"
            measured = {name: np.nan_to_num(value) for name, value in self.batch.see(self.measured).items()}
            observation = np.asarray(self.task.sensor_observation(measured, self.memory))
        else:
            place = "observation"
            observation = np.asarray(self.task.observation(self.see() if observed is None else observed, self.memory))
        width = getattr(self, "width", None)
        shape = observation.shape
        if len(shape) != 2 or shape[0] != self.runs or shape[1] != (shape[1] if width is None else width):
            expected = f"({self.runs}, {'k' if width is None else width})"
            raise ArgumentError(f"gym: {place}: expected numbers of shape {expected}, got {shape}")
        observation = _numbers(place, observation)
        return np.clip(observation, -self.task.max_observation, self.task.max_observation).astype(np.float32)

    def step(self, action: Array, active: Mask) -> tuple[dict[str, Array], Array, Mask, Mask]:
        """Step the active runs; the others start a new episode.

        Parameters
        ----------
        action : Array
            (runs, actions) from -1 to 1.
        active : Mask
            (runs,) mask of the active runs.

        Returns
        -------
        tuple[dict[str, Array], Array, Mask, Mask]
            Outputs, reward, ended, failed.

        Raises
        ------
        ArgumentError
            The task's commands or `ended` have another shape.
        """
        values = self.task.commands(np.clip(action, -1.0, 1.0), self.memory, self.steps, self.plant.dt)
        commands = np.ascontiguousarray(_numbers("commands", values))
        if commands.shape not in self.shapes:
            raise ArgumentError(f"gym: commands: expected numbers of shape {self.shapes[0]}, got {commands.shape}")
        if not active.all():
            self.start(~active)
        failed = self.batch.advance(commands, self.steps, active) & active
        observed = self.see()
        worth = _numbers("reward", self.task.reward(observed, action, self.memory), (self.runs,), failed)
        over = np.asarray(self.task.ended(observed, self.memory))
        if over.shape != (self.runs,) or over.dtype != np.bool_:
            raise ArgumentError(
                f"gym: Task.ended: expected bool of shape ({self.runs},), got {over.dtype} of shape {over.shape}"
            )
        ended = (over | failed) & active
        return observed, np.where(failed, -1.0, np.where(active, worth, 0.0)), ended, failed


def _numbers(
    place: str, values: Any, shape: tuple[int, ...] | None = None, but: Mask | None = None
) -> npt.NDArray[np.float64]:
    """Return the result of a task's function as float64.

    It raises ArgumentError where the result is something else, or is not finite in other runs than `but`.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"gym: {place}: expected numbers, got {values!r:.60}")
    if shape is not None and array.shape != shape:
        raise ArgumentError(f"gym: {place}: expected numbers of shape {shape}, got {array.shape}")
    result = np.asarray(array, dtype=np.float64)
    sound = np.isfinite(result)
    if not sound.all() and (but is None or not (sound | but).all()):
        raise ArgumentError(f"gym: {place}: expected finite numbers, got {float(result[~sound].flat[0])}")
    return result


def _ranges(plant: Plant, values: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    result = {}
    if not isinstance(values, Mapping):
        raise ArgumentError(f"gym: randomise: expected {{parameter: (lowest, highest)}}, got {values!r:.60}")
    settable = describe_plant(plant).settable or ()
    for name, pair in values.items():
        if name not in settable:
            raise UnknownNameError("parameter that can change from episode to episode", name, settable)
        try:
            low, high = (float(item) for item in pair)
        except (TypeError, ValueError):
            raise ArgumentError(f"gym: randomise: {name}: expected (lowest, highest), got {pair!r:.60}") from None
        if not (np.isfinite([low, high]).all() and low <= high):
            raise ArgumentError(f"gym: randomise: {name}: expected lowest <= highest, finite, got {pair!r:.60}")
        result[name] = (low, high)
    return result
