"""The memory of a compiled step: one record for the step, one for each peer; and of a batch of steps in one call.

rtmms.wire.plant.fast_path fills it. A field is given by Python, or written by compiled code for Python.
"""

from __future__ import annotations

from rtmms.loop.kernels.memory import NUMBER, WORD, record, record_at, records_at, words

UNREAD = -(1 << 40)
"""In `got` of a peer: nothing for the general reader."""

AFTER_DEADLINE = 4
"""Messages that are still looked at when time is up, by the general path as well."""

STEP = words(
    # given
    "epoll", "alarm",  # descriptors
    "peers", "actuators",  # counts
    "due_ns", "deadline_ns",  # 0: now; 0: none
    "step",
    "peers_at", "values_at", "events_at", "scratch_at",
    "fallbacks_at", "actuators_at", "command_at", "fresh_at", "renewed_at",  # the loop's, see loop.kernels.memory
    "function", "arguments_at", "given_at",  # the plant's step (0: it is Python), and where it reads its command
    "row_memory_at",  # see loop.kernels.row; 0: Python writes the row
    "tape_at", "tape_rows",  # where the command of each step is written, for as many steps
    "coupled_at", "n_coupled",  # (n, 3) float64: places of two commands, and up to which difference they are obeyed
    # written
    "begun_ns", "published_ns", "gathered_ns", "called_ns", "stepped_ns",
    "status",  # of the plant
    "complete",  # all commands were in hand
    "seq_used", "step_used", "lateness_ns", "clamped",  # what `applied` is to say; seq_used -1: as before
    "kept",  # the row is written
)  # fmt: skip

PEER = words(
    # given
    "descriptor",
    "state_at", "state_bytes", "budget_place",  # its state as it leaves, and where in it the budget stands (0: nowhere)
    "own_at", "n_own",  # its actuators
    "pattern_at", "pattern_bytes", "pattern_rows_at", "n_pattern_rows", "targets_at", "n_targets",  # of its commands
    "buffer_at", "buffer_bytes",  # room for what it says
    # written
    "seq",  # of its newest command (given, too)
    "sent",  # bytes, or -errno
    "answered",  # its command was taken
    "got",  # bytes in its buffer that are for the general reader, or UNREAD
    "out_of_range",  # a value was moved to its limit
    "owed", "commands", "clamped_all",  # of a batch: states unanswered, commands, those that were out of range
)  # fmt: skip

BATCH = record(
    # given
    ("dt", NUMBER),  # s
    *((name, WORD) for name in (
        "most", "until_ns", "free",  # steps; the instant after which none is begun; nothing is waited for
        "function", "arguments_at",  # the plant's account
        "templates_at", "times_at",  # a TEMPLATE for each peer, a TIME for each step
        "deadline_ns", "budget_ns", "lateness_ns",  # of the state, and of `applied` in it
        # given and written
        "seq", "step", "clamped",  # what `applied` says
        "published_ns", "answered",  # in free: when a state was sent, and whether it was answered
        # written
        "done", "unfinished",  # steps; one more was begun and handed over
    )),
)  # fmt: skip

TEMPLATE = words(
    "payload_at", "payload_bytes",  # the message
    "wholes_at", "reals_at", "n_reals",  # where its numbers stand
    "sources_at", "n_sources",  # where they come from: address and count of each piece
    "flat_at",  # room for them
)  # fmt: skip

TIME = words("exchange_ns", "plant_ns", "complete")
"""Of a step of a batch: how long its parts took, and whether all commands were in hand."""

PATTERN = words("frame_at", "bytes", "rows_at", "n_rows")
"""Of a message of a known layout, see message_layout."""

ANSWER = words(
    # given
    "epoll", "data", "alarm", "events_at", "scratch_at",
    "buffer_at", "buffer_bytes",
    "near", "lockstep", "delay",  # the plant's clock is ours; it waits for each answer; steps
    "patterns_at", "n_patterns",  # of states; their values are the time and the outputs
    "values_at", "n_outputs",
    "update", "memory_at", "n_memory", "command_at", "n_command",
    "frame_at", "room", "pieces_at", "pieces_bytes", "places_at",  # a command: its bytes between the numbers
    "look_ns",  # once an answer was given after this instant, it pauses
    # written
    "seq",  # of the last command (given, too)
    "got",  # bytes in the buffer that are for the general reader
    "step",  # that was answered last
    "step_heard",
    "sent", "frame_from", "frame_bytes",  # of the last command: bytes sent, or -errno; where it begins
    "answered",  # how many
)  # fmt: skip
"""Of a controller that answers in compiled code. Where something else has come as well, Python looks at it, but not
before the state's deadline, for which the alarm is set: until then others on this core may have theirs to answer."""

step_at, peers_at = record_at(STEP), records_at(PEER)
batch_at, templates_at, times_at = record_at(BATCH), records_at(TEMPLATE), records_at(TIME)
answer_at, patterns_at = record_at(ANSWER), records_at(PATTERN)
