"""The modes: when a step starts, how long commands are waited for, and what is done between steps.

Each pace is bound to one loop and calls back into it; the loop itself is the same for all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from rtmms.errors import RtmmsError
from rtmms.loop.overrun import OVERRUN_POLICIES, skip
from rtmms.loop.statistics import UNDEFINED

if TYPE_CHECKING:
    from rtmms.loop.loop import Loop
    from rtmms.loop.schedule import Schedule

MARGIN_NS = 30_000
"""The loop stops serving this long before the next step is due, to be asleep when the timer fires."""
SERVE_NS = 200_000
SERVE_EVERY_NS = 5_000_000
SEND_EVERY_NS = 1_000_000
STARVED_NS = 100_000_000
SLICE_NS = 50_000_000
LONG_NS = 200_000_000
"""A wait that is longer is cut into slices, between which requests and newcomers are served."""
SILENT_NS = 5_000_000_000
START_NS = 10_000_000_000
"""How long the commands for step 0 may take: a controller's first answer loads and compiles what the later ones use."""
FIRST_NS = 1_000_000_000
"""The same for one that joins later: its misses before its first command count neither for limits nor `abort`."""


class PeerError(RtmmsError):
    """A peer that the run cannot go on without is gone or silent; the text names it."""


class Pace(Protocol):
    """One mode."""

    mode: str

    def bind(self, loop: Loop) -> None:
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

    def finish(self, step: int, now_ns: int) -> int:
        """After the step: overruns, and the low-priority work. Returns the slack in ns, UNDEFINED without a period."""


class Realtime:
    """The absolute schedule; commands are waited for until the deadline.

    first_ns   longest wait for the first commands, before the schedule begins; 0: none, step 0 is as any other
    """

    mode = "realtime"

    def __init__(self, schedule: Schedule, first_ns: int = 0) -> None:
        self.schedule, self.first_ns = schedule, first_ns
        self.first = False

    def bind(self, loop: Loop) -> None:
        self.loop, self.clock = loop, loop.clock
        self.overrun = OVERRUN_POLICIES[loop.policies.overrun]
        self.served_ns = loop.clock.now()

    def anchor(self, step: int) -> int:
        self.schedule.anchor(self.clock.now() + int(self.schedule.period_ns), step)
        return self.schedule.due(step)

    def ready(self, step: int) -> bool:
        """Long periods are waited for in slices: a stop or Ctrl-C must not wait for the end of one."""
        if self.first_ns and self.loop.claimed_any:
            return True
        now = self.clock.now()
        if self.schedule.due(step) - now <= LONG_NS:
            return True
        self.loop.serve(now + SERVE_NS)
        self.clock.sleep_until(min(self.clock.now() + SLICE_NS, self.schedule.due(step) - SLICE_NS))
        return False

    def begin(self, step: int) -> int:
        if self.first_ns:
            self._ask_first(step)
        due = self.schedule.due(step)
        return self.clock.sleep_until(due) - due

    def _ask_first(self, step: int) -> None:
        """State 0 goes out before there is a schedule, which begins when its commands are in hand."""
        loop, until, self.first_ns = self.loop, self.clock.now() + self.first_ns, 0
        if not loop.claimed_any:
            return
        loop.publish(step, until, until - self.clock.now())
        complete = False
        while not complete and not loop.ended and self.clock.now() < until:
            complete = loop.collect(step, min(until, self.clock.now() + SLICE_NS))
            if not complete:
                loop.serve(self.clock.now() + SERVE_NS)
                loop.watch_now()
                if loop.dead:
                    break
        self.first = loop.ahead = complete
        self.schedule.anchor(self.clock.now(), step)
        loop.start_at(self.schedule.due(step))

    def gather(self, step: int) -> bool:
        if self.first:
            self.first = False
            return True
        deadline = self.schedule.due(step) + self.schedule.deadline_ns
        self.loop.publish(step, deadline, max(1, deadline - self.clock.now()))  # 0 would mean that there is none
        while deadline - (now := self.clock.now()) > LONG_NS:
            if self.loop.collect(step, now + SLICE_NS):
                return True
            if self.loop.ended:
                return False
            self.loop.serve(self.clock.now() + SERVE_NS)
        return self.loop.collect(step, deadline)

    def finish(self, step: int, now_ns: int) -> int:
        slack = self.schedule.due(step + 1) - now_ns
        if slack < 0:
            self._overrun(step, now_ns)
        until = self.schedule.due(step + 1) - MARGIN_NS
        if until <= now_ns and now_ns - self.served_ns > STARVED_NS:
            until = now_ns + MARGIN_NS  # no slack for long: a peer must still be able to ask for an end
        if until > now_ns:
            self.served_ns = now_ns
            self.loop.serve(until)
            if self.clock.now() < until:
                self.loop.prepare(step + 1, self.schedule.due(step + 1) + self.schedule.deadline_ns)
        return max(0, slack)

    def let_pass(self, step: int) -> None:
        """Periods that went by are dropped whole, and counted as skipped."""
        behind = self.schedule.behind(step, self.clock.now())
        if behind > 0:
            drop = skip(behind, 0)
            self.schedule.dropped += drop
            self.loop.statistics.skipped += int(drop)

    def _overrun(self, step: int, now_ns: int) -> None:
        loop, schedule = self.loop, self.schedule
        behind = schedule.behind(step + 1, now_ns)
        drop = self.overrun(behind, loop.policies.catchup)
        loop.statistics.overruns += 1
        if math.isinf(drop) and loop.in_grace():
            drop = skip(behind, 0)
        if math.isinf(drop):
            late_us = behind * schedule.period_ns * 1e-3
            loop.end("policy", f"step {step} ended {late_us:.0f} us after its period (overrun policy abort)")
            return
        schedule.dropped += drop
        loop.statistics.skipped += int(drop)


class Lockstep:
    """As fast as both sides go: waits for every command, ends when a peer is dead or silent."""

    mode = "lockstep"

    def bind(self, loop: Loop) -> None:
        self.loop, self.clock = loop, loop.clock
        self.served_ns = loop.clock.now()

    def anchor(self, step: int) -> int:
        self.served_ns = self.clock.now()
        return self.served_ns

    def let_pass(self, step: int) -> None:
        """Nobody paces it: nothing to do."""

    def ready(self, step: int) -> bool:
        return True

    def begin(self, step: int) -> int:
        return UNDEFINED

    def gather(self, step: int) -> bool:
        loop, since = self.loop, self.clock.now()
        loop.publish(step, 0, 0)
        while not loop.collect(step, self.clock.now() + SLICE_NS):
            now = self.clock.now()
            loop.serve(now + SERVE_NS)  # a bye or a stop comes this way
            loop.watch_now()
            if loop.ended:
                return False
            if loop.dead:
                raise PeerError(f"{loop.dead[0]}; lockstep cannot go on without it (step {step})")
            if now - since >= SILENT_NS:
                silent = ", ".join(loop.exchange.waiting_for()) or "a peer"
                refused = loop.exchange.report().get("rejected") or {}
                told = ", ".join(f"{reason} {count}" for reason, count in refused.items())
                raise PeerError(
                    f"{silent} sent no command for step {step} within {SILENT_NS * 1e-9:g} s"
                    + (f"; refused so far: {told}" if told else "")
                )
        return True

    def finish(self, step: int, now_ns: int) -> int:
        if now_ns - self.served_ns >= SERVE_EVERY_NS:
            self.served_ns = now_ns
            self.loop.serve(now_ns + SERVE_NS)
            if self.loop.dead and not self.loop.ended:
                raise PeerError(f"{self.loop.dead[0]}; lockstep cannot go on without it (step {step})")
        return UNDEFINED


class Free:
    """As fast as the plant goes: takes the newest command there is and never waits.

    A state is observed and sent when the last one was answered, or 1 ms after it: a peer that is still thinking would
    not be sent another. Without a claimant the world is seen every 5 ms only.
    """

    mode = "free"

    def bind(self, loop: Loop) -> None:
        self.loop, self.clock = loop, loop.clock
        self.served_ns = self.published_ns = loop.clock.now()
        self.answered = True

    def anchor(self, step: int) -> int:
        self.served_ns = self.clock.now()
        return self.served_ns

    def let_pass(self, step: int) -> None:
        """Nobody paces it: nothing to do."""

    def ready(self, step: int) -> bool:
        return True

    def begin(self, step: int) -> int:
        return UNDEFINED

    def gather(self, step: int) -> bool:
        loop, now = self.loop, self.clock.now()
        if not loop.claimed_any:
            return True
        if self.answered or now - self.published_ns >= SEND_EVERY_NS:
            self.published_ns = now
            loop.publish(step, 0, 0)
        complete = loop.collect(step, 0)
        self.answered = complete or bool(loop.exchange.fresh.any())
        return complete

    def finish(self, step: int, now_ns: int) -> int:
        if now_ns - self.served_ns >= SERVE_EVERY_NS:
            self.served_ns = now_ns
            if not self.loop.claimed_any:
                self.loop.publish(step + 1, 0, 0)
            self.loop.serve(now_ns + SERVE_NS)
        return UNDEFINED
