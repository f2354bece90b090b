"""Work of the loop beside its steps: scheduled changes, observation of outputs, and work in the slack."""

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


# What is done in the slack beside the wire's work: processes looked after, display, statistics, attribution.


WATCH_EVERY_NS = 50_000_000
WATCH_COST_NS = 120_000
JUDGE_NS = 120_000
_ROWS, _ROW_NS = 256, 500

Watch = Callable[[], Sequence[str]]
"""Called about every 50 ms between steps; returns a sentence for each process that has died since the last call."""


class Chores:
    """dead   a sentence for each process that has died"""

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
        """What there is time for: looks one by one, as all of them may take longer than a short period."""
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
        self._statistics.drain(min(_ROWS, max(0, until_ns - now) // _ROW_NS))
        if self._attribution is not None and self._attribution.waiting and until_ns - now > JUDGE_NS:
            self._attribution.judge(now, 2)

    def watch_now(self) -> None:
        """Look after the processes and the display."""
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


# The plant's outputs, observed once a step at most, for whoever wants to see them.


NEVER = 1 << 62


class View:
    """What the wire, the observers and a display see.

    due      the next step whose end an observer asked for, other than the step recorder
    step_recorder   an observer; compiled code writes its row of a usual step. None where there is none
    """

    def __init__(self, plant: Plant, observers: Sequence[Observer]) -> None:
        self._plant, self.observers, self.due = plant, tuple(observers), NEVER
        self.step_recorder: StepRecorder | None = None
        self._step = -1
        self._outputs: Mapping[str, Array] = {}

    def outputs(self, step: int) -> Mapping[str, Array]:
        """The outputs at t = step * dt."""
        if self._step != step:
            self._outputs = self._plant.observe()
            self._step = step
        return self._outputs

    def forget(self) -> None:
        """The state was changed from outside."""
        self._step = -1

    def clear(self) -> None:
        """The plant was reset."""
        for observer in self.observers:
            observer.clear()

    def start(self, step: int = 0) -> None:
        """`step` is next, the first one: the first state to the observers."""
        self.forget()
        for observer in self.observers:
            observer.start(self.outputs(step))
        self.due = self._next()

    def show(self, step: int, command: Array, applied: Applied, kept: bool) -> None:
        """The end of `step` to the observers that asked for it.  kept  the step recorder has its row."""
        outputs, time = self.outputs(step + 1), (step + 1) * self._plant.dt
        for observer in self.observers:
            if observer.due <= step and not (kept and observer is self.step_recorder):
                observer.after_step(step, time, outputs, command, applied)
        self.due = self._next()

    def _next(self) -> int:
        return min((observer.due for observer in self.observers if observer is not self.step_recorder), default=NEVER)


# What a run does to itself at certain steps: it sets parameters of the plant or of its peers.


@dataclass(frozen=True)
class Due:
    """Before `step` is taken; values by name: of the plant (owner ''), or of a peer, 'PEER.NAME'.  place: its time and
    place, for an error."""

    step: int
    owner: str
    values: Mapping[str, Any]
    sentence: str = ""


class Agenda:
    """Acts in the order of their steps; those of one step in the order given.  next  the step of the first one left."""

    __slots__ = ("_acts", "_at", "next")

    def __init__(self, acts: Sequence[Due] = ()) -> None:
        self._acts = sorted(acts, key=lambda act: act.step)
        self.next = NEVER
        self.rewind()

    def rewind(self) -> None:
        """To before the first step."""
        self._at = -1
        self._advance()

    def take(self, step: int) -> list[Due]:
        """Those that are due by the step, taken off."""
        taken = []
        while self.next <= step:
            taken.append(self._acts[self._at])
            self._advance()
        return taken

    def _advance(self) -> None:
        self._at += 1
        self.next = self._acts[self._at].step if self._at < len(self._acts) else NEVER
