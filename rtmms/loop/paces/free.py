"""The mode free: no step waits for anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtmms.contract import UNDEFINED
from rtmms.loop.kernels.memory import SEND_EVERY_NS
from rtmms.loop.pace import SERVE_EVERY_NS, SERVE_NS, Unpaced

if TYPE_CHECKING:
    from rtmms.loop.pace import Run


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
