"""Miss policies, the bookkeeping of claims, and the records of both.

The arithmetic is plain and not fused: its bits are those of numpy. Nothing here allocates or raises.
"""

from __future__ import annotations

from typing import Any

from rtmms.base.contract import MissPolicy
from rtmms.base.jit import kernel
from rtmms.base.structs import FLAG, MARK, NUMBER, WORD, record, records_at, word_record

FALLBACK = word_record(
    "policy",  # a MissPolicy
    "hold_timeout_ns",  # age of a value from which the policy is `home`
    "complete_ns",  # instant at which all commands were last in time
    "grace_until_ns",  # misses until then do not count
    "excused",  # whether the last miss does not count
    "stood_in",  # of the last step: the applied MissPolicy, or NONE if no command was missing
)
"""Memory of a run's fallback commands; rtmms.loop.step_outcome.Fallback fills it."""

ACTUATOR = record(
    ("slope", NUMBER),  # change of the command over the last step that had one; only for `extrapolate`
    ("previous", NUMBER),  # the command of the step before
    ("neutral", NUMBER),
    ("lower", NUMBER),  # -inf, inf without a limit
    ("upper", NUMBER),
    ("home_step", NUMBER),  # largest change by `home` in one step
    ("valued_ns", WORD),  # instant of its last new value
    ("since_ns", WORD),  # instant of its claim
    ("held", FLAG),  # claimed, as the exchange reported last
    ("answered", FLAG),  # had a command since it was claimed
    ("missing", MARK),  # 1: needs a replacement; OLD: held for too long
)
"""Memory of one actuator; its command is in a separate array with those of the others."""

INTERRUPTED, PUBLISHED, RESOLVED = range(3)
"""Results of a compiled step.

INTERRUPTED: a signal came first. PUBLISHED: the state is sent, and Python does the rest. RESOLVED: the command is
complete, and the plant has been stepped if compiled code can.
"""

SEND_EVERY_NS = 1_000_000
"""Interval at which free mode sends a state, even without an answer to the last one, ns."""


FIRST_NS = 1_000_000_000
"""Time for the first command of a joining peer, ns.

Misses until then count neither for limits nor for `abort`.
"""

OLD = 2
"""Mark of missing commands that were held for too long; 1 for the others."""

fallbacks_at = records_at(FALLBACK)
actuators_at = records_at(ACTUATOR)


def clamp_to_limits(value: float, lower: float, upper: float) -> float:
    """Return a value, clamped to limits.

    Parameters
    ----------
    value, lower, upper : float
        Value and limits, in one unit.

    Returns
    -------
    float
        The clamped value.
    """
    if value < lower:
        return lower
    if value > upper:
        return upper
    return value


clamp = kernel(clamp_to_limits, inline=True)


@kernel(fused=False)
def move_home(actuators: Any, command: Any, mark: int) -> None:
    """Move actuators towards neutral at the limited rate.

    Parameters
    ----------
    actuators : (n,) ACTUATOR array
        Memory of the actuators.
    command : (n,) float64 array
        The command, changed in place.
    mark : int
        Value of `missing` of the actuators to move.
    """
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing == mark:
            step = actuator.home_step
            command[i] += max(min(actuator.neutral - command[i], step), -step)


@kernel(fused=False)
def extrapolate(actuators: Any, command: Any) -> None:
    """Continue the last change of missing commands, within their limits.

    Parameters
    ----------
    actuators : (n,) ACTUATOR array
        Memory of the actuators.
    command : (n,) float64 array
        The command, changed in place.
    """
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing == 1:
            command[i] += actuator.slope
        command[i] = clamp(command[i], actuator.lower, actuator.upper)
        actuator.previous = command[i]  # so that the change to the next good command is not too large


@kernel(fused=False)
def take_complete(now_ns: int, fallbacks: Any, actuators: Any, command: Any) -> None:
    """Record that every claimed actuator has its command.

    Parameters
    ----------
    now_ns : int
        Present instant, ns.
    fallbacks : (1,) FALLBACK array
        Memory of the policy.
    actuators : (n,) ACTUATOR array
        Memory of the actuators.
    command : (n,) float64 array
        The command.
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
    """Mark missing commands, note new values, and decide whether the miss counts.

    Parameters
    ----------
    now_ns : int
        Present instant, ns.
    fallbacks : (1,) FALLBACK array
        Memory of the policy.
    actuators : (n,) ACTUATOR array
        Memory of the actuators.
    fresh, renewed : (n,) uint8 array
        See rtmms.loop.ports.Exchange.
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
    """Apply the policy to missing commands, after `note_missing`.

    Commands that were held for too long go home. `abort` holds here, because a run that it ends does not call this.

    Parameters
    ----------
    now_ns : int
        Present instant, ns.
    fallbacks : (1,) FALLBACK array
        Memory of the policy.
    actuators : (n,) ACTUATOR array
        Memory of the actuators.
    command : (n,) float64 array
        The command, changed in place.
    """
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
