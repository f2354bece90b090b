"""Logs: read step by step, whole or cut off anywhere; and what a log contains of its plant."""

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

from rtmms.base.contract import LAST_STEP, OUTCOME_WORDS, PARTS, TRUTH, UNDEFINED
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.files import open_input
from rtmms.loop.log_row import OUTCOME_COLUMNS
from rtmms.plant.protocol import Channel, Plant, robots
from rtmms.record.log_location import part_of, refuse_without_mcap
from rtmms.record.log_messages import FORMAT, Signal, Values, decode, signals
from rtmms.record.origin import rebuilt, refuse_channels, refuse_origin, refuse_report
from rtmms.record.records import MAGIC, records

if TYPE_CHECKING:
    import numpy.typing as npt


Array = npt.NDArray[np.float64]


# Reading a log, step by step, whole or cut off anywhere.


UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading makes of a message that is not of the form in which a run writes it."""


def unreadable(fault: Exception) -> str:
    """One of UNREADABLE in words."""
    if isinstance(fault, KeyError):
        return f"expected {str(fault)[:60]} in it"
    if isinstance(fault, RecursionError):
        return "nested too deep"
    return "expected a message as a run writes it" + (f": {str(fault)[:120]}" if isinstance(fault, ValueError) else "")


UNDRAWABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What drawing makes of numbers that no run has: poses that are none, outputs of other sizes than their robot's."""


@contextmanager
def drawing(path: Path) -> Iterator[None]:
    """Within, a figure or a film is made of the log at `path`: ModelError where its numbers cannot be drawn."""
    try:
        yield
    except RtmmsError:
        raise
    except UNDRAWABLE as fault:
        reason = (str(fault).splitlines() or [""])[0]
        raise ModelError(f"{path}: what it holds cannot be drawn: {type(fault).__name__}: {reason:.120}") from None


@dataclass(slots=True)
class Start:
    """A state to start from: the first, or after a reset with `seed`.  outputs (w,), flattened as in the origin."""

    step: int
    seed: int
    outputs: Array


@dataclass(slots=True)
class Step:
    """One step.

    command    (n,) held over it, as the plant got it;  outputs (w,) at its end, flattened as in the origin
    outcome    a word of StepOutcome;  seq, target_step, lateness_ns, policy, clamped   as in Applied
    overruns, skipped   so far
    times      ns of wake, exchange, plant, slack; UNDEFINED where there was none, or where the log was cut off
    altered    the state was changed by request before it
    set_points   what controllers track from its end on, by name; None: as before
    notes        what peers had noted in the log since the step before
    more         what else the log has of it, by name
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
    def of(cls, words: Mapping[str, Any], **values: Any) -> Step:
        """From a message of /outcome: the fields above by name, the rest in `more`."""
        if "meant_for" in words:  # as target_step was called before 0.2
            words = {"target_step" if name == "meant_for" else name: value for name, value in words.items()}
        for name, one in OUTCOME_COLUMNS.items():
            if name in words:
                _expect(words[name], one.kind, name)
        if words["outcome"] not in OUTCOME_WORDS:
            raise ValueError(f"outcome: expected {', '.join(OUTCOME_WORDS)}, got {words['outcome']!r:.60}")
        known = {name: value for name, value in words.items() if name in cls.__slots__}
        return cls(more={name: words[name] for name in words.keys() - known.keys()}, **known, **values)

    def text(self, name: str) -> Any:
        """A column of rtmms.loop.log_row.OUTCOME_COLUMNS; None where the log has none."""
        return self.more.get(name) if name in self.more else getattr(self, name, None)


def _expect(value: Any, kind: type, name: str) -> Any:
    """The value; ValueError where it is of another kind, or a whole number that no 64 bits hold."""
    beyond = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    if type(value) is not kind or beyond:
        raise ValueError(f"{name}: expected {kind.__name__}, got {value!r:.60}")
    return value


MOST_MISSING = 10_000_000
"""Steps that may be missing in one place of a log."""


@dataclass(frozen=True)
class Log:
    """A log file: what it is of, and its steps as they are read.

    origin   as rtmms.record.origin describes a run
    """

    path: Path
    origin: Mapping[str, Any]

    @cached_property
    def actuators(self) -> tuple[Signal, ...]:
        return signals(self.origin["actuators"])

    @cached_property
    def outputs(self) -> tuple[Signal, ...]:
        return signals(self.origin["outputs"])

    def split(self, numbers: Array) -> dict[str, Array]:
        """Outputs by name, (w,) -> {name: shape}: views."""
        found: dict[str, Array] = {}
        at = 0
        for signal in self.outputs:
            found[signal.name] = numbers[at : at + signal.size].reshape(signal.shape)
            at += signal.size
        return found

    def rows(self, outputs: Sequence[str] | None = None, every: int = 1) -> Iterator[Start | Step]:
        """Starts and steps in the order in which they happened, to the end of the file or to where it was cut off.
        What is damaged is left out (see `damage`).

        outputs   names of those that are read, in their order; None: all
        every     of each run, the first step and every so many-th after it; a step has the notes of those left out
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
                    found = list(reading.take(topic, decode(record.data)))
                except UNREADABLE as fault:
                    place = f"{self.path}: message {record.sequence} of {topic}"
                    raise ModelError(f"{place}: {unreadable(fault)}") from None
                for row in found:
                    if type(row.step) is not int or not 0 <= row.step <= LAST_STEP:
                        got = f"expected a number up to {LAST_STEP}, got {row.step!r:.60}"
                        raise ModelError(f"{self.path}: a step: {got}")
                    far = row.step - before
                    if far > MOST_MISSING:
                        raise ModelError(f"{self.path}: step {row.step} follows {before}: {far} steps are not in it")
                    before = row.step
                    yield row
        yield from reading.rest()

    def events(self) -> Iterator[bytes]:
        """The messages of /event, in JSON."""
        topics: dict[int, str] = {}
        for record in records(self.path):
            kind = type(record).__name__
            if kind == "Channel":
                topics[record.id] = record.topic
            elif kind == "Message" and topics.get(record.channel_id) == "/event":
                yield record.data

    def spans(self) -> list[tuple[int, int]]:
        """Return the first step, and the one after the last, of each run; resets divide runs. It reads no contents."""
        topics: dict[int, str] = {}
        found: list[tuple[int, int]] = []
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
                        found.append((step, step))
                except UNREADABLE as fault:
                    raise ModelError(f"{self.path}: message {record.sequence} of /event: {unreadable(fault)}") from None
            elif topics.get(record.channel_id) == "/outcome" and found:
                first, end = found[-1]
                found[-1] = first, end + 1
        return found

    def count_steps(self) -> tuple[int, int]:
        """(steps in the file, those whose number is not one more than the one before), without reading their contents:
        a tenth of the time of `rows`."""
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
        """A sentence for each place that cannot be read, () for a file that is sound. Being cut off is no damage."""
        found: list[str] = []
        for _ in records(self.path, "check", found):
            pass
        return tuple(found)

    @cached_property
    def end(self) -> End | None:
        """How the run ended; None when the file was cut off before its end."""
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
        """Contents of end.json; ModelError where it is not of the form that a run writes."""
        try:
            fields = json.loads(text)
            kinds = [type(fields[key]) for key in ("ended", "message", "dropped")]
            changes = all(type(one[key]) is int for one in fields.get("changes") or () for key in ("run", "step"))
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
    """How a run ended.

    ended     as in the report, or 'killed';  dropped   rows that were not kept
    state     the plant's snapshot, None when it was not sound or is not known
    whole     the file has its index
    ending    all of end.json, with the run's report where it came to one
    """

    ended: str
    message: str
    dropped: int
    state: bytes | None
    whole: bool
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int | None:
        """Of the last run, as the run itself reported; None when it did not come to that."""
        steps = self.fields.get("steps")
        return steps if isinstance(steps, int) else None


def open_log(path: str | Path) -> Log:
    """The log at `path`; ModelError when there is none, or it is something else."""
    path = Path(path)
    refuse_without_mcap(str(path))
    try:
        with open_input(path, expected="a log (MCAP)") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ModelError(f"{path}: is not an MCAP file")
    except ModelError as fault:
        part = part_of(path)
        if not path.exists() and part.exists():
            raise ModelError(f"{fault}; {part} is one that is being written, or whose run was killed") from None
        raise
    damage: list[str] = []
    for record in records(path, "skip", damage):
        if type(record).__name__ == "Attachment" and record.name == "origin.json":
            return Log(path, _origin(path, record.data))
    if damage:
        raise ModelError(f"{path}: is no log that can be read: its origin.json: {damage[0]}")
    raise ModelError(f"{path}: is an MCAP file, but not a log of rtmms")


def _origin(path: Path, text: bytes) -> Mapping[str, Any]:
    try:
        origin = json.loads(text)
    except RecursionError:
        raise ModelError(f"{path}: is no log that can be read: its origin.json: nested too deep") from None
    except ValueError as error:
        raise ModelError(f"{path}: is no log that can be read: its origin.json: {error}") from None
    found = origin.get("format") if isinstance(origin, dict) else origin
    if found != FORMAT:
        raise ModelError(f"{path}: expected a log of '{FORMAT}', got {found!r:.60}")
    refuse_origin(origin, f"{path}: origin.json")
    refuse_channels(origin, f"{path}: origin.json")
    return dict(origin)


class _Reading:
    """Puts the messages of a step together. A step is given out when its times are known, or when the next begins."""

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
        """Whether the state that comes next belongs to a step that is left out."""
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
                yield from self.rest()
                self._values = np.array(self._command.numbers(message["values"]), dtype=np.float64)
            case "/outcome":
                self._outcome = message
            case "/state":
                outputs = np.array(self._outputs.numbers(message["outputs"]), dtype=np.float64)
                if self._start is not None:
                    yield from self.rest()
                    self._first = _expect(self._start["step"], int, "step")
                    yield Start(self._first, _expect(self._start["seed"], int, "seed"), outputs)
                    self._start = None
                elif self._values is not None and self._outcome is not None:
                    words = {key: value for key, value in self._outcome.items() if key != "timestamp"}
                    self._waiting = Step.of(words, command=self._values, outputs=outputs, altered=self._altered,
                                            set_points=self._set_points, notes=tuple(self._notes))  # fmt: skip
                    self._notes.clear()
                    self._values = self._outcome = None
                    self._altered, self._set_points = False, None

    def rest(self) -> Iterator[Step]:
        if self._waiting is not None:
            yield self._waiting
            self._waiting = None


def _set_points(values: Any) -> dict[str, Any]:
    """Numbers and words by name, what else there is left out; null is nan. ValueError where it is no table."""
    if not isinstance(values, dict):
        raise ValueError(f"values: expected a table, got {values!r:.60}")
    kept = {name: math.nan if one is None else one for name, one in values.items()}
    return {name: one for name, one in kept.items() if isinstance(one, int | float | str)}


# What a log has of its plant, for figures: channels, parameters and shape, without the plant.


USUAL = ("position", "quaternion", "velocity", "power", "work")
"""What is sampled over a run whose log does not list the outputs that its plant wanted sampled."""


class LoggedPlant:
    """The plant of a log as far as figures ask for it; it cannot be stepped.

    dt s; actuators, outputs, trace_outputs, recent_outputs, parameters, shape: as in rtmms.plant.protocol
    """

    def __init__(self, log: Log, prefix: str = "") -> None:
        """prefix   of the names of the outputs that belong to it, taken off"""
        origin = log.origin
        self.dt = float(origin["dt"])
        self.actuators = tuple(_channel(one) for one in origin["actuators"])
        channels = [_channel(one, prefix) for one in origin["outputs"] if one["name"].startswith(prefix)]
        self.outputs: tuple[Channel, ...] = tuple(channels)
        self.parameters: Mapping[str, Any] = origin.get("description") or {}
        self.shape: Mapping[str, Any] = origin.get("shape") or {}
        self.trace_outputs = self._named(origin.get("trace_outputs", [prefix + name for name in USUAL]), prefix)
        self.recent_outputs = self._named(origin.get("recent_outputs", []), prefix)
        report = {} if log.end is None else log.end.fields.get("report") or {}
        self._summary = report.get("summary") or {}

    def _named(self, names: Any, prefix: str) -> tuple[str, ...]:
        known = {channel.name for channel in self.outputs}
        listed = names if isinstance(names, list) else []
        return tuple(name for one in listed if (name := str(one).removeprefix(prefix)) in known)

    def summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """As the run's own report has it."""
        return {str(k): v for k, v in self._summary.items() if v is None or isinstance(v, int | float)}

    def reset(self, seed: int = 0) -> None:
        raise self._refusal()

    def step(self, command: Array) -> None:
        raise self._refusal()

    def observe(self) -> dict[str, Array]:
        raise self._refusal()

    def snapshot(self) -> bytes:
        raise self._refusal()

    def restore(self, blob: bytes) -> None:
        raise self._refusal()

    @staticmethod
    def _refusal() -> TypeError:
        return TypeError("a log's plant has no state: `rtmms replay` makes one")


class LoggedSensed(LoggedPlant):
    """The same seen through sensors: `truth` is the plant itself (rtmms.plant.protocol.PlantDescription)."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.truth: Plant = LoggedPlant(log, TRUTH)
        self.sensors: Mapping[str, Any] = MappingProxyType(log.origin["sensors"])


def plant_of(log: Log) -> Plant:
    """What figures draw a log by: one of rtmms's own robots, built from its parameters, else from what the log has.

    Nothing that the log names is imported or run.
    """
    point = robots().get(log.origin["robot"])
    ours = point is not None and point.dist is not None and point.dist.name == "rtmms"
    if ours and not str(log.origin["preset"]).endswith(".toml"):
        return rebuilt(log.origin)
    return LoggedSensed(log) if log.origin.get("sensors") else LoggedPlant(log)


def _channel(fields: Mapping[str, Any], prefix: str = "") -> Channel:
    return Channel(
        str(fields["name"]).removeprefix(prefix), fields.get("unit", ""), tuple(fields.get("shape", ())),
        str(fields.get("frame", "")),
    )  # fmt: skip
