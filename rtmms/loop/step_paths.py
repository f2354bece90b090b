"""The two paths of a step, with one interface: in compiled code for usual steps, and in general.

`run` continues a step from its present stage. The loop begins with the compiled path, and the general one does the
rest. So each rule is in the general path, or in a kernel that both call.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rtmms.base.contract import UNDEFINED, StepOutcome
from rtmms.plant.optional_protocols import HasCompiledStep

if TYPE_CHECKING:
    from rtmms.loop.chores import View
    from rtmms.loop.clock import Clock
    from rtmms.loop.pace import Pace
    from rtmms.loop.ports import Array, Batched, Exchange, FastPath, Progress, StepRecorder
    from rtmms.loop.requests import Requests
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.step_outcome import Claims, Fallback
    from rtmms.plant.protocol import Plant


class Stage(IntEnum):
    """Stages of a step: its state is sent, its command is complete, the plant has taken it."""

    BEGUN = 0
    PUBLISHED = 1
    RESOLVED = 2
    STEPPED = 3


class StepProgress:
    """Progress of a step, rewritten each step.

    Attributes
    ----------
    stage : Stage
        Its stage.
    outcome : StepOutcome
        Its outcome.
    wake : int
        Lateness of its begin, ns; UNDEFINED if it has no instant.
    complete : bool
        Whether all commands had come.
    begun, gathered, called, stepped : int
        Instants: its begin, commands complete or given up, begin and end of plant.step, ns.
    is_recorded : bool
        Whether the step recorder has its row.
    """

    __slots__ = ("begun", "called", "complete", "gathered", "is_recorded", "outcome", "stage", "stepped", "wake")

    def __init__(self) -> None:
        self.stage, self.outcome, self.complete, self.is_recorded = Stage.BEGUN, StepOutcome.UNCLAIMED, False, False
        self.wake = self.begun = self.gathered = self.called = self.stepped = 0

    def clear(self) -> None:
        """Reset for another step."""
        self.stage, self.is_recorded = Stage.BEGUN, False


class Stepping(Protocol):
    """Run as the paths see it.

    Attributes
    ----------
    tape : Array
        (rows, n_actuators) receives the command of each of the first steps.
    prepared : tuple[int, int]
        Step and deadline of the packed state; (-1, 0) for none.
    sent : tuple[int, int]
        Instant of the last state, and its deadline.
    answered : bool
        Whether the next step's commands had come before it began.
    """

    clock: Clock
    pace: Pace
    plant: Plant
    exchange: Exchange
    statistics: Statistics
    view: View
    claims: Claims
    command: Array
    fallback: Fallback
    step: int
    steps: int
    ended: str
    prepared: tuple[int, int]
    sent: tuple[int, int]
    answered: bool
    tape: Array
    check_at: int
    requests: Requests

    def prepare(self, step: int, deadline_ns: int) -> None:
        """Observe and pack a state in the slack.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Its deadline, ns; 0 for none.
        """

    def forget_prepared(self) -> None:
        """Discard the prepared state."""

    def note_claims(self) -> None:
        """Read the claims again."""


class GeneralPath:
    """Path of every step, from any stage.

    Parameters
    ----------
    run : Stepping
        The run.
    """

    def __init__(self, run: Stepping) -> None:
        self._run, self._now = run, run.clock.now
        # a plant in plain Python may write into its argument, and the run holds the command for later steps
        self._command_copy = None if isinstance(run.plant, HasCompiledStep) else np.empty_like(run.command)

    def run(self, step: int, step_progress: StepProgress) -> bool:
        """Continue a step to the end of the plant's step.

        Parameters
        ----------
        step : int
            Index of the step.
        step_progress : StepProgress
            Its progress, changed in place.

        Returns
        -------
        bool
            False if the run ended before it.
        """
        run, now = self._run, self._now
        if step_progress.stage == Stage.BEGUN:
            step_progress.wake = run.pace.begin(step)
            step_progress.begun = now()
            step_progress.complete = run.pace.gather(step)
            step_progress.gathered = now()
        elif step_progress.stage == Stage.PUBLISHED:
            step_progress.complete = run.pace.collect_commands(step)
            step_progress.gathered = now()
        if step_progress.stage < Stage.RESOLVED:
            if not step_progress.complete and run.ended:
                return False
            step_progress.outcome = run.fallback.resolve(step, step_progress.complete, step_progress.gathered)
        if step_progress.stage < Stage.STEPPED:
            if step < len(run.tape):
                run.tape[step] = run.command
            step_progress.called = now()
            command = run.command
            if self._command_copy is not None:
                self._command_copy[:] = command
                command = self._command_copy
            try:
                run.plant.step(command)
            except SystemExit as end:  # else the whole process would end, without a report
                raise RuntimeError(f"the plant called sys.exit({end.code!r}) in step {step}; remove the call") from end
            step_progress.stepped = now()
        return True


class CompiledPath:
    """Path of usual steps in one compiled call, and of many in a row if no clock paces them.

    Parameters
    ----------
    run : Stepping
        The run.
    compiling : Exchange | None
        Exchange that may have compiled steps; None for none.
    step_recorder : StepRecorder | None
        The step recorder; None for none.

    Attributes
    ----------
    preparing : Exchange or None
        Writes states without Python. None if there is no fast path; then `run` does nothing.
    step_recorder : StepRecorder or None
        Observer for which compiled code writes the rows.
    """

    def __init__(self, run: Stepping, compiling: Exchange | None, step_recorder: StepRecorder | None) -> None:
        self._run = run
        self._fast: FastPath | None = None
        if compiling is not None:
            self._fast = compiling.fast_path(run.plant, run.fallback.memory, step_recorder)
        self.preparing = compiling if self._fast is not None else None
        self.step_recorder = step_recorder if self._fast is not None and self._fast.keeps else None
        self._entered = run.plant if isinstance(run.plant, HasCompiledStep) else None
        self._handed: Progress | None = None
        self._due = 0

    @property
    def can_batch(self) -> bool:
        """Whether there is a fast path at all."""
        return self._fast is not None

    def run(self, step: int, step_progress: StepProgress) -> bool:
        """Take a step as far as it is usual; exceptions of the plant's step pass through.

        Parameters
        ----------
        step : int
            Index of the step.
        step_progress : StepProgress
            Its progress, changed in place.

        Returns
        -------
        bool
            False if nothing was done.
        """
        handed, self._handed = self._handed, None
        progress = handed if handed is not None or self._fast is None else self._call(self._fast, step)
        if progress is None:
            return False
        step_progress.begun, step_progress.complete, step_progress.gathered = (
            progress.begun,
            progress.complete,
            progress.gathered,
        )
        step_progress.wake = progress.begun - self._due if self._due else UNDEFINED
        step_progress.stage, step_progress.is_recorded = Stage.PUBLISHED, progress.is_recorded
        if progress.resolved:
            step_progress.stage, step_progress.outcome = Stage.RESOLVED, self._run.fallback.resolved(progress.complete)
        if progress.stepped:
            step_progress.stage, step_progress.called, step_progress.stepped = (
                Stage.STEPPED,
                progress.called,
                progress.stepped,
            )
            self._entered.finish_compiled_step(progress.status)  # type: ignore[union-attr]
        return True

    def _call(self, fast: FastPath, step: int) -> Progress | None:
        """Make the compiled call; None if nothing of the step has been done."""
        run = self._run
        window = run.pace.window(step)
        if window is None or not run.claims.any or run.fallback.homing or run.ended:
            return None
        self._due, deadline = window
        if run.prepared != (step, deadline):
            run.prepare(step, deadline)
        if not fast.ready(step, self._due, deadline):
            return None
        progress = fast.commit(fast.run())
        if progress is not None:
            run.prepared, run.sent = (-1, 0), (progress.published, deadline)
            run.note_claims()
        return progress

    def run_batch(self) -> bool:
        """Take many steps in one call, up to one whose end an observer wants.

        Returns
        -------
        bool
            False if `run` must take the next step.
        """
        run, fast = self._run, self._fast
        until, step = run.pace.batch(), run.step
        maximum = min(run.steps, run.view.due + 1, run.check_at, run.requests.agenda.next) - step
        if until is None or fast is None or maximum < 1 or not run.claims.any or run.fallback.homing:
            return False
        result = fast.run_batch(step, maximum, *until)
        if result is None:
            return False
        self._handed, self._due, run.answered = result.handed, 0, False
        if result.done:
            self._note(result)
            now = run.clock.now()
            if self._handed is None:
                if now >= until[0]:
                    run.prepare(run.step, 0)  # for telemetry and newcomers
                run.pace.finish(run.step - 1, now)
        return result.done > 0 and self._handed is None

    def _note(self, batched: Batched) -> None:
        """Count the steps of a batch, and send the last to the observers.

        Exceptions of the plant's step pass through.
        """
        run, times = self._run, batched.times
        last = times[-1]
        outcome = StepOutcome(int(last["outcome"]))
        run.step += batched.done - (batched.status != 0)
        run.view.forget()
        run.forget_prepared()
        run.pace.batched(batched.published_ns, batched.answered)
        run.fallback.resolved(outcome != run.fallback.late)
        run.statistics.add(times[:-1])
        self._entered.finish_compiled_step(batched.status)  # type: ignore[union-attr]
        run.statistics.count(outcome)
        if run.view.due < run.step or (self.step_recorder is not None and not batched.is_recorded):
            run.view.show(run.step - 1, run.command, run.exchange.applied, batched.is_recorded)
        run.statistics.record(UNDEFINED, int(last["exchange_ns"]), int(last["plant_ns"]), UNDEFINED)
