"""Compiled steps: a usual step in one call, its memory, and many steps in a row.

`rtmms.wire.plant.fast_path` fills the memory and calls the kernels.
"""

from __future__ import annotations

import math
from typing import Any

from numba import carray

from rtmms.base.contract import UNDEFINED, MissPolicy, StepOutcome
from rtmms.base.jit import kernel
from rtmms.base.pointers import bytes_at, call, numbers_at, words_at
from rtmms.base.structs import NUMBER, WORD, record, record_at, records_at, word_record
from rtmms.loop.miss_policies import (
    INTERRUPTED,
    PUBLISHED,
    RESOLVED,
    SEND_EVERY_NS,
    actuators_at,
    clamp,
    fallbacks_at,
    note_missing,
    replace_missing,
    take_complete,
)
from rtmms.loop.row_kernels import push_row, row_head_at, row_memory_at
from rtmms.wire.kernels.step_message_layout import layout_at, read_message, write_bits, write_integer, write_reals
from rtmms.wire.kernels.system import (
    EAGAIN,
    EINTR,
    IN,
    INTEGERS_AT,
    event_descriptor,
    event_flags,
    now_ns,
    receive,
    send,
    sleep_until,
    wait,
    wait_for_one,
)
from rtmms.wire.protocol.step_message_layout import (
    APPLIED_LATENESS,
    APPLIED_SEQ,
    APPLIED_STEP,
    COMMAND_AGE,
    COMMAND_FRESH,
    COMMAND_SEQ,
    COMMAND_STEP,
    FALSE,
    STATE_BUDGET,
    STATE_DEADLINE,
    STATE_STEP,
    TRUE,
)

# The memory of a compiled step: one record for the step, one for each peer; and of a batch of steps in one call.
#
# rtmms.wire.plant.fast_path fills it. Python writes the fields below `given`; compiled code writes the others.


UNREAD = -(1 << 40)
"""Value of `got` of a peer without a message for the general reader."""

MAX_READS_AFTER_DEADLINE = 4
"""Number of messages that are still read after the deadline, by the general path as well."""

STEP = word_record(
    # given
    "epoll", "alarm",  # descriptors
    "peers", "actuators",  # counts
    "due_ns", "deadline_ns",  # 0 as due time: now; 0 as deadline: none
    "step",
    "peers_at", "values_at", "events_at", "scratch_at",
    "fallbacks_at", "actuators_at", "command_at", "fresh_at", "renewed_at",  # of the loop, see loop.kernels.memory
    "function", "arguments_at", "given_at",  # the plant's step (0: it is Python), and the address of its command
    "row_memory_at",  # see loop.kernels.row; 0: Python writes the row
    "tape_at", "tape_rows",  # address of the recorded commands, a row for each step
    # (n, 3) float64: places of two commands, and the largest difference that the plant accepts
    "coupled_at", "n_coupled",
    # written
    "begun_ns", "published_ns", "gathered_ns", "called_ns", "stepped_ns",
    "status",  # of the plant
    "complete",  # all commands came in time
    "stale",  # some command is older than its fresh age
    "seq_used", "step_used", "lateness_ns", "clamped",  # content of the next `applied`; seq_used -1: as before
    "is_recorded",  # whether the row is written
)  # fmt: skip

PEER = word_record(
    # given
    "descriptor",
    "state_at", "state_bytes", "budget_place",  # its state as sent, and the place of the budget in it (0: none)
    "own_at", "n_own",  # its actuators, in the order of its commands
    "layout_at",  # layout of its commands, see rtmms.wire.kernels.step_message_layout
    "buffer_at", "buffer_bytes",  # memory for its messages
    # written
    "seq",  # seq of its newest command (given, too)
    "sent",  # bytes, or -errno
    "answered",  # its command was accepted
    "got",  # bytes in its buffer for the general reader, or UNREAD
    "out_of_range",  # a value was clamped
    "stale", "expiry_ns",  # its values are older than their fresh age; instant from which they are, or 0: never
    "owed", "commands", "clamped_all", "stale_all",  # of a batch: unanswered states; commands; clamped ones; stale ones
)  # fmt: skip

BATCH = record(
    # given
    ("dt", NUMBER),  # s
    *((name, WORD) for name in (
        "max_steps", "until_ns", "free",  # limit of the steps; instant after which none begins; no waiting
        "function", "arguments_at",  # the function that records the plant's state
        "states_at", "times_at",  # a STATE for each peer, a TIME for each step
        "deadline_ns", "budget_ns", "lateness_ns",  # of the state, and of `applied` in it
        # given and written
        "seq", "step", "clamped",  # for `applied`
        "published_ns", "answered",  # in free mode: instant of the last state, and whether it was answered
        # written
        "done", "unfinished",  # number of steps; whether a further step began and is unfinished
    )),
)  # fmt: skip

STATE = word_record(
    "payload_at", "payload_bytes", "layout_at",  # the message, and the places of its numbers
    "sources_at", "n_sources",  # address and size of each output, in the order of the message
)  # fmt: skip

TIME = word_record("exchange_ns", "plant_ns", "outcome")
"""Durations of the parts of a step of a batch, ns, and its StepOutcome."""

ANSWER = word_record(
    # given
    "epoll", "data", "alarm", "events_at", "scratch_at",
    "buffer_at", "buffer_bytes",
    "near", "lockstep", "delay",  # the plant runs on this machine's clock; it waits for each answer; in steps
    "state_layout_at",
    "values_at", "n_outputs",  # memory for the time and the outputs
    "update", "memory_at", "n_memory", "command_at", "n_command",
    "command_layout_at", "frame_at", "frame_from", "frame_bytes",  # a command, and the head of its frame before it
    "look_ns",  # the first answer after this instant ends the call
    # written
    "seq",  # of the last command (given, too)
    "got",  # bytes in the buffer for the general reader
    "step",  # step of the last answered state
    "step_received",
    "sent",  # of the last command: bytes, or -errno
    "answered",  # number of answers
)  # fmt: skip
"""Memory of a controller that answers in compiled code.

After another event Python runs, but not before the state's deadline, for which the alarm is set. Until then other
controllers on this core may have states to answer.
"""

step_at = record_at(STEP)
peers_at = records_at(PEER)
batch_at = record_at(BATCH)
states_at = records_at(STATE)
times_at = records_at(TIME)
answer_at = record_at(ANSWER)


# A usual step without Python: from the wake-up to the end of the plant's step.
#
# A step is usual if each claimant owes a command for this step and sends it alone, with finite numbers, in the layout
# that follows from its welcome, or too late. The code hands any other message over unchanged, and the general path
# (rtmms.wire.plant.step_port, rtmms.loop.step_outcome) continues from there.


ANY = 1 << 30
"""Limit for `publish` that sends the state to each peer."""
_MAX_SEQ = 1 << 62
_APPLIED, _MISSED, _REUSED, _STALE = map(
    int, (StepOutcome.APPLIED, StepOutcome.MISSED, StepOutcome.REUSED, StepOutcome.STALE)
)
"""Outcomes as the plain numbers that compiled code takes."""


@kernel
def take_step(at: int) -> int:
    """Take one step.

    Parameters
    ----------
    at : int
        Address of the memory, a record STEP.

    Returns
    -------
    int
        INTERRUPTED, PUBLISHED or RESOLVED.
    """
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
    all_sent = publish(m, peers, begun, ANY)
    m.published_ns = now_ns(scratch)
    if not all_sent:
        return PUBLISHED
    missing = gather(m, peers)
    if missing < 0:
        return PUBLISHED
    gathered = m.gathered_ns = now_ns(scratch)
    if not resolve(m, missing == 0, gathered):
        return PUBLISHED
    if m.function:
        step_plant(m, _MISSED)
    return RESOLVED


@kernel
def clear(m: Any, peers: Any) -> None:
    """Reset the results of the step.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    peers : array of PEER
        Memory of the peers.
    """
    m.complete = m.stale = m.clamped = m.status = m.called_ns = m.stepped_ns = m.gathered_ns = m.is_recorded = 0
    m.seq_used = -1
    for k in range(len(peers)):
        peers[k].sent, peers[k].answered, peers[k].got = 0, 0, UNREAD
        peers[k].out_of_range, peers[k].stale = 0, 0


@kernel(inline=True)
def outcome_of(m: Any, late: int) -> int:
    """Return the StepOutcome of a step that somebody claimed.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    late : int
        Outcome of a step with missing commands.

    Returns
    -------
    int
        The outcome.
    """
    if not m.complete:
        return late
    if m.stale:
        return _STALE
    return _APPLIED


@kernel
def step_plant(m: Any, late: int) -> None:
    """Pass the command to the plant, take its step, and write its row.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    late : int
        Outcome of a step with missing commands.
    """
    command, values = carray(numbers_at(m.command_at), (m.actuators,)), carray(numbers_at(m.given_at), (m.actuators,))
    for i in range(len(command)):
        values[i] = command[i]
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
    """Write the step's row for the recorder.

    The plant writes its outputs. The head has the results of the step.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    late : int
        Outcome of a step with missing commands.
    """
    memory = row_memory_at(m.row_memory_at)
    head = row_head_at(memory.head_at)
    call(memory.account, memory.arguments_at)
    head.step, head.outcome = m.step, outcome_of(m, late)
    head.policy = carray(fallbacks_at(m.fallbacks_at), (1,))[0].stood_in
    if m.seq_used >= 0:
        head.seq, head.target_step = m.seq_used, m.step_used
        head.lateness_ns, head.clamped = m.lateness_ns, m.clamped
    head.wall_ns = now_ns(m.scratch_at)
    m.is_recorded = push_row(m.row_memory_at)


@kernel
def publish(m: Any, peers: Any, begun: int, maximum: int) -> bool:
    """Send the state to the peers, with the rest of their time.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    peers : array of PEER
        Memory of the peers.
    begun : int
        Begin of the step on CLOCK_MONOTONIC, ns.
    maximum : int
        Peers that owe more answers than this receive no state.

    Returns
    -------
    bool
        False if a peer did not accept all of its state.
    """
    all_sent = True
    budget = max(1, m.deadline_ns - begun) if m.deadline_ns else 0
    for k in range(len(peers)):
        if peers[k].owed > maximum:
            continue
        state, size = peers[k].state_at, peers[k].state_bytes
        if peers[k].budget_place:
            write_bits(carray(bytes_at(state), (size,)), peers[k].budget_place, budget)
        peers[k].sent = send(peers[k].descriptor, state, size)
        all_sent = all_sent and peers[k].sent == size
    return all_sent


@kernel
def gather(m: Any, peers: Any) -> int:
    """Read commands until all have come or the time is up.

    The loop waits for several peers one at a time, first for the peer to which it sent the state last. On one core the
    others have answered by then, so none of them wakes the loop in vain. On more cores the wait ends with the last
    peer.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    peers : array of PEER
        Memory of the peers.

    Returns
    -------
    int
        Number of missing commands, or -1 if Python must act.
    """
    scratch, events, deadline = m.scratch_at, m.events_at, m.deadline_ns
    missing, past, maximum, next_one = len(peers), 0, len(peers) + 1, len(peers) - 1
    asleep = True
    while missing:
        in_time = not deadline or now_ns(scratch) < deadline
        if in_time and len(peers) > 1:
            while next_one > 0 and peers[next_one].answered:
                next_one -= 1
            peer = peers[next_one]
            if asleep:
                result = wait_for_one(peer.descriptor, m.alarm, events)
                if result == 0 and deadline:
                    continue
                if result != IN:
                    return -1
            received = receive_from(m, peer, False)
            if received < 0:
                return -1
            asleep = received == 0
            missing -= received
            continue
        result = wait(m.epoll, events, maximum, -1 if in_time else 0)
        if result < 0:
            return -1  # a signal, which Python must handle
        came = 0
        for k in range(result):
            descriptor = event_descriptor(events, k)
            if descriptor == m.alarm:
                if not deadline:
                    return -1  # the wait is longer than this call may be
                continue
            which = peer_of(peers, descriptor)
            if which == len(peers) or event_flags(events, k) != IN or peers[which].answered:
                return -1
            received = receive_from(m, peers[which], False)
            if received < 0:
                return -1
            missing -= received
            came += received
        if not in_time:
            past += came
            if came == 0 or past >= MAX_READS_AFTER_DEADLINE:
                break
    return missing


@kernel(inline=True)
def peer_of(peers: Any, descriptor: int) -> int:
    """Return the index of the peer with a descriptor.

    Parameters
    ----------
    peers : array of PEER
        Memory of the peers.
    descriptor : int
        File descriptor of its connection.

    Returns
    -------
    int
        The index; the number of peers if there is none.
    """
    which = 0
    while which < len(peers) and peers[which].descriptor != descriptor:
        which += 1
    return which


@kernel
def receive_from(m: Any, peer: Any, any_step: bool) -> int:
    """Read a peer's command.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    peer : record PEER
        Memory of the peer.
    any_step : bool
        Whether a command for an earlier step counts, too (free mode).

    Returns
    -------
    int
        1 if the command has come, 0 if nothing has, -1 if Python must act.
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
    """Return the extent of a whole message of one frame (ZMTP).

    Parameters
    ----------
    buffer : array of uint8
        The received bytes.
    at, end : int
        Begin of the frame, and end of the bytes.

    Returns
    -------
    tuple[int, int]
        Begin and end of the message; -1 twice if it is not whole or has several frames.
    """
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
    """Use the received bytes as a command, and return whether they are one.

    They must be one command of the peer's layout for this step, with a rising seq. Otherwise nothing of it counts.
    """
    frame, integers = carray(bytes_at(peer.buffer_at), (got,)), carray(words_at(m.scratch_at + INTEGERS_AT), (4,))
    values = carray(numbers_at(m.values_at), (peer.n_own,))
    begin, end = frame_extent(frame, 0, got)
    integers[COMMAND_AGE] = integers[COMMAND_FRESH] = 0  # the command states no age
    if begin < 0 or end != got or not read_message(peer.layout_at, frame, begin, end, integers, values):
        return False
    if integers[COMMAND_AGE] < 0 or integers[COMMAND_FRESH] < 0:
        return False
    seq, step = integers[COMMAND_SEQ], integers[COMMAND_STEP]
    if not peer.seq < seq < _MAX_SEQ or not (step == m.step or (any_step and 0 <= step < m.step)):
        return False
    for k in range(len(values)):
        if not math.isfinite(values[k]):
            return False
    peer.stale = peer.expiry_ns = 0
    if integers[COMMAND_FRESH] > 0:
        spare = integers[COMMAND_FRESH] - integers[COMMAND_AGE]
        peer.stale = spare < 0
        peer.expiry_ns = now_ns(m.scratch_at) + spare
        m.stale |= peer.stale
    use(m, peer, seq, step, values)
    return True


@kernel
def use(m: Any, peer: Any, seq: int, step: int, values: Any) -> None:
    """Clamp a command's values into the step's command; see `StepPort._use`.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    peer : record PEER
        Memory of the peer.
    seq, step : int
        Numbers of the command.
    values : array of float64
        Values of the peer's actuators.
    """
    n = m.actuators
    command, actuators = carray(numbers_at(m.command_at), (n,)), carray(actuators_at(m.actuators_at), (n,))
    actuator_indices, fresh = carray(words_at(peer.own_at), (len(values),)), carray(bytes_at(m.fresh_at), (n,))
    moved = 0
    for k in range(len(values)):
        i = actuator_indices[k]
        value = clamp(values[k], actuators[i].lower, actuators[i].upper)
        if value != values[k]:
            moved = 1
        command[i] = value
    if m.n_coupled:
        coupled = carray(numbers_at(m.coupled_at), (m.n_coupled, 3))
        for k in range(m.n_coupled):
            if abs(command[int(coupled[k, 0])] - command[int(coupled[k, 1])]) > coupled[k, 2]:
                moved = 1
    for k in range(len(actuator_indices)):
        fresh[actuator_indices[k]] = 1
    peer.seq, peer.answered, peer.out_of_range = seq, 1, moved
    m.clamped |= moved
    m.seq_used, m.step_used = seq, step
    m.lateness_ns = now_ns(m.scratch_at) - m.deadline_ns if m.deadline_ns else 0


@kernel
def resolve(m: Any, complete: bool, now: int) -> bool:
    """Replace missing commands by the miss policy.

    Parameters
    ----------
    m : record STEP
        Memory of the step.
    complete : bool
        Whether all commands have come.
    now : int
        Instant of CLOCK_MONOTONIC, ns.

    Returns
    -------
    bool
        False if the run ends because of a miss, or may end.
    """
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


# Many usual steps without Python, without a clock: modes lockstep and free.
#
# Each step is as above, and includes Python's work in the slack before it: the code observes the plant and writes its
# state. A step that is not usual is handed over. If the recorder's ring has no room for a step's row, that step is the
# last.


@kernel
def take_steps(step: int, batch: int) -> None:
    """Take many steps.

    Parameters
    ----------
    step, batch : int
        Addresses of the records STEP and BATCH.
    """
    m, b = step_at(step), batch_at(batch)
    peers, times = carray(peers_at(m.peers_at), (m.peers,)), carray(times_at(b.times_at), (b.max_steps,))
    fresh, fallback = carray(bytes_at(m.fresh_at), (m.actuators,)), carray(fallbacks_at(m.fallbacks_at), (1,))[0]
    b.done = b.unfinished = m.is_recorded = 0
    while b.done < b.max_steps:
        now = now_ns(m.scratch_at)
        if now >= b.until_ns:
            return
        sends = not b.free or b.answered or now - b.published_ns >= SEND_EVERY_NS
        if sends:
            if not m.is_recorded:  # else the row of the step before has recorded them
                call(b.function, b.arguments_at)
            if fallback.stood_in != MissPolicy.NONE:
                return
            _write(m, b)
        clear(m, peers)
        for i in range(len(fresh)):
            fresh[i] = 0
        m.begun_ns = now_ns(m.scratch_at)
        all_sent = True
        if sends:
            b.published_ns = m.begun_ns
            all_sent = publish(m, peers, m.begun_ns, 0 if b.free else ANY)
        m.published_ns = m.begun_ns
        missing = -1
        if all_sent:
            missing = _take_what_is_there(m, peers) if b.free else gather(m, peers)
        if missing < 0:
            b.unfinished = 1
            return
        m.gathered_ns = now_ns(m.scratch_at)
        resolve(m, missing == 0, m.gathered_ns)
        late = _REUSED if b.free else _MISSED
        step_plant(m, late)
        _note(m, b, peers, times[b.done], late)
        if m.status or (m.row_memory_at and not m.is_recorded):
            return


@kernel
def write_states(step: int, batch: int) -> None:
    """Write the state of the next step for each peer.

    Parameters
    ----------
    step, batch : int
        Addresses of the records STEP and BATCH.
    """
    m, b = step_at(step), batch_at(batch)
    call(b.function, b.arguments_at)
    _write(m, b)


@kernel
def _note(m: Any, b: Any, peers: Any, time: Any, late: int) -> None:
    """Record the durations of a step, its results for `applied`, and the counts of each peer."""
    time.exchange_ns, time.plant_ns = m.gathered_ns - m.begun_ns, m.stepped_ns - m.called_ns
    time.outcome = outcome_of(m, late)
    answered = 0
    for k in range(len(peers)):
        peer = peers[k]
        if peer.sent:
            peer.owed += 1
        if peer.answered:
            peer.owed = 0
            peer.commands += 1
            peer.clamped_all += peer.out_of_range
            peer.stale_all += peer.stale
            answered = 1
    if answered:
        b.seq, b.step, b.clamped = m.seq_used, m.step_used, m.clamped
    if m.is_recorded:
        _pass_on(m, time)
    b.answered = answered
    b.done += 1
    m.step += 1


@kernel
def _pass_on(m: Any, time: Any) -> None:
    """Write the durations of a step for the row of the next one."""
    head = row_head_at(row_memory_at(m.row_memory_at).head_at)
    head.timed, head.exchange, head.plant = m.step, time.exchange_ns, time.plant_ns
    head.wake = head.slack = UNDEFINED
    head.attributed = head.miss = head.overrun = UNDEFINED


@kernel
def _write(m: Any, b: Any) -> None:
    """Write the plant's outputs into the state of each peer."""
    states = carray(states_at(b.states_at), (m.peers,))
    for k in range(len(states)):
        state = states[k]
        layout, size = layout_at(state.layout_at), state.payload_bytes
        payload = carray(bytes_at(state.payload_at), (size,))
        write_integer(layout, payload, 0, STATE_STEP, m.step)
        write_integer(layout, payload, 0, STATE_DEADLINE, b.deadline_ns)
        write_integer(layout, payload, 0, STATE_BUDGET, b.budget_ns)
        write_integer(layout, payload, 0, APPLIED_SEQ, b.seq)
        write_integer(layout, payload, 0, APPLIED_STEP, b.step)
        write_integer(layout, payload, 0, APPLIED_LATENESS, b.lateness_ns)
        write_reals(layout, payload, 0, 0, (float(m.step) * b.dt,))
        sources, at = carray(words_at(state.sources_at), (state.n_sources, 2)), 1
        for j in range(len(sources)):
            write_reals(layout, payload, 0, at, carray(numbers_at(sources[j, 0]), (sources[j, 1],)))
            at += sources[j, 1]
        payload[size - 1] = TRUE if b.clamped else FALSE


@kernel
def _take_what_is_there(m: Any, peers: Any) -> int:
    """Read the newest command of each peer, for any step (free mode).

    The result is the number of peers without a command, or -1 if Python must act.
    """
    result, missing = wait(m.epoll, m.events_at, len(peers) + 1, 0), len(peers)
    if result < 0:
        return -1
    for k in range(result):
        descriptor = event_descriptor(m.events_at, k)
        if descriptor == m.alarm:
            return -1
        which = peer_of(peers, descriptor)
        if which == len(peers) or event_flags(m.events_at, k) != IN:
            return -1
        received = receive_from(m, peers[which], True)
        if received < 0:
            return -1
        missing -= received
    return missing
