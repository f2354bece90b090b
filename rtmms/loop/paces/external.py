"""The mode external: a peer's ticks start the steps, one each, and the plant keeps no time of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtmms.contract import UNDEFINED
from rtmms.loop.pace import SERVE_NS
from rtmms.loop.ports import Ticking

if TYPE_CHECKING:
    from rtmms.loop.pace import Run

WAIT_NS = 5_000_000
"""A tick is waited for in slices of this, between which requests and newcomers are served."""
SERVE_EVERY_NS = 1_000_000


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
        if now_ns - self.served_ns >= SERVE_EVERY_NS:
            self.served_ns = now_ns
            run.serve(now_ns + SERVE_NS)
        return UNDEFINED
