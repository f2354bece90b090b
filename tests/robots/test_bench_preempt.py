"""Who ran in a bad step, from the text of the kernel's tracer."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms_benchmarks.preempt import CONTROLLERS, INTERRUPTS, LOOP, NOBODY, WITNESS, main, read, taken_apart

LOOP_PID, CONTROLLER, WITNESS_PID = 100, 101, 102
NAMES = {LOOP_PID: LOOP, CONTROLLER: CONTROLLERS, WITNESS_PID: CONTROLLERS}


def switch(us: int, to: str, pid: int, prio: int = 120) -> str:
    return (f"          python-7     [001] d..2. 50.{us:06d}: sched_switch: prev_comm=x prev_pid=7 prev_prio=120 "
            f"prev_state=R ==> next_comm={to} next_pid={pid} next_prio={prio}")  # fmt: skip


def event(us: int, what: str) -> str:
    return f"          <idle>-0     [001] d.h.. 50.{us:06d}: {what}: vector=236"


def step(begin_us: int, total_us: float, **causes: str) -> dict[str, Any]:
    bad = {"step": 3, "at_ns": 50_000_000_000 + 1000 * begin_us, "total_us": total_us, "miss": None, "overrun": None}
    return bad | causes


def test_another_thread_is_named() -> None:
    trace = read([switch(900, "python", LOOP_PID), switch(1020, "kdamond.0", 77), switch(1510, "python", CONTROLLER),
                  switch(1520, "python", WITNESS_PID, 9), switch(1525, "python", LOOP_PID)])  # fmt: skip
    found = taken_apart(step(1000, 600.0, miss="peer_late"), trace, NAMES)
    assert found["ran_us"] == pytest.approx({"kdamond.0": 490.0, LOOP: 95.0, CONTROLLERS: 10.0, WITNESS: 5.0})
    assert found["culprit"] == "kdamond.0"
    assert (found["silent"], found["silent_us"]) == ("kdamond.0", pytest.approx(490.0))


def test_interrupts_are_told_from_who_they_interrupt() -> None:
    trace = read([switch(900, "python", LOOP_PID), event(1100, "local_timer_entry"), event(1400, "local_timer_exit")])
    found = taken_apart(step(1000, 600.0, overrun="own_exchange"), trace, NAMES)
    assert found["interrupts_us"] == pytest.approx(300.0)
    assert found["culprit"] == INTERRUPTS


def test_a_timer_that_does_not_ring_is_the_host() -> None:
    trace = read([switch(900, "swapper/1", 0), switch(1450, "python", LOOP_PID), "no line of it", switch(1590, "x", 0)])
    found = taken_apart(step(1000, 600.0, miss="own_exchange"), trace, NAMES)
    assert found["silent"] == NOBODY
    assert found["culprit"] == "the host: no timer rang"


@pytest.mark.parametrize(("cause", "culprit"), [
    ("machine", "the host: the witness stood still as well"), ("own_exchange", "the loop, by itself"),
])  # fmt: skip
def test_what_the_loop_did_by_itself_is_the_hosts_where_the_witness_says_so(cause: str, culprit: str) -> None:
    trace = read([switch(900, "python", LOOP_PID)])
    assert taken_apart(step(1000, 600.0, overrun=cause), trace, NAMES)["culprit"] == culprit


def test_a_step_outside_the_trace_is_told() -> None:
    assert taken_apart(step(1000, 600.0), read([]), NAMES)["culprit"] == "not traced"


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(Exception, match=r"expected 0\.5 to 60, got 600"):
        main(seconds=600.0)
