"""States of one plant side by side, stepped at once: on forks and threads of a plant that has compiled steps."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numba import carray

from rtmms.analysis.rollouts import roll
from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.jit import kernel
from rtmms.base.memory import ARGUMENTS, numbers_at
from rtmms.plant.protocol import Fork, Forking, Plant

Array = npt.NDArray[np.float64]


# One step of many environments, without Python (rtmms.gym.batch).


FUNCTION, ARGUMENTS_AT, COMMAND_AT, START_AT, STATE_AT = range(5)
WORDS = 5
"""Of the fork that a run is stepped on."""


@kernel
def advance(
    forks: Any, commands: Any, steps: int, states: Any, counts: Any, active: Any, begin: int, end: int, dt: float,
    status: Any,
) -> int:  # fmt: skip
    """Steps of runs begin to end, each from its own state, which is moved on where all went well.

    forks     (runs, WORDS) int64;  commands (runs, steps or 1, n)
    states    (runs, w);  counts (runs,) int64 steps since the reset
    active    (runs,) bool: the others stay;  status (runs,) written: 0, or what the step that failed returned
    Returns the run that failed, whose fork's scratch must be cleared before the next; -1 when all are done.
    """
    width = states.shape[1]
    places, told = np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64)
    out, kept = np.zeros((0, 0)), np.zeros((0, 0))
    stop, done = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for run in range(begin, end):
        status[run] = 0
        if not active[run]:
            continue
        fork = forks[run]
        state = carray(numbers_at(fork[STATE_AT]), (width,))
        own = states[run]
        for i in range(width):
            state[i] = own[i]
        found = roll(
            fork[FUNCTION], fork[ARGUMENTS_AT], fork[COMMAND_AT], commands[run], steps, state, fork[START_AT], dt,
            counts[run], 1, places, told, 0, 0, out, kept, stop, done,
        )  # fmt: skip
        status[run] = found
        if found != 0:
            return run
        for i in range(width):
            own[i] = state[i]
        counts[run] += steps
    return -1


Mask = npt.NDArray[np.bool_]
THREADED = 4
"""Runs from which on threads pay."""
PARTS = 4
"""In which the runs of a thread are taken up."""


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
    """On forks, one for each thread. A run with parameters of its own has a fork of its own, which any thread may step.

    A thread that is done with some runs takes the next ones, so that none waits for a slower one."""

    def __init__(self, plant: Any, runs: int, fork: Fork, threads: int | None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = max(1, min(runs, cores if threads is None else threads) if runs >= THREADED or threads else 1)
        self.plant, self.runs, self.threads = plant, runs, count
        self.shape = {channel.name: channel.shape for channel in plant.outputs}
        self.places = dict(fork.places)
        self.states = np.zeros((runs, fork.state.size))
        self.counts, self.status = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        size = runs if count == 1 else max(1, runs // (PARTS * count))
        self.parts = [(begin, min(begin + size, runs)) for begin in range(0, runs, size)]
        self.shared = [fork, *(plant.fork() for _ in range(count - 1))]
        self.own: list[Fork | None] = [None] * runs
        self.words = [self._words(one) for one in self.shared]
        self.own_words: list[Any] = [None] * runs
        self.table = np.zeros((count, runs, WORDS), dtype=np.int64)
        for k, one in enumerate(self.shared):
            self.table[k] = self._entered(one, self.words[k])
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="environments") if count > 1 else None

    def _words(self, fork: Fork) -> Any:
        words = np.zeros(ARGUMENTS, dtype=np.int64)
        words[: len(fork.entry.arguments)] = fork.entry.arguments
        return words

    def _entered(self, fork: Fork, words: Any) -> tuple[int, ...]:
        return (
            fork.entry.function, words.ctypes.data, fork.entry.command, fork.start.ctypes.data, fork.state.ctypes.data
        )  # fmt: skip

    def keep(self, run: int, parameters: Mapping[str, Any]) -> None:
        self.states[run], self.counts[run] = self.plant.present()
        if parameters:
            fork = self.plant.fork()
            self.own[run], self.own_words[run] = fork, self._words(fork)
            self.table[:, run] = self._entered(fork, self.own_words[run])

    def advance(self, commands: Array, steps: int, active: Mask) -> Mask:
        left = deque(self.parts)
        if self.pool is None:
            self._work(0, left, commands, steps, active)
        else:
            going = [self.pool.submit(self._work, k, left, commands, steps, active) for k in range(1, self.threads)]
            try:
                self._work(0, left, commands, steps, active)
            finally:
                for one in going:
                    one.result()
        failed: Mask = self.status != 0
        return failed

    def _work(self, k: int, left: deque[tuple[int, int]], commands: Array, steps: int, active: Mask) -> None:
        """Parts, as long as some are left, on thread k."""
        while True:
            try:
                begin, end = left.popleft()
            except IndexError:
                return
            while begin < end:
                failed = int(
                    advance(
                        self.table[k], commands, steps, self.states, self.counts, active, begin, end, self.plant.dt,
                        self.status,
                    )
                )  # fmt: skip
                if failed < 0:
                    break
                (self.own[failed] or self.shared[k]).clear()
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
