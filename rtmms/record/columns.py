"""Columns of a log: a second copy of the steps, by channel, so that one channel can be read without the others.

The writer adds an attachment `columns.bin` to the log after some thousand steps, and one at the end. Each has the
numbers of these steps by column: steps, runs, outcomes, commands, and outputs of at most MAX_NUMBERS numbers. Other
MCAP tools ignore them. The reader uses columns if they are complete; otherwise it reads the messages.

An attachment has a length, a checksum, a table in JSON of that length, and the parts that the table lists. A part is
the column's numbers (little-endian, eight bytes each), their bytes sorted by significance, packed with zstd.
"""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from rtmms.base.contract import OUTCOME_WORDS
from rtmms.base.errors import ModelError
from rtmms.base.files import MIB, open_input
from rtmms.loop.log_row import RowHead
from rtmms.record.log_messages import Signal
from rtmms.record.records import COLUMNS, FOOTER_BYTES, MAGIC

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_NUMBERS = 16
"""Most numbers of a step in an output with a column; larger ones would double the size of a log."""
MAX_ROWS = 4096
"""Most steps in one attachment."""
MAX_EVENT_BYTES = 1 << 20
"""Most bytes of the events in one attachment."""
MIN_ARRAY_BYTES = 256 * MIB
"""Bytes that an array may have whatever the size of its log."""
MAX_ARRAY_RATIO = 16
"""Bytes that an array of a larger log may have for each byte of the log."""

_TABLE = struct.Struct("<II")
_MAX_TABLE_BYTES = MIB
_OFFSETS_CODE = 0x0E
_ATTACHMENT_INDEX_CODE = 0x0A
_ATTACHMENT_CODE = 0x09
_CRC_BYTES = 4
_RECORD = struct.Struct("<BQ")
STEP = "step"
"""Name of the column of step numbers."""
RUN = "run"
"""Name of the column of run numbers."""
OUTCOME = "outcome"
"""Name of the column of outcomes."""
EVENTS = "events"
"""Name of the column of events."""


def max_array_bytes(path: Path) -> int:
    """Return the most bytes of an array of a log.

    Parameters
    ----------
    path : Path
        The log.

    Returns
    -------
    int
        Number of bytes.
    """
    return max(MIN_ARRAY_BYTES, MAX_ARRAY_RATIO * path.stat().st_size)


def refuse_large_array(count: int, limit: int, path: Path, name: str) -> None:
    """Raise ModelError for an array that is out of proportion to its log.

    Parameters
    ----------
    count : int
        Bytes of the array.
    limit : int
        Most bytes.
    path : Path
        The log.
    name : str
        Name of the array, for the error.

    Raises
    ------
    ModelError
        If it is too large.
    """
    if count > limit:
        raise ModelError(f"{path}: {name}: expected an array of at most {limit // MIB} MiB, got {count // MIB} MiB; "
                         "`rtmms log csv` reads it step by step")  # fmt: skip


def _sorted_bytes(numbers: bytes) -> bytes:
    """Return all first bytes of numbers of eight bytes, then all second ones, and so on: they pack better."""
    return b"".join(numbers[k::8] for k in range(8))


# --- writing ----------------------------------------------------------------------------------------------------------


class ColumnWriter:
    """Rows of the next attachment; the writer of a log has one.

    Parameters
    ----------
    actuators, outputs : Sequence[Signal]
        Signals of a row.
    """

    def __init__(self, actuators: Sequence[Signal], outputs: Sequence[Signal]) -> None:
        self._columns: list[tuple[str, int, int]] = []  # name, first number in a gathered row, numbers
        self._pieces: list[tuple[int, int]] = []  # begin and end of the gathered bytes of a row
        at = width = 0
        for prefix, signals in (("command", actuators), ("output", outputs)):
            for signal in signals:
                if signal.size <= MAX_NUMBERS:
                    self._columns.append((f"{prefix} {signal.name}", width, signal.size))
                    self._gather(8 * at, 8 * (at + signal.size))
                    width += signal.size
                at += signal.size
        self._width = width
        self._before = 0  # steps in earlier attachments
        self._run = -1
        self._clear()

    def _gather(self, begin: int, end: int) -> None:
        if self._pieces and self._pieces[-1][1] == begin:
            begin = self._pieces.pop()[0]
        self._pieces.append((begin, end))

    def _clear(self) -> None:
        self._steps, self._runs, self._outcomes = array("q"), array("q"), array("q")
        self._numbers = bytearray()
        self._events: list[bytes] = []
        self._event_bytes = 0

    def start(self) -> None:
        """Begin a run: the first, or one after a reset."""
        self._run += 1

    def add(self, head: RowHead, floats: bytes) -> None:
        """Add a step.

        Parameters
        ----------
        head : RowHead
            Its whole numbers.
        floats : bytes
            Its command and outputs, 8 bytes a number.
        """
        self._steps.append(head.step)
        self._runs.append(self._run)
        self._outcomes.append(head.outcome)
        for begin, end in self._pieces:
            self._numbers += floats[begin:end]

    def add_event(self, message: bytes) -> None:
        """Add a message of /event.

        Parameters
        ----------
        message : bytes
            The message.
        """
        self._events.append(message)
        self._event_bytes += len(message)

    @property
    def is_full(self) -> bool:
        """Whether `take` is due."""
        return len(self._steps) >= MAX_ROWS or self._event_bytes >= MAX_EVENT_BYTES

    def take(self, last: bool = False) -> bytes:
        """Return the attachment with the collected rows, and begin the next.

        Parameters
        ----------
        last : bool, default False
            Whether no attachment follows.

        Returns
        -------
        bytes
            The attachment.
        """
        import zstandard

        numbers = array("d", bytes(self._numbers))
        plain = {STEP: self._steps.tobytes(), RUN: self._runs.tobytes(), OUTCOME: self._outcomes.tobytes()}
        for name, begin, size in self._columns:
            plain[name] = b"".join(numbers[k :: self._width].tobytes() for k in range(begin, begin + size))
        parts = {name: zstandard.compress(_sorted_bytes(column), 1) for name, column in plain.items()}
        parts[EVENTS] = zstandard.compress(b"\n".join(self._events), 1)
        places, at = {}, 0
        for name, part in parts.items():
            places[name] = [at, len(part), zlib.crc32(part)]
            at += len(part)
        rows = len(self._steps)
        table = orjson.dumps({
            "first": self._before, "rows": rows, "last": last, "outcomes": OUTCOME_WORDS, "columns": places,
        })  # fmt: skip
        self._before += rows
        self._clear()
        return b"".join((_TABLE.pack(len(table), zlib.crc32(table)), table, *parts.values()))


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """Attachment.

    Its parts are between `at` and `end` in the file. `first` is the number of steps before it, `rows` that in it. No
    attachment follows the `last` one. `table` is JSON, parsed when it is used, because a log of hours has thousands.
    """

    at: int
    end: int
    first: int
    rows: int
    last: bool
    table: bytes

    @property
    def columns(self) -> Mapping[str, Any]:
        """Place, length and checksum of each part, by name."""
        columns: Mapping[str, Any] = orjson.loads(self.table)["columns"]
        return columns

    @property
    def outcomes(self) -> list[str]:
        """Outcomes of steps by their codes in this log."""
        outcomes = orjson.loads(self.table).get("outcomes")
        return outcomes if isinstance(outcomes, list) and all(item in OUTCOME_WORDS for item in outcomes) else []


class Columns:
    """Columns of a log that has all of them.

    Parameters
    ----------
    path : Path
        The log.
    blocks : Sequence[_Block]
        The attachments.

    Attributes
    ----------
    rows : int
        Number of steps.
    """

    def __init__(self, path: Path, blocks: Sequence[_Block]) -> None:
        self.path, self._blocks = path, blocks
        self.rows = blocks[-1].first + blocks[-1].rows

    def has(self, name: str) -> bool:
        """Return whether there is a column.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        bool
            True if there is.
        """
        return all(name in block.columns for block in self._blocks)

    def read(self, name: str, size: int = 1, whole: bool = False) -> npt.NDArray[Any] | None:
        """Read one column.

        Parameters
        ----------
        name : str
            The column; `has` returns whether there is one.
        size : int, default 1
            Numbers in a row.
        whole : bool, default False
            Whether the numbers are whole ones.

        Returns
        -------
        array or None
            (rows, size), float64 or int64; None if a part is damaged.
        """
        import numpy as np

        refuse_large_array(8 * self.rows * size, max_array_bytes(self.path), self.path, name)
        result = np.empty((self.rows, size), dtype=np.int64 if whole else np.float64)
        with open_input(self.path) as file:
            for block in self._blocks:
                count = 8 * block.rows * size
                part = _part(file, block, name, count)
                if part is None or len(part) != count:
                    return None
                numbers = np.frombuffer(part, dtype=np.uint8).reshape(8, -1).T.copy().view(result.dtype)
                result[block.first : block.first + block.rows] = numbers.reshape(size, block.rows).T
        return result

    def outcomes(self) -> npt.NDArray[np.str_] | None:
        """Read the outcome of each step.

        Returns
        -------
        npt.NDArray[np.str_] | None
            (rows,) names; None if a part is damaged, or has other codes.
        """
        import numpy as np

        codes = self.read(OUTCOME, whole=True)
        if codes is None:
            return None
        result = np.empty(self.rows, dtype=np.array(OUTCOME_WORDS).dtype)
        for block in self._blocks:
            block_codes, known = codes[block.first : block.first + block.rows, 0], block.outcomes
            if block_codes.size and not 0 <= block_codes.min() <= block_codes.max() < len(known):
                return None
            if block_codes.size:
                result[block.first : block.first + block.rows] = np.array(known)[block_codes]
        return result

    def events(self) -> Iterator[bytes]:
        """Read the messages of /event.

        Yields
        ------
        bytes
            Each message.

        Raises
        ------
        ValueError
            If a part is damaged.
        """
        with open_input(self.path) as file:
            for block in self._blocks:
                part = _part(file, block, EVENTS, 2 * MAX_EVENT_BYTES)
                if part is None:
                    raise ValueError("damaged")
                yield from part.split(b"\n") if part else ()


def _part(file: IO[bytes], block: _Block, name: str, max_bytes: int) -> bytes | None:
    """Return a part, unpacked; None if it is damaged or has more bytes."""
    import zstandard

    place = block.columns.get(name)
    if not isinstance(place, list) or [type(item) for item in place] != [int, int, int]:
        return None
    at, length, checksum = place
    if at < 0 or length < 0 or at + length > block.end - block.at:
        return None
    file.seek(block.at + at)
    packed = file.read(length)
    if len(packed) != length or zlib.crc32(packed) != checksum:
        return None
    try:
        if zstandard.frame_content_size(packed) > max_bytes:
            return None
        return bytes(zstandard.decompress(packed, max(1, max_bytes)))
    except (zstandard.ZstdError, ValueError):
        return None


def find_columns(path: Path) -> Columns | None:
    """Return the columns of a log.

    Parameters
    ----------
    path : Path
        The log.

    Returns
    -------
    Columns | None
        None if the log has none or not all of them: it is older, was cut off, or is damaged.
    """
    blocks: list[_Block] = []
    with open_input(path) as file:
        size = os.fstat(file.fileno()).st_size
        for at in _attachments(file, size):
            block = _block(file, at, size)
            if block is None or block.first != (blocks[-1].first + blocks[-1].rows if blocks else 0):
                return None
            blocks.append(block)
        return Columns(path, blocks) if blocks and blocks[-1].last else None


def _block(file: IO[bytes], at: int, size: int) -> _Block | None:
    """Return the attachment at a place; None for another record, and for a table that no writer wrote."""
    head = _read(file, at, _RECORD.size + 16)
    if len(head) < _RECORD.size + 16:
        return None
    code, length = _RECORD.unpack_from(head)
    end = at + _RECORD.size + length - _CRC_BYTES
    if code != _ATTACHMENT_CODE or end > size:
        return None
    place = at + len(head)
    for _ in ("name", "media type"):
        place += 4 + int.from_bytes(_read(file, place, 4), "little")
    place += 8
    result = _read(file, place, _TABLE.size)
    if len(result) < _TABLE.size:
        return None
    count, checksum = _TABLE.unpack(result)
    begin = place + _TABLE.size + count
    if count > _MAX_TABLE_BYTES or begin > end:
        return None
    text = _read(file, place + _TABLE.size, count)
    if len(text) != count or zlib.crc32(text) != checksum:
        return None
    try:
        table = orjson.loads(text)
        first, rows, last, columns = (table[key] for key in ("first", "rows", "last", "columns"))
    except (ValueError, KeyError, TypeError):
        return None
    kinds = [type(item) for item in (first, rows, last, columns)]
    if kinds != [int, int, bool, dict] or not 0 <= rows <= MAX_ROWS:
        return None
    return _Block(begin, end, first, rows, last, text)


def _attachments(file: IO[bytes], size: int) -> Iterator[int]:
    """Yield the places of attachments with columns, from the file's index; nothing without an index."""
    footer = _read(file, size - len(MAGIC) - FOOTER_BYTES, FOOTER_BYTES + len(MAGIC))
    if len(footer) != FOOTER_BYTES + len(MAGIC) or not footer.endswith(MAGIC):
        return
    _, at = struct.unpack_from("<2Q", footer)
    end = size - len(MAGIC) - FOOTER_BYTES - _RECORD.size
    if not 0 < at < end:
        return
    for code, begin, length in _framed(file, at, end):
        if code != _OFFSETS_CODE or length != 17:
            continue
        group, start, extent = struct.unpack("<B2Q", _read(file, begin, 17))
        if group != _ATTACHMENT_INDEX_CODE or start + extent > end:
            continue
        for inner, place, count in _framed(file, start, start + extent):
            body = _read(file, place, min(count, 1024))
            if inner == _ATTACHMENT_INDEX_CODE and len(body) >= 44:
                offset, name_length = struct.unpack_from("<Q", body)[0], struct.unpack_from("<I", body, 40)[0]
                if body[44 : 44 + name_length] == COLUMNS.encode():
                    yield offset


def _framed(file: IO[bytes], at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield code, begin and length of the records between two places."""
    while at + _RECORD.size <= end:
        head = _read(file, at, _RECORD.size)
        if len(head) < _RECORD.size:
            return
        code, length = _RECORD.unpack(head)
        if at + _RECORD.size + length > end:
            return
        yield code, at + _RECORD.size, length
        at += _RECORD.size + length


def _read(file: IO[bytes], at: int, count: int) -> bytes:
    file.seek(max(0, at))
    return file.read(count)
