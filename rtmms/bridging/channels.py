"""Channels of a peer and numbers of a state, by the names that a person writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite, prod

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.wire.protocol.received_state import PlantInfo, State

# The channel map: which actuator a channel of the peer's drives, with scale, trim and direction.


@dataclass(frozen=True, kw_only=True)
class ChannelMapping:
    """Mapping of one channel: actuator = (+ or -) scale (raw - trim).

    On a command line it is CHANNEL:ACTUATOR, and further SCALE, TRIM and the word reversed, between colons.

    Parameters
    ----------
    channel : str
        The peer's name or number of it.
    actuator : str
        Name of the plant's actuator.
    scale : float, default 1.0
        Actuator units (rad, N, ...) per unit of the channel; not 0.
    trim : float, default 0.0
        Value of the channel at which the actuator is at 0.
    reversed : bool, default False
        Whether the channel counts the other way.

    Raises
    ------
    ModelError
        If a value is invalid.

    Examples
    --------
    >>> ChannelMapping.from_word("1:left.front:0.002:1500", "channels").to_actuator(1600.0)
    0.2
    """

    channel: str
    actuator: str
    scale: float = 1.0
    trim: float = 0.0
    reversed: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        if not self.channel or not self.actuator:
            raise ModelError("channels: expected CHANNEL:ACTUATOR, got an empty channel or actuator")
        if self.scale == 0 or not isfinite(self.scale):
            raise ModelError(f"channel '{self.channel}': scale must be finite and not 0, got {self.scale}")
        if not isfinite(self.trim):
            raise ModelError(f"channel '{self.channel}': trim must be finite, got {self.trim}")

    @classmethod
    def from_word(cls, word: str, place: str) -> ChannelMapping:
        """Return the mapping of a text such as '1:left.front:0.002:1500:reversed'.

        Parameters
        ----------
        word : str
            The text.
        place : str
            Source of the text, for the error.

        Returns
        -------
        ChannelMapping
            The mapping.

        Raises
        ------
        ModelError
            If the text has another form.
        """
        parts = word.split(":")
        turned = len(parts) > 2 and parts[-1] == "reversed"
        numbers = parts[2:-1] if turned else parts[2:]
        try:
            values = [float(number) for number in numbers]
        except ValueError:
            values = [0.0] * 3
        if len(parts) < 2 or len(values) > 2:
            raise ModelError(f"{place}: expected CHANNEL:ACTUATOR[:SCALE[:TRIM[:reversed]]], got '{word}'")
        scale, trim = (*values, *(1.0, 0.0)[len(values) :])
        return cls(channel=parts[0], actuator=parts[1], scale=scale, trim=trim, reversed=turned)

    def to_actuator(self, raw: float) -> float:
        """Return the actuator's value.

        Parameters
        ----------
        raw : float
            Value of the channel.

        Returns
        -------
        float
            Value in the actuator's unit.
        """
        gain = -self.scale if self.reversed else self.scale
        return gain * (raw - self.trim)


class ChannelMap:
    """All channels of a bridge; each channel and each actuator occurs once.

    Parameters
    ----------
    entries : Iterable[ChannelMapping]
        The mappings.
    place : str, default 'channels'
        Source of the map, for errors.

    Raises
    ------
    ModelError
        If one occurs twice.
    """

    def __init__(self, entries: Iterable[ChannelMapping], place: str = "channels") -> None:
        self.entries = tuple(entries)
        for kind in ("channel", "actuator"):
            names = [getattr(entry, kind) for entry in self.entries]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ModelError(f"{place}: {kind} '{twice[0]}' is listed twice")
        self._by_channel = {entry.channel: entry for entry in self.entries}

    def __bool__(self) -> bool:
        """Return whether there are any channels."""
        return bool(self.entries)

    @property
    def actuators(self) -> tuple[str, ...]:
        """Names of the actuators."""
        return tuple(entry.actuator for entry in self.entries)

    def check(self, plant: PlantInfo, place: str = "channels") -> None:
        """Raise ModelError if the plant does not have all actuators.

        Parameters
        ----------
        plant : PlantInfo
            The plant.
        place : str, default 'channels'
            Source of the map, for the error.

        Raises
        ------
        ModelError
            If it does not have one.
        """
        known = [channel.name for channel in plant.actuators]
        for entry in self.entries:
            if entry.actuator not in known:
                raise ModelError(f"{place}: {UnknownNameError('actuator', entry.actuator, known)}")

    def to_actuators(self, raw: Mapping[str, float]) -> dict[str, float]:
        """Return the actuator values of channels; unknown channels are left out.

        Parameters
        ----------
        raw : Mapping[str, float]
            Values of channels.

        Returns
        -------
        dict[str, float]
            Values by name of the actuator.

        Raises
        ------
        ValueError
            If a value is not finite; nothing of such a message should be used.
        """
        values = {}
        for channel, number in raw.items():
            entry = self._by_channel.get(channel)
            if entry is not None:
                values[entry.actuator] = entry.to_actuator(number)
        if not all(map(isfinite, values.values())):
            raise ValueError("expected a finite value in each channel, got one that is not finite")
        return values


# One number of a state by name, as a person writes it: 'angle', 'position[2]', 'thrust[0,2]'.


_FORM = re.compile(r"([^\[\]]+)(?:\[(\d+(?:\s*,\s*\d+)*)\])?\Z")
_TIMES = ("time", "step")


@dataclass(frozen=True)
class Field:
    """Number of each state; `time` and `step` are fields too, if the plant has no output of that name.

    Parameters
    ----------
    name : str
        Name as a person writes it.
    output : str
        Name of the output.
    at : int | None
        Index in row-major order; None for a scalar.
    """

    name: str
    output: str
    at: int | None

    def __call__(self, state: State) -> float:
        """Return the number in a state."""
        if self.output in state.outputs:
            value = state.outputs[self.output]
            return float(value) if self.at is None else float(value[self.at])
        return float(state.time if self.output == "time" else state.step)


def field(name: str, plant: PlantInfo, place: str) -> Field:
    """Return the field of a name.

    Parameters
    ----------
    name : str
        Such as 'angle', 'position[2]', 'thrust[0,2]'.
    plant : PlantInfo
        The plant.
    place : str
        Source of the name, for the error.

    Returns
    -------
    Field
        The field.

    Raises
    ------
    ModelError
        If the plant has no such field; it names the place.
    """
    match = _FORM.match(name.strip())
    if not match:
        raise ModelError(f"{place}: expected OUTPUT or OUTPUT[INDEX], got '{name}'")
    output, indices = match[1].strip(), match[2]
    known = {channel.name: channel for channel in plant.outputs}
    if output not in known:
        if output in _TIMES and indices is None:
            return Field(name, output, None)
        raise ModelError(f"{place}: {UnknownNameError('output', output, [*known, *_TIMES])}")
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
    """Return the fields of names; an array without an index has all its numbers, in row-major order.

    Parameters
    ----------
    names : tuple[str, ...]
        Names of fields or outputs.
    plant : PlantInfo
        The plant.
    place : str
        Source of the names, for the error.

    Returns
    -------
    tuple[Field, ...]
        The fields.

    Raises
    ------
    ModelError
        If the plant has no such field.
    """
    result: list[Field] = []
    known = {channel.name: channel for channel in plant.outputs}
    for name in names:
        channel = known.get(name.strip())
        if channel is not None and channel.shape:
            result.extend(Field(f"{channel.name}[{i}]", channel.name, i) for i in range(prod(channel.shape)))
        else:
            result.append(field(name, plant, place))
    return tuple(result)
