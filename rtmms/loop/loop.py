"""The loop: one step after the other, on time, with whatever commands came; it knows time, not robots or sockets.

A step k: wait for t_k; publish state k with its budget; collect commands until the deadline; let the miss policy stand
in for what is not there; plant.step; observers; the overrun policy; serve the rest of the world in the slack. The pace
(realtime, lockstep, free, external) decides only how long each wait is, so the same commands give the same bits.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import UNDEFINED, StepOutcome
from rtmms.base.errors import DivergedError
from rtmms.loop.chores import NEVER, Chores, View
from rtmms.loop.clock import MonotonicClock
from rtmms.loop.fallback import Fallback
from rtmms.loop.fault_attribution import Times
from rtmms.loop.pace import PeerError
from rtmms.loop.policies import Counts, add, exceeded, exceeded_share
from rtmms.loop.ports import AdmitsPeers, Compiling, LogsNotes, Naming, Preparing, StepRecorder
from rtmms.loop.requests import Requests
from rtmms.loop.step_paths import CompiledPath, GeneralPath, StepProgress

if TYPE_CHECKING:
    from rtmms.loop.chores import Agenda, Watch
    from rtmms.loop.clock import Clock
    from rtmms.loop.fault_attribution import FaultAttribution
    from rtmms.loop.pace import Pace
    from rtmms.loop.policies import Governor, Policies
    from rtmms.loop.ports import Array, Exchange, Observer
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import CommandTrace
    from rtmms.plant.monitor import Monitor
    from rtmms.plant.protocol import Plant

LOOK_EVERY_NS, LOOK_NS = 150_000_000, 500_000
"""Where no slack is left for so long, the handshake endpoint is looked at all the same, and for how long: a plant that
overruns must still answer `status` and `stop`."""
MOST_CHANGES = 1000
"""Changes by request that are kept for a replay, which stops at the first that is not."""


@dataclass(slots=True)
class Outcome:
    """How a run went.

    ended        duration, interrupt, stop, policy, peer or diverged;  message: why, '' when there is none
    steps        taken;  simulated_s = steps * dt;  wall_s from the start of step 0
    final        the outputs at the end; at the last sound state when the simulation diverged
    """

    ended: str
    message: str
    steps: int
    simulated_s: float
    wall_s: float
    final: dict[str, Array]


@dataclass(slots=True)
class LoopServices:
    """What goes along with the steps.

    commands   keeps every command, or None
    watch      reports which processes died
    status     called after `watch` with the loop: what a display shows
    attribution      finds the cause of each miss and overrun
    monitor    estimates the error of the steps
    agenda     what is set at which step
    governor   changes the plant to cheaper variants where periods are too full
    """

    commands: CommandTrace | None = None
    watch: Watch | None = None
    status: Callable[[Loop], None] | None = None
    attribution: FaultAttribution | None = None
    monitor: Monitor | None = None
    agenda: Agenda | None = None
    governor: Governor | None = None


class Loop:
    """One run of a plant. `run` is called once.

    observers  see the steps they ask for
    steps      the one at which it ends; None: until a request ends it
    first      the step that it begins with: 0, but for a run that goes on from another one. A reset goes back to 0
    step       the next one;  ended, message  why the run ends, '' while it does not
    seed, resets, alterations, changes   what requests made of the run
    collections   garbage collections within the run: 0, unless something collects on purpose
    """

    __slots__ = (  # read several times a step, and of more than 30 attributes a dictionary is slow
        "_admitting", "_chores", "_compiled", "_counts", "_general", "_governor", "_limited", "_looked_ns", "_looks",
        "_monitor", "_naming", "_preparing", "_taken", "alterations", "answered", "attribution", "changes", "check_at",
        "claims", "clock", "collections", "command", "commands", "ended", "exchange", "fallback", "first", "message",
        "pace", "plant", "policies", "prepared", "requests", "resets", "seed", "sent", "started_ns", "statistics",
        "step", "steps", "tape", "view",
    )  # fmt: skip

    def __init__(
        self, plant: Plant, exchange: Exchange, clock: Clock, pace: Pace, policies: Policies, statistics: Statistics,
        observers: Sequence[Observer] = (), *, steps: int | None = None, seed: int = 0,
        beside: LoopServices | None = None, first: int = 0,
    ) -> None:  # fmt: skip
        beside = beside or LoopServices()
        self.plant, self.exchange, self.clock, self.pace = plant, exchange, clock, pace
        self.policies, self.statistics, self.commands, self.attribution = (
            policies,
            statistics,
            beside.commands,
            beside.attribution,
        )
        self.steps = NEVER if steps is None else steps
        self.step, self.ended, self.message, self.started_ns = first, "", "", 0
        self.first = first
        self.seed, self.resets, self.alterations, self.collections = seed, 0, 0, 0
        self.changes: list[dict[str, Any]] = []
        self.view = View(plant, observers)
        self.fallback = Fallback(plant, exchange, clock, policies, self.end, free=pace.mode == "free")
        if beside.monitor is not None:
            self.fallback.memory.tape = beside.monitor.tape
        self.tape = self.fallback.memory.tape
        self.command, self.claims = self.fallback.command, self.fallback.claims
        show = None if beside.status is None else partial(beside.status, self)
        self._chores = Chores(clock, statistics, beside.watch, show, beside.attribution)
        self.requests = Requests(self, beside.agenda)
        self._preparing = exchange if isinstance(exchange, Preparing) else None
        self._naming = exchange if isinstance(exchange, Naming) else None
        self._counts, self._limited = Counts(), policies.limits.any
        self._governor = beside.governor
        self._monitor, self.check_at = beside.monitor, 0 if beside.monitor is not None else NEVER
        self._admitting = exchange if isinstance(exchange, AdmitsPeers) else None
        self._looks, self._looked_ns = 0, clock.now()
        self.prepared, self.sent, self.answered = (-1, 0), (0, 0), False
        compiling = exchange if isinstance(exchange, Compiling) and isinstance(clock, MonotonicClock) else None
        step_recorder = next((one for one in observers if isinstance(one, StepRecorder)), None)
        self._general, self._compiled = GeneralPath(self), CompiledPath(self, compiling, step_recorder)
        self.view.step_recorder, self._taken = self._compiled.step_recorder, StepProgress()
        pace.bind(self)

    # --- what the pace and the requests use, see rtmms.loop.pace.Run and rtmms.loop.requests.Run ---------------------

    @property
    def dead(self) -> list[str]:
        """A sentence for each process that has died."""
        return self._chores.dead

    def end(self, reason: str, message: str = "") -> None:
        """End the run after the present step; the first reason stands. Safe to call from a signal handler."""
        if not self.ended:
            self.ended, self.message = reason, message

    def start_at(self, instant_ns: int, *, answered: bool = False) -> None:
        """The run counts from there: its wall time, its grace, the age of what is held.

        answered   the commands of its first step are in hand: that exchange was none of the schedule's
        """
        self.started_ns, self.answered = instant_ns, answered
        self.fallback.start_at(instant_ns)

    def in_grace(self) -> bool:
        """Neither limits nor `abort` act yet."""
        return self.clock.now() < self.fallback.grace.until_ns

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        """State `step` to the world; it is observed at most once."""
        outputs = self.view.outputs(step)
        self.exchange.publish(step, step * self.plant.dt, deadline_ns, budget_ns, outputs, self.exchange.applied)
        self.sent = self.clock.now(), deadline_ns

    def prepare(self, step: int, deadline_ns: int) -> None:
        """In the slack: observe and pack state `step`, so that at its instant it has only to be sent."""
        if self._preparing is not None and not self.requests.pending and self.requests.agenda.next > step:
            self.prepared = (step, deadline_ns)
            compiling = self._compiled.preparing
            if compiling is not None and compiling.prepare_alone(step, deadline_ns):
                return
            time = step * self.plant.dt
            self._preparing.prepare(step, time, deadline_ns, self.view.outputs(step), self.exchange.applied)

    def collect(self, step: int, until_ns: int) -> bool:
        """Commands for `step` into `command`; True when every claimed actuator has its own."""
        complete = self.exchange.collect(step, self.command, until_ns)
        self.note_claims()
        return complete

    def note_claims(self) -> None:
        """Peers came or went: what nobody holds any more goes to neutral."""
        if self.claims.refresh():
            self.fallback.homing = True

    def serve(self, until_ns: int) -> None:
        """The low-priority work, until the instant at most."""
        self.exchange.serve(until_ns)
        self.note_claims()
        self.requests.fetch()
        self._chores.do(until_ns)

    def answer(self) -> None:
        """Do the requests that can be done while the commands of the step are waited for."""
        if self.requests.pending:
            self.requests.while_waiting()

    def check(self, until_ns: int = 0) -> None:
        """A piece of the monitor's work, where it has one and there is time for it until the instant; 0: any."""
        if self.step >= self.check_at and self._monitor is not None:
            now = self.clock.now()
            if until_ns and until_ns - now < self._monitor.longest_ns:
                return
            self.check_at = self.step + self._monitor.look(self.command)
            self._monitor.took(self.clock.now() - now)
            if self._monitor.hopeless:
                self.end("diverged", self._monitor.verdict.sentence)

    def watch_now(self) -> None:
        """Look after the processes and the display."""
        self._chores.watch_now()

    def outputs(self, step: int) -> Mapping[str, Array]:
        """The outputs at t = step * dt."""
        return self.view.outputs(step)

    def restart(self, seed: int) -> None:
        """Back to t = 0: the plant, the counters and what was kept."""
        self.plant.reset(seed)
        self.forget_prepared()
        self.seed, self.step, self.first = seed, 0, 0
        self.resets += 1
        self.requests.agenda.rewind()
        if self._monitor is not None:
            self._monitor.clear()
            self.check_at = 0
        self.statistics.clear()
        if self._governor is not None:
            self._governor.clear()
        if self.attribution is not None:
            self.attribution.clear()
        self.fallback.clear()
        self.view.clear()
        if self.commands is not None:
            self.commands.clear()
        self._begin()

    def altered(self, **how: Any) -> None:
        """The state was changed from outside between steps;  how  op and args of the request, for a replay."""
        if len(self.changes) < MOST_CHANGES:
            self.changes.append({"run": self.resets, "step": self.step, **how})
        self.view.forget()
        if self._monitor is not None:
            self._monitor.forget(self.step)
        self.forget_prepared()
        self.alterations += 1
        if self.commands is not None:
            self.commands.altered.append(self.step)

    def note(self, values: Mapping[str, Any]) -> None:
        """A peer's words for the log; see rtmms.loop.ports.Noting."""
        for observer in self.view.observers:
            if isinstance(observer, LogsNotes):
                observer.note(self.step, values)

    def forget_prepared(self) -> None:
        self.prepared = (-1, 0)
        if self._preparing is not None:
            self._preparing.prepare(-1, 0.0, 0, {}, self.exchange.applied)

    # --- the run ----------------------------------------------------------------------------------------------------

    def run(self, *, tidy: bool = True) -> Outcome:
        """Take the steps. The plant has been reset, the peers are admitted. Raises what a faulty plant raises.

        tidy  collect garbage before, and none within: some 50 ms that a run without a clock does not need"""
        if tidy:
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
            if self.attribution is not None:
                self.attribution.finish(self.clock.now())
            self.collections = _collections() - collected
            if tidy:
                gc.enable()
                gc.unfreeze()
        share = exceeded_share(self.policies.limits, self._counts, self.step - self.first)
        if share and self.ended in ("", "stop"):
            self.ended, self.message = "policy", share
        self.end("duration")
        final = diverged.last_good if diverged is not None else self.outputs(self.step)
        return Outcome(
            self.ended, self.message, self.step - self.first, (self.step - self.first) * self.plant.dt, wall_ns * 1e-9,
            {name: np.array(value, dtype=np.float64) for name, value in final.items()},
        )  # fmt: skip

    def _begin(self) -> None:
        """The first step is next: the first state to the observers, ages and schedule from now."""
        self.view.start(self.step)
        self._counts = Counts()
        if self._monitor is not None:
            self._monitor.look(self.command)  # what comes to rest within the first steps is seen in the first of them
        self.start_at(self.pace.anchor(self.step))
        if self.attribution is not None:
            self.attribution.rest(self.clock.now(), self.started_ns)
        self.note_claims()

    def _take_steps(self) -> None:
        requests, advance, ready = self.requests, self.advance, self.pace.ready
        agenda = requests.agenda
        batches = self._compiled.can_batch and self.commands is None and self.attribution is None and not self._limited
        run_batch = self._compiled.run_batch
        while self.step < self.steps and not self.ended:
            if requests.pending or agenda.next <= self.step:
                requests.between_steps()
            elif ready(self.step) and not (batches and run_batch()):
                advance(self.step)
        if not self.ended:
            self.pace.begin(self.step)  # the last period is lived through to its end, as every other

    def advance(self, step: int) -> None:
        """One step, from its instant to the end of its slack."""
        taken = self._taken
        taken.clear()
        self._compiled.run(step, taken)
        if self._general.run(step, taken):
            self._finish(step, taken)

    def _finish(self, step: int, taken: StepProgress) -> None:
        """The step is taken: counted, shown, judged; then its slack."""
        now, pace, statistics, attribution = self.clock.now, self.pace, self.statistics, self.attribution
        self.step = step + 1
        statistics.count(taken.outcome)
        if self.view.due <= step or (self.view.step_recorder is not None and not taken.kept):
            self.view.show(step, self.command, self.exchange.applied, taken.kept)
        if self.commands is not None:
            self.commands.record(step, self.command, taken.outcome, self.exchange.applied, self.outputs(step + 1))
        ended, missed, overruns = now(), taken.outcome == StepOutcome.MISSED, statistics.overruns
        due = taken.begun if taken.wake == UNDEFINED else taken.begun - taken.wake
        if attribution is not None and (missed or ended - due > attribution.busy_ns):
            attribution.look(self._naming.silent() if missed and self._naming is not None else ())
        slack = pace.finish(step, ended)
        asked, self.answered = self.claims.any and not self.answered, False
        exchange_ns = taken.gathered - taken.begun
        statistics.record(taken.wake, exchange_ns if asked else UNDEFINED, taken.stepped - taken.called, slack)
        overran = statistics.overruns != overruns
        if self._governor is not None:
            self._give_way(self._governor, ended - due, taken.stepped - taken.called)
        if self._limited and not self.ended and ended >= self.fallback.grace.until_ns:
            self._hold_to_limits(
                missed and not self.fallback.excused, overran, taken.outcome == StepOutcome.STALE
            )  # fmt: skip
        if self._admitting is not None:
            self._see_newcomers(self._admitting)
        if attribution is not None:
            if taken.complete and asked:
                attribution.answered(exchange_ns)
            if missed or overran:
                published, deadline = self.sent
                times = Times(due, taken.begun, published, taken.gathered, taken.called, taken.stepped, ended, deadline)
                attribution.keep(step, missed, overran, times)
            attribution.rest(now(), due)

    def _give_way(self, governor: Governor, busy_ns: int, plant_ns: int) -> None:
        """Change the plant to the level that the governor asks for, and let it stand in the log as what was set."""
        level = governor.look(busy_ns, plant_ns)
        if level != governor.level:
            self.plant.set(level=level)  # type: ignore[attr-defined]
            self.altered(op="set", args={"level": level})
            governor.changed(self.step, level)

    def _see_newcomers(self, at: AdmitsPeers) -> None:
        """Force a look at the handshake endpoint where the slack has been too short for long. The periods that it takes
        are skipped, not overrun."""
        now = self.clock.now()
        if at.looks != self._looks:
            self._looks, self._looked_ns = at.looks, now
        elif now - self._looked_ns >= LOOK_EVERY_NS:
            at.look(now + LOOK_NS)
            self._looks, self._looked_ns = at.looks, self.clock.now()
            self.note_claims()
            self.requests.fetch()
            self.pace.let_pass(self.step)

    def _hold_to_limits(self, missed: bool, overran: bool, stale: bool) -> None:
        """Count the step, and end the run where a limit is exceeded."""
        add(self._counts, missed, overran, stale)
        text = exceeded(self.policies.limits, self._counts) if missed or overran or stale else ""
        if text:
            silent = ", ".join(self.exchange.waiting_for()) if missed else ""
            self.end("policy", f"step {self.step - 1}: {text}" + (f"; no command from {silent}" if silent else ""))


def _collections() -> int:
    """Garbage collections of this process so far."""
    return sum(generation["collections"] for generation in gc.get_stats())
