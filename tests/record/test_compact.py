"""The index of a log that is kept compact gives the same file as the library's own."""

from __future__ import annotations

import io

import pytest
from mcap.records import ChunkIndex
from mcap.writer import Writer

from rtmms.record.writer import CompactIndexes, compact_index


def _log(compact: bool) -> bytes:
    stream = io.BytesIO()
    writer = Writer(stream, chunk_size=1 << 40)
    assert not compact or compact_index(writer)
    writer.start(library="test")
    schema = writer.register_schema("S", "jsonschema", b"{}")
    channels = [writer.register_channel(topic, "json", schema) for topic in ("/a", "/b")]
    for k in range(50):
        for channel in channels[: 1 + k % 2]:
            writer.add_message(channel, k, b'{"k": %d}' % k, k, k)
        if k % 5 == 4:
            writer.flush()
    writer.finish()
    return stream.getvalue()


def test_the_file_is_the_same_to_the_byte() -> None:
    assert _log(compact=True) == _log(compact=False)


def test_indexes_come_back_as_they_went_and_more_may_follow() -> None:
    def index(k: int) -> ChunkIndex:
        return ChunkIndex(
            chunk_length=k, chunk_start_offset=1 << 40, compression="zstd" if k % 2 else "", compressed_size=3,
            message_end_time=1 << 63, message_index_length=5, message_index_offsets={j: j * k for j in range(k)},
            message_start_time=0, uncompressed_size=7,
        )  # fmt: skip

    compact = CompactIndexes()
    for k in range(4):
        compact.append(index(k))
    assert list(compact) == [index(k) for k in range(4)]
    compact.append(index(9))
    assert list(compact)[-1] == index(9)
    assert len(compact) == 5


@pytest.mark.parametrize("writer", [object(), type("Other", (), {"_Writer__chunk_indices": ()})()])
def test_a_library_that_is_otherwise_is_left_alone(writer: object) -> None:
    assert compact_index(writer) is False
