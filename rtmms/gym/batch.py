"""States of one plant side by side, stepped at once: on forks and threads of a plant that has compiled steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.analysis.fork_pool import ForkPool, PackedFork
from rtmms.analysis.run_batch import batch_of
from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.processes import core_count
from rtmms.plant.protocol import Plant

Array = npt.NDArray[np.float64]


Mask = npt.NDArray[np.bool_]
THREADED = 4
"""Runs from which on several threads are used."""


class Batch(Protocol):
    """Runs of a plant, each with a state of its own."""

    def keep(self, run: int, parameters: Mapping[str, Any]) -> None:
        """Store the plant's present state as that of a run.

        Parameters
        ----------
        run : int
            Index of the run.
        parameters : Mapping[str, Any]
            Parameters that the plant's `set` received for it.
        """

    def advance(self, commands: Array, steps: int, active: Mask) -> Mask:
        """Step the active runs.

        Parameters
        ----------
        commands : Array
            (runs, steps or 1, n) commands.
        steps : int
            Number of steps.
        active : Mask
            (runs,) mask of the active runs.

        Returns
        -------
        Mask
            (runs,) whether a run failed.
        """

    def see(self, names: tuple[str, ...]) -> dict[str, Array]:
        """Return outputs at the present states, copies.

        Parameters
        ----------
        names : tuple[str, ...]
            Names of the outputs.

        Returns
        -------
        dict[str, Array]
            (runs, *shape) by name.
        """


def batch(plant: Plant, runs: int, threads: int | None) -> Batch:
    """Return a batch of a plant that is reserved for it.

    Parameters
    ----------
    plant : Plant
        The plant.
    runs : int
        Number of runs.
    threads : int | None
        None: as many as there are cores, for enough runs.

    Returns
    -------
    Batch
        On forks where the plant has them.
    """
    count = max(1, min(runs, threads or core_count()) if runs >= THREADED or threads else 1)
    pool = ForkPool(plant, count, "environments")
    return _ForkedBatch(plant, runs, pool) if pool.has_forks() else _Plain(plant, runs)


class _ForkedBatch:
    """Batch on forks, one for each thread.

    A run with parameters of its own has a fork of its own, which any thread may step.
    """

    def __init__(self, plant: Any, runs: int, pool: ForkPool) -> None:
        self.plant, self.runs, self.pool = plant, runs, pool
        self.shape = {channel.name: channel.shape for channel in plant.outputs}
        fork = pool.fork(0).fork
        self.places = dict(fork.places)
        self.states, self.counts = np.zeros((runs, fork.state.size)), np.zeros(runs, dtype=np.int64)
        self.order, self.run_forks = np.arange(runs), dict[int, PackedFork]()
        self.parameters: dict[int, Mapping[str, Any]] = {}
        self.in_plant: Mapping[str, Any] = {}  # the parameters that its `set` received last
        self.batch = batch_of(
            self.states, self.counts, np.zeros((runs, 1, len(plant.actuators))), plant.dt, ends=self.states
        )

    def keep(self, run: int, parameters: Mapping[str, Any]) -> None:
        self.states[run], self.counts[run] = self.plant.present()
        if parameters:
            fork = PackedFork(self.plant, self.plant.fork())
            if not self.run_forks:
                self.batch = self.batch._replace(run_forks=np.zeros((self.runs, len(fork.row())), dtype=np.int64))
            self.run_forks[run], self.batch.run_forks[run] = fork, fork.row()
            self.parameters[run] = self.in_plant = parameters

    def advance(self, commands: Array, steps: int, active: Mask) -> Mask:
        order = self.order if active.all() else np.flatnonzero(active)
        self.batch.status[:] = 0
        batch = self.batch._replace(commands=commands, steps=steps)
        self.pool.advance(batch, self.pool.parts(order, steps), run_forks=self.run_forks)
        failed: Mask = self.batch.status != 0
        self.counts[active & ~failed] += steps
        return failed

    def see(self, names: tuple[str, ...]) -> dict[str, Array]:
        result = {}
        asked = [name for name in names if name not in self.places]
        for name in names:
            if name in self.places:
                begin, length = self.places[name]
                result[name] = self.states[:, begin : begin + length].reshape(self.runs, *self.shape[name]).copy()
        if asked:
            columns: dict[str, list[Array]] = {name: [] for name in asked}
            before = self.plant.present()
            for run, (state, count) in enumerate(zip(self.states, self.counts.tolist(), strict=True)):
                run_parameters = self.parameters.get(run, self.in_plant)
                if run_parameters is not self.in_plant:
                    self.plant.set(**run_parameters)
                    self.in_plant = run_parameters
                self.plant.put(state, count)
                outputs = self.plant.observe()
                for name in asked:
                    columns[name].append(np.asarray(outputs[name], dtype=np.float64))
            self.plant.put(*before)
            result |= {name: np.array(values) for name, values in columns.items()}
        return result


class _Plain:
    """Batch by `step`, `snapshot` and `restore`: plants in plain Python, FMUs, robots that observe one another."""

    def __init__(self, plant: Plant, runs: int) -> None:
        self.plant, self.runs = plant, runs
        self.states: list[bytes] = [b""] * runs
        self.observations: list[dict[str, Array]] = [{} for _ in range(runs)]

    def keep(self, run: int, parameters: Mapping[str, Any]) -> None:
        if parameters:
            raise ModelError(
                "gym: randomise: expected a plant with compiled steps, got one with steps in Python, whose "
                "runs share their parameters"
            )
        self.states[run], self.observations[run] = self.plant.snapshot(), self._observed()

    def _observed(self) -> dict[str, Array]:
        return {name: np.array(value, dtype=np.float64) for name, value in self.plant.observe().items()}

    def advance(self, commands: Array, steps: int, active: Mask) -> Mask:
        failed = np.zeros(self.runs, dtype=bool)
        for run in np.flatnonzero(active).tolist():
            self.plant.restore(self.states[run])
            rows = commands[run]
            try:
                for k in range(steps):
                    self.plant.step(rows[k if len(rows) > 1 else 0].copy())
            except DivergedError:
                failed[run] = True
                continue
            self.states[run], self.observations[run] = self.plant.snapshot(), self._observed()
        return failed

    def see(self, names: tuple[str, ...]) -> dict[str, Array]:
        return {name: np.array([observation[name] for observation in self.observations]) for name in names}
