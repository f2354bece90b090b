"""Form of one step in the ring, and as messages of a log, for both the writer and the reader."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtmms.base.contract import PARTS, UNDEFINED
from rtmms.base.errors import ModelError
from rtmms.loop.fault_attribution import CAUSES
from rtmms.loop.log_row import OUTCOME_COLUMNS, START, RowHead

try:
    import orjson
except ImportError:
    raise ModelError("logs need the library orjson: pip install orjson") from None

FORMAT = "rtmms log 1"
NO_SEED = -(1 << 63)
"""Replacement of a seed that is too large to be stored."""


@dataclass(frozen=True)
class Signal:
    """Actuator or output in a row.

    Parameters
    ----------
    name : str
        Its name.
    unit : str
        Its unit.
    shape : tuple[int, ...]
        Its shape.
    frame : str
        Its frame.

    Examples
    --------
    >>> Signal("velocity", "m/s", (2,), "body").columns
    ['velocity[0]', 'velocity[1]']
    """

    name: str
    unit: str
    shape: tuple[int, ...]
    frame: str

    @property
    def size(self) -> int:
        """Number of its numbers."""
        return math.prod(self.shape)

    @property
    def columns(self) -> list[str]:
        """Name of each number: 'rate', 'velocity[0]', 'shape[1][3]'."""
        names = [self.name]
        for length in self.shape:
            names = [f"{name}[{i}]" for name in names for i in range(length)]
        return names


def signals(described: Iterable[Mapping[str, Any]]) -> tuple[Signal, ...]:
    """Return the signals of a log's channels.

    Parameters
    ----------
    described : Iterable[Mapping[str, Any]]
        Channels of the log's origin.

    Returns
    -------
    tuple[Signal, ...]
        The signals.
    """
    return tuple(Signal(d["name"], d.get("unit", ""), tuple(d.get("shape", ())), d.get("frame", "")) for d in described)


def width(signal_list: Sequence[Signal]) -> int:
    """Return the number of all numbers.

    Parameters
    ----------
    signal_list : Sequence[Signal]
        The signals.

    Returns
    -------
    int
        The number.
    """
    return sum(signal.size for signal in signal_list)


# --- JSON that keeps every bit ----------------------------------------------------------------------------------------


def number(value: float) -> float | None:
    """Return a value for JSON.

    Parameters
    ----------
    value : float
        The value.

    Returns
    -------
    float | None
        None for nan; `encode` writes infinities as 1e999.
    """
    return None if math.isnan(value) else value


def encode(message: Any, finite: bool = False) -> bytes:
    """Return compact JSON.

    Finite float64 are read back to the bit. nan becomes null, infinities become 1e999, which is read as one.

    Parameters
    ----------
    message : Any
        The message.
    finite : bool, default False
        Whether the message has neither; then it is written ten times faster.

    Returns
    -------
    bytes
        The JSON.

    Examples
    --------
    >>> encode({"a": [1.5, float("nan")]})
    b'{"a":[1.5,null]}'
    """
    if finite:
        return orjson.dumps(message)
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        text = json.dumps(_without_nan(message), separators=(",", ":"))
        return text.replace("-Infinity", "-1e999").replace("Infinity", "1e999").encode()


def decode(text: bytes) -> Any:
    """Return the message of `encode`.

    Parameters
    ----------
    text : bytes
        The JSON.

    Returns
    -------
    Any
        The message.
    """
    try:
        return orjson.loads(text)
    except ValueError:  # a run writes 1e999 for infinity, which orjson refuses
        return json.loads(text)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return number(value) if isinstance(value, float) else value


def _branch(tree: dict[str, Any], name: str, value: Any) -> None:
    """Set tree['left']['front'] for 'left.front': the dots of names are levels for Foxglove and PlotJuggler."""
    *above, last = name.split(".")
    for part in above:
        tree = tree.setdefault(part, {})
    tree[last] = value


def _leaf(tree: Any, name: str) -> Any:
    for part in name.split("."):
        tree = tree[part]
    return tree


class Values:
    """Conversion of some signals to and from the nested fields of a message.

    Arrays are flat lists in row-major order, as on the wire. A name that is the beginning of another ('left' with
    'left.front') cannot be nested; then no name is split.

    Parameters
    ----------
    found : Sequence[Signal]
        The signals.
    selected : Sequence[str] | None, optional
        Names of those to read, in their order; None: all.

    Attributes
    ----------
    nested : bool
        Whether names are split.
    width : int
        Number of selected numbers.
    """

    def __init__(self, signal_list: Sequence[Signal], selected: Sequence[str] | None = None) -> None:
        """Find the places of the numbers."""
        names = {signal.name for signal in signal_list}
        split = [signal.name.split(".") for signal in signal_list]
        self.nested = not any(".".join(parts[:k]) in names for parts in split for k in range(1, len(parts)))
        self._places: list[tuple[str, int, int, bool]] = []
        at = 0
        for signal in signal_list:
            if selected is not None and signal.name not in selected:
                continue
            self._places.append((signal.name, at, at + signal.size, signal.shape == ()))
            at += signal.size
        self.width = at

    def fields(self, numbers: Sequence[float]) -> dict[str, Any]:
        """Return the fields of numbers, nested if names have dots.

        Parameters
        ----------
        numbers : Sequence[float]
            (width,) numbers.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        tree: dict[str, Any] = {}
        for name, begin, end, scalar in self._places:
            value = numbers[begin] if scalar else list(numbers[begin:end])
            if self.nested and "." in name:
                _branch(tree, name, value)
            else:
                tree[name] = value
        return tree

    def numbers(self, fields: Mapping[str, Any]) -> list[float]:
        """Return the numbers of fields; null is nan.

        Parameters
        ----------
        fields : Mapping[str, Any]
            Values by name.

        Returns
        -------
        list[float]
            (width,) numbers.

        Raises
        ------
        KeyError, ValueError
            If the fields are others.
        """
        flat: list[float] = []
        for name, begin, end, scalar in self._places:
            value = _leaf(fields, name) if self.nested else fields[name]
            result = [value] if scalar else value
            if len(result) != end - begin:
                raise ValueError(f"{name}: expected {end - begin} numbers, got {len(result)}")
            flat.extend(result)
        return [math.nan if value is None else float(value) for value in flat] if None in flat else flat


# --- the topics -------------------------------------------------------------------------------------------------------

NUMBER = {"type": "number"}
WHOLE = {"type": "integer"}
TEXT = {"type": "string"}
TRUTH = {"type": "boolean"}
KINDS: Mapping[type, dict[str, str]] = {int: WHOLE, str: TEXT, bool: TRUTH}


def schemas(actuators: Sequence[Signal], outputs: Sequence[Signal]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each topic.

    Parameters
    ----------
    actuators, outputs : Sequence[Signal]
        Signals of a row.

    Returns
    -------
    dict[str, dict[str, Any]]
        Schemas by topic.
    """
    moment = {"step": WHOLE, "timestamp": NUMBER}
    outcome = {
        name: _described(KINDS[outcome_column.kind], outcome_column.unit, outcome_column.means)
        for name, outcome_column in OUTCOME_COLUMNS.items()
    }
    return {
        "/state": _object(moment | {"outputs": _values(outputs)}),
        "/command": _object(moment | {"values": _values(actuators)}),
        "/outcome": _object(moment | outcome),
        "/timing": _object(moment | {f"{name}_ns": _described(WHOLE, "ns") for name in PARTS}),
        "/event": _object(
            moment
            | {
                "event": TEXT,
                "seed": WHOLE,
                "dropped": WHOLE,
                "miss": TEXT,
                "overrun": TEXT,
                "values": {"type": "object"},
            }
        ),
    }


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties)}


def _described(kind: Mapping[str, Any], *parts: str) -> dict[str, Any]:
    """Return a type with its description: its unit and its meaning."""
    text = " ".join(word for word in parts if word)
    return dict(kind) | ({"description": text} if text else {})


def _values(signal_list: Sequence[Signal]) -> dict[str, Any]:
    nested, tree = Values(signal_list).nested, _object({})
    for signal in signal_list:
        level = tree["properties"]
        *above, last = signal.name.split(".") if nested else [signal.name]
        for part in above:
            level = level.setdefault(part, _object({}))["properties"]
        kind: dict[str, Any] = dict(NUMBER) if signal.shape == () else {"type": "array", "items": NUMBER}
        level[last] = _described(kind, signal.unit, signal.frame and f"in the {signal.frame} frame")
    return tree


def _cause(index: int) -> str:
    """Return the name of a cause; empty for none."""
    return CAUSES[index] if 0 <= index < len(CAUSES) else ""


class Encoder:
    """Conversion of the ring's rows to messages: topic and JSON, in the order that the reader expects.

    Parameters
    ----------
    dt : float
        Simulated time of a step, s.
    actuators, outputs : Sequence[Signal]
        Signals of a row.
    """

    def __init__(self, dt: float, actuators: Sequence[Signal], outputs: Sequence[Signal]) -> None:
        self.dt = dt
        self._command, self._outputs = Values(actuators), Values(outputs)
        self._unpack = struct.Struct(f"={self._command.width + self._outputs.width}d").unpack

    def messages(self, head: RowHead, floats: bytes) -> list[tuple[str, bytes]]:
        """Return the messages of one row; its timings are of the step before, and come first.

        Parameters
        ----------
        head : RowHead
            Its whole numbers.
        floats : bytes
            Its command and outputs, 8 bytes a number.

        Returns
        -------
        list[tuple[str, bytes]]
            Topic and JSON of each.
        """
        numbers = self._unpack(floats)
        finite = math.isfinite(sum(numbers))  # a number that is not finite makes the sum so
        command, outputs = numbers[: self._command.width], numbers[self._command.width :]
        if head.kind == START:
            event = {"step": head.step, "timestamp": head.step * self.dt, "event": "start", "seed": head.seed}
            state = self._moment(head.step) | {"outputs": self._outputs.fields(outputs)}
            return [("/event", encode(event, True)), ("/state", encode(state, finite))]
        result = [("/timing", encode(self.timing(head), True))] if head.timed >= 0 else []
        if head.attributed >= 0:
            result.append(
                ("/event", self.event(head.attributed, "causes", miss=_cause(head.miss), overrun=_cause(head.overrun)))
            )
        moment = self._moment(head.step)
        outcome = {name: outcome_column.text(getattr(head, name)) for name, outcome_column in OUTCOME_COLUMNS.items()}
        result += [
            ("/command", encode(moment | {"values": self._command.fields(command)}, finite)),
            ("/outcome", encode(moment | outcome, True)),
            ("/state", encode(self._moment(head.step + 1) | {"outputs": self._outputs.fields(outputs)}, finite)),
        ]  # fmt: skip
        return result

    def timing(self, head: RowHead) -> dict[str, Any]:
        """Return the defined times of step `timed`.

        Parameters
        ----------
        head : RowHead
            Whole numbers of the row.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        times = {f"{name}_ns": value for name in PARTS if (value := getattr(head, name)) != UNDEFINED}
        return self._moment(head.timed) | times

    def event(self, step: int, event: str, **more: Any) -> bytes:
        """Return a message of /event.

        Parameters
        ----------
        step : int
            Index of the step.
        event : str
            Name of the event.
        **more : Any
            Further values.

        Returns
        -------
        bytes
            The JSON.
        """
        return encode(self._moment(step) | {"event": event, **more})

    def _moment(self, step: int) -> dict[str, Any]:
        return {"step": step, "timestamp": step * self.dt}
