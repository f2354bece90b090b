"""Where a log is written: one writer each, nothing lost that stood there, nothing called whole that is not there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rtmms.base.errors import ModelError
from rtmms.record.log import open_log
from rtmms.record.log_location import Place, part_of, rescue
from rtmms.record.recorder import Recorder
from rtmms.record.writer import WRITTEN
from tests.cli.shell import finish, rtmms, start
from tests.pendulum import Pendulum
from tests.record.runs import loop_of, record, recorder

RUN = ("run", "pendulum", "--mode", "free", "--json", "--quiet")
STEPS = 40


@pytest.mark.full
def test_a_second_writer_is_refused_and_hurts_nothing(tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    first = recorder(path, plant)
    loop = loop_of(plant, first, STEPS)
    try:
        second = Recorder(path, first.origin, period_s=None, patient=False)
        with closing(second), pytest.raises(ModelError, match=r"run\.mcap: another run writes this log; give each"):
            second.await_ready()
        loop.run()
        report = first.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        first.close()
    assert report == {"file": str(path), "rows": STEPS + 1, "dropped": 0, "whole": True}
    assert sum(1 for _ in open_log(path).rows()) == STEPS + 1
    assert not part_of(path).exists()


@pytest.mark.full
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_log_that_was_taken_away_is_not_called_whole(tmp_path: Path, how: str) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, STEPS)
    try:
        loop.run()
        part_of(path).unlink()
        if how == "replaced":
            part_of(path).write_bytes(b"another's")
        report = stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    assert (report["whole"], report["moved"]) == (False, True)
    assert not path.exists()
    if how == "replaced":
        assert part_of(path).read_bytes() == b"another's"


@pytest.mark.full
def test_the_log_before_stands_until_the_new_one_is_at_its_end(tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    record(path, 5)
    before = path.read_bytes()
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, STEPS)
    try:
        loop.run()
        assert path.read_bytes() == before
        stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    assert sum(1 for _ in open_log(path).rows()) == STEPS + 1


@pytest.mark.full
def test_a_run_that_never_began_leaves_the_log_before(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    record(path, 5)
    before = path.read_bytes()
    recorder(path, Pendulum()).close()
    assert path.read_bytes() == before
    assert not part_of(path).exists()


@pytest.mark.full
def test_what_two_killed_processes_leave_is_named_and_can_be_read(tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, None)
    loop._begin()
    while stored.ring.note(WRITTEN) < 10:
        loop.advance(loop.step)
        time.sleep(0.0005)
    stored.process.kill()
    stored.close()
    with pytest.raises(
        ModelError, match=r"run\.mcap: there is no such file; .*run\.mcap\.part exists: a run is still writing it"
    ):
        open_log(path)
    assert sum(1 for _ in open_log(part_of(path)).rows()) > 1
    rescue(path)
    assert sum(1 for _ in open_log(path).rows()) > 1


@pytest.mark.full
def test_a_writer_takes_over_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    part_of(path).write_bytes(b"what was left")
    assert record(path, STEPS)["whole"] is True
    assert sum(1 for _ in open_log(path).rows()) == STEPS + 1


def test_a_pipe_is_neither_written_nor_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="expected a file or a new name"):
        Place(path)
    result = rtmms(tmp_path, "log", "info", "pipe")
    assert result.status == 2
    assert "pipe: is not a file" in result.err


@pytest.mark.full
def test_a_log_that_is_deleted_within_a_run_is_reported(tmp_path: Path) -> None:
    run = start(tmp_path, *RUN, "--mode", "realtime", "--duration", "10", "--log", "run.mcap")
    part = part_of(tmp_path / "run.mcap")
    while run.poll() is None and not (part.exists() and part.stat().st_size > 2000):
        time.sleep(0.01)
    part.unlink()
    result = finish(run)
    assert (result.status, result.report["ended"]) == (1, "duration")
    assert result.report["log"]["whole"] is False
    assert "run.mcap: was moved, deleted or replaced while the run wrote it" in result.err


@pytest.mark.skipif(os.name != "posix", reason="links")
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_what_others_planted_in_its_place_is_not_written_through(tmp_path: Path, link: Callable[..., None]) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link(victim, part_of(tmp_path / "run.mcap"))
    with pytest.raises(OSError, match=r"run\.mcap\.part (is a link|has other names).*remove it"):
        Place(tmp_path / "run.mcap")
    assert victim.read_text() == "precious"
