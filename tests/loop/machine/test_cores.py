"""Which core does what, and the order of the real-time set-up."""

from __future__ import annotations

import os
import sys

import pytest

from rtmms.base.errors import ModelError
from rtmms.loop import machine as memory
from rtmms.loop import machine as scheduling
from rtmms.loop.machine import CoreClaim, Cores, allowed_cores, choose, parse_affinity, pin, threads

linux = pytest.mark.skipif(sys.platform != "linux", reason="affinity")


@pytest.mark.parametrize(
    ("text", "cores", "permitted", "expected"),
    [
        ("auto", [0, 1, 2], True, Cores(2, (2,), (0, 1))),
        ("auto", [0, 1, 2], False, Cores()),  # an ordinary process shares: it must be free to move
        ("auto", [3], True, Cores()),
        ("auto", [], True, Cores()),
        ("off", [0, 1], True, Cores()),
        ("0", [0, 1], True, Cores(0, (0,), (1,))),
        ("0", [0], False, Cores(0, (0,), (0,))),
        ("1:0", [0, 1], True, Cores(1, (0,), (0,))),
        ("0:2,1,2", [0, 1, 2], True, Cores(0, (1, 2), (1, 2))),
    ],
)
def test_who_goes_where(text: str, cores: list[int], permitted: bool, expected: Cores) -> None:
    assert choose(parse_affinity(text, cores), cores, permitted) == expected


@linux
def test_plants_of_one_machine_agree_on_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second takes another core, the third shares one; a plant that ends gives its core back."""
    monkeypatch.setattr("rtmms.loop.machine.NAME", f"rtmms-test-{os.getpid()}")
    first, second, third = CoreClaim(), CoreClaim(), CoreClaim()
    used = [choose("auto", [0, 1], True, entry.take).loop for entry in (first, second, third)]
    assert used == [1, 0, 1]
    assert not third.take(1)
    first.close()
    assert third.take(1)
    for item in (second, third):
        item.close()


@linux
def test_a_core_that_is_shared_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmms.loop.machine.NAME", f"rtmms-test-{os.getpid()}")
    other, before = CoreClaim(), allowed_cores()
    assert other.take(before[-1])
    ready = scheduling.Readiness(asked=None, affinity=before, allowed=before)
    try:
        scheduling._affinity(ready, Cores(before[-1], (before[-1],), before[-1:]))
        assert [text.partition(":")[0] for text in ready.failed] == [
            f"core {before[-1]} is shared with another plant that keeps time"
        ]
    finally:
        os.sched_setaffinity(0, before)
        other.close()


@linux
def test_a_plant_that_has_one_core_alone_reports_that_it_is_another_plants(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by taskset: nothing is to be chosen, and nothing is pinned."""
    monkeypatch.setattr("rtmms.loop.machine.NAME", f"rtmms-test-{os.getpid()}")
    other, core = CoreClaim(), allowed_cores()[-1]
    assert other.take(core)
    ready = scheduling.Readiness(asked=80, affinity=[core], allowed=[core])
    scheduling._affinity(ready, Cores(), timed=False)  # an ordinary process takes no core from another
    assert ready.failed == []
    scheduling._affinity(ready, Cores(), timed=True)
    assert [text.partition(":")[0] for text in ready.failed] == [
        f"core {core} is shared with another plant that keeps time"
    ]
    other.close()
    ready.failed.clear()
    scheduling._affinity(ready, Cores(), timed=True)
    assert ready.failed == []
    assert not other.take(core)  # it is ours now
    ready.claim.close()


@pytest.mark.parametrize(
    ("text", "output"),
    [("on", "expected auto, off, CORE"), ("", "got ''"), ("-1", "expected auto"), ("1:", "expected auto"),
     ("0,1", "expected auto"), ("7", "core 7 is not available to this process; expected cores among \\[0, 1\\]"),
     ("0:9", "core 9 is not available")],
)  # fmt: skip
def test_what_is_no_affinity_is_refused(text: str, output: str) -> None:
    with pytest.raises(ModelError, match=output):
        parse_affinity(text, [0, 1])


@linux
def test_all_threads_of_a_process_are_pinned_and_one_that_has_ended_is_passed_over() -> None:
    before = allowed_cores()
    try:
        assert pin(os.getpid(), before[-1:]) == ""
        assert all(os.sched_getaffinity(thread) == {before[-1]} for thread in threads(os.getpid()))
    finally:
        pin(os.getpid(), before)
    assert pin(1 << 22, before) == ""
    assert pin(os.getpid(), ()) == ""


@linux
def test_the_parts_come_in_their_order_and_are_taken_back(monkeypatch) -> None:
    """All of it granted, none of it done: what is asked of the system, in which order."""
    asked: list[str] = []
    monkeypatch.setattr(scheduling, "may_raise", lambda priority: True)
    monkeypatch.setattr(scheduling, "allowed_cores", lambda: [0, 1])
    monkeypatch.setattr(scheduling.CoreClaim, "take", lambda *_: True)  # other runs may hold cores
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: asked.append(f"cores {sorted(cores)}"))
    monkeypatch.setattr(scheduling, "lock", lambda early: (asked.append("lock"), (True, ""))[1])
    monkeypatch.setattr(scheduling, "unlock", lambda: asked.append("unlock"))
    monkeypatch.setattr(scheduling, "_timer_slack", lambda ready, libc: asked.append("slack"))
    monkeypatch.setattr(scheduling, "_dma_latency", lambda ready: asked.append("power"))
    monkeypatch.setattr(scheduling, "prefault", lambda: asked.append("prefault") or [])
    monkeypatch.setattr(scheduling.gc, "collect", lambda: asked.append("collect"))
    monkeypatch.setattr(scheduling.gc, "freeze", lambda: asked.append("freeze"))
    monkeypatch.setattr(os, "sched_setscheduler", lambda pid, policy, param: asked.append(f"fifo {policy & 1}"))
    ready = scheduling.prepare(80)
    assert asked == ["cores [1]", "lock", "slack", "power"]
    scheduling.finish(ready)
    assert asked[4:] == ["prefault", "collect", "freeze", "fifo 1"]
    assert ready.done == ["core 1", "memory locked", "garbage collected", "SCHED_FIFO 80"]
    assert ready.report()["affinity"] == [1]
    ready.close()
    assert asked[8:] == ["unlock", "fifo 0", "cores [0, 1]"]


@linux
def test_nothing_is_permitted_and_nothing_is_fatal(monkeypatch) -> None:
    """As for an ordinary user: each part that fails states what to do."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(scheduling, "lock", lambda early: (False, "" if early else "memory lock: no; raise memlock"))
    ready = scheduling.prepare(80)
    scheduling.finish(ready)
    assert (ready.scheduler, ready.priority, ready.memory_locked) == ("SCHED_OTHER", 0, False)
    assert [text.partition(":")[0] for text in ready.failed] == ["power states", "memory lock", "SCHED_FIFO 80"]
    assert all(";" in text for text in ready.failed)
    assert ready.affinity == allowed_cores()
    ready.close()


def test_off_leaves_the_machine_as_it_is(monkeypatch) -> None:
    for name in ("lock", "prefault", "_affinity", "_timer_slack", "_dma_latency", "_scheduler"):
        monkeypatch.setattr(scheduling, name, lambda *_: pytest.fail("something was set up"))
    ready = scheduling.prepare(None)
    scheduling.finish(ready)
    assert ready.done == ready.failed == []
    ready.close()


@linux
def test_room_is_kept_in_each_arena() -> None:
    stored = memory.prefault()
    assert len(stored) * memory._KEPT_STRIDE >= memory._OBJECTS
    assert memory._KEPT_STRIDE * memory._OBJECT_BYTES < 1 << 18  # an arena holds more than lies between two of them
