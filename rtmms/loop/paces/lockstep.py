"""The mode lockstep: each step waits for its commands, however long they take to come."""

from __future__ import annotations

from rtmms.contract import UNDEFINED
from rtmms.loop.pace import SERVE_EVERY_NS, SERVE_NS, SILENT_NS, PeerError, Unpaced


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
