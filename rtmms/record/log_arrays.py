"""Arrays of a log for rtmms.read_log: one channel without the others, and without the plant."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import MAX_STEP, OUTCOME_WORDS
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import MIB
from rtmms.base.renamed_outputs import present_output
from rtmms.record.columns import EVENTS, RUN, STEP, find_columns, max_array_bytes, refuse_large_array
from rtmms.record.log import UNREADABLE, Log, Start, open_log, unreadable
from rtmms.record.log_messages import Signal, decode

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

MIN_NOTE_BYTES = 16 * MIB
"""Bytes that notes may have whatever the size of their log; those of a larger log as many as it has."""
_STEP_BYTES = 3 * 8 + np.array(OUTCOME_WORDS).itemsize
"""Bytes of a step: its number, its run, its outcome as a code and as a name."""


class LogArrays(Mapping[str, "Array"]):
    """Log as arrays: one row a step.

    An output is read on demand, and stored. Nothing that the log names is imported or run. For a log of 4000 steps of
    the manta, `log.time.shape` is (4000,), and `log["position"].shape` is (4000, 3). `log.outcomes[0]` may be
    'applied', and `log.info["robot"]` is 'manta'.

    Parameters
    ----------
    log : Log
        The log.
    """

    def __init__(self, log: Log) -> None:
        """Prepare the arrays; `read_log` calls this."""
        self._log = log
        self._signals = {signal.name: signal for signal in log.outputs}
        self._loaded: dict[str, Array] = {}
        self._columns = find_columns(log.path)

    @property
    def path(self) -> Path:
        """The file."""
        return self._log.path

    # --- outputs by name ----------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Array:
        """Return an output at the end of each step.

        Parameters
        ----------
        name : str
            Name of the output, as in `list(log)`.

        Returns
        -------
        Array
            (n, *shape), float64, read-only.

        Raises
        ------
        UnknownNameError
            If the log has no such output.
        """
        name = present_output(name, self._signals)
        if name not in self._signals:
            raise UnknownNameError("output", name, self._signals, f"in {self.path}")
        self._load([self._signals[name]])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Return whether the log has an output of this name."""
        return name in self._signals

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the outputs."""
        return iter(self._signals)

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._signals)

    def __repr__(self) -> str:
        """Return file, robot, number of steps and outputs."""
        return f"<log {self.path}: {self._log.origin['robot']}, {len(self.time)} steps, outputs: {', '.join(self)}>"

    # --- each step ----------------------------------------------------------------------------------------------------

    @property
    def step(self) -> npt.NDArray[np.int64]:
        """Index of each step, (n,)."""
        return self._steps.step

    @property
    def run(self) -> npt.NDArray[np.int64]:
        """Run of each step, (n,): 0 at first, one more after each reset."""
        return self._steps.run

    @cached_property
    def time(self) -> Array:
        """End of each step in simulated time, (n,), s: the instant at which the outputs hold."""
        result: Array = _frozen((self.step + 1) * float(self._log.origin["dt"]))
        return result

    @property
    def outcomes(self) -> npt.NDArray[np.str_]:
        """Outcome of each step, (n,): 'applied', 'stale', 'missed', 'unclaimed' or 'reused'."""
        return self._steps.outcomes

    @cached_property
    def commands(self) -> Mapping[str, Array]:
        """Command of each actuator over each step, {actuator: (n,)}."""
        result = {signal.name: self._column(f"command {signal.name}", signal) for signal in self._log.actuators}
        if all(item is not None for item in result.values()):
            return {name: item for name, item in result.items() if item is not None}
        read = _read_messages(self._log)
        at, each = 0, {}
        for signal in self._log.actuators:
            each[signal.name] = self._aligned(read.steps, read.commands[:, at : at + signal.size], signal)
            at += signal.size
        return each

    @cached_property
    def notes(self) -> tuple[Mapping[str, Any], ...]:
        """Notes that peers wrote into the log.

        Each has 'step' and 'time' (s) before which it came, and 'values'. Damaged places, and the end of a log that was
        cut off, are notes with 'text' alone.
        """
        dt = float(self._log.origin["dt"])
        result: list[Mapping[str, Any]] = [
            {"step": step, "time": step * dt, "values": values} for _, step, values in self._noted("note")
        ]
        result += [{"text": f"{sentence}; what was there is left out"} for sentence in self._log.damage]
        if self._log.end is None:
            result.append({"text": "the log was cut off: it has no end"})
        return tuple(result)

    @cached_property
    def set_points(self) -> Mapping[str, Array]:
        """Set-point that controllers reported, at the end of each step, {name: (n,)}; nan where there was none.

        A set-point that is a text (the words of a course) is not among them.
        """
        changes = [
            (run, step, {name: value for name, value in values.items() if isinstance(value, int | float)})
            for run, step, values in self._noted("set_points")
        ]
        names = dict.fromkeys(name for _, _, values in changes for name in values)
        refuse_large_array(8 * len(names) * len(self.step), max_array_bytes(self.path), self.path, "set-points")
        result = {name: np.full(len(self.step), np.nan) for name in names}
        for run, step, values in changes:
            begin, end = np.searchsorted(self.run, run, "left"), np.searchsorted(self.run, run, "right")
            first = begin + np.searchsorted(self.step[begin:end], step, "left")
            for name, row in result.items():
                row[first:end] = values.get(name, np.nan)
        return {name: _frozen(row) for name, row in result.items()}

    def _noted(self, event: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield run, step and values of each message of /event of one kind."""
        size, run = 0, -1
        limit = max(MIN_NOTE_BYTES, self.path.stat().st_size)
        try:
            for text in self._events():
                message = decode(text)
                run += message["event"] == "start"
                if message["event"] != event or not isinstance(message["values"], dict):
                    continue
                size += len(text)
                if size > limit:
                    raise ModelError(f"{self.path}: expected notes of at most {limit // MIB} MiB, got more")
                step = message["step"]
                if type(step) is not int or not 0 <= step <= MAX_STEP:
                    raise ValueError(f"step: expected a whole number, got {step!r:.60}")
                yield max(run, 0), step, message["values"]
        except UNREADABLE as fault:
            if isinstance(fault, ModelError):
                raise
            raise ModelError(f"{self.path}: a note: {unreadable(fault)}") from None

    @cached_property
    def info(self) -> Mapping[str, Any]:
        """Description of the run and its end.

        Keys are robot, preset, parameters, mode, rate, dt (s), seed, started, command_line, versions, machine,
        actuators, outputs, steps, ended, message, dropped, report. `ended` is None for a log that was cut off.
        """
        origin, end = self._log.origin, self._log.end
        names = ("robot", "preset", "parameters", "mode", "rate", "dt", "seed", "started", "command_line", "versions")
        return {
            **{name: origin.get(name) for name in names}, "machine": origin.get("machine"),
            **{kind: [dict(item) for item in origin[kind]] for kind in ("actuators", "outputs")},
            "steps": len(self.step),
            "ended": None if end is None else end.ended, "message": "" if end is None else end.message,
            "dropped": None if end is None else end.dropped,
            "report": None if end is None else end.fields.get("report"),
        }  # fmt: skip

    # --- other libraries ----------------------------------------------------------------------------------------------

    def to_xarray(self) -> Any:
        """Return all outputs and commands as a Dataset over `time`.

        Returns
        -------
        xarray.Dataset
            Outputs under their names, commands as command.NAME, `outcome`, `step`, `run`; units and frames are
            attributes.

        Raises
        ------
        ModelError
            If the library xarray is not installed.
        """
        xarray = self._library("xarray")
        self._load(self._log.outputs)
        each: dict[str, Any] = {
            name: (("time",), values)
            for name, values in (("step", self.step), ("run", self.run), ("outcome", self.outcomes))
        }
        for prefix, signals, values in (
            ("command.", self._log.actuators, self.commands), ("", self._log.outputs, self),
        ):  # fmt: skip
            for signal in signals:
                dimensions = ("time", *(f"{prefix}{signal.name}_{k}" for k in range(len(signal.shape))))
                attributes = {k: v for k, v in (("unit", signal.unit), ("frame", signal.frame)) if v}
                each[prefix + signal.name] = (dimensions, values[signal.name], attributes)
        each.pop("time", None)
        facts = {name: self.info[name] for name in ("robot", "mode", "dt", "seed", "started", "command_line")}
        return xarray.Dataset(each, coords={"time": ("time", self.time, {"unit": "s"})}, attrs=facts)

    def to_pandas(self) -> Any:
        """Return all outputs and commands as a table.

        Returns
        -------
        pandas.DataFrame
            One row a step, with the index `time` (s); columns run, step, outcome, command.NAME, then outputs as
            position[0].

        Raises
        ------
        ModelError
            If the library pandas is not installed.
        """
        pandas = self._library("pandas")
        self._load(self._log.outputs)
        each: dict[str, Any] = {"run": self.run, "step": self.step, "outcome": self.outcomes}
        for prefix, signals, values in (
            ("command.", self._log.actuators, self.commands), ("", self._log.outputs, self),
        ):  # fmt: skip
            for signal in signals:
                flat = values[signal.name].reshape(len(self.step), signal.size)
                each |= {prefix + column: flat[:, k] for k, column in enumerate(signal.columns)}
        return pandas.DataFrame(each, index=pandas.Index(self.time, name="time"))

    def _library(self, name: str) -> Any:
        if find_spec(name) is None:
            raise ModelError(f"{self.path}: to_{name} needs the library {name}: pip install {name}")
        return import_module(name)

    # --- where they come from: columns, else messages -----------------------------------------------------------------

    @cached_property
    def _steps(self) -> _Steps:
        """Data common to all channels; if the columns lack them, no column is used."""
        columns = self._columns
        if columns is not None:
            refuse_large_array(_STEP_BYTES * columns.rows, max_array_bytes(self.path), self.path, "steps")
            step, run, outcomes = columns.read(STEP, whole=True), columns.read(RUN, whole=True), columns.outcomes()
            if step is not None and run is not None and outcomes is not None:
                return _Steps(_frozen(step[:, 0]), _frozen(run[:, 0]), _frozen(outcomes))
        self._columns = None
        return _read_messages(self._log).steps

    def _load(self, signals: Iterable[Signal]) -> None:
        """Load missing outputs; one pass over the messages reads all those without a column."""
        remaining = []
        for signal in signals:
            if signal.name not in self._loaded:
                result = self._column(f"output {signal.name}", signal)
                if result is None:
                    remaining.append(signal)
                else:
                    self._loaded[signal.name] = result
        if not remaining:
            return
        read = _read_messages(self._log, remaining)
        if self._columns is None:
            self.__dict__.setdefault("_steps", read.steps)
        for signal in remaining:
            self._loaded[signal.name] = self._aligned(read.steps, read.outputs[signal.name], signal)

    def _column(self, name: str, signal: Signal) -> Array | None:
        """Return an array from the columns; None if they lack it."""
        if self._columns is None or not self._columns.has(name):
            return None
        result = self._columns.read(name, signal.size)
        return None if result is None else _frozen(result.reshape(len(result), *signal.shape))

    def _aligned(self, steps: _Steps, values: Array, signal: Signal) -> Array:
        """Return rows from messages, one for each of our steps: nan for damaged ones."""
        ours = self._steps
        if not (np.array_equal(steps.step, ours.step) and np.array_equal(steps.run, ours.run)):
            places = {key: k for k, key in enumerate(zip(steps.run.tolist(), steps.step.tolist(), strict=True))}
            full = np.full((len(ours.step), signal.size), np.nan)
            for k, key in enumerate(zip(ours.run.tolist(), ours.step.tolist(), strict=True)):
                if key in places:
                    full[k] = values[places[key]]
            values = full
        rows: Array = _frozen(values.reshape(len(values), *signal.shape))
        return rows

    def _events(self) -> Iterator[bytes]:
        """Yield the messages of /event."""
        if self._columns is not None and self._columns.has(EVENTS):
            try:
                yield from list(self._columns.events())
                return
            except ValueError:  # a part is damaged
                pass
        yield from self._log.events()


@dataclass(frozen=True)
class _Steps:
    """Index, run and outcome of each step, (n,) each."""

    step: npt.NDArray[np.int64]
    run: npt.NDArray[np.int64]
    outcomes: npt.NDArray[np.str_]


@dataclass(frozen=True)
class _Read:
    """Result of one pass over the messages: steps, their commands (n, actuators), and outputs (n, size)."""

    steps: _Steps
    commands: Array
    outputs: Mapping[str, Array]


def _read_messages(log: Log, signals: Sequence[Signal] = ()) -> _Read:
    """Read all undamaged steps from the messages, with the requested outputs."""
    steps, runs, codes = array("q"), array("q"), array("q")
    commands, outputs = array("d"), array("d")
    codes_of, run = {word: code for code, word in enumerate(OUTCOME_WORDS)}, -1
    limit, sizes = max_array_bytes(log.path), [signal.size for signal in signals]
    largest = max(sizes, default=0)
    subject = max(signals, key=lambda item: item.size).name if signals else "steps"
    for row in log.rows([signal.name for signal in signals]):
        if isinstance(row, Start):
            run += 1
            continue
        steps.append(row.step)
        runs.append(max(run, 0))
        codes.append(codes_of[row.outcome])
        commands.frombytes(row.command.tobytes())
        outputs.frombytes(row.outputs.tobytes())
        count = (_STEP_BYTES + 8 * largest) * len(steps) + 8 * len(commands)
        refuse_large_array(count, limit, log.path, subject)
    outcomes = np.array(OUTCOME_WORDS)[np.frombuffer(codes, dtype=np.int64)]
    step, run_numbers = (_frozen(np.frombuffer(item, dtype=np.int64)) for item in (steps, runs))
    each = _Steps(step, run_numbers, _frozen(outcomes))
    width = sum(actuator.size for actuator in log.actuators)
    table = np.frombuffer(outputs).reshape(len(steps), sum(sizes))
    parts = np.split(table, np.cumsum(sizes)[:-1], axis=1)
    result = {signal.name: np.ascontiguousarray(part) for signal, part in zip(signals, parts, strict=False)}
    return _Read(each, np.frombuffer(commands).reshape(len(steps), width), result)


def _frozen(values: Any) -> Any:
    values.setflags(write=False)
    return values


def read_log(path: str | Path) -> LogArrays:
    """Open a log to read its channels as arrays.

    Parameters
    ----------
    path : str | Path
        A log of `rtmms run --log`, whole, cut off or damaged.

    Returns
    -------
    LogArrays
        `log["position"]` (n, 3), `log.time`, `log.commands`, `log.outcomes`, `log.notes`, `log.info`.

    Raises
    ------
    ModelError
        If there is no such file, or if it is no log.

    Notes
    -----
    Logs have columns of outputs with at most 16 numbers. A larger output is read from the messages, step by step. So is
    every output of an older log, or of a log that was cut off.
    """
    return LogArrays(open_log(path))
