"""Many runs of one plant at once: commands in, outputs out, on compiled threads where the plant has compiled steps.

    runs = rtmms.rollout(plant, commands, outputs=("position", "quaternion"), every=10)
    runs.outputs["position"]        # (runs, samples, 3)

A run has the bits of stepping by hand, for any number of threads.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.fork_pool import ForkPool
from rtmms.analysis.run_batch import batch_of
from rtmms.base.errors import ArgumentError, DivergedError, ModelError, UnknownNameError
from rtmms.base.processes import core_count
from rtmms.base.renamed_outputs import present_output
from rtmms.base.value_conversion import without_numpy
from rtmms.plant.description import describe_plant, present_values
from rtmms.plant.optional_protocols import HasFork, SupportsRollouts
from rtmms.plant.protocol import Plant
from rtmms.plant.validation import apply_limits, read_out, read_table, refuse_outputs

Array = npt.NDArray[np.float64]


FAILED = 1
"""Status of a run that failed, where the plant has no number for it."""
MAX_FORKS = 64
"""Sets of parameters that are in memory at the same time."""
MAX_STEPS = 1 << 40


@dataclass
class Runs:
    """Results of a rollout.

    Attributes
    ----------
    outputs : dict[str, Array]
        (runs, samples, *shape) by name, after each `every` steps; nan after a run's end.
    commands : Array
        (runs, steps, n_actuators) as applied: within the limits of the actuators, also their common ones; of length 1
        where the argument is.
    final : list[bytes]
        Snapshot of each run at its end; of a failed one its last sound state.
    status : npt.NDArray[np.int64]
        (runs,) 0: all steps were taken; else the status of the plant's step.
    steps : npt.NDArray[np.int64]
        (runs,) steps that were taken.
    dt : float
        Time step, s.
    every : int
        Steps from sample to sample.
    reasons : dict[int, str]
        Why runs ended early, by run.
    """

    outputs: dict[str, Array]
    commands: Array
    final: list[bytes]
    status: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    dt: float
    every: int
    reasons: dict[int, str] = field(default_factory=dict)

    @property
    def time(self) -> Array:
        """Times of the samples (samples,), s from the beginning of the runs."""
        samples = next(iter(self.outputs.values())).shape[1] if self.outputs else 0
        return self.dt * self.every * np.arange(1, samples + 1)

    def reason(self, run: int) -> str:
        """Return why a run ended early.

        Parameters
        ----------
        run : int
            Index of the run.

        Returns
        -------
        str
            '' for a run that did not.
        """
        return self.reasons.get(run, "")


def rollout(
    plant: Plant, commands: Any, initial: Any = None, outputs: Sequence[str] = ("position",), every: int = 1,
    threads: int | None = None, parameters: Mapping[str, Any] | None = None, out: Mapping[str, Array] | None = None,
) -> Runs:  # fmt: skip
    """Run a plant many times, from one state or several; the plant is left as it was.

    Parameters
    ----------
    plant : Plant
        Any plant.
    commands : Any
        (runs, steps, n_actuators) in the actuators' units; an axis of length 1 serves all.
    initial : Any, optional
        A snapshot for all runs or one for each; None: the plant's present state.
    outputs : Sequence[str], default ('position',)
        Outputs to sample after each `every` steps. The plant itself computes those that compiled code lacks, such as
        `extra` ones of a tree.
    every : int, default 1
        Steps from sample to sample.
    threads : int | None, optional
        None: as many as there are cores.
    parameters : Mapping[str, Any] | None, optional
        {name: (runs,)} of `plant.settable`; (runs, n) of a parameter of n numbers.
    out : Mapping[str, Array] | None, optional
        {name: array (runs, samples, *shape)} to write outputs into.

    Returns
    -------
    Runs
        The bits do not depend on `threads`. A run that fails raises nothing and ends by itself, see Runs.status.

    Raises
    ------
    ArgumentError
        A shape or a value does not fit.
    UnknownNameError
        An output or a parameter is unknown.
    ModelError
        The plant cannot have a parameter's value.
    """
    with Rollout(plant, threads) as pool:
        return pool(commands, initial, outputs, every, parameters, out)


class Rollout:
    """Rollouts with threads that remain between calls; a context manager.

    Parameters
    ----------
    plant : Plant
        Any plant.
    threads : int | None, optional
        None: as many as there are cores.

    Raises
    ------
    ArgumentError
        The plant is none, or the number of threads is wrong.
    """

    def __init__(self, plant: Plant, threads: int | None = None) -> None:
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ArgumentError(f"rollout: threads: expected a whole number from 1 on, got {threads!r}")
        if not callable(getattr(plant, "step", None)):
            raise ArgumentError(f"rollout: expected a plant, as rtmms.load returns, got {plant!r:.60}")
        self.plant, self.threads = plant, threads or core_count()
        self.pool = ForkPool(plant, self.threads, "rollout")
        self._lock = Lock()

    def __enter__(self) -> Rollout:
        """Return the object itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the threads."""
        self.close()

    def close(self) -> None:
        """End the threads."""
        self.pool.close()

    def __call__(
        self, commands: Any, initial: Any = None, outputs: Sequence[str] = ("position",), every: int = 1,
        parameters: Mapping[str, Any] | None = None, out: Mapping[str, Array] | None = None,
    ) -> Runs:  # fmt: skip
        """Run the plant, see `rollout` for the arguments."""
        with self._lock:  # the plant itself is used, and put back
            return self._roll(commands, initial, outputs, every, parameters, out)

    def _roll(
        self, commands: Any, initial: Any, outputs: Sequence[str], every: int,
        parameters: Mapping[str, Any] | None, out: Mapping[str, Array] | None,
    ) -> Runs:  # fmt: skip
        plant = self.plant
        asked = _RolloutRequest(plant, commands, initial, outputs, every, parameters)
        asked.refuse_out(out)
        before = plant.snapshot()
        present = present_values(describe_plant(plant), asked.parameters)
        try:
            with np.errstate(all="ignore"):
                work: _Outcome
                if self.pool.has_forks():
                    work = _Compiled(asked, self.pool)
                elif isinstance(plant, SupportsRollouts) and plant.can_roll_out():
                    work = _SimulatorRollouts(asked, self.threads)
                else:
                    work = _Plain(asked)
                work.run(before)
        finally:
            if present:
                plant.set(**present)  # type: ignore[attr-defined]
            plant.restore(before)
        result = work.outputs()
        if out is not None:
            for name, array in out.items():
                array[...] = result[name]
                result[name] = array
        return Runs(
            result, apply_limits(asked.commands, plant.actuators, describe_plant(plant).coupled),
            work.final, work.status, work.steps, plant.dt, every, work.reasons,
        )  # fmt: skip


class _RolloutRequest:
    """Arguments of a call, checked."""

    def __init__(
        self, plant: Plant, commands: Any, initial: Any, outputs: Sequence[str], every: int,
        parameters: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        self.plant, n = plant, len(plant.actuators)
        table = read_table("rollout", "commands", commands, f"numbers (runs, steps, {n})")
        if table.ndim != 3 or table.shape[2] not in (n, 1) or 0 in table.shape[:2]:
            raise ArgumentError(
                f"rollout: commands: expected an array of shape (runs, steps, {n}), got shape {table.shape}"
            )
        if not np.isfinite(table).all():
            run, step, which = (int(k) for k in np.argwhere(~np.isfinite(table))[0])
            raise ArgumentError(
                f"rollout: commands: must be finite, got {table[run, step, which]} in run {run}, step {step}"
            )
        if table.shape[2] != n:
            table = np.ascontiguousarray(np.broadcast_to(table, (*table.shape[:2], n)))
        self.commands = table
        every = without_numpy(every)
        if isinstance(every, bool) or not isinstance(every, int) or not 1 <= every <= MAX_STEPS:
            raise ArgumentError(f"rollout: every: expected a whole number from 1 to {MAX_STEPS}, got {every!r}")
        self.every = every
        self.parameters = _parameters(plant, parameters or {})
        self.initial = [initial] if initial is None or isinstance(initial, bytes) else list(initial)
        lengths = {"commands": table.shape[0], "initial": len(self.initial)}
        lengths |= {f"parameters: {name}": len(values) for name, values in self.parameters.items()}
        counts = {count for count in lengths.values() if count != 1}
        if len(counts) > 1 or 0 in counts:
            listed = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise ArgumentError(
                f"rollout: expected the same number of runs in all arguments (1 fits any number), got {listed}"
            )
        self.runs = max(lengths.values())
        self.length = table.shape[1]
        if isinstance(outputs, str):
            raise ArgumentError(f"rollout: outputs: expected a sequence of names, got '{outputs}'")
        known = {channel.name: channel for channel in plant.outputs}
        outputs = [present_output(str(name), known) for name in outputs]
        for name in outputs:
            if name not in known:
                raise UnknownNameError("output", str(name), known)
        self.channels = [known[name] for name in dict.fromkeys(outputs)]

    @property
    def samples(self) -> int:
        return int(self.length // self.every)

    def refuse_out(self, out: Any) -> None:
        """Raise ArgumentError for arrays that outputs cannot be written into, before a step is taken."""
        if out is None:
            return
        if not isinstance(out, Mapping):
            raise ArgumentError(f"rollout: out: expected arrays by name, got {type(out).__name__}")
        shapes = {channel.name: (self.runs, self.samples, *channel.shape) for channel in self.channels}
        for name, array in out.items():
            if name not in shapes:
                raise ArgumentError(f"rollout: out: {name}: expected one of {', '.join(shapes)}")
            read_out("rollout: out", name, array, shapes[name], apart_from=self.commands)

    def start(self, run: int) -> Any:
        return self.initial[run if len(self.initial) > 1 else 0]

    def command(self, run: int) -> Array:
        """Return the commands of a run, (steps or 1, n)."""
        result: Array = self.commands[run if len(self.commands) > 1 else 0]
        return result

    def groups(self) -> list[tuple[dict[str, Any], npt.NDArray[np.int64]]]:
        """Return the runs grouped by their values of parameters."""
        if not self.parameters:
            return [({}, np.arange(self.runs))]
        columns = [values.reshape(len(values), -1) for values in self.parameters.values()]
        table = np.concatenate([np.broadcast_to(column, (self.runs, column.shape[1])) for column in columns], axis=1)
        sets, of = np.unique(table, axis=0, return_inverse=True)
        of = of.reshape(-1)
        ends = np.cumsum([column.shape[1] for column in columns])[:-1]
        named = [
            {
                name: part.tolist() if values.ndim == 2 else float(part[0])
                for (name, values), part in zip(self.parameters.items(), np.split(row, ends), strict=True)
            }
            for row in sets
        ]
        return [(item, np.flatnonzero(of == k)) for k, item in enumerate(named)]


def _parameters(plant: Plant, provided: Mapping[str, Any]) -> dict[str, Array]:
    if not provided:
        return {}
    about = describe_plant(plant)
    if about.set is None or about.settable is None:
        raise ModelError(
            "rollout: parameters: expected none, as this plant has no parameters that can change while it runs"
        )
    result = {}
    for name, values in provided.items():
        if name not in about.settable:
            raise UnknownNameError("parameter that can differ between runs", name, about.settable)
        array = np.atleast_1d(read_table("rollout: parameters", name, values, "finite numbers (runs,)"))
        if array.ndim > 2 or array.size == 0 or not np.isfinite(array).all():
            raise ArgumentError(
                f"rollout: parameters: {name}: expected finite numbers of shape (runs,), or (runs, n) of a parameter "
                f"of n numbers, got {values!r:.60}"
            )
        result[name] = array
    return result


class _Outcome(ABC):
    """Arrays of a call's results.

    `first` is {name: width} of the first numbers of a row, in this order; the outputs of the call follow. For `derived`
    see rtmms.plant.CompiledOutputs. `rows` is (runs, samples, width): the numbers of each output.
    """

    derived: Mapping[str, tuple[tuple[str, ...], Callable[..., Array]]] = {}

    def __init__(self, asked: _RolloutRequest, first: Mapping[str, int] | None = None, more_bytes: int = 0) -> None:
        self.asked, runs = asked, asked.runs
        self.parts, width = {}, 0
        sizes = dict(first or {})
        for channel in asked.channels:
            if channel.name not in self.derived:
                sizes.setdefault(channel.name, int(np.prod(channel.shape, dtype=np.int64)))
        for name in sizes:
            self.parts[name] = slice(width, width + sizes[name])
            width += sizes[name]
        needed = 8 * runs * asked.samples * width + more_bytes
        free = _free_bytes()
        if needed > free:
            raise ModelError(
                f"rollout: {runs} runs with {asked.samples} samples need {needed:,} bytes, and {free:,} are "
                "free; give a larger `every`, fewer outputs, or fewer runs in one call"
            )
        self.rows = np.full((runs, asked.samples, width), np.nan)
        self.status, self.steps = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        self.final: list[bytes] = [b""] * runs
        self.reasons: dict[int, str] = {}

    @abstractmethod
    def run(self, before: bytes) -> None:
        """Advance all runs; `before` is the plant's state where a run has no start of its own."""

    def outputs(self) -> dict[str, Array]:
        runs, samples = self.rows.shape[:2]
        return {
            channel.name: self._rows_of(channel.name).reshape(runs, samples, *channel.shape)
            for channel in self.asked.channels
        }

    def _rows_of(self, name: str) -> Array:
        """Return the numbers of an output, (runs, samples, width)."""
        if name not in self.derived:
            result: Array = self.rows[:, :, self.parts[name]]
            return result
        parts, function = self.derived[name]
        runs, samples = self.rows.shape[:2]
        rows = (self.rows[:, :, self.parts[part]].reshape(runs * samples, -1) for part in parts)
        return np.asarray(function(*rows), dtype=np.float64).reshape(runs, samples, -1)

    def sample(self, run: int, sample: int, names: Iterable[str]) -> None:
        observed = self.asked.plant.observe()
        for name in names:
            row, value = self.rows[run, sample, self.parts[name]], np.ravel(observed.get(name, ()))
            if value.size != row.size:
                refuse_outputs(self.asked.plant, observed, f"rollout: run {run}, sample {sample}: ")
            row[:] = value


def _free_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 1 << 62


class _Plain(_Outcome):
    """Results by `step` alone, one run after the other: plants in plain Python, FMUs, sensors."""

    def run(self, before: bytes) -> None:
        asked, plant = self.asked, self.asked.plant
        for values, runs in asked.groups():
            if values:
                raise ModelError(
                    "rollout: parameters: expected none, as this plant has no compiled steps; make one plant for each "
                    "value"
                )
            for run in runs.tolist():
                start = asked.start(run)
                plant.restore(before if start is None else start)
                self._simulate_run(run, asked.command(run))

    def _simulate_run(self, run: int, commands: Array) -> None:
        asked, plant = self.asked, self.asked.plant
        try:
            for k in range(asked.length):
                plant.step(commands[k if len(commands) > 1 else 0].copy())  # which may write into it
                self.steps[run] = k + 1
                if (k + 1) % asked.every == 0:
                    self.sample(run, (k + 1) // asked.every - 1, self.parts)
        except DivergedError as fault:
            self.status[run], self.reasons[run] = FAILED, str(fault)
        self.final[run] = plant.snapshot()


class _SimulatorRollouts(_Plain):
    """Results by the plant's own simulator, many runs together."""

    def __init__(self, asked: _RolloutRequest, threads: int) -> None:
        super().__init__(asked)
        self._threads = threads

    def run(self, before: bytes) -> None:
        """Advance the runs of each set of parameters; those that fail are repeated by the plant's step."""
        asked, plant = self.asked, self.asked.plant
        assert isinstance(plant, SupportsRollouts)
        starts = []
        for blob in asked.initial:  # before parameters change: a snapshot is of the plant with its own
            asked.plant.restore(before if blob is None else blob)
            starts.append(plant.present())
        names = [channel.name for channel in asked.channels]
        for values, runs in asked.groups():
            if values:
                plant.set(**values)  # type: ignore[attr-defined]
            begun = [starts[run if len(starts) > 1 else 0] for run in runs.tolist()]
            commands = asked.commands[runs] if len(asked.commands) > 1 else asked.commands
            first = np.array([state for state, _ in begun])
            result = plant.roll_out(first, commands, asked.length, asked.every, names, self._threads)
            for k, run in enumerate(runs.tolist()):
                state, count = begun[k]
                if not result.sound[k]:
                    plant.put(state, count)
                    self._simulate_run(run, asked.command(run))
                    continue
                for name in names:
                    self.rows[run, :, self.parts[name]] = result.outputs[name][k].reshape(asked.samples, -1)
                self.steps[run] = asked.length
                plant.put(result.ends[k], count + asked.length)
                self.final[run] = asked.plant.snapshot()


class _Compiled(_Outcome):
    """Results by forks of the plant, on threads."""

    def __init__(self, asked: _RolloutRequest, pool: ForkPool) -> None:
        self.plant, self.pool = asked.plant, pool
        fork = pool.fork(0).fork
        account = fork.account
        numbers = {} if account is None else account.numbers
        derived = {} if account is None else account.derived
        names = [channel.name for channel in asked.channels]
        self.derived = {name: derived[name] for name in names if name in derived}
        needed = [
            *(name for name in names if name not in derived),
            *(name for parts, _ in self.derived.values() for name in parts),
        ]
        places = {name: fork.places[name] for name in needed if name in fork.places}
        self.accounted = tuple(dict.fromkeys(name for name in needed if name not in places and name in numbers))
        self.asking = [name for name in names if name not in places and name not in (*numbers, *derived)]
        widths = {name: place[1] for name, place in (*places.items(), *numbers.items())}
        self.width = fork.state.size
        states = asked.runs * (asked.samples if self.asking else 0)
        first = {name: widths[name] for name in (*places, *self.accounted)}
        super().__init__(asked, first, 8 * self.width * (states + asked.runs))
        self.places = np.array(list(places.values()), dtype=np.int64).reshape(-1, 2)

    def run(self, before: bytes) -> None:
        """Advance all runs, some sets of parameters after the others."""
        asked, plant = self.asked, self.plant
        assert isinstance(plant, HasFork)
        starts = []
        for blob in asked.initial:
            plant.restore(before if blob is None else blob)
            starts.append(plant.present())
        samples = asked.samples if self.asking else 0
        self.ends = np.zeros((asked.runs, self.width))
        self.batch = batch_of(
            np.array([state for state, _ in starts]), [count for _, count in starts], asked.commands, plant.dt,
            runs=asked.runs, steps=asked.length, every=asked.every, places=self.places,
            samples=self.rows, states=np.zeros((asked.runs if samples else 0, samples, self.width)),
            ends=self.ends, recovered=self.ends,
        )  # fmt: skip
        self.status, self.steps = self.batch.status, self.batch.done
        groups = asked.groups()
        for begin in range(0, len(groups), MAX_FORKS):
            self._advance_sets(groups[begin : begin + MAX_FORKS])

    def _advance_sets(self, groups: list[tuple[dict[str, Any], npt.NDArray[np.int64]]]) -> None:
        """Advance the runs of some sets of parameters, each set on forks of its own."""
        batch, parts, forks = self.batch, list[npt.NDArray[np.int64]](), {}
        shares = -(-self.pool.threads // len(groups))
        for values, runs in groups:
            self._set(values)
            if not values:
                parts += self.pool.parts(runs, batch.steps)
                self.pool.follow(min(self.pool.threads, len(parts)))
                continue
            for share in np.array_split(runs, min(shares, len(runs))):
                forks.update(dict.fromkeys(share.tolist(), self.pool.current_fork(len(parts))))
                parts.append(share)
        if forks:
            rows = {run: fork.row(self.accounted) for run, fork in forks.items()}
            table = np.zeros((self.asked.runs, len(next(iter(rows.values())))), dtype=np.int64)
            for run, row in rows.items():
                table[run] = row
            batch = batch._replace(run_forks=table)
        self.pool.advance(batch, parts, self.accounted, run_forks=forks)
        for values, runs in groups:
            self._set(values)
            for run in runs.tolist():
                self._conclude(run)

    def _set(self, values: dict[str, Any]) -> None:
        if values:
            self.plant.set(**values)  # type: ignore[attr-defined]

    def _conclude(self, run: int) -> None:
        """Store the results of a run that only the plant can compute: outputs beyond the state, snapshot, reason."""
        asked, plant, batch = self.asked, self.plant, self.batch
        assert isinstance(plant, HasFork)
        first, done = int(batch.counts[run if len(batch.counts) > 1 else 0]), int(self.steps[run])
        for sample in range(done // asked.every if self.asking else 0):
            plant.put(batch.states[run, sample], first + (sample + 1) * asked.every)
            self.sample(run, sample, self.asking)
        plant.put(self.ends[run], first + done)
        self.final[run] = plant.snapshot()
        if self.status[run]:
            commands = asked.command(run)
            try:
                plant.step(commands[done if len(commands) > 1 else 0])
            except DivergedError as fault:
                self.reasons[run] = str(fault)
