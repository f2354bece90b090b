"""Many usual steps without Python, where no clock paces them: lockstep and free.

Each is as in step.py, with what Python does in the slack before it: the plant is observed, and its state written. A
step that is not a usual one is handed over as there; one whose state does not fit its template is not begun. A step
whose row the recorder's ring has no room for is the last.
"""

from __future__ import annotations

from typing import Any

from numba import carray

from rtmms.addresses import call
from rtmms.contract import UNDEFINED, MissPolicy, StepOutcome
from rtmms.jit import kernel
from rtmms.loop.kernels.fallback import fallbacks_at
from rtmms.loop.kernels.memory import SEND_EVERY_NS
from rtmms.loop.kernels.row import row_head_at, row_memory_at
from rtmms.wire.kernels.message_layout import FALSE, TRUE, write_state
from rtmms.wire.kernels.step import ANY, clear, gather, hear, peer_of, publish, resolve, step_plant
from rtmms.wire.kernels.step_memory import batch_at, peers_at, step_at, templates_at, times_at
from rtmms.wire.kernels.system import (
    IN,
    WHOLES_AT,
    bytes_at,
    event_descriptor,
    event_flags,
    now_ns,
    numbers_at,
    wait,
    words_at,
)

_WHOLES = 6


@kernel
def take_steps(step: int, batch: int) -> None:
    """By the memory at these addresses (step_memory.STEP, BATCH)."""
    m, b = step_at(step), batch_at(batch)
    peers, times = carray(peers_at(m.peers_at), (m.peers,)), carray(times_at(b.times_at), (b.most,))
    fresh, fallback = carray(bytes_at(m.fresh_at), (m.actuators,)), carray(fallbacks_at(m.fallbacks_at), (1,))[0]
    b.done = b.unfinished = m.kept = 0
    while b.done < b.most:
        now = now_ns(m.scratch_at)
        if now >= b.until_ns:
            return
        tell = not b.free or b.answered or now - b.published_ns >= SEND_EVERY_NS
        if tell:
            if not m.kept:  # else the row of the step before has made it tell
                call(b.function, b.arguments_at)
            if fallback.stood_in != MissPolicy.NONE or not _write(m, b):
                return
        clear(m, peers)
        for i in range(len(fresh)):
            fresh[i] = 0
        m.begun_ns = now_ns(m.scratch_at)
        usual = True
        if tell:
            b.published_ns = m.begun_ns
            usual = publish(m, peers, m.begun_ns, 0 if b.free else ANY)
        m.published_ns = m.begun_ns
        missing = -1
        if usual:
            missing = _take_what_is_there(m, peers) if b.free else gather(m, peers)
        if missing < 0:
            b.unfinished = 1
            return
        m.gathered_ns = now_ns(m.scratch_at)
        resolve(m, missing == 0, m.gathered_ns)
        if b.free:
            step_plant(m, StepOutcome.REUSED)
        else:
            step_plant(m, StepOutcome.MISSED)
        _note(m, b, peers, times[b.done])
        if m.status or (m.row_memory_at and not m.kept):
            return


@kernel
def write_states(step: int, batch: int) -> bool:
    """The state of one step to come, for each peer, by the same memory; False where it does not fit its template."""
    m, b = step_at(step), batch_at(batch)
    call(b.function, b.arguments_at)
    return _write(m, b)


@kernel
def _note(m: Any, b: Any, peers: Any, time: Any) -> None:
    """The step is done: what it took, what `applied` says of it, and what each peer has to its name."""
    time.exchange_ns, time.plant_ns = m.gathered_ns - m.begun_ns, m.stepped_ns - m.called_ns
    time.complete = m.complete
    answered = 0
    for k in range(len(peers)):
        peer = peers[k]
        if peer.sent:
            peer.owed += 1
        if peer.answered:
            peer.owed = 0
            peer.commands += 1
            peer.clamped_all += peer.out_of_range
            answered = 1
    if answered:
        b.seq, b.step, b.clamped = m.seq_used, m.step_used, m.clamped
    if m.kept:
        _pass_on(m, time)
    b.answered = answered
    b.done += 1
    m.step += 1


@kernel
def _pass_on(m: Any, time: Any) -> None:
    """How long the step took, for the row of the next."""
    head = row_head_at(row_memory_at(m.row_memory_at).head_at)
    head.timed, head.exchange, head.plant = m.step, time.exchange_ns, time.plant_ns
    head.wake = head.slack = UNDEFINED
    head.attributed = head.miss = head.overrun = UNDEFINED


@kernel
def _write(m: Any, b: Any) -> bool:
    """What the plant has told into each template; False where it does not fit."""
    wholes = carray(words_at(m.scratch_at + WHOLES_AT), (_WHOLES,))
    wholes[0], wholes[1], wholes[2] = m.step, b.deadline_ns, b.budget_ns
    wholes[3], wholes[4], wholes[5] = b.seq, b.step, b.lateness_ns
    templates = carray(templates_at(b.templates_at), (m.peers,))
    for k in range(len(templates)):
        template = templates[k]
        flat = carray(numbers_at(template.flat_at), (template.n_reals,))
        flat[0] = float(m.step) * b.dt
        sources, at = carray(words_at(template.sources_at), (template.n_sources, 2)), 1
        for j in range(len(sources)):
            part = carray(numbers_at(sources[j, 0]), (sources[j, 1],))
            for i in range(len(part)):
                flat[at] = part[i]
                at += 1
        payload = carray(bytes_at(template.payload_at), (template.payload_bytes,))
        places = carray(words_at(template.wholes_at), (_WHOLES,))
        reals = carray(words_at(template.reals_at), (template.n_reals,))
        if not write_state(payload, places, reals, wholes, flat):
            return False
        payload[template.payload_bytes - 1] = TRUE if b.clamped else FALSE
    return True


@kernel
def _take_what_is_there(m: Any, peers: Any) -> int:
    """Free: the newest command of each peer, if there is one, for whatever step it was meant; how many have none, or -1
    where Python must look."""
    found, missing = wait(m.epoll, m.events_at, len(peers) + 1, 0), len(peers)
    if found < 0:
        return -1
    for k in range(found):
        descriptor = event_descriptor(m.events_at, k)
        if descriptor == m.alarm:
            return -1
        which = peer_of(peers, descriptor)
        if which == len(peers) or event_flags(m.events_at, k) != IN:
            return -1
        heard = hear(m, peers[which], True)
        if heard < 0:
            return -1
        missing -= heard
    return missing
