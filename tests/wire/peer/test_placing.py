"""A controller on the core of the loop, and off it."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from rtmms.wire.peer import core_affinity as placing

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What this thread computed for, s."""
    now = [0.0]
    monkeypatch.setattr(placing, "thread_time", lambda: now[0])
    return now


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
@pytest.mark.parametrize(
    ("answer_s", "period_s", "may", "moves"),
    [(3e-4, 1e-3, "1", True), (2e-4, 1e-3, "1", False), (3e-4, None, "1", False), (3e-4, 1e-3, "", False)],
)
def test_it_moves_off_where_its_answers_take_long(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, answer_s: float, period_s: float | None, may: str, moves: bool
) -> None:
    monkeypatch.setenv(placing.MAY_MOVE, may)
    try:
        os.sched_setaffinity(0, {CORES[0]})
        item = placing.CoreMove()
        os.sched_setaffinity(0, {CORES[1]})
        item.start(period_s)
        output = []
        for _ in range(3 * placing.ANSWERS):
            clock[0] += answer_s
            output.append(item.look())
        assert os.sched_getaffinity(0) == ({CORES[0]} if moves else {CORES[1]})
        sentences = [sentence for sentence in output if sentence]
        result = f"an answer takes 300 us of a period of 1000: moved to core {CORES[0]}"
        assert sentences == ([result] if moves else [])
    finally:
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError):
                os.sched_setaffinity(int(thread), set(CORES))
