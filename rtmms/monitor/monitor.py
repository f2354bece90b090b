"""The monitor of a run: on some of its steps, in pieces between steps, it takes the step again in two halves.

Before the first step and after others it is asked to `look`, and says when it wants to be asked again. A look costs
about one step of the plant. Looks of one measurement, at the ends of successive steps:

0  the state is kept: the step to come begins there
1  the step's end and command are kept; its first half is taken
2  the step's second half; what lies between the ends is counted
3  at times: a step from the end of the first with its velocity pushed a little. How fast does the push fade?

The verdict: fine; doubtful, where the way is thought to be off by more than 0.9 % of itself, the work by more than
4 %, or steps by more than a tenth of what changes within them; diverged, where steps are off by a quarter of it, and by
a method that is stable up to a bound only: it has left its range. What is judged is the run so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rtmms.monitor.measure import PROBE, STILL_M_S2, Errors
from rtmms.plant import Twin
from rtmms.spatial import Array

DENSE = 12
"""Measurements one after the other at the start; then the gap grows by GROW steps each time, up to GAP."""
GROW, GAP = 4, 145
FEW, ENOUGH = 2, 45
"""Measurements before a run is judged at its end, and while it goes."""
SOME = 20
"""Before it is stopped."""
GOLDEN = 0.6180339887498949
PATH, WORK, STEP = 0.009, 0.04, 0.1
"""What is doubted. The path's estimate is on the high side (docs/guards.md)."""
UNSTABLE = 0.25
"""The step's error beyond which a run is stopped, by a method that is stable up to a bound only."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the monitor thinks of a run.

    verdict     'fine', 'doubtful', 'diverged', or 'unknown' while there is too little to judge by
    step, path, work   fractions, see rtmms.monitor.measure
    measured    doubled steps
    finer       the parameter that would shorten the step, and the longest that would do, s; None where all is fine
    """

    verdict: str
    step: float
    path: float
    work: float
    measured: int
    finer: tuple[str, float] | None = None

    @property
    def sentence(self) -> str:
        """For a person; '' where there is nothing to say."""
        if self.verdict == "unknown":
            return "accuracy: unknown: there were too few steps, or no time between them, to measure it"
        if self.finer is None:
            return ""
        told = []
        if self.step > STEP:
            told.append(f"the step's error is {_percent(self.step)} of what changes within it")
        if self.path > PATH:
            told.append(f"the path is thought to be off by {_percent(self.path)} of its length")
        if self.work > WORK:
            told.append(f"the work by {_percent(self.work)}" if told else f"the work is off by {_percent(self.work)}")
        if self.verdict == "diverged":
            told.append("as the method's own instability does it")
        name, value = self.finer
        return f"accuracy: {', '.join(told)}: use {name} <= {value:.2g} s"


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.2g} %" if fraction < 0.995 else "100 %" if fraction <= 1.0 else "more than 100 %"


class Monitor:
    """longest_ns  a look has taken about that: it falls slowly, so that one long look does not end the looking
    hopeless    the run has diverged, though its numbers are finite
    """

    def __init__(self, twin: Twin) -> None:
        self.twin, self.errors = twin, Errors(twin)
        self._begin, self._end, self._next = twin.room(), twin.room(), twin.room()
        self._command, self._last, self._at, self._next_at = np.zeros(0), np.zeros(0), 0, 0
        self.longest_ns = 0
        self.clear()

    def clear(self) -> None:
        """The plant was reset."""
        self.errors.clear()
        self._piece, self._sound, self._gap = 0, True, 1
        self.hopeless = False

    def forget(self) -> None:
        """The state was changed from outside: the measurement under way is none."""
        self._piece = 0

    def took(self, ns: int) -> None:
        """A look took so long."""
        self.longest_ns = max(ns, self.longest_ns - self.longest_ns // 16)

    def look(self, command: Array) -> int:
        """The next piece, after a step with `command`. Returns after how many steps it wants to be asked again."""
        with np.errstate(all="ignore"):
            return self._look(command)

    def _look(self, command: Array) -> int:
        now, twin, piece = self.twin.now, self.twin, self._piece
        if piece == 0 or (piece < 3 and now != self._at + piece) or (piece == 3 and self._next_at != self._at + 2):
            twin.keep(self._begin)
            self._at, self._piece = now, 1
            return 1
        if piece == 1:
            self._command = np.array(command)
            twin.keep(self._end)
            twin.start(self._begin, halves=True)
            self._sound = twin.step(self._command, halves=True)
        elif piece == 2:
            self._last = np.array(command)
            twin.keep(self._next)
            self._next_at = now
            self._sound = self._sound and twin.step(self._command, halves=True)
            self.errors.add(self._begin, self._end, twin.state, self._sound, float(self._gap + 3))
            self.hopeless = self.errors.step.largest > UNSTABLE and self.verdict.verdict == "diverged"
            count = self.errors.count
            if not (twin.base_moves and (count < ENOUGH or count % 8 == 0)):
                return self._done()
        else:
            self._fade()
            return self._done()
        self._piece = piece + 1
        return 1

    def _done(self) -> int:
        self._piece, self._gap = 0, self._pause()
        return self._gap

    def _pause(self) -> int:
        """Steps until the next measurement: uneven, so that it keeps no time with the gait."""
        count = self.errors.count
        if count < DENSE:
            return 1
        widest = min(GAP, GROW * (count - DENSE + 1))
        return max(1, round(widest * (0.5 + (count * GOLDEN) % 1.0)))

    def _fade(self) -> None:
        twin, state, after = self.twin, self.twin.state, self._next
        twin.start(self._end, halves=False)
        v = state.twist[:3]
        speed = math.sqrt(float(v @ v))
        along = v / speed if speed > STILL_M_S2 else np.array([1.0, 0.0, 0.0])
        before = PROBE * max(speed, 1e-3)
        v += before * along
        if twin.step(self._last, halves=False):
            self.errors.fade(before, float((state.twist[:3] - after.twist[:3]) @ along))

    @property
    def settled(self) -> bool:
        """Enough was measured to speak up while the run goes on."""
        return self.errors.count >= ENOUGH

    @property
    def verdict(self) -> Verdict:
        """Of the run so far."""
        errors = self.errors
        step, work, path = errors.step.largest, errors.work, errors.path()
        name = "fine"
        if errors.count < FEW:
            name = "unknown"
        elif errors.count >= SOME and step > UNSTABLE and self.twin.bounded:
            name = "diverged"
        elif step > STEP or path > PATH or work > WORK:
            name = "doubtful"
        finer = None
        if name in ("doubtful", "diverged"):
            order = self.twin.order
            share = min((0.5 * bound / found) ** (1.0 / order) for bound, found in (
                (STEP, step), (PATH, path), (WORK, work),
            ) if found > bound and (name == "doubtful" or bound == STEP))  # fmt: skip
            parameter, value = self.twin.finer
            finer = parameter, value * share
        return Verdict(name, step, path, work, errors.count, finer)
