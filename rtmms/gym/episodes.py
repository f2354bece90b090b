"""Episodes of a task side by side: what a single environment and a vector of them have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.contract import TRUTH
from rtmms.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.gym.batch import batch
from rtmms.gym.task import Array, Mask, Memory, Task
from rtmms.plant import HasTruth, Plant, Tunable, load


class Episodes:
    """`runs` of them on one plant.

    sensors    a profile ('typical', a file): the plant is seen through sensors, and the agent sees what they tell; what
               it is worth is judged by the truth
    randomise  {parameter: (lowest, highest)} of `plant.settable`, drawn anew for each episode
    """

    def __init__(
        self, task: Task, runs: int, threads: int | None = None, sensors: str | None = None,
        randomise: Mapping[str, Sequence[float]] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(task, Task):
            raise ArgumentError(f"gym: expected a rtmms.gym.Task, got {task!r:.60}")
        plant = load(task.robot, dt=task.dt, **task.parameters)
        self.prefix, self.told = "", tuple[str, ...]()
        if sensors is not None:
            from rtmms.sensing import read_profile, seen_through

            plant = seen_through(plant, read_profile(sensors, plant))
        if isinstance(plant, HasTruth):
            self.prefix = TRUTH
            self.told = tuple(one.name for one in plant.outputs if not one.name.startswith(TRUTH))
        self.task, self.plant, self.runs = task, plant, runs
        steps = task.step_s / plant.dt
        self.steps = round(steps)
        if self.steps < 1 or abs(self.steps - steps) > 1e-6 * steps:
            raise ModelError(
                f"gym: step_s: expected a whole number of the plant's steps of {plant.dt:g} s, got {task.step_s:g} s"
            )
        known = {channel.name for channel in plant.outputs}
        for name in task.outputs:
            if self.prefix + name not in known:
                raise UnknownNameError("output", name, {one.removeprefix(self.prefix) for one in known})
        self.names = tuple(self.prefix + name for name in task.outputs)
        self.randomise = _ranges(plant, randomise or {})
        task.prepare(plant)
        self.batch = batch(plant, runs, threads)
        self.actions = task.actions or len(plant.actuators)
        self.random: list[np.random.Generator] = [np.random.default_rng() for _ in range(runs)]
        self.memory: Memory = {}
        self.width = self._first()

    def _first(self) -> int:
        """The length of an observation, from an episode that nobody sees."""
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
        """New episodes of those runs."""
        plant: Any = self.plant
        for run in np.flatnonzero(which).tolist():
            random = self.random[run]
            values = {name: float(random.uniform(low, high)) for name, (low, high) in self.randomise.items()}
            if values:
                plant.set(**values)
            plant.reset(seed=int(random.integers(1 << 31)))
            truth = plant.truth if self.prefix else plant
            told = self.task.start(random, truth)
            self.batch.keep(run, values)
            for name, value in told.items():
                array = np.asarray(value, dtype=np.float64)
                if name not in self.memory:
                    self.memory[name] = np.zeros((self.runs, *array.shape))
                self.memory[name][run] = array

    def see(self) -> dict[str, Array]:
        """What the task judges by: the truth, by its own names."""
        found = self.batch.see(self.names)
        return {name.removeprefix(self.prefix): value for name, value in found.items()}

    def observe(self, seen: dict[str, Array] | None = None) -> npt.NDArray[np.float32]:
        """(runs, k)"""
        told = self.task.observation(self.see() if seen is None else seen, self.memory)
        if self.told:
            parts = [value.reshape(self.runs, -1) for value in self.batch.see(self.told).values()]
            parts += [value.reshape(self.runs, -1) for _, value in sorted(self.memory.items())]
            told = np.nan_to_num(np.concatenate(parts, axis=1))
        return np.clip(told, -self.task.most, self.task.most).astype(np.float32)

    def step(self, action: Array, active: Mask) -> tuple[dict[str, Array], Array, Mask, Mask]:
        """(seen, reward, ended, failed) of the runs that are active; the others start a new episode."""
        commands = np.ascontiguousarray(
            self.task.commands(np.clip(action, -1.0, 1.0), self.memory, self.steps, self.plant.dt)
        )
        if not active.all():
            self.start(~active)
        failed = self.batch.advance(commands, self.steps, active) & active
        seen = self.see()
        reward = np.where(active, self.task.reward(seen, action, self.memory), 0.0)
        ended = (self.task.ended(seen, self.memory) | failed) & active
        return seen, np.where(failed, -1.0, reward), ended, failed


def _ranges(plant: Plant, given: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, pair in given.items():
        if not isinstance(plant, Tunable) or name not in plant.settable:
            settable = plant.settable if isinstance(plant, Tunable) else ()
            raise UnknownNameError("parameter that can change from episode to episode", name, settable)
        try:
            low, high = (float(one) for one in pair)
        except (TypeError, ValueError):
            raise ArgumentError(f"gym: randomise: {name}: expected (lowest, highest), got {pair!r:.60}") from None
        if not (np.isfinite([low, high]).all() and low <= high):
            raise ArgumentError(f"gym: randomise: {name}: expected lowest <= highest, finite, got {pair!r:.60}")
        found[name] = (low, high)
    return found
