"""Each bad step of a run to its cause: in the step a few whole numbers are kept, in the slack they are judged.

Judgement waits until every detector has reported on the step's time, and until a peer that may be dead is known
to be. All memory is made before the run.
"""

from __future__ import annotations

import math
import sys
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rtmms.loop.ports import Silent


(
    PEER_LATE, PEER_GONE, PLANT_SLOW, OWN_EXCHANGE, MACHINE, PAGE_FAULT, INVOLUNTARY_SWITCH, UNKNOWN, PEER_STARVED,
    PEER_REFUSED,
) = range(10)  # fmt: skip
CAUSES = (
    "peer_late", "peer_gone", "plant_slow", "loop_overhead", "machine", "page_fault", "involuntary_switch", "unknown",
    "peer_starved", "peer_refused",
)  # fmt: skip
NO_CAUSE = -1
LEAST_LIMIT_NS = 60_000
Stall = tuple[int, int, int]
"""(begin ns, end ns, core): between the two the core's stall detector was due and did not run."""


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


def miss_cause(
    step: BadStep, setting: Setting, *, gone: bool, machine: bool, starved: bool = False, refused: bool = False,
    inherited: int = NO_CAUSE,
) -> int:  # fmt: skip
    """Cause of a miss.

    gone       a peer whose command is missing is dead, and has sent nothing since
    starved    so it is, but its connection stands: its process does not run, or is stopped
    refused    its command for the step came and was refused
    machine    a stall detector saw a stall in its window
    inherited  cause of the step before, if that ended after this one was due
    """
    if gone:
        return PEER_STARVED if starved else PEER_GONE
    if refused:
        return PEER_REFUSED
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
    if missed in (PEER_LATE, PEER_GONE, PEER_STARVED, PEER_REFUSED) and max(late, over) <= setting.limit_ns:
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


CAPACITY = 4096
"""Bad steps that can wait for judgement: a second of nothing else at 4 kHz; more are `unknown`."""
PATIENCE_NS = 100_000_000
KEPT_STALLS = 1024
MAX_UNREPORTED = 1024
"""Judged steps that wait for the recorder to take them, one a step."""
LISTED, LISTED_MACHINE = 1000, 200
"""Bad steps that are listed: those the machine does not explain, and of the others."""
_WIDTH = len(BadStep._fields)
_LITTLE_NS = 250


class Saw(Protocol):
    """What attribution needs of the witnesses' memory; see rtmms.loop.stall_detector.Stalls."""

    def take(self) -> list[Stall]: ...
    def looked_ns(self) -> int: ...
    def await_looked(self, until_ns: int) -> None: ...

    look_ns: int


def _no_counters() -> tuple[int, int]:
    return 0, 0


def thread_counters() -> Callable[[], tuple[int, int]]:
    """A function that gives (page faults, involuntary switches) of the calling thread so far; 0.5 us."""
    if sys.platform != "linux":
        return _no_counters
    from resource import RUSAGE_THREAD, getrusage

    def read() -> tuple[int, int]:
        usage = getrusage(RUSAGE_THREAD)
        return usage[6] + usage[7], usage[15]

    return read


class FaultAttribution:
    """The causes of a run's misses and overruns.

    period_ns, deadline_ns   of the schedule; period 0 where there is none
    saw        the witnesses' memory, None without them
    counters   (page faults, involuntary switches) of the loop's thread so far
    busy_ns    (read by the loop) a step that ends so long after its instant is looked at for an overrun
    usual_ns   a usual exchange, p50 of those that were answered in time, within 2 %; 0 before the first
    look_after_ns  (written by who starts the witnesses) how long after the instant of a step they look; 0: anywhere
    misses, overruns   count for each of CAUSES
    """

    def __init__(
        self, period_ns: float, deadline_ns: int, saw: Saw | None = None,
        counters: Callable[[], tuple[int, int]] | None = None, capacity: int = CAPACITY,
    ) -> None:  # fmt: skip
        self.period_ns, self.deadline_ns, self.saw = period_ns, deadline_ns, saw
        self.busy_ns = period_ns - 1000 if period_ns else math.inf
        self._counters = counters or thread_counters()
        self._capacity = capacity
        self._rows = array("q", [0]) * (capacity * _WIDTH)
        self._silent: list[Sequence[Silent]] = [()] * capacity
        self._list = array("q", [0]) * ((LISTED + LISTED_MACHINE) * (_WIDTH + 2))
        self._unreported = array("q", [0]) * (MAX_UNREPORTED * 3)
        self._stalls: list[Stall] = []
        self.usual_ns = self.look_after_ns = self._due = 0
        self.clear()

    def clear(self) -> None:
        """Back to nothing, for a run that is reset."""
        self.misses, self.overruns = [0] * len(CAUSES), [0] * len(CAUSES)
        self._listed = [0, 0]
        self.unreported, self._next_reported = 0, 0
        self.waiting, self._first, self.overflow = 0, 0, 0
        self.stalls_seen, self.stalled_steps, self.longest_ns, self._last_touched = 0, 0, 0, -1
        self._looks = 0
        self._bad_counts = [0, 0]
        self._before: tuple[int, int, int] = (-2, 0, NO_CAUSE)
        self._silent_now: Sequence[Silent] = ()
        self.rested = 0
        self._faults, self._switches = self._first_counts = self._counters()
        self._new_faults = self._new_switches = 0

    # --- within the step --------------------------------------------------------------------------------------------

    def look(self, silent: Sequence[Silent]) -> None:
        """This step is, or may be, a bad one: what must be read before the slack changes it."""
        faults, switches = self._counters()
        self._new_faults, self._new_switches = faults - self._faults, switches - self._switches
        self._silent_now = silent

    def keep(self, step: int, missed: bool, overran: bool, times: Times) -> None:
        """A bad step, after `look`: into fixed memory."""
        if self.waiting == self._capacity:
            self.overflow += missed + overran
            return
        place = (self._first + self.waiting) % self._capacity
        due, *others = times
        row = (step, missed, overran, due, self.rested, *others, self._new_faults, self._new_switches)
        for column, value in enumerate(row, place * _WIDTH):
            self._rows[column] = value
        self._bad_counts[0] += self._new_faults
        self._bad_counts[1] += self._new_switches
        self._silent[place] = self._silent_now
        self.waiting += 1

    def answered(self, exchange_ns: int) -> None:
        """All commands of a step were there so long after its state: one more for the median."""
        usual = self.usual_ns
        little = max(_LITTLE_NS, usual >> 6)
        self.usual_ns = exchange_ns if not usual else usual + little if exchange_ns > usual else usual - little

    def rest(self, now_ns: int, due_ns: int) -> None:
        """The slack's work of the step that was due then is done: counters from here on are the next step's."""
        self.rested, self._due = now_ns, due_ns
        self._faults, self._switches = self._counters()
        self._looks += 1

    # --- in the slack -----------------------------------------------------------------------------------------------

    def judge(self, now_ns: int, most: int = CAPACITY, *, last: bool = False) -> None:
        """Judge what can be judged, at most so many steps (5 us each); all of them when the run is over."""
        limit = limit_ns(self.deadline_ns, self.usual_ns)
        looked_ns = now_ns
        if self.saw is not None:
            if self.look_after_ns:  # each look costs what it interrupts some 20 us: not the exchanges
                self.saw.look_ns = self._due + self.look_after_ns
            looked_ns = self.saw.looked_ns()  # before the stalls: what was written by then is read by now
            for stall in self.saw.take():
                self._touch(stall, limit)
        room = max(0, int(self.period_ns) - self.deadline_ns)
        looks = max(1, self._looks)
        good = self._faults - self._first_counts[0] - self._bad_counts[0]  # the usual is that of good steps
        good_switches = self._switches - self._first_counts[1] - self._bad_counts[1]
        setting = Setting(limit, room, good / looks, good_switches / looks)
        for _ in range(min(most, self.waiting)):
            at = self._first * _WIDTH
            step = BadStep(*self._rows[at : at + _WIDTH])
            if not last and now_ns - step.ended < PATIENCE_NS and (looked_ns <= step.ended or self._undecided(step)):
                return
            self._decide(step, setting)
            self._silent[self._first] = ()
            self._first = (self._first + 1) % self._capacity
            self.waiting -= 1

    def finish(self, now_ns: int) -> None:
        """The run is over: judge what is left, when the detectors have reported on it."""
        if self.saw is not None and self.waiting:
            self.saw.await_looked(now_ns)
        self.judge(now_ns, last=True)

    def _undecided(self, step: BadStep) -> bool:
        """A peer that has gone is known to be within a few steps."""
        return bool(step.missed) and not self._gone()

    def _gone(self) -> bool:
        return any(silent.gone for silent in self._silent[self._first])

    def _starved(self) -> bool:
        """All that are gone are connected all the same."""
        return all(silent.starved for silent in self._silent[self._first] if silent.gone)

    def _refused(self) -> bool:
        return any(silent.refused for silent in self._silent[self._first])

    def _decide(self, step: BadStep, setting: Setting) -> None:
        machine = stalled(*window(step), setting.limit_ns, self._stalls)
        number, ended, cause = self._before
        inherited = cause if number == step.step - 1 and ended > step.due else NO_CAUSE
        missed = overran = NO_CAUSE
        if step.missed:
            missed = miss_cause(
                step, setting, gone=self._gone(), starved=self._starved(), refused=self._refused(), machine=machine,
                inherited=inherited,
            )  # fmt: skip
            self.misses[missed] += 1
        if step.overran:
            overran = overrun_cause(step, setting, machine=machine, missed=missed, inherited=inherited)
            self.overruns[overran] += 1
            self._before = step.step, step.ended, overran
        if self.unreported < MAX_UNREPORTED:
            at = 3 * ((self._next_reported + self.unreported) % MAX_UNREPORTED)
            self._unreported[at], self._unreported[at + 1], self._unreported[at + 2] = step.step, missed, overran
            self.unreported += 1
        explained = {missed, overran} <= {MACHINE, NO_CAUSE}
        count = self._listed[explained]
        if count < (LISTED_MACHINE if explained else LISTED):
            at = (LISTED * explained + count) * (_WIDTH + 2)
            self._list[at : at + _WIDTH + 2] = array("q", (*step, missed, overran))
            self._listed[explained] += 1

    def _touch(self, stall: Stall, limit: int) -> None:
        """Count the steps whose time for an exchange a stall above the limit overlaps, each once."""
        begin, end, _ = stall
        self.stalls_seen += 1
        self.longest_ns = max(self.longest_ns, end - begin)
        if end - begin < limit:
            return
        if len(self._stalls) >= KEPT_STALLS:
            del self._stalls[: KEPT_STALLS // 2]
        self._stalls.append(stall)
        if not self.period_ns:
            return
        first = math.ceil((begin - self.deadline_ns - self._due) / self.period_ns)
        final = math.floor((end - self._due) / self.period_ns)
        origin = int(self._due / self.period_ns)  # steps are numbered by the clock, so that a skip does not matter
        first = max(first + origin, self._last_touched + 1)
        self.stalled_steps += max(0, final + origin - first + 1)
        self._last_touched = max(self._last_touched, final + origin)

    def take_judged(self) -> tuple[int, int, int]:
        """The oldest judged step that was not reported yet: (step, cause of its miss, of its overrun), as indices into
        CAUSES, -1 for none; all -1 when there is none. For the recorder, once a step."""
        if not self.unreported:
            return NO_CAUSE, NO_CAUSE, NO_CAUSE
        at = 3 * self._next_reported
        self._next_reported = (self._next_reported + 1) % MAX_UNREPORTED
        self.unreported -= 1
        return self._unreported[at], self._unreported[at + 1], self._unreported[at + 2]

    # --- after the run ----------------------------------------------------------------------------------------------

    @property
    def listed(self) -> list[dict[str, Any]]:
        """Bad steps with their causes and parts, in order: the first so many of each kind."""
        places = [*range(self._listed[0]), *range(LISTED, LISTED + self._listed[1])]
        rows = (self._list[at * (_WIDTH + 2) : (at + 1) * (_WIDTH + 2)] for at in places)
        found = [_as_data(BadStep(*row[:_WIDTH]), row[_WIDTH], row[_WIDTH + 1]) for row in rows]
        return sorted(found, key=lambda fault: fault["at_ns"])

    def counts(self) -> dict[str, int]:
        """Misses and overruns by cause, together."""
        totals = [a + b for a, b in zip(self.misses, self.overruns, strict=True)]
        totals[UNKNOWN] += self.overflow
        return dict(zip(CAUSES, totals, strict=True))

    def report(self, periods: int) -> dict[str, Any]:
        """What the witnesses saw of so many periods, and what that explains.

        machine_share   of all misses and overruns, those that the machine explains; None without any
        base_rate       share of all periods that a stall above the limit touches: what chance alone would explain
        limit_us        lateness that counts;  bad_steps   see `listed`
        """
        counts, watched = self.counts(), self.saw is not None
        faults = sum(counts.values())
        return {
            "present": watched, "limit_us": limit_ns(self.deadline_ns, self.usual_ns) * 1e-3,
            "misses": dict(zip(CAUSES, self.misses, strict=True)),
            "overruns": dict(zip(CAUSES, self.overruns, strict=True)),
            "machine_share": counts["machine"] / faults if watched and faults else None,
            "base_rate": min(1.0, self.stalled_steps / periods) if watched and periods else None,
            "stalls": self.stalls_seen if watched else None,
            "longest_stall_us": self.longest_ns * 1e-3 if watched else None,
            "bad_steps": self.listed,
        }  # fmt: skip


def _as_data(step: BadStep, missed: int, overran: int) -> dict[str, Any]:
    """One bad step for a list: what, and its parts in us."""
    return {
        "step": step.step, "at_ns": step.due, "miss": CAUSES[missed] if missed >= 0 else None,
        "overrun": CAUSES[overran] if overran >= 0 else None,
        "wake_us": (step.begun - step.due) * 1e-3, "publish_us": (step.published - step.begun) * 1e-3,
        "exchange_us": (step.gathered - step.begun) * 1e-3, "plant_us": (step.stepped - step.called) * 1e-3,
        "total_us": (step.ended - step.due) * 1e-3, "page_faults": step.faults, "switches": step.switches,
    }  # fmt: skip
