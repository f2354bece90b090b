"""Many runs of one plant at once: commands in, outputs out, on compiled threads where the plant has compiled steps.

    runs = rtmms.rollout(plant, commands, outputs=("position", "quaternion"), every=10)
    runs.outputs["position"]        # (runs, samples, 3)

A run has the bits of stepping by hand, for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Lock, current_thread, main_thread
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import carray

from rtmms.base.errors import ArgumentError, DivergedError, ModelError, UnknownNameError
from rtmms.base.jit import kernel
from rtmms.base.memory import ARGUMENTS, call, numbers_at
from rtmms.plant.protocol import Fork, Forking, Plant, describe_plant
from rtmms.plant.validation import obeyed, read_out, read_table

Array = npt.NDArray[np.float64]


# A run of a fork's steps without Python: commands in, samples of its state out (rtmms.analysis.rollouts).


@kernel
def roll(
    function: int, arguments_at: int, command_at: int, commands: Any, steps: int, state: Any, start_at: int, dt: float,
    first: int, every: int, places: Any, told: Any, teller: int, teller_at: int, out: Any, kept: Any, stop: Any,
    done: Any,
) -> int:  # fmt: skip
    """Up to `steps` steps; the status of the last, 0 when all is well.

    function, arguments_at, command_at   of the fork's entry (rtmms.plant.protocol.Entry)
    commands  (steps, n) or (1, n), the same at each step
    state     (w,) the fork's;  start_at  address of the time at which a step begins, written before each
    first     steps before this run;  every   steps from sample to sample
    places    (k, 2) begin and length in `state` of what each row of out (samples, width) holds, one after the other
    told      (k, 2) address and length of outputs that `teller` writes, a function of the words at teller_at; they
              follow those of `places` in a row
    kept      (samples, w) whole states at the same times, or (0, w)
    stop      (1,) int64: other than 0 it ends the run;  done  (1,) int64: steps that were taken; written
    """
    rows, n = commands.shape
    command, start = carray(numbers_at(command_at), (n,)), carray(numbers_at(start_at), (1,))
    done[0] = 0
    for k in range(steps):
        row = k if rows > 1 else 0
        for i in range(n):
            command[i] = commands[row, i]
        start[0] = (first + k) * dt
        status = call(function, arguments_at)
        if status != 0:
            return int(status)
        done[0] = k + 1
        if (k + 1) % every == 0:
            sample, at = (k + 1) // every - 1, 0
            for p in range(len(places)):
                begin = places[p, 0]
                for i in range(begin, begin + places[p, 1]):
                    out[sample, at] = state[i]
                    at += 1
            if len(told):
                call(teller, teller_at)
                for p in range(len(told)):
                    numbers = carray(numbers_at(told[p, 0]), (told[p, 1],))
                    for i in range(told[p, 1]):
                        out[sample, at] = numbers[i]
                        at += 1
            if len(kept):
                for i in range(len(state)):
                    kept[sample, i] = state[i]
        if stop[0] != 0:
            return 0
    return 0


FAILED = 1
"""Status of a run that failed, where the plant has no number for it."""
MOST_FORKS = 64
"""Sets of parameters whose memory stands at the same time."""
MOST_STEPS = 1 << 40


@dataclass
class Runs:
    """What came out.

    outputs   {name: (runs, samples, *shape)} after each `every` steps; nan after a run's end
    commands  (runs, steps, n_actuators) as applied: within the limits of the actuators, those that hold together too;
              of length 1 where what was given is
    final     a snapshot of each run at its end; of one that failed its last sound state
    status    (runs,) 0: all steps were taken; else what the plant's step returned
    steps     (runs,) that were taken
    dt        s, of a step;  every   steps from sample to sample
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
        """(samples,) s from the beginning of the runs."""
        samples = next(iter(self.outputs.values())).shape[1] if self.outputs else 0
        return self.dt * self.every * np.arange(1, samples + 1)

    def reason(self, run: int) -> str:
        """Why a run ended early; '' for one that did not."""
        return self.reasons.get(run, "")


def rollout(
    plant: Plant, commands: Any, initial: Any = None, outputs: Sequence[str] = ("position",), every: int = 1,
    threads: int | None = None, parameters: Mapping[str, Any] | None = None, out: Mapping[str, Array] | None = None,
) -> Runs:  # fmt: skip
    """Runs of a plant side by side, from one state or several; the plant is left as it was.

    commands    (runs, steps, n_actuators) in the actuators' units; an axis of length 1 stands for all
    initial     a snapshot for all runs or one for each; None: the plant's present state
    outputs     names of outputs to sample after each `every` steps; position, quaternion, velocity, angular_velocity
                and joints' positions and rates are free, others are asked from the plant one by one
    threads     None: as many as there are cores
    parameters  {name: (runs,)} of `plant.settable`
    out         {name: array (runs, samples, *shape)} to write outputs into
    The bits do not depend on `threads`. Raises ArgumentError for shapes and values that do not fit, UnknownNameError,
    ModelError; a run that fails raises nothing and ends by itself, see Runs.status.
    """
    with Rollout(plant, threads) as pool:
        return pool(commands, initial, outputs, every, parameters, out)


class _Task(NamedTuple):
    """Runs that one thread takes one after the other on one fork."""

    fork: Fork
    runs: npt.NDArray[np.int64]


class Rollout:
    """Threads that are kept from one call to the next; a context manager. Arguments as those of `rollout`."""

    def __init__(self, plant: Plant, threads: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ArgumentError(f"rollout: threads: expected a whole number from 1 on, got {threads!r}")
        if not callable(getattr(plant, "step", None)):
            raise ArgumentError(f"rollout: expected a plant, as rtmms.load gives, got {plant!r:.60}")
        self.plant, self.threads = plant, threads or cores
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="rollout")
        self._forks: list[Fork] = []
        self._lock = Lock()

    def __enter__(self) -> Rollout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def __call__(
        self, commands: Any, initial: Any = None, outputs: Sequence[str] = ("position",), every: int = 1,
        parameters: Mapping[str, Any] | None = None, out: Mapping[str, Array] | None = None,
    ) -> Runs:  # fmt: skip
        with self._lock:  # the plant itself is used, and put back
            return self._roll(commands, initial, outputs, every, parameters, out)

    def _roll(
        self, commands: Any, initial: Any, outputs: Sequence[str], every: int,
        parameters: Mapping[str, Any] | None, out: Mapping[str, Array] | None,
    ) -> Runs:  # fmt: skip
        plant = self.plant
        asked = _Asked(plant, commands, initial, outputs, every, parameters)
        asked.refuse_out(out)
        before = plant.snapshot()
        usual = _values(plant, asked.parameters)
        try:
            with np.errstate(all="ignore"):
                fork = self._fork(0)
                work = _Plain(asked) if fork is None else _Compiled(asked, self, fork)
                work.run(before)
        finally:
            if usual:
                plant.set(**usual)  # type: ignore[attr-defined]
            plant.restore(before)
        found = work.outputs()
        if out is not None:
            for name, array in out.items():
                array[...] = found[name]
                found[name] = array
        return Runs(
            found, obeyed(asked.commands, plant.actuators, describe_plant(plant).coupled),
            work.final, work.status, work.steps, plant.dt, every, work.reasons,
        )  # fmt: skip

    def _fork(self, k: int) -> Fork | None:
        """The k-th, with the plant's parameters of now, kept from call to call; None where the plant makes none."""
        if not isinstance(self.plant, Forking):
            return None
        if k < len(self._forks) and self._forks[k].follow():
            return self._forks[k]
        made = self.plant.fork()
        if made is not None:
            self._forks[k : k + 1] = [made]
        return made


class _Asked:
    """The arguments of a call, checked."""

    def __init__(
        self, plant: Plant, commands: Any, initial: Any, outputs: Sequence[str], every: int,
        parameters: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        self.plant, n = plant, len(plant.actuators)
        given = read_table("rollout", "commands", commands, f"numbers (runs, steps, {n})")
        if given.ndim != 3 or given.shape[2] not in (n, 1) or 0 in given.shape[:2]:
            raise ArgumentError(f"rollout: commands: expected an array (runs, steps, {n}), got shape {given.shape}")
        if not np.isfinite(given).all():
            run, step, which = (int(k) for k in np.argwhere(~np.isfinite(given))[0])
            raise ArgumentError(f"rollout: commands: must be finite, got {given[run, step, which]} in [{run}, {step}]")
        if given.shape[2] != n:
            given = np.ascontiguousarray(np.broadcast_to(given, (*given.shape[:2], n)))
        self.commands = given
        if isinstance(every, bool) or not isinstance(every, int) or not 1 <= every <= MOST_STEPS:
            raise ArgumentError(f"rollout: every: expected a whole number from 1 to {MOST_STEPS}, got {every!r}")
        self.every = every
        self.parameters = _parameters(plant, parameters or {})
        self.initial = [initial] if initial is None or isinstance(initial, bytes) else list(initial)
        lengths = {"commands": given.shape[0], "initial": len(self.initial)}
        lengths |= {f"parameters: {name}": len(values) for name, values in self.parameters.items()}
        counts = {count for count in lengths.values() if count != 1}
        if len(counts) > 1 or 0 in counts:
            told = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise ArgumentError(f"rollout: expected the same number of runs, or 1, got {told}")
        self.runs = max(lengths.values())
        self.length = given.shape[1]
        if isinstance(outputs, str):
            raise ArgumentError(f"rollout: outputs: expected a sequence of names, got '{outputs}'")
        known = {channel.name: channel for channel in plant.outputs}
        for name in outputs:
            if name not in known:
                raise UnknownNameError("output", str(name), known)
        self.channels = [known[name] for name in dict.fromkeys(outputs)]

    @property
    def samples(self) -> int:
        return int(self.length // self.every)

    def refuse_out(self, out: Any) -> None:
        """ArgumentError for arrays that outputs cannot be written into, before a step is taken."""
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
        """(steps or 1, n)"""
        found: Array = self.commands[run if len(self.commands) > 1 else 0]
        return found

    def groups(self) -> list[tuple[dict[str, float], npt.NDArray[np.int64]]]:
        """Runs by their values of parameters."""
        if not self.parameters:
            return [({}, np.arange(self.runs))]
        table = np.stack([np.broadcast_to(values, self.runs) for values in self.parameters.values()], axis=1)
        sets, of = np.unique(table, axis=0, return_inverse=True)
        of = of.reshape(-1)
        named = [dict(zip(self.parameters, row.tolist(), strict=True)) for row in sets]
        return [(one, np.flatnonzero(of == k)) for k, one in enumerate(named)]


def _parameters(plant: Plant, given: Mapping[str, Any]) -> dict[str, Array]:
    if not given:
        return {}
    about = describe_plant(plant)
    if about.set is None or about.settable is None:
        raise ModelError("rollout: parameters: this plant has none that can change while it runs")
    found = {}
    for name, values in given.items():
        if name not in about.settable:
            raise UnknownNameError("parameter that can differ between runs", name, about.settable)
        array = np.atleast_1d(read_table("rollout: parameters", name, values, "finite numbers (runs,)"))
        if array.ndim != 1 or not np.isfinite(array).all():
            raise ArgumentError(f"rollout: parameters: {name}: expected finite numbers (runs,), got {values!r:.60}")
        found[name] = array
    return found


def _values(plant: Plant, names: Iterable[str]) -> dict[str, Any]:
    """As they are now."""
    told = describe_plant(plant).parameters()
    return {name: told[name] if isinstance(told, Mapping) else getattr(told, name) for name in names}


class _Outcome:
    """Arrays of a call's results.  rows (runs, samples, width): of each output its numbers, one after the other"""

    def __init__(self, asked: _Asked, more_bytes: int = 0) -> None:
        self.asked, runs = asked, asked.runs
        self.parts, width = {}, 0
        for channel in asked.channels:
            size = int(np.prod(channel.shape, dtype=np.int64))
            self.parts[channel.name] = slice(width, width + size)
            width += size
        needed = 8 * runs * asked.samples * width + more_bytes
        free = _free_bytes()
        if needed > free:
            raise ModelError(
                f"rollout: {runs} runs with {asked.samples} samples need {needed:,} bytes, and {free:,} are free: take "
                "a larger `every`, fewer outputs, or fewer runs a call"
            )
        self.rows = np.full((runs, asked.samples, width), np.nan)
        self.status, self.steps = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        self.final: list[bytes] = [b""] * runs
        self.reasons: dict[int, str] = {}

    def outputs(self) -> dict[str, Array]:
        runs, samples = self.rows.shape[:2]
        return {
            channel.name: self.rows[:, :, self.parts[channel.name]].reshape(runs, samples, *channel.shape)
            for channel in self.asked.channels
        }

    def sample(self, run: int, sample: int, names: Iterable[str]) -> None:
        told = self.asked.plant.observe()
        for name in names:
            self.rows[run, sample, self.parts[name]] = np.ravel(told[name])


def _free_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 1 << 62


class _Plain(_Outcome):
    """By `step` alone, one after the other: plants in plain Python, FMUs, sensors."""

    def run(self, before: bytes) -> None:
        asked, plant = self.asked, self.asked.plant
        for values, runs in asked.groups():
            if values:
                raise ModelError("rollout: parameters: this plant has no compiled steps; make a plant for each value")
            for run in runs.tolist():
                start = asked.start(run)
                plant.restore(before if start is None else start)
                self._one(run, asked.command(run))

    def _one(self, run: int, commands: Array) -> None:
        asked, plant = self.asked, self.asked.plant
        try:
            for k in range(asked.length):
                plant.step(commands[k if len(commands) > 1 else 0])
                self.steps[run] = k + 1
                if (k + 1) % asked.every == 0:
                    self.sample(run, (k + 1) // asked.every - 1, self.parts)
        except DivergedError as fault:
            self.status[run], self.reasons[run] = FAILED, str(fault)
        self.final[run] = plant.snapshot()


class _Compiled(_Outcome):
    """On forks of the plant, on threads."""

    def __init__(self, asked: _Asked, pool: Rollout, fork: Fork) -> None:
        plant = asked.plant
        assert isinstance(plant, Forking)
        self.places = {
            name: place for name, place in fork.places.items() if any(c.name == name for c in asked.channels)
        }
        told = fork.account.numbers if fork.account is not None else {}
        named = [channel.name for channel in asked.channels if channel.name not in self.places]
        self.told = [name for name in named if name in told]
        self.asking = [name for name in named if name not in told]
        words = fork.state.size
        kept = asked.runs * asked.samples if self.asking else 0
        super().__init__(asked, 8 * words * (kept + asked.runs))
        self.plant, self.pool, self.words = plant, pool, words
        self.kept = np.zeros((asked.runs, asked.samples if self.asking else 0, words))
        self.ends = np.zeros((asked.runs, words))
        self.stop = np.zeros(1, dtype=np.int64)
        # columns of `rows` in the order of the kernel's places
        self.table = np.array(list(self.places.values()), dtype=np.int64).reshape(-1, 2)
        order = [self.parts[name] for name in (*self.places, *self.told)]
        self.columns = (
            np.concatenate([np.arange(part.start, part.stop) for part in order]) if order else np.zeros(0, int)
        )
        self.in_place = self.columns.size == self.rows.shape[2] and bool((np.diff(self.columns) == 1).all())

    def run(self, before: bytes) -> None:
        asked = self.asked
        starts: dict[int, tuple[Array, int]] = {}
        for k, blob in enumerate(asked.initial):
            self.plant.restore(before if blob is None else blob)
            starts[k] = self.plant.present()
        groups = asked.groups()
        for begin in range(0, len(groups), MOST_FORKS):
            self._some(groups[begin : begin + MOST_FORKS], starts)

    def _some(
        self, groups: list[tuple[dict[str, float], npt.NDArray[np.int64]]], starts: dict[int, tuple[Array, int]]
    ) -> None:
        tasks: list[_Task] = []
        shares = -(-self.pool.threads // len(groups))
        for values, runs in groups:
            self._set(values)
            for share in np.array_split(runs, min(shares, len(runs))):
                fork = self.pool._fork(len(tasks))
                assert fork is not None
                tasks.append(_Task(fork, share))
        self._all(tasks, starts)
        for values, runs in groups:
            self._set(values)
            for run in runs.tolist():
                self._conclude(run, starts)

    def _set(self, values: dict[str, float]) -> None:
        if values:
            self.plant.set(**values)  # type: ignore[attr-defined]

    def _all(self, tasks: list[_Task], starts: dict[int, tuple[Array, int]]) -> None:
        """Do them; Ctrl-C ends them at their next steps."""
        if len(tasks) == 1 and current_thread() is not main_thread():  # which alone hears of Ctrl-C
            self._take(tasks[0], starts)
            return
        going = [self.pool._pool.submit(self._take, task, starts) for task in tasks]
        left = set(going)
        try:
            while left and not any(one.done() and one.exception() for one in going):
                _, left = wait(left, 0.2, FIRST_EXCEPTION)  # a wait without end would not hear Ctrl-C everywhere
        finally:
            self.stop[0] = 1
            wait(going)
            self.stop[0] = 0
        for one in going:
            one.result()

    def _take(self, task: _Task, starts: dict[int, tuple[Array, int]]) -> None:
        asked, fork = self.asked, task.fork
        words = np.zeros(ARGUMENTS, dtype=np.int64)
        words[: len(fork.entry.arguments)] = fork.entry.arguments
        telling, told, teller = np.zeros(ARGUMENTS, dtype=np.int64), np.zeros((0, 2), dtype=np.int64), 0
        if fork.account is not None and self.told:
            teller = fork.account.function
            telling[: len(fork.account.arguments)] = fork.account.arguments
            told = np.array([fork.account.numbers[name] for name in self.told], dtype=np.int64)
        done = np.zeros(1, dtype=np.int64)
        rows = np.zeros((asked.samples, self.columns.size))
        for run in task.runs.tolist():
            if self.stop[0]:
                return
            state, first = starts[run if len(starts) > 1 else 0]
            fork.state[:] = state
            out = self.rows[run] if self.in_place else rows
            self.status[run] = roll(
                fork.entry.function, words.ctypes.data, fork.entry.command, asked.command(run), asked.length,
                fork.state, fork.start.ctypes.data, asked.plant.dt, first, asked.every, self.table,
                told, teller, telling.ctypes.data, out, self.kept[run], self.stop, done,
            )  # fmt: skip
            self.steps[run] = done[0]
            if not self.in_place:
                samples = int(done[0]) // asked.every
                self.rows[run, :samples, self.columns] = rows[:samples].T
            if self.status[run]:
                self.ends[run] = fork.sound
                fork.clear()
            else:
                self.ends[run] = fork.state

    def _conclude(self, run: int, starts: dict[int, tuple[Array, int]]) -> None:
        """What the plant itself has to tell of a run: outputs that do not stand in the state, snapshot, reason."""
        asked, plant = self.asked, self.plant
        first, done = starts[run if len(starts) > 1 else 0][1], int(self.steps[run])
        for sample in range(done // asked.every if self.asking else 0):
            plant.put(self.kept[run, sample], first + (sample + 1) * asked.every)
            self.sample(run, sample, self.asking)
        plant.put(self.ends[run], first + done)
        self.final[run] = plant.snapshot()
        if self.status[run]:
            commands = asked.command(run)
            try:
                plant.step(commands[done if len(commands) > 1 else 0])
            except DivergedError as fault:
                self.reasons[run] = str(fault)
