"""Many usual steps without Python, where no clock paces them: lockstep and free.

Each is as in step.py, with what Python does in the slack before it: the plant is observed, and its state written. A
step that is not a usual one is handed over as there; one whose state does not fit its template is not begun. A step
whose row the recorder's ring has no room for is the last.
"""

from __future__ import annotations

import math
from typing import Any

from numba import carray

from rtmms.addresses import call
from rtmms.jit import kernel
from rtmms.loop.commands import MISSED, REUSED
from rtmms.loop.kernels import memory as lm
from rtmms.loop.kernels import row_memory as rm
from rtmms.wire.kernels import desk as d
from rtmms.wire.kernels.patterns import HEAD_SEQ, HEAD_STEP, write_state
from rtmms.wire.kernels.step import clear, gather, keep, publish, resolve, take_frame, use
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
    wait,
    words_at,
)

(
    MOST, UNTIL, FREE, DT, FUNCTION, ARGUMENTS, TEMPLATES, TIMES,
    A_SEQ, A_STEP, A_CLAMPED, PUBLISHED_NS, ANSWERED, DONE, UNFINISHED, USED_STEP,
    A_DEADLINE, A_BUDGET, A_LATENESS,
) = range(19)  # fmt: skip
"""Given: steps at most, the instant after which none is begun, whether nothing is waited for, addresses: of dt, of the
plant's account and its words, of a row of TEMPLATE for each peer, of a row of TIME for each step. Given and written:
what `applied` says (its lateness, and the deadline and budget of a state: given alone); in free, when a state was sent
and whether it was answered. Written: steps that are done, and whether one more was begun and handed over."""
STRETCH = 19

(PAYLOAD, PAYLOAD_BYTES, WHOLES, REALS, N_REALS, SOURCES, N_SOURCES, FLAT) = range(8)
TEMPLATE = 8
"""Of a state: the message, where its numbers stand, where they come from (address and count, each), room for them."""

(EXCHANGE_NS, PLANT_NS, OUTCOME, TIME) = range(4)
"""Of a step: how long its parts took, and whether all commands were in hand."""

SEND_EVERY_NS = 1_000_000
_WHOLES, _ANY = 6, 1 << 30
UNDEFINED = -1


@kernel
def take_steps(at: int, stretch: int) -> None:
    """By the memory at these addresses."""
    w, b = carray(words_at(at), (d.DESK,)), carray(words_at(stretch), (STRETCH,))
    rows = carray(words_at(w[d.ROWS]), (w[d.PEERS], d.ROW))
    times = carray(words_at(b[TIMES]), (b[MOST], TIME))
    fresh = carray(bytes_at(w[d.FRESH]), (w[d.ACTUATORS],))
    words = carray(words_at(w[d.WORDS]), (lm.WORDS,))
    b[DONE] = b[UNFINISHED] = w[d.KEPT] = 0
    while b[DONE] < b[MOST]:
        now = now_ns(w[d.SCRATCH])
        if now >= b[UNTIL]:
            return
        tell = not b[FREE] or b[ANSWERED] or now - b[PUBLISHED_NS] >= SEND_EVERY_NS
        if tell:
            if not w[d.KEPT]:  # else the row of the step before has made it tell
                call(b[FUNCTION], b[ARGUMENTS])
            if words[lm.STOOD_IN] != lm.NONE or not _write(w, b):
                return
        clear(w, rows)
        for i in range(len(fresh)):
            fresh[i] = 0
        w[d.BEGUN] = now_ns(w[d.SCRATCH])
        usual = True
        if tell:
            b[PUBLISHED_NS] = w[d.BEGUN]
            usual = publish(w, rows, w[d.BEGUN], 0 if b[FREE] else _ANY)
        w[d.PUBLISHED] = w[d.BEGUN]
        missing = -1
        if usual:
            missing = _take_what_is_there(w, rows) if b[FREE] else gather(w, rows)
        if missing < 0:
            b[UNFINISHED] = 1
            return
        gathered = w[d.GATHERED] = now_ns(w[d.SCRATCH])
        resolve(w, missing == 0, gathered)
        n = w[d.ACTUATORS]
        command, given = carray(numbers_at(w[d.NUMBERS]), (n,)), carray(numbers_at(w[d.TO_PLANT]), (n,))
        for i in range(n):
            given[i] = command[i]
        w[d.CALLED] = now_ns(w[d.SCRATCH])
        w[d.STATUS] = call(w[d.FUNCTION], w[d.ARGUMENTS])
        w[d.STEPPED] = now_ns(w[d.SCRATCH])
        if w[d.ROW_MEMORY] and w[d.STATUS] == 0:
            keep(w, REUSED if b[FREE] else MISSED)
        _note(w, b, rows, times[b[DONE]])
        if w[d.STATUS] or (w[d.ROW_MEMORY] and not w[d.KEPT]):
            return


@kernel
def write_states(at: int, stretch: int) -> bool:
    """The state of one step to come, for each peer, by the same memory; False where it does not fit its template."""
    w, b = carray(words_at(at), (d.DESK,)), carray(words_at(stretch), (STRETCH,))
    call(b[FUNCTION], b[ARGUMENTS])
    return _write(w, b)


@kernel
def _note(w: Any, b: Any, rows: Any, time: Any) -> None:
    """The step is done: what it took, what `applied` says of it, and what each peer has to its name."""
    time[EXCHANGE_NS], time[PLANT_NS] = w[d.GATHERED] - w[d.BEGUN], w[d.STEPPED] - w[d.CALLED]
    time[OUTCOME] = w[d.COMPLETE]
    answered = 0
    for k in range(len(rows)):
        if rows[k, d.SENT]:
            rows[k, d.OWED] += 1
        if rows[k, d.ANSWERED]:
            rows[k, d.OWED] = 0
            rows[k, d.COMMANDS] += 1
            rows[k, d.CLAMPED_ALL] += rows[k, d.OUT_OF_RANGE]
            answered = 1
    if answered:
        b[A_SEQ], b[A_STEP], b[A_CLAMPED] = w[d.SEQ_USED], w[d.STEP_USED], w[d.CLAMPED]
    if w[d.KEPT]:
        _pass_on(w, time)
    b[ANSWERED] = answered
    b[DONE] += 1
    w[d.STEP] += 1


@kernel
def _pass_on(w: Any, time: Any) -> None:
    """How long the step took, for the row of the next."""
    r = carray(words_at(w[d.ROW_MEMORY]), (rm.WORDS,))
    head = carray(words_at(r[rm.HEAD]), (r[rm.N_HEAD],))
    head[rm.H_TIMED], head[rm.H_EXCHANGE], head[rm.H_PLANT] = w[d.STEP], time[EXCHANGE_NS], time[PLANT_NS]
    head[rm.H_WAKE] = head[rm.H_SLACK] = UNDEFINED
    head[rm.H_BLAMED] = head[rm.H_MISS] = head[rm.H_OVERRUN] = UNDEFINED


@kernel
def _write(w: Any, b: Any) -> bool:
    """What the plant has told into each template; False where it does not fit."""
    dt = carray(numbers_at(b[DT]), (1,))[0]
    wholes = carray(words_at(w[d.SCRATCH] + 64), (_WHOLES,))
    wholes[0], wholes[1], wholes[2] = w[d.STEP], b[A_DEADLINE], b[A_BUDGET]
    wholes[3], wholes[4], wholes[5] = b[A_SEQ], b[A_STEP], b[A_LATENESS]
    for k in range(w[d.PEERS]):
        t = carray(words_at(b[TEMPLATES] + 8 * TEMPLATE * k), (TEMPLATE,))
        flat = carray(numbers_at(t[FLAT]), (t[N_REALS],))
        flat[0] = float(w[d.STEP]) * dt
        sources, at = carray(words_at(t[SOURCES]), (t[N_SOURCES], 2)), 1
        for j in range(t[N_SOURCES]):
            part = carray(numbers_at(sources[j, 0]), (sources[j, 1],))
            for i in range(sources[j, 1]):
                flat[at] = part[i]
                at += 1
        payload = carray(bytes_at(t[PAYLOAD]), (t[PAYLOAD_BYTES],))
        places = carray(words_at(t[WHOLES]), (_WHOLES,))
        reals = carray(words_at(t[REALS]), (t[N_REALS],))
        if not write_state(payload, places, reals, wholes, flat):
            return False
        payload[t[PAYLOAD_BYTES] - 1] = 0xC3 if b[A_CLAMPED] else 0xC2
    return True


@kernel
def _take_what_is_there(w: Any, rows: Any) -> int:
    """Free: the newest command of each peer, if there is one, for whatever step it was meant; how many have none, or -1
    where Python must look."""
    found, missing = wait(w[d.EPOLL], w[d.EVENTS], len(rows) + 1, 0), len(rows)
    if found < 0:
        return -1
    for k in range(found):
        descriptor, peer = event_descriptor(w[d.EVENTS], k), 0
        if descriptor == w[d.ALARM]:
            return -1
        while peer < len(rows) and rows[peer, d.DESCRIPTOR] != descriptor:
            peer += 1
        if peer == len(rows) or event_flags(w[d.EVENTS], k) != IN:
            return -1
        row = rows[peer]
        got = receive(descriptor, row[d.BUFFER], row[d.BUFFER_BYTES])
        if got in (-EAGAIN, -EINTR):
            continue
        row[d.GOT] = got
        if got <= 0 or not _take_any(w, row, got):
            return -1
        row[d.GOT] = d.UNREAD
        missing -= 1
    return missing


@kernel
def _take_any(w: Any, row: Any, got: int) -> bool:
    """See `take` in step.py; any step up to this one is good."""
    head = carray(words_at(w[d.SCRATCH] + 32), (2,))
    if not take_frame(w, row, got, head) or not 0 <= head[HEAD_STEP] <= w[d.STEP]:
        return False
    values = carray(numbers_at(w[d.VALUES]), (row[d.N_TARGETS],))
    for k in range(len(values)):
        if not math.isfinite(values[k]):
            return False
    use(w, row, head[HEAD_SEQ], head[HEAD_STEP], values)
    return True
