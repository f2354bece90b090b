"""A usual step without Python: from the wake-up to the end of the plant's step.

What is usual: each claimant owes a command for this very step, and sends it in a message of its own, of the layout of
its last good one, with finite numbers, or too late. Everything else is handed over as it came, and the general path
(rtmms.wire.plant.step_port, rtmms.loop.fallback) goes on from there.
"""

from __future__ import annotations

import math
from typing import Any

from numba import carray

from rtmms.addresses import call
from rtmms.contract import MissPolicy, StepOutcome
from rtmms.jit import kernel
from rtmms.loop.kernels.fallback import (
    actuators_at,
    clamp,
    fallbacks_at,
    note_missing,
    replace_missing,
    take_complete,
)
from rtmms.loop.kernels.memory import INTERRUPTED, PUBLISHED, RESOLVED
from rtmms.loop.kernels.row import push_row, row_head_at, row_memory_at
from rtmms.wire.kernels.message_layout import HEAD_SEQ, HEAD_STEP, read_command, write_bits
from rtmms.wire.kernels.step_memory import AFTER_DEADLINE, UNREAD, peers_at, step_at
from rtmms.wire.kernels.system import (
    EAGAIN,
    EINTR,
    HEAD_AT,
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

ANY = 1 << 30
"""For `publish`: the state goes to a peer whatever it owes."""
_MOST_SEQ = 1 << 62


@kernel
def take_step(at: int) -> int:
    """One step, by the memory at this address (step_memory.STEP): INTERRUPTED, PUBLISHED or RESOLVED."""
    m = step_at(at)
    peers = carray(peers_at(m.peers_at), (m.peers,))
    scratch = m.scratch_at
    clear(m, peers)
    begun = now_ns(scratch)
    while begun < m.due_ns:
        if sleep_until(m.due_ns, scratch):
            return INTERRUPTED
        begun = now_ns(scratch)
    m.begun_ns = begun
    usual = publish(m, peers, begun, ANY)
    m.published_ns = now_ns(scratch)
    if not usual:
        return PUBLISHED
    missing = gather(m, peers)
    if missing < 0:
        return PUBLISHED
    gathered = m.gathered_ns = now_ns(scratch)
    if not resolve(m, missing == 0, gathered):
        return PUBLISHED
    if m.function:
        step_plant(m, StepOutcome.MISSED)
    return RESOLVED


@kernel
def clear(m: Any, peers: Any) -> None:
    """Nothing of the step has been done."""
    m.complete = m.clamped = m.status = m.called_ns = m.stepped_ns = m.gathered_ns = m.kept = 0
    m.seq_used = -1
    for k in range(len(peers)):
        peers[k].sent, peers[k].answered, peers[k].got, peers[k].out_of_range = 0, 0, UNREAD, 0


@kernel
def step_plant(m: Any, late: int) -> None:
    """The command to the plant, its step, and the row of it.

    late   the outcome of a step whose commands were not all there
    """
    command, given = carray(numbers_at(m.command_at), (m.actuators,)), carray(numbers_at(m.given_at), (m.actuators,))
    for i in range(len(command)):
        given[i] = command[i]
    if m.step < m.tape_rows:
        row = carray(numbers_at(m.tape_at + 8 * m.actuators * m.step), (m.actuators,))
        for i in range(len(command)):
            row[i] = command[i]
    m.called_ns = now_ns(m.scratch_at)
    m.status = call(m.function, m.arguments_at)
    m.stepped_ns = now_ns(m.scratch_at)
    if m.row_memory_at and m.status == 0:
        keep(m, late)


@kernel
def keep(m: Any, late: int) -> None:
    """The step's row for the recorder: the plant writes its outputs, the head says what the step came to."""
    memory = row_memory_at(m.row_memory_at)
    head = row_head_at(memory.head_at)
    call(memory.account, memory.arguments_at)
    head.step, head.outcome = m.step, late
    if m.complete:
        head.outcome = StepOutcome.APPLIED
    head.policy = carray(fallbacks_at(m.fallbacks_at), (1,))[0].stood_in
    if m.seq_used >= 0:
        head.seq, head.target_step = m.seq_used, m.step_used
        head.lateness_ns, head.clamped = m.lateness_ns, m.clamped
    head.wall_ns = now_ns(m.scratch_at)
    m.kept = push_row(m.row_memory_at)


@kernel
def publish(m: Any, peers: Any, begun: int, most: int) -> bool:
    """The state to each peer that owes no more than so many answers, with what is left of its time; False where one did
    not take all of it."""
    usual = True
    budget = max(1, m.deadline_ns - begun) if m.deadline_ns else 0
    for k in range(len(peers)):
        if peers[k].owed > most:
            continue
        state, size = peers[k].state_at, peers[k].state_bytes
        if peers[k].budget_place:
            write_bits(carray(bytes_at(state), (size,)), peers[k].budget_place, budget, 4)
        peers[k].sent = send(peers[k].descriptor, state, size)
        usual = usual and peers[k].sent == size
    return usual


@kernel
def gather(m: Any, peers: Any) -> int:
    """Commands until all are in hand or time is up: how many are missing, or -1 where Python must look.

    Several peers are waited for one at a time, the one that was told last first. On one core the others have answered
    when it does, and none of them has woken us for nothing; elsewhere the last of them is waited for all the same.
    """
    scratch, events, deadline = m.scratch_at, m.events_at, m.deadline_ns
    missing, past, most, next_one = len(peers), 0, len(peers) + 1, len(peers) - 1
    asleep = True
    while missing:
        in_time = not deadline or now_ns(scratch) < deadline
        if in_time and len(peers) > 1:
            while next_one > 0 and peers[next_one].answered:
                next_one -= 1
            peer = peers[next_one]
            if asleep:
                found = wait_for_one(peer.descriptor, m.alarm, events)
                if found == 0 and deadline:
                    continue
                if found != IN:
                    return -1
            heard = hear(m, peer, False)
            if heard < 0:
                return -1
            asleep = heard == 0
            missing -= heard
            continue
        found = wait(m.epoll, events, most, -1 if in_time else 0)
        if found < 0:
            return -1  # a signal: Python must see it
        came = 0
        for k in range(found):
            descriptor = event_descriptor(events, k)
            if descriptor == m.alarm:
                if not deadline:
                    return -1  # longer than is waited for here
                continue
            which = peer_of(peers, descriptor)
            if which == len(peers) or event_flags(events, k) != IN or peers[which].answered:
                return -1
            heard = hear(m, peers[which], False)
            if heard < 0:
                return -1
            missing -= heard
            came += heard
        if not in_time:
            past += came
            if came == 0 or past >= AFTER_DEADLINE:
                break
    return missing


@kernel(inline=True)
def peer_of(peers: Any, descriptor: int) -> int:
    """The place of the peer with this descriptor; their count where there is none."""
    which = 0
    while which < len(peers) and peers[which].descriptor != descriptor:
        which += 1
    return which


@kernel
def hear(m: Any, peer: Any, any_step: bool) -> int:
    """1: the peer's command is in hand; 0: there is nothing; -1: Python must look at what there is.

    any_step   a command for an earlier step is good, too (free mode)
    """
    got = receive(peer.descriptor, peer.buffer_at, peer.buffer_bytes)
    if got == -EAGAIN or got == -EINTR:
        return 0
    peer.got = got
    if got <= 0 or not _take(m, peer, got, any_step):
        return -1
    peer.got = UNREAD
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
def _take(m: Any, peer: Any, got: int, any_step: bool) -> bool:
    """What has come is one command of the peer's layout, with a seq that rises, for this step, and it counts from now
    on; or nothing of it does."""
    frame, head = carray(bytes_at(peer.buffer_at), (got,)), carray(words_at(m.scratch_at + HEAD_AT), (2,))
    values = carray(numbers_at(m.values_at), (peer.n_targets,))
    begin, end = frame_extent(frame, 0, got)
    if begin < 0 or end != got:
        return False
    pattern = carray(bytes_at(peer.pattern_at), (peer.pattern_bytes,))
    rows = carray(words_at(peer.pattern_rows_at), (peer.n_pattern_rows, 3))
    if not read_command(frame, begin, got, pattern, rows, head, values):
        return False
    step = head[HEAD_STEP]
    if not peer.seq < head[HEAD_SEQ] < _MOST_SEQ or not (step == m.step or (any_step and 0 <= step < m.step)):
        return False
    for k in range(len(values)):
        if not math.isfinite(values[k]):
            return False
    use(m, peer, head[HEAD_SEQ], step, values)
    return True


@kernel
def use(m: Any, peer: Any, seq: int, step: int, values: Any) -> None:
    """Within its limits into the command; see StepPort._use."""
    n = m.actuators
    command, actuators = carray(numbers_at(m.command_at), (n,)), carray(actuators_at(m.actuators_at), (n,))
    targets, fresh = carray(words_at(peer.targets_at), (len(values),)), carray(bytes_at(m.fresh_at), (n,))
    moved = 0
    for k in range(len(values)):
        i = targets[k]
        value = clamp(values[k], actuators[i].lower, actuators[i].upper)
        if value != values[k]:
            moved = 1
        command[i] = value
    if m.n_coupled:
        coupled = carray(numbers_at(m.coupled_at), (m.n_coupled, 3))
        for k in range(m.n_coupled):
            if abs(command[int(coupled[k, 0])] - command[int(coupled[k, 1])]) > coupled[k, 2]:
                moved = 1
    own = carray(words_at(peer.own_at), (peer.n_own,))
    for k in range(len(own)):
        fresh[own[k]] = 1
    peer.seq, peer.answered, peer.out_of_range = seq, 1, moved
    m.clamped |= moved
    m.seq_used, m.step_used = seq, step
    m.lateness_ns = now_ns(m.scratch_at) - m.deadline_ns if m.deadline_ns else 0


@kernel
def resolve(m: Any, complete: bool, now: int) -> bool:
    """The fallback for what is missing; False where the run ends for it, or may."""
    n = m.actuators
    fallbacks, actuators = carray(fallbacks_at(m.fallbacks_at), (1,)), carray(actuators_at(m.actuators_at), (n,))
    command = carray(numbers_at(m.command_at), (n,))
    if complete:
        m.complete = 1
        take_complete(now, fallbacks, actuators, command)
        return True
    if fallbacks[0].policy == MissPolicy.ABORT:
        return False
    fresh, renewed = carray(bytes_at(m.fresh_at), (n,)), carray(bytes_at(m.renewed_at), (n,))
    note_missing(now, fallbacks, actuators, fresh, renewed)
    replace_missing(now, fallbacks, actuators, command)
    return True
