"""The index of a long log, in little memory while it grows: 2 MB an hour, of which the library's own takes 20."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

_HEAD = struct.Struct("<7QHH")
_OFFSET = struct.Struct("<HQ")
_FIELDS = (
    "message_start_time", "message_end_time", "chunk_start_offset", "chunk_length", "message_index_length",
    "compressed_size", "uncompressed_size",
)  # fmt: skip


class Compact:
    """Stands in for a list of chunk indexes: what is appended is kept as bytes, and comes back in order."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._count = 0

    def append(self, index: Any) -> None:
        """Keep one ChunkIndex."""
        compression, offsets = index.compression.encode(), index.message_index_offsets
        self._kept += _HEAD.pack(*(getattr(index, field) for field in _FIELDS), len(offsets), len(compression))
        self._kept += compression
        for item in offsets.items():
            self._kept += _OFFSET.pack(*item)
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        from mcap.records import ChunkIndex

        at = 0
        for _ in range(self._count):
            *values, count, length = _HEAD.unpack_from(self._kept, at)
            at += _HEAD.size
            compression = self._kept[at : at + length].decode()
            at += length
            end = at + count * _OFFSET.size
            offsets = dict(_OFFSET.iter_unpack(self._kept[at:end]))
            at = end
            yield ChunkIndex(
                compression=compression, message_index_offsets=offsets, **dict(zip(_FIELDS, values, strict=True))
            )


def compact_index(writer: Any) -> bool:
    """Have an mcap Writer keep its chunk indexes so; False where the library is another than we know."""
    name = "_Writer__chunk_indices"
    if getattr(writer, name, None) != []:
        return False
    setattr(writer, name, Compact())
    return True
