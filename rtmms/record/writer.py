"""Process that drains a run's ring into an MCAP file: python -m rtmms.record.writer RING_FD FILE.

It reads from standard input, one JSON object a line: first the log's origin, then set-points as they change, last the
end of the run. It ends on request, or when the run is gone; then it writes the rest of the ring. So killing the run
loses nothing that the loop had passed on. Killing the writer loses what it had not yet written: COMMIT_S at most, and
the ring's contents. While the disk accepts nothing, it keeps its data and lets the ring fill.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from rtmms.base.terminal import print_text
from rtmms.loop.log_row import START, RowHead
from rtmms.record.columns import ColumnWriter
from rtmms.record.log_location import Place
from rtmms.record.log_messages import FORMAT, Encoder, encode, schemas, signals
from rtmms.record.records import BINARY, COLUMNS
from rtmms.record.ring import Ring

CHUNK = 0x06
"""Opcode of MCAP's chunk record."""


class WholeWrites:
    """Stream to which MCAP records are written, whole records in each call; they are collected until `commit`.

    A commit writes as many of them as the disk accepts. A record that does not fit leaves no trace in the file, and
    waits for the next commit.

    Parameters
    ----------
    descriptor : int
        Descriptor of the file.

    Attributes
    ----------
    size : int
        Bytes in the file.
    waiting : int
        Bytes that are not in the file yet.
    chunk_end : int
        End of the last chunk; its messages can be read once it is in the file, with or without its index records.
    fault : str
        Error of the last commit; empty for none.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.size, self.waiting, self.fault = descriptor, 0, 0, ""
        self.chunk_end = 0
        self._records: deque[bytes] = deque()

    def write(self, data: bytes) -> int:
        """Collect a record.

        Parameters
        ----------
        data : bytes
            The record.

        Returns
        -------
        int
            Its bytes.
        """
        if data:
            self._records.append(bytes(data))
            self.waiting += len(data)
            if data[0] == CHUNK:
                self.chunk_end = self.tell()
        return len(data)

    def tell(self) -> int:
        """Return the place of the next byte.

        Returns
        -------
        int
            The place.
        """
        return self.size + self.waiting

    def flush(self) -> None:
        """Do nothing, because `commit` decides."""

    def commit(self) -> bool:
        """Write the collected records to the disk.

        Returns
        -------
        bool
            False, with `fault` set, if the disk does not accept all of them.
        """
        self.fault = ""
        while self._records:
            record, done = memoryview(self._records[0]), 0
            try:
                while done < len(record):
                    done += os.pwrite(self.descriptor, record[done:], self.size + done)
            except OSError as error:
                self.fault = error.strerror or str(error)
                with contextlib.suppress(OSError):
                    os.ftruncate(self.descriptor, self.size)  # remove the incomplete record
                return False
            self._records.popleft()
            self.size += done
            self.waiting -= done
        return True


_HEAD = struct.Struct("<7QHH")
_OFFSET = struct.Struct("<HQ")
_FIELDS = (
    "message_start_time", "message_end_time", "chunk_start_offset", "chunk_length", "message_index_length",
    "compressed_size", "uncompressed_size",
)  # fmt: skip


class CompactIndexes:
    """Replacement of a list of chunk indexes, which are stored as bytes and returned in order."""

    def __init__(self) -> None:
        self._packed = bytearray()
        self._count = 0

    def append(self, index: Any) -> None:
        """Store a ChunkIndex.

        Parameters
        ----------
        index : Any
            The index.
        """
        compression, offsets = index.compression.encode(), index.message_index_offsets
        self._packed += _HEAD.pack(*(getattr(index, field) for field in _FIELDS), len(offsets), len(compression))
        self._packed += compression
        for item in offsets.items():
            self._packed += _OFFSET.pack(*item)
        self._count += 1

    def __len__(self) -> int:
        """Return the number of indexes."""
        return self._count

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the indexes."""
        from mcap.records import ChunkIndex

        at = 0
        for _ in range(self._count):
            *values, count, length = _HEAD.unpack_from(self._packed, at)
            at += _HEAD.size
            compression = self._packed[at : at + length].decode()
            at += length
            end = at + count * _OFFSET.size
            offsets = dict(_OFFSET.iter_unpack(self._packed[at:end]))
            at = end
            yield ChunkIndex(
                compression=compression, message_index_offsets=offsets, **dict(zip(_FIELDS, values, strict=True))
            )


def compact_index(writer: Any) -> bool:
    """Make an mcap Writer store its chunk indexes compactly.

    Parameters
    ----------
    writer : Any
        The writer.

    Returns
    -------
    bool
        False if the library is of another version than expected.
    """
    name = "_Writer__chunk_indices"
    if getattr(writer, name, None) != []:
        return False
    setattr(writer, name, CompactIndexes())
    return True


CHECK_S = 0.02
COMMIT_S = 0.2
CHUNK_BYTES = 1 << 20
MAX_WAITING_BYTES = 1 << 22
ROWS_AT_ONCE = 256
GIVE_UP_S = 2.0
NICE = 10
MOVED = 3
READY = 0
"""Note of the writer in the ring: the file is open."""
WRITTEN = 1
"""Note of the writer in the ring: number of written rows."""
FULL = 2
"""Note of the writer in the ring: 1 while the disk accepts no data."""


class Log:
    """MCAP file: the origin, then messages, then the end.

    Parameters
    ----------
    stream : WholeWrites
        Stream to the file.
    origin : dict[str, Any]
        Origin of the run.
    """

    def __init__(self, stream: WholeWrites, origin: dict[str, Any]) -> None:
        from mcap.writer import CompressionType, Writer

        self.stream, self.dt = stream, float(origin["dt"])
        actuators, outputs = signals(origin["actuators"]), signals(origin["outputs"])
        self.encoder = Encoder(self.dt, actuators, outputs)
        self.columns = ColumnWriter(actuators, outputs)
        # a chunk ends with a row, so the writer determines its size
        self.mcap: Any = Writer(stream, chunk_size=1 << 40, compression=CompressionType.ZSTD)  # type: ignore[arg-type]
        compact_index(self.mcap)
        self.mcap.start(library=f"rtmms {origin['versions']['rtmms']}")
        metadata = {key: str(origin[key]) for key in ("robot", "mode", "dt", "seed", "started", "command_line")}
        self.mcap.add_metadata("rtmms", {"format": FORMAT, **metadata, **origin["versions"]})
        self.mcap.add_attachment(0, 0, "origin.json", "application/json", encode(origin))
        self.channels = {}
        for topic, schema in schemas(actuators, outputs).items():
            name = f"rtmms.{topic[1:].capitalize()}"
            known = self.mcap.register_schema(name, "jsonschema", json.dumps(schema).encode())
            self.channels[topic] = self.mcap.register_channel(topic, "json", known)
        self.rows, self.committed, self.gathered = 0, 0, 0
        self.base_ns, self.offset_ns, self.log_ns = 0, time.time_ns() - time.monotonic_ns(), 0
        self.last: RowHead | None = None
        self._notes: deque[dict[str, Any]] = deque()
        self._marks: deque[tuple[int, int]] = deque()  # end of a chunk, and number of rows up to there

    def add(self, head: RowHead, floats: bytes) -> None:
        """Add a row; its time is the start's wall time, plus simulated time from there on.

        Parameters
        ----------
        head : RowHead
            Its whole numbers.
        floats : bytes
            Its command and outputs, 8 bytes a number.
        """
        self._write_notes(head.wall_ns)
        if head.kind == START:
            self.base_ns = max(head.wall_ns + self.offset_ns, self.log_ns + 1) - self._simulated_ns(head.step)
        before = 0 if self.last is None else self.last.dropped
        if head.dropped > before:
            self._add("/event", head.step, head.wall_ns,
                      self.encoder.event(head.step, "dropped", dropped=head.dropped - before))  # fmt: skip
        if self.last is not None and head.kind != START and head.altered > self.last.altered:
            self._add("/event", head.step, head.wall_ns, self.encoder.event(head.step, "altered"))
        for topic, message in self.encoder.messages(head, floats):
            self._add(topic, head.step + (topic == "/state" and head.kind != START), head.wall_ns, message)
        if self.last is None and head.altered:  # a request came while the run waited for its peers
            self._add("/event", head.step, head.wall_ns, self.encoder.event(head.step, "altered"))
        if head.kind == START:
            self.columns.start()
        else:
            self.columns.add(head, floats)
        if self.columns.is_full:
            self._add_columns()
        self.last = head
        self.rows += 1
        if self.gathered >= CHUNK_BYTES:  # of rows of any size: readers refuse long chunks
            self._end_chunk()

    def _end_chunk(self) -> None:
        self.mcap.flush()
        self.gathered = 0
        self._marks.append((self.stream.chunk_end, self.rows))

    def _add_columns(self, last: bool = False) -> None:
        self.mcap.add_attachment(0, 0, COLUMNS, BINARY, self.columns.take(last))

    def note(self, note: dict[str, Any]) -> None:
        """Add an event with values, such as set-points at the end of a step; its place is after `after` rows.

        Parameters
        ----------
        note : dict[str, Any]
            The event.
        """
        self._notes.append(note)

    def _write_notes(self, wall_ns: int) -> None:
        """Write the notes with their place here."""
        while self._notes and self._notes[0]["after"] <= self.rows:
            note = self._notes.popleft()
            step = note["step"]
            self._add("/event", step, wall_ns, self.encoder.event(step, note["event"], values=note["values"]))

    def _add(self, topic: str, step: int, wall_ns: int, message: bytes) -> None:
        self.log_ns = max(self.log_ns, self.base_ns + self._simulated_ns(step))
        self.gathered += len(message)
        if topic == "/event":
            self.columns.add_event(message)
        self.mcap.add_message(self.channels[topic], self.log_ns, message, wall_ns + self.offset_ns, step & 0xFFFFFFFF)

    def _simulated_ns(self, step: int) -> int:
        return round(step * self.dt * 1e9)

    @property
    def unwritten(self) -> bool:
        """Whether rows, or the index records of a written chunk, are not on the disk yet."""
        return self.rows > self.committed or self.stream.waiting > 0

    def commit(self, *, partly: bool = False) -> bool:
        """Write the rows so far to the disk, as a chunk of their own.

        Parameters
        ----------
        partly : bool, default False
            Write complete chunks only.

        Returns
        -------
        bool
            Whether the disk accepted all of them.
        """
        if self.gathered and not partly:
            self._end_chunk()
        whole = self.stream.commit()
        while self._marks and self._marks[0][0] <= self.stream.size:
            self.committed = self._marks.popleft()[1]
        return whole

    def finish(self, end: dict[str, Any]) -> None:
        """Write the times of the last step, the end and the index.

        Parameters
        ----------
        end : dict[str, Any]
            Contents of end.json, and the state.
        """
        if self.last is not None:
            self._write_notes(self.last.wall_ns)
        if self.last is not None and "timed" in end:
            head = self.last._replace(timed=end["timed"], **end["times"])
            self._add("/timing", head.timed, head.wall_ns, encode(self.encoder.timing(head)))
        self.mcap.flush()
        self._add_columns(last=True)
        state = end.pop("state", None)
        metadata = {key: str(end.get(key, "")) for key in ("ended", "message", "steps", "dropped")}
        self.mcap.add_metadata("end", metadata)
        self.mcap.add_attachment(0, 0, "end.json", "application/json", encode(end))
        if state is not None:
            self.mcap.add_attachment(0, 0, "state.bin", "application/octet-stream", base64.b64decode(state))
        self.mcap.finish()


class LineReader:
    """Lines from the run, without waiting for them.

    Parameters
    ----------
    stream : BinaryIO
        Standard input.

    Attributes
    ----------
    gone : bool
        Whether the run closed its end or died.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._descriptor, self._text, self.gone = stream.fileno(), bytearray(), False
        self._parent = os.getppid()

    def line(self, wait_s: float) -> dict[str, Any] | None:
        """Return the next object that comes within a wait.

        Parameters
        ----------
        wait_s : float
            Longest wait, s.

        Returns
        -------
        dict[str, Any] | None
            None if there is none.
        """
        if b"\n" not in self._text:
            self._read(wait_s)
        whole, newline, remaining = bytes(self._text).partition(b"\n")
        if not newline:
            return None
        self._text = bytearray(remaining)
        content: dict[str, Any] = json.loads(whole)
        return content

    def _read(self, wait_s: float) -> None:
        if self.gone:
            time.sleep(wait_s)
            return
        ready, _, _ = select.select([self._descriptor], [], [], wait_s)
        if ready:
            text = os.read(self._descriptor, 1 << 16)
            self._text += text
            self.gone = not text
        elif os.getppid() != self._parent:
            self.gone = True


def drain(ring: Ring, log: Log, ear: LineReader) -> dict[str, Any]:
    """Write rows until the run has ended.

    Set-points arrive before their row is settled, so that they are known for each settled row.

    Parameters
    ----------
    ring : Ring
        The ring.
    log : Log
        The file.
    ear : LineReader
        Lines from the run.

    Returns
    -------
    dict[str, Any]
        The reported end; {} if the run died.
    """
    end: dict[str, Any] | None = None
    full_since, committed_s, end_row = 0.0, time.monotonic(), ring.settled
    while True:
        behind = not full_since and ring.settled - ring.tail > ROWS_AT_ONCE
        message = ear.line(0.0 if behind else CHECK_S)
        while message is not None:
            if "after" in message:
                log.note(message)
            else:
                end = message
            message = ear.line(0.0)
        over = end is not None or ear.gone
        if log.stream.waiting + log.gathered < MAX_WAITING_BYTES:
            for row in ring.take(end_row, ROWS_AT_ONCE):
                log.add(RowHead(*row.ints), row.floats)
        end_row, now = ring.head if over else ring.settled, time.monotonic()
        due = now - committed_s >= COMMIT_S or over
        if (due or (log.stream.waiting and not full_since)) and log.unwritten:
            committed_s = now if due else committed_s
            full_since = 0.0 if log.commit(partly=not due) else full_since or now
            ring.note(WRITTEN, log.committed)
            ring.note(FULL, int(full_since > 0.0))
        if over and full_since and now - full_since > GIVE_UP_S:
            break
        if over and ring.tail == ring.head and not log.unwritten:
            break
    return end or {}


def main(arguments: list[str]) -> int:
    """Write the log.

    Parameters
    ----------
    arguments : list[str]
        Descriptor of the ring, and the file.

    Returns
    -------
    int
        Exit status: 0 if the log is whole, 1 if the disk did not accept all of it, MOVED if it is not where it was
        begun.
    """
    _outlive()
    ring, path = Ring.attach(int(arguments[0])), arguments[1]
    ear = LineReader(sys.stdin.buffer)
    origin = None
    while origin is None:
        origin = ear.line(1.0)
        if ear.gone:
            return 1
    try:
        place = Place(Path(path))
    except OSError as error:
        print_text(f"--log {path}: {error.strerror}", err=True)
        return 2
    stream = WholeWrites(place.descriptor)
    log = Log(stream, origin)
    if not log.commit():
        place.settle(keep=False)
        print_text(f"--log {path}: {stream.fault}", err=True)
        return 2
    ring.note(READY, 1)
    end = drain(ring, log, ear)
    lost = ring.dropped + log.rows - log.committed + ring.head - ring.tail
    log.finish({"ended": "killed", "message": "the run was ended from outside", **end, "dropped": lost})
    whole = stream.commit()
    if not place.settle(keep=log.rows > 0):
        return MOVED
    return 0 if whole and place.synced else 1


def _outlive() -> None:
    """Ignore the run's signals.

    The writer ends after the run, when all that it passed on is written.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.nice(NICE)  # a log can wait, but a controller on the same core cannot


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
