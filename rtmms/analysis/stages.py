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
from numba import carray

from rtmms.analysis.chart import Structure
from rtmms.analysis.derivatives import (
    ARGUMENTS_AT,
    COMMAND_AT,
    FUNCTION,
    START_AT,
    coordinates_of,
    copy,
    difference,
    entered,
    move,
    rotation,
    settled,
    structure_of,
)
from rtmms.analysis.linearise import DIFFERENCE_STEP as STEP
from rtmms.analysis.linearise import reach_of
from rtmms.base.errors import ModelError
from rtmms.base.jit import kernel
from rtmms.base.memory import ARGUMENTS, call, numbers_at
from rtmms.base.snapshot import model_of
from rtmms.base.spatial import Array
from rtmms.plant.protocol import Coordinated, Fork

# Stages of a motion on a fork, without Python: steps under commands that go in straight lines from knot to knot, with
# feedback from how far the state is off, and slopes of a stage (rtmms.analysis.stages).


@kernel
def multiply(a: Any, b: Any, out: Any) -> None:
    """out = a b, without what is zero in a: for some hundred rows, and on the thread that asks alone, where a library's
    threads would wait for cores that are taken."""
    columns = out.shape[1]
    for i in range(out.shape[0]):
        for j in range(columns):
            out[i, j] = 0.0
        for k in range(a.shape[1]):
            share = a[i, k]
            if share != 0.0:
                for j in range(columns):
                    out[i, j] += share * b[k, j]


@kernel
def stage(
    entered: Any, before: Any, knot: Any, more_before: Any, more: Any, sign: float, steps: int, first: int, dt: float
) -> int:
    """Steps of one stage: in step j of s the command is (1 - w) before + w knot with w = (j + 1) / s; to both knots
    `sign` times `more_before` and `more` is added. The status of the step that failed, 0 when none did."""
    n = len(knot)
    command, start = carray(numbers_at(entered[COMMAND_AT]), (n,)), carray(numbers_at(entered[START_AT]), (1,))
    for j in range(steps):
        w = (j + 1) / steps
        for i in range(n):
            a, b = before[i] + sign * more_before[i], knot[i] + sign * more[i]
            command[i] = a + w * (b - a) if j < steps - 1 else b
        start[0] = (first + j) * dt
        status = call(entered[FUNCTION], entered[ARGUMENTS_AT])
        if status != 0:
            return int(status)
    return 0


@kernel
def _tell(told: Any, teller: int, teller_at: int, out: Any) -> None:
    """Numbers of outputs that do not stand in the state."""
    if len(told):
        call(teller, teller_at)
    at = 0
    for p in range(len(told)):
        numbers = carray(numbers_at(told[p, 0]), (told[p, 1],))
        for i in range(told[p, 1]):
            out[at] = numbers[i]
            at += 1


@kernel
def guided(
    entered: Any, state: Any, base: Any, base_knots: Any, correction: Any, gain: Any, share: float, lower: Any,
    upper: Any, steps: int, first: int, dt: float, words: Any, pose: int, told: Any, teller: int, teller_at: int,
    states: Any, knots: Any, more: Any,
) -> int:  # fmt: skip
    """Stages about a motion: u = u_base + share correction + gain (x - x_base, u_before - u_base_before), in its box.

    state        (w,) of the fork, where it begins;  base (s + 1, w), base_knots (s + 1, n) the motion
    correction   (s, n);  gain (s, n, k + n);  lower, upper (s, n)
    steps        of a stage;  first  steps before;  words, pose  see rtmms.plant.protocol.Coordinates
    told, teller, teller_at   as of rtmms.analysis.rollouts.roll
    states (s + 1, w), knots (s + 1, n), more (s, numbers told)   written; knots[0] as it is
    Returns the stages that went well.
    """
    count, n, k = gain.shape[0], gain.shape[1], words.shape[0]
    off, frame, nothing = np.zeros(k + n), np.empty(9), np.zeros(n)
    copy(state, states[0])
    for t in range(count):
        if pose >= 0:
            rotation(base[t, pose + 3 : pose + 7], frame)
            coordinates_of(states[t], words, pose, base[t, pose : pose + 7], frame, off)
        first_word = 6 if pose >= 0 else 0
        for i in range(first_word, k):
            off[i] = states[t, words[i]] - base[t, words[i]]
        for i in range(n):
            off[k + i] = knots[t, i] - base_knots[t, i]
        for i in range(n):
            u = base_knots[t + 1, i] + share * correction[t, i]
            for j in range(k + n):
                u += gain[t, i, j] * off[j]
            knots[t + 1, i] = min(max(u, lower[t, i]), upper[t, i])
        if stage(entered, knots[t], knots[t + 1], nothing, nothing, 0.0, steps, first + t * steps, dt) != 0:
            return t
        copy(state, states[t + 1])
        _tell(told, teller, teller_at, more[t])
    return int(count)


@kernel
def stage_slopes(
    entered: Any, state: Any, origin: Any, before: Any, knot: Any, steps: int, reference: Any, words: Any, pose: int,
    woven: Any, by: Any, first: int, dt: float, out: Any,
) -> int:  # fmt: skip
    """Slopes of the coordinates after a stage by those before, by the knot before it and by its own, central.

    origin  (w,) the state before;  reference (7,) the pose from which the pose after is told
    by      (k + n,) how far to either side;  out (k + 2 n, k) written, row m the slope by the m-th
    Returns -1, or the first of them from which a step failed.
    """
    k, n = words.shape[0], len(knot)
    x, y, more_before, more = np.empty(k), np.empty(k), np.zeros(n), np.zeros(n)
    frame, after = np.empty(9), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
        rotation(reference[3:7], after)
    for m in range(k + 2 * n):
        if k <= m < k + n and steps == 1:  # the knot before is no part of it
            for i in range(k):
                out[m, i] = 0.0
            continue
        size = by[m] if m < k + n else by[m - n]
        for side in range(2):
            sign = 1.0 - 2.0 * side
            copy(origin, state)
            if m < k:
                move(state, words, pose, frame, m, sign * size)
                if woven[m] and settled(entered, first, dt) != 0:
                    return m
            elif m < k + n:
                more_before[m - k] = size
            else:
                more[m - k - n] = size
            if stage(entered, before, knot, more_before, more, sign, steps, first, dt) != 0:
                return m
            if m >= k + n:
                more[m - k - n] = 0.0
            elif m >= k:
                more_before[m - k] = 0.0
            coordinates_of(state, words, pose, reference, after, x if side == 0 else y)
        difference(0.5 / size, x, y, out[m])
    return -1


@kernel
def told_slopes(
    entered: Any, state: Any, origin: Any, words: Any, pose: int, woven: Any, by: Any, first: int, dt: float,
    told: Any, teller: int, teller_at: int, out: Any,
) -> int:  # fmt: skip
    """Slopes of outputs that do not stand in the state, out (k, numbers told), by its coordinates, central. Returns -1,
    or the coordinate at which there is no such state."""
    k, width = words.shape[0], out.shape[1]
    x, y, frame = np.empty(width), np.empty(width), np.empty(9)
    if pose >= 0:
        rotation(origin[pose + 3 : pose + 7], frame)
    for m in range(k):
        for side in range(2):
            copy(origin, state)
            move(state, words, pose, frame, m, by[m] if side == 0 else -by[m])
            if woven[m] and settled(entered, first, dt) != 0:
                return m
            _tell(told, teller, teller_at, x if side == 0 else y)
        difference(0.5 / by[m], x, y, out[m])
    return -1


@kernel
def stage_trace(entered: Any, state: Any, before: Any, knot: Any, steps: int, first: int, dt: float,
                states: Any, commands: Any) -> int:  # fmt: skip
    """The states of a stage, states (s + 1, w) before each step and after the last, and its commands (s, n); the status
    of the step that failed, 0 when none did. state (w,): where it begins."""
    n = len(knot)
    nothing = np.zeros(n)
    copy(state, states[0])
    for j in range(steps):
        w = (j + 1) / steps
        for i in range(n):
            commands[j, i] = before[i] + w * (knot[i] - before[i]) if j < steps - 1 else knot[i]
        status = stage(entered, commands[j], commands[j], nothing, nothing, 0.0, 1, first + j, dt)
        if status != 0:
            return int(status)
        copy(state, states[j + 1])
    return 0


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

    plant     with compiled steps and coordinates of its state (rtmms.plant.protocol.Coordinated)
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

        By the plant's structure where it has one (rtmms.analysis.derivatives), else by central differences."""
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
