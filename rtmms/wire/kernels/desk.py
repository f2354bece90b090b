"""Where things stand in the memory of a compiled step: one list of words for the step, one row for each peer."""

from __future__ import annotations

(
    EPOLL, ALARM, PEERS, ACTUATORS, DUE, DEADLINE, STEP,
    ROWS, VALUES, EVENTS, SCRATCH, LOWER_UPPER,
    NUMBERS, INSTANTS, FLAGS, WORDS, FRESH, RENEWED,
    FUNCTION, ARGUMENTS, TO_PLANT,
    BEGUN, PUBLISHED, GATHERED, CALLED, STEPPED, STATUS, COMPLETE,
    SEQ_USED, STEP_USED, LATENESS, CLAMPED,
    ROW_MEMORY, KEPT,
) = range(34)  # fmt: skip
"""Given: descriptors, counts, instants in ns (DUE 0: now; DEADLINE 0: none), addresses: of the peers' rows, of scratch,
of the loop's memory (rtmms.loop.kernels.memory), of the plant's step (FUNCTION 0: it is Python) and where it looks for
its command, of the recorder's row (rtmms.loop.kernels.row_memory; 0: Python writes it). Written: instants, the plant's
status, whether all was in hand, what `applied` is to say (SEQ_USED -1: as before), and whether the row is written."""
DESK = 34

(
    DESCRIPTOR, STATE, STATE_BYTES, BUDGET_AT, OWN, N_OWN, PATTERN, PATTERN_BYTES, PATTERN_ROWS, N_ROWS, TARGETS,
    N_TARGETS, BUFFER, BUFFER_BYTES, SEQ,
    SENT, ANSWERED, GOT, OUT_OF_RANGE,
    OWED, COMMANDS, CLAMPED_ALL,
) = range(22)  # fmt: skip
"""Given: its descriptor; its state as it leaves, and where in it the budget stands; its actuators; the pattern of its
commands; room for what it says; its newest seq (written, too). Written: bytes sent or -errno, whether its command was
taken, bytes in BUFFER that are for the general reader (UNREAD: none), whether a value was moved to its limit."""
ROW = 22

UNREAD = -(1 << 40)
