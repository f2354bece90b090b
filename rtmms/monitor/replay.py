"""A run taken again in shorter steps with the commands that were applied: where do the errors of its steps lead?

Between a run of error e and the same run in steps of 1 / m lies e (1 - m^-p), p the order at which it converges. That is
at least 1, also where it is less than the method's own (stiff parts, a multistep method's first steps); so the error is
at most 1 / (1 - 1 / m) of what lies between them, and that is what is told. There are two parts to a step, or four or
eight where time allows: long steps, which may be beyond the range where errors shrink evenly, cost little.

Commands are part of the motion, not of the method: those that came late, or jumped, are applied again as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

import numpy as np

from rtmms.plant import Kept, Twin
from rtmms.spatial import Array

PARTS = (8, 4, 2)
"""Into how many a step is divided, the first for which there is time."""
MOSTLY = 0.7
TRIED = 16
"""Steps from which it is seen how long one takes."""
SHORTEST = 0.1
"""Of `Twin.length`: a way that is shorter counts as that long."""
SWAYING = 0.02
"""Work is measured against its sum, or this part of what went to and fro, where the two nearly cancel."""
MOST_MARKS = 1024
LOOK_EVERY = 64
"""Steps between looks at the clock."""


class Replayed(NamedTuple):
    """What a run differs by from itself in shorter steps, fractions.

    path     of the length travelled: the farthest that the two were apart (a fixed base: the joints, of their way)
    work     of the work done, at the end
    seconds  simulated, of the run's beginning that this is of
    """

    path: float
    work: float
    seconds: float


class Marks:
    """Where a run was, at some of its steps: at most MOST_MARKS, every second one forgotten whenever they are full."""

    def __init__(self, twin: Twin) -> None:
        self._moves = twin.base_moves
        width = 3 if self._moves else twin.state.joints.size
        self.at = np.zeros(MOST_MARKS, dtype=np.int64)
        self.place, self.work = np.zeros((MOST_MARKS, width)), np.zeros(MOST_MARKS)
        self.clear()

    def clear(self) -> None:
        """Back to none."""
        self.count, self._every, self._skipped = 0, 1, 0

    def where(self, state: Kept) -> Array:
        """What counts as the place of a state, (k,): position, or joints on a fixed base."""
        return state.position if self._moves else state.joints.ravel()

    def add(self, step: int, state: Kept) -> None:
        """The state after so many steps, if it is not left out."""
        self._skipped += 1
        if self._skipped >= self._every:
            self._skipped = 0
            self.end(step, state)

    def end(self, step: int, state: Kept) -> None:
        """The state after so many steps, without fail."""
        if self.count == MOST_MARKS:
            half = MOST_MARKS // 2
            for array in (self.at, self.place, self.work):
                array[:half] = array[1::2].copy()
            self.count, self._every = half, 2 * self._every
        k = self.count
        self.at[k], self.place[k] = step, self.where(state)
        self.work[k] = 0.0 if state.work is None else state.work[0]
        self.count = k + 1

    @property
    def last(self) -> int:
        """Steps until the last of them; 0 for none."""
        return int(self.at[self.count - 1]) if self.count else 0


def path_error(apart: float, length: float, twin: Twin) -> float:
    """Of a way's length, how far two runs were apart; m, m (rad of joints on a fixed base)."""
    return apart / max(length, SHORTEST * twin.length)


def work_error(work: float, exact: float, moved: float) -> float:
    """Of the work done, the larger of the two; moved: the sum of what went to and fro, J."""
    done = max(abs(work), abs(exact), SWAYING * moved)
    return abs(work - exact) / done if done > 0.0 else 0.0


def parts_for(twin: Twin, begin: Kept, commands: Array, seconds: float) -> int:
    """Into how many parts each step may be divided, so that the run takes most of this time."""
    tried = commands[:TRIED]
    twin.divide(2)
    twin.start(begin, halves=True)
    began = monotonic()
    for command in tried:
        twin.step(command, halves=True)
    cost = (monotonic() - began) / max(1, len(tried))
    return next((parts for parts in PARTS if len(commands) * parts * cost <= MOSTLY * seconds), PARTS[-1])


def replay(
    twin: Twin, begin: Kept, commands: Array, marks: Marks, seconds: float, tell: Callable[[float], None] | None = None
) -> Replayed | None:
    """Take a run again in parts of its steps.

    begin     its first state;  commands (k, n) of its steps;  marks  where it was
    seconds   of wall time that this may take: what is reached is judged, and no more
    tell      is told now and then what share of the steps is done
    None where there is no mark to compare with.
    """
    steps, until, reached = min(len(commands), marks.last), monotonic() + seconds, 0
    state, place = twin.state, marks.where(begin)
    with np.errstate(all="ignore"):
        parts = parts_for(twin, begin, commands[:steps], seconds)
        twin.divide(parts)
        twin.start(begin, halves=True)
        work = state.work
        ways, works = np.empty((steps + 1, place.size)), np.zeros(steps + 1)
        ways[0], works[0] = place, 0.0 if work is None else work[0]
        for k in range(steps):
            command = commands[k]
            for _ in range(parts):
                if not twin.step(command, halves=True):
                    twin.divide(2)
                    # shorter steps fail where whole ones did not: neither is to be trusted
                    return Replayed(1.0, 1.0 if work is not None else 0.0, (k + 1) * twin.dt)
            ways[k + 1] = marks.where(state)
            if work is not None:
                works[k + 1] = work[0]
            reached = k + 1
            if k % LOOK_EVERY == 0:
                if monotonic() > until:
                    break
                if tell is not None and k % (LOOK_EVERY * 64) == 0:
                    tell(k / steps)
        twin.divide(2)
        compared = int(np.searchsorted(marks.at[: marks.count], reached, side="right"))
        if not compared:
            return None
        at = marks.at[:compared]
        last, most = int(at[-1]), parts / (parts - 1.0)
        length = float(np.sum(np.linalg.norm(np.diff(ways[: last + 1], axis=0), axis=1)))
        apart = float(np.max(np.linalg.norm(marks.place[:compared] - ways[at], axis=1)))
        moved = float(np.sum(np.abs(np.diff(works[: last + 1]))))
        path = most * path_error(apart, length, twin)
        off = most * work_error(marks.work[compared - 1] - works[0], works[last] - works[0], moved)
    return Replayed(*(part if math.isfinite(part) else 1.0 for part in (path, off)), last * twin.dt)
