"""The miss policies and the bookkeeping of claims around them, over the records of rtmms.loop.kernels.memory.

Plain arithmetic, none of it fused: the bits are those of the same in numpy. Nothing here allocates or raises.
"""

from __future__ import annotations

from typing import Any

from rtmms.contract import MissPolicy
from rtmms.jit import kernel
from rtmms.loop.kernels.memory import ACTUATOR, FALLBACK, records_at

FIRST_NS = 1_000_000_000
"""For a peer that joins, to send its first command: misses until then count neither for limits nor `abort`."""

OLD = 2
"""The mark of what is missing and was held for too long; 1 of the others."""

fallbacks_at, actuators_at = records_at(FALLBACK), records_at(ACTUATOR)


def within(value: float, lower: float, upper: float) -> float:
    """The value, moved to the limit that it is beyond."""
    if value < lower:
        return lower
    if value > upper:
        return upper
    return value


clamp = kernel(within, inline=True)


@kernel(fused=False)
def move_home(actuators: Any, command: Any, mark: int) -> None:
    """`home`: towards neutral, at the limited rate, where `missing` has the mark."""
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing == mark:
            step = actuator.home_step
            command[i] += max(min(actuator.neutral - command[i], step), -step)


@kernel(fused=False)
def extrapolate(actuators: Any, command: Any) -> None:
    """With the last change a step, where missing is 1; all within their limits."""
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing == 1:
            command[i] += actuator.slope
        command[i] = clamp(command[i], actuator.lower, actuator.upper)
        actuator.previous = command[i]  # so that the next good one is not read as one great change


@kernel(fused=False)
def take_complete(now_ns: int, fallbacks: Any, actuators: Any, command: Any) -> None:
    """Every claimed actuator has its command.

    fallbacks  (1,) FALLBACK;  actuators (n,) ACTUATOR;  command (n,) float64, as in all that follow
    """
    memory = fallbacks[0]
    memory.complete_ns, memory.stood_in = now_ns, MissPolicy.NONE
    for i in range(len(actuators)):
        actuators[i].answered = actuators[i].held
    if memory.policy == MissPolicy.EXTRAPOLATE:
        for i in range(len(actuators)):
            actuators[i].slope = command[i] - actuators[i].previous
            actuators[i].previous = command[i]


@kernel(fused=False)
def note_missing(now_ns: int, fallbacks: Any, actuators: Any, fresh: Any, renewed: Any) -> None:
    """Which claimed actuators have no command, when the others had theirs, and whether that counts.

    fresh, renewed   (n,) uint8, see rtmms.loop.ports.Exchange
    """
    owed = False
    for i in range(len(actuators)):
        actuator = actuators[i]
        missing = actuator.held and fresh[i] == 0
        actuator.missing = missing
        if fresh[i] or renewed[i]:
            actuator.valued_ns = now_ns
        renewed[i] = 0
        if fresh[i]:
            actuator.answered = True
        owed = owed or (missing and (actuator.answered or now_ns - actuator.since_ns >= FIRST_NS))
    fallbacks[0].excused = now_ns < fallbacks[0].grace_until_ns or not owed


@kernel(fused=False)
def replace_missing(now_ns: int, fallbacks: Any, actuators: Any, command: Any) -> None:
    """The policy on what is missing, after `note_missing`; `home` on what was held for too long. `abort` holds: a run
    that ends for it does not come here."""
    memory = fallbacks[0]
    memory.stood_in = memory.policy
    if memory.policy == MissPolicy.ABORT:
        memory.stood_in = MissPolicy.HOLD
    old = False
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing and now_ns - max(actuator.valued_ns, memory.complete_ns) > memory.hold_timeout_ns:
            actuator.missing = OLD
            old = True
    if memory.policy == MissPolicy.EXTRAPOLATE:
        extrapolate(actuators, command)
    elif memory.policy == MissPolicy.HOME:
        move_home(actuators, command, 1)
    if old:
        move_home(actuators, command, OLD)
        memory.stood_in = MissPolicy.HOME
