"""Packed structures: a state's numbers as bytes and a peer's bytes as numbers, by a layout in the configuration."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, NamedTuple

from rtmms.base.errors import ModelError
from rtmms.bridging.channels import Field, field
from rtmms.bridging.untrusted import Refusal
from rtmms.wire.protocol.state import PlantInfo, State

from ..motion.frames import whole

Type = Literal["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "pad"]
Endian = Literal["little", "big"]

_CODES = dict(
    zip(("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "pad"), "bBhHiIqQfdx", strict=True)
)
_F32 = 3.4028234663852886e38
SEQ, STEP = "seq", "step"
LONGEST = 1400
"""Bytes: what goes through every network in one piece."""


@dataclass(frozen=True, kw_only=True)
class Packed:
    """One number of a structure; nothing is between them but what a `pad` puts there.

    field   out: an output of the plant ('position[2]'), time, step, or seq (counts the messages). In: a channel, or
            seq, or step (of the state that is answered). Of a constant and of padding: any name
    type    i8 u8 i16 u16 i32 u32 i64 u64 f32 f64, or pad for one byte that means nothing
    scale   what stands in the structure is the number times this; whole numbers are rounded, and limited to their type
    value   a constant, such as a mark at the beginning: written as it is; in what comes in it must be there

    On a command line FIELD:TYPE[:SCALE], a constant =VALUE:TYPE.
    """

    field: str
    type: Type = "f32"
    scale: float = 1.0
    value: float | None = None

    def __post_init__(self) -> None:
        if self.type not in _CODES:
            raise ModelError(f"type: expected one of {', '.join(_CODES)}; got '{self.type}'")
        if self.scale == 0 or not isfinite(self.scale):
            raise ModelError(f"scale: expected a finite number that is not 0, got {self.scale}")

    @classmethod
    def from_word(cls, word: str, place: str) -> Packed:
        """'position[0]:f32:100', or '=43981:u16'."""
        name, _, rest = word.partition(":")
        kind, _, scale = rest.partition(":")
        try:
            value = float(name[1:]) if name.startswith("=") else None
            factor = float(scale) if scale else 1.0
        except ValueError:
            name = ""
            value, factor = None, 1.0
        if not name:
            raise ModelError(f"{place}: expected FIELD:TYPE[:SCALE] or =VALUE:TYPE, got '{word}'")
        return cls(field=name, type=kind or "f32", scale=factor, value=value)  # type: ignore[arg-type]

    @property
    def bits(self) -> int:
        """Of a whole number, else 0."""
        return int(self.type[1:]) if self.type[0] in "iu" else 0

    def counted(self, number: int) -> float | int:
        """A number that counts: it begins anew where the type ends."""
        if not self.bits:
            return float(number)
        half = (1 << self.bits) >> 1 if self.type[0] == "i" else 0
        return (number + half) % (1 << self.bits) - half

    def held(self, number: float) -> int:
        """The nearest whole number that the type holds."""
        return whole(number, 1.0, self.bits, self.type[0] == "i")

    def raw(self, number: float) -> float | int:
        """As it stands in the structure; ValueError where it cannot."""
        if self.bits:
            return whole(number, self.scale, self.bits, self.type[0] == "i")
        scaled = number * self.scale
        return min(_F32, max(-_F32, scaled)) if self.type == "f32" else scaled


class UnpackedCommand(NamedTuple):
    """A command: values by channel, its own number, and the step of the state that it answers, or None."""

    values: dict[str, float]
    seq: int | None = None
    step: int | None = None


class _Layout:
    """The fields in their order, and the structure they make."""

    def __init__(self, entries: Sequence[Packed], endian: Endian, place: str) -> None:
        self.entries = tuple(entry for entry in entries if entry.type != "pad")
        if not self.entries:
            raise ModelError(f"{place}: expected at least one field")
        self.struct = struct.Struct(("<" if endian == "little" else ">") + "".join(_CODES[e.type] for e in entries))
        if self.struct.size > LONGEST:
            raise ModelError(f"{place}: a message of {self.struct.size} bytes; at most {LONGEST} can be sent at once")
        self._place = place

    @property
    def size(self) -> int:
        """Bytes."""
        return self.struct.size

    def constants(self) -> dict[int, float]:
        return {i: entry.value for i, entry in enumerate(self.entries) if entry.value is not None}


class Packer(_Layout):
    """States as bytes."""

    def __init__(self, entries: Sequence[Packed], endian: Endian, plant: PlantInfo, place: str) -> None:
        super().__init__(entries, endian, place)
        for i, entry in enumerate(entries):
            if entry.value is not None and entry.bits and entry.value != entry.held(entry.value):
                raise ModelError(f"{place}[{i}]: the constant {entry.value:g} does not fit {entry.type}")
        self._fields: list[Field | None] = [
            None if e.value is not None or e.field == SEQ else field(e.field, plant, place) for e in self.entries
        ]

    def __call__(self, state: State, seq: int, instead: Mapping[str, float] | None = None) -> bytes:
        """The state's numbers; `instead` has values by field that are sent in their place."""
        raws: list[float | int] = []
        for entry, read in zip(self.entries, self._fields, strict=True):
            if instead is not None and entry.field in instead:  # of a constant too: a flag that means all is well
                raws.append(entry.raw(instead[entry.field]))
            elif entry.value is not None:
                raws.append(int(entry.value) if entry.bits else entry.value)
            elif read is None:
                raws.append(entry.counted(seq))
            elif read.output == STEP and entry.bits and entry.scale == 1.0:
                raws.append(entry.counted(int(read(state))))
            else:
                raws.append(entry.raw(read(state)))
        return self.struct.pack(*raws)


class Unpacker(_Layout):
    """Bytes as numbers by channel."""

    def __init__(self, entries: Sequence[Packed], endian: Endian, place: str) -> None:
        super().__init__(entries, endian, place)
        names = [entry.field for entry in self.entries if entry.value is None]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ModelError(f"{place}: '{twice[0]}' stands in it twice")
        self.channels = tuple(name for name in names if name not in (SEQ, STEP))
        self._bits = {entry.field: entry.bits for entry in self.entries}

    def __call__(self, data: bytes) -> UnpackedCommand:
        """Refusal: length, mark (a constant), not_finite."""
        if len(data) != self.struct.size:
            raise Refusal("length", f"a command has {self.struct.size} bytes, got {len(data)}")
        values: dict[str, float] = {}
        numbers: dict[str, int] = {}
        for entry, raw in zip(self.entries, self.struct.unpack(data), strict=True):
            if entry.value is not None:
                if raw != entry.value:
                    raise Refusal("mark", f"expected the constant {entry.value:g}, got {raw:g}")
            elif entry.field in (SEQ, STEP):
                if not isfinite(raw):
                    raise Refusal("not_finite", f"{entry.field} is not finite")
                numbers[entry.field] = int(raw)
            else:
                number = raw / entry.scale
                if not isfinite(number):
                    raise Refusal("not_finite", f"{entry.field} is not finite")
                values[entry.field] = number
        return UnpackedCommand(values, numbers.get(SEQ), numbers.get(STEP))

    def is_step(self, stated: int, step: int) -> bool:
        """Is that the step's number, as far as its field holds it?"""
        bits = self._bits[STEP]
        return (stated - step) % (1 << bits) == 0 if bits else stated == step


def is_old(seq: int, newest: int | None, bits: int = 0, window: int = 64) -> bool:
    """A message that was sent before one already taken, or is the same again: its number is one of the last few.

    bits   after how many the number begins at 0 again; 0: never. Farther back than the window it is a peer that started
           anew, whose messages count.
    """
    if newest is None:
        return False
    behind = newest - seq
    if bits:
        behind %= 1 << bits
    return 0 <= behind < window
