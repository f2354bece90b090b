"""The records of an MCAP file one after the other, past those that are damaged.

mcap's own reader ends at the first fault: with one bit flipped in the middle of a log it returns 45 % of the messages,
this one 91 %. Here a chunk whose checksum is wrong is left out and the next one is read;
where a length is wrong, so that nobody knows where the next record begins, the file's index shows it.
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
"""What such a file begins with, and ends with when it is whole."""

Chunks = Literal["read", "check", "skip"]
"""read: give out what is in them; check: their checksums alone; skip: leave them unread."""

COLUMNS, BINARY = "columns.bin", "application/octet-stream"
"""Name and media type of the attachments that rtmms.record.columns writes and reads; `check` reads them here."""

_HEAD = struct.Struct("<BQ")
_CHUNK = struct.Struct("<3QII")  # times, size, checksum, length of the compression's name
_INDEX = struct.Struct("<HI")
_COLUMNS_HEAD = struct.Struct(f"<2QI{len(COLUMNS)}sI{len(BINARY)}sQ")  # times, name, media type, length
_LENGTH, _CRC = struct.Struct("<Q"), struct.Struct("<I")
FOOTER_BYTES = 20
_CHUNK_CODE, _INDEX_CODE, _FOOTER_CODE, _ATTACHMENT_CODE = 6, 7, 2, 9
_FOREIGN = 0x80
"""Codes from here on are free for others' records."""
_PIECE = 1 << 20
_MOST_PLACES = 1000
"""Damaged places that are listed one by one."""


def records(path: Path, chunks: Chunks = "read", damage: list[str] | None = None) -> Iterator[Any]:
    """What the file holds, as mcap's records, up to its end or to where it was cut off.

    damage   gets a sentence for each place that cannot be read, at most _MOST_PLACES; being cut off is no damage
    """
    with open_input(path, expected="a log (MCAP)") as file:
        yield from _Scan(file, os.fstat(file.fileno()).st_size, chunks, [] if damage is None else damage).records()


MAX_CHUNK_BYTES = 16 << 20
"""Of a chunk, unpacked: the writer begins a new one after 1 MiB."""


def _unpacked(chunk: Any) -> Any:
    """Return the chunk with its data unpacked; ValueError where that is more than a chunk of ours has."""
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
    """A record is not what it should be; framed: where it ends is known all the same."""

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
        at: int | None = len(MAGIC)
        while at is not None and at + _HEAD.size <= self._size:
            code, length = _HEAD.unpack(self._at(at, _HEAD.size))
            end: int = at + _HEAD.size + length
            if code == 0:  # of no record: a machine that went down leaves zeros where a file was being written
                after = self._zeros(at)
                following = self._next(at, after)
                self._report_damage(at, following, f"{after - at} bytes that are zero")
                yield from self._channels
                at = following
                continue
            if end > self._size and not self._complete:
                return  # cut off here
            try:
                yield from self._record(code, at, end)
            except _Damaged as fault:
                following = end if fault.framed else self._next(at, end)
                self._report_damage(at, following, str(fault))
                yield from self._channels  # they may have stood there
                at = following
                continue
            if code == _FOOTER_CODE:
                beyond = self._size - end - len(MAGIC)
                if not self._complete and beyond > 0 and self._at(end, len(MAGIC)) == MAGIC:
                    self._damage.append(f"{beyond} bytes after the log's end, at byte {end + len(MAGIC)}")
                return
            at = end

    def _report_damage(self, at: int, following: int | None, why: str) -> None:
        """One sentence for damage in a row: a hostile file has a damaged record in each nine bytes."""
        in_a_row, self._damaged_to = at == self._damaged_to, -1 if following is None else following
        if in_a_row:
            return
        if len(self._damage) < _MOST_PLACES:
            self._damage.append(f"damaged at byte {at}: {why}")
            return
        self._unreported += 1
        self._damage[-1] = f"damaged at byte {at}: {why}, the last of {self._unreported + 1} such places"

    def _zeros(self, at: int) -> int:
        """Where the zeros end that begin there."""
        while piece := self._at(at, _PIECE):
            rest = len(piece.lstrip(b"\0"))
            at += len(piece) - rest
            if rest:
                break
        return at

    def _record(self, code: int, at: int, end: int) -> Iterator[Any]:
        if end > self._size:
            raise _Damaged("a length that is beyond the end of the file")
        match code:
            case _ if code == _CHUNK_CODE:
                yield from self._chunk(at, end)
            case _ if code == _INDEX_CODE:
                self._check_length(at, end, _INDEX, 0)
            case _ if code == _FOOTER_CODE:
                if end - at != _HEAD.size + FOOTER_BYTES or (self._complete and end != self._size - len(MAGIC)):
                    raise _Damaged("an end that is none")
                self._check_summary(end)
            case _:
                found = self._parsed(code, at, end)
                if found is not None:
                    yield found

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
            found = breakup_chunk(chunk, validate_crc=True)
        except Exception as fault:  # whatever a library makes of such bytes
            raise _Damaged(f"a chunk of {len(body)} bytes ({_first_line(fault)})", framed=True) from None
        yield from found

    def _check_length(self, at: int, end: int, head: struct.Struct, after: int) -> None:
        """A head that ends with a length, so many bytes, and for a chunk one length more with its bytes."""
        begin = at + _HEAD.size
        if end - begin < head.size:
            raise _Damaged("a record that is too short")
        reach = begin + head.size + head.unpack(self._at(begin, head.size))[-1]
        if after and reach + after <= end:
            reach += after + _LENGTH.unpack(self._at(reach, after))[0]
        if reach != end:
            raise _Damaged("lengths that contradict each other")

    def _parsed(self, code: int, at: int, end: int) -> Any:
        """A record of the kinds that are small; None for somebody else's."""
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
            found = reader._read_record(code, len(body))
        except Exception as fault:  # whatever a library makes of such bytes
            raise _Damaged(f"a record of kind {code} ({_first_line(fault)})") from None
        if found is None or stream.count != len(body):
            raise _Damaged(f"a record of kind {code}")
        return found

    def _has_columns(self, at: int, end: int) -> bool:
        """Whether the attachment between two places has columns, and lengths that agree."""
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
        """Where records begin, as the file's index has it."""
        return self._index[0]

    @property
    def _channels(self) -> list[Any]:
        """The channels, as the file's index has them."""
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[list[int], list[Any]]:
        """Where records begin, and the channels, as the file's end has them; nothing of a file without."""
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
                found = self._parsed(code, at, at + _HEAD.size + length)
            except _Damaged:
                break
            kind = type(found).__name__
            if kind in ("ChunkIndex", "AttachmentIndex", "MetadataIndex"):
                places.append(found.chunk_start_offset if kind == "ChunkIndex" else found.offset)
            elif kind == "Channel":
                channels.append(found)
            at += _HEAD.size + length
        return sorted(places), channels

    def _next(self, at: int, end: int) -> int | None:
        """Where the next record begins after one whose length is not to be trusted."""
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
