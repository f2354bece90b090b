"""Modes of a run: external, free, lockstep, realtime, each a pace of the loop (`rtmms.loop.pace.Pace`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rtmms.base.contract import OVERRUN_WORDS, UNDEFINED, OverrunPolicy
from rtmms.base.override import override
from rtmms.loop.miss_policies import SEND_EVERY_NS
from rtmms.loop.pace import Pace, PeerError
from rtmms.loop.policies import OVERRUN_POLICIES, skip

if TYPE_CHECKING:
    from rtmms.loop.clock import Schedule
    from rtmms.loop.pace import Run


MARGIN_NS = 30_000
"""Margin before the next step at which the loop stops serving, ns, to be asleep when the timer expires."""
PREPARE_NS = 100_000
"""Part of the slack for the next state, ns, which the monitor does not use."""
SERVE_NS = 200_000
MIN_SERVE_INTERVAL_NS = 800_000
"""Shortest interval of the low-priority work, ns; short periods do it in one of several."""
SERVE_INTERVAL_NS = 5_000_000
STARVED_NS = 100_000_000
SLICE_NS = 50_000_000
MIN_SLICED_WAIT_NS = 200_000_000
"""Wait from which it is cut into slices, ns, between which requests and newcomers are served."""
SILENT_NS = 5_000_000_000
START_NS = 10_000_000_000
"""Time for the commands of step 0, ns.

A controller's first answer loads and compiles code that the later ones use.
"""


class SingleSteps(Pace):
    """Part of a pace that takes each step alone, because a clock or a peer decides when the step begins."""

    @override
    def batch(self) -> tuple[int, int, bool] | None:
        """Return None, because batches are not allowed."""
        return None

    @override
    def batched(self, published_ns: int, answered: bool) -> None:
        """Do nothing, because there are no batches."""


class WithoutClock(Pace):
    """Part of a pace about instants, for a mode without a clock."""

    @override
    def bind(self, run: Run) -> None:
        self.run, self.clock = run, run.clock
        self.served_ns = run.clock.now()

    @override
    def anchor(self, step: int) -> int:
        """Begin with a step now."""
        self.served_ns = self.clock.now()
        return self.served_ns

    @override
    def let_pass(self, step: int) -> None:
        """Do nothing, because no clock paces the steps."""

    @override
    def ready(self, step: int) -> bool:
        """Return True, because each step may begin at once."""
        return True

    @override
    def window(self, step: int) -> tuple[int, int] | None:
        """Return None, because steps are not taken as a whole."""
        return None

    @override
    def batch(self) -> tuple[int, int, bool] | None:
        """Return the limits of a batch until the next low-priority work."""
        return self.served_ns + SERVE_INTERVAL_NS, 0, True

    @override
    def batched(self, published_ns: int, answered: bool) -> None:
        """Do nothing, because each state is sent."""

    @override
    def begin(self, step: int) -> int:
        """Return UNDEFINED, because a step has no instant."""
        return UNDEFINED


# The mode external: each tick of a peer starts a step, and the plant has no clock.


WAIT_NS = 5_000_000
"""Slice of a wait for a tick, ns; between two slices requests and newcomers are served."""
SERVE_TICKS_INTERVAL_NS = 1_000_000


class External(SingleSteps):
    """Mode external: one step for each tick, with commands until `deadline_ns` after the tick came.

    A step overruns if it ends after the next tick has come. No tick is dropped for it: each is a step.

    Parameters
    ----------
    deadline_ns : int
        Time for commands after a tick, ns.
    """

    mode = "external"

    def __init__(self, deadline_ns: int) -> None:
        self.deadline_ns = deadline_ns

    @override
    def bind(self, run: Run) -> None:
        """Connect the pace to its run.

        Raises
        ------
        TypeError
            If the exchange has no ticks.
        """
        self.run, self.clock = run, run.clock
        self.exchange = run.exchange
        self.served_ns = run.clock.now()
        self.came_ns, self.begun = 0, False

    @override
    def anchor(self, step: int) -> int:
        """Begin with a step now; after a pause or a reset earlier ticks are discarded."""
        if self.begun:  # after a pause or a reset; ticks before the first step wait for it
            self.exchange.drop_ticks()
        self.begun = True
        self.served_ns = self.came_ns = self.clock.now()
        return self.came_ns

    @override
    def let_pass(self, step: int) -> None:
        """Do nothing: ticks that came meanwhile wait, and each is a step."""

    @override
    def ready(self, step: int) -> bool:
        """Wait a while for a tick."""
        run, now = self.run, self.clock.now()
        self.came_ns = self.exchange.next_tick(now + WAIT_NS)
        if self.came_ns:
            return not run.ended
        now = self.served_ns = self.clock.now()
        run.serve(now + SERVE_NS)
        return False

    @override
    def begin(self, step: int) -> int:
        """Return the time since the tick."""
        return self.clock.now() - self.came_ns

    @override
    def window(self, step: int) -> tuple[int, int] | None:
        """Return None, because steps are not taken as a whole."""
        return None

    @override
    def gather(self, step: int) -> bool:
        """Publish the state, and read commands until the deadline."""
        deadline = self.came_ns + self.deadline_ns
        self.run.publish(step, deadline, max(1, deadline - self.clock.now()))
        return self.collect_commands(step)

    @override
    def collect_commands(self, step: int) -> bool:
        """Read commands until the deadline."""
        return self.run.collect(step, self.came_ns + self.deadline_ns)

    @override
    def finish(self, step: int, now_ns: int) -> int:
        """Count an overrun if the next tick has come, and do the low-priority work."""
        self.run.check()
        run = self.run
        if self.exchange.ticks_waiting():
            run.statistics.overruns += 1
            if run.policies.overrun == "abort" and not run.in_grace():
                run.end("policy", f"step {step} ended after the next tick had come (overrun policy abort)")
        if now_ns - self.served_ns >= SERVE_TICKS_INTERVAL_NS:
            self.served_ns = now_ns
            run.serve(now_ns + SERVE_NS)
        return UNDEFINED


# The mode free: no step waits for anything.


class Free(WithoutClock):
    """Mode free: as fast as the plant goes, with the newest commands, without waiting.

    A state is observed and sent when the last one was answered, or 1 ms after it. A peer that still computes needs no
    other. Without a claimant a state is sent every 5 ms only.
    """

    mode = "free"

    @override
    def bind(self, run: Run) -> None:
        super().bind(run)
        self.published_ns, self.answered = self.served_ns, True

    @override
    def gather(self, step: int) -> bool:
        """Publish the state if one is due, and read available commands."""
        run, now = self.run, self.clock.now()
        if not run.claims.any:
            return True
        if self.answered or now - self.published_ns >= SEND_EVERY_NS:
            self.published_ns = now
            run.publish(step, 0, 0)
        complete = run.collect(step, 0)
        self.answered = complete or bool(run.exchange.fresh.any())
        return complete

    @override
    def batch(self) -> tuple[int, int, bool] | None:
        return self.served_ns + SERVE_INTERVAL_NS, self.published_ns, self.answered

    @override
    def batched(self, published_ns: int, answered: bool) -> None:
        """Store the last state's instant and whether it was answered."""
        self.published_ns, self.answered = published_ns, answered

    @override
    def collect_commands(self, step: int) -> bool:
        """Read available commands."""
        return self.run.collect(step, 0)

    @override
    def finish(self, step: int, now_ns: int) -> int:
        """Do the low-priority work if it is due."""
        self.run.check()
        if now_ns - self.served_ns >= SERVE_INTERVAL_NS:
            self.served_ns = now_ns
            if not self.run.claims.any:
                self.run.publish(step + 1, 0, 0)
            self.run.serve(now_ns + SERVE_NS)
        return UNDEFINED


# The mode lockstep: each step waits for its commands without a limit of time.


class Lockstep(WithoutClock):
    """Mode lockstep: as fast as both sides go; it waits for every command, and ends if a peer is dead or silent."""

    mode = "lockstep"

    def window(self, step: int) -> tuple[int, int] | None:
        """Return a window without instants.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        tuple[int, int] | None
            Instant and deadline of the step, CLOCK_MONOTONIC, ns, 0 for none. None if it may not be taken as a whole.
        """
        return 0, 0

    @override
    def gather(self, step: int) -> bool:
        """Publish the state, and wait for all commands.

        Raises
        ------
        PeerError
            If a peer has died, or is silent for SILENT_NS.
        """
        self.run.publish(step, 0, 0)
        return self.collect_commands(step)

    @override
    def collect_commands(self, step: int) -> bool:
        """Wait for all commands.

        Raises
        ------
        PeerError
            If a peer has died, or is silent for SILENT_NS.
        """
        run, since = self.run, self.clock.now()
        while not run.collect(step, self.clock.now() + SERVE_INTERVAL_NS):
            run.answer()  # requests first, then commands: a peer that answered a state before its request is not ahead
            now = self.clock.now()
            run.serve(now + SERVE_NS)  # reads a bye or a stop
            run.watch_now()
            if run.ended:
                return False
            if run.dead:
                raise PeerError(f"{run.dead[0]}; mode lockstep needs its commands, so the run ends (step {step})")
            if now - since >= SILENT_NS:
                silent = ", ".join(run.exchange.waiting_for()) or "a peer"
                raise PeerError(
                    f"{silent} sent no command for step {step} within {SILENT_NS * 1e-9:g} s{self._refused()}"
                )
        return True

    def _refused(self) -> str:
        """Return the refusals so far by reason, and the last text of each peer; empty for none."""
        report = self.run.exchange.report()
        counts = ", ".join(f"{reason} {count}" for reason, count in (report.get("rejected") or {}).items())
        refusals = [f"{peer['name']}: {peer['refusal']}" for peer in report.get("peers", ()) if peer.get("refusal")]
        return (f"; refused so far: {counts}" if counts else "") + "".join(f"; the last of {word}" for word in refusals)

    @override
    def finish(self, step: int, now_ns: int) -> int:
        """Do the low-priority work if it is due.

        Raises
        ------
        PeerError
            If a peer has died.
        """
        self.run.check()
        if now_ns - self.served_ns >= SERVE_INTERVAL_NS:
            self.served_ns = now_ns
            self.run.serve(now_ns + SERVE_NS)
            if self.run.dead and not self.run.ended:
                raise PeerError(f"{self.run.dead[0]}; mode lockstep needs its commands, so the run ends (step {step})")
        return UNDEFINED


# The mode realtime: an absolute schedule; a step waits for commands until the deadline.


_OPENING_STEPS = 5
"""First steps of a run with claims that have a minimum period.

Code that runs for the first time takes many times as long, here and in the controllers.
"""
_MIN_OPENING_PERIOD_NS = 2_000_000
"""Minimum period of the first steps, ns."""


class Realtime(SingleSteps):
    """Mode realtime: an absolute schedule, with commands until the deadline.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    first_ns : int, default 0
        Longest wait for the first commands, before the schedule begins, ns. 0 for none: step 0 is like any other.
    """

    mode = "realtime"

    def __init__(self, schedule: Schedule, first_ns: int = 0) -> None:
        self.schedule, self.first_ns = schedule, first_ns
        self.first, self.opening = False, 0

    @override
    def bind(self, run: Run) -> None:
        self.run, self.clock = run, run.clock
        self.overrun = OVERRUN_POLICIES[OverrunPolicy(OVERRUN_WORDS.index(run.policies.overrun))]
        self.served_ns = run.clock.now()

    @override
    def anchor(self, step: int) -> int:
        """Begin the schedule with a step a period from now."""
        self.schedule.anchor(self.clock.now() + int(self.schedule.period_ns), step)
        return self.schedule.due(step)

    @override
    def ready(self, step: int) -> bool:
        """Wait for long periods in slices, so that a stop or Ctrl-C need not wait for the end of one."""
        if self.first_ns and self.run.claims.any:
            return True
        now = self.clock.now()
        if self.schedule.due(step) - now <= MIN_SLICED_WAIT_NS:
            return True
        self.run.serve(now + SERVE_NS)
        self.clock.sleep_until(min(self.clock.now() + SLICE_NS, self.schedule.due(step) - SLICE_NS))
        return False

    @override
    def begin(self, step: int) -> int:
        """Sleep until the instant of a step."""
        if self.first_ns:
            self._ask_first(step)
        due = self.schedule.due(step)
        return self.clock.sleep_until(due) - due

    def _ask_first(self, step: int) -> None:
        """Publish state 0, and begin the schedule when its commands have come."""
        run, until, self.first_ns = self.run, self.clock.now() + self.first_ns, 0
        if not run.claims.any:
            return
        self.opening = _OPENING_STEPS
        run.publish(step, until, until - self.clock.now())
        complete = False
        while not complete and not run.ended and self.clock.now() < until:
            complete = run.collect(step, min(until, self.clock.now() + SLICE_NS))
            if not complete:
                run.serve(self.clock.now() + SERVE_NS)
                run.watch_now()
                if run.dead:
                    break
        self.first = complete
        self.schedule.anchor(self.clock.now(), step)
        run.start_at(self.schedule.due(step), answered=complete)

    @override
    def gather(self, step: int) -> bool:
        """Publish the state, and read commands until the deadline."""
        if self.first:
            self.first = False
            return True
        deadline = self.schedule.due(step) + self.schedule.deadline_ns
        self.run.publish(step, deadline, max(1, deadline - self.clock.now()))  # 0 would mean no deadline
        return self.collect_commands(step)

    @override
    def window(self, step: int) -> tuple[int, int] | None:
        """Return instant and deadline of a step."""
        if self.first_ns or self.first or self.schedule.deadline_ns > MIN_SLICED_WAIT_NS:
            return None
        due = self.schedule.due(step)
        return due, due + self.schedule.deadline_ns

    @override
    def collect_commands(self, step: int) -> bool:
        """Read commands until the deadline, in slices if it is long."""
        deadline = self.schedule.due(step) + self.schedule.deadline_ns
        while deadline - (now := self.clock.now()) > MIN_SLICED_WAIT_NS:
            if self.run.collect(step, now + SLICE_NS):
                return True
            if self.run.ended:
                return False
            self.run.serve(self.clock.now() + SERVE_NS)
        return self.run.collect(step, deadline)

    @override
    def finish(self, step: int, now_ns: int) -> int:
        """Apply the overrun policy, and use the slack for low-priority work and the next state."""
        if self.opening:
            self.opening -= 1
            self.schedule.anchor(now_ns + max(int(self.schedule.period_ns), _MIN_OPENING_PERIOD_NS), step + 1)
        slack = self.schedule.due(step + 1) - now_ns
        if slack < 0:
            self._overrun(step, now_ns)
        until = self.schedule.due(step + 1) - MARGIN_NS
        if until <= now_ns and now_ns - self.served_ns > STARVED_NS:
            until = now_ns + MARGIN_NS  # without slack for long: a peer must still be able to end the run
        if until > now_ns:
            if now_ns - self.served_ns >= MIN_SERVE_INTERVAL_NS:
                self.served_ns = now_ns
                self.run.serve(until)
            self.run.check(until - PREPARE_NS)
            if self.clock.now() < until:
                self.run.prepare(step + 1, self.schedule.due(step + 1) + self.schedule.deadline_ns)
        return max(0, slack)

    @override
    def let_pass(self, step: int) -> None:
        """Drop whole periods that passed, and count them as skipped."""
        behind = self.schedule.behind(step, self.clock.now())
        if behind > 0:
            drop = skip(behind, 0)
            self._drop(drop)

    def _overrun(self, step: int, now_ns: int) -> None:
        run, schedule = self.run, self.schedule
        behind = schedule.behind(step + 1, now_ns)
        drop = self.overrun(behind, run.policies.catchup)
        run.statistics.overruns += 1
        if math.isinf(drop) and run.in_grace():
            drop = skip(behind, 0)
        if math.isinf(drop):
            late_us = behind * schedule.period_ns * 1e-3
            run.end("policy", f"step {step} ended {late_us:.0f} us after its period (overrun policy abort)")
            return
        self._drop(drop)

    def _drop(self, periods: float) -> None:
        self.schedule.dropped += periods
        self.run.statistics.skipped += int(periods)
