"""What comes and goes in every step, by the layout of the last of its kind: a state is known by its bytes between the
numbers, and its numbers are read when they are asked for; a command is written in one piece. Plain Python: a
controller starts in a tenth of a second.

Whatever does not fit goes to the general reader and writer, which say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from struct import Struct
from types import CodeType
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError
from rtmms.wire.peer.decode import read_message
from rtmms.wire.protocol.message_layout import Number, UnlikelyError, numbers
from rtmms.wire.protocol.messages import Refused, decode_from_plant, packer
from rtmms.wire.protocol.state import PlantInfo, State
from rtmms.wire.stream.zmtp import framed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_ONE_BYTE = 0x80
_UNSIGNED = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q"}
_FLOAT, _FALSE, _TRUE = 0xCB, 0xC2, 0xC3
_TOP = {0xCC: 0xFF, 0xCD: 0xFFFF, 0xCE: 0xFFFFFFFF, 0xCF: (1 << 63) - 1}
_LEAST = {0xCC: 0x80, 0xCD: 0x100, 0xCE: 0x10000, 0xCF: 0x100000000}
_LONGEST = 1 << 16
_MOST, _PATIENCE = 8, 16
_MOST_NAMES = 400
_HEAD = [("step",), ("timestamp",), ("deadline_ns",), ("budget_ns",)]
Unpack = Callable[[bytes], tuple[Any, ...]]
Head = tuple[Unpack, bytes, bytes, bytes, bytes, "StateLayout"]
Write = Callable[[int, int, Mapping[str, float]], "bytes | None"]
Pick = tuple[Struct, int, bool]
"""How an output is read: all its numbers, from where on, and whether it is one number."""


class StateLayout:
    """States of the plant that are one frame of so many bytes, with everything but their numbers alike.

    mask, value   a frame, as one great number, belongs to it where frame & mask == value
    head     of a frame that begins alike: what unpacks it to (text, step, text, time, text, deadline_ns, text,
             budget_ns), and the four texts. Whether the rest is alike, too, is looked at when more of it is asked for
    picks    of the outputs that are float64 throughout
    """

    def __init__(self, frame: bytes) -> None:
        """A frame with its head (ZMTP); UnlikelyError where it is not worth it."""
        begin = 2 if frame[0] == 0 else 9
        found = numbers(frame, begin)
        mask = bytearray(b"\xff" * len(frame))
        for at, size, _ in found:
            mask[at + 1 : at + size] = bytes(size - 1)
            if frame[at] < _ONE_BYTE:  # a number in one byte: the others are those below the same bound
                mask[at] = _ONE_BYTE
        if frame[-1] in (_FALSE, _TRUE):  # clamped, the last field of all
            mask[-1] = 0xFE
        self.mask = int.from_bytes(mask, "little")
        self.value = int.from_bytes(frame, "little") & self.mask
        self.head: Head = (*self._head(frame, found), self)
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
    def _head(
        frame: bytes, found: list[Number]
    ) -> tuple[Callable[[bytes], tuple[Any, ...]], bytes, bytes, bytes, bytes]:
        if [path for _, _, path in found[:4]] != _HEAD:
            raise UnlikelyError("no state, or in another order")
        words, texts, begin = ">", list[bytes](), 0
        for at, size, path in found[:4]:
            tag = frame[at]
            if tag == _FLOAT and path == ("timestamp",):
                word = "d"
            elif tag in _UNSIGNED and path != ("timestamp",):
                word = _UNSIGNED[tag]
            elif tag < _ONE_BYTE and path != ("timestamp",):
                # the number is its tag, and no part of the text; that of a step below 0 is of one byte, too
                word, at, size = "b" if path == ("step",) else "B", at - 1, 2
            else:
                raise UnlikelyError("numbers of other kinds")
            texts.append(frame[begin : at + 1])
            words += f"{len(texts[-1])}s{word}"
            begin = at + size
        return Struct(words).unpack_from, *texts  # type: ignore[return-value]

    def fits(self, raw: bytes) -> bool:
        """Whether all of a frame is alike."""
        return int.from_bytes(raw, "little") & self.mask == self.value


class StateLayouts:
    """Those of one plant.

    known   their heads, by the length of a frame with its head
    """

    def __init__(self) -> None:
        self.known: dict[int, Head] = {}
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
        self.known[len(raw)] = layout.head


class Arrived(State):
    """A state as it came: what is asked for is read then, ModelError for what cannot be read."""

    __slots__ = ("_layout", "_picks", "_raw")
    _info: PlantInfo
    _layout: StateLayout
    _picks: dict[str, Pick]
    _raw: bytes

    def __init__(self, raw: bytes, layout: StateLayout, step: int, time: float, info: PlantInfo) -> None:
        self._raw, self._layout, self._info = raw, layout, info
        self.step, self.time = step, time

    def __getattr__(self, name: str) -> Any:
        """The rest of the message, when it is asked for first."""
        if name == "_picks":
            self._picks = self._layout.picks if self._layout.fits(self._raw) else {}
            return self._picks
        if name not in ("_message", "outputs"):
            raise AttributeError(name)
        try:
            self._message = read_message(self._raw[2 if self._raw[0] == 0 else 9 :])
        except Refused as fault:
            raise ModelError(f"state {self.step}: what the plant sent cannot be read: {fault}") from None
        self.outputs = self._message["outputs"]
        return self._message if name == "_message" else self.outputs

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied, or sent to another process, as a state like any other: a layout cannot be."""
        return State, (self._message, self._info)

    def __getitem__(self, name: str) -> float | npt.NDArray[np.float64]:
        pick = self._picks.get(name)
        if pick is None:
            return super().__getitem__(name)
        found = pick[0].unpack_from(self._raw, pick[1])
        return float(found[0]) if pick[2] else self.shaped(name, found)


class CommandLayout:
    """Commands of the same actuators in the same order, all float, with seq and step of as many bytes.

    names   of the actuators
    write(seq, step, values)   the frame with its head; None where it does not fit, and for values that are not finite
    """

    def __init__(self, frame: bytes, values: Mapping[str, float]) -> None:
        """UnlikelyError for a frame that is not worth it."""
        raw = framed(frame)
        found = numbers(raw, len(raw) - len(frame))
        wanted = [("seq",), ("step",), *(("values", name) for name in values)]
        if [path for _, _, path in found] != wanted or len(values) > _MOST_NAMES:
            raise UnlikelyError("other numbers than those of a command")
        # as they were read, plain text: those of `values` may be of a class of text that shows itself in its own way
        self.names = tuple(str(path[1]) for _, _, path in found[2:])
        tags = [raw[at] for at, _, _ in found]
        if any(tag not in _TOP and tag >= _ONE_BYTE for tag in tags[:2]) or any(tag != _FLOAT for tag in tags[2:]):
            raise UnlikelyError("numbers of other kinds")
        words, texts, begin = ">", list[bytes](), 0
        for (at, size, _), tag in zip(found, tags, strict=True):
            alone = tag < _ONE_BYTE  # the number is its tag, and no part of the text
            texts.append(raw[begin : at + (not alone)])
            words += f"{len(texts[-1])}s{'B' if alone else _UNSIGNED.get(tag, 'd')}"
            begin = at + size
        if begin < len(raw):
            words += f"{len(raw) - begin}s"
            texts.append(raw[begin:])
        first, second = ((_LEAST.get(tag, 0), _TOP.get(tag, _ONE_BYTE - 1)) for tag in tags[:2])
        limits = (*first, *second)
        self.write: Write = _writer(self.names, texts, Struct(words).pack, limits)


def _writer(
    names: tuple[str, ...], texts: list[bytes], pack: Callable[..., bytes], limits: tuple[int, int, int, int]
) -> Write:
    """Its `write`, spelt out for these names without a loop: in a loop it takes twice as long when the caches are cold,
    which is what they are once in a period."""
    numbers = ["seq", "step", *(f"v{k}" for k in range(len(names)))]
    given = numbers[2:]
    parts = [word for k, number in enumerate(numbers) for word in (f"t{k}", number)]
    parts += [f"t{k}" for k in range(len(numbers), len(texts))]
    kinds = " is ".join([*(f"type({value})" for value in given), "float"]) if given else "True"
    fetched = "; ".join(f"{value} = values[{name!r}]" for value, name in zip(given, names, strict=True)) or "pass"
    bound = [
        "pack",
        "isfinite",
        "seq_least",
        "seq_top",
        "step_least",
        "step_top",
        *(f"t{k}" for k in range(len(texts))),
    ]
    source = f"""
def write(seq, step, values, {", ".join(f"{name}={name}" for name in bound)}):
    if type(values) is not dict or len(values) != {len(names)}:
        return None
    try:
        {fetched}
    except KeyError:
        return None
    if (
        {kinds} and isfinite({" + ".join(given) or 0})
        and seq_least <= seq <= seq_top and step_least <= step <= step_top
    ):
        return pack({", ".join(parts)})
    return None
"""
    place: dict[str, Any] = dict(zip(bound, (pack, isfinite, *limits, *texts), strict=True))
    exec(_code(source), place)
    write: Write = place.pop("write")  # or the function and its globals would keep each other
    return write


@lru_cache(maxsize=16)
def _code(source: str) -> CodeType:
    """The same for the same names: compiling takes longer than all else here, and one who drives now these, now those
    has a layout learnt again and again."""
    return compile(source, "<command>", "exec")


def command_layout(frame: bytes, values: Mapping[str, float]) -> CommandLayout | None:
    """None where it is not worth one."""
    try:
        return CommandLayout(frame, values)
    except UnlikelyError:
        return None


def rehearse(warm_up: bytes, names: Sequence[str]) -> None:
    """A state of the warm-up, and commands for these actuators, as they will be read and written: what runs for the
    first time takes many times as long, so it does before it counts."""
    pack, often = packer(), 1000
    with suppress(UnlikelyError, Refused):
        at = numbers(warm_up)[0].at
        raw = framed(warm_up[:at] + b"\0" + warm_up[at + 1 :])  # of step 0, where it was of one below
        layout = StateLayout(raw)
        layout.head[0](raw)
        layout.fits(raw)
        values = dict.fromkeys(names, 0.5)
        CommandLayout(pack({"type": "command", "seq": often, "step": often, "values": values}), values).write(
            often, often, values
        )
