"""A plant's motion in stages, each some steps long: rolled out with feedback, and linearised at every stage.

Commands go in straight lines between knots; a stage ends at its knot. With one step a stage the command is held.

    x[t + 1] = A[t] x[t] + B_before[t] u[t - 1] + B[t] u[t]

x[t] is the error of the state before stage t, in the chart around the motion's own state there, u[t] that of the knot
at the stage's end. Each thread has memory of its own; results do not depend on their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.addresses import ARGUMENTS
from rtmms.analysis.abilities import Structure
from rtmms.analysis.derivatives import entered
from rtmms.analysis.linearise_step import STEP, reach_of
from rtmms.analysis.stage_kernel import guided, multiply, stage_slopes, stage_trace, told_slopes
from rtmms.analysis.structures import structure_of
from rtmms.errors import ModelError
from rtmms.plant import Coordinated, Fork
from rtmms.snapshot import model_of
from rtmms.spatial import Array


@dataclass
class Motion:
    """What came of the stages.

    states   (s + 1, w) as a Fork has them, before each stage and after the last
    knots    (s + 1, n), the first the command before
    outputs  {name: (s, *shape)} at the ends of the stages
    stages   that went well, s where all did
    """

    states: Array
    knots: Array
    outputs: dict[str, Array]
    stages: int

    @property
    def whole(self) -> bool:
        return self.stages == len(self.knots) - 1


@dataclass
class Slopes:
    """Of a motion's stages: a (s, k, k), before (s, k, n), own (s, k, n); told {output: (s, numbers, k)} of those
    outputs that do not stand in the state."""

    a: Array
    before: Array
    own: Array
    told: dict[str, Array]


class _Worker:
    """Memory of one thread."""

    def __init__(self, plant: Any, fork: Fork, told: Sequence[str]) -> None:
        self.fork = fork
        self.entered, self._kept = entered(plant, fork)
        self.telling = np.zeros(ARGUMENTS, dtype=np.int64)
        self.told, self.teller = np.zeros((0, 2), dtype=np.int64), 0
        self.structure: Structure | None = None
        if fork.account is not None and told:
            self.teller = fork.account.function
            self.telling[: len(fork.account.arguments)] = fork.account.arguments
            self.told = np.array([fork.account.numbers[name] for name in told], dtype=np.int64)

    @property
    def account(self) -> tuple[Any, int, int]:
        return self.told, self.teller, self.telling.ctypes.data


class Stages:
    """Motions of a plant.

    plant     with compiled steps and coordinates of its state (rtmms.plant.Coordinated)
    steps     of a stage;  outputs  names of those that are wanted
    threads   that stages are linearised on, and motions rolled out
    ModelError for another plant, or an output that compiled code cannot tell.
    """

    def __init__(self, plant: Any, steps: int, outputs: Sequence[str] = (), threads: int = 1) -> None:
        fork = plant.fork() if isinstance(plant, Coordinated) else None
        if fork is None:
            raise ModelError(
                f"stages: expected a plant with compiled steps and coordinates, got a {type(plant).__name__}"
            )
        self.plant: Any = plant
        self.steps, self.threads, self.coordinates = steps, threads, self.plant.coordinates()
        numbers = fork.account.numbers if fork.account is not None else {}
        self.shapes = {channel.name: tuple(channel.shape) for channel in self.plant.outputs if channel.name in outputs}
        self.places = {name: fork.places[name] for name in self.shapes if name in fork.places}
        self.told = tuple(name for name in self.shapes if name not in self.places)
        for name in self.told:
            if name not in numbers:
                raise ModelError(f"stages: output '{name}': compiled code cannot tell it; take another")
        self.reach = reach_of(self.plant.actuators)
        self.by = STEP * np.concatenate([self.coordinates.size, self.reach])
        self._workers = [_Worker(plant, fork, self.told)]
        self._model = b""
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End its threads; the next call begins others."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def follow(self) -> None:
        """Take up the plant's parameters of now."""
        model = model_of(self.plant.snapshot())
        for i, worker in enumerate(self._workers):
            if not worker.fork.follow():
                fork = self.plant.fork()
                self._workers[i] = _Worker(self.plant, fork, self.told)
            elif model != self._model:
                worker.structure = None
        self._model = model

    def _worker(self, i: int) -> _Worker:
        while len(self._workers) <= i:
            self._workers.append(_Worker(self.plant, self.plant.fork(), self.told))
        return self._workers[i]

    def _all(self, work: Callable[[_Worker, int], Any], count: int) -> list[Any]:
        """work(worker, i) for each thread."""
        workers = [self._worker(i) for i in range(count)]
        if count == 1:
            return [work(workers[0], 0)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="stages")
        jobs: list[Future[Any]] = [self._pool.submit(work, worker, i) for i, worker in enumerate(workers)]
        return [job.result() for job in jobs]

    def roll(self, knots: Array) -> Motion:
        """Under knots (s + 1, n), from the plant's present state."""
        state, first = self.plant.present()
        count, n, k = len(knots) - 1, knots.shape[1], len(self.coordinates.names)
        base = np.tile(state, (count + 1, 1))
        free = np.full((count, n), math.inf)
        (found,) = self._guide(
            Motion(base, knots, {}, count), np.zeros((count, n)), np.zeros((count, n, k + n)), [0.0], -free, free, first
        )
        return found

    def guide(
        self, base: Motion, correction: Array, gain: Array, shares: Sequence[float], lower: Array, upper: Array
    ) -> list[Motion]:
        """About a motion from the plant's present state, one for each share of the correction (s, n), with feedback
        gain (s, n, k + n), within lower and upper (s, n). At most as many as there are threads go at once."""
        _, first = self.plant.present()
        return self._guide(base, correction, gain, shares, lower, upper, first)

    def _guide(
        self, base: Motion, correction: Array, gain: Array, shares: Sequence[float], lower: Array, upper: Array,
        first: int,
    ) -> list[Motion]:  # fmt: skip
        told, count = self.coordinates, len(correction)
        found: list[Motion | None] = [None] * len(shares)

        def work(worker: _Worker, i: int) -> None:
            for which in range(i, len(shares), workers):
                own = worker.fork
                own.state[:] = base.states[0]
                states, knots = np.zeros_like(base.states), base.knots.copy()
                more = np.zeros((count, sum(int(size) for _, size in worker.told)))
                went = guided(
                    worker.entered, own.state, base.states, base.knots, correction, gain, float(shares[which]),
                    lower, upper, self.steps, first, float(self.plant.dt), told.words, told.pose, *worker.account,
                    states, knots, more,
                )  # fmt: skip
                if went < count:
                    own.clear()
                found[which] = Motion(states, knots, self._outputs(states[1:], more), int(went))

        workers = min(self.threads, len(shares))
        self._all(work, workers)
        return [one for one in found if one is not None]

    def _outputs(self, states: Array, more: Array) -> dict[str, Array]:
        found, at = {}, 0
        for name, shape in self.shapes.items():
            if name in self.places:
                begin, size = self.places[name]
                found[name] = np.ascontiguousarray(states[:, begin : begin + size]).reshape(-1, *shape)
        for name in self.told:
            size = int(np.prod(self.shapes[name], dtype=np.int64))
            found[name] = np.ascontiguousarray(more[:, at : at + size]).reshape(-1, *self.shapes[name])
            at += size
        return found

    def slopes(self, motion: Motion, going: Callable[[], bool] = lambda: True) -> Slopes | None:
        """Of every stage; None where a step fails, or `going` says no in between.

        By the plant's structure where it has one (rtmms.analysis.structures), else by central differences."""
        told = self.coordinates
        count, n, k = len(motion.knots) - 1, motion.knots.shape[1], len(told.names)
        out = np.zeros((count, k + 2 * n, k))
        sizes = [int(np.prod(self.shapes[name], dtype=np.int64)) for name in self.told]
        more = np.zeros((count, k, sum(sizes)))
        _, first = self.plant.present()

        def work(worker: _Worker, i: int) -> bool:
            if worker.structure is None:
                worker.structure = structure_of(self.plant, self.by)
            for t in range(i, count, workers):
                if not going() or not self._slope(worker, motion, t, first + t * self.steps, out[t], more[t]):
                    worker.fork.clear()
                    return False
            return True

        workers = min(self.threads, count)
        if not all(self._all(work, workers)):
            return None
        across = np.ascontiguousarray(out.transpose(0, 2, 1))
        parts: dict[str, Array] = {}
        at = 0
        for name, size in zip(self.told, sizes, strict=True):
            parts[name] = more[:, :, at : at + size].transpose(0, 2, 1)
            at += size
        return Slopes(across[:, :, :k], across[:, :, k : k + n], across[:, :, k + n :], parts)

    def _slope(self, worker: _Worker, motion: Motion, t: int, first: int, out: Array, more: Array) -> bool:
        told, own, dt = self.coordinates, worker.fork, float(self.plant.dt)
        origin = motion.states[t].copy()
        origin[told.forgets] = 0.0
        end = motion.states[t + 1]
        if worker.structure is not None:
            found = self._structured(worker, motion, t, first)
            if found is None:
                return False
            out[:] = found.T
        else:
            reference = end[told.pose : told.pose + 7].copy() if told.pose >= 0 else np.zeros(7)
            failed = stage_slopes(
                worker.entered, own.state, origin, motion.knots[t], motion.knots[t + 1], self.steps, reference,
                told.words, told.pose, told.woven, self.by, first, dt, out,
            )  # fmt: skip
            if failed >= 0:
                return False
        if more.shape[1]:
            own.state[:] = end
            failed = told_slopes(
                worker.entered, own.state, end, told.words, told.pose, told.woven, self.by, first + self.steps, dt,
                *worker.account, more,
            )  # fmt: skip
            return bool(failed < 0)
        return True

    def _structured(self, worker: _Worker, motion: Motion, t: int, first: int) -> Array | None:
        """(k, k + 2 n) of a stage, step by step."""
        told, own, steps = self.coordinates, worker.fork, self.steps
        n, k = motion.knots.shape[1], len(told.names)
        states, commands = np.empty((steps + 1, len(own.state))), np.empty((steps, n))
        own.state[:] = motion.states[t]
        if stage_trace(
            worker.entered, own.state, motion.knots[t], motion.knots[t + 1], steps, first, float(self.plant.dt), states,
            commands,
        ):  # fmt: skip
            return None
        structure = worker.structure
        assert structure is not None
        found, last = np.zeros((k, k + 2 * n)), np.zeros((k, k + 2 * n))
        for j in range(steps):
            reference = states[j + 1, told.pose : told.pose + 7].copy()
            if not structure.take(states[j], commands[j], reference, (first + j) * float(self.plant.dt)):
                return None
            if j:
                found, last = last, found
                multiply(structure.a.dense(), last, found)
            else:
                found[:, :k] = structure.a.dense()
            w, b = (j + 1) / steps, structure.b
            found[:, k : k + n] += (1.0 - w) * b
            found[:, k + n :] += w * b
        return found
