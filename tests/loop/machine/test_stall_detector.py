"""The stall detector: its memory, and its processes where SCHED_FIFO is permitted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from rtmms.base.errors import RtmmsError
from rtmms.loop import stall_detector as module
from rtmms.loop.machine import may_raise
from rtmms.loop.stall_detector import ROWS, StallDetector, Stalls, period_ns
from tests.wire.bench import PATIENCE_S

permitted = pytest.mark.skipif(not may_raise(90), reason="SCHED_FIFO is not permitted here")


def test_stalls_pass_from_one_mapping_to_another_in_the_order_of_time() -> None:
    here = Stalls([0, 3])
    there = Stalls([0, 3], os.dup(here.descriptor))
    there.add(1, 500, 70)
    there.add(0, 100, 80)
    assert here.take() == [(100, 180, 0), (500, 570, 3)]
    assert here.take() == []
    there.add(1, 900, 60)
    assert here.take() == [(900, 960, 3)]
    there.close()
    here.close()
    here.close()


def test_stalls_that_are_not_read_in_time_are_counted_as_lost() -> None:
    stalls = Stalls([0])
    for k in range(ROWS + 10):
        stalls.add(0, k, 1)
    result = stalls.take()
    assert result[-1] == (ROWS + 9, ROWS + 10, 0)
    assert len(result) + stalls.lost == ROWS + 10
    stalls.close()


def test_all_have_looked_when_the_last_has() -> None:
    stalls = Stalls([0, 1])
    stalls.beat(0, 100)
    assert stalls.looked_ns() == 0
    stalls.beat(1, 50)
    assert (stalls.looked_ns(), stalls.beats()) == (50, 2)
    stalls.close()


@pytest.mark.parametrize(
    ("deadline_us", "step_us", "expected_us"),
    [(500, 1000, 250), (750, 999, 333), (160, 200, 200), (250, 500, 250), (450, 500, 250), (20_000, 100_000, 1000),
     (9_000, 10_000, 1000), (90, 100, 200), (300, 332, 166), (230, 256, 256)],
)  # fmt: skip
def test_it_looks_about_twice_in_a_deadline_in_step_with_the_loop(
    deadline_us: int, step_us: int, expected_us: int
) -> None:
    assert period_ns(deadline_us * 1000, step_us * 1000) == expected_us * 1000


def test_without_a_loop_its_period_fits_no_round_one() -> None:
    for deadline_us in (160, 500, 900):
        assert period_ns(deadline_us * 1000) % 1000 != 0


@pytest.mark.full
@permitted
def test_it_looks_where_it_is_asked_to_from_the_instant_of_a_step() -> None:
    """Steps of 100 ms from some instant on: looks fall 0.5 ms after each whole ms of theirs, as soon as it knows."""
    detector = StallDetector(80, 50_000_000, [min(os.sched_getaffinity(0))], step_ns=100_000_000)
    assert (detector.period_ns, detector.from_step_ns) == (1_000_000, 500_000)
    stalls = detector.stalls
    try:
        assert stalls.await_first(30.0)
        for origin in (time.monotonic_ns() - 12_345_678, time.monotonic_ns() - 98_100_001):
            stalls.look_ns = origin + detector.from_step_ns
            stalls.await_looked(time.monotonic_ns() + 3_000_000, PATIENCE_S)
            result = []
            while len(result) < 50:
                looked = stalls.looked_ns()
                if not result or looked != result[-1]:
                    result.append(looked)
                time.sleep(0.0005)
            after = sorted((looked - origin) % 1_000_000 for looked in result)
            assert 500_000 <= after[len(after) // 4] < 900_000, "a quarter of them is hardly late"
    finally:
        detector.close()


def test_without_permission_it_reports_what_to_do(monkeypatch) -> None:
    monkeypatch.setattr(module, "may_raise", lambda priority: False)
    with pytest.raises(RtmmsError, match=r"SCHED_FIFO 90 is not permitted.*rtprio"):
        StallDetector(80, 500_000)


@pytest.mark.full
@permitted
def test_it_looks_and_sees_a_core_that_is_taken_from_it() -> None:
    """The first process is stopped for 50 ms: as if the machine had."""
    detector = StallDetector(80, 500_000, [min(os.sched_getaffinity(0))])
    try:
        assert detector.stalls.await_first(30.0)
        observed = detector.stalls.beats()
        detector.stalls.await_looked(time.monotonic_ns() + 5_000_000, PATIENCE_S)
        assert detector.stalls.beats() > observed
        detector.stalls.take()
        begin = time.monotonic_ns()
        os.kill(detector.process.pid, signal.SIGSTOP)
        time.sleep(0.05)
        os.kill(detector.process.pid, signal.SIGCONT)
        detector.stalls.await_looked(time.monotonic_ns(), PATIENCE_S)
        result = [end - start for start, end, _ in detector.stalls.take() if end > begin]
        assert max(result) > 40_000_000
    finally:
        detector.close()
        detector.close()


@pytest.mark.full
@permitted
def test_its_processes_end_when_the_run_is_killed() -> None:
    program = (
        "import sys, time\n"
        "from rtmms.loop.stall_detector import StallDetector\n"
        "made = StallDetector(80, 500_000); made.stalls.await_first(30.0)\n"
        "print(made.process.pid, flush=True); time.sleep(60)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    try:
        first = int(run.stdout.readline())
        family = [first, *_children(first)]
    finally:
        run.kill()
        run.communicate()
    assert len(family) == len(os.sched_getaffinity(0))
    until = time.monotonic() + PATIENCE_S
    while any(_alive(pid) for pid in family) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(_alive(pid) for pid in family)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
