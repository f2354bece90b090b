"""A run taken again with the commands that were applied, as it was and in shorter steps: where do its errors lead?

Between a run of error e and the same run in steps of 1 / m lies e (1 - m^-p), p the order at which it converges. Where
p is at least 1, also where it is less than the method's own (stiff parts, a multistep method's first steps), the error
is at most 1 / (1 - 1 / m) of what lies between them. There are two parts to a step, or four or eight where time allows:
long steps, which may be beyond the range where errors shrink evenly, cost little.

Whether the run converges is seen in a third run, in steps of 2 / m, where time allows. By first order it lies e / m
from the one in 1 / m. A larger distance (impacts, steps beyond the method's range) is an error of the shortest steps
too, and is added to the first one; twice where it is much larger: the error is then about that, with no bound.

Where a run is wrong, half and a quarter of its steps are tried as well: which step would do is seen, not guessed from
the method's order.

Commands are part of the motion, not of the method: those that came late, or jumped, are applied again as they were.
"""

from __future__ import annotations

import math
from time import monotonic
from typing import NamedTuple

import numpy as np

from rtmms.base.spatial import Array
from rtmms.plant.protocol import HasPower, SavedState, StepErrorEstimator

PARTS = (8, 4, 2)
"""Into how many a step is divided, the first for which there is time."""
SHARE = 0.3
"""Of the time, for the run as it was: it shows what a step costs."""
SHORTEST = 0.1
"""Of `StepErrorEstimator.length`: a way that is shorter counts as that long."""
SWAYING = 0.02
"""Work is measured against its sum, or this part of what went to and fro, where the two nearly cancel."""
POWERS = 1000
"""Of states that carry no work the power is asked for about so many times."""
LOOK_EVERY = 16
"""Steps between looks at the clock."""
CONVERGED = 0.25
"""A run converges where this part of the first distance is at least the second: 1 / (m - 1) by first order."""
SAME = 1e-6
"""Of the way: how far a run that is taken again as it was may end from where it ended."""


class Replayed(NamedTuple):
    """What a run differs by from itself in shorter steps, fractions.

    path     of the length travelled: the farthest that the two were apart (a fixed base: the joints, of their way)
    work     of the work done, at the end; of the mean power, where states carry no work
    seconds  simulated, of the run's beginning that this is of
    shorter  (n, path, work) of the run in steps of 1 / n, n rising; () where it was not asked for, or no time was left
    sure     path and work are upper bounds: the run converges, or its method is of second order or more and no time was
             left to see it
    """

    path: float
    work: float
    seconds: float
    shorter: tuple[tuple[int, float, float], ...] = ()
    sure: bool = True


class Way:
    """A run's places (steps + 1, k), m (rad or m of joints on a fixed base), its work, J (or power, W, at some steps),
    and how many steps of it were taken. `failed`: the next one could not be."""

    def __init__(
        self, estimator: StepErrorEstimator, begin: SavedState, commands: Array, parts: int, until: float, every: int
    ) -> None:
        """parts  of each step, 1 for the run as it was;  until  instant at which no step is begun any more
        every  steps from one power to the next: the same for all ways that are compared, however far each came"""
        powered = estimator if isinstance(estimator, HasPower) and begin.work is None else None
        steps, fine, state = len(commands), parts > 1, estimator.state
        places = state.position if estimator.base_moves else state.joints
        if fine:
            estimator.divide(parts)
        estimator.start(begin, halves=fine)
        self.places, self.works = np.empty((steps + 1, places.size)), np.zeros(steps + 1)
        self.places[0] = places.ravel()
        self.works[0] = 0.0 if state.work is None else state.work.sum()
        self.taken, self.failed = 0, False
        for k, command in enumerate(commands, 1):
            self.failed = not all(estimator.step(command, halves=fine) for _ in range(parts))
            if self.failed:
                break
            self.taken = k
            self.places[k] = places.ravel()
            if state.work is not None:
                self.works[k] = state.work.sum()
            elif powered is not None and k % every == 0:
                self.works[k] = powered.power(state)
            if k % LOOK_EVERY == 0 and monotonic() > until:
                break
        self.summed = powered is not None
        estimator.divide(2)

    def length(self, steps: int) -> float:
        """Of the way, for so many steps."""
        return float(np.sum(np.linalg.norm(np.diff(self.places[: steps + 1], axis=0), axis=1)))

    def work(self, steps: int) -> tuple[float, float]:
        """(sum, sum of what went to and fro) of work, or of power, over so many steps."""
        works = self.works[: steps + 1]
        done = works[1:] if self.summed else np.diff(works)
        return float(done.sum()), float(np.abs(done).sum())


def path_error(apart: float, length: float, estimator: StepErrorEstimator) -> float:
    """Of a way's length, how far two runs were apart; m, m (rad of joints on a fixed base)."""
    return apart / max(length, SHORTEST * estimator.length)


def work_error(work: float, exact: float, moved: float) -> float:
    """Of the work done, the larger of the two; moved: the sum of what went to and fro, J."""
    done = max(abs(work), abs(exact), SWAYING * moved)
    return abs(work - exact) / done if done > 0.0 else 0.0


def replay(
    estimator: StepErrorEstimator, begin: SavedState, end: SavedState | None, commands: Array, seconds: float,
    most: int = PARTS[0], bounds: tuple[float, float] = (math.inf, math.inf),
) -> Replayed | None:  # fmt: skip
    """Take a run again, as it was and in parts of its steps.

    begin        its first state;  commands (k, n) of its steps, or of the first of them
    end          its last state, None where the commands do not reach so far
    seconds      of wall time that this may take: what is reached is judged, and no more
    most         parts of a step
    bounds       of path and work: beyond them it is also taken in fewer parts, to see which step would do
    None where nothing was reached, or the run is another when it is taken again.
    """
    began = monotonic()
    with np.errstate(all="ignore"):
        every = max(1, len(commands) // POWERS)
        own = Way(estimator, begin, commands, 1, began + SHARE * seconds, every)
        cost, left = monotonic() - began, began + seconds - monotonic()
        if own.taken < (1 if own.failed else 2):
            return None
        if end is not None and own.taken == len(commands) and not _ends(estimator, own, begin, end):
            return None
        parts = next((one for one in PARTS if one <= most and one * cost <= left), PARTS[-1])
        fine = Way(estimator, begin, commands[: own.taken], parts, monotonic() + left, every)
        taken = fine.taken
        if fine.failed:  # shorter steps fail where whole ones did not: neither is to be trusted
            return Replayed(1.0, 1.0, (taken + 1) * estimator.dt)
        first = _apart(estimator, own, fine)
        path, work = (parts / (parts - 1) * off for off in first)
        sure, ways = estimator.order > 1, dict[int, Way]()

        def in_parts(n: int) -> Way | None:
            """The run in steps of 1 / n; None where it fails or no time is left."""
            if n not in ways and n * cost <= began + seconds - monotonic():
                ways[n] = Way(estimator, begin, commands[:taken], n, math.inf, every)
            return None if n not in ways or ways[n].failed else ways[n]

        half = in_parts(parts // 2) if parts > 2 else None
        if half is not None:
            second = _apart(estimator, half, fine)
            path, work = (
                max(off, near + (1.0 if far <= CONVERGED * near else 2.0) * far)
                for off, near, far in zip((path, work), first, second, strict=True)
            )
            sure = all(
                far <= CONVERGED * near or off <= 0.5 * bound
                for far, near, off, bound in zip(second, first, (path, work), bounds, strict=True)
            )
        shorter = list[tuple[int, float, float]]()
        for n in sorted(PARTS):
            if (path > bounds[0] or work > bounds[1]) and n < parts:
                between = in_parts(n)
                if between is not None:
                    rest, (near, done) = parts / (parts - n), _apart(estimator, between, fine)
                    shorter.append((n, rest * near, rest * done))
    path, work = (off if math.isfinite(off) else 1.0 for off in (path, work))
    return Replayed(path, work, taken * estimator.dt, tuple(shorter), sure)


def _apart(estimator: StepErrorEstimator, way: Way, fine: Way) -> tuple[float, float]:
    """How far path and work of a way are from those of one in shorter steps, fractions; 1 where that is no number."""
    taken = fine.taken
    apart = float(np.max(np.linalg.norm(way.places[: taken + 1] - fine.places[: taken + 1], axis=1)))
    (work, _), (exact, moved) = way.work(taken), fine.work(taken)
    path, spent = path_error(apart, fine.length(taken), estimator), work_error(work, exact, moved)
    return path if math.isfinite(path) else 1.0, spent if math.isfinite(spent) else 1.0


def _ends(estimator: StepErrorEstimator, own: Way, begin: SavedState, end: SavedState) -> bool:
    """Whether a run that was taken again as it was ends where it ended; not where its commands were others."""
    place = end.position if estimator.base_moves else end.joints.ravel()
    off = float(np.linalg.norm(own.places[own.taken] - place))
    return not off > SAME * max(own.length(own.taken), SHORTEST * estimator.length)
