"""The loop: one step after the other, on time, with the commands that came.

It uses neither robots nor sockets. A step k has these parts: wait for t_k, publish state k with its budget, and collect
commands until the deadline. Then the miss policy replaces missing commands, and plant.step follows. Observers, the
overrun policy and the work of the slack come last. The pace (realtime, lockstep, free, external) only determines how
long each wait is, so the same commands give the same bits.
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
from rtmms.loop.fault_attribution import Times
from rtmms.loop.pace import PeerError
from rtmms.loop.policies import Counts, add, exceeded_share, limit_message
from rtmms.loop.ports import StepRecorder
from rtmms.loop.requests import Requests
from rtmms.loop.step_outcome import Fallback
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

HANDSHAKE_INTERVAL_NS = 150_000_000
"""Interval of reads at the handshake endpoint without slack, ns.

A plant that overruns must still answer `status` and `stop`.
"""
HANDSHAKE_READ_NS = 500_000
"""Duration of such a read, ns."""
MAX_CHANGES = 1000
"""Recorded changes by request; a replay stops at the first that is not recorded."""


@dataclass(slots=True)
class Outcome:
    """Result of a run.

    Parameters
    ----------
    ended : str
        duration, interrupt, stop, policy, peer or diverged.
    message : str
        Reason of the end; empty for none.
    steps : int
        Number of steps.
    simulated_s : float
        steps * dt, s.
    wall_s : float
        Wall time from the start of step 0, s.
    final : dict[str, Array]
        Outputs at the end; at the last sound state if the simulation diverged.
    """

    ended: str
    message: str
    steps: int
    simulated_s: float
    wall_s: float
    final: dict[str, Array]


@dataclass(slots=True)
class LoopServices:
    """Services in addition to the steps; each is optional.

    Parameters
    ----------
    commands : CommandTrace | None, optional
        Stores every command.
    watch : Watch | None, optional
        Reports processes that died.
    status : Callable[[Loop], None] | None, optional
        Called after `watch` with the loop, for a display.
    attribution : FaultAttribution | None, optional
        Finds the cause of each miss and overrun.
    monitor : Monitor | None, optional
        Estimates the error of the steps.
    agenda : Agenda | None, optional
        Scheduled changes.
    governor : Governor | None, optional
        Changes the fidelity level if periods are too full.
    """

    commands: CommandTrace | None = None
    watch: Watch | None = None
    status: Callable[[Loop], None] | None = None
    attribution: FaultAttribution | None = None
    monitor: Monitor | None = None
    agenda: Agenda | None = None
    governor: Governor | None = None


class Loop:
    """One run of a plant; `run` is called once.

    Parameters
    ----------
    plant : Plant
        The plant.
    exchange : Exchange
        Commands in, states out.
    clock : Clock
        Clock of the loop.
    pace : Pace
        Mode of the steps.
    policies : Policies
        Policies of the run.
    statistics : Statistics
        Statistics of the run.
    observers : Sequence[Observer], optional
        Observers, which receive the steps that they ask for.
    steps : int | None, optional
        Step at which the run ends; None: until a request ends it.
    seed : int, default 0
        Seed of the last reset.
    services : LoopServices | None, optional
        Services of the run.
    first : int, default 0
        First step: 0, except for a run that continues another one. A reset returns to 0.

    Attributes
    ----------
    step : int
        The next step.
    ended, message : str
        Reason of the end and its explanation; empty while the run continues.
    seed, resets, alterations, changes : int, default 0
        Effects of requests on the run.
    collections : int
        Garbage collections within the run: 0, unless code collects on purpose.
    """

    __slots__ = (  # the loop reads them several times a step, and a dictionary of more than 30 attributes is slow
        "_chores", "_compiled", "_counts", "_general", "_governor", "_limited", "_looked_ns", "_looks",
        "_monitor", "_step_progress", "_step_recorder", "alterations", "answered", "attribution", "changes", "check_at",
        "claims", "clock", "collections", "command", "commands", "ended", "exchange", "fallback", "first", "message",
        "pace", "plant", "policies", "prepared", "requests", "resets", "seed", "sent", "started_ns", "statistics",
        "step", "steps", "tape", "view",
    )  # fmt: skip

    def __init__(
        self, plant: Plant, exchange: Exchange, clock: Clock, pace: Pace, policies: Policies, statistics: Statistics,
        observers: Sequence[Observer] = (), *, steps: int | None = None, seed: int = 0,
        services: LoopServices | None = None, first: int = 0,
    ) -> None:  # fmt: skip
        services = services or LoopServices()
        self.plant, self.exchange, self.clock, self.pace = plant, exchange, clock, pace
        self.policies, self.statistics, self.commands, self.attribution = (
            policies,
            statistics,
            services.commands,
            services.attribution,
        )
        self.steps = NEVER if steps is None else steps
        self.step, self.ended, self.message, self.started_ns = first, "", "", 0
        self.first = first
        self.seed, self.resets, self.alterations, self.collections = seed, 0, 0, 0
        self.changes: list[dict[str, Any]] = []
        self.view = View(plant, observers)
        self.fallback = Fallback(plant, exchange, clock, policies, self.end, free=pace.mode == "free")
        if services.monitor is not None:
            self.fallback.memory.tape = services.monitor.tape
        self.tape = self.fallback.memory.tape
        self.command, self.claims = self.fallback.command, self.fallback.claims
        show = None if services.status is None else partial(services.status, self)
        self._chores = Chores(clock, statistics, services.watch, show, services.attribution)
        self.requests = Requests(self, services.agenda)
        self._counts, self._limited = Counts(), policies.limits.any
        self._governor = services.governor
        self._monitor, self.check_at = services.monitor, 0 if services.monitor is not None else NEVER
        self._looks, self._looked_ns = exchange.looks, clock.now()
        self.prepared, self.sent, self.answered = (-1, 0), (0, 0), False
        compiling = exchange if isinstance(clock, MonotonicClock) else None
        self._step_recorder = next((observer for observer in observers if isinstance(observer, StepRecorder)), None)
        self._general, self._compiled = GeneralPath(self), CompiledPath(self, compiling, self._step_recorder)
        self.view.step_recorder, self._step_progress = self._compiled.step_recorder, StepProgress()
        pace.bind(self)

    # --- what the pace and the requests use, see rtmms.loop.pace.Run and rtmms.loop.requests.Run ---------------------

    @property
    def dead(self) -> list[str]:
        """A sentence for each process that has died."""
        return self._chores.dead

    def end(self, reason: str, message: str = "") -> None:
        """End the run after the present step; a signal handler may call this.

        The first reason counts.

        Parameters
        ----------
        reason : str
            Reason of the end, see `Outcome`.
        message : str, default ''
            Its explanation.
        """
        if not self.ended:
            self.ended, self.message = reason, message

    def start_at(self, instant_ns: int, *, answered: bool = False) -> None:
        """Count wall time, grace and ages of held values from an instant.

        Parameters
        ----------
        instant_ns : int
            The instant, ns.
        answered : bool, default False
            Whether the commands of its first step have come already, so that this exchange is not one of the schedule.
        """
        self.started_ns, self.answered = instant_ns, answered
        self.fallback.start_at(instant_ns)

    def in_grace(self) -> bool:
        """Return whether limits and `abort` do not act yet.

        Returns
        -------
        bool
            True within the grace.
        """
        return self.clock.now() < self.fallback.grace.until_ns

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        """Send a state; it is observed at most once.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Deadline, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        """
        outputs = self.view.outputs(step)
        self.exchange.publish(step, step * self.plant.dt, deadline_ns, budget_ns, outputs, self.exchange.applied)
        self.sent = self.clock.now(), deadline_ns

    def prepare(self, step: int, deadline_ns: int) -> None:
        """Observe and pack a state in the slack, so that at its instant it has only to be sent.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Deadline, CLOCK_MONOTONIC, ns; 0 for none.
        """
        if self.exchange.prepares and not self.requests.pending and self.requests.agenda.next > step:
            self.prepared = (step, deadline_ns)
            compiling = self._compiled.preparing
            if compiling is not None and compiling.prepare_alone(step, deadline_ns):
                return
            time = step * self.plant.dt
            self.exchange.prepare(step, time, deadline_ns, self.view.outputs(step), self.exchange.applied)

    def collect(self, step: int, until_ns: int) -> bool:
        """Read commands into `command`.

        Parameters
        ----------
        step : int
            Index of the step.
        until_ns : int
            Instant at which the wait ends, ns.

        Returns
        -------
        bool
            Whether every claimed actuator has its command.
        """
        complete = self.exchange.collect(step, self.command, until_ns)
        self.note_claims()
        return complete

    def note_claims(self) -> None:
        """Read the claims again; actuators that nobody holds any more go to neutral."""
        if self.claims.refresh():
            self.fallback.homing = True

    def serve(self, until_ns: int) -> None:
        """Do the work of the slack.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        self.exchange.serve(until_ns)
        self.note_claims()
        self.requests.fetch()
        self._chores.do(until_ns)

    def answer(self) -> None:
        """Perform requests that are possible while the step waits for its commands."""
        if self.requests.pending:
            self.requests.while_waiting()

    def check(self, until_ns: int = 0) -> None:
        """Do a piece of the monitor's work, if there is time for it.

        Parameters
        ----------
        until_ns : int, default 0
            Instant at which it must end, ns; 0 for any.
        """
        if self.step >= self.check_at and self._monitor is not None:
            now = self.clock.now()
            if until_ns and until_ns - now < self._monitor.longest_ns:
                return
            self.check_at = self.step + self._monitor.look(self.command)
            self._monitor.took(self.clock.now() - now)
            if self._monitor.hopeless:
                self.end("diverged", self._monitor.verdict.sentence)

    def watch_now(self) -> None:
        """Check the processes, and update the display."""
        self._chores.watch_now()

    def outputs(self, step: int) -> Mapping[str, Array]:
        """Return the outputs at t = step * dt.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        Mapping[str, Array]
            Outputs by name.
        """
        return self.view.outputs(step)

    def restart(self, seed: int) -> None:
        """Return to t = 0: reset the plant, the counters and all records.

        Parameters
        ----------
        seed : int
            Seed of the reset.
        """
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
            self.commands.clear(any(change["op"] == "set" for change in self.changes))
        self._begin()

    def altered(self, **how: Any) -> None:
        """Record that the state was changed from outside between steps.

        Parameters
        ----------
        **how : Any
            `op` and `args` of the request, for a replay.
        """
        if len(self.changes) < MAX_CHANGES:
            self.changes.append({"run": self.resets, "step": self.step, **how})
        self.view.forget()
        if self._monitor is not None:
            self._monitor.forget(self.step)
        self.forget_prepared()
        self.alterations += 1
        if self.commands is not None:
            self.commands.altered.append(self.step)

    def note(self, values: Mapping[str, Any]) -> None:
        """Write a peer's note into the log; see rtmms.loop.ports.StepRecorder.

        Parameters
        ----------
        values : Mapping[str, Any]
            Values by name.
        """
        if self._step_recorder is not None:
            self._step_recorder.note(self.step, values)

    def forget_prepared(self) -> None:
        """Discard the prepared state."""
        self.prepared = (-1, 0)
        self.exchange.prepare(-1, 0.0, 0, {}, self.exchange.applied)

    # --- the run ----------------------------------------------------------------------------------------------------

    def run(self, *, tidy: bool = True) -> Outcome:
        """Take the steps.

        The plant has been reset, and the peers are admitted. Exceptions of a faulty plant pass through.

        Parameters
        ----------
        tidy : bool, default True
            Whether to collect garbage before the run, and none within. This takes some 50 ms, which a run without a
            clock does not need.

        Returns
        -------
        Outcome
            Result of the run.
        """
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
        """Send the first state to the observers, and begin the schedule now."""
        self.view.start(self.step)
        self._counts = Counts()
        if self._monitor is not None:
            # if the robot comes to rest within the first steps, the first of them detects it
            self._monitor.look(self.command)
        self.start_at(self.pace.anchor(self.step))
        if self.attribution is not None:
            self.attribution.record_slack_end(self.clock.now(), self.started_ns)
        self.note_claims()

    def _take_steps(self) -> None:
        requests, advance, ready = self.requests, self.advance, self.pace.ready
        requests.begin()
        agenda = requests.agenda
        batches = self._compiled.can_batch and self.commands is None and self.attribution is None and not self._limited
        run_batch = self._compiled.run_batch
        if requests.paused:  # before the first step
            requests.between_steps()
        while self.step < self.steps and not self.ended:
            if requests.pending or agenda.next <= self.step:
                requests.between_steps()
            elif ready(self.step) and not (batches and run_batch()):
                advance(self.step)
        if not self.ended:
            self.pace.begin(self.step)  # wait for the end of the last period, as for every other

    def advance(self, step: int) -> None:
        """Take one step, from its instant to the end of its slack.

        Parameters
        ----------
        step : int
            Index of the step.
        """
        progress = self._step_progress
        progress.clear()
        self._compiled.run(step, progress)
        if self._general.run(step, progress):
            self._finish(step, progress)

    def _finish(self, step: int, step_progress: StepProgress) -> None:
        """Count, record and judge a finished step, and do the work of its slack."""
        now, pace, statistics, attribution = self.clock.now, self.pace, self.statistics, self.attribution
        self.step = step + 1
        statistics.count(step_progress.outcome)
        if self.view.due <= step or (self.view.step_recorder is not None and not step_progress.is_recorded):
            self.view.show(step, self.command, self.exchange.applied, step_progress.is_recorded)
        if self.commands is not None:
            self.commands.record(
                step, self.command, step_progress.outcome, self.exchange.applied, self.outputs(step + 1)
            )
        ended, missed, overruns = now(), step_progress.outcome == StepOutcome.MISSED, statistics.overruns
        due = step_progress.begun if step_progress.wake == UNDEFINED else step_progress.begun - step_progress.wake
        if attribution is not None and (missed or ended - due > attribution.busy_ns):
            attribution.look(self.exchange.silent() if missed else ())
        slack = pace.finish(step, ended)
        asked, self.answered = self.claims.any and not self.answered, False
        exchange_ns = step_progress.gathered - step_progress.begun
        statistics.record(
            step_progress.wake, exchange_ns if asked else UNDEFINED, step_progress.stepped - step_progress.called, slack
        )
        overran = statistics.overruns != overruns
        if self._governor is not None:
            self._give_way(self._governor, ended - due, step_progress.stepped - step_progress.called)
        if self._limited and not self.ended and ended >= self.fallback.grace.until_ns:
            self._hold_to_limits(
                missed and not self.fallback.excused, overran, step_progress.outcome == StepOutcome.STALE
            )  # fmt: skip
        if self.exchange.looks is not None:
            self._see_newcomers()
        if attribution is not None:
            if step_progress.complete and asked:
                attribution.answered(exchange_ns)
            if missed or overran:
                published, deadline = self.sent
                times = Times(
                    due,
                    step_progress.begun,
                    published,
                    step_progress.gathered,
                    step_progress.called,
                    step_progress.stepped,
                    ended,
                    deadline,
                )
                attribution.keep(step, missed, overran, times)
            attribution.record_slack_end(now(), due)

    def _give_way(self, governor: Governor, busy_ns: int, plant_ns: int) -> None:
        """Change the plant to the governor's level, and record it as a set request."""
        level = governor.look(busy_ns, plant_ns)
        if level != governor.level:
            self.plant.set(level=level)  # type: ignore[attr-defined]
            self.altered(op="set", args={"level": level})
            governor.changed(self.step, level)

    def _see_newcomers(self) -> None:
        """Force a look at the handshake endpoint if the slack has been too short for long.

        Its periods are skipped, not overrun.
        """
        exchange, now = self.exchange, self.clock.now()
        if exchange.looks != self._looks:
            self._looks, self._looked_ns = exchange.looks, now
        elif now - self._looked_ns >= HANDSHAKE_INTERVAL_NS:
            exchange.look(now + HANDSHAKE_READ_NS)
            self._looks, self._looked_ns = exchange.looks, self.clock.now()
            self.note_claims()
            self.requests.fetch()
            self.pace.let_pass(self.step)

    def _hold_to_limits(self, missed: bool, overran: bool, stale: bool) -> None:
        """Count the step, and end the run if a limit is exceeded."""
        add(self._counts, missed, overran, stale)
        text = limit_message(self.policies.limits, self._counts) if missed or overran or stale else ""
        if text:
            silent = ", ".join(self.exchange.waiting_for()) if missed else ""
            self.end("policy", f"step {self.step - 1}: {text}" + (f"; no command from {silent}" if silent else ""))


def _collections() -> int:
    """Return the number of garbage collections of this process so far."""
    return sum(generation["collections"] for generation in gc.get_stats())
