"""Rows that compiled code writes: the bytes of Python's, in the same ring, and reports beside them in order."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtmms.base.contract import MISS_WORDS, OUTCOME_WORDS, Applied, MissPolicy, StepOutcome
from rtmms.base.jit import COMPILED
from rtmms.loop.log_row import RowHead
from rtmms.loop.row_kernels import ROW_HEAD
from rtmms.loop.statistics import Statistics
from rtmms.plant.optional_protocols import CompiledOutputs
from rtmms.record.log import Step, open_log
from rtmms.record.recorder import CompiledRows
from rtmms.record.ring import PAGE, Ring
from tests.pendulum import Pendulum
from tests.record.runs import recorder
from tests.wire.bench import PATIENCE_S

compiled = pytest.mark.skipif(not COMPILED, reason="numba's compiler")
ROOT = Path(__file__).resolve().parents[2]


def test_the_words_of_a_row_stand_where_the_layout_has_them() -> None:
    assert ROW_HEAD.names == RowHead._fields
    assert [ROW_HEAD.fields[name][1] for name in RowHead._fields] == [8 * k for k in range(len(RowHead._fields))]
    assert ROW_HEAD.itemsize == 8 * len(RowHead._fields)
    assert [OUTCOME_WORDS[outcome] for outcome in StepOutcome] == ["unclaimed", "applied", "missed", "reused", "stale"]
    assert [MISS_WORDS[policy] for policy in MissPolicy] == ["", "hold", "extrapolate", "home", "abort"]


class Pushing:
    """A ring, and rows into it by compiled code: of numbers in three pieces, of which two lie next to each other."""

    def __init__(self, capacity: int) -> None:
        self.ring = Ring.create(2, 9, capacity)
        self.head, self.numbers, self.more = array("q", bytes(16)), np.zeros(8), np.zeros(4)
        at, beyond = self.numbers.ctypes.data, self.more.ctypes.data
        sources = [(at, 3), (at + 24, 4), (beyond, 2)]
        self.rows = CompiledRows()
        self.outputs = CompiledOutputs(0, (), {})
        self.at = self.rows.bind(self.ring, self.head, sources, self.outputs)

    def push(self, ints: tuple[int, int], numbers: np.ndarray) -> bool:
        from rtmms.loop.row_kernels import push_row

        self.head[:] = array("q", ints)
        self.numbers[:7], self.more[:2] = numbers[:7], numbers[7:]
        return bool(push_row(self.at))


@compiled
def test_a_row_is_the_same_bytes_whoever_writes_it() -> None:
    """In turns into one ring, by Python alone into another, many times around; with room or without."""
    random = np.random.default_rng(3)
    here, there = Pushing(4), Ring.create(2, 9, 4)
    dropped = 0
    for k in range(200):
        ints, numbers = (k - 50, -(1 << 62) + k), random.standard_normal(9)
        numbers[k % 9] = (np.nan, np.inf, -0.0, 5e-324)[k % 4]
        if k % 3:
            fits = here.push(ints, numbers)
            assert here.ring.dropped == dropped
        else:
            fits = here.ring.push(ints, numbers.tobytes())
            dropped = here.ring.dropped
        assert there.push(ints, numbers.tobytes()) is fits
        assert (here.ring.head, here.ring.room) == (there.head, there.room)
        if random.random() < 0.4:
            assert list(here.ring.take(max_rows=2)) == list(there.take(max_rows=2))
        if not k % 7:
            pages = [os.pread(ring.descriptor, 4 * ring.row_bytes, PAGE) for ring in (here.ring, there)]
            assert pages[0] == pages[1]
    assert 0 < here.ring.dropped < there.dropped
    here.ring.close()
    there.close()


PRODUCER = """
import sys
from tests.record.test_compiled_rows import Pushing, np
from rtmms.record.ring import Ring
made = Pushing(16)
made.ring = ring = Ring.attach(int(sys.argv[1]))
made.at = made.rows.bind(ring, made.head, [(made.numbers.ctypes.data, 7), (made.more.ctypes.data, 2)], made.outputs)
full = 0
for n in range(int(sys.argv[2])):
    full += not made.push((n, 2 * n), np.full(9, float(n)))
print(full)
"""


@compiled
@pytest.mark.full
def test_rows_of_compiled_code_in_another_process_are_never_torn() -> None:
    ring, count = Ring.create(2, 9, 16), 8_000
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    used: list[int] = []
    with subprocess.Popen([sys.executable, "-c", PRODUCER, str(ring.descriptor), str(count)], env=environment,
                          pass_fds=(ring.descriptor,), stdout=subprocess.PIPE, text=True) as producer:  # fmt: skip
        while producer.poll() is None or ring.head != ring.tail:
            for row in ring.take():
                n, double = row.ints
                assert double == 2 * n
                assert row.floats == np.full(9, float(n)).tobytes()
                used.append(n)
        assert producer.stdout is not None
        full = int(producer.stdout.read())
    assert producer.returncode == 0
    assert ring.dropped == 0
    assert len(used) + full == count
    assert used == sorted(set(used))
    assert used, "some found room in the ring"
    ring.close()


def loop_of(attribution: Any = None) -> Any:
    exchange = SimpleNamespace(applied=Applied())
    return SimpleNamespace(seed=3, alterations=0, attribution=attribution, statistics=Statistics(),
                           exchange=exchange, step=0, ended="", changes=[])  # fmt: skip


@pytest.mark.full
def test_a_judged_step_is_reported_by_one_row(tmp_path: Path) -> None:
    """It is offered until a row has it, whoever writes that."""
    judged = [(5, 1, -1), (6, 2, -1), (7, -1, 3)]
    attribution: Any = SimpleNamespace(unreported=3)

    def report() -> tuple[int, int, int]:
        attribution.unreported -= 1
        return judged[2 - attribution.unreported]

    attribution.take_judged = report
    plant, stored = Pendulum(), recorder(tmp_path / "run.mcap", Pendulum(), patient=False)
    try:
        stored.bind(loop_of(attribution))
        stored.start(plant.observe())

        def offered(step: int) -> tuple[int, ...]:
            stored.ready(step)
            return tuple(stored._head[-3:])

        assert offered(10) == offered(10) == (5, 1, -1)
        stored.after_step(10, 0.1, plant.observe(), np.zeros(2), Applied())  # it had it
        assert offered(11) == (6, 2, -1)
        stored.ring.push(tuple(stored._head), bytes(8 * stored.ring.floats))  # as compiled code does
        assert offered(12) == (7, -1, 3)
        stored.ring.push(tuple(stored._head), bytes(8 * stored.ring.floats))
        assert offered(13) == (-1, -1, -1)
    finally:
        stored.close()


@pytest.mark.full
@compiled
@pytest.mark.parametrize("expected", [True, False])
def test_the_writer_takes_what_is_settled_or_all_when_the_run_is_gone(expected: bool, tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    stored = recorder(path, plant, patient=False)
    from rtmms.loop.row_kernels import push_row

    numbers = np.zeros(stored.ring.floats)
    names = {signal["name"]: len(np.ravel(plant.observe()[signal["name"]])) for signal in stored.origin["outputs"]}
    places, to = {}, numbers.ctypes.data
    for name, count in names.items():
        places[name] = (to, count)
        to += 8 * count
    try:
        stored.bind(loop_of())
        stored.start(plant.observe())
        at = stored.row_memory((numbers.ctypes.data, len(plant.actuators)), CompiledOutputs(0, (), places))
        assert at
        stored.ready(0)
        for step in range(3):
            stored._head[RowHead._fields.index("step")] = step
            assert push_row(at)
        until = time.monotonic() + PATIENCE_S
        while stored.ring.tail < 1 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)
        assert (stored.ring.tail, stored.ring.head, stored.ring.settled) == (1, 4, 1)
        if expected:
            stored.note_set_points(2, {"angle_deg": 1.0})
            assert stored.ring.settled == 1
            stored.watch()
            assert stored.ring.settled == 4
            assert stored.finish({"ended": "duration", "message": ""}, None)["rows"] == 4
        else:
            assert stored.process.stdin is not None
            stored.process.stdin.close()
            assert stored.process.wait(10.0) == 0
    finally:
        stored.close()
    rows = [(row.step, row.set_points) for row in open_log(path).rows() if isinstance(row, Step)]
    assert rows == [(0, None), (1, None), (2, {"angle_deg": 1.0} if expected else None)]
