"""Steps without a deadline wait for the writer, report it, and not for ever."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtmms.record import recorder
from rtmms.record import recorder as patience
from rtmms.record.log import open_log
from rtmms.record.recorder import RingWait
from tests.pendulum import Pendulum
from tests.record import runs


class Full:
    """A ring that nobody empties; `room` may be given back."""

    def __init__(self) -> None:
        self.room, self.tail, self.full = 0, 7, 0

    def note(self, place: int) -> int:
        return self.full


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> tuple[Full, RingWait, list[str]]:
    monkeypatch.setattr(patience, "STALL_REPORT_S", 0.02)
    monkeypatch.setattr(patience, "MAX_HOPELESS_STALL_S", 0.04)
    monkeypatch.setattr(patience, "MAX_STALL_S", 0.1)
    ring, result = Full(), list[str]()
    alive: Any = SimpleNamespace(pid=os.getpid(), poll=lambda: None)
    built = RingWait(ring, alive, lambda: False)  # type: ignore[arg-type]
    built.report = result.append
    return ring, built, result


def test_a_writer_that_hangs_is_reported_once_and_given_up(waiting: tuple[Full, RingWait, list[str]]) -> None:
    ring, built, result = waiting
    built.wait()
    assert result == [
        "the recorder has written nothing for 0.02 s: the run waits for it",
        "the recorder has written nothing for 0.1 s: the run goes on, and steps are dropped from the log",
    ]
    built.report = lambda sentence: pytest.fail("it waited again for one that it had given up")
    built.wait()
    built.report = result.append
    ring.tail += 1  # a row has been taken: it is waited for again
    built.wait()
    assert len(result) == 4


def test_a_full_disk_and_the_end_of_the_run_are_not_waited_out(
    waiting: tuple[Full, RingWait, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ring, built, _ = waiting
    monkeypatch.setattr(patience, "MAX_STALL_S", 1e9)
    ring.full = 1
    built.wait()
    ring.full, ring.tail, built._ending = 0, 8, lambda: True
    built.wait()
    assert not built.reported


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux reports a stopped process")
def test_a_stopped_writer_is_reported_and_the_run_goes_on_with_counted_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "STALL_REPORT_S", 0.1)
    monkeypatch.setattr(recorder, "STALL_REPORT_S", 0.1)
    monkeypatch.setattr(recorder, "END_S", 0.3)
    plant, path, result = Pendulum(), tmp_path / "run.mcap", list[str]()
    stored = runs.recorder(path, plant, patient=True)
    stored.patience.report = result.append
    loop = runs.loop_of(plant, stored, 2000)
    try:
        os.kill(stored.process.pid, signal.SIGSTOP)
        loop.run()
        assert result == ["the recorder was stopped (SIGSTOP): the run goes on, and steps are dropped from the log"]
        assert stored.watch() == []  # it was reported
        report = stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    assert loop.step == 2000
    assert result[1:] == [f"{path}: the recorder is not at its end; it is waited for, 0.3 s at most"]
    assert (report["whole"], report["rows"] + report["dropped"]) == (False, 2001)
    assert report["dropped"] >= 2001 - stored.ring.capacity
    assert open_log(path).end is None  # what the writer had begun is in its place, without an end
