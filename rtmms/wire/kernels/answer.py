"""Answering states without Python: one receive, the update, one send, for as long as all is usual."""

from __future__ import annotations

from typing import Any

from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from rtmms.jit import kernel
from rtmms.wire.kernels.numbers import FLOAT64, bits_of, put_whole, write_bits
from rtmms.wire.kernels.patterns import HEAD_SEQ, HEAD_STEP, read_command
from rtmms.wire.kernels.step import frame_extent
from rtmms.wire.kernels.system import (
    EAGAIN,
    IN,
    arm,
    bytes_at,
    event_descriptor,
    event_flags,
    now_ns,
    numbers_at,
    receive,
    send,
    wait,
    words_at,
)

(
    EPOLL, DATA, EVENTS, SCRATCH, BUFFER, BUFFER_BYTES, NEAR, LOCKSTEP, DELAY,
    PATTERNS, N_PATTERNS, VALUES, N_OUTPUTS,
    UPDATE, MEMORY, N_MEMORY, COMMAND, N_COMMAND,
    FRAME, ROOM, PIECES, PIECES_END, PLACES, SEQ,
    GOT, STEP, SENT, ANSWERED, LOOK_AT, FRAME_FROM, FRAME_BYTES, STEP_HEARD, ALARM,
) = range(33)  # fmt: skip
"""Given: descriptors, addresses, counts; whether the plant's clock is ours, and whether it waits for each answer; a
list of patterns of states (four words each), whose values are the time and the outputs; the update; room for a command
with its head, its bytes between the numbers and where those before each begin; the last seq (written, too); LOOK_AT:
once an answer was given after this instant, it pauses. Where something else is there, too, Python is to look around,
but not before the state's deadline, for which ALARM is set: until then others on this core may have theirs to answer.
Written: bytes in BUFFER that are for the
general reader, the step that was answered last, bytes sent or -errno of the frame that begins at FRAME_FROM, and how
many were answered."""
WIDTH = 33

PATTERN, BYTES, ROWS, N_ROWS = range(4)
LOOK, UNREAD, UNSENT, FAILED, PAUSE = range(5)
"""Why it came back: something else to look at, or a signal; a message for the general reader; the last command left in
part; the update raised something; only so that Python can see to signals."""
HEAD = 9
"""Bytes before a command for the head of its frame."""

_ARRAY = types.Array(types.float64, 1, "C")
SIGNATURE = types.none(types.float64, _ARRAY, _ARRAY, _ARRAY)


@intrinsic
def _call_update(typing_context: Any, function: Any, time: Any, outputs: Any, memory: Any, command: Any) -> Any:
    """A compiled function of SIGNATURE at an address, as numba itself would call it; 1 where it raised something."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.call_conv.get_function_type(types.none, SIGNATURE.args)
        target = builder.inttoptr(args[0], kind.as_pointer())
        status, _ = context.call_conv.call_function(builder, target, types.none, SIGNATURE.args, args[1:])
        return builder.zext(status.is_error, cgutils.ir.IntType(64))

    return types.int64(types.int64, *SIGNATURE.args), generate


@kernel
def answer(at: int) -> int:
    """States, by the memory at this address, until there is something for Python."""
    w = carray(words_at(at), (WIDTH,))
    values = carray(numbers_at(w[VALUES]), (1 + w[N_OUTPUTS],))
    outputs = carray(numbers_at(w[VALUES] + 8), (w[N_OUTPUTS],))
    memory = carray(numbers_at(w[MEMORY]), (w[N_MEMORY],))
    command = carray(numbers_at(w[COMMAND]), (w[N_COMMAND],))
    head = carray(words_at(w[SCRATCH] + 32), (2,))
    w[ANSWERED] = w[GOT] = 0
    w[STEP_HEARD] = -1
    while True:
        found, came = wait(w[EPOLL], w[EVENTS], 4, -1), False
        for k in range(found):
            if event_descriptor(w[EVENTS], k) == w[DATA]:
                came = True
                if event_flags(w[EVENTS], k) != IN:
                    return UNREAD
        if not came:
            return LOOK
        newest = False
        while not newest:
            got = receive(w[DATA], w[BUFFER], w[BUFFER_BYTES])
            if got == -EAGAIN and w[STEP_HEARD] >= 0:
                break  # the last one is late, but there is none after it
            if got <= 0:
                return UNREAD
            w[GOT] = got
            if not _read_all(w, carray(bytes_at(w[BUFFER]), (got,)), got, head, values):
                return UNREAD
            w[GOT], w[STEP_HEARD] = 0, head[HEAD_STEP]
            newest = w[LOCKSTEP] != 0 or (w[NEAR] != 0 and head[HEAD_SEQ] > now_ns(w[SCRATCH]))
        w[STEP_HEARD] = -1
        w[STEP] = head[HEAD_STEP]
        if _call_update(w[UPDATE], values[0], outputs, memory, command):
            return FAILED
        w[SEQ] += 1
        _write(w, command)
        w[SENT] = send(w[DATA], w[FRAME] + w[FRAME_FROM], w[FRAME_BYTES])
        w[ANSWERED] += 1
        if w[SENT] != w[FRAME_BYTES]:
            return UNSENT
        now = now_ns(w[SCRATCH])
        if found > 1:
            deadline = head[HEAD_SEQ]
            if w[NEAR] == 0 or w[LOCKSTEP] != 0 or deadline <= now:
                return LOOK  # where no state is waited for
            arm(w[ALARM], deadline, w[SCRATCH])
        elif now >= w[LOOK_AT]:
            return PAUSE


@kernel
def _read_all(w: Any, buffer: Any, got: int, head: Any, values: Any) -> bool:
    """Whether what came are whole states, one after the other; head and values are the last one's."""
    at = 0
    while at < got:
        begin, end = frame_extent(buffer, at, got)
        if begin < 0 or not _read(w, buffer, begin, end, head, values) or head[HEAD_STEP] < 0:
            return False
        at = end
    return True


@kernel
def _read(w: Any, frame: Any, begin: int, end: int, head: Any, values: Any) -> bool:
    """Whether it is a state of one of the patterns: one for each policy that stood in, as a rule."""
    patterns = carray(words_at(w[PATTERNS]), (w[N_PATTERNS], 4))
    for k in range(w[N_PATTERNS]):
        pattern = carray(bytes_at(patterns[k, PATTERN]), (patterns[k, BYTES],))
        rows = carray(words_at(patterns[k, ROWS]), (patterns[k, N_ROWS], 3))
        if read_command(frame, begin, end, pattern, rows, head, values):
            return True
    return False


@kernel
def _write(w: Any, command: Any) -> None:
    """A command and the head of its frame, from its pieces: before seq, before step, and before each value."""
    frame, pieces = carray(bytes_at(w[FRAME]), (w[ROOM],)), carray(bytes_at(w[PIECES]), (w[PIECES_END],))
    places = carray(words_at(w[PLACES]), (3 + len(command),))
    at = HEAD
    for k in range(2 + len(command)):
        for j in range(places[k], places[k + 1]):
            frame[at] = pieces[j]
            at += 1
        if k < 2:
            at = put_whole(frame, at, w[SEQ] if k == 0 else w[STEP] + w[DELAY])
        else:
            frame[at] = FLOAT64
            write_bits(frame, at + 1, bits_of(command[k - 2]), 8)
            at += 9
    size = at - HEAD
    w[FRAME_FROM] = HEAD - 2 if size < 256 else 0
    if size < 256:
        frame[HEAD - 2], frame[HEAD - 1] = 0, size
    else:
        frame[0] = 2
        write_bits(frame, 1, size, 8)
    w[FRAME_BYTES] = at - w[FRAME_FROM]
