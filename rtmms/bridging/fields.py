"""One number of a state by name, as a person writes it: 'angle', 'position[2]', 'thrust[0,2]'."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from rtmms.errors import ModelError, UnknownNameError
from rtmms.wire.protocol.state import PlantInfo, State

_FORM = re.compile(r"([^\[\]]+)(?:\[(\d+(?:\s*,\s*\d+)*)\])?\Z")
_OWN = ("time", "step")


@dataclass(frozen=True)
class Field:
    """A number of each state. `time` and `step` are fields too, where the plant has no output of that name."""

    name: str
    output: str
    at: int | None

    def __call__(self, state: State) -> float:
        if self.output in state.outputs:
            value = state.outputs[self.output]
            return float(value) if self.at is None else float(value[self.at])
        return float(state.time if self.output == "time" else state.step)


def field(name: str, plant: PlantInfo, place: str) -> Field:
    """The field of that name; ModelError naming the place where the plant has none such."""
    found = _FORM.match(name.strip())
    if not found:
        raise ModelError(f"{place}: expected OUTPUT or OUTPUT[INDEX], got '{name}'")
    output, indices = found[1].strip(), found[2]
    known = {channel.name: channel for channel in plant.outputs}
    if output not in known:
        if output in _OWN and indices is None:
            return Field(name, output, None)
        raise ModelError(f"{place}: {UnknownNameError('output', output, [*known, *_OWN])}")
    shape = known[output].shape
    index = tuple(int(word) for word in indices.split(",")) if indices else ()
    if len(index) == 1 and len(shape) > 1 and index[0] < prod(shape):
        return Field(name, output, index[0])  # flat, in row-major order
    if len(index) != len(shape) or any(i >= n for i, n in zip(index, shape, strict=True)):
        wanted = f"{output}[{','.join(str(n - 1) for n in shape)}] at most" if shape else f"{output} without an index"
        raise ModelError(f"{place}: output '{output}' has the shape {shape}: expected {wanted}, got '{name}'")
    if not shape:
        return Field(name, output, None)
    at = 0
    for i, n in zip(index, shape, strict=True):
        at = at * n + i
    return Field(name, output, at)


def fields(names: tuple[str, ...], plant: PlantInfo, place: str) -> tuple[Field, ...]:
    """Several. An output of several numbers named without an index stands for all of them, in row-major order."""
    found: list[Field] = []
    known = {channel.name: channel for channel in plant.outputs}
    for name in names:
        channel = known.get(name.strip())
        if channel is not None and channel.shape:
            found.extend(Field(f"{channel.name}[{i}]", channel.name, i) for i in range(prod(channel.shape)))
        else:
            found.append(field(name, plant, place))
    return tuple(found)
