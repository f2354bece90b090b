"""What comes and goes in every step, by the layout of the last of its kind: a state is known by its bytes between the
numbers, and its numbers are read when they are asked for; a command is written in one piece. Plain Python: a
controller starts in a tenth of a second.

Whatever does not fit goes to the general reader and writer, which say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any

from rtmms.wire.protocol.codec import decode_from_plant
from rtmms.wire.protocol.layout import UnlikelyError, numbers
from rtmms.wire.protocol.state import PlantInfo, State
from rtmms.wire.stream.zmtp import framed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_UNSIGNED = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q"}
_FLOAT, _FALSE, _TRUE = 0xCB, 0xC2, 0xC3
_TOP = {0xCC: 0xFF, 0xCD: 0xFFFF, 0xCE: 0xFFFFFFFF, 0xCF: (1 << 63) - 1}
_LEAST = {0xCC: 0x80, 0xCD: 0x100, 0xCE: 0x10000, 0xCF: 0x100000000}
_FLOATS = {float}
_LONGEST = 1 << 16
_MOST, _PATIENCE = 8, 16
Pick = tuple[Struct, int, bool]
"""How an output is read: all its numbers, from where on, and whether it is one number."""


class StateLayout:
    """States of the plant that are one frame of so many bytes, with everything but their numbers alike.

    mask, value   a frame, as one great number, belongs to it where frame & mask == value
    head     gives step, time, deadline_ns of a frame
    picks    of the outputs that are float64 throughout
    """

    def __init__(self, frame: bytes) -> None:
        """A frame with its head (ZMTP); UnlikelyError where it is not worth it."""
        begin = 2 if frame[0] == 0 else 9
        found = numbers(frame, begin)
        mask = bytearray(b"\xff" * len(frame))
        for at, size, _ in found:
            mask[at + 1 : at + size] = bytes(size - 1)  # a number of one byte is a part of what must be alike
        if frame[-1] in (_FALSE, _TRUE):  # clamped, the last field of all
            mask[-1] = 0xFE
        self.mask = int.from_bytes(mask, "little")
        self.value = int.from_bytes(frame, "little") & self.mask
        self.head = self._head(frame, {path: at for at, _, path in found}).unpack_from
        self.picks: dict[str, Pick] = {}
        starts = {path: at for at, _, path in found}
        for name, value in decode_from_plant(frame[begin:])["outputs"].items():
            alone = not isinstance(value, list)
            values, first = ([value], ("outputs", name)) if alone else (value, ("outputs", name, 0))
            if values and all(type(number) is float for number in values) and first in starts:
                at = starts[first]
                if all(frame[at + 9 * k] == _FLOAT for k in range(len(values))):
                    self.picks[name] = Struct(">" + "xd" * len(values)), at, alone

    @staticmethod
    def _head(frame: bytes, at: Mapping[Any, int]) -> Struct:
        try:
            step, time, deadline = at[("step",)], at[("timestamp",)], at[("deadline_ns",)]
            budget = at[("budget_ns",)]
        except KeyError:
            raise UnlikelyError("no state") from None
        plain = (frame[step] in _UNSIGNED and frame[deadline] in _UNSIGNED) or frame[deadline] == 0
        if not plain or frame[time] != _FLOAT or not (frame[budget] in _UNSIGNED or frame[budget] < 0x80):
            raise UnlikelyError("numbers of other kinds")
        if not step < time < deadline or frame[step] not in _UNSIGNED:
            raise UnlikelyError("in another order")
        last = _UNSIGNED.get(frame[deadline])
        words = f">{step + 1}x{_UNSIGNED[frame[step]]}{time + 1 - step - 1 - _size(frame[step])}xd"
        return Struct(words + (f"{deadline + 1 - time - 9}x{last}" if last else f"{deadline - time - 9}xB"))


def _size(tag: int) -> int:
    return 1 << (tag - 0xCC)


class StateLayouts:
    """Those of one plant.

    known   by the length of a frame with its head
    """

    def __init__(self) -> None:
        self.known: dict[int, StateLayout] = {}
        self._missed = self._learnt = 0

    def learn(self, frame: bytes) -> None:
        """This is a state, says the general reader: the next like it will be known, but not each of many kinds."""
        self._missed += 1
        if len(frame) > _LONGEST or self._learnt * _PATIENCE > self._missed + _MOST * _PATIENCE:
            return
        self._learnt += 1
        raw = framed(frame)
        try:
            layout = StateLayout(raw)
        except UnlikelyError:
            return
        if len(self.known) >= _MOST:
            del self.known[next(iter(self.known))]
        self.known[len(raw)] = layout


class Arrived(State):
    """A state as it came: what is asked for is read then."""

    __slots__ = ("_layout", "_raw")

    def __init__(self, raw: bytes, layout: StateLayout, step: int, time: float, info: PlantInfo) -> None:
        self._raw, self._layout, self._info = raw, layout, info
        self.step, self.time = step, time

    def __getattr__(self, name: str) -> Any:
        """The rest of the message, when it is asked for first."""
        if name not in ("_message", "outputs"):
            raise AttributeError(name)
        self._message = decode_from_plant(self._raw[2 if self._raw[0] == 0 else 9 :])
        self.outputs = self._message["outputs"]
        return self._message if name == "_message" else self.outputs

    def __getitem__(self, name: str) -> float | npt.NDArray[np.float64]:
        pick = self._layout.picks.get(name)
        if pick is None:
            return super().__getitem__(name)
        found = pick[0].unpack_from(self._raw, pick[1])
        return float(found[0]) if pick[2] else self.shaped(name, found)


class CommandLayout:
    """Commands of the same actuators in the same order, all float, with seq and step of as many bytes.

    names   of the actuators
    """

    def __init__(self, frame: bytes, values: Mapping[str, float]) -> None:
        """UnlikelyError for a frame that is not worth it."""
        self.names = list(values)
        raw = framed(frame)
        found = numbers(raw, len(raw) - len(frame))
        wanted = [("seq",), ("step",), *(("values", name) for name in self.names)]
        if [path for _, _, path in found] != wanted:
            raise UnlikelyError("other numbers than those of a command")
        tags = [raw[at] for at, _, _ in found]
        if any(tag not in _UNSIGNED for tag in tags[:2]) or any(tag != _FLOAT for tag in tags[2:]):
            raise UnlikelyError("numbers of other kinds")
        (self._seq_from, self._seq_to), (self._step_from, self._step_to) = ((_LEAST[t], _TOP[t]) for t in tags[:2])
        words, parts, begin = ">", list[Any](), 0
        for (at, size, _), tag in zip(found, tags, strict=True):
            words += f"{at + 1 - begin}s{_UNSIGNED.get(tag, 'd')}"
            parts += [raw[begin : at + 1], 0]
            begin = at + size
        if begin < len(raw):
            words += f"{len(raw) - begin}s"
            parts.append(raw[begin:])
        self._parts, self._pack, self._end = parts, Struct(words).pack, 2 * len(found)

    def write(self, seq: int, step: int, values: Mapping[str, float]) -> bytes | None:
        """The frame with its head; None where it does not fit."""
        if (
            not self._seq_from <= seq <= self._seq_to
            or not self._step_from <= step <= self._step_to
            or list(values) != self.names
            or (self.names and set(map(type, values.values())) != _FLOATS)
        ):
            return None
        parts = self._parts
        parts[1], parts[3] = seq, step
        parts[5 : self._end : 2] = values.values()
        return self._pack(*parts)


def command_layout(frame: bytes, values: Mapping[str, float]) -> CommandLayout | None:
    """None where it is not worth one."""
    try:
        return CommandLayout(frame, values)
    except UnlikelyError:
        return None
