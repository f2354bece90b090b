"""Records of an MCAP file one after the other, with damaged ones left out.

mcap's own reader ends at the first fault. With one bit flipped in the middle of a log it returns 45 % of the messages,
this one 91 %. Here a chunk with a wrong checksum is left out and the next one is read. If a length is wrong, so that
the next record's place is unknown, the file's index shows it.
"""

from __future__ import annotations

import dataclasses
import os
import struct
import zlib
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Literal

from rtmms.base.files import open_input

MAGIC = b"\x89MCAP0\r\n"
"""First bytes of such a file, and its last ones if it is whole."""

Chunks = Literal["read", "check", "skip"]
"""Treatment of chunks: read their contents, check their checksums alone, or skip them unread."""

COLUMNS = "columns.bin"
"""Name of attachments of rtmms.record.columns; `check` reads them here."""
BINARY = "application/octet-stream"
"""Media type of these attachments."""

_HEAD = struct.Struct("<BQ")
_CHUNK = struct.Struct("<3QII")  # times, size, checksum, length of the compression's name
_INDEX = struct.Struct("<HI")
_COLUMNS_HEAD = struct.Struct(f"<2QI{len(COLUMNS)}sI{len(BINARY)}sQ")  # times, name, media type, length
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
FOOTER_BYTES = 20
_CHUNK_CODE = 6
_INDEX_CODE = 7
_FOOTER_CODE = 2
_ATTACHMENT_CODE = 9
_FOREIGN = 0x80
"""First code of records that others may define."""
_PIECE = 1 << 20
_MAX_PLACES = 1000
"""Damaged places that are listed one by one."""


def records(path: Path, chunks: Chunks = "read", damage: list[str] | None = None) -> Iterator[Any]:
    """Yield the records of a file, up to its end or to where it was cut off.

    Parameters
    ----------
    path : Path
        The file.
    chunks : Chunks, default 'read'
        Treatment of chunks.
    damage : list[str] | None, optional
        Receives a sentence for each unreadable place, at most _MAX_PLACES; a file that was cut off is not damaged.

    Yields
    ------
    Any
        Each record as mcap's class.
    """
    with open_input(path, expected="a log (MCAP)") as file:
        yield from _Scan(file, os.fstat(file.fileno()).st_size, chunks, [] if damage is None else damage).records()


MAX_CHUNK_BYTES = 16 << 20
"""Most bytes of an unpacked chunk; the writer ends a chunk with the row that takes it beyond 1 MiB."""
MAX_NUMBERS = MAX_CHUNK_BYTES // 32
"""Most numbers of a row, so that its text (at most 25 bytes a number) fits into a chunk."""


def _unpacked(chunk: Any) -> Any:
    """Return the chunk with its data unpacked; ValueError if they are more than a chunk of ours has."""
    data, size = chunk.data, int(chunk.uncompressed_size)
    if chunk.compression == "zstd":
        import zstandard

        size = max(size, zstandard.frame_content_size(data))
        if size <= MAX_CHUNK_BYTES:
            data = zstandard.decompress(data, max(1, size))
    elif chunk.compression:
        raise ValueError(f"compression {chunk.compression!r:.20}")
    if max(size, len(data)) > MAX_CHUNK_BYTES:
        raise ValueError(f"more than {MAX_CHUNK_BYTES >> 20} MiB unpacked")
    return dataclasses.replace(chunk, compression="", data=data)


class _Damaged(Exception):
    """Damaged record; `framed` states whether its end is known all the same."""

    def __init__(self, why: str, framed: bool = False) -> None:
        super().__init__(why)
        self.framed = framed


class _Scan:
    """One pass over a file."""

    def __init__(self, file: IO[bytes], size: int, chunks: Chunks, damage: list[str]) -> None:
        self._file, self._size, self._chunks, self._damage = file, size, chunks, damage
        self._damaged_to = -1
        self._unreported = 0
        self._complete = self._at(size - len(MAGIC), len(MAGIC)) == MAGIC and size >= 2 * len(MAGIC)

    def records(self) -> Iterator[Any]:
        """Yield the records."""
        at: int | None = len(MAGIC)
        while at is not None and at + _HEAD.size <= self._size:
            code, length = _HEAD.unpack(self._at(at, _HEAD.size))
            end: int = at + _HEAD.size + length
            if code == 0:  # no code of a record: after a crash of the machine the end of a file may consist of zeros
                after = self._zeros(at)
                following = self._next(at, after)
                self._report_damage(at, following, f"{after - at} bytes that are zero")
                yield from self._channels
                at = following
                continue
            if end > self._size and not self._complete:
                return  # the file ends within a record
            try:
                yield from self._record(code, at, end)
            except _Damaged as fault:
                following = end if fault.framed else self._next(at, end)
                self._report_damage(at, following, str(fault))
                yield from self._channels  # the damaged part may have contained channels
                at = following
                continue
            if code == _FOOTER_CODE:
                beyond = self._size - end - len(MAGIC)
                if not self._complete and beyond > 0 and self._at(end, len(MAGIC)) == MAGIC:
                    self._damage.append(f"{beyond} bytes after the log's end, at byte {end + len(MAGIC)}")
                return
            at = end

    def _report_damage(self, at: int, following: int | None, why: str) -> None:
        """Report adjacent damage in one sentence, because a hostile file has a damaged record in each nine bytes."""
        in_a_row, self._damaged_to = at == self._damaged_to, -1 if following is None else following
        if in_a_row:
            return
        if len(self._damage) < _MAX_PLACES:
            self._damage.append(f"damaged at byte {at}: {why}")
            return
        self._unreported += 1
        self._damage[-1] = f"damaged at byte {at}: {why}, the last of {self._unreported + 1} such places"

    def _zeros(self, at: int) -> int:
        """Return the end of the zeros that begin at a place."""
        while piece := self._at(at, _PIECE):
            remaining = len(piece.lstrip(b"\0"))
            at += len(piece) - remaining
            if remaining:
                break
        return at

    def _record(self, code: int, at: int, end: int) -> Iterator[Any]:
        if end > self._size:
            raise _Damaged("a length that exceeds the file")
        match code:
            case _ if code == _CHUNK_CODE:
                yield from self._chunk(at, end)
            case _ if code == _INDEX_CODE:
                self._check_length(at, end, _INDEX, 0)
            case _ if code == _FOOTER_CODE:
                if end - at != _HEAD.size + FOOTER_BYTES or (self._complete and end != self._size - len(MAGIC)):
                    raise _Damaged("an invalid end of the file")
                self._check_summary(end)
            case _:
                result = self._parsed(code, at, end)
                if result is not None:
                    yield result

    def _chunk(self, at: int, end: int) -> Iterator[Any]:
        from mcap.records import Chunk
        from mcap.stream_reader import breakup_chunk, get_chunk_data_stream

        self._check_length(at, end, _CHUNK, _LENGTH.size)
        if self._chunks == "skip":
            return
        body = self._body(at, end)
        try:
            chunk = _unpacked(Chunk.read(_stream(body)))
            if self._chunks == "check":
                get_chunk_data_stream(chunk, validate_crc=True)
                return
            result = breakup_chunk(chunk, validate_crc=True)
        except Exception as fault:  # a library may raise anything for such bytes
            raise _Damaged(f"a chunk of {len(body)} bytes ({_first_line(fault)})", framed=True) from None
        yield from result

    def _check_length(self, at: int, end: int, head: struct.Struct, after: int) -> None:
        """Check a head that ends with a length, its bytes, and for a chunk a further length with its bytes."""
        begin = at + _HEAD.size
        if end - begin < head.size:
            raise _Damaged("a record that is too short")
        reach = begin + head.size + head.unpack(self._at(begin, head.size))[-1]
        if after and reach + after <= end:
            reach += after + _LENGTH.unpack(self._at(reach, after))[0]
        if reach != end:
            raise _Damaged("lengths that contradict each other")

    def _parsed(self, code: int, at: int, end: int) -> Any:
        """Return a record of the small kinds; None for a foreign one."""
        from mcap.stream_reader import StreamReader

        if code >= _FOREIGN and at not in self._places:
            return None
        if code == _ATTACHMENT_CODE and self._chunks != "check" and self._has_columns(at, end):
            return None
        body = self._body(at, end)
        if code == _ATTACHMENT_CODE:
            checksum = _CRC.unpack(body[-4:])[0] if len(body) >= _CRC.size else 0
            if checksum not in (0, zlib.crc32(body[:-4])):
                raise _Damaged("an attachment (its checksum is wrong)")
        stream = _stream(body)
        reader = StreamReader(BytesIO(), skip_magic=True)
        reader._stream = stream
        try:
            record = reader._read_record(code, len(body))
        except Exception as fault:  # a library may raise anything for such bytes
            raise _Damaged(f"a record of kind {code} ({_first_line(fault)})") from None
        if record is None or stream.count != len(body):
            raise _Damaged(f"a record of kind {code}")
        return record

    def _has_columns(self, at: int, end: int) -> bool:
        """Return whether the attachment between two places has columns, and lengths that agree."""
        head = self._at(at + _HEAD.size, _COLUMNS_HEAD.size)
        if len(head) < _COLUMNS_HEAD.size:
            return False
        _, _, length, name, kind_length, kind, size = _COLUMNS_HEAD.unpack(head)
        known = (length, name, kind_length, kind) == (len(COLUMNS), COLUMNS.encode(), len(BINARY), BINARY.encode())
        return known and at + _HEAD.size + _COLUMNS_HEAD.size + size + _CRC.size == end

    def _check_summary(self, end: int) -> None:
        start, _, checksum = struct.unpack("<2QI", self._at(end - FOOTER_BYTES, FOOTER_BYTES))
        if checksum and 0 < start < end and zlib.crc32(self._at(start, end - _CRC.size - start)) != checksum:
            raise _Damaged("the file's index (its checksum is wrong)", framed=True)

    @property
    def _places(self) -> list[int]:
        """Places of records, from the file's index."""
        return self._index[0]

    @property
    def _channels(self) -> list[Any]:
        """Channels, from the file's index."""
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[list[int], list[Any]]:
        """Places of records and channels, from the file's end; empty without an index."""
        places: list[int] = []
        channels: list[Any] = []
        if not self._complete:
            return places, channels
        footer = self._at(self._size - len(MAGIC) - FOOTER_BYTES, FOOTER_BYTES)
        at = struct.unpack("<2QI", footer)[0] if len(footer) == FOOTER_BYTES else 0
        end = self._size - len(MAGIC) - FOOTER_BYTES - _HEAD.size
        if not 0 < at < end:
            return places, channels
        places.append(at)
        while at + _HEAD.size <= end:
            code, length = _HEAD.unpack(self._at(at, _HEAD.size))
            if at + _HEAD.size + length > end:
                break
            try:
                result = self._parsed(code, at, at + _HEAD.size + length)
            except _Damaged:
                break
            kind = type(result).__name__
            if kind in ("ChunkIndex", "AttachmentIndex", "MetadataIndex"):
                places.append(result.chunk_start_offset if kind == "ChunkIndex" else result.offset)
            elif kind == "Channel":
                channels.append(result)
            at += _HEAD.size + length
        return sorted(places), channels

    def _next(self, at: int, end: int) -> int | None:
        """Return the place of the next record after one with an unreliable length."""
        if self._places:
            return next((place for place in self._places if place > at), None)
        return end if end < self._size else None

    def _at(self, at: int, count: int) -> bytes:
        self._file.seek(max(0, at))
        return self._file.read(count)

    def _body(self, at: int, end: int) -> bytes:
        return self._at(at + _HEAD.size, end - at - _HEAD.size)


def _stream(body: bytes) -> Any:
    from mcap.data_stream import ReadDataStream

    return ReadDataStream(BytesIO(body))


def _first_line(fault: Exception) -> str:
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0]
