"""A step's row, written within the compiled step: the same as Python writes, in any mode, whatever the ring does."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rtmms.base.contract import MISS_WORDS
from rtmms.loop.log_row import RowHead
from rtmms.loop.modes import Free, Lockstep
from rtmms.record.log import Step, open_log
from rtmms.record.recorder import Recorder
from rtmms.record.records import records
from rtmms.record.ring import Ring
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.plant.fast_path import WireFastPath
from tests.record.runs import recorder
from tests.wire.plant.compiled_plant import Observed, Run
from tests.wire.plant.test_batch import ANSWERS
from tests.wire.plant.test_fast_path import UNUSUAL, program, realtime

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="Linux, and numba's compiler")
STILL = "values = {n: 0.1 * i for i, n in enumerate(names)}"


class Unknown:
    """An observer as the recorder is, of which compiled code knows nothing."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.steps = recorder, 0
        self.start, self.clear = recorder.start, recorder.clear

    due = property(lambda self: self.recorder.due)

    def after_step(self, *what: Any) -> None:
        self.steps += 1
        self.recorder.after_step(*what)


def counted(stored: Recorder) -> list[int]:
    """The steps whose row Python writes."""
    result: list[int] = []
    after_step = stored.after_step

    def noted(step: int, *remaining: Any) -> None:
        result.append(step)
        after_step(step, *remaining)

    stored.after_step = noted  # type: ignore[method-assign]
    return result


class Recorded(Run):
    """A run with recorders."""

    def __init__(self, *pace: Any, recorders: list[Recorder], **more: Any) -> None:
        self.recorders, self.logs = recorders, []
        try:
            super().__init__(*pace, plant=Observed(), **more)
            for item in recorders:
                if item.process.poll() is None:
                    os.kill(item.process.pid, signal.SIGCONT)
            self.logs = [entry.finish({"ended": "duration", "message": ""}, None) for entry in recorders]
        finally:
            for item in recorders:
                item.close()

    def _watch_codes(self) -> None:
        super()._watch_codes()
        for item in self.recorders:
            item.bind(self.loop)


def rows(ring: Ring) -> list[tuple[Any, ...]]:
    """Without their wall time."""
    return [(RowHead(*row.ints)._replace(wall_ns=0), row.floats) for row in ring.take()]


def stopped(path: Path, **more: Any) -> Recorder:
    """A recorder whose writer takes nothing, so that all stays in its ring."""
    stored = recorder(path, Observed(), **more)
    os.kill(stored.process.pid, signal.SIGSTOP)
    return stored


@pytest.mark.full
@pytest.mark.parametrize("policy", ["hold", "extrapolate", "home"])
def test_a_row_has_the_bits_that_python_gives_it(policy: str, tmp_path: Path) -> None:
    """One run, both ways beside each other; with commands that miss, that are clamped, and some that are not usual."""
    here, there = (stopped(tmp_path / f"{name}.mcap", patient=False) for name in ("here", "there"))
    plain, result = Unknown(there), counted(here)
    what = (
        "if 60 <= k < 66 or k % 31 == 5: continue\nif k % 7 == 0: values[names[1]] = 5.0 * (-1) ** k\n"
        "if k % 11 == 0: values = dict(reversed(values.items()))"
    )

    class Compared(Recorded):
        def __init__(self) -> None:
            super().__init__(realtime, steps=200, program=program(what), recorders=[here, there],
                             observers=[plain, here], miss=policy)  # fmt: skip

        def _watch_codes(self) -> None:
            super()._watch_codes()
            finish = self.loop.pace.finish

            def finished(step: int, now_ns: int) -> int:
                self.both = getattr(self, "both", [[], []])
                for stored, observed in zip((here, there), self.both, strict=True):
                    observed.extend(rows(stored.ring))
                return finish(step, now_ns)

            self.loop.pace.finish = finished  # type: ignore[method-assign]

    run = Compared()
    assert plain.steps == 200
    assert len(result) < 180
    assert len(run.both[0]) == 201
    assert run.both[0] == run.both[1]
    outcomes = [head.outcome for head, _ in run.both[0]]
    assert outcomes.count(2) >= 6
    assert sum(head.clamped for head, _ in run.both[0]) > 10
    assert MISS_WORDS.index(policy) in {head.policy for head, _ in run.both[0] if head.outcome == 2}


def messages(path: Path, without: tuple[str, ...] = ("/timing",)) -> list[tuple[str, bytes]]:
    topics: dict[int, str] = {}
    result = []
    for record in records(path):
        if type(record).__name__ == "Channel":
            topics[record.id] = record.topic
        elif type(record).__name__ == "Message" and topics[record.channel_id] not in without:
            result.append((topics[record.channel_id], bytes(record.data)))
    return result


@pytest.mark.full
@pytest.mark.parametrize("what", [ANSWERS, UNUSUAL["another order"], UNUSUAL["ahead"], UNUSUAL["in two pieces"]])
def test_the_log_of_steps_in_a_row_is_that_of_one_after_the_other(what: str, tmp_path: Path, monkeypatch: Any) -> None:
    def logged(name: str) -> tuple[Run, list[int]]:
        stored = recorder(tmp_path / name, Observed(), patient=True)
        result = counted(stored)
        run = Recorded(Lockstep, steps=600, program=program(what), recorders=[stored], observers=[stored])
        assert run.logs[0] == {"file": str(tmp_path / name), "rows": 601, "dropped": 0, "whole": True}
        return run, result

    compiled, by_python = logged("here.mcap")
    monkeypatch.setattr(WireFastPath, "bind", lambda *_: False)
    _, all_of_them = logged("there.mcap")
    assert all_of_them == list(range(600))
    assert len(by_python) < (400 if what == ANSWERS else 601)
    assert compiled.batches > (300 if what == ANSWERS else -1)
    assert messages(tmp_path / "here.mcap") == messages(tmp_path / "there.mcap")
    timed = [row for row in open_log(tmp_path / "here.mcap").rows() if isinstance(row, Step)]
    assert all(row.times[0] == row.times[3] == -1 and row.times[1] > 0 and row.times[2] > 0 for row in timed)


@pytest.mark.full
def test_free_keeps_every_step_and_waits_for_room(tmp_path: Path) -> None:
    stored = recorder(tmp_path / "run.mcap", Observed(), patient=True)
    result = counted(stored)
    run = Recorded(Free, steps=6000, program=program(STILL), recorders=[stored], observers=[stored])
    assert run.logs[0]["rows"] == 6001
    assert run.logs[0]["dropped"] == 0
    outcomes = [row.outcome for row in open_log(tmp_path / "run.mcap").rows() if isinstance(row, Step)]
    assert len(outcomes) == 6000
    assert outcomes.count("applied") == run.statistics.applied
    assert outcomes.count("reused") == run.statistics.reused
    assert len(result) < 5900


@pytest.mark.full
def test_rows_for_which_there_is_no_room_are_dropped_and_counted(tmp_path: Path) -> None:
    stored = stopped(tmp_path / "run.mcap", patient=False)
    result = counted(stored)
    run = Recorded(Lockstep, steps=800, program=program("pass"), recorders=[stored], observers=[stored])
    assert stored.ring.capacity == 512
    assert run.logs[0]["dropped"] >= 800 + 1 - 512
    assert result[-289:] == list(range(511, 800))


@pytest.mark.full
def test_a_recorder_that_died_costs_no_step(tmp_path: Path) -> None:
    stored = recorder(tmp_path / "run.mcap", Observed(), patient=True)
    stored.process.kill()
    stored.process.wait()
    run = Recorded(Lockstep, steps=800, program=program("pass"), recorders=[stored], observers=[stored])
    assert run.statistics.applied == 800
    assert run.logs[0]["dropped"] + run.logs[0]["rows"] == 801
    assert not run.logs[0]["whole"]


@pytest.mark.full
def test_set_points_of_a_step_stand_before_its_row(tmp_path: Path) -> None:
    """They come when the row may long be in the ring."""

    class Asked:
        due = 49
        start, clear = (lambda *_: None), (lambda *_: None)

        def after_step(self, step: int, *_: Any) -> None:
            stored.note_set_points(step, {"angle_deg": float(step)})
            self.due = step + 50

    stored = recorder(tmp_path / "run.mcap", Observed(), patient=True)
    result = counted(stored)
    Recorded(Lockstep, steps=2000, program=program(STILL), recorders=[stored], observers=[Asked(), stored])
    assert len(result) < 1500
    message = [(row.step, row.set_points) for row in open_log(tmp_path / "run.mcap").rows() if isinstance(row, Step)]
    assert len(message) == 2000
    points = [(step, results) for step, results in message if results]
    assert points == [(k, {"angle_deg": float(k)}) for k in range(49, 2000, 50)]
    steps = [json.loads(data)["step"] for topic, data in messages(tmp_path / "run.mcap") if topic == "/outcome"]
    assert steps == list(range(2000))
