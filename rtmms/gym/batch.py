"""States of one plant side by side, stepped at once: on forks and threads of a plant that has compiled steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.addresses import ARGUMENTS
from rtmms.errors import DivergedError, ModelError
from rtmms.gym.kernel import WORDS, advance
from rtmms.plant import Fork, Forking, Plant

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
THREADED = 4
"""Runs from which on threads pay."""


class Batch(Protocol):
    """Runs of a plant, each with a state of its own."""

    def keep(self, run: int, parameters: Mapping[str, Any]) -> None:
        """The plant's present state is that of a run; parameters: what `set` gave the plant for it."""

    def advance(self, commands: Array, steps: int, active: Mask) -> Mask:
        """Steps with commands (runs, steps or 1, n) of the runs that are active; (runs,) which of them failed."""

    def see(self, names: tuple[str, ...]) -> dict[str, Array]:
        """Outputs (runs, *shape) at the present states, copies."""


def batch(plant: Plant, runs: int, threads: int | None) -> Batch:
    """Of a plant that is kept for it."""
    fork = plant.fork() if isinstance(plant, Forking) else None
    return _Plain(plant, runs) if fork is None else _Forked(plant, runs, fork, threads)


class _Forked:
    """On forks. A run with parameters of its own has a fork of its own, the others share one of their thread."""

    def __init__(self, plant: Any, runs: int, fork: Fork, threads: int | None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = max(1, min(runs, cores if threads is None else threads) if runs >= THREADED or threads else 1)
        self.plant, self.runs = plant, runs
        self.shape = {channel.name: channel.shape for channel in plant.outputs}
        self.places = dict(fork.places)
        self.states = np.zeros((runs, fork.state.size))
        self.counts, self.status = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        ends = np.linspace(0, runs, count + 1).astype(int).tolist()
        self.parts = list(pairwise(ends))
        self.forks: list[Fork] = []
        self.own: list[tuple[Fork, Any]] = []
        self.table = np.zeros((runs, WORDS), dtype=np.int64)
        for k, (begin, end) in enumerate(self.parts):
            shared = fork if k == 0 else plant.fork()
            words = self._row(shared)
            self.own.append((shared, words))
            for run in range(begin, end):
                self.forks.append(shared)
                self._enter(run, shared, words)
        self.usual = list(self.own)
        self.words: list[Any] = [None] * runs
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="environments") if count > 1 else None

    def _row(self, fork: Fork) -> Any:
        words = np.zeros(ARGUMENTS, dtype=np.int64)
        words[: len(fork.entry.arguments)] = fork.entry.arguments
        return words

    def _enter(self, run: int, fork: Fork, words: Any) -> None:
        self.table[run] = (
            fork.entry.function, words.ctypes.data, fork.entry.command, fork.start.ctypes.data, fork.state.ctypes.data
        )  # fmt: skip

    def keep(self, run: int, parameters: Mapping[str, Any]) -> None:
        self.states[run], self.counts[run] = self.plant.present()
        if parameters:
            fork = self.plant.fork()
            self.forks[run], self.words[run] = fork, self._row(fork)
            self._enter(run, fork, self.words[run])

    def advance(self, commands: Array, steps: int, active: Mask) -> Mask:
        if self.pool is None:
            self._part(0, commands, steps, active)
        else:
            going = [self.pool.submit(self._part, k, commands, steps, active) for k in range(1, len(self.parts))]
            try:
                self._part(0, commands, steps, active)
            finally:
                for one in going:
                    one.result()
        failed: Mask = self.status != 0
        return failed

    def _part(self, k: int, commands: Array, steps: int, active: Mask) -> None:
        begin, end = self.parts[k]
        while begin < end:
            failed = int(
                advance(
                    self.table, commands, steps, self.states, self.counts, active, begin, end, self.plant.dt,
                    self.status,
                )
            )  # fmt: skip
            if failed < 0:
                return
            self.forks[failed].clear()
            begin = failed + 1

    def see(self, names: tuple[str, ...]) -> dict[str, Array]:
        found = {}
        asked = [name for name in names if name not in self.places]
        for name in names:
            if name in self.places:
                begin, length = self.places[name]
                found[name] = self.states[:, begin : begin + length].reshape(self.runs, *self.shape[name]).copy()
        if asked:
            told: dict[str, list[Array]] = {name: [] for name in asked}
            before = self.plant.present()
            for state, count in zip(self.states, self.counts.tolist(), strict=True):
                self.plant.put(state, count)
                seen = self.plant.observe()
                for name in asked:
                    told[name].append(np.asarray(seen[name], dtype=np.float64))
            self.plant.put(*before)
            found |= {name: np.array(values) for name, values in told.items()}
        return found


class _Plain:
    """By `step`, `snapshot` and `restore`: sensors, plants in plain Python, FMUs."""

    def __init__(self, plant: Plant, runs: int) -> None:
        self.plant, self.runs = plant, runs
        self.states: list[bytes] = [b""] * runs
        self.seen: list[dict[str, Array]] = [{} for _ in range(runs)]

    def keep(self, run: int, parameters: Mapping[str, Any]) -> None:
        if parameters:
            raise ModelError(
                "gym: randomise: expected a plant with compiled steps, and without sensors; this one is stepped by "
                "Python alone"
            )
        self.states[run], self.seen[run] = self.plant.snapshot(), self._told()

    def _told(self) -> dict[str, Array]:
        return {name: np.array(value, dtype=np.float64) for name, value in self.plant.observe().items()}

    def advance(self, commands: Array, steps: int, active: Mask) -> Mask:
        failed = np.zeros(self.runs, dtype=bool)
        for run in np.flatnonzero(active).tolist():
            self.plant.restore(self.states[run])
            rows = commands[run]
            try:
                for k in range(steps):
                    self.plant.step(rows[k if len(rows) > 1 else 0])
            except DivergedError:
                failed[run] = True
                continue
            self.states[run], self.seen[run] = self.plant.snapshot(), self._told()
        return failed

    def see(self, names: tuple[str, ...]) -> dict[str, Array]:
        return {name: np.array([seen[name] for seen in self.seen]) for name in names}
