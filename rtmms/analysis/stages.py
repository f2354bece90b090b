"""A plant's motion in stages, each some steps long: rolled out with feedback, and linearised at every stage.

Commands go in straight lines between knots; a stage ends at its knot. With one step a stage the command is held:

    x[t + 1] = A[t] x[t] + B_before[t] u[t - 1] + B[t] u[t]

x[t] is the error of the state before stage t, in the chart around the motion's own state there; u[t] is that of the
knot at the stage's end. Each thread has its own memory; results do not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.analysis.chart import Structure
from rtmms.analysis.derivatives import structure_of
from rtmms.analysis.fork_pool import ForkPool, PackedFork
from rtmms.analysis.linearise import DIFFERENCE_STEP as STEP
from rtmms.analysis.linearise import reach_of
from rtmms.analysis.run_batch import Batch, batch_of, displaced_by_each
from rtmms.base.errors import ModelError
from rtmms.base.jit import kernel
from rtmms.base.snapshot import model_of
from rtmms.base.spatial import Array
from rtmms.plant.optional_protocols import HasCoordinates


@kernel
def multiply(a: Any, b: Any, out: Any) -> None:
    """Compute out = a b, without the zeros of a.

    It is for some hundred rows, and on the caller's thread alone, where a library's threads would wait for busy cores.

    Parameters
    ----------
    a : Any
        (n, m) matrix.
    b : Any
        (m, c) matrix.
    out : Any
        (n, c) result.
    """
    columns = out.shape[1]
    for i in range(out.shape[0]):
        for j in range(columns):
            out[i, j] = 0.0
        for k in range(a.shape[1]):
            share = a[i, k]
            if share != 0.0:
                for j in range(columns):
                    out[i, j] += share * b[k, j]


@dataclass
class Motion:
    """Motion over the stages.

    Attributes
    ----------
    states : Array
        (s + 1, w) as a Fork has them, before each stage and after the last.
    knots : Array
        (s + 1, n), the first the command before.
    outputs : dict[str, Array]
        {name: (s, *shape)} at the ends of the stages.
    stages : int
        Stages without a failure, s where all succeeded.
    """

    states: Array
    knots: Array
    outputs: dict[str, Array]
    stages: int

    @property
    def whole(self) -> bool:
        """Whether all stages succeeded."""
        return self.stages == len(self.knots) - 1


@dataclass
class Slopes:
    """Derivatives of a motion's stages.

    Attributes
    ----------
    a : Array
        (s, k, k) by the state.
    before : Array
        (s, k, n) by the knot before.
    at_end : Array
        (s, k, n) by the knot at the stage's end.
    outputs : dict[str, Array]
        {output: (s, numbers, k)} of outputs that are not part of the state.
    """

    a: Array
    before: Array
    at_end: Array
    outputs: dict[str, Array]


class Stages:
    """Motions of a plant in stages.

    Parameters
    ----------
    plant : Any
        Plant with compiled steps and coordinates of its state (rtmms.plant.HasCoordinates).
    steps : int
        Steps of a stage.
    outputs : Sequence[str], default ()
        Names of the wanted outputs.
    threads : int, default 1
        Threads that linearise stages, and roll out motions.

    Raises
    ------
    ModelError
        It is another plant, or compiled code cannot compute an output.
    """

    def __init__(self, plant: Any, steps: int, outputs: Sequence[str] = (), threads: int = 1) -> None:
        self.plant, self._pool = plant, ForkPool(plant, threads, "stages")
        if not isinstance(plant, HasCoordinates) or not self._pool.has_forks():
            raise ModelError(
                f"stages: expected a plant with compiled steps and coordinates, got a {type(plant).__name__}"
            )
        fork = self._pool.fork(0).fork
        self.steps, self.threads, self.coordinates = steps, threads, self.plant.coordinates()
        numbers = fork.account.numbers if fork.account is not None else {}
        self.shapes = {channel.name: tuple(channel.shape) for channel in self.plant.outputs if channel.name in outputs}
        self.places = {name: fork.places[name] for name in self.shapes if name in fork.places}
        self.accounted = tuple(name for name in self.shapes if name not in self.places)
        for name in self.accounted:
            if name not in numbers:
                raise ModelError(
                    f"stages: output '{name}': compiled code cannot compute it; leave it out, or choose another output"
                )
        self.reach = reach_of(self.plant.actuators)
        self.by = STEP * np.concatenate([self.coordinates.size, self.reach])
        self._state_indices = self.coordinates.state_indices.copy()
        self._displaced = displaced_by_each(self.coordinates, self.by)
        self._sizes = [int(np.prod(self.shapes[name], dtype=np.int64)) for name in self.accounted]
        self._structures: dict[int, Structure | None] = {}
        self._model = b""

    def close(self) -> None:
        """End the threads; the next call starts new ones."""
        self._pool.close()

    def follow(self) -> None:
        """Use the plant's present parameters."""
        model = model_of(self.plant.snapshot())
        self._pool.follow()
        if model != self._model:
            self._structures.clear()
        self._model = model

    def _batch(self, state: Array, first: int, before: Array, commands: Array, **fields: Any) -> Batch:
        """Return runs of stages from a state, under a command before and commands (r, s, n)."""
        steps = {"steps": commands.shape[1] * self.steps, **fields}
        return batch_of(
            state[None],
            first,
            commands,
            self.plant.dt,
            stage=self.steps,
            before=before.copy(),
            state_indices=self._state_indices,
            pose=self.coordinates.pose,
            **steps,
        )

    def _displaced_batch(self, state: Array, first: int, motion: Motion, t: int, **fields: Any) -> Batch:
        """Return runs of stage t from a state that is displaced to either side by each number."""
        displaced = self._displaced
        return self._batch(
            state, first, motion.knots[t], motion.knots[t + 1][None, None], runs=len(displaced.settles),
            by=displaced.by, displacements=displaced.displacements, settles=displaced.settles, **fields,
        )  # fmt: skip

    def roll(self, knots: Array) -> Motion:
        """Roll out a motion from the plant's present state.

        Parameters
        ----------
        knots : Array
            (s + 1, n) knots of the commands.

        Returns
        -------
        Motion
            The motion.
        """
        state, first = self.plant.present()
        (result,) = self._motions(state, first, knots[0], knots[None, 1:])
        return result

    def guide(
        self, base: Motion, correction: Array, gain: Array, shares: Sequence[float], lower: Array, upper: Array
    ) -> list[Motion]:
        """Roll out motions about another one, with feedback, from the plant's present state.

        At most as many as there are threads run at once.

        Parameters
        ----------
        base : Motion
            Motion that feedback refers to.
        correction : Array
            (s, n) change of the knots.
        gain : Array
            (s, n, k + n) feedback.
        shares : Sequence[float]
            Share of the correction of each motion.
        lower, upper : Array
            (s, n) limits of the knots.

        Returns
        -------
        list[Motion]
            One for each share.
        """
        _, first = self.plant.present()
        return self._motions(
            base.states[0], first, base.knots[0], np.zeros((len(shares), *correction.shape)), base=base.states,
            base_rows=base.knots, correction=correction, gain=gain, share=np.array(shares, dtype=float), lower=lower,
            upper=upper,
        )  # fmt: skip

    def _motions(self, state: Array, first: int, before: Array, commands: Array, **feedback: Any) -> list[Motion]:
        """Return a motion for each run of commands (r, s, n), which feedback writes where there is some."""
        runs, stages, _ = commands.shape
        batch = self._batch(
            state, first, before, commands, every=self.steps, states=np.zeros((runs, stages, len(state))),
            samples=np.zeros((runs, stages, sum(self._sizes))), **feedback,
        )  # fmt: skip
        self._pool.advance(batch, [np.array([run]) for run in range(runs)], self.accounted)
        return [
            Motion(
                np.concatenate([state[None], batch.states[run]]), np.concatenate([before[None], batch.commands[run]]),
                self._outputs(batch.states[run], batch.samples[run]), int(batch.done[run]) // self.steps,
            )
            for run in range(runs)
        ]  # fmt: skip

    def _outputs(self, states: Array, more: Array) -> dict[str, Array]:
        result, at = {}, 0
        for name, shape in self.shapes.items():
            if name in self.places:
                begin, size = self.places[name]
                result[name] = np.ascontiguousarray(states[:, begin : begin + size]).reshape(-1, *shape)
        for name, size in zip(self.accounted, self._sizes, strict=True):
            result[name] = np.ascontiguousarray(more[:, at : at + size]).reshape(-1, *self.shapes[name])
            at += size
        return result

    def slopes(self, motion: Motion, going: Callable[[], bool] = lambda: True) -> Slopes | None:
        """Return the derivatives of every stage.

        They come from the plant's structure where it has one (rtmms.analysis.derivatives), else from central
        differences.

        Parameters
        ----------
        motion : Motion
            A whole motion.
        going : Callable[[], bool], default lambda: True
            Returns False to end the computation.

        Returns
        -------
        Slopes | None
            None where a step fails, or `going` returned False.
        """
        coordinates = self.coordinates
        count, n, k = len(motion.knots) - 1, motion.knots.shape[1], len(coordinates.names)
        out, more = np.zeros((count, k + 2 * n, k)), np.zeros((count, k, sum(self._sizes)))
        _, first = self.plant.present()
        workers = min(self.threads, count)
        for i in range(workers):
            if i not in self._structures:
                self._structures[i] = structure_of(self.plant, self.by)

        def work(fork: PackedFork, i: int) -> bool:
            for t in range(i, count, workers):
                at = first + t * self.steps
                slopes = self._slope(fork, self._structures[i], motion, t, at) if going() else None
                if slopes is None:
                    return False
                out[t] = slopes
                if self.accounted and not self._account_slopes(fork, motion, t, at + self.steps, more[t]):
                    return False
            return True

        if not all(self._pool.each(work, workers)):
            return None
        across = np.ascontiguousarray(out.transpose(0, 2, 1))
        parts: dict[str, Array] = {}
        at = 0
        for name, size in zip(self.accounted, self._sizes, strict=True):
            parts[name] = more[:, :, at : at + size].transpose(0, 2, 1)
            at += size
        return Slopes(across[:, :, :k], across[:, :, k : k + n], across[:, :, k + n :], parts)

    def _slope(self, fork: PackedFork, structure: Structure | None, motion: Motion, t: int, first: int) -> Array | None:
        """Return (k + 2 n, k) of stage t, a row for each coordinate of the state and the two knots.

        It returns None where a step fails.
        """
        if structure is not None:
            return self._by_structure(fork, structure, motion, t, first)
        coordinates, displaced, end = self.coordinates, self._displaced, motion.states[t + 1]
        k, n = len(coordinates.names), motion.knots.shape[1]
        origin = motion.states[t].copy()
        origin[coordinates.history_indices] = 0.0
        # with one step a stage the knot before is no part of it
        which = (range(k + 2 * n),) if self.steps > 1 else (range(k), range(k + n, k + 2 * n))
        fields: dict[str, Any] = (
            {"reference": end[coordinates.pose : coordinates.pose + 7].copy()} if coordinates.pose >= 0 else {}
        )
        errors = np.zeros((len(displaced.settles), k))
        batch = self._displaced_batch(origin, first, motion, t, errors=errors, **fields)
        if fork.advance(batch, displaced.order(*which)) >= 0:
            return None
        return displaced.slopes(errors)

    def _by_structure(self, fork: PackedFork, structure: Structure, motion: Motion, t: int, first: int) -> Array | None:
        """Return (k + 2 n, k) of a stage, step by step."""
        coordinates, steps = self.coordinates, self.steps
        n, k = motion.knots.shape[1], len(coordinates.names)
        states, commands = np.empty((1, steps, motion.states.shape[1])), np.empty((1, steps, n))
        trace = self._batch(
            motion.states[t], first, motion.knots[t], motion.knots[t + 1][None, None], states=states, applied=commands
        )
        if fork.advance(trace, np.zeros(1, dtype=np.int64)) >= 0:
            return None
        result, last = np.zeros((k, k + 2 * n)), np.zeros((k, k + 2 * n))
        state = motion.states[t]
        for j in range(steps):
            reference = states[0, j, coordinates.pose : coordinates.pose + 7].copy()
            if not structure.take(state, commands[0, j], reference, (first + j) * float(self.plant.dt)):
                return None
            if j:
                result, last = last, result
                multiply(structure.a.dense(), last, result)
            else:
                result[:, :k] = structure.a.dense()
            w, b = (j + 1) / steps, structure.b
            result[:, k : k + n] += (1.0 - w) * b
            result[:, k + n :] += w * b
            state = states[0, j]
        return result.T

    def _account_slopes(self, fork: PackedFork, motion: Motion, t: int, first: int, out: Array) -> bool:
        """Write slopes of the outputs outside the state at the end of stage t, by its coordinates: out (k, numbers).

        It returns False where there is no such state.
        """
        k, displaced = len(self.coordinates.names), self._displaced
        samples = np.zeros((2 * k, 1, out.shape[1]))
        batch = self._displaced_batch(motion.states[t + 1], first, motion, t, steps=0, samples=samples)
        if fork.advance(batch, displaced.order(range(k)), self.accounted) >= 0:
            return False
        out[:] = displaced.slopes(samples[:, 0])
        return True
