"""Causes of each bad step of a run.

Within the step it stores a few whole numbers; in the slack it judges them. The judgement waits until every stall
detector has reported on the step's time, and until a peer that may be dead is known to be. All memory is allocated
before the run.
"""

from __future__ import annotations

import math
import sys
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rtmms.loop.ports import SilentPeer


(
    PEER_LATE, PEER_GONE, PLANT_SLOW, OWN_EXCHANGE, MACHINE, PAGE_FAULT, INVOLUNTARY_SWITCH, UNKNOWN, PEER_STARVED,
    PEER_REFUSED,
) = range(10)  # fmt: skip
CAUSES = (
    "peer_late", "peer_gone", "plant_slow", "loop_overhead", "machine", "page_fault", "involuntary_switch", "unknown",
    "peer_starved", "peer_refused",
)  # fmt: skip
NO_CAUSE = -1
MIN_LIMIT_NS = 60_000
Stall = tuple[int, int, int]
"""Begin and end, ns, and core; between the two the core's stall detector was due and did not run."""


class BadStep(NamedTuple):
    """Step that missed or overran; instants are of CLOCK_MONOTONIC in ns, in their order.

    Attributes
    ----------
    step : int
        Index of the step.
    missed, overran : int
        Whether it missed and whether it overran, 0 or 1.
    due : int
        Its instant on the schedule, or that of its begin in a mode without one.
    rested : int
        End of all work in the slack before it.
    begun : int
        Instant of the wake-up.
    published : int
        Instant after the state was sent.
    gathered : int
        Instant at which the commands had come, or were given up.
    called, stepped : int
        Begin and end of plant.step.
    ended : int
        End of the step.
    deadline : int
        Deadline for commands; 0 for none.
    faults, switches : int
        Page faults and involuntary switches of the loop's thread from `rested` on; -1 if not counted.
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
    """Instants of a step, as in BadStep.

    Attributes
    ----------
    due, begun, published, gathered, called, stepped, ended, deadline : int
        CLOCK_MONOTONIC, ns.
    """

    due: int
    begun: int
    published: int
    gathered: int
    called: int
    stepped: int
    ended: int
    deadline: int


class Setting(NamedTuple):
    """Criteria for the judgement of a bad step.

    Attributes
    ----------
    limit_ns : int
        Lateness that counts, of a stall or of a part of the loop, ns; see `limit_ns`.
    room_ns : int
        Time for the plant in a period after the deadline, ns.
    faults, switches : float, default 0.0
        Usual numbers of page faults and involuntary switches in a step.
    """

    limit_ns: int
    room_ns: int
    faults: float = 0.0
    switches: float = 0.0


def limit_ns(deadline_ns: int, usual_ns: int) -> int:
    """Return half of the time that a usual exchange leaves of the deadline.

    A shorter delay could not have caused the miss.

    Parameters
    ----------
    deadline_ns : int
        Deadline after the instant of a step, ns.
    usual_ns : int
        Duration of a usual exchange, ns.

    Returns
    -------
    int
        Time, ns; at least MIN_LIMIT_NS.
    """
    return max(MIN_LIMIT_NS, (deadline_ns - usual_ns) // 2)


def overlaps_stall(begin_ns: int, end_ns: int, limit: int, stalls: list[Stall]) -> bool:
    """Return whether a stall of at least the limit overlaps [begin, end].

    Parameters
    ----------
    begin_ns, end_ns : int
        The interval, CLOCK_MONOTONIC, ns.
    limit : int
        Shortest stall that counts, ns.
    stalls : list[Stall]
        The stalls.

    Returns
    -------
    bool
        True if one does.
    """
    return any(end - begin >= limit and begin <= end_ns and end >= begin_ns for begin, end, _ in stalls)


def window(step: BadStep) -> tuple[int, int]:
    """Return the interval in which a stall would have affected a step.

    If the slack before it did not end in time, the interval includes that, too.

    Parameters
    ----------
    step : BadStep
        The step.

    Returns
    -------
    tuple[int, int]
        Begin and end, ns.
    """
    return min(step.due, step.begun) - max(0, step.rested - step.due), step.ended if step.overran else step.gathered


def miss_cause(
    step: BadStep, setting: Setting, *, gone: bool, machine: bool, starved: bool = False, refused: bool = False,
    inherited: int = NO_CAUSE,
) -> int:  # fmt: skip
    """Return the cause of a miss.

    Parameters
    ----------
    step : BadStep
        The step.
    setting : Setting
        Criteria of the judgement.
    gone : bool
        Whether a peer with a missing command is dead, and has sent nothing since.
    machine : bool
        Whether a stall detector recorded a stall in the step's window.
    starved : bool, default False
        Whether the dead peer is still connected: its process does not run, or is stopped.
    refused : bool, default False
        Whether its command for the step came and was refused.
    inherited : int, default NO_CAUSE
        Cause of the step before, if that ended after this one was due.

    Returns
    -------
    int
        Index into CAUSES.
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
    return _attribute_to_loop(step, setting, late=step.begun - step.due, busy=step.published - step.begun)


def overrun_cause(
    step: BadStep, setting: Setting, *, machine: bool, missed: int = NO_CAUSE, inherited: int = NO_CAUSE
) -> int:
    """Return the cause of an overrun.

    Parameters
    ----------
    step : BadStep
        The step.
    setting : Setting
        Criteria of the judgement.
    machine : bool
        Whether a stall detector recorded a stall in the step's window.
    missed : int, default NO_CAUSE
        Cause of the miss of the same step.
    inherited : int, default NO_CAUSE
        Cause of the step before, if that ended after this one was due.

    Returns
    -------
    int
        Index into CAUSES.
    """
    if machine:
        return MACHINE
    late, plant = step.begun - step.due, step.stepped - step.called
    over = step.gathered - step.deadline if step.deadline else 0
    busy = step.published - step.begun + max(0, over) + step.called - step.gathered + step.ended - step.stepped
    if plant >= max(late, busy) and plant > setting.room_ns:
        return _noticed(step, setting, PLANT_SLOW)
    if missed in (PEER_LATE, PEER_GONE, PEER_STARVED, PEER_REFUSED) and max(late, over) <= setting.limit_ns:
        return missed  # the loop waited until the deadline: with the command the step would have ended in time
    if late >= busy and inherited != NO_CAUSE:
        return inherited
    return _attribute_to_loop(step, setting, late, busy)


def _attribute_to_loop(step: BadStep, setting: Setting, late: int, busy: int) -> int:
    """Return the cause of the loop's own lateness: it woke up late, or was busy for long."""
    if busy > late or step.rested > step.due:
        return _noticed(step, setting, OWN_EXCHANGE)
    return _noticed(step, setting, UNKNOWN)


def _noticed(step: BadStep, setting: Setting, otherwise: int) -> int:
    """Return the kernel's cause if it counted more events for our thread than usual."""
    if step.faults > 3.0 * setting.faults:
        return PAGE_FAULT
    if step.switches > 3.0 * setting.switches:
        return INVOLUNTARY_SWITCH
    return otherwise


MAX_UNJUDGED = 4096
"""Bad steps that can wait for judgement: a second of only those at 4 kHz; further ones are `unknown`."""
PATIENCE_NS = 100_000_000
MAX_STALLS = 1024
MAX_UNREPORTED = 1024
"""Judged steps that wait for the recorder, which takes one a step."""
MAX_LISTED = 1000
"""Listed bad steps that the machine does not explain."""
MAX_LISTED_MACHINE = 200
"""Listed bad steps that the machine explains."""
_WIDTH = len(BadStep._fields)
_MIN_MEDIAN_STEP_NS = 250


class StallMemory(Protocol):
    """Memory of the stall detectors as attribution uses it; see rtmms.loop.stall_detector.Stalls."""

    def take(self) -> list[Stall]:
        """Return the stalls since the last call.

        Returns
        -------
        list[Stall]
            The stalls.
        """

    def looked_ns(self) -> int:
        """Return the instant up to which every stall detector has reported.

        Returns
        -------
        int
            Instant, ns.
        """

    def await_looked(self, until_ns: int) -> None:
        """Wait, for a limited time, until all detectors have reported up to an instant.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """

    look_ns: int


def _no_counters() -> tuple[int, int]:
    return 0, 0


def thread_counters() -> Callable[[], tuple[int, int]]:
    """Return a function that counts events of the calling thread; a call takes 0.5 us.

    Returns
    -------
    Callable[[], tuple[int, int]]
        It returns page faults and involuntary switches so far.
    """
    if sys.platform != "linux":
        return _no_counters
    from resource import RUSAGE_THREAD, getrusage

    def read() -> tuple[int, int]:
        """Return page faults and involuntary switches of this thread.

        Returns
        -------
        tuple[int, int]
            The counts.
        """
        usage = getrusage(RUSAGE_THREAD)
        return usage[6] + usage[7], usage[15]

    return read


class FaultAttribution:
    """Causes of a run's misses and overruns.

    Parameters
    ----------
    period_ns, deadline_ns : float
        Period (0 for none) and deadline of the schedule, ns.
    saw : StallMemory | None, optional
        Memory of the stall detectors; None without them.
    counters : Callable[[], tuple[int, int]] | None, optional
        Returns page faults and involuntary switches of the loop's thread so far.
    capacity : int, default MAX_UNJUDGED
        Most bad steps that wait for judgement.

    Attributes
    ----------
    busy_ns : float
        A step that ends later than this after its instant is checked for an overrun, ns. The loop reads it.
    usual_ns : int
        Duration of a usual exchange, p50 of those answered in time, within 2 %, ns; 0 before the first.
    look_after_ns : int
        Time after the instant of a step at which the stall detectors look, ns; 0: any. The code that starts the
        detectors writes it.
    misses, overruns : list of int
        Count for each of CAUSES.
    """

    def __init__(
        self, period_ns: float, deadline_ns: int, saw: StallMemory | None = None,
        counters: Callable[[], tuple[int, int]] | None = None, capacity: int = MAX_UNJUDGED,
    ) -> None:  # fmt: skip
        self.period_ns, self.deadline_ns, self.saw = period_ns, deadline_ns, saw
        self.busy_ns = period_ns - 1000 if period_ns else math.inf
        self._counters = counters or thread_counters()
        self._capacity = capacity
        self._rows = array("q", [0]) * (capacity * _WIDTH)
        self._silent: list[Sequence[SilentPeer]] = [()] * capacity
        self._list = array("q", [0]) * ((MAX_LISTED + MAX_LISTED_MACHINE) * (_WIDTH + 2))
        self._unreported = array("q", [0]) * (MAX_UNREPORTED * 3)
        self._stalls: list[Stall] = []
        self.usual_ns = self.look_after_ns = self._due = 0
        self.clear()

    def clear(self) -> None:
        """Reset all counts, for a run that is reset."""
        self.misses, self.overruns = [0] * len(CAUSES), [0] * len(CAUSES)
        self._listed = [0, 0]
        self.unreported, self._next_reported = 0, 0
        self.waiting, self._first, self.overflow = 0, 0, 0
        self.stalls_seen, self.stalled_steps, self.longest_ns, self._last_touched = 0, 0, 0, -1
        self._looks = 0
        self._bad_counts = [0, 0]
        self._before: tuple[int, int, int] = (-2, 0, NO_CAUSE)
        self._silent_now: Sequence[SilentPeer] = ()
        self.rested = 0
        self._faults, self._switches = self._first_counts = self._counters()
        self._new_faults = self._new_switches = 0

    # --- within the step --------------------------------------------------------------------------------------------

    def look(self, silent: Sequence[SilentPeer]) -> None:
        """Read, for a step that may be bad, all that the slack would change.

        Parameters
        ----------
        silent : Sequence[SilentPeer]
            Peers without a command.
        """
        faults, switches = self._counters()
        self._new_faults, self._new_switches = faults - self._faults, switches - self._switches
        self._silent_now = silent

    def keep(self, step: int, missed: bool, overran: bool, times: Times) -> None:
        """Store a bad step in fixed memory, after `look`.

        Parameters
        ----------
        step : int
            Index of the step.
        missed : bool
            Whether it missed.
        overran : bool
            Whether it overran.
        times : Times
            Its instants.
        """
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
        """Record an exchange for the median.

        Parameters
        ----------
        exchange_ns : int
            Time from the state to the last command, ns.
        """
        usual_ns = self.usual_ns
        little = max(_MIN_MEDIAN_STEP_NS, usual_ns >> 6)
        self.usual_ns = (
            exchange_ns if not usual_ns else usual_ns + little if exchange_ns > usual_ns else usual_ns - little
        )

    def record_slack_end(self, now_ns: int, due_ns: int) -> None:
        """Record the end of the slack's work; counters from here on belong to the next step.

        Parameters
        ----------
        now_ns : int
            Present instant, ns.
        due_ns : int
            Instant of the step, ns.
        """
        self.rested, self._due = now_ns, due_ns
        self._faults, self._switches = self._counters()
        self._looks += 1

    # --- in the slack -----------------------------------------------------------------------------------------------

    def judge(self, now_ns: int, maximum: int = MAX_UNJUDGED, *, last: bool = False) -> None:
        """Judge the steps that can be judged.

        Parameters
        ----------
        now_ns : int
            Present instant, ns.
        maximum : int, default MAX_UNJUDGED
            Most steps, 5 us each.
        last : bool, default False
            Whether the run is over, so that all steps are judged.
        """
        limit = limit_ns(self.deadline_ns, self.usual_ns)
        looked_ns = now_ns
        if self.saw is not None:
            if self.look_after_ns:  # each check interrupts other work for some 20 us: avoid the exchanges
                self.saw.look_ns = self._due + self.look_after_ns
            # read this before the stalls, so that all stalls up to this instant are read
            looked_ns = self.saw.looked_ns()
            for stall in self.saw.take():
                self._touch(stall, limit)
        room = max(0, int(self.period_ns) - self.deadline_ns)
        looks = max(1, self._looks)
        good = self._faults - self._first_counts[0] - self._bad_counts[0]  # the usual rate is that of good steps
        good_switches = self._switches - self._first_counts[1] - self._bad_counts[1]
        setting = Setting(limit, room, good / looks, good_switches / looks)
        for _ in range(min(maximum, self.waiting)):
            at = self._first * _WIDTH
            step = BadStep(*self._rows[at : at + _WIDTH])
            if not last and now_ns - step.ended < PATIENCE_NS and (looked_ns <= step.ended or self._undecided(step)):
                return
            self._decide(step, setting)
            self._silent[self._first] = ()
            self._first = (self._first + 1) % self._capacity
            self.waiting -= 1

    def finish(self, now_ns: int) -> None:
        """Judge the remaining steps after the run, when the stall detectors have reported on it.

        Parameters
        ----------
        now_ns : int
            Present instant, ns.
        """
        if self.saw is not None and self.waiting:
            self.saw.await_looked(now_ns)
        self.judge(now_ns, last=True)

    def _undecided(self, step: BadStep) -> bool:
        """Return whether a peer's death, which shows within a few steps, is still unknown."""
        return bool(step.missed) and not self._gone()

    def _gone(self) -> bool:
        return any(silent.gone for silent in self._silent[self._first])

    def _starved(self) -> bool:
        """Return whether all dead peers are still connected."""
        return all(silent.starved for silent in self._silent[self._first] if silent.gone)

    def _refused(self) -> bool:
        return any(silent.refused for silent in self._silent[self._first])

    def _decide(self, step: BadStep, setting: Setting) -> None:
        machine = overlaps_stall(*window(step), setting.limit_ns, self._stalls)
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
        if count < (MAX_LISTED_MACHINE if explained else MAX_LISTED):
            at = (MAX_LISTED * explained + count) * (_WIDTH + 2)
            self._list[at : at + _WIDTH + 2] = array("q", (*step, missed, overran))
            self._listed[explained] += 1

    def _touch(self, stall: Stall, limit: int) -> None:
        """Count each step once whose time for an exchange overlaps a stall above the limit."""
        begin, end, _ = stall
        self.stalls_seen += 1
        self.longest_ns = max(self.longest_ns, end - begin)
        if end - begin < limit:
            return
        if len(self._stalls) >= MAX_STALLS:
            del self._stalls[: MAX_STALLS // 2]
        self._stalls.append(stall)
        if not self.period_ns:
            return
        first = math.ceil((begin - self.deadline_ns - self._due) / self.period_ns)
        final = math.floor((end - self._due) / self.period_ns)
        origin = int(self._due / self.period_ns)  # the clock numbers the steps, so that a skip does not matter
        first = max(first + origin, self._last_touched + 1)
        self.stalled_steps += max(0, final + origin - first + 1)
        self._last_touched = max(self._last_touched, final + origin)

    def take_judged(self) -> tuple[int, int, int]:
        """Return the oldest judged step that was not reported yet; the recorder calls this once a step.

        Returns
        -------
        tuple[int, int, int]
            Step, cause of its miss, and cause of its overrun, as indices into CAUSES, -1 for none. All are -1 if there
            is none.
        """
        if not self.unreported:
            return NO_CAUSE, NO_CAUSE, NO_CAUSE
        at = 3 * self._next_reported
        self._next_reported = (self._next_reported + 1) % MAX_UNREPORTED
        self.unreported -= 1
        return self._unreported[at], self._unreported[at + 1], self._unreported[at + 2]

    # --- after the run ----------------------------------------------------------------------------------------------

    @property
    def listed(self) -> list[dict[str, Any]]:
        """Bad steps with their causes and parts, in order: the first of each kind."""
        places = [*range(self._listed[0]), *range(MAX_LISTED, MAX_LISTED + self._listed[1])]
        rows = (self._list[at * (_WIDTH + 2) : (at + 1) * (_WIDTH + 2)] for at in places)
        result = [_as_data(BadStep(*row[:_WIDTH]), row[_WIDTH], row[_WIDTH + 1]) for row in rows]
        return sorted(result, key=lambda fault: fault["at_ns"])

    def counts(self) -> dict[str, int]:
        """Return misses and overruns together.

        Returns
        -------
        dict[str, int]
            Counts by cause.
        """
        totals = [a + b for a, b in zip(self.misses, self.overruns, strict=True)]
        totals[UNKNOWN] += self.overflow
        return dict(zip(CAUSES, totals, strict=True))

    def report(self, periods: int) -> dict[str, Any]:
        """Return the results of the stall detectors, and how much they explain.

        Parameters
        ----------
        periods : int
            Number of periods of the run.

        Returns
        -------
        dict[str, Any]
            The entries below, and `present`, `misses`, `overruns`, `stalls` and `longest_stall_us`.

        Notes
        -----
        Entries:

        - `machine_share`: share of misses and overruns that the machine explains; None without any.
        - `base_rate`: share of all periods that a stall above the limit touches, which chance alone would explain.
        - `limit_us`: lateness that counts, us.
        - `bad_steps`: see `listed`.
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
    """Return a bad step for a list, with its parts in us."""
    return {
        "step": step.step, "at_ns": step.due, "miss": CAUSES[missed] if missed >= 0 else None,
        "overrun": CAUSES[overran] if overran >= 0 else None,
        "wake_us": (step.begun - step.due) * 1e-3, "publish_us": (step.published - step.begun) * 1e-3,
        "exchange_us": (step.gathered - step.begun) * 1e-3, "apply_us": (step.called - step.gathered) * 1e-3,
        "plant_us": (step.stepped - step.called) * 1e-3, "after_us": (step.ended - step.stepped) * 1e-3,
        "total_us": (step.ended - step.due) * 1e-3, "page_faults": step.faults, "switches": step.switches,
    }  # fmt: skip
