"""What the writer counts as written is what a reader finds, wherever in a commit the disk becomes full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms.loop.log_row import START, STEP, RowHead
from rtmms.record.log import Step, open_log
from rtmms.record.origin import describe
from rtmms.record.recorder import Recorder
from rtmms.record.writer import LineReader, Log, WholeWrites
from tests.pendulum import Pendulum


def _room(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A disk with room for so many bytes."""
    pwrite = os.pwrite

    def limited(descriptor: int, data: memoryview, at: int) -> int:
        if at >= size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(descriptor, data[: size - at], at)

    monkeypatch.setattr("rtmms.record.writer.os.pwrite", limited)


def _begun(path: Path) -> Log:
    run = {"robot": "pendulum", "preset": None, "parameters": {}, "seed": 0, "mode": "free", "rate": 1.0}
    log = Log(WholeWrites(os.open(path, os.O_WRONLY | os.O_CREAT)), describe(Pendulum(), run))
    assert log.commit()
    return log


def _add(log: Log, steps: range) -> None:
    floats = np.zeros(2 + 1 + 1 + 3 + 8).tobytes()
    for step in steps:
        log.add(RowHead(START if step == 0 else STEP, step, 1, 0, *(0,) * 10, -1, *(-1,) * 4), floats)


def test_rows_count_as_written_once_their_chunk_stands_with_or_without_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.mcap"
    log = _begun(path)
    _add(log, range(100))
    log.mcap.flush()
    _room(monkeypatch, log.stream.chunk_end + 1)
    assert not log.commit()
    assert log.committed == 100
    assert log.unwritten  # its index
    assert path.stat().st_size == log.stream.size == log.stream.chunk_end
    assert [row.step for row in open_log(path).rows() if isinstance(row, Step)] == list(range(1, 100))


def test_rows_of_a_chunk_that_does_not_fit_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.mcap"
    log = _begun(path)
    _add(log, range(100))
    assert log.commit()
    _add(log, range(100, 200))
    log.mcap.flush()
    _room(monkeypatch, log.stream.chunk_end - 1)
    assert not log.commit()
    assert log.committed == 100
    assert [row.step for row in open_log(path).rows() if isinstance(row, Step)] == list(range(1, 100))
    monkeypatch.undo()
    assert log.commit()
    assert (log.committed, log.unwritten) == (200, False)


def test_no_chunk_is_longer_than_readers_accept_however_wide_and_many_the_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmms.record.writer.CHUNK_BYTES", 10_000)
    monkeypatch.setattr("rtmms.record.records.MAX_CHUNK_BYTES", 20_000)
    path = tmp_path / "run.mcap"
    log = _begun(path)
    _add(log, range(300))  # no commit between them, as of rows that were waiting
    log.finish({"ended": "duration", "message": "", "steps": 300, "dropped": 0})
    assert log.commit()
    opened = open_log(path)
    assert [row.step for row in opened.rows() if isinstance(row, Step)] == list(range(1, 300))
    assert opened.damage == ()


def test_a_row_that_no_chunk_holds_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmms.record.recorder.MAX_NUMBERS", 10)
    run = {"robot": "pendulum", "preset": None, "parameters": {}, "seed": 0, "mode": "free", "rate": 1.0}
    with pytest.raises(ModelError, match="expected a robot of at most 10 numbers a step, got 15"):
        Recorder(tmp_path / "run.mcap", describe(Pendulum(), run), period_s=None, patient=True)


def test_every_line_is_received_that_came_before_the_pipe_s_end() -> None:
    read, write = os.pipe()
    os.write(write, b'{"a": 1}\n{"a": 2}\n{"a": 3}\n{"cut off')
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        ear = LineReader(stream)
        received = [ear.line(0.0) for _ in range(5)]
        assert ear.gone
    assert received == [{"a": 1}, {"a": 2}, {"a": 3}, None, None]
