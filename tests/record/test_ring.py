"""The ring: rows come out as they went in, in order, whole; what does not fit is counted; nothing is kept."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmms.base.errors import RtmmsError
from rtmms.record.ring import PAGE, Ring
from tests.growth import growth

ROOT = Path(__file__).resolve().parents[2]


def floats(number: int, count: int) -> bytes:
    return np.full(count, float(number)).tobytes()


@given(st.lists(st.one_of(st.just("push"), st.integers(0, 9)), max_size=200), st.sampled_from([1, 2, 4, 8]))
@settings(deadline=None)
def test_any_order_of_pushes_and_takes_is_a_bounded_queue(order: list[str | int], capacity: int) -> None:
    ring = Ring.create(2, 3, capacity)
    waiting: list[int] = []
    pushed = dropped = 0
    for action in order:
        if action == "push":
            fits = len(waiting) < capacity
            assert ring.push((pushed, -pushed), floats(pushed, 3)) is fits
            waiting += [pushed] if fits else []
            dropped += not fits
            pushed += 1
        else:
            rows = list(ring.take(max_rows=int(action)))
            expected, waiting = waiting[: int(action)], waiting[int(action) :]
            assert [row.ints for row in rows] == [(n, -n) for n in expected]
            assert [row.floats for row in rows] == [floats(n, 3) for n in expected]
        assert ring.dropped == dropped
        assert ring.room == capacity - len(waiting)
        assert ring.head == pushed - dropped
    ring.close()


def test_a_consumer_may_take_only_what_it_saw_before() -> None:
    ring = Ring.create(1, 1, 8)
    ring.push((1,), bytes(8))
    observed = ring.head
    ring.push((2,), bytes(8))
    assert [row.ints for row in ring.take(observed)] == [(1,)]
    assert [row.ints for row in ring.take(observed)] == []
    assert [row.ints for row in ring.take()] == [(2,)]
    ring.close()


def test_a_row_whose_writing_was_not_finished_is_not_taken() -> None:
    ring = Ring.create(1, 1, 4)
    ring.push((7,), bytes(8))
    ring.push((8,), bytes(8))
    at = PAGE + ring.row_bytes + 8 * 3  # the second row's last stamp
    before = os.pread(ring.descriptor, 8, at)
    os.pwrite(ring.descriptor, struct.pack("=q", -1), at)
    assert [row.ints for row in ring.take()] == [(7,)]
    os.pwrite(ring.descriptor, before, at)
    assert [row.ints for row in ring.take()] == [(8,)]
    ring.close()


PRODUCER = """
import sys
from rtmms.record.ring import Ring
import struct
ring = Ring.attach(int(sys.argv[1]))
pack = struct.Struct("=64d").pack
for n in range(int(sys.argv[2])):
    ring.push((n, 2 * n), pack(*[float(n)] * 64))
"""


@pytest.mark.full
def test_rows_of_another_process_are_never_torn_and_a_slow_consumer_s_drops_are_counted() -> None:
    ring, count = Ring.create(2, 64, 16), 30_000
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", PRODUCER, str(ring.descriptor), str(count)], env=environment,
                          pass_fds=(ring.descriptor,)) as producer:  # fmt: skip
        used: list[int] = []
        while producer.poll() is None or ring.head != ring.tail:
            for row in ring.take():
                n, double = row.ints
                assert double == 2 * n
                assert row.floats == floats(n, 64)
                used.append(n)
    assert producer.returncode == 0
    assert len(used) + ring.dropped == count
    assert ring.head == len(used) > 0
    assert used == sorted(set(used))
    ring.close()


def test_a_push_keeps_no_object() -> None:
    ring = Ring.create(2, 8, 4)
    values = {f"x{k}": np.full(2, float(k)) for k in range(4)}

    def push(rows: int) -> None:
        for n in range(rows):
            ring.push((n, n), b"".join(values.values()))  # type: ignore[arg-type]

    push(100)
    assert growth(lambda: push(1000)) < 20
    ring.close()


def test_a_row_of_another_length_is_refused() -> None:
    ring = Ring.create(1, 2, 4)
    with pytest.raises((IndexError, ValueError)):
        ring.push((1,), bytes(8))
    with pytest.raises(struct.error):
        ring.push((1, 2), bytes(16))
    assert ring.head == 0
    ring.close()


def test_capacity_and_descriptor_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="power of two"):
        Ring.create(1, 1, 3)
    (tmp_path / "other").write_bytes(bytes(8192))
    with (tmp_path / "other").open("rb") as file, pytest.raises(RtmmsError, match="is not a ring"):
        Ring.attach(file.fileno())
