"""A usual step without Python: from the wake-up to the end of the plant's step.

What is usual: each claimant owes a command for this very step, and sends it in a message of its own, of the layout of
its last good one, with finite numbers, or too late. Everything else is handed over as it came, and the general path
(rtmms.wire.plant.step_port, rtmms.loop.stand_in) goes on from there.
"""

from __future__ import annotations

import math
from typing import Any

from numba import carray

from rtmms.addresses import call
from rtmms.jit import kernel
from rtmms.loop.commands import APPLIED, MISSED
from rtmms.loop.kernels import memory as lm
from rtmms.loop.kernels import row_memory as rm
from rtmms.loop.kernels.row import push_row
from rtmms.loop.kernels.stand_in import note_missing, replace_missing, take_complete
from rtmms.wire.kernels import desk as d
from rtmms.wire.kernels.numbers import write_bits
from rtmms.wire.kernels.patterns import HEAD_SEQ, HEAD_STEP, read_command
from rtmms.wire.kernels.system import (
    EAGAIN,
    EINTR,
    IN,
    bytes_at,
    event_descriptor,
    event_flags,
    now_ns,
    numbers_at,
    receive,
    send,
    sleep_until,
    wait,
    wait_for_one,
    words_at,
)

AFTER_DEADLINE = 4
"""Messages that are still looked at when time is up, as by the general path."""
_ANY = 1 << 30
_MOST_SEQ = 1 << 62


@kernel
def take_step(at: int) -> int:
    """One step, by the memory at this address (rtmms.wire.kernels.desk). INTERRUPTED, HANDED or TAKEN."""
    w = carray(words_at(at), (d.DESK,))
    rows = carray(words_at(w[d.ROWS]), (w[d.PEERS], d.ROW))
    scratch = w[d.SCRATCH]
    clear(w, rows)
    begun = now_ns(scratch)
    while begun < w[d.DUE]:
        if sleep_until(w[d.DUE], scratch):
            return lm.INTERRUPTED
        begun = now_ns(scratch)
    w[d.BEGUN] = begun
    usual = publish(w, rows, begun, _ANY)
    w[d.PUBLISHED] = now_ns(scratch)
    if not usual:
        return lm.HANDED
    missing = gather(w, rows)
    if missing < 0:
        return lm.HANDED
    gathered = w[d.GATHERED] = now_ns(scratch)
    if not resolve(w, missing == 0, gathered):
        return lm.HANDED
    if w[d.FUNCTION]:
        n = w[d.ACTUATORS]
        command, given = carray(numbers_at(w[d.NUMBERS]), (n,)), carray(numbers_at(w[d.TO_PLANT]), (n,))
        for i in range(n):
            given[i] = command[i]
        w[d.CALLED] = now_ns(scratch)
        w[d.STATUS] = call(w[d.FUNCTION], w[d.ARGUMENTS])
        w[d.STEPPED] = now_ns(scratch)
        if w[d.ROW_MEMORY] and w[d.STATUS] == 0:
            keep(w, MISSED)
    return lm.TAKEN


@kernel
def clear(w: Any, rows: Any) -> None:
    """Nothing of the step has been done."""
    w[d.COMPLETE] = w[d.CLAMPED] = w[d.STATUS] = w[d.CALLED] = w[d.STEPPED] = w[d.GATHERED] = w[d.KEPT] = 0
    w[d.SEQ_USED] = -1
    for k in range(len(rows)):
        rows[k, d.SENT], rows[k, d.ANSWERED], rows[k, d.GOT], rows[k, d.OUT_OF_RANGE] = 0, 0, d.UNREAD, 0


@kernel
def keep(w: Any, late: int) -> None:
    """The step's row for the recorder: the plant tells its outputs, the head what the step came to.

    late   the outcome of a step whose commands were not all there
    """
    r = carray(words_at(w[d.ROW_MEMORY]), (rm.WORDS,))
    head = carray(words_at(r[rm.HEAD]), (r[rm.N_HEAD],))
    call(r[rm.ACCOUNT], r[rm.ARGUMENTS])
    head[rm.H_STEP], head[rm.H_OUTCOME] = w[d.STEP], APPLIED if w[d.COMPLETE] else late
    head[rm.H_POLICY] = carray(words_at(w[d.WORDS]), (lm.WORDS,))[lm.STOOD_IN]
    if w[d.SEQ_USED] >= 0:
        head[rm.H_SEQ], head[rm.H_MEANT_FOR] = w[d.SEQ_USED], w[d.STEP_USED]
        head[rm.H_LATENESS_NS], head[rm.H_CLAMPED] = w[d.LATENESS], w[d.CLAMPED]
    head[rm.H_WALL_NS] = now_ns(w[d.SCRATCH])
    w[d.KEPT] = push_row(w[d.ROW_MEMORY])


@kernel
def publish(w: Any, rows: Any, begun: int, most: int) -> bool:
    """The state to each peer that owes no more than so many answers, with what is left of its time; False where one did
    not take all of it."""
    usual = True
    budget = max(1, w[d.DEADLINE] - begun) if w[d.DEADLINE] else 0
    for k in range(len(rows)):
        if rows[k, d.OWED] > most:
            continue
        state, size = rows[k, d.STATE], rows[k, d.STATE_BYTES]
        if rows[k, d.BUDGET_AT]:
            write_bits(carray(bytes_at(state), (size,)), rows[k, d.BUDGET_AT], budget, 4)
        rows[k, d.SENT] = send(rows[k, d.DESCRIPTOR], state, size)
        usual = usual and rows[k, d.SENT] == size
    return usual


@kernel
def gather(w: Any, rows: Any) -> int:
    """Commands until all are in hand or time is up: how many are missing, or -1 where Python must look.

    Several peers are waited for one at a time, the one that was told last first. On one core the others have answered
    when it does, and none of them has woken us for nothing; elsewhere the last of them is waited for all the same.
    """
    scratch, events, deadline = w[d.SCRATCH], w[d.EVENTS], w[d.DEADLINE]
    missing, past, most, next_one = len(rows), 0, len(rows) + 1, len(rows) - 1
    asleep = True
    while missing:
        in_time = not deadline or now_ns(scratch) < deadline
        if in_time and len(rows) > 1:
            while next_one > 0 and rows[next_one, d.ANSWERED]:
                next_one -= 1
            row = rows[next_one]
            if asleep:
                found = wait_for_one(row[d.DESCRIPTOR], w[d.ALARM], events)
                if found == 0 and deadline:
                    continue
                if found != IN:
                    return -1
            heard = _hear(w, row)
            if heard < 0:
                return -1
            asleep = heard == 0
            missing -= heard
            continue
        found = wait(w[d.EPOLL], events, most, -1 if in_time else 0)
        if found < 0:
            return -1  # a signal: Python must see it
        came = 0
        for k in range(found):
            descriptor = event_descriptor(events, k)
            if descriptor == w[d.ALARM]:
                if not deadline:
                    return -1  # longer than is waited for here
                continue
            peer = 0
            while peer < len(rows) and rows[peer, d.DESCRIPTOR] != descriptor:
                peer += 1
            if peer == len(rows) or event_flags(events, k) != IN or rows[peer, d.ANSWERED]:
                return -1
            heard = _hear(w, rows[peer])
            if heard < 0:
                return -1
            missing -= heard
            came += heard
        if not in_time:
            past += came
            if came == 0 or past >= AFTER_DEADLINE:
                break
    return missing


@kernel
def _hear(w: Any, row: Any) -> int:
    """1: the peer's command is in hand; 0: there is nothing; -1: Python must look at what there is."""
    got = receive(row[d.DESCRIPTOR], row[d.BUFFER], row[d.BUFFER_BYTES])
    if got == -EAGAIN or got == -EINTR:
        return 0
    row[d.GOT] = got
    if got <= 0 or not _take(w, row, got):
        return -1
    row[d.GOT] = d.UNREAD
    return 1


@kernel
def frame_extent(buffer: Any, at: int, end: int) -> tuple[int, int]:
    """Where the message at `at` begins and ends, if it is whole and of one frame (ZMTP); else -1."""
    if end - at < 2:
        return -1, -1
    begin, size = at + 2, int(buffer[at + 1])
    if buffer[at] == 2:
        begin, size = at + 9, 0
        for k in range(at + 1, min(at + 9, end)):
            size = (size << 8) | int(buffer[k])
    elif buffer[at] != 0:
        return -1, -1
    if size < 0 or size > end - begin:
        return -1, -1
    return begin, begin + size


@kernel
def take_frame(w: Any, row: Any, got: int, head: Any) -> bool:
    """What has come is one command of the peer's layout, with a seq that rises: its numbers in head and w[VALUES]."""
    frame = carray(bytes_at(row[d.BUFFER]), (got,))
    begin, end = frame_extent(frame, 0, got)
    if begin < 0 or end != got:
        return False
    known = read_command(
        frame, begin, got, carray(bytes_at(row[d.PATTERN]), (row[d.PATTERN_BYTES],)),
        carray(words_at(row[d.PATTERN_ROWS]), (row[d.N_ROWS], 3)), head,
        carray(numbers_at(w[d.VALUES]), (row[d.N_TARGETS],)),
    )  # fmt: skip
    return known and row[d.SEQ] < head[HEAD_SEQ] < _MOST_SEQ


@kernel
def _take(w: Any, row: Any, got: int) -> bool:
    """What has come is this peer's command for this step, and it counts from now on; or nothing of it does."""
    head = carray(words_at(w[d.SCRATCH] + 32), (2,))
    if not take_frame(w, row, got, head) or head[HEAD_STEP] != w[d.STEP]:
        return False
    values = carray(numbers_at(w[d.VALUES]), (row[d.N_TARGETS],))
    for k in range(len(values)):
        if not math.isfinite(values[k]):
            return False
    use(w, row, head[HEAD_SEQ], head[HEAD_STEP], values)
    return True


@kernel
def use(w: Any, row: Any, seq: int, step: int, values: Any) -> None:
    """Within its limits into the command; see StepPort._use."""
    n = w[d.ACTUATORS]
    numbers = carray(numbers_at(w[d.NUMBERS]), (lm.NUMBERS, n))
    limits = carray(numbers_at(w[d.LOWER_UPPER]), (2, n))
    targets = carray(words_at(row[d.TARGETS]), (len(values),))
    fresh = carray(bytes_at(w[d.FRESH]), (n,))
    clamped = 0
    for k in range(len(values)):
        i, value = targets[k], values[k]
        if value < limits[0, i]:
            value, clamped = limits[0, i], 1
        elif value > limits[1, i]:
            value, clamped = limits[1, i], 1
        numbers[lm.COMMAND, i] = value
    own = carray(words_at(row[d.OWN]), (row[d.N_OWN],))
    for k in range(len(own)):
        fresh[own[k]] = 1
    row[d.SEQ], row[d.ANSWERED], row[d.OUT_OF_RANGE] = seq, 1, clamped
    w[d.CLAMPED] |= clamped
    w[d.SEQ_USED], w[d.STEP_USED] = seq, step
    w[d.LATENESS] = now_ns(w[d.SCRATCH]) - w[d.DEADLINE] if w[d.DEADLINE] else 0


@kernel
def resolve(w: Any, complete: bool, now: int) -> bool:
    """What stands in for what is missing; False where the run ends for it, or may."""
    n = w[d.ACTUATORS]
    numbers = carray(numbers_at(w[d.NUMBERS]), (lm.NUMBERS, n))
    flags = carray(bytes_at(w[d.FLAGS]), (lm.FLAGS, n))
    words = carray(words_at(w[d.WORDS]), (lm.WORDS,))
    if complete:
        w[d.COMPLETE] = 1
        take_complete(now, numbers, flags, words)
        return True
    if words[lm.POLICY] == lm.ABORT:
        return False
    instants = carray(words_at(w[d.INSTANTS]), (lm.INSTANTS, n))
    note_missing(now, instants, flags, carray(bytes_at(w[d.FRESH]), (n,)), carray(bytes_at(w[d.RENEWED]), (n,)), words)
    replace_missing(now, numbers, instants, flags, words)
    return True
