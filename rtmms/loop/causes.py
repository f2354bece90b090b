"""Who is to blame for a miss or an overrun: pure functions on what is known of one step.

A fault has one cause. What is certain goes first (the peer is dead), then what an independent witness saw (the machine
did not run a core), then what our own clock says of our own parts; the rest is the peer's, or unknown.
"""

from __future__ import annotations

from typing import NamedTuple

PEER_LATE, PEER_GONE, PLANT_SLOW, OWN_EXCHANGE, MACHINE, PAGE_FAULT, INVOLUNTARY_SWITCH, UNKNOWN = range(8)
CAUSES = (
    "peer_late", "peer_gone", "plant_slow", "own_exchange", "machine", "page_fault", "involuntary_switch", "unknown",
)  # fmt: skip
NO_CAUSE = -1
LEAST_LIMIT_NS = 60_000
Stall = tuple[int, int, int]
"""(begin ns, end ns, core): between the two the core's witness was due and did not run."""


class BadStep(NamedTuple):
    """A step that missed or overran. Instants on CLOCK_MONOTONIC in ns, in their order.

    due        its instant on the schedule; where a mode has none, that of its beginning
    rested     the end of all that was done in the slack before it
    begun, published, gathered    woken; state sent; commands in hand, or given up
    called, stepped, ended        plant.step called, and back; the end of the step
    deadline   for commands; 0 for none
    faults, switches   page faults and involuntary switches of the loop's thread from `rested` on; -1 where not counted
    """

    step: int
    missed: int
    overran: int
    due: int
    rested: int
    begun: int
    published: int
    gathered: int
    called: int
    stepped: int
    ended: int
    deadline: int
    faults: int
    switches: int


class Times(NamedTuple):
    """The instants of a step, as in BadStep."""

    due: int
    begun: int
    published: int
    gathered: int
    called: int
    stepped: int
    ended: int
    deadline: int


class Setting(NamedTuple):
    """What a bad step is judged by.

    limit_ns   lateness that counts: of a stall, of a part of ours (see `limit_ns`)
    room_ns    time in a period after the deadline, which is the plant's
    faults, switches   usual number of them in a step
    """

    limit_ns: int
    room_ns: int
    faults: float = 0.0
    switches: float = 0.0


def limit_ns(deadline_ns: int, usual_ns: int) -> int:
    """Half of what a usual exchange leaves of the deadline: less than that could not have cost the step."""
    return max(LEAST_LIMIT_NS, (deadline_ns - usual_ns) // 2)


def stalled(begin_ns: int, end_ns: int, limit: int, stalls: list[Stall]) -> bool:
    """Whether a stall of at least the limit overlaps [begin, end]."""
    return any(end - begin >= limit and begin <= end_ns and end >= begin_ns for begin, end, _ in stalls)


def window(step: BadStep) -> tuple[int, int]:
    """Where a stall would have hurt this step; when the slack before it did not end in time, that counts too."""
    return min(step.due, step.begun) - max(0, step.rested - step.due), step.ended if step.overran else step.gathered


def miss_cause(step: BadStep, setting: Setting, *, gone: bool, machine: bool, inherited: int = NO_CAUSE) -> int:
    """Cause of a miss.

    gone       a peer whose command is missing is dead, and has said nothing since
    machine    a witness saw a stall in its window
    inherited  cause of the step before, if that ended after this one was due
    """
    if gone:
        return PEER_GONE
    if machine:
        return MACHINE
    if step.published - step.due <= setting.limit_ns:
        return PEER_LATE
    if inherited != NO_CAUSE:
        return inherited
    return _own(step, setting, late=step.begun - step.due, busy=step.published - step.begun)


def overrun_cause(
    step: BadStep, setting: Setting, *, machine: bool, missed: int = NO_CAUSE, inherited: int = NO_CAUSE
) -> int:
    """Cause of an overrun; missed: that of the miss of the same step; the other arguments are those of miss_cause."""
    if machine:
        return MACHINE
    late, plant = step.begun - step.due, step.stepped - step.called
    over = step.gathered - step.deadline if step.deadline else 0
    busy = step.published - step.begun + max(0, over) + step.called - step.gathered + step.ended - step.stepped
    if plant >= max(late, busy) and plant > setting.room_ns:
        return _noticed(step, setting, PLANT_SLOW)
    if missed in (PEER_LATE, PEER_GONE) and max(late, over) <= setting.limit_ns:
        return missed  # waited for until the deadline: with its command in time the step had ended in time
    if late >= busy and inherited != NO_CAUSE:
        return inherited
    return _own(step, setting, late, busy)


def _own(step: BadStep, setting: Setting, late: int, busy: int) -> int:
    """We were late ourselves: woken late, or busy for long."""
    if busy > late or step.rested > step.due:
        return _noticed(step, setting, OWN_EXCHANGE)
    return _noticed(step, setting, UNKNOWN)


def _noticed(step: BadStep, setting: Setting, otherwise: int) -> int:
    """What the kernel counted for our thread in this step and does not count in most."""
    if step.faults > 3.0 * setting.faults:
        return PAGE_FAULT
    if step.switches > 3.0 * setting.switches:
        return INVOLUNTARY_SWITCH
    return otherwise
