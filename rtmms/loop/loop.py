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

from rtmms.errors import DivergedError
from rtmms.loop.causes import Times
from rtmms.loop.chores import Chores
from rtmms.loop.clock import MonotonicClock
from rtmms.loop.commands import APPLIED, MISSED
from rtmms.loop.limits import Counts, add, exceeded
from rtmms.loop.pace import PeerError
from rtmms.loop.ports import Compiling, Keeping, Naming, Preparing
from rtmms.loop.requests import Requests
from rtmms.loop.stand_in import StandIn
from rtmms.loop.statistics import UNDEFINED
from rtmms.loop.view import NEVER, View
from rtmms.plant import Entered

if TYPE_CHECKING:
    from rtmms.loop.agenda import Agenda
    from rtmms.loop.blame import Blame
    from rtmms.loop.chores import Watch
    from rtmms.loop.clock import Clock
    from rtmms.loop.commands import CommandTrace
    from rtmms.loop.pace import Pace
    from rtmms.loop.policies import Policies
    from rtmms.loop.ports import Array, Exchange, Observer, Passage, Passed, Stretched
    from rtmms.loop.statistics import Statistics
    from rtmms.monitor.monitor import Monitor
    from rtmms.plant import Plant

MOST_CHANGES = 1000
"""Changes by request that are kept for a replay, which stops at the first that is not."""


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


@dataclass(slots=True)
class Beside:
    """What goes along with the steps.

    commands   keeps every command, or None
    watch      says which processes died
    status     called after `watch` with the loop: what a display shows
    blame      finds the cause of each miss and overrun
    monitor    tells how wrong the steps are
    agenda     what is set at which step
    """

    commands: CommandTrace | None = None
    watch: Watch | None = None
    status: Callable[[Loop], None] | None = None
    blame: Blame | None = None
    monitor: Monitor | None = None
    agenda: Agenda | None = None


class Loop:
    """One run of a plant. `run` is called once.

    observers  see the steps they ask for
    steps      to take; None: until it is told to end
    step       the next one;  ended, message  why the run ends, '' while it does not
    seed, resets, alterations, changes   what requests made of the run
    collections   garbage collections within the run: 0, unless something collects on purpose
    """

    __slots__ = (  # read several times a step, and of more than 30 attributes a dictionary is slow
        "_answered", "_check_at", "_chores", "_compiling", "_counts", "_due", "_entered", "_handed", "_limited",
        "_monitor", "_naming", "_passage", "_prepared", "_preparing", "_requests", "_sent", "_stand_in",
        "alterations", "blame", "changes", "claims", "clock", "collections", "command", "commands", "ended",
        "exchange", "message", "pace", "plant", "policies", "resets", "seed", "started_ns", "statistics", "step",
        "steps", "view",
    )  # fmt: skip

    def __init__(
        self, plant: Plant, exchange: Exchange, clock: Clock, pace: Pace, policies: Policies, statistics: Statistics,
        observers: Sequence[Observer] = (), *, steps: int | None = None, seed: int = 0, beside: Beside | None = None,
    ) -> None:  # fmt: skip
        beside = beside or Beside()
        self.plant, self.exchange, self.clock, self.pace = plant, exchange, clock, pace
        self.policies, self.statistics, self.commands, self.blame = policies, statistics, beside.commands, beside.blame
        self.steps = NEVER if steps is None else steps
        self.step, self.ended, self.message, self.started_ns = 0, "", "", 0
        self.seed, self.resets, self.alterations, self.collections = seed, 0, 0, 0
        self.changes: list[dict[str, Any]] = []
        self.view = View(plant, observers)
        self._stand_in = StandIn(plant, exchange, clock, policies, self.end, free=pace.mode == "free")
        self.command, self.claims = self._stand_in.command, self._stand_in.claims
        show = None if beside.status is None else partial(beside.status, self)
        self._chores = Chores(clock, statistics, beside.watch, show, beside.blame)
        self._requests = Requests(self, beside.agenda)
        self._preparing = exchange if isinstance(exchange, Preparing) else None
        self._naming = exchange if isinstance(exchange, Naming) else None
        self._counts, self._limited = Counts(), policies.limits.any
        self._monitor, self._check_at = beside.monitor, 0 if beside.monitor is not None else NEVER
        self._sent, self._answered = (0, 0), False
        self._prepared, self._due = (-1, 0), 0
        self._entered = plant if isinstance(plant, Entered) else None
        self._passage: Passage | None = None
        self._compiling: Compiling | None = None
        self._handed: Passed | None = None
        if isinstance(exchange, Compiling) and isinstance(clock, MonotonicClock):
            keeper = next((one for one in observers if isinstance(one, Keeping)), None)
            self._passage = exchange.passage(plant, self._stand_in.miss, keeper)
            self._compiling = exchange if self._passage is not None else None
            self.view.keeper = keeper if self._passage is not None and self._passage.keeps else None
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
        self.started_ns, self._answered = instant_ns, answered
        self._stand_in.start_at(instant_ns)

    def in_grace(self) -> bool:
        """Neither limits nor `abort` act yet."""
        return self.clock.now() < self._stand_in.grace.until_ns

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        """State `step` to the world; it is observed at most once."""
        outputs = self.view.outputs(step)
        self.exchange.publish(step, step * self.plant.dt, deadline_ns, budget_ns, outputs, self.exchange.applied)
        self._sent = self.clock.now(), deadline_ns

    def prepare(self, step: int, deadline_ns: int) -> None:
        """In the slack: observe and pack state `step`, so that at its instant it has only to be sent."""
        if self._preparing is not None and not self._requests.pending and self._requests.agenda.next > step:
            self._prepared = (step, deadline_ns)
            if self._compiling is not None and self._compiling.prepare_alone(step, deadline_ns):
                return
            time = step * self.plant.dt
            self._preparing.prepare(step, time, deadline_ns, self.view.outputs(step), self.exchange.applied)

    def collect(self, step: int, until_ns: int) -> bool:
        """Commands for `step` into `command`; True when every claimed actuator has its own."""
        complete = self.exchange.collect(step, self.command, until_ns)
        if self.claims.refresh():
            self._stand_in.homing = True
        return complete

    def serve(self, until_ns: int) -> None:
        """The low-priority work, until the instant at most."""
        self.exchange.serve(until_ns)
        if self.claims.refresh():
            self._stand_in.homing = True
        self._requests.fetch()
        self._chores.do(until_ns)

    def check(self, until_ns: int = 0) -> None:
        """A piece of the monitor's work, where it has one and there is time for it until the instant; 0: any."""
        if self.step >= self._check_at and self._monitor is not None:
            now = self.clock.now()
            if until_ns and until_ns - now < self._monitor.longest_ns:
                return
            self._check_at = self.step + self._monitor.look(self.command)
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
        self._forget_prepared()
        self.seed, self.step = seed, 0
        self.resets += 1
        self._requests.agenda.rewind()
        if self._monitor is not None:
            self._monitor.clear()
            self._check_at = 0
        self.statistics.clear()
        if self.blame is not None:
            self.blame.clear()
        self._stand_in.clear()
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
            self._monitor.forget()
        self._forget_prepared()
        self.alterations += 1
        if self.commands is not None:
            self.commands.altered.append(self.step)

    def _forget_prepared(self) -> None:
        self._prepared = (-1, 0)
        if self._preparing is not None:
            self._preparing.prepare(-1, 0.0, 0, {}, self.exchange.applied)

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
        self.view.start()
        self._counts = Counts()
        if self._monitor is not None:
            self._monitor.look(self.command)  # what comes to rest within the first steps is seen in the first of them
        self.start_at(self.pace.anchor(self.step))
        if self.blame is not None:
            self.blame.rest(self.clock.now(), self.started_ns)
        if self.claims.refresh():
            self._stand_in.homing = True

    def _take_steps(self) -> None:
        requests, advance, ready = self._requests, self.advance, self.pace.ready
        agenda = requests.agenda
        stretches = self._passage is not None and self.commands is None and self.blame is None and not self._limited
        while self.step < self.steps and not self.ended:
            if requests.pending or agenda.next <= self.step:
                requests.between_steps()
            elif ready(self.step) and not (stretches and self._stretch()):
                advance(self.step)
        if not self.ended:
            self.pace.begin(self.step)  # the last period is lived through to its end, as every other

    def advance(self, step: int) -> None:
        """One step, from its instant to the end of its slack."""
        now, pace, statistics, blame = self.clock.now, self.pace, self.statistics, self.blame
        passed, self._handed = self._handed, None
        if passed is None and self._passage is not None:
            passed = self._pass(step)
        if passed is None:
            wake = pace.begin(step)
            begun = now()
            complete = pace.gather(step)
            gathered = now()
        else:
            begun, complete, gathered = passed.begun, passed.complete, passed.gathered
            wake = begun - self._due if self._due else UNDEFINED
            if not passed.taken:
                complete = pace.rest(step)
                gathered = now()
        if passed is not None and passed.taken:
            outcome = self._stand_in.resolved(complete)
        elif not complete and self.ended:
            return
        else:
            outcome = self._stand_in.resolve(step, complete, gathered)

        if passed is not None and passed.stepped:
            called, stepped = passed.called, passed.stepped
            self._entered.entered(passed.status)  # type: ignore[union-attr]
        else:
            called = now()
            self.plant.step(self.command)
            stepped = now()

        self.step = step + 1
        statistics.count(outcome)
        kept = passed is not None and passed.kept
        if self.view.due <= step or (self.view.keeper is not None and not kept):
            self.view.show(step, self.command, self.exchange.applied, kept)
        if self.commands is not None:
            self.commands.record(step, self.command, outcome, self.exchange.applied, self.outputs(step + 1))
        ended, missed, overruns = now(), outcome == MISSED, statistics.overruns
        due = begun if wake == UNDEFINED else begun - wake
        if blame is not None and (missed or ended - due > blame.busy_ns):
            blame.look(self._naming.silent() if missed and self._naming is not None else ())
        slack = pace.finish(step, ended)
        asked, self._answered = self.claims.any and not self._answered, False
        statistics.record(wake, gathered - begun if asked else UNDEFINED, stepped - called, slack)
        overran = statistics.overruns != overruns
        if self._limited and not self.ended and ended >= self._stand_in.grace.until_ns:
            self._hold_to_limits(missed and not self._stand_in.excused, overran)
        if blame is not None:
            if complete and asked:
                blame.answered(gathered - begun)
            if missed or overran:
                published, deadline = self._sent
                times = Times(due, begun, published, gathered, called, stepped, ended, deadline)
                blame.keep(step, missed, overran, times)
            blame.rest(now(), due)

    def _stretch(self) -> bool:
        """Many steps in one compiled call, where no clock paces them: up to one whose end somebody wants to see. False
        where the next step is for `advance`."""
        until, step, passage = self.pace.stretch(), self.step, self._passage
        most = min(self.steps, self.view.due + 1, self._check_at, self._requests.agenda.next) - step
        if until is None or passage is None or most < 1 or not self.claims.any or self._stand_in.homing:
            return False
        found = passage.go_on(step, most, *until)
        if found is None:
            return False
        self._handed, self._due, self._answered = found.handed, 0, False
        if found.done:
            self._went_on(found)
            now = self.clock.now()
            if self._handed is None:
                if now >= until[0]:
                    self.prepare(self.step, 0)  # telemetry and newcomers are to see it
                self.pace.finish(self.step - 1, now)
        return found.done > 0 and self._handed is None

    def _went_on(self, found: Stretched) -> None:
        """Count the steps of a stretch, and show the last. Raises what the plant's step raises."""
        statistics, times, late = self.statistics, found.times, self._stand_in.late
        self.step += found.done - (found.status != 0)
        self.view.forget()
        self._forget_prepared()
        self.pace.stretched(found.published_ns, found.answered)
        self._stand_in.resolved(bool(times[-1, 2]))
        statistics.add(times[:-1], late)
        self._entered.entered(found.status)  # type: ignore[union-attr]
        exchange_ns, plant_ns, complete = times[-1].tolist()
        statistics.count(APPLIED if complete else late)
        if self.view.due < self.step or (self.view.keeper is not None and not found.kept):
            self.view.show(self.step - 1, self.command, self.exchange.applied, found.kept)
        statistics.record(UNDEFINED, exchange_ns, plant_ns, UNDEFINED)

    def _pass(self, step: int) -> Passed | None:
        """The step in one compiled call, as far as it is a usual one; None where nothing of it has been done."""
        window = self.pace.window(step)
        if window is None or not self.claims.any or self._stand_in.homing or self.ended:
            return None
        passage, (self._due, deadline) = self._passage, window
        if self._prepared != (step, deadline):
            self.prepare(step, deadline)
        if passage is None or not passage.ready(step, self._due, deadline):
            return None
        passed = passage.settle(passage.take())
        if passed is not None:
            self._prepared = (-1, 0)
            self._sent = passed.published, deadline
            if self.claims.refresh():
                self._stand_in.homing = True
        return passed

    def _hold_to_limits(self, missed: bool, overran: bool) -> None:
        """Count the step, and end the run where a limit is exceeded."""
        add(self._counts, missed, overran)
        text = exceeded(self.policies.limits, self._counts) if missed or overran else ""
        if text:
            silent = ", ".join(self.exchange.waiting_for()) if missed else ""
            self.end("policy", f"step {self.step - 1}: {text}" + (f"; no command from {silent}" if silent else ""))


def _collections() -> int:
    """Garbage collections of this process so far."""
    return sum(generation["collections"] for generation in gc.get_stats())
