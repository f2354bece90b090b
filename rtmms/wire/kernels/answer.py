"""Compiled answers to states: one receive, the update, one send.

The kernel returns to Python as soon as anything unusual comes.
"""

from __future__ import annotations

from typing import Any

from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from rtmms.base.jit import kernel
from rtmms.base.pointers import bytes_at, numbers_at, words_at
from rtmms.wire.kernels.step import answer_at, frame_extent
from rtmms.wire.kernels.step_message_layout import layout_at, read_message, write_integer, write_reals
from rtmms.wire.kernels.system import (
    EAGAIN,
    IN,
    INTEGERS_AT,
    arm,
    event_descriptor,
    event_flags,
    now_ns,
    receive,
    send,
    wait,
)
from rtmms.wire.protocol.step_message_layout import COMMAND_SEQ, COMMAND_STEP, STATE_DEADLINE, STATE_STEP

LOOK, UNREAD, UNSENT, FAILED, PAUSE = range(5)
"""Results of `answer`.

LOOK: another event or a signal. UNREAD: a message for the general reader. UNSENT: the last command left in part.
FAILED: the update raised an error. PAUSE: Python is to handle signals.
"""
HEAD = 9
"""Bytes before a command for the head of its frame."""

_ARRAY = types.Array(types.float64, 1, "C")
SIGNATURE = types.none(types.float64, _ARRAY, _ARRAY, _ARRAY)


@intrinsic
def _call_update(typing_context: Any, function: Any, time: Any, outputs: Any, memory: Any, command: Any) -> Any:
    """Call a compiled function of SIGNATURE at an address.

    It is called as numba itself would call it. The result is 1 if it raised an error.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.call_conv.get_function_type(types.none, SIGNATURE.args)
        target = builder.inttoptr(args[0], kind.as_pointer())
        status, _ = context.call_conv.call_function(builder, target, types.none, SIGNATURE.args, args[1:])
        return builder.zext(status.is_error, cgutils.ir.IntType(64))

    return types.int64(types.int64, *SIGNATURE.args), generate


@kernel
def answer(at: int) -> int:
    """Answer states until Python is needed.

    Parameters
    ----------
    at : int
        Address of the memory, a record ANSWER.

    Returns
    -------
    int
        LOOK, UNREAD, UNSENT, FAILED or PAUSE.
    """
    m = answer_at(at)
    values = carray(numbers_at(m.values_at), (1 + m.n_outputs,))
    outputs = carray(numbers_at(m.values_at + 8), (m.n_outputs,))
    memory = carray(numbers_at(m.memory_at), (m.n_memory,))
    command = carray(numbers_at(m.command_at), (m.n_command,))
    integers = carray(words_at(m.scratch_at + INTEGERS_AT), (6,))
    m.answered = m.got = 0
    m.step_received = -1
    while True:
        result, came = wait(m.epoll, m.events_at, 4, -1), False
        for k in range(result):
            if event_descriptor(m.events_at, k) == m.data:
                came = True
                if event_flags(m.events_at, k) != IN:
                    return UNREAD
        if not came:
            return LOOK
        newest = False
        while not newest:
            got = receive(m.data, m.buffer_at, m.buffer_bytes)
            if got == -EAGAIN and m.step_received >= 0:
                break  # the last state is late, but there is no newer one
            if got <= 0:
                return UNREAD
            m.got = got
            if m.lockstep and m.delay and frame_extent(carray(bytes_at(m.buffer_at), (got,)), 0, got)[1] != got:
                return UNREAD  # several states, each of which the plant will wait for
            if not _read_all(m, carray(bytes_at(m.buffer_at), (got,)), got, integers, values):
                return UNREAD
            m.got, m.step_received = 0, integers[STATE_STEP]
            newest = m.lockstep != 0 or (m.near != 0 and integers[STATE_DEADLINE] > now_ns(m.scratch_at))
        m.step_received = -1
        m.step = integers[STATE_STEP]
        if _call_update(m.update, values[0], outputs, memory, command):
            return FAILED
        m.seq += 1
        _write(m, command)
        m.sent = send(m.data, m.frame_at + m.frame_from, m.frame_bytes)
        m.answered += 1
        if m.sent != m.frame_bytes:
            return UNSENT
        now = now_ns(m.scratch_at)
        if result > 1:
            deadline = integers[STATE_DEADLINE]
            if m.near == 0 or m.lockstep != 0 or deadline <= now:
                return LOOK  # where no state is awaited
            arm(m.alarm, deadline, m.scratch_at)
        elif now >= m.look_ns:
            return PAUSE


@kernel
def _read_all(m: Any, buffer: Any, got: int, integers: Any, values: Any) -> bool:
    """Return whether the received bytes are whole states, one after the other.

    Integers and values are those of the last state.
    """
    at = 0
    while at < got:
        begin, end = frame_extent(buffer, at, got)
        if begin < 0 or not read_message(m.state_layout_at, buffer, begin, end, integers, values):
            return False
        if integers[STATE_STEP] < 0:
            return False
        at = end
    return True


@kernel
def _write(m: Any, command: Any) -> None:
    """Write the numbers of a command into its frame."""
    frame, layout = carray(bytes_at(m.frame_at), (m.frame_from + m.frame_bytes,)), layout_at(m.command_layout_at)
    write_integer(layout, frame, HEAD, COMMAND_SEQ, m.seq)
    write_integer(layout, frame, HEAD, COMMAND_STEP, m.step + m.delay)
    write_reals(layout, frame, HEAD, 0, command)
