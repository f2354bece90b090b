"""The miss policies and the book-keeping of claims around them, over the memory of rtmms.loop.kernels.memory.

Plain arithmetic, no fused one: the bits are those of the same in numpy. Nothing here allocates or raises.
"""

from __future__ import annotations

from rtmms.jit import kernel
from rtmms.loop.kernels.memory import (
    ABORT,
    ANSWERED,
    COMMAND,
    COMPLETE_NS,
    EXCUSED,
    EXTRAPOLATE,
    GRACE_UNTIL_NS,
    HELD,
    HOLD,
    HOME,
    HOME_STEP,
    LOWER,
    MISSING,
    NEUTRAL,
    NONE,
    OLDEST_NS,
    POLICY,
    PREVIOUS,
    REMEMBER,
    SINCE,
    SLOPE,
    STOOD_IN,
    UPPER,
    VALUED,
)
from rtmms.spatial import Array

FIRST_NS = 1_000_000_000
"""For a peer that joins, to send its first command: misses until then count neither for limits nor `abort`."""

OLD = 2
"""The mark of what is missing and was held for too long; 1 of the others."""


@kernel(fused=False)
def go_home(numbers: Array, missing: Array, mark: int) -> None:
    """Towards neutral, at the limited rate, where `missing` has the mark."""
    for i in range(numbers.shape[1]):
        if missing[i] == mark:
            step = numbers[HOME_STEP, i]
            numbers[COMMAND, i] += max(min(numbers[NEUTRAL, i] - numbers[COMMAND, i], step), -step)


@kernel(fused=False)
def go_on(numbers: Array, missing: Array) -> None:
    """With the last change a step, where missing is 1; all within their limits."""
    for i in range(numbers.shape[1]):
        if missing[i] == 1:
            numbers[COMMAND, i] += numbers[SLOPE, i]
        numbers[COMMAND, i] = max(min(numbers[COMMAND, i], numbers[UPPER, i]), numbers[LOWER, i])
        numbers[PREVIOUS, i] = numbers[COMMAND, i]  # so that the next good one is not read as one great change


@kernel(fused=False)
def remember(numbers: Array) -> None:
    """After a step that had its commands: keep its change, for `extrapolate`."""
    for i in range(numbers.shape[1]):
        numbers[SLOPE, i] = numbers[COMMAND, i] - numbers[PREVIOUS, i]
        numbers[PREVIOUS, i] = numbers[COMMAND, i]


@kernel(fused=False)
def take_complete(now_ns: int, numbers: Array, flags: Array, words: Array) -> None:
    """Every claimed actuator has its command."""
    words[COMPLETE_NS], words[STOOD_IN] = now_ns, NONE
    for i in range(flags.shape[1]):
        flags[ANSWERED, i] = flags[HELD, i]
    if words[REMEMBER]:
        remember(numbers)


@kernel(fused=False)
def note_missing(now_ns: int, instants: Array, flags: Array, fresh: Array, renewed: Array, words: Array) -> None:
    """Which claimed actuators have no command, when the others had theirs, and whether that counts."""
    owed = False
    for i in range(flags.shape[1]):
        missing = flags[HELD, i] > fresh[i]
        flags[MISSING, i] = missing
        if fresh[i] or renewed[i]:
            instants[VALUED, i] = now_ns
        renewed[i] = 0
        flags[ANSWERED, i] |= fresh[i]
        owed = owed or (missing and (flags[ANSWERED, i] != 0 or now_ns - instants[SINCE, i] >= FIRST_NS))
    words[EXCUSED] = now_ns < words[GRACE_UNTIL_NS] or not owed


@kernel(fused=False)
def replace_missing(now_ns: int, numbers: Array, instants: Array, flags: Array, words: Array) -> None:
    """The policy on what is missing, after `note_missing`; `home` on what was held for too long. `abort` holds: whoever
    ends the run for it does not come here."""
    policy = words[POLICY]
    words[STOOD_IN] = HOLD if policy == ABORT else policy
    old = False
    for i in range(flags.shape[1]):
        if flags[MISSING, i] and now_ns - max(instants[VALUED, i], words[COMPLETE_NS]) > words[OLDEST_NS]:
            flags[MISSING, i] = OLD
            old = True
    if policy == EXTRAPOLATE:
        go_on(numbers, flags[MISSING])
    elif policy == HOME:
        go_home(numbers, flags[MISSING], 1)
    if old:
        go_home(numbers, flags[MISSING], OLD)
        words[STOOD_IN] = HOME
