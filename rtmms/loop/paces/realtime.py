"""The mode realtime: an absolute schedule; commands are waited for until the deadline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rtmms.contract import OVERRUN_WORDS, OverrunPolicy
from rtmms.loop.pace import LONG_NS, MARGIN_NS, PREPARE_NS, SERVE_GAP_NS, SERVE_NS, SLICE_NS, STARVED_NS
from rtmms.loop.policies import OVERRUN_POLICIES, skip

if TYPE_CHECKING:
    from rtmms.loop.pace import Run
    from rtmms.loop.schedule import Schedule


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
