"""What peers may ask of a run between steps: stop, pause, resume, step, reset, set, snapshot, restore."""

from __future__ import annotations

import base64
from collections import deque
from typing import TYPE_CHECKING, Any

from rtmms.contract import OPERATIONS
from rtmms.errors import RtmmsError, UnknownNameError
from rtmms.loop import asked

if TYPE_CHECKING:
    from rtmms.loop.loop import Loop
    from rtmms.loop.ports import Request

MOST_WAITING = 64
PAUSE_SLICE_NS = 5_000_000


class Control:
    """Takes requests in the slack and does them between steps. An exchange without requests costs nothing."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.pending: deque[Request] = deque()
        self.paused, self._single = False, 0
        self._take = getattr(loop.exchange, "requests", None)
        self._reply: Any = getattr(loop.exchange, "reply", None)

    def fetch(self) -> None:
        """Take in what has come. A stop counts at once, so that it also ends a wait; the rest waits its turn."""
        if self._take is None:
            return
        for request in self._take():
            if request.op == "stop":
                self._reply(request, result={"step": self.loop.step})
                self.loop.end("stop", "stopped by request")
            elif len(self.pending) >= MOST_WAITING:
                self._reply(request, ok=False, error=f"{MOST_WAITING} requests are waiting already")
            else:
                self.pending.append(request)

    def between_steps(self) -> None:
        """Do everything that waits; stay here while the run is paused."""
        self._do_pending()
        if not self.paused:
            self.loop.pace.let_pass(self.loop.step)
            return
        while self.paused and not self.loop.ended:
            if self._single:
                self._single -= 1
                self.loop.pace.anchor(self.loop.step)
                self.loop.advance(self.loop.step)
                if self.loop.step >= self.loop.steps:
                    return
                continue
            now = self.loop.clock.now()
            self.loop.serve(now + PAUSE_SLICE_NS)
            self._do_pending()
            if self.paused and not self._single:
                self.loop.clock.sleep_until(now + PAUSE_SLICE_NS)
        self.loop.pace.anchor(self.loop.step)

    def _do_pending(self) -> None:
        while self.pending and not self.loop.ended:
            request = self.pending.popleft()
            try:
                result = self._do(request.op, request.args or {})
            except (RtmmsError, ValueError, TypeError, KeyError) as error:
                self._reply(request, ok=False, error=str(error) or type(error).__name__)
            else:
                self._reply(request, result=result)

    def _do(self, op: str, args: dict[str, Any]) -> Any:
        loop = self.loop
        asked.refuse_others(op, args)
        match op:
            case "pause":
                self.paused = True
            case "resume":
                self.paused = False
            case "step":
                count = asked.whole(op, "count", args.get("count", 1), 1)
                self.paused, self._single = True, self._single + count
            case "reset":
                loop.restart(asked.whole(op, "seed", args.get("seed", loop.seed), 0))
            case "snapshot":
                return {"step": loop.step, "state": base64.b64encode(loop.plant.snapshot()).decode()}
            case "restore":
                loop.plant.restore(asked.state(args))
                loop.altered(op="restore")
            case "set":
                change = getattr(loop.plant, "set", None)
                if change is None:
                    raise ValueError("set: this plant has no parameters that can be changed while it runs")
                change(**args)
                loop.altered(op="set", args=dict(args))
            case _:
                raise UnknownNameError("request", op, OPERATIONS)
        return {"step": loop.step}
