"""Logs: reading step by step, whole or cut off anywhere; and a log's data about its plant."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import MAX_STEP, OUTCOME_WORDS, PARTS, TRUTH, UNDEFINED
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.files import open_input
from rtmms.base.override import override
from rtmms.loop.log_row import OUTCOME_COLUMNS
from rtmms.plant.loading import robots
from rtmms.plant.protocol import Channel, Plant
from rtmms.record.log_location import part_of, refuse_without_mcap
from rtmms.record.log_messages import FORMAT, Signal, Values, decode, signals
from rtmms.record.origin import rebuild_plant, refuse_channels, refuse_origin, refuse_report
from rtmms.record.records import MAGIC, records

if TYPE_CHECKING:
    import numpy.typing as npt


Array = npt.NDArray[np.float64]


# Reader of a log, step by step, whole or cut off anywhere.


UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""Exceptions while reading a message that is not of the form in which a run writes it."""


def unreadable(fault: Exception) -> str:
    """Return one of UNREADABLE as text.

    Parameters
    ----------
    fault : Exception
        The exception.

    Returns
    -------
    str
        The text.
    """
    if isinstance(fault, KeyError):
        return f"expected {str(fault)[:60]} in it"
    if isinstance(fault, RecursionError):
        return "nested too deep"
    return "expected a message as a run writes it" + (f": {str(fault)[:120]}" if isinstance(fault, ValueError) else "")


UNDRAWABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Exceptions while drawing numbers that no run has: invalid poses, outputs of other sizes than their robot's."""


@contextmanager
def drawing(path: Path) -> Iterator[None]:
    """Draw a figure or a film of a log.

    Parameters
    ----------
    path : Path
        The log.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    ModelError
        If its numbers cannot be drawn.
    """
    try:
        yield
    except RtmmsError:
        raise
    except UNDRAWABLE as fault:
        reason = (str(fault).splitlines() or [""])[0]
        raise ModelError(f"{path}: the log cannot be drawn: {type(fault).__name__}: {reason:.120}") from None


@dataclass(slots=True)
class Start:
    """State to start from: the first, or after a reset.

    Parameters
    ----------
    step : int
        Index of the step.
    seed : int
        Seed of the reset.
    outputs : Array
        (w,) outputs, flattened as in the origin.
    """

    step: int
    seed: int
    outputs: Array


@dataclass(slots=True)
class Step:
    """Step of a log.

    Parameters
    ----------
    step : int
        Index of the step.
    command : Array
        (n,) command over it, as the plant received it.
    outputs : Array
        (w,) outputs at its end, flattened as in the origin.
    outcome : str
        Name of a StepOutcome.
    seq, target_step, lateness_ns, policy, clamped : int
        As in Applied.
    overruns, skipped : int
        Counts so far.
    times : tuple[int, ...], optional
        Times of wake, exchange, plant and slack, ns; UNDEFINED for none, or if the log was cut off.
    altered : bool, default False
        Whether a request changed the state before it.
    set_points : Mapping[str, Any] | None, optional
        Set-points of controllers from its end on, by name; None: as before.
    notes : tuple[Mapping[str, Any], ...], optional
        Notes of peers since the step before.
    more : Mapping[str, Any], optional
        Further values of the log, by name.
    """

    step: int
    command: Array
    outputs: Array
    outcome: str
    seq: int
    target_step: int
    lateness_ns: int
    policy: str
    clamped: bool
    overruns: int
    skipped: int
    times: tuple[int, ...] = (UNDEFINED,) * len(PARTS)
    altered: bool = False
    set_points: Mapping[str, Any] | None = None
    notes: tuple[Mapping[str, Any], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, Any], **values: Any) -> Step:
        """Return the step of a message of /outcome: the fields above by name, the others in `more`.

        Parameters
        ----------
        fields : Mapping[str, Any]
            The message.
        **values : Any
            Further fields.

        Returns
        -------
        Step
            The step.

        Raises
        ------
        ValueError
            If the message has another form.
        """
        if "meant_for" in fields:  # name of target_step before 0.2
            fields = {"target_step" if name == "meant_for" else name: value for name, value in fields.items()}
        for name, outcome_column in OUTCOME_COLUMNS.items():
            if name in fields:
                _expect(fields[name], outcome_column.kind, name)
        if fields["outcome"] not in OUTCOME_WORDS:
            raise ValueError(f"outcome: expected {', '.join(OUTCOME_WORDS)}, got {fields['outcome']!r:.60}")
        known = {name: value for name, value in fields.items() if name in cls.__slots__}
        return cls(more={name: fields[name] for name in fields.keys() - known.keys()}, **known, **values)

    def text(self, name: str) -> Any:
        """Return a column of rtmms.loop.log_row.OUTCOME_COLUMNS.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        Any
            The value; None if the log does not have it.
        """
        return self.more.get(name) if name in self.more else getattr(self, name, None)


def _expect(value: Any, kind: type, name: str) -> Any:
    """Return a value; ValueError for another type, or a whole number beyond 64 bits."""
    beyond = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    if type(value) is not kind or beyond:
        raise ValueError(f"{name}: expected {kind.__name__}, got {value!r:.60}")
    return value


MAX_MISSING_STEPS = 10_000_000
"""Steps that may be missing in one place of a log."""


@dataclass(frozen=True)
class Log:
    """Log file: its origin, and its steps, read on demand.

    Parameters
    ----------
    path : Path
        The file.
    origin : Mapping[str, Any]
        Description of the run, see rtmms.record.origin.
    """

    path: Path
    origin: Mapping[str, Any]

    @cached_property
    def actuators(self) -> tuple[Signal, ...]:
        """Actuators of the plant."""
        return signals(self.origin["actuators"])

    @cached_property
    def outputs(self) -> tuple[Signal, ...]:
        """Outputs of the plant."""
        return signals(self.origin["outputs"])

    def split(self, numbers: Array) -> dict[str, Array]:
        """Return outputs by name, as views.

        Parameters
        ----------
        numbers : Array
            (w,) flattened outputs.

        Returns
        -------
        dict[str, Array]
            Arrays of their shapes by name.
        """
        result: dict[str, Array] = {}
        at = 0
        for signal in self.outputs:
            result[signal.name] = numbers[at : at + signal.size].reshape(signal.shape)
            at += signal.size
        return result

    def rows(self, outputs: Sequence[str] | None = None, every: int = 1) -> Iterator[Start | Step]:
        """Yield starts and steps in their order, to the end of the file or of its readable part.

        Damaged ones are left out (see `damage`).

        Parameters
        ----------
        outputs : Sequence[str] | None, optional
            Names of the outputs to read, in their order; None: all.
        every : int, default 1
            Of each run, the first step and every so many-th after it; a step has the notes of those left out.

        Yields
        ------
        Start | Step
            Each start or step.

        Raises
        ------
        ModelError
            If a message has another form, or too many steps are missing.
        """
        reading = _Reading(Values(self.actuators), Values(self.outputs, outputs), every)
        topics: dict[int, str] = {}
        before = 0
        for record in records(self.path):
            kind = type(record).__name__
            if kind == "Channel":
                topics[record.id] = record.topic
            elif kind == "Message":
                topic = topics.get(record.channel_id, "")
                if topic == "/state" and reading.leaves_out():
                    continue
                try:
                    result = list(reading.take(topic, decode(record.data)))
                except UNREADABLE as fault:
                    place = f"{self.path}: message {record.sequence} of {topic}"
                    raise ModelError(f"{place}: {unreadable(fault)}") from None
                for row in result:
                    if type(row.step) is not int or not 0 <= row.step <= MAX_STEP:
                        got = f"expected a number up to {MAX_STEP}, got {row.step!r:.60}"
                        raise ModelError(f"{self.path}: number of a step: {got}")
                    far = row.step - before
                    if far > MAX_MISSING_STEPS:
                        raise ModelError(f"{self.path}: step {row.step} follows {before}: {far} steps are missing")
                    before = row.step
                    yield row
        yield from reading.flush_waiting()

    def events(self) -> Iterator[bytes]:
        """Yield the messages of /event.

        Yields
        ------
        bytes
            Each message, in JSON.
        """
        topics: dict[int, str] = {}
        for record in records(self.path):
            kind = type(record).__name__
            if kind == "Channel":
                topics[record.id] = record.topic
            elif kind == "Message" and topics.get(record.channel_id) == "/event":
                yield record.data

    def spans(self) -> list[tuple[int, int]]:
        """Return the extent of each run, without reading contents; resets separate runs.

        Returns
        -------
        list[tuple[int, int]]
            First step, and the one after the last, of each run.

        Raises
        ------
        ModelError
            If a message has another form.
        """
        topics: dict[int, str] = {}
        result: list[tuple[int, int]] = []
        for record in records(self.path):
            kind = type(record).__name__
            if kind == "Channel":
                topics[record.id] = record.topic
            elif kind != "Message":
                continue
            elif topics.get(record.channel_id) == "/event":
                try:
                    event = decode(record.data)
                    if event["event"] == "start":
                        step = _expect(event["step"], int, "step")
                        result.append((step, step))
                except UNREADABLE as fault:
                    raise ModelError(f"{self.path}: message {record.sequence} of /event: {unreadable(fault)}") from None
            elif topics.get(record.channel_id) == "/outcome" and result:
                first, end = result[-1]
                result[-1] = first, end + 1
        return result

    def count_steps(self) -> tuple[int, int]:
        """Count the steps without reading their contents, in a tenth of the time of `rows`.

        Returns
        -------
        tuple[int, int]
            Number of steps in the file, and of those with an index that is not one more than the one before.
        """
        topics: dict[int, str] = {}
        branch = self.origin.get("branch")
        steps, wrong, before = 0, 0, (0 if branch is None else branch["step"]) - 1
        for record in records(self.path):
            kind = type(record).__name__
            if kind == "Channel":
                topics[record.id] = record.topic
            elif kind == "Message" and topics.get(record.channel_id) == "/outcome":
                steps += 1
                wrong += record.sequence != before + 1 & 0xFFFFFFFF
                before = record.sequence
        return steps, wrong

    @cached_property
    def damage(self) -> tuple[str, ...]:
        """Sentences about places that cannot be read.

        It is () for a sound file; a log that was cut off is not damaged.
        """
        result: list[str] = []
        for _ in records(self.path, "check", result):
            pass
        return tuple(result)

    @cached_property
    def end(self) -> End | None:
        """End of the run; None if the file was cut off before it."""
        fields, state = None, None
        for record in records(self.path, "skip"):
            kind = type(record).__name__
            if kind == "Attachment" and record.name == "end.json":
                fields = self._end_fields(record.data)
            elif kind == "Attachment" and record.name == "state.bin":
                state = bytes(record.data)
        if fields is None:
            return None
        with open_input(self.path) as file:
            file.seek(-len(MAGIC), 2)
            whole = file.read() == MAGIC
        return End(fields["ended"], fields["message"], fields["dropped"], state, whole, fields)

    def _end_fields(self, text: bytes) -> Mapping[str, Any]:
        """Return the contents of end.json; ModelError if a run does not write this form."""
        try:
            fields = json.loads(text)
            kinds = [type(fields[key]) for key in ("ended", "message", "dropped")]
            changes = all(type(change[key]) is int for change in fields.get("changes") or () for key in ("run", "step"))
        except UNREADABLE as fault:
            raise ModelError(f"{self.path}: end.json: {unreadable(fault)}") from None
        if kinds != [str, str, int] or not changes:
            raise ModelError(
                f"{self.path}: end.json: expected ended, message, dropped and changes as a run writes them"
            )
        refuse_report(fields, f"{self.path}: end.json")
        return dict(fields)


@dataclass(frozen=True)
class End:
    """End of a run.

    Parameters
    ----------
    ended : str
        As in the report, or 'killed'.
    message : str
        Its explanation.
    dropped : int
        Number of rows that are not in the log.
    state : bytes | None
        The plant's snapshot; None if it was not sound or is unknown.
    whole : bool
        Whether the file has its index.
    fields : Mapping[str, Any], optional
        All of end.json, with the run's report if there is one.
    """

    ended: str
    message: str
    dropped: int
    state: bytes | None
    whole: bool
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int | None:
        """Steps of the last run, as the run itself reported; None without such a report."""
        steps = self.fields.get("steps")
        return steps if isinstance(steps, int) else None


def open_log(path: str | Path) -> Log:
    """Return a log.

    Parameters
    ----------
    path : str | Path
        The file.

    Returns
    -------
    Log
        The log.

    Raises
    ------
    ModelError
        If there is no such file, or if it is something else.
    """
    path = Path(path)
    refuse_without_mcap(str(path))
    try:
        with open_input(path, expected="a log (MCAP)") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ModelError(f"{path}: is not an MCAP file")
    except ModelError as fault:
        part = part_of(path)
        if not path.exists() and part.exists():
            raise ModelError(
                f"{fault}; {part} exists: a run is still writing it, or was killed; name that file to read it"
            ) from None
        raise
    damage: list[str] = []
    for record in records(path, "skip", damage):
        if type(record).__name__ == "Attachment" and record.name == "origin.json":
            return Log(path, _origin(path, record.data))
    if damage:
        raise ModelError(f"{path}: origin.json in the log cannot be read: {damage[0]}")
    raise ModelError(f"{path}: is an MCAP file, but not a log of rtmms")


def _origin(path: Path, text: bytes) -> Mapping[str, Any]:
    try:
        origin = json.loads(text)
    except RecursionError:
        raise ModelError(f"{path}: origin.json in the log cannot be read: nested too deep") from None
    except ValueError as error:
        raise ModelError(f"{path}: origin.json in the log cannot be read: {error}") from None
    result = origin.get("format") if isinstance(origin, dict) else origin
    if result != FORMAT:
        raise ModelError(f"{path}: expected a log of '{FORMAT}', got {result!r:.60}")
    refuse_origin(origin, f"{path}: origin.json")
    refuse_channels(origin, f"{path}: origin.json")
    return dict(origin)


class _Reading:
    """Assembly of the messages of a step; it is complete when its times are known, or when the next begins."""

    def __init__(self, command: Values, outputs: Values, every: int = 1) -> None:
        self._command, self._outputs = command, outputs
        self._every, self._first = every, 0
        self._waiting: Step | None = None
        self._start: dict[str, Any] | None = None
        self._values: Array | None = None
        self._outcome: dict[str, Any] | None = None
        self._altered = False
        self._set_points: dict[str, Any] | None = None
        self._notes: list[dict[str, Any]] = []

    def leaves_out(self) -> bool:
        """Return whether the next state belongs to a step that is left out."""
        if self._every == 1 or self._start is not None or self._values is None or self._outcome is None:
            return False
        step = self._outcome.get("step")
        if type(step) is not int or (step - self._first) % self._every == 0:
            return False
        self._values = self._outcome = None
        return True

    def take(self, topic: str, message: dict[str, Any]) -> Iterator[Start | Step]:
        match topic:
            case "/timing":
                if self._waiting is not None and self._waiting.step == message["step"]:
                    keys = [f"{name}_ns" for name in PARTS]
                    self._waiting.times = tuple(_expect(message.get(key, UNDEFINED), int, key) for key in keys)
            case "/event":
                if message["event"] == "start":
                    self._start, self._altered, self._set_points = message, False, None
                elif message["event"] == "altered":
                    self._altered = True
                elif message["event"] == "set_points":
                    self._set_points = _set_points(message["values"])
                elif message["event"] == "note" and isinstance(message["values"], dict):
                    self._notes.append(message["values"])
            case "/command":
                yield from self.flush_waiting()
                self._values = np.array(self._command.numbers(message["values"]), dtype=np.float64)
            case "/outcome":
                self._outcome = message
            case "/state":
                outputs = np.array(self._outputs.numbers(message["outputs"]), dtype=np.float64)
                if self._start is not None:
                    yield from self.flush_waiting()
                    self._first = _expect(self._start["step"], int, "step")
                    yield Start(self._first, _expect(self._start["seed"], int, "seed"), outputs)
                    self._start = None
                elif self._values is not None and self._outcome is not None:
                    fields = {key: value for key, value in self._outcome.items() if key != "timestamp"}
                    self._waiting = Step.of(fields, command=self._values, outputs=outputs, altered=self._altered,
                                            set_points=self._set_points, notes=tuple(self._notes))  # fmt: skip
                    self._notes.clear()
                    self._values = self._outcome = None
                    self._altered, self._set_points = False, None

    def flush_waiting(self) -> Iterator[Step]:
        if self._waiting is not None:
            yield self._waiting
            self._waiting = None


def _set_points(values: Any) -> dict[str, Any]:
    """Return numbers and texts by name, null as nan; ValueError if the values are no table."""
    if not isinstance(values, dict):
        raise ValueError(f"values: expected a table, got {values!r:.60}")
    numbers = {name: math.nan if value is None else value for name, value in values.items()}
    return {name: item for name, item in numbers.items() if isinstance(item, int | float | str)}


# Description of a log's plant for figures: channels, parameters and shape, without the plant.


DEFAULT_OUTPUTS = ("position", "quaternion", "velocity", "power", "work")
"""Sampled outputs of a run with a log that does not list those of its plant."""


class LoggedPlant(Plant):
    """Plant of a log for figures; it cannot be stepped.

    Its attributes actuators, outputs, trace_outputs, recent_outputs, parameters and shape are as in
    rtmms.plant.protocol.

    Parameters
    ----------
    log : Log
        The log.
    prefix : str, default ''
        First characters of its outputs' names, which are removed.

    Attributes
    ----------
    dt : float
        Simulated time of a step, s.
    """

    def __init__(self, log: Log, prefix: str = "") -> None:
        """Read the plant's description."""
        origin = log.origin
        self.dt = float(origin["dt"])
        self.actuators = tuple(_channel(item) for item in origin["actuators"])
        channels = [_channel(item, prefix) for item in origin["outputs"] if item["name"].startswith(prefix)]
        self.outputs: tuple[Channel, ...] = tuple(channels)
        self.parameters: Mapping[str, Any] = origin.get("description") or {}
        self.shape: Mapping[str, Any] = origin.get("shape") or {}
        self.trace_outputs = self._named(
            origin.get("trace_outputs", [prefix + name for name in DEFAULT_OUTPUTS]), prefix
        )
        self.recent_outputs = self._named(origin.get("recent_outputs", []), prefix)
        report = {} if log.end is None else log.end.fields.get("report") or {}
        self._summary = report.get("summary") or {}

    def _named(self, names: Any, prefix: str) -> tuple[str, ...]:
        known = {channel.name for channel in self.outputs}
        listed = names if isinstance(names, list) else []
        return tuple(name for item in listed if (name := str(item).removeprefix(prefix)) in known)

    def summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """Return the summary of the run's own report.

        Parameters
        ----------
        time : Array
            Unused.
        trace : Mapping[str, Array]
            Unused.

        Returns
        -------
        dict[str, float | None]
            Values by name.
        """
        return {str(k): v for k, v in self._summary.items() if v is None or isinstance(v, int | float)}

    @override
    def reset(self, seed: int = 0) -> None:
        """Raise TypeError, because a log's plant has no state."""
        raise self._refusal()

    @override
    def step(self, command: Array) -> None:
        """Raise TypeError, because a log's plant has no state."""
        raise self._refusal()

    @override
    def observe(self) -> dict[str, Array]:
        """Raise TypeError, because a log's plant has no state."""
        raise self._refusal()

    @override
    def snapshot(self) -> bytes:
        """Raise TypeError, because a log's plant has no state."""
        raise self._refusal()

    @override
    def restore(self, blob: bytes) -> None:
        """Raise TypeError, because a log's plant has no state."""
        raise self._refusal()

    @staticmethod
    def _refusal() -> TypeError:
        return TypeError("a log's plant has no state: `rtmms replay` makes one")


class LoggedSensed(LoggedPlant):
    """The same plant, seen through sensors.

    Parameters
    ----------
    log : Log
        The log.

    Attributes
    ----------
    truth : Plant
        The plant itself (rtmms.plant.PlantDescription).
    sensors : mapping
        Its sensors.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.truth: Plant = LoggedPlant(log, TRUTH)
        self.sensors: Mapping[str, Any] = MappingProxyType(log.origin["sensors"])


def plant_of(log: Log) -> Plant:
    """Return the plant with which figures draw a log.

    It is one of rtmms's own robots, built from its parameters, else one from the log's data. Nothing that the log names
    is imported or run.

    Parameters
    ----------
    log : Log
        The log.

    Returns
    -------
    Plant
        The plant.
    """
    point = robots().get(log.origin["robot"])
    ours = point is not None and point.dist is not None and point.dist.name == "rtmms"
    if ours and not str(log.origin["preset"]).endswith(".toml"):
        return rebuild_plant(log.origin)
    return LoggedSensed(log) if log.origin.get("sensors") else LoggedPlant(log)


def _channel(fields: Mapping[str, Any], prefix: str = "") -> Channel:
    return Channel(
        str(fields["name"]).removeprefix(prefix), fields.get("unit", ""), tuple(fields.get("shape", ())),
        str(fields.get("frame", "")),
    )  # fmt: skip
