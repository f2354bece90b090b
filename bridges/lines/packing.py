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
from rtmms.wire.protocol.received_state import PlantInfo, State

from ..motion.frames import to_integer

Type = Literal["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "pad"]
Endian = Literal["little", "big"]

_CODES = dict(
    zip(("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "pad"), "bBhHiIqQfdx", strict=True)
)
_MAX_F32 = 3.4028234663852886e38
SEQ = "seq"
STEP = "step"
MAX_PACKET_BYTES = 1400
"""Bytes that every network passes in one piece."""


@dataclass(frozen=True, kw_only=True)
class Packed:
    """One number of a structure; the structure has no gaps except `pad`.

    On a command line it is FIELD:TYPE[:SCALE], a constant =VALUE:TYPE.

    Parameters
    ----------
    field : str
        In a state: an output of the plant ('position[2]'), time, step, or seq (counts the messages). In a command: a
        channel, seq, or step (of the answered state). For a constant and padding: any name.
    type : Type, default 'f32'
        i8 u8 i16 u16 i32 u32 i64 u64 f32 f64, or pad for one meaningless byte.
    scale : float, default 1.0
        The structure has the number times this; whole numbers are rounded, and clamped to their type.
    value : float | None, optional
        A constant, such as a mark at the beginning. It is written unchanged, and required in received messages.

    Raises
    ------
    ModelError
        If a value is invalid.

    Examples
    --------
    >>> Packed.from_word("position[0]:i16:100", "fields").raw(1.5)
    150
    """

    field: str
    type: Type = "f32"
    scale: float = 1.0
    value: float | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if self.type not in _CODES:
            raise ModelError(f"type: expected one of {', '.join(_CODES)}; got '{self.type}'")
        if self.scale == 0 or not isfinite(self.scale):
            raise ModelError(f"scale: expected a finite number that is not 0, got {self.scale}")

    @classmethod
    def from_word(cls, word: str, place: str) -> Packed:
        """Return the number of a text such as 'position[0]:f32:100', or '=43981:u16'.

        Parameters
        ----------
        word : str
            The text.
        place : str
            Source of the text, for the error.

        Returns
        -------
        Packed
            The number.

        Raises
        ------
        ModelError
            If the text has another form.
        """
        name, _, remaining = word.partition(":")
        kind, _, scale = remaining.partition(":")
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
        """Bits of a whole number, else 0."""
        return int(self.type[1:]) if self.type[0] in "iu" else 0

    def counted(self, number: int) -> float | int:
        """Return a counter, which begins anew at the end of the type's range.

        Parameters
        ----------
        number : int
            The count.

        Returns
        -------
        float | int
            The counter.
        """
        if not self.bits:
            return float(number)
        half = (1 << self.bits) >> 1 if self.type[0] == "i" else 0
        return (number + half) % (1 << self.bits) - half

    def held(self, number: float) -> int:
        """Return the nearest whole number of the type.

        Parameters
        ----------
        number : float
            The number.

        Returns
        -------
        int
            The whole number.
        """
        return to_integer(number, 1.0, self.bits, self.type[0] == "i")

    def raw(self, number: float) -> float | int:
        """Return a number as it is in the structure.

        Parameters
        ----------
        number : float
            The number.

        Returns
        -------
        float | int
            The scaled number.

        Raises
        ------
        ValueError
            If it is not finite.
        """
        if self.bits:
            return to_integer(number, self.scale, self.bits, self.type[0] == "i")
        scaled = number * self.scale
        return min(_MAX_F32, max(-_MAX_F32, scaled)) if self.type == "f32" else scaled


class UnpackedCommand(NamedTuple):
    """Command of a peer.

    Attributes
    ----------
    values : dict[str, float]
        Values by channel.
    seq : int | None, optional
        Number of the command; None for none.
    step : int | None, optional
        Step of the state that it answers; None for none.
    """

    values: dict[str, float]
    seq: int | None = None
    step: int | None = None


class _Layout:
    """Fields in their order, and their structure."""

    def __init__(self, entries: Sequence[Packed], endian: Endian, place: str) -> None:
        self.entries = tuple(entry for entry in entries if entry.type != "pad")
        if not self.entries:
            raise ModelError(f"{place}: expected at least one field")
        self.struct = struct.Struct(("<" if endian == "little" else ">") + "".join(_CODES[e.type] for e in entries))
        if self.struct.size > MAX_PACKET_BYTES:
            raise ModelError(
                f"{place}: expected a message of at most {MAX_PACKET_BYTES} bytes, got {self.struct.size}; "
                "remove fields"
            )
        self._place = place

    @property
    def size(self) -> int:
        """Bytes of the structure."""
        return self.struct.size

    def constants(self) -> dict[int, float]:
        return {i: entry.value for i, entry in enumerate(self.entries) if entry.value is not None}


class Packer(_Layout):
    """Writer of states as bytes.

    Parameters
    ----------
    entries : Sequence[Packed]
        The numbers.
    endian : Endian
        Byte order.
    plant : PlantInfo
        The plant.
    place : str
        Source of the layout, for errors.

    Raises
    ------
    ModelError
        If a field or a constant is invalid.
    """

    def __init__(self, entries: Sequence[Packed], endian: Endian, plant: PlantInfo, place: str) -> None:
        super().__init__(entries, endian, place)
        for i, entry in enumerate(entries):
            if entry.value is not None and entry.bits and entry.value != entry.held(entry.value):
                raise ModelError(f"{place}[{i}]: the constant {entry.value:g} is outside the range of {entry.type}")
        self._fields: list[Field | None] = [
            None if e.value is not None or e.field == SEQ else field(e.field, plant, place) for e in self.entries
        ]

    def __call__(self, state: State, seq: int, instead: Mapping[str, float] | None = None) -> bytes:
        """Return a state's numbers; `instead` has values by field that replace them."""
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
    """Reader of bytes as numbers by channel.

    Parameters
    ----------
    entries : Sequence[Packed]
        The numbers.
    endian : Endian
        Byte order.
    place : str
        Source of the layout, for errors.

    Attributes
    ----------
    channels : tuple of str
        Channels of the structure.

    Raises
    ------
    ModelError
        If a field occurs twice.
    """

    def __init__(self, entries: Sequence[Packed], endian: Endian, place: str) -> None:
        super().__init__(entries, endian, place)
        names = [entry.field for entry in self.entries if entry.value is None]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ModelError(f"{place}: '{twice[0]}' is listed twice")
        self.channels = tuple(name for name in names if name not in (SEQ, STEP))
        self._bits = {entry.field: entry.bits for entry in self.entries}

    def __call__(self, data: bytes) -> UnpackedCommand:
        """Return the command of a message; Refusal with reason length, mark (a constant) or not_finite."""
        if len(data) != self.struct.size:
            raise Refusal("length", f"a command has {self.struct.size} bytes, got {len(data)}")
        values: dict[str, float] = {}
        numbers: dict[str, int] = {}
        for entry, raw in zip(self.entries, self.struct.unpack(data), strict=True):
            if entry.value is not None:
                if raw != entry.value:
                    raise Refusal(
                        "mark",
                        f"command: expected the constant {entry.value:g} of command_fields, got {raw:g}; check "
                        "that the sender uses the same fields",
                    )
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

    def steps_behind(self, stated: int, step: int) -> int:
        """Return how many steps a stated number is behind a step, as far as its field's range allows.

        Parameters
        ----------
        stated : int
            The stated number.
        step : int
            The step.

        Returns
        -------
        int
            Number of steps; 0 for the step itself.
        """
        bits = self._bits[STEP]
        return (step - stated) % (1 << bits) if bits else step - stated


def is_old(seq: int, newest: int | None, bits: int = 0, window: int = 64) -> bool:
    """Return whether a message was sent before an accepted one, or is the same again.

    Parameters
    ----------
    seq : int
        Number of the message.
    newest : int | None
        Number of the newest accepted one; None for none.
    bits : int, default 0
        Bits of the counter, which begins at 0 again; 0: never.
    window : int, default 64
        Numbers that count as old. Earlier ones are of a restarted peer, and are accepted.

    Returns
    -------
    bool
        True if it is old.

    Examples
    --------
    >>> is_old(3, 5), is_old(6, 5)
    (True, False)
    """
    if newest is None:
        return False
    behind = newest - seq
    if bits:
        behind %= 1 << bits
    return 0 <= behind < window
