"""Provide the repetition of a run, as it was and in shorter steps, which measures its errors of path and work.

A run with the error e and the same run in steps of 1 / m differ by e (1 - m^-p). Here p is the order at which it
converges. Where p is at least 1, the error is at most 1 / (1 - 1 / m) of that distance. This holds as well where p is
less than the method's own order (stiff parts, a multistep method's first steps). A step is divided into two parts, or
into four or eight where time allows. Long steps, which may be beyond the range where errors shrink evenly, cost little.

A third run, in steps of 2 / m, shows whether the run converges, where time allows. By first order its distance from the
run in 1 / m is e / m. A larger distance (impacts, steps beyond the method's range) is an error of the shortest steps
too. It is added to the first one, twice where it is much larger: the error is then about that, without a bound.

Where a run is wrong, a half and a quarter of its steps are tried as well. The sufficient step is then measured, not
extrapolated by the method's order.

Commands are part of the motion, not of the method: late commands and jumps are applied again as they were.
"""

from __future__ import annotations

import math
from time import monotonic
from typing import NamedTuple

import numpy as np

from rtmms.base.spatial import Array
from rtmms.plant.optional_protocols import SavedState, StepErrorEstimator

PARTS = (8, 4, 2)
"""Numbers of parts of a step, in order of preference as time allows."""
SHARE = 0.3
"""Share of the time for the run as it was, which shows the cost of a step."""
MIN_WAY = 0.1
"""Shortest way, as a fraction of `StepErrorEstimator.length`: a shorter way counts as that long."""
MIN_WORK_SHARE = 0.02
"""Smallest reference of the work, as a fraction of the work to and fro, for work that nearly cancels."""
POWERS = 1000
"""Approximate number of evaluations of the power, where states contain no work."""
CLOCK_INTERVAL_STEPS = 16
"""Steps between readings of the clock."""
CONVERGED = 0.25
"""A run converges where this part of the first distance is at least the second: 1 / (m - 1) by first order."""
MAX_END_DISTANCE = 1e-6
"""Largest distance between the ends of a run and of its repetition, as a fraction of the way."""


class ReplayDifferences(NamedTuple):
    """Differences between a run and itself in shorter steps, as fractions.

    Attributes
    ----------
    path : float
        Of the length travelled: the largest distance of the two (with a fixed base: of the joints, of their way).
    work : float
        Of the work done, at the end; of the mean power, where states contain no work.
    seconds : float
        Simulated time of the run's beginning that this covers, s.
    shorter : tuple[tuple[int, float, float], ...], default ()
        (n, path, work) of the run in steps of 1 / n, n ascending; () where it was not requested or time was short.
    sure : bool, default True
        Whether path and work are upper bounds: the run converges, or time was short for a method of order 2 or more.
    """

    path: float
    work: float
    seconds: float
    shorter: tuple[tuple[int, float, float], ...] = ()
    sure: bool = True


class RepeatedRun:
    """Places and work of a run that is repeated in whole or divided steps.

    Attributes
    ----------
    places : (steps + 1, k) array
        m; with a fixed base, rad or m of the joints.
    works : (steps + 1,) array
        Work, J; or power, W, of some steps: the mean over their parts. At the end of a step alone it would be far from
        the step's mean where motors follow a command that is held over the step.
    steps_taken : int
        Number of steps that were taken.
    failed : bool
        Whether the next step failed.
    summed : bool
        Whether `works` has powers.
    """

    def __init__(
        self, estimator: StepErrorEstimator, begin: SavedState, commands: Array, parts: int, until: float, every: int
    ) -> None:
        """Repeat the run.

        Parameters
        ----------
        estimator : StepErrorEstimator
            Estimator that takes the steps.
        begin : SavedState
            First state.
        commands : (steps, n) array
            Command of each step.
        parts : int
            Parts of each step, 1 for the run as it was.
        until : float
            Instant of the monotonic clock, s, after which no step begins.
        every : int
            Steps from one power to the next, the same for all ways that are compared.
        """
        steps, fine, state = len(commands), parts > 1, estimator.state
        places = state.position if estimator.base_moves else state.joints
        if fine:
            estimator.divide(parts)
        estimator.start(begin, halves=fine)
        self.places, self.works = np.empty((steps + 1, places.size)), np.zeros(steps + 1)
        self.places[0] = places.ravel()
        self.works[0] = 0.0 if state.work is None else state.work.sum()
        self.steps_taken, self.failed = 0, False
        for k, command in enumerate(commands, 1):
            counts, power = state.work is None and k % every == 0, 0.0
            for _ in range(parts):
                self.failed = not estimator.step(command, halves=fine)
                if self.failed:
                    break
                if counts:
                    power += estimator.power(state)
            if self.failed:
                break
            self.steps_taken = k
            self.places[k] = places.ravel()
            if state.work is not None:
                self.works[k] = state.work.sum()
            elif counts:
                self.works[k] = power / parts
            if k % CLOCK_INTERVAL_STEPS == 0 and monotonic() > until:
                break
        self.summed = state.work is None
        estimator.divide(2)

    def length(self, steps: int) -> float:
        """Return the length of the way.

        Parameters
        ----------
        steps : int
            Number of steps that count.

        Returns
        -------
        float
            m; rad or m for joints.
        """
        return float(np.sum(np.linalg.norm(np.diff(self.places[: steps + 1], axis=0), axis=1)))

    def work(self, steps: int) -> tuple[float, float]:
        """Return the work, or the sum of powers, over the first steps.

        Parameters
        ----------
        steps : int
            Number of steps that count.

        Returns
        -------
        (float, float)
            The sum, and the sum of absolute values.
        """
        works = self.works[: steps + 1]
        done = works[1:] if self.summed else np.diff(works)
        return float(done.sum()), float(np.abs(done).sum())


def path_error(apart: float, length: float, estimator: StepErrorEstimator) -> float:
    """Return the distance of two runs as a fraction of a way's length.

    Parameters
    ----------
    apart : float
        Distance, m (with a fixed base: rad or m of the joints).
    length : float
        Length of the way, in the same unit.
    estimator : StepErrorEstimator
        Estimator whose `length` bounds the way from below.

    Returns
    -------
    float
        Fraction.
    """
    return apart / max(length, MIN_WAY * estimator.length)


def work_error(work: float, exact: float, moved: float) -> float:
    """Return the difference of two works as a fraction of the larger.

    Parameters
    ----------
    work, exact : float
        Works of both runs, J.
    moved : float
        Sum of the absolute works, J.

    Returns
    -------
    float
        Fraction.
    """
    done = max(abs(work), abs(exact), MIN_WORK_SHARE * moved)
    return abs(work - exact) / done if done > 0.0 else 0.0


def replay(
    estimator: StepErrorEstimator, begin: SavedState, end: SavedState | None, commands: Array, seconds: float,
    maximum: int = PARTS[0], bounds: tuple[float, float] = (math.inf, math.inf),
) -> ReplayDifferences | None:  # fmt: skip
    """Repeat a run, as it was and in parts of its steps.

    Parameters
    ----------
    estimator : StepErrorEstimator
        Estimator that takes the steps.
    begin : SavedState
        First state.
    end : SavedState or None
        Last state; None where the commands do not reach so far.
    commands : (k, n) array
        Commands of the run's steps, or of the first of them.
    seconds : float
        Wall time that this may take, s; the result covers the part that it reaches.
    maximum : int, default PARTS[0]
        Largest number of parts of a step.
    bounds : tuple[float, float], default (math.inf, math.inf)
        Errors of path and work. Beyond them the run is repeated in fewer parts too, to find the sufficient step.

    Returns
    -------
    ReplayDifferences or None
        None where no step was reached, or where the repetition differs from the run.
    """
    began = monotonic()
    with np.errstate(all="ignore"):
        every = max(1, len(commands) // POWERS)
        first_replay = RepeatedRun(estimator, begin, commands, 1, began + SHARE * seconds, every)
        cost, left = monotonic() - began, began + seconds - monotonic()
        if first_replay.steps_taken < (1 if first_replay.failed else 2):
            return None
        if (
            end is not None
            and first_replay.steps_taken == len(commands)
            and not _ends(estimator, first_replay, begin, end)
        ):
            return None
        parts = next((part for part in PARTS if part <= maximum and part * cost <= left), PARTS[-1])
        fine = RepeatedRun(estimator, begin, commands[: first_replay.steps_taken], parts, monotonic() + left, every)
        step_count = fine.steps_taken
        if fine.failed:  # shorter steps fail where whole ones did not: neither is to be trusted
            return ReplayDifferences(1.0, 1.0, (step_count + 1) * estimator.dt)
        first = _apart(estimator, first_replay, fine)
        path, work = (parts / (parts - 1) * off for off in first)
        sure, ways = estimator.order > 1, dict[int, RepeatedRun]()

        def in_parts(n: int) -> RepeatedRun | None:
            """Return the run in steps of 1 / n; None where it fails or no time is left."""
            if n not in ways and n * cost <= began + seconds - monotonic():
                ways[n] = RepeatedRun(estimator, begin, commands[:step_count], n, math.inf, every)
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
                    factor, (near, done) = parts / (parts - n), _apart(estimator, between, fine)
                    shorter.append((n, factor * near, factor * done))
    path, work = (off if math.isfinite(off) else 1.0 for off in (path, work))
    return ReplayDifferences(path, work, step_count * estimator.dt, tuple(shorter), sure)


def _apart(estimator: StepErrorEstimator, repeated_run: RepeatedRun, fine: RepeatedRun) -> tuple[float, float]:
    """Return errors of path and work of a way against one in shorter steps, fractions; 1 where undefined."""
    step_count = fine.steps_taken
    apart = float(np.max(np.linalg.norm(repeated_run.places[: step_count + 1] - fine.places[: step_count + 1], axis=1)))
    (work, _), (exact, moved) = repeated_run.work(step_count), fine.work(step_count)
    path, spent = path_error(apart, fine.length(step_count), estimator), work_error(work, exact, moved)
    return path if math.isfinite(path) else 1.0, spent if math.isfinite(spent) else 1.0


def _ends(estimator: StepErrorEstimator, repeated_run: RepeatedRun, begin: SavedState, end: SavedState) -> bool:
    """Return whether the repetition of a run ends where the run ended; a different command makes it False."""
    place = end.position if estimator.base_moves else end.joints.ravel()
    off = float(np.linalg.norm(repeated_run.places[repeated_run.steps_taken] - place))
    return not off > MAX_END_DISTANCE * max(repeated_run.length(repeated_run.steps_taken), MIN_WAY * estimator.length)
