"""How one step looks in the ring, and as the messages of a log: the one place that both its writer and reader use."""

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
from rtmms.loop.log_row import OUTCOME_COLUMNS, START, Head

try:
    import orjson
except ImportError:
    raise ModelError("logs need the library orjson: pip install orjson") from None

FORMAT = "rtmms log 1"
NO_SEED = -(1 << 63)
"""Stands for a seed that is too large to be kept."""


@dataclass(frozen=True)
class Signal:
    """One actuator or output in a row: its name, its shape, and the numbers it takes."""

    name: str
    unit: str
    shape: tuple[int, ...]
    frame: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def columns(self) -> list[str]:
        """The name of each number: 'rate', 'velocity[0]', 'shape[1][3]'."""
        names = [self.name]
        for length in self.shape:
            names = [f"{name}[{i}]" for name in names for i in range(length)]
        return names


def signals(described: Iterable[Mapping[str, Any]]) -> tuple[Signal, ...]:
    """From the channels as a log's origin describes them."""
    return tuple(Signal(d["name"], d.get("unit", ""), tuple(d.get("shape", ())), d.get("frame", "")) for d in described)


def width(found: Sequence[Signal]) -> int:
    """Numbers that they take together."""
    return sum(signal.size for signal in found)


# --- JSON that keeps every bit ----------------------------------------------------------------------------------------


def number(value: float) -> float | None:
    """The value as JSON can have it: no number is null; beyond all numbers is written 1e999 by `encode`."""
    return None if math.isnan(value) else value


def encode(message: Any, finite: bool = False) -> bytes:
    """Compact JSON. Finite float64 come back to the bit; nan becomes null and infinities 1e999, which reads as one.

    finite   there is neither in the message: written ten times faster
    """
    if finite:
        return orjson.dumps(message)
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        text = json.dumps(_without_nan(message), separators=(",", ":"))
        return text.replace("-Infinity", "-1e999").replace("Infinity", "1e999").encode()


def decode(text: bytes) -> Any:
    """Back from `encode`."""
    try:
        return orjson.loads(text)
    except ValueError:  # 1e999 is one of ours, and too large for some
        return json.loads(text)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return number(value) if isinstance(value, float) else value


def _branch(tree: dict[str, Any], name: str, value: Any) -> None:
    """tree['left']['front'] for 'left.front': the dots of names are levels for Foxglove and PlotJuggler."""
    *above, last = name.split(".")
    for part in above:
        tree = tree.setdefault(part, {})
    tree[last] = value


def _leaf(tree: Any, name: str) -> Any:
    for part in name.split("."):
        tree = tree[part]
    return tree


class Values:
    """Numbers of some signals, to and from the nested fields of a message.

    Arrays are flat lists in row-major order, as on the wire. A name that is the beginning of another ('left' beside
    'left.front') cannot be nested: then all names stay whole.
    """

    def __init__(self, found: Sequence[Signal], selected: Sequence[str] | None = None) -> None:
        """selected   names of those that are read, in their order; None: all"""
        names = {signal.name for signal in found}
        split = [signal.name.split(".") for signal in found]
        self.nested = not any(".".join(parts[:k]) in names for parts in split for k in range(1, len(parts)))
        self._places: list[tuple[str, int, int, bool]] = []
        at = 0
        for signal in found:
            if selected is not None and signal.name not in selected:
                continue
            self._places.append((signal.name, at, at + signal.size, signal.shape == ()))
            at += signal.size
        self.width = at

    def fields(self, numbers: Sequence[float]) -> dict[str, Any]:
        """{name: value}, nested where names have dots."""
        tree: dict[str, Any] = {}
        for name, begin, end, scalar in self._places:
            value = numbers[begin] if scalar else list(numbers[begin:end])
            if self.nested and "." in name:
                _branch(tree, name, value)
            else:
                tree[name] = value
        return tree

    def numbers(self, fields: Mapping[str, Any]) -> list[float]:
        """Back to (width,); null is nan. KeyError or ValueError when the fields are others."""
        flat: list[float] = []
        for name, begin, end, scalar in self._places:
            value = _leaf(fields, name) if self.nested else fields[name]
            found = [value] if scalar else value
            if len(found) != end - begin:
                raise ValueError(f"{name}: expected {end - begin} numbers, got {len(found)}")
            flat.extend(found)
        return [math.nan if value is None else float(value) for value in flat] if None in flat else flat


# --- the topics -------------------------------------------------------------------------------------------------------

NUMBER, WHOLE, TEXT, TRUTH = {"type": "number"}, {"type": "integer"}, {"type": "string"}, {"type": "boolean"}
KINDS: Mapping[type, dict[str, str]] = {int: WHOLE, str: TEXT, bool: TRUTH}


def schemas(actuators: Sequence[Signal], outputs: Sequence[Signal]) -> dict[str, dict[str, Any]]:
    """The JSON schema of each topic."""
    moment = {"step": WHOLE, "timestamp": NUMBER}
    outcome = {name: _described(KINDS[one.kind], one.unit, one.means) for name, one in OUTCOME_COLUMNS.items()}
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


def _described(kind: Mapping[str, Any], *words: str) -> dict[str, Any]:
    """A kind with its description: its unit, what it means."""
    text = " ".join(word for word in words if word)
    return dict(kind) | ({"description": text} if text else {})


def _values(found: Sequence[Signal]) -> dict[str, Any]:
    nested, tree = Values(found).nested, _object({})
    for signal in found:
        level = tree["properties"]
        *above, last = signal.name.split(".") if nested else [signal.name]
        for part in above:
            level = level.setdefault(part, _object({}))["properties"]
        kind: dict[str, Any] = dict(NUMBER) if signal.shape == () else {"type": "array", "items": NUMBER}
        level[last] = _described(kind, signal.unit, signal.frame and f"in the {signal.frame} frame")
    return tree


def _cause(index: int) -> str:
    """'' for none."""
    return CAUSES[index] if 0 <= index < len(CAUSES) else ""


class Encoder:
    """Rows of the ring as messages: (topic, JSON), in the order in which the reader expects them."""

    def __init__(self, dt: float, actuators: Sequence[Signal], outputs: Sequence[Signal]) -> None:
        self.dt = dt
        self._command, self._outputs = Values(actuators), Values(outputs)
        self._unpack = struct.Struct(f"={self._command.width + self._outputs.width}d").unpack

    def messages(self, head: Head, floats: bytes) -> list[tuple[str, bytes]]:
        """Of one row. The timings in it are of the step before, and come first."""
        numbers = self._unpack(floats)
        finite = math.isfinite(sum(numbers))  # one that is not makes the sum so
        command, outputs = numbers[: self._command.width], numbers[self._command.width :]
        if head.kind == START:
            event = {"step": head.step, "timestamp": head.step * self.dt, "event": "start", "seed": head.seed}
            state = self._moment(head.step) | {"outputs": self._outputs.fields(outputs)}
            return [("/event", encode(event, True)), ("/state", encode(state, finite))]
        found = [("/timing", encode(self.timing(head), True))] if head.timed >= 0 else []
        if head.attributed >= 0:
            found.append(
                ("/event", self.event(head.attributed, "blame", miss=_cause(head.miss), overrun=_cause(head.overrun)))
            )
        moment = self._moment(head.step)
        outcome = {name: one.text(getattr(head, name)) for name, one in OUTCOME_COLUMNS.items()}
        found += [
            ("/command", encode(moment | {"values": self._command.fields(command)}, finite)),
            ("/outcome", encode(moment | outcome, True)),
            ("/state", encode(self._moment(head.step + 1) | {"outputs": self._outputs.fields(outputs)}, finite)),
        ]  # fmt: skip
        return found

    def timing(self, head: Head) -> dict[str, Any]:
        """The times of step `timed`, those that are defined."""
        times = {f"{name}_ns": value for name in PARTS if (value := getattr(head, name)) != UNDEFINED}
        return self._moment(head.timed) | times

    def event(self, step: int, event: str, **more: Any) -> bytes:
        return encode(self._moment(step) | {"event": event, **more})

    def _moment(self, step: int) -> dict[str, Any]:
        return {"step": step, "timestamp": step * self.dt}
