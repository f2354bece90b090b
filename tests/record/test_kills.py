"""A run or its writer killed at any moment, a disk that fills, a disk that is slow: what the log still holds."""

from __future__ import annotations

import mmap
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtmms.record.log import Step, open_log
from rtmms.record.recorder import Recorder
from rtmms.record.rerun import rerun
from rtmms.record.writer import CHECK_S, COMMIT_S, WRITTEN
from tests.pendulum import Pendulum
from tests.pendulum import load as load_pendulum
from tests.record.runs import loop_of, recorder

ROOM = 300_000
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rtmms.plant.loading.build_plant", lambda robot, dt, preset, **more: load_pendulum(dt, preset, **more)
    )


def steps_of(path: Path) -> list[int]:
    return [row.step for row in open_log(path).rows() if isinstance(row, Step)]


def test_a_commit_comes_several_times_within_what_may_be_lost() -> None:
    assert 2 * (COMMIT_S + CHECK_S) < 0.5


RUN = """
import mmap, sys, time
from pathlib import Path
from tests.pendulum import Pendulum
from tests.record.runs import loop_of, recorder
plant = Pendulum()
kept = recorder(Path(sys.argv[1]), plant, patient=False)
with open(sys.argv[2], "r+b") as file:
    page = memoryview(mmap.mmap(file.fileno(), 4096)).cast("q")
page[1] = kept.process.pid
loop = loop_of(plant, kept, None)
loop._begin()
while True:
    loop.advance(loop.step)
    page[0] = loop.step
    time.sleep(0.0005)
"""


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_killing_the_run_loses_nothing_that_was_handed_over(tmp_path: Path, seed: int) -> None:
    log, count = tmp_path / "run.mcap", tmp_path / "count"
    count.write_bytes(bytes(4096))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with count.open("r+b") as file:
        page = memoryview(mmap.mmap(file.fileno(), 4096)).cast("q")
    with subprocess.Popen([sys.executable, "-c", RUN, str(log), str(count)], env=environment) as run:
        while page[0] < 3 and run.poll() is None:
            time.sleep(0.01)
        time.sleep(random.Random(seed).uniform(0.0, 0.5))
        run.kill()
    assert run.returncode == -signal.SIGKILL
    finished, writer = page[0], page[1]
    _await_end(writer)
    results = steps_of(log)
    assert results == list(range(len(results)))
    assert finished <= len(results) <= finished + 1
    end = open_log(log).end
    assert end is not None
    assert (end.ended, end.whole, end.state) == ("killed", True, None)
    result = rerun(open_log(log))
    assert (result.steps, result.first, result.unchecked) == (len(results), None, "")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_killing_the_writer_keeps_what_it_had_written_and_the_run_goes_on(tmp_path: Path, seed: int) -> None:
    plant, path = Pendulum(), tmp_path / "run.mcap"
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, 100_000)
    kill_at = time.monotonic() + random.Random(seed).uniform(0.02, 0.6)
    noted, killed = -1, 0
    try:
        loop._begin()
        while loop.step < 100 or noted < 0 or loop.step < killed + 2000:
            loop.advance(loop.step)
            if noted < 0 and time.monotonic() > kill_at and loop.step >= 100:
                stored.process.kill()
                stored.process.wait()
                noted, killed = stored.ring.note(WRITTEN), loop.step
        assert stored.watch() == [f"the writer of {path} ended; later steps are not in the log"]
        assert stored.watch() == []  # reported once
        report = stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    assert (report["rows"], report["whole"]) == (noted, False)
    assert report["dropped"] == loop.step + 1 - noted
    results = steps_of(path)
    assert results == list(range(len(results)))
    assert len(results) >= noted - 1  # the first row is the start
    assert open_log(path).end is None
    result = rerun(open_log(path))
    assert (result.steps, result.first, result.unchecked) == (len(results), None, "")


def limited(path: Path, plant: Pendulum) -> Recorder:
    """A recorder whose writer alone has little room."""
    stored = recorder(path, plant, patient=False)
    resource.prlimit(stored.process.pid, resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
    return stored


@pytest.mark.full
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux's")
def test_a_full_disk_costs_counted_rows_and_no_step(tmp_path: Path) -> None:
    plant, path = Pendulum(), tmp_path / "run.mcap"
    stored = limited(path, plant)
    loop = loop_of(plant, stored, 30_000)
    message: list[str] = []
    try:
        loop._begin()
        while loop.step < 30_000:
            loop.advance(loop.step)
            if loop.step % 100 == 0:
                message += stored.watch()
                time.sleep(0.001)
        report = stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    assert loop.step == 30_000
    assert f"{path}: the disk takes no more; steps are dropped from the log" in message
    assert report["whole"] is False
    assert report["dropped"] > 0
    assert report["rows"] + report["dropped"] == 30_001
    assert path.stat().st_size <= ROOM
    result = steps_of(path)
    assert len(result) == report["rows"] - 1
    assert result == sorted(set(result))
    assert open_log(path).end is None


@pytest.mark.full
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux's")
def test_a_disk_that_has_room_again_takes_the_rest_and_the_gap_is_named(tmp_path: Path) -> None:
    plant, path = Pendulum(), tmp_path / "run.mcap"
    stored = limited(path, plant)
    loop = loop_of(plant, stored, None)
    try:
        loop._begin()
        while stored.ring.dropped < 50:
            loop.advance(loop.step)
        resource.prlimit(stored.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        while stored.ring.room < stored.ring.capacity // 2:
            time.sleep(0.001)
        for _ in range(10):
            loop.advance(loop.step)
        dropped = stored.ring.dropped
        report = stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    assert (report["whole"], report["dropped"], report["rows"]) == (True, dropped, loop.step + 1 - dropped)
    results = steps_of(path)
    assert len(results) == loop.step - dropped
    assert results[-1] == loop.step - 1
    end = open_log(path).end
    assert end is not None
    assert end.dropped == dropped
    gap = next(at for at, step in enumerate(results) if step != at)
    result = rerun(open_log(path))
    assert (result.steps, result.first) == (gap, None)
    assert result.unchecked == f"step {gap} is not in the log, which goes on with step {results[gap]}"


@pytest.mark.full
def test_a_slow_disk_is_waited_for_where_there_is_no_deadline(tmp_path: Path) -> None:
    plant, path = Pendulum(), tmp_path / "run.mcap"
    stored = recorder(path, plant, patient=True)
    loop = loop_of(plant, stored, 5000)
    try:
        os.kill(stored.process.pid, signal.SIGSTOP)
        stopped = True
        loop._begin()
        while loop.step < 5000:
            if stopped and stored.ring.room == 1:  # the next row but one would have to wait
                os.kill(stored.process.pid, signal.SIGCONT)
                stopped = False
            loop.advance(loop.step)
        report = stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    assert report == {"file": str(path), "rows": 5001, "dropped": 0, "whole": True}
    assert steps_of(path) == list(range(5000))


def _await_end(pid: int) -> None:
    """It is not our child: gone when the system no longer knows it, or knows it as ended."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
