"""Paces: one for each mode, which decides when a step starts and how long commands are waited for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from rtmms.base.contract import OVERRUN_WORDS, UNDEFINED, OverrunPolicy
from rtmms.base.errors import RtmmsError
from rtmms.loop.kernels.miss_policies import SEND_EVERY_NS
from rtmms.loop.policies import OVERRUN_POLICIES, skip
from rtmms.loop.ports import Ticking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtmms.loop.clock import Clock, Schedule
    from rtmms.loop.fallback import Claims
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Exchange
    from rtmms.loop.statistics import Statistics


# What a pace is, and what it sees of the run: the loop itself is the same for all of them.


class Unpaced:
    """The part of a pace that is about instants, for one that has none."""

    def bind(self, run: Run) -> None:
        self.run, self.clock = run, run.clock
        self.served_ns = run.clock.now()

    def anchor(self, step: int) -> int:
        self.served_ns = self.clock.now()
        return self.served_ns

    def let_pass(self, step: int) -> None:
        """Nobody paces it: nothing to do."""

    def ready(self, step: int) -> bool:
        return True

    def window(self, step: int) -> tuple[int, int] | None:
        return None

    def batch(self) -> tuple[int, int, bool] | None:
        return self.served_ns + SERVE_EVERY_NS, 0, True

    def batched(self, published_ns: int, answered: bool) -> None:
        """Each state is sent."""

    def begin(self, step: int) -> int:
        return UNDEFINED


MARGIN_NS = 30_000
"""The loop stops serving this long before the next step is due, to be asleep when the timer fires."""
PREPARE_NS = 100_000
"""What is left of the slack for the state to come, of which the monitor takes nothing."""
SERVE_NS = 200_000
SERVE_GAP_NS = 800_000
"""The low-priority work is not done again so soon: of short periods, in one of several."""
SERVE_EVERY_NS = 5_000_000
STARVED_NS = 100_000_000
SLICE_NS = 50_000_000
LONG_NS = 200_000_000
"""A wait that is longer is cut into slices, between which requests and newcomers are served."""
SILENT_NS = 5_000_000_000
START_NS = 10_000_000_000
"""How long the commands for step 0 may take: a controller's first answer loads and compiles what the later ones use."""


class PeerError(RtmmsError):
    """A peer that the run cannot go on without is gone or silent; the text names it."""


class Run(Protocol):
    """What a pace sees of the run, and may do to it."""

    clock: Clock
    claims: Claims
    exchange: Exchange
    policies: Policies
    statistics: Statistics
    ended: str

    @property
    def dead(self) -> Sequence[str]:
        """A sentence for each process that has died."""

    def end(self, reason: str, message: str = "") -> None:
        """End the run after the present step; the first reason stands."""

    def start_at(self, instant_ns: int, *, answered: bool = False) -> None:
        """The run counts from there; answered: the commands of its first step are in hand already."""

    def in_grace(self) -> bool:
        """Neither limits nor `abort` act yet."""

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        """State `step` to the world."""

    def prepare(self, step: int, deadline_ns: int) -> None:
        """In the slack: observe and pack state `step`, so that at its instant it has only to be sent."""

    def collect(self, step: int, until_ns: int) -> bool:
        """Take commands for `step`; True when every claimed actuator has its own."""

    def serve(self, until_ns: int) -> None:
        """The low-priority work, until the instant at most."""

    def answer(self) -> None:
        """Do the requests that can be done while the commands of the step are waited for."""

    def check(self, until_ns: int = 0) -> None:
        """A piece of the monitor's work, if there is time for it until the instant; 0: whatever it takes."""

    def watch_now(self) -> None:
        """Look after the processes and the display."""


class Pace(Protocol):
    """One mode."""

    mode: str

    def bind(self, run: Run) -> None:
        """Called once, by the loop."""

    def anchor(self, step: int) -> int:
        """The schedule begins anew with `step`: at the start, after a pause, after a reset. Returns its instant."""

    def let_pass(self, step: int) -> None:
        """Something was done between steps that may have taken long: no step is late for it."""

    def ready(self, step: int) -> bool:
        """Whether the step may begin: False after a while of waiting for whoever starts it, to be asked again."""

    def begin(self, step: int) -> int:
        """Wait for the step's instant. Returns how late it starts in ns, UNDEFINED where it has no instant."""

    def gather(self, step: int) -> bool:
        """Publish the state and take commands. True when every claimed actuator has its own."""

    def window(self, step: int) -> tuple[int, int] | None:
        """The step's instant and its deadline, 0 for none, where it may be taken as a whole; None where it may not."""

    def batch(self) -> tuple[int, int, bool] | None:
        """Where many steps may be taken in a row: the instant after which none is to begin; then, where states are not
        sent at each step, when the last one was, and whether it was answered. None where they may not."""

    def batched(self, published_ns: int, answered: bool) -> None:
        """They were taken."""

    def rest(self, step: int) -> bool:
        """What is left of `gather` once the state is out."""

    def finish(self, step: int, now_ns: int) -> int:
        """After the step: overruns, and the low-priority work. Returns the slack in ns, UNDEFINED without a period."""


# The mode external: a peer's ticks start the steps, one each, and the plant keeps no time of its own.


WAIT_NS = 5_000_000
"""A tick is waited for in slices of this, between which requests and newcomers are served."""
SERVE_TICKS_EVERY_NS = 1_000_000


class External:
    """One step for each tick; commands are waited for until deadline_ns after the tick came.

    An overrun is a step that ended after the next tick had come. No tick is dropped for it: each is a step.
    """

    mode = "external"

    def __init__(self, deadline_ns: int) -> None:
        self.deadline_ns = deadline_ns

    def bind(self, run: Run) -> None:
        self.run, self.clock = run, run.clock
        if not isinstance(run.exchange, Ticking):
            raise TypeError("mode external: an exchange that knows no ticks")
        self.exchange: Ticking = run.exchange
        self.served_ns = run.clock.now()
        self.came_ns, self.begun = 0, False

    def anchor(self, step: int) -> int:
        if self.begun:  # after a pause or a reset; what came before the first step waits for it
            self.exchange.drop_ticks()
        self.begun = True
        self.served_ns = self.came_ns = self.clock.now()
        return self.came_ns

    def let_pass(self, step: int) -> None:
        """Ticks that came meanwhile wait, and each is a step."""

    def ready(self, step: int) -> bool:
        run, now = self.run, self.clock.now()
        self.came_ns = self.exchange.next_tick(now + WAIT_NS)
        if self.came_ns:
            return not run.ended
        now = self.served_ns = self.clock.now()
        run.serve(now + SERVE_NS)
        return False

    def begin(self, step: int) -> int:
        return self.clock.now() - self.came_ns

    def window(self, step: int) -> tuple[int, int] | None:
        return None

    def gather(self, step: int) -> bool:
        deadline = self.came_ns + self.deadline_ns
        self.run.publish(step, deadline, max(1, deadline - self.clock.now()))
        return self.rest(step)

    def batch(self) -> tuple[int, int, bool] | None:
        return None

    def batched(self, published_ns: int, answered: bool) -> None:
        """It never is."""

    def rest(self, step: int) -> bool:
        return self.run.collect(step, self.came_ns + self.deadline_ns)

    def finish(self, step: int, now_ns: int) -> int:
        self.run.check()
        run = self.run
        if self.exchange.ticks_waiting():
            run.statistics.overruns += 1
            if run.policies.overrun == "abort" and not run.in_grace():
                run.end("policy", f"step {step} ended after the next tick had come (overrun policy abort)")
        if now_ns - self.served_ns >= SERVE_TICKS_EVERY_NS:
            self.served_ns = now_ns
            run.serve(now_ns + SERVE_NS)
        return UNDEFINED


# The mode free: no step waits for anything.


class Free(Unpaced):
    """As fast as the plant goes: takes the newest command there is and never waits.

    A state is observed and sent when the last one was answered, or 1 ms after it: a peer that is still thinking would
    not be sent another. Without a claimant the world is seen every 5 ms only.
    """

    mode = "free"

    def bind(self, run: Run) -> None:
        super().bind(run)
        self.published_ns, self.answered = self.served_ns, True

    def gather(self, step: int) -> bool:
        run, now = self.run, self.clock.now()
        if not run.claims.any:
            return True
        if self.answered or now - self.published_ns >= SEND_EVERY_NS:
            self.published_ns = now
            run.publish(step, 0, 0)
        complete = run.collect(step, 0)
        self.answered = complete or bool(run.exchange.fresh.any())
        return complete

    def batch(self) -> tuple[int, int, bool] | None:
        return self.served_ns + SERVE_EVERY_NS, self.published_ns, self.answered

    def batched(self, published_ns: int, answered: bool) -> None:
        self.published_ns, self.answered = published_ns, answered

    def rest(self, step: int) -> bool:
        return self.run.collect(step, 0)

    def finish(self, step: int, now_ns: int) -> int:
        self.run.check()
        if now_ns - self.served_ns >= SERVE_EVERY_NS:
            self.served_ns = now_ns
            if not self.run.claims.any:
                self.run.publish(step + 1, 0, 0)
            self.run.serve(now_ns + SERVE_NS)
        return UNDEFINED


# The mode lockstep: each step waits for its commands, however long they take to come.


class Lockstep(Unpaced):
    """As fast as both sides go: waits for every command, ends when a peer is dead or silent."""

    mode = "lockstep"

    def window(self, step: int) -> tuple[int, int] | None:
        return 0, 0

    def gather(self, step: int) -> bool:
        self.run.publish(step, 0, 0)
        return self.rest(step)

    def rest(self, step: int) -> bool:
        run, since = self.run, self.clock.now()
        while not run.collect(step, self.clock.now() + SERVE_EVERY_NS):
            run.answer()  # asked before the last look for commands: one who answered a state, then asked, is not ahead
            now = self.clock.now()
            run.serve(now + SERVE_NS)  # a bye or a stop comes this way
            run.watch_now()
            if run.ended:
                return False
            if run.dead:
                raise PeerError(f"{run.dead[0]}; lockstep cannot go on without it (step {step})")
            if now - since >= SILENT_NS:
                silent = ", ".join(run.exchange.waiting_for()) or "a peer"
                raise PeerError(
                    f"{silent} sent no command for step {step} within {SILENT_NS * 1e-9:g} s{self._refused()}"
                )
        return True

    def _refused(self) -> str:
        """What was refused so far, by reason, and the last of each peer in words; '' for nothing."""
        report = self.run.exchange.report()
        counts = ", ".join(f"{reason} {count}" for reason, count in (report.get("rejected") or {}).items())
        words = [f"{peer['name']}: {peer['refusal']}" for peer in report.get("peers", ()) if peer.get("refusal")]
        return (f"; refused so far: {counts}" if counts else "") + "".join(f"; the last of {one}" for one in words)

    def finish(self, step: int, now_ns: int) -> int:
        self.run.check()
        if now_ns - self.served_ns >= SERVE_EVERY_NS:
            self.served_ns = now_ns
            self.run.serve(now_ns + SERVE_NS)
            if self.run.dead and not self.run.ended:
                raise PeerError(f"{self.run.dead[0]}; lockstep cannot go on without it (step {step})")
        return UNDEFINED


# The mode realtime: an absolute schedule; commands are waited for until the deadline.


_OPENING, _OPENING_NS = 5, 2_000_000
"""Of the first steps of a run with claims: how many are followed by the next one no sooner than that. What runs for the
first time takes many times as long, here and in the controllers."""


class Realtime:
    """The absolute schedule; commands are waited for until the deadline.

    first_ns   longest wait for the first commands, before the schedule begins; 0: none, step 0 is as any other
    """

    mode = "realtime"

    def __init__(self, schedule: Schedule, first_ns: int = 0) -> None:
        self.schedule, self.first_ns = schedule, first_ns
        self.first, self.opening = False, 0

    def bind(self, run: Run) -> None:
        self.run, self.clock = run, run.clock
        self.overrun = OVERRUN_POLICIES[OverrunPolicy(OVERRUN_WORDS.index(run.policies.overrun))]
        self.served_ns = run.clock.now()

    def anchor(self, step: int) -> int:
        self.schedule.anchor(self.clock.now() + int(self.schedule.period_ns), step)
        return self.schedule.due(step)

    def ready(self, step: int) -> bool:
        """Long periods are waited for in slices: a stop or Ctrl-C must not wait for the end of one."""
        if self.first_ns and self.run.claims.any:
            return True
        now = self.clock.now()
        if self.schedule.due(step) - now <= LONG_NS:
            return True
        self.run.serve(now + SERVE_NS)
        self.clock.sleep_until(min(self.clock.now() + SLICE_NS, self.schedule.due(step) - SLICE_NS))
        return False

    def begin(self, step: int) -> int:
        if self.first_ns:
            self._ask_first(step)
        due = self.schedule.due(step)
        return self.clock.sleep_until(due) - due

    def _ask_first(self, step: int) -> None:
        """State 0 goes out before there is a schedule, which begins when its commands are in hand."""
        run, until, self.first_ns = self.run, self.clock.now() + self.first_ns, 0
        if not run.claims.any:
            return
        self.opening = _OPENING
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

    def gather(self, step: int) -> bool:
        if self.first:
            self.first = False
            return True
        deadline = self.schedule.due(step) + self.schedule.deadline_ns
        self.run.publish(step, deadline, max(1, deadline - self.clock.now()))  # 0 would mean that there is none
        return self.rest(step)

    def window(self, step: int) -> tuple[int, int] | None:
        if self.first_ns or self.first or self.schedule.deadline_ns > LONG_NS:
            return None
        due = self.schedule.due(step)
        return due, due + self.schedule.deadline_ns

    def batch(self) -> tuple[int, int, bool] | None:
        return None

    def batched(self, published_ns: int, answered: bool) -> None:
        """It never is."""

    def rest(self, step: int) -> bool:
        deadline = self.schedule.due(step) + self.schedule.deadline_ns
        while deadline - (now := self.clock.now()) > LONG_NS:
            if self.run.collect(step, now + SLICE_NS):
                return True
            if self.run.ended:
                return False
            self.run.serve(self.clock.now() + SERVE_NS)
        return self.run.collect(step, deadline)

    def finish(self, step: int, now_ns: int) -> int:
        if self.opening:
            self.opening -= 1
            self.schedule.anchor(now_ns + max(int(self.schedule.period_ns), _OPENING_NS), step + 1)
        slack = self.schedule.due(step + 1) - now_ns
        if slack < 0:
            self._overrun(step, now_ns)
        until = self.schedule.due(step + 1) - MARGIN_NS
        if until <= now_ns and now_ns - self.served_ns > STARVED_NS:
            until = now_ns + MARGIN_NS  # no slack for long: a peer must still be able to ask for an end
        if until > now_ns:
            if now_ns - self.served_ns >= SERVE_GAP_NS:
                self.served_ns = now_ns
                self.run.serve(until)
            self.run.check(until - PREPARE_NS)
            if self.clock.now() < until:
                self.run.prepare(step + 1, self.schedule.due(step + 1) + self.schedule.deadline_ns)
        return max(0, slack)

    def let_pass(self, step: int) -> None:
        """Periods that went by are dropped whole, and counted as skipped."""
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
