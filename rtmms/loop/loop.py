"""The loop: one step after the other, on time, with whatever commands came; it knows time, not robots or sockets.

A step k: wait for t_k; publish state k with its budget; collect commands until the deadline; let the miss policy stand
in for what is not there; plant.step; observers; the overrun policy; serve the rest of the world in the slack. The pace
(realtime, lockstep, free, external) decides only how long each wait is, so the same commands give the same bits.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.errors import DivergedError
from rtmms.loop.commands import APPLIED, MISSED, REUSED, UNCLAIMED
from rtmms.loop.control import Control
from rtmms.loop.limits import Counts, add, exceeded
from rtmms.loop.miss import MISS_POLICIES, Miss
from rtmms.loop.pace import FIRST_NS, PeerError
from rtmms.loop.statistics import UNDEFINED

if TYPE_CHECKING:
    from rtmms.loop.blame import Blame
    from rtmms.loop.clock import Clock
    from rtmms.loop.commands import CommandTrace
    from rtmms.loop.pace import Pace
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Array, Exchange, Observer
    from rtmms.loop.statistics import Statistics
    from rtmms.plant import Plant

NEVER = 1 << 62
MOST_CHANGES = 1000
"""Changes by request that are kept for a replay, which stops at the first that is not."""
WATCH_EVERY_NS = 50_000_000
WATCH_COST_NS = 120_000
JUDGE_NS = 60_000

Watch = Callable[[], Sequence[str]]
"""Called about every 50 ms between steps; returns a sentence for each process that has died since the last call."""


@dataclass(slots=True)
class Outcome:
    """How a run went.

    ended        duration, interrupt, stop, policy, peer or diverged;  message: why, '' when there is nothing to say
    steps        taken;  simulated_s = steps * dt;  wall_s from the start of step 0
    final        the outputs at the end; at the last sound state when the simulation diverged
    """

    ended: str
    message: str
    steps: int
    simulated_s: float
    wall_s: float
    final: dict[str, Array]


class Loop:
    """One run of a plant. `run` is called once.

    steps      to take; None: until it is told to end
    observers  see the steps they ask for;  commands  keeps every command, or None
    watch      says which processes died
    status     called after `watch` with the loop: what a display shows
    blame      finds the cause of each miss and overrun
    collections   garbage collections within the run: 0, unless something collects on purpose
    """

    def __init__(
        self, plant: Plant, exchange: Exchange, clock: Clock, pace: Pace, policies: Policies, statistics: Statistics,
        observers: Sequence[Observer] = (), *, steps: int | None = None, commands: CommandTrace | None = None,
        watch: Watch | None = None, status: Callable[[Loop], None] | None = None, seed: int = 0,
        blame: Blame | None = None,
    ) -> None:  # fmt: skip
        self.plant, self.exchange, self.clock, self.pace = plant, exchange, clock, pace
        self.policies, self.statistics = policies, statistics
        self.observers, self.commands, self.seed = tuple(observers), commands, seed
        self.steps = NEVER if steps is None else steps
        self.step, self.ended, self.message = 0, "", ""
        self.alterations = self.collections = self.resets = 0
        self.changes: list[dict[str, Any]] = []
        self.dead: list[str] = []
        self._watch, self._status, self._watched_ns = watch, status, 0
        self.blame, self._silent = blame, getattr(exchange, "silent", tuple)
        self._published_ns = self._deadline_ns = 0
        self._prepare: Any = getattr(exchange, "prepare", None)
        self._control = Control(self)

        self._stand_in = MISS_POLICIES["hold" if pace.mode == "free" else policies.miss]
        self._stand_in_name = "hold" if pace.mode == "free" else policies.miss
        self._abort_on_miss = policies.miss == "abort" and pace.mode != "free"
        self._remember = policies.miss == "extrapolate"
        self._oldest_ns = int(policies.oldest_s * 1e9)
        self._grace_ns, self._grace_until, self._excused = int(policies.grace_s * 1e9), 0, False
        self._counts, self._limited = Counts(), policies.limits.any
        self._late = REUSED if pace.mode == "free" else MISSED
        self._miss = Miss(plant.actuators, plant.dt)
        self.command: Array = self._miss.command
        n = len(plant.actuators)
        self._claimed = np.zeros(n, dtype=np.bool_)
        self._claimed_bytes, self.claimed_any = b"", False
        self._homing = False
        self._answered = np.zeros(n, dtype=np.bool_)
        self._claimed_at = np.zeros(n, dtype=np.int64)
        self.ahead = False
        self._fresh_at = np.zeros(n, dtype=np.int64)
        self._complete_at = 0
        self._observed_step = -1
        self._outputs: Mapping[str, Array] = {}
        self._due = NEVER
        self.started_ns = 0
        pace.bind(self)

    # --- what the paces and the control use -------------------------------------------------------------------------

    def end(self, reason: str, message: str = "") -> None:
        """End the run after the present step; the first reason stands. Safe to call from a signal handler."""
        if not self.ended:
            self.ended, self.message = reason, message

    def start_at(self, instant_ns: int) -> None:
        """The run counts from there: its wall time, its grace, the age of what is held."""
        self.started_ns = self._complete_at = instant_ns
        self._grace_until = instant_ns + self._grace_ns

    def in_grace(self) -> bool:
        """Neither limits nor `abort` act yet."""
        return self.clock.now() < self._grace_until

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        """State `step` to the world; it is observed at most once."""
        outputs = self.outputs(step)
        self.exchange.publish(step, step * self.plant.dt, deadline_ns, budget_ns, outputs, self.exchange.applied)
        self._published_ns, self._deadline_ns = self.clock.now(), deadline_ns

    def prepare(self, step: int, deadline_ns: int) -> None:
        """In the slack: observe and pack state `step`, so that at its instant it has only to be sent."""
        if self._prepare is not None and not self._control.pending:
            time = step * self.plant.dt
            self._prepare(step, time, deadline_ns, self.outputs(step), self.exchange.applied)

    def collect(self, step: int, until_ns: int) -> bool:
        """Commands for `step` into `command`; True when every claimed actuator has its own."""
        complete = self.exchange.collect(step, self.command, until_ns)
        self._refresh_claims()
        return complete

    def serve(self, until_ns: int) -> None:
        """The low-priority work, until the instant at most."""
        self.exchange.serve(until_ns)
        self._refresh_claims()
        self._control.fetch()
        now = self.clock.now()
        unwatched = now - self._watched_ns
        if unwatched >= WATCH_EVERY_NS and (until_ns - now > WATCH_COST_NS or unwatched > 10 * WATCH_EVERY_NS):
            self.watch_now()
        else:
            self.statistics.drain(min(8, (until_ns - now) // 4000))
            if self.blame is not None and self.blame.waiting and until_ns - now > JUDGE_NS:
                self.blame.judge(now, 2)

    def watch_now(self) -> None:
        """Look after the processes and the display."""
        self._watched_ns = self.clock.now()
        if self._watch is not None:
            self.dead.extend(self._watch())
        if self._status is not None:
            self._status(self)
        if self.blame is not None:
            self.blame.judge(self._watched_ns, 8)

    def outputs(self, step: int) -> Mapping[str, Array]:
        """The outputs at t = step * dt."""
        if self._observed_step != step:
            self._outputs = self.plant.observe()
            self._observed_step = step
        return self._outputs

    def restart(self, seed: int) -> None:
        """Back to t = 0: the plant, the counters and what was kept."""
        self.plant.reset(seed)
        self._forget_prepared()
        self.seed, self.step = seed, 0
        self.resets += 1
        self.statistics.clear()
        if self.blame is not None:
            self.blame.clear()
        self.command[:] = self._miss.neutral
        for observer in self.observers:
            observer.clear()
        if self.commands is not None:
            self.commands.clear()
        self._begin()

    def altered(self, **how: Any) -> None:
        """The state was changed from outside between steps;  how  op and args of the request, for a replay."""
        if len(self.changes) < MOST_CHANGES:
            self.changes.append({"run": self.resets, "step": self.step, **how})
        self._observed_step = -1
        self._forget_prepared()
        self.alterations += 1
        if self.commands is not None:
            self.commands.altered.append(self.step)

    def _forget_prepared(self) -> None:
        if self._prepare is not None:
            self._prepare(-1, 0.0, 0, {}, self.exchange.applied)

    # --- the run ----------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Take the steps. The plant has been reset, the peers are admitted. Raises what a faulty plant raises."""
        gc.collect()
        gc.freeze()
        gc.disable()
        collected = _collections()
        diverged: DivergedError | None = None
        try:
            self._begin()
            self._take_steps()
        except DivergedError as error:
            diverged = error
            self.end("diverged", str(error))
        except PeerError as error:
            self.end("peer", str(error))
        finally:
            wall_ns = max(0, self.clock.now() - self.started_ns)
            if self.blame is not None:
                self.blame.finish(self.clock.now())
            self.collections = _collections() - collected
            gc.enable()
            gc.unfreeze()
        self.end("duration")
        final = diverged.last_good if diverged is not None else self.outputs(self.step)
        return Outcome(
            self.ended, self.message, self.step, self.step * self.plant.dt, wall_ns * 1e-9,
            {name: np.array(value, dtype=np.float64) for name, value in final.items()},
        )  # fmt: skip

    def _begin(self) -> None:
        """Step 0 is next: the first state to the observers, ages and schedule from now."""
        self._observed_step = -1
        for observer in self.observers:
            observer.start(self.outputs(0))
        self._due = min((observer.due for observer in self.observers), default=NEVER)
        self._counts = Counts()
        self.start_at(self.pace.anchor(self.step))
        if self.blame is not None:
            self.blame.rest(self.clock.now(), self.started_ns)
        self._refresh_claims()

    def _take_steps(self) -> None:
        control, advance, ready = self._control, self.advance, self.pace.ready
        while self.step < self.steps and not self.ended:
            if control.pending:
                control.between_steps()
            elif ready(self.step):
                advance(self.step)
        if not self.ended:
            self.pace.begin(self.step)  # the last period is lived through to its end, as every other

    def advance(self, step: int) -> None:
        """One step, from its instant to the end of its slack."""
        now, pace, statistics = self.clock.now, self.pace, self.statistics
        wake = pace.begin(step)
        begun = now()
        complete = pace.gather(step)
        gathered = now()
        if not complete and self.ended:
            return
        outcome = self._resolve(complete, gathered)
        if self._homing:
            self._go_home()

        called = now()
        self.plant.step(self.command)
        stepped = now()

        self.step = after = step + 1
        statistics.count(outcome)
        if self._due <= step:
            self._show(step)
        if self.commands is not None:
            self.commands.record(step, self.command, outcome, self.exchange.applied, self.outputs(after))
        ended, overruns, missed = now(), statistics.overruns, outcome == MISSED
        blame, due = self.blame, begun if wake == UNDEFINED else begun - wake
        if blame is not None and (missed or ended - due > blame.busy_ns):
            blame.look(self._silent() if missed else ())
        slack = pace.finish(step, ended)
        asked, self.ahead = self.claimed_any and not self.ahead, False
        statistics.record(wake, gathered - begun if asked else UNDEFINED, stepped - called, slack)
        if self._limited and not self.ended and ended >= self._grace_until:
            self._hold_to_limits(missed and not self._excused, statistics.overruns != overruns)
        if blame is not None:
            if complete and asked:
                blame.answered(gathered - begun)
            overran = statistics.overruns != overruns
            if missed or overran:
                blame.keep(step, missed, overran, due, begun, self._published_ns, gathered, called, stepped, ended,
                           self._deadline_ns)  # fmt: skip
            blame.rest(now(), due)

    def _resolve(self, complete: bool, now_ns: int) -> int:
        """What becomes of the step; a policy stands in for what is missing. Returns the outcome's code."""
        if not self.claimed_any:
            self.exchange.applied.policy = ""
            return UNCLAIMED
        if complete:
            self.exchange.applied.policy = ""
            self._complete_at = now_ns
            self._answered[:] = self._claimed
            if self._remember:
                self._miss.remember()
            return APPLIED
        self._replace_missing(now_ns)
        return self._late

    def _replace_missing(self, now_ns: int) -> None:
        """The miss policy on the claimed actuators without a fresh value; `home` on those held for too long."""
        miss, fresh, applied = self._miss, self.exchange.fresh, self.exchange.applied
        np.greater(self._claimed, fresh, out=miss.missing)
        self._fresh_at[fresh | self.exchange.renewed] = now_ns
        self.exchange.renewed[:] = False
        self._answered |= fresh
        applied.policy = self._stand_in_name
        self._excused = now_ns < self._grace_until or not np.any(
            miss.missing & (self._answered | (now_ns - self._claimed_at >= FIRST_NS))
        )
        if self._abort_on_miss and self._excused:
            applied.policy = "hold"
        elif self._abort_on_miss:
            silent = ", ".join(self.exchange.waiting_for()) or "a peer"
            self.end("policy", f"{silent} sent no command for step {self.step} in time (miss policy abort)")
            return
        old = miss.missing & (now_ns - np.maximum(self._fresh_at, self._complete_at) > self._oldest_ns)
        if old.any():
            miss.missing &= ~old
            self._stand_in(miss)
            miss.missing[:] = old
            MISS_POLICIES["home"](miss)
            applied.policy = "home"
        else:
            self._stand_in(miss)

    def _hold_to_limits(self, missed: bool, overran: bool) -> None:
        """Count the step, and end the run where a limit is exceeded."""
        add(self._counts, missed, overran)
        text = exceeded(self.policies.limits, self._counts) if missed or overran else ""
        if text:
            silent = ", ".join(self.exchange.waiting_for()) if missed else ""
            self.end("policy", f"step {self.step - 1}: {text}" + (f"; no command from {silent}" if silent else ""))

    def _refresh_claims(self) -> None:
        """Notice that claims were taken or released (35 ns when they were not)."""
        seen = self.exchange.claimed.tobytes()
        if seen == self._claimed_bytes:
            return
        taken = self.exchange.claimed & ~self._claimed
        self._fresh_at[taken] = self._claimed_at[taken] = self.clock.now()  # the age of its value counts from the claim
        self._answered[taken] = False
        self._claimed[:] = self.exchange.claimed
        self._claimed_bytes, self.claimed_any = seen, bool(self._claimed.any())
        self._homing = True

    def _go_home(self) -> None:
        """Actuators that nobody holds move to neutral at the limited rate."""
        miss = self._miss
        np.logical_not(self._claimed, out=miss.missing)
        MISS_POLICIES["home"](miss)
        self._homing = bool(np.any(miss.command[miss.missing] != miss.neutral[miss.missing]))

    def _show(self, step: int) -> None:
        """The end of `step` to the observers that asked for it."""
        outputs, time = self.outputs(step + 1), (step + 1) * self.plant.dt
        for observer in self.observers:
            if observer.due <= step:
                observer.after_step(step, time, outputs, self.command, self.exchange.applied)
        self._due = min(observer.due for observer in self.observers)


def _collections() -> int:
    """Garbage collections of this process so far."""
    return sum(generation["collections"] for generation in gc.get_stats())
