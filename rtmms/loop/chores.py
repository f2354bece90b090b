"""Work of the loop in addition to its steps: scheduled changes, observation of outputs, and work in the slack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmms.loop.clock import Clock
    from rtmms.loop.fault_attribution import FaultAttribution
    from rtmms.loop.ports import Applied, Array, Observer, StepRecorder
    from rtmms.loop.statistics import Statistics
    from rtmms.plant.protocol import Plant


# Work in the slack besides the wire's: supervision of processes, display, statistics, attribution.


WATCH_EVERY_NS = 50_000_000
WATCH_COST_NS = 120_000
JUDGE_NS = 120_000
_MAX_ROWS = 256
_ROW_NS = 500

Watch = Callable[[], Sequence[str]]
"""Called about every 50 ms between steps; returns a sentence for each process that has died since the last call."""


class Chores:
    """Work in the slack: processes, display, statistics, and fault attribution.

    Parameters
    ----------
    clock : Clock
        Clock of the loop.
    statistics : Statistics
        Statistics of the run.
    watch : Watch | None
        Reports processes that died; None for none.
    show : Callable[[], None] | None
        Updates a display; None for none.
    attribution : FaultAttribution | None
        Fault attribution; None for none.

    Attributes
    ----------
    dead : list of str
        A sentence for each process that has died.
    """

    def __init__(
        self, clock: Clock, statistics: Statistics, watch: Watch | None, show: Callable[[], None] | None,
        attribution: FaultAttribution | None,
    ) -> None:  # fmt: skip
        self._clock, self._statistics, self._watch, self._attribution = clock, statistics, watch, attribution
        self.dead: list[str] = []
        parts = (self._look_after if watch else None, show, self._judge if attribution else None)
        self._parts = [part for part in parts if part is not None]
        self._took_ns, self._done_ns = [WATCH_COST_NS] * len(self._parts), [0] * len(self._parts)

    def do(self, until_ns: int) -> None:
        """Do the work for which there is time.

        The parts are done one by one, because all of them may take longer than a short period.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        now, looked = self._clock.now(), False
        for which in range(len(self._parts)):
            unwatched = now - self._done_ns[which]
            if unwatched < WATCH_EVERY_NS:
                continue
            fits = until_ns - now > self._took_ns[which]
            if fits or (unwatched > 10 * WATCH_EVERY_NS and not looked):
                looked = True
                now = self._look(which, now)
        if looked:
            return
        self._statistics.drain(min(_MAX_ROWS, max(0, until_ns - now) // _ROW_NS))
        if self._attribution is not None and self._attribution.waiting and until_ns - now > JUDGE_NS:
            self._attribution.judge(now, 2)

    def watch_now(self) -> None:
        """Check the processes, and update the display."""
        now = self._clock.now()
        for which in range(len(self._parts)):
            now = self._look(which, now)

    def _look(self, which: int, now: int) -> int:
        self._done_ns[which] = now
        self._parts[which]()
        ended, took_ns = self._clock.now(), self._took_ns[which]
        self._took_ns[which] = max(ended - now, took_ns - took_ns // 16)
        return ended

    def _look_after(self) -> None:
        assert self._watch is not None
        self.dead.extend(self._watch())

    def _judge(self) -> None:
        assert self._attribution is not None
        self._attribution.judge(self._clock.now(), 8)


# The plant's outputs for all readers, observed once a step at most.


NEVER = 1 << 62


class View:
    """Outputs of the plant for the wire, the observers and a display, observed once a step at most.

    Parameters
    ----------
    plant : Plant
        The plant.
    observers : Sequence[Observer]
        Observers of the run.

    Attributes
    ----------
    due : int
        Next step whose end an observer other than the step recorder asked for.
    step_recorder : StepRecorder or None
        Observer for which compiled code writes the row of a usual step.
    """

    def __init__(self, plant: Plant, observers: Sequence[Observer]) -> None:
        self._plant, self.observers, self.due = plant, tuple(observers), NEVER
        from rtmms.plant.optional_protocols import HasCompiledStep

        compiled = isinstance(plant, HasCompiledStep)  # its outputs have the shapes of their memory
        self._shapes = [] if compiled else [(output.name, tuple(output.shape)) for output in plant.outputs]
        self.step_recorder: StepRecorder | None = None
        self._step = -1
        self._outputs: Mapping[str, Array] = {}

    def outputs(self, step: int) -> Mapping[str, Array]:
        """Return the outputs at the begin of a step.

        Parameters
        ----------
        step : int
            Index of the step; its time is step * dt.

        Returns
        -------
        Mapping[str, Array]
            Outputs by name.
        """
        if self._step != step:
            self._outputs = outputs = self._plant.observe()
            self._step = step
            for name, shape in self._shapes:
                if getattr(outputs.get(name), "shape", None) != shape:
                    self._refuse(step)
        return self._outputs

    def _refuse(self, step: int) -> None:
        """Raise RtmmsError where the outputs differ from the plant's channels; a list may have its channel's shape."""
        from rtmms.plant.validation import refuse_outputs

        refuse_outputs(self._plant, self._outputs, f"step {step}: ")

    def forget(self) -> None:
        """Discard the observed outputs, because the state was changed from outside."""
        self._step = -1

    def clear(self) -> None:
        """Clear the observers, because the plant was reset."""
        for observer in self.observers:
            observer.clear()

    def start(self, step: int = 0) -> None:
        """Send the first state to the observers.

        Parameters
        ----------
        step : int, default 0
            The first step.
        """
        self.forget()
        for observer in self.observers:
            observer.start(self.outputs(step))
        self.due = self._next()

    def show(self, step: int, command: Array, applied: Applied, stored: bool) -> None:
        """Send the end of a step to the observers that asked for it.

        Parameters
        ----------
        step : int
            Index of the step.
        command : Array
            The command over the step.
        applied : Applied
            Results of the step's exchange.
        stored : bool
            Whether the step recorder has its row already.
        """
        outputs, time = self.outputs(step + 1), (step + 1) * self._plant.dt
        for observer in self.observers:
            if observer.due <= step and not (stored and observer is self.step_recorder):
                observer.after_step(step, time, outputs, command, applied)
        self.due = self._next()

    def _next(self) -> int:
        return min((observer.due for observer in self.observers if observer is not self.step_recorder), default=NEVER)


# Changes that a run makes at given steps: parameters of the plant or of its peers.


@dataclass(frozen=True)
class ScheduledChange:
    """Scheduled change of parameters.

    Parameters
    ----------
    step : int
        The change precedes this step.
    owner : str
        Name of the peer; empty for the plant.
    values : Mapping[str, Any]
        New values by name; of a peer by 'PEER.NAME'.
    sentence : str, default ''
        Time and place of the change, for an error.
    """

    step: int
    owner: str
    values: Mapping[str, Any]
    sentence: str = ""


class Agenda:
    """Scheduled changes in the order of their steps; those of one step are in the given order.

    Parameters
    ----------
    acts : Sequence[ScheduledChange], optional
        The changes.

    Attributes
    ----------
    next : int
        Step of the first change that is left.

    Examples
    --------
    >>> agenda = Agenda([ScheduledChange(5, "", {"mass_kg": 2.0})])
    >>> agenda.next, len(agenda.take(5)), agenda.next == NEVER
    (5, 1, True)
    """

    __slots__ = ("_acts", "_at", "next")

    def __init__(self, acts: Sequence[ScheduledChange] = ()) -> None:
        self._acts = sorted(acts, key=lambda act: act.step)
        self.next = NEVER
        self.rewind()

    def rewind(self) -> None:
        """Return to the time before the first step."""
        self._at = -1
        self._advance()

    def of_peers(self) -> list[ScheduledChange]:
        """Return the changes of peers' parameters.

        Returns
        -------
        list[ScheduledChange]
            In the order of their steps.
        """
        return [act for act in self._acts if act.owner]

    def take(self, step: int) -> list[ScheduledChange]:
        """Remove the changes that are due.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        list[ScheduledChange]
            The changes up to this step.
        """
        acts = []
        while self.next <= step:
            acts.append(self._acts[self._at])
            self._advance()
        return acts

    def _advance(self) -> None:
        self._at += 1
        self.next = self._acts[self._at].step if self._at < len(self._acts) else NEVER
