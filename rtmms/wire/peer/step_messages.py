"""States and commands of each step on a peer's side, by the layout that follows from the welcome.

The code is plain Python, because a controller starts in a tenth of a second. A link passes a state of another form to
the general reader, and writes a command of another form with msgpack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from numbers import Real
from struct import Struct
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.wire.peer.decode import read_message
from rtmms.wire.protocol.limits import MAX_PLANT_ENTRIES
from rtmms.wire.protocol.messages import Refusal
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.step_message_layout import StepLayout, command_layout, state_layout
from rtmms.wire.stream.zmtp import frame_head

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


Head = tuple[Callable[[bytes], tuple[Any, ...]], bytes, bytes, bytes, bytes, "StateReader"]
Write = Callable[..., "bytes | None"]
"""`write(seq, step, values)`, or `write(seq, step, age_ns, fresh_ns, values)` for commands with an age."""
_MAX_NAMES = 400
"""Most actuators of a command that is written by its layout."""
_MAX_INT64 = (1 << 63) - 1


Fields = dict[str, tuple[Struct, int, bool]]
"""Unpacking function and place of the numbers of each output, and whether it is a scalar."""


class StateReader:
    """Reader of the states of one layout that are frames with one length of head.

    Parameters
    ----------
    layout : StepLayout
        Layout of the states.
    frame_start : bytes
        Head of the frame.

    Attributes
    ----------
    head : Head
        Function that unpacks a frame to (text, step, text, time, text, deadline_ns, text, budget_ns), and the four
        texts of a frame of this layout. The rest of the frame is compared when one of its outputs is read.
    """

    def __init__(self, layout: StepLayout, frame_start: bytes) -> None:
        begin = len(frame_start)
        first, *others = layout.pieces[:4]
        texts = [frame_start + first, *others]
        form = "".join(f"{len(text)}s{kind}" for text, kind in zip(texts, "qdqq", strict=True))
        self.head: Head = (Struct(">" + form).unpack_from, *texts, self)  # type: ignore[assignment]
        self._end, self._endings = begin + len(layout.body), layout.endings
        self._mask = int.from_bytes(b"\xff" * begin + layout.mask, "little")
        self._value = int.from_bytes(frame_start + layout.body, "little")
        self._fields: Fields = {}
        for name, (at, count) in layout.outputs.items():
            each_behind_its_type = Struct(">" + "xd" * (1 if count is None else count))
            self._fields[name] = each_behind_its_type, begin + at - 1, count is None

    def fields(self, raw: bytes) -> Fields:
        """Return the fields of a frame.

        Parameters
        ----------
        raw : bytes
            The frame with its head.

        Returns
        -------
        Fields
            The fields; empty if the frame has another layout.
        """
        end = self._end
        if raw[end:] in self._endings and int.from_bytes(raw[:end], "little") & self._mask == self._value:
            return self._fields
        return {}


def state_heads(plant: PlantInfo) -> dict[int, Head]:
    """Return the first part of this plant's states, by the length of a frame with its head.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    dict[int, Head]
        Heads by length. Empty if the welcome is inconsistent, or promises longer lists than `decode_from_plant`
        accepts.
    """
    try:
        channels = [plant.output(name) for name in plant.selected]
    except UnknownNameError:
        return {}
    sizes = [math.prod(channel.shape) for channel in channels]
    if sum(sizes) + len(sizes) > MAX_PLANT_ENTRIES or any(min(c.shape, default=0) < 0 for c in channels):
        return {}
    layout = state_layout(channels)
    heads: dict[int, Head] = {}
    for size in {len(layout.body) + len(end) for end in layout.endings}:
        start = frame_head(size)
        heads[len(start) + size] = StateReader(layout, start).head
    return heads


class ReceivedState(State):
    """State as it was received; its outputs are read on demand.

    Reading an output raises ModelError if the message is malformed.

    Parameters
    ----------
    raw : bytes
        The frame with its head.
    reader : StateReader
        Reader of its layout.
    step : int
        Index of the step.
    time : float
        Simulated time, s.
    info : PlantInfo
        The plant.
    """

    __slots__ = ("_fields", "_raw", "_reader")
    _fields: Fields
    _info: PlantInfo
    _raw: bytes
    _reader: StateReader

    def __init__(self, raw: bytes, reader: StateReader, step: int, time: float, info: PlantInfo) -> None:
        self._raw, self._reader, self._info = raw, reader, info
        self.step, self.time = step, time

    def __getattr__(self, name: str) -> Any:
        """Read the rest of the message at the first access."""
        if name == "_fields":
            self._fields = self._reader.fields(self._raw)
            return self._fields
        if name not in ("_message", "outputs"):
            raise AttributeError(name)
        try:
            self._message = read_message(self._raw[2 if self._raw[0] == 0 else 9 :])
        except Refusal as fault:
            raise ModelError(f"state {self.step}: the message of the plant cannot be read: {fault}") from None
        self.outputs = self._message["outputs"]
        return self._message if name == "_message" else self.outputs

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a plain state for copies and other processes, because a reader cannot be pickled."""
        return State, (self._message, self._info)

    def __getitem__(self, name: str) -> float | npt.NDArray[np.float64]:
        """Return an output as a float or as an array of its shape."""
        field = self._fields.get(name)
        if field is None:
            return super().__getitem__(name)
        form, at, scalar = field
        numbers = form.unpack_from(self._raw, at)
        return float(numbers[0]) if scalar else self.shaped(name, numbers)


def command_writer(actuators: Sequence[str], *, aged: bool = False) -> Write | None:
    """Return the function that writes commands with a value for each of these actuators.

    Parameters
    ----------
    actuators : Sequence[str]
        The names that the welcome lists as `granted`.
    aged : bool, default False
        Whether the commands have the age of their values.

    Returns
    -------
    Write or None
        The function returns the frame with its head. It returns None for values that the layout cannot express: other
        names, another type than float, numbers that are not finite. The result is None for no or too many actuators.
    """
    if not 0 < len(actuators) <= _MAX_NAMES:
        return None
    layout = command_layout(actuators, aged=aged)
    first, *others = layout.pieces[:-1]  # no text follows the last value
    pieces = [frame_head(len(layout.body)) + first, *others]
    return _writer(tuple(actuators), pieces, ["seq", "step", *(("age_ns", "fresh_ns") if aged else ())])


def _writer(names: tuple[str, ...], pieces: list[bytes], integers: list[str]) -> Write:
    """Return `write`, generated for these names without a loop.

    A loop takes twice as long when the caches are cold, which is the case once in a period.
    """
    values = [f"v{k}" for k in range(len(names))]
    parts = [word for k, number in enumerate([*integers, *values]) for word in (f"t{k}", number)]
    bound = ["pack", "isfinite", *(f"t{k}" for k in range(len(pieces)))]
    source = f"""
def write({", ".join(integers)}, values, {", ".join(f"{name}={name}" for name in bound)}):
    if type(values) is not dict or len(values) != {len(names)}:
        return None
    try:
        {"; ".join(f"{value} = values[{name!r}]" for value, name in zip(values, names, strict=True))}
    except KeyError:
        return None
    if (
        {" is ".join([*(f"type({value})" for value in values), "float"])} and isfinite({" + ".join(values)})
        and type(step) is int and {-_MAX_INT64} <= step <= {_MAX_INT64}
    ):
        return pack({", ".join(parts)})
    return None
"""
    form = ">" + "".join(
        f"{len(piece)}s{kind}" for piece, kind in zip(pieces, "q" * len(integers) + "d" * len(names), strict=True)
    )
    place: dict[str, Any] = dict(zip(bound, (Struct(form).pack, isfinite, *pieces), strict=True))
    exec(compile(source, "<command>", "exec"), place)
    write: Write = place.pop("write")  # otherwise the function and its globals would refer to each other
    return write


def as_floats(values: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the same values as floats.

    Parameters
    ----------
    values : Mapping[str, Any]
        Values by name.

    Returns
    -------
    dict[str, float] | None
        The values; None if one of them is no real number.
    """
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in values.values()):
        return None
    try:
        return {str(name): float(value) for name, value in values.items()}
    except OverflowError:
        return None


def rehearse(heads: Mapping[int, Head], write: Write, actuators: Sequence[str]) -> None:
    """Read a state and write a command once, because the first execution takes many times as long.

    Parameters
    ----------
    heads : Mapping[int, Head]
        Heads of the plant's states.
    write : Write
        Writer of the peer's commands.
    actuators : Sequence[str]
        Names of the peer's actuators.
    """
    for size, head in heads.items():
        unpack, *_, reader = head
        unpack(bytes(size))
        reader.fields(bytes(size))
    write(1, 1, dict.fromkeys(actuators, 0.5))
