"""Provide the monitor of a run, which measures the error of its steps and of its path.

A step of dt from a state, and two of dt / 2 from the same state under the same command, end at a distance d. The local
error of the step is d / (1 - 2^-p) for a method of order p. Its size relative to the change within a step shows whether
the step resolves the motion at all. Single steps do not show where the errors lead; `rtmms.plant.replay` measures that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rtmms.base.spatial import Array
from rtmms.plant.optional_protocols import SavedState, StepErrorEstimator
from rtmms.plant.replay import PARTS, ReplayDifferences, replay

UNSTABLE = 0.25
"""Error of a step, a fraction, beyond which the method has left its range."""
MIN_MOTION_M_S2 = 1e-6
"""Smallest change that counts as motion, m/s2."""


class StepError(NamedTuple):
    """Error of a step as fractions of the change within it.

    0.01 is 1 %; 1 means that the half steps failed. The values include the factor 1 / (1 - 2^-p), so that they are
    errors of the step itself.

    Attributes
    ----------
    velocity : float
        Error of the twist; turns count by `StepErrorEstimator.length`.
    joints : float
        Error of the joints.
    """

    velocity: float
    joints: float

    @property
    def largest(self) -> float:
        """The larger of both fractions."""
        return max(self)


class Vectors:
    """Differences of stored states.

    Parameters
    ----------
    estimator : StepErrorEstimator
        Estimator whose states are compared.

    Attributes
    ----------
    twist : (6,) array
        Difference of the twist; its turns are multiplied by `StepErrorEstimator.length`.
    joints : array
        Difference of the joints, rad or m.
    """

    def __init__(self, estimator: StepErrorEstimator) -> None:
        self.twist, self.joints = np.zeros(6), np.zeros(estimator.state.joints.shape)
        self._length = estimator.length

    def between(self, a: SavedState, b: SavedState) -> None:
        """Store the difference b - a.

        Parameters
        ----------
        a, b : SavedState
            States to compare.
        """
        np.subtract(b.twist, a.twist, out=self.twist)
        self.twist[3:] *= self._length
        np.subtract(b.joints, a.joints, out=self.joints)

    def squares(self) -> tuple[float, float]:
        """Return the sums of squares of the stored differences.

        Returns
        -------
        (float, float)
            Of the twist, and of the joints.
        """
        twist, joints = self.twist, self.joints.ravel()
        return float(twist @ twist), float(joints @ joints)


class Errors:
    """Statistics of the doubled steps of a run.

    Parameters
    ----------
    estimator : StepErrorEstimator
        Estimator of the plant.

    Attributes
    ----------
    count : int
        Number of doubled steps.
    sharpen : float
        1 / (1 - 2^-p), with p the method's order.
    unstable_steps : int
        Number of steps with an error beyond UNSTABLE.
    """

    def __init__(self, estimator: StepErrorEstimator) -> None:
        self.estimator, self.sharpen = estimator, 1.0 / (1.0 - 0.5**estimator.order)
        self._apart, self._change = Vectors(estimator), Vectors(estimator)
        self.clear()

    def clear(self) -> None:
        """Remove all measurements."""
        self.count = 0
        self._twist, self._joints, self._unseen = [0.0, 0.0], [0.0, 0.0], 0.0
        self._weights, self._unstable, self.unstable_steps = 0.0, 0.0, 0

    def add(self, begin: SavedState, end: SavedState, halves: SavedState, sound: bool, weight: float) -> StepError:
        """Add one doubled step.

        Prescribed joints are right at the end of a step. Their motion counts as an error all the same where no stage of
        the step evaluated it. Bodies and work have missed that motion, and half steps may have missed it too.

        Parameters
        ----------
        begin : SavedState
            State before the step.
        end : SavedState
            State of the plant after the step.
        halves : SavedState
            State after the two half steps.
        sound : bool
            Whether the half steps succeeded.
        weight : float
            Number of steps that this one represents.

        Returns
        -------
        StepError
            Error of this step, without the factor `sharpen`.
        """
        apart, change, dt = self._apart, self._change, self.estimator.dt
        change.between(begin, end)
        twist, joints = change.squares()
        apart.between(halves, end)
        off, bent = apart.squares()
        floor = (MIN_MOTION_M_S2 * dt) ** 2
        twist, joints = max(twist, floor), max(joints, floor * dt * dt)
        if not math.isfinite(twist + joints):
            return StepError(1.0, 1.0)  # the plant itself is about to leave the numbers, and will report it
        if not (sound and math.isfinite(off + bent)):
            off, bent = twist, joints
        else:
            unseen = self.estimator.unseen(begin, end)
            self._unseen += weight * unseen
            bent += unseen / self.sharpen**2
        self.count += 1
        self._twist[0] += weight * off
        self._twist[1] += weight * twist
        self._joints[0] += weight * bent
        self._joints[1] += weight * joints
        result = StepError(math.sqrt(off / twist), math.sqrt(bent / joints))
        self._weights += weight
        if self.sharpen * result.largest > UNSTABLE:
            self._unstable += weight
            self.unstable_steps += 1
        return result

    @property
    def step(self) -> StepError:
        """Root mean squares of the errors over those of the changes, times `sharpen`."""
        ratios = [math.sqrt(a / b) if b > 0.0 else 0.0 for a, b in (self._twist, self._joints)]
        return StepError(*(min(self.sharpen * ratio, 1.0) for ratio in ratios))

    @property
    def unstable(self) -> float:
        """Share of the steps whose error is beyond UNSTABLE: an impact affects few steps, an instability many."""
        return self._unstable / self._weights if self._weights > 0.0 else 0.0

    @property
    def unseen(self) -> float:
        """Prescribed motion that no stage evaluated, root mean square, as a fraction of the joints' motion."""
        return math.sqrt(self._unseen / self._joints[1]) if self._joints[1] > 0.0 else 0.0


def step_error(estimator: StepErrorEstimator, command: Array) -> StepError:
    """Return the error of one step from the plant's present state; the plant does not change.

    Parameters
    ----------
    estimator : StepErrorEstimator
        Estimator of the plant.
    command : (n_actuators,) array
        Command held over the step.

    Returns
    -------
    StepError
        1 where a step failed.
    """
    errors, begin, end = Errors(estimator), estimator.room(), estimator.room()
    estimator.keep(begin)
    estimator.start(begin, halves=False)
    sound = estimator.step(command, halves=False)
    end.all[:] = estimator.state.all
    estimator.start(begin, halves=True)
    sound = sound and estimator.step(command, halves=True) and estimator.step(command, halves=True)
    result = errors.add(begin, end, estimator.state, sound, 1.0)
    return StepError(*(errors.sharpen * part if sound else 1.0 for part in result))


DENSE = 12
"""Measurements one after the other at the start; then the gap grows by GROW steps each time, up to GAP."""
GROW = 4
GAP = 145
MIN_MEASUREMENTS = 45
"""Number of measurements before the errors of steps alone raise doubts while the run continues."""
MIN_ERROR_COUNT = 20
"""Number of measurements before a run may be stopped."""
GOLDEN = 0.6180339887498949
MAX_PATH_ERROR = 0.01
"""Relative error of the path beyond which a run is doubtful."""
MAX_WORK_ERROR = 0.05
"""Relative error of the work beyond which a run is doubtful."""
MAX_STEP_ERROR = 0.1
"""Relative error of a step beyond which a run is doubtful."""
BOUNDS = {"path": MAX_PATH_ERROR, "work": MAX_WORK_ERROR}
MAX_UNSTABLE_SHARE = 0.05
"""Share of unstable steps from which a run is stopped, by a method that is stable only up to a bound.

In the grid of guards, instabilities made 26 % or more of the steps unstable; an impact made one step, 0.8 %,
unstable.
"""
MIN_UNSTABLE_STEPS = 4
"""Number of unstable steps from which such a run is stopped."""
PATIENCE_S = 2.0
"""Default wall time for the repeated run, s."""
TAPE_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Verdict:
    """The monitor's judgement of a run.

    Parameters
    ----------
    verdict : str
        'fine', 'doubtful', 'diverged', or 'unknown' while there are too few measurements.
    step : float
        Error of the steps, a fraction of the change within a step.
    path, work : float
        Errors of path and work, fractions (`rtmms.plant.replay`); nan where they were not measured.
    measured : int
        Number of doubled steps.
    finer : (str, float) or None, optional
        Parameter that would shorten the step, and the longest sufficient value, s; None where all is fine.
    seconds : float or None, optional
        Simulated time, s, of the beginning that path and work refer to; None for the whole run.
    place : str, default 'path'
        Quantity that `path` refers to: 'path' or 'joints'.
    sure : bool, default True
        Whether path and work are upper bounds, see `rtmms.plant.replay.ReplayDifferences`.
    """

    verdict: str
    step: float
    path: float
    work: float
    measured: int
    finer: tuple[str, float] | None = None
    seconds: float | None = None
    place: str = "path"
    sure: bool = True

    @property
    def sentence(self) -> str:
        """The doubt as a sentence for the user; '' where there is none."""
        if self.verdict == "unknown":
            return "accuracy: unknown: there were too few steps, or no time between them, to measure it"
        if self.finer is None:
            return ""
        name, value = self.finer
        return f"accuracy: {self.worst}: use {name} <= {value:.2g} s"

    @property
    def worst(self) -> str:
        """The quantity that exceeds its bound most, as a phrase with its number."""
        if self.verdict == "diverged":
            return f"the steps are off by {_percent(self.step)}, as the method's own instability does it"
        over = "" if self.seconds is None else f" over the first {self.seconds:.3g} s"
        causes = []
        if math.isfinite(self.path):
            what = "path is off by" if self.place == "path" else "joints are off by"
            whose = "its length" if self.place == "path" else "their way"
            off = f"the {what} {_format_bound(self.path, self.sure)} of {whose}{over}"
            causes = [
                (self.path / MAX_PATH_ERROR, off),
                (self.work / MAX_WORK_ERROR, f"the work is off by {_format_bound(self.work, self.sure)}{over}"),
            ]
        if not causes or (self.verdict == "doubtful" and max(causes)[0] <= 1.0):
            causes = [(0.0, f"the steps are off by {_percent(self.step)} of what changes within them")]
        return max(causes)[1]


def _format_bound(fraction: float, sure: bool) -> str:
    return f"{'at most' if sure else 'about'} {_percent(fraction)}" if fraction <= 1.0 else _percent(fraction)


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.2g} %" if fraction < 0.995 else "100 %" if fraction <= 1.0 else "more than 100 %"


def enough(replay_differences: ReplayDifferences) -> float:
    """Return the share of a step that would halve the doubtful error.

    The function interpolates between the steps that were tried, and extrapolates beyond the shortest by first order.

    Parameters
    ----------
    replay_differences : ReplayDifferences
        Errors of the run and of the run in shorter steps.

    Returns
    -------
    float
        Length of the sufficient step over that of the run's step.
    """
    tried = [
        (n, max(path / MAX_PATH_ERROR, work / MAX_WORK_ERROR))
        for n, path, work in ((1, replay_differences.path, replay_differences.work), *replay_differences.shorter)
    ]
    for (n, off), (m, less) in pairwise(tried):
        if less <= 0.5:
            return float((n / m) ** (math.log(2.0 * off) / math.log(off / less)) / n) if off > less else 1.0 / m
    n, off = tried[-1]
    return 0.5 / (n * off)


class Monitor:
    """Measurement of a run's errors, from the plant's present state on.

    On some steps the monitor repeats the step in two halves, in pieces between the plant's steps. At the end it repeats
    the whole run from its commands. A call of `look` costs about one step of the plant. One measurement takes three
    calls, at the ends of successive steps:

    - 0: the state is copied; the step to come begins there
    - 1: the step's end and command are copied; the first half step is taken
    - 2: the second half step is taken; the distance between the two ends is added to `errors`

    While the run continues, steps alone show whether the run has left the range of its method. `conclude` measures
    where the errors lead; the caller that steps the plant writes the commands into `tape`.

    The verdict is 'doubtful' where the path is off by more than 1 % of itself or the work by more than 5 %. It is
    'doubtful' as well where prescribed joints move by a tenth of their motion unseen. It is 'diverged' for a method
    that is stable only up to a bound, where many steps are off by a quarter of the change within them. Steps that are
    off by more than a tenth are doubtful before the end of the run. They are also doubtful beyond the part that there
    was time to repeat.

    Parameters
    ----------
    estimator : StepErrorEstimator
        Step-error estimator of the plant.
    tape : (rows, n) array, optional
        Commands of the first steps; the caller writes row k at step k.

    Attributes
    ----------
    longest_ns : int
        Recent longest duration of a look, ns; it falls slowly, so that one long look does not end the measurement.
    hopeless : bool
        Whether the run has diverged although its numbers are finite.
    """

    def __init__(self, estimator: StepErrorEstimator, tape: Array | None = None) -> None:
        self.estimator, self.errors = estimator, Errors(estimator)
        self.tape = np.zeros((0, 0)) if tape is None else tape
        self._begin, self._end, self._start = estimator.room(), estimator.room(), estimator.room()
        self._command, self._at = np.zeros(0), 0
        self.longest_ns = 0
        self.clear()

    def clear(self) -> None:
        """Start again after a reset of the plant."""
        self.errors.clear()
        self._piece, self._sound, self._gap, self._due, self._by_hand = 0, True, 1, 0, 0
        self.hopeless, self._begun = False, False
        self._begin_here(0)

    def _begin_here(self, row: int) -> None:
        """Begin the part that `conclude` repeats at the present state, with this row of the tape."""
        self._replayed: ReplayDifferences | None = None
        self._first, self._row = self.estimator.now, row
        self.estimator.keep(self._start)

    def forget(self, step: int | None = None) -> None:
        """Discard the measurement in progress, because the state or a parameter was changed from outside.

        The part that `conclude` repeats begins at the present state.

        Parameters
        ----------
        step : int, optional
            Step before which the change took place; None for the next of the steps that `after` counts.
        """
        self._piece, self._begun = 0, True
        self._begin_here(self._by_hand if step is None else step)

    def took(self, ns: int) -> None:
        """Record the duration of a look.

        Parameters
        ----------
        ns : int
            Wall time, ns.
        """
        self.longest_ns = max(ns, self.longest_ns - self.longest_ns // 16)

    def after(self, command: Array) -> None:
        """Measure after a step of a plant that the caller steps by hand, in place of `look` and `tape`.

        Parameters
        ----------
        command : (n_actuators,) array
            Command of the step that was taken.
        """
        row, self._begun = self._by_hand, True
        if row >= len(self.tape):
            grown = np.zeros((max(1024, 2 * row), np.size(command)))
            grown[:row] = self.tape[:row] if row else 0.0
            self.tape = grown
        self.tape[row] = command
        self._by_hand = row + 1
        if row >= self._due:
            self._due = row + self.look(command)

    def look(self, command: Array) -> int:
        """Do the next piece of the measurement, after a step of the plant.

        Parameters
        ----------
        command : (n_actuators,) array
            Command of the step that was taken.

        Returns
        -------
        int
            Number of steps until the next look is due.
        """
        with np.errstate(all="ignore"):
            return self._look(command)

    def _look(self, command: Array) -> int:
        now, estimator, piece = self.estimator.now, self.estimator, self._piece
        if piece == 0 or now != self._at + piece:
            if not self._begun:
                self._begin_here(0)
                self._begun = True
            estimator.keep(self._begin)
            self._at, self._piece = now, 1
            return 1
        if piece == 1:
            self._command = np.array(command)
            estimator.keep(self._end)
            estimator.start(self._begin, halves=True)
            self._sound = estimator.step(self._command, halves=True)
            self._piece = 2
            return 1
        self._sound = self._sound and estimator.step(self._command, halves=True)
        self.errors.add(self._begin, self._end, estimator.state, self._sound, float(self._gap + 3))
        self.hopeless = self.errors.step.largest > UNSTABLE and self.verdict.verdict == "diverged"
        self._piece, self._gap = 0, self._pause()
        return self._gap

    def _pause(self) -> int:
        """Return the steps until the next measurement, uneven so that they do not synchronise with the gait."""
        count = self.errors.count
        if count < DENSE:
            return 1
        widest = min(GAP, GROW * (count - DENSE + 1))
        return max(1, round(widest * (0.5 + (count * GOLDEN) % 1.0)))

    def conclude(self, seconds: float = PATIENCE_S, max_parts: int = PARTS[0]) -> Verdict:
        """Repeat the ended run from its commands and return the verdict; the plant does not change.

        Parameters
        ----------
        seconds : float, default PATIENCE_S
            Wall time that the repetition may take, s.
        max_parts : int, default PARTS[0]
            Largest number of parts of a step.

        Returns
        -------
        Verdict
            Verdict with path and work as far as the time sufficed.
        """
        self.estimator.keep(self._end)
        steps = self.estimator.now - self._first
        commands = self.tape[self._row :][:steps]
        end = self._end if len(commands) == steps else None
        whole = not self._by_hand or self._by_hand - self._row == steps  # else put elsewhere, without a request
        self._replayed = None
        if whole and len(commands):
            self._replayed = replay(
                self.estimator, self._start, end, commands, seconds, max_parts, (MAX_PATH_ERROR, MAX_WORK_ERROR)
            )
        return self.verdict

    @property
    def settled(self) -> bool:
        """Whether there are enough measurements to warn while the run continues."""
        return self.errors.count >= MIN_MEASUREMENTS

    @property
    def verdict(self) -> Verdict:
        """Verdict on the run so far."""
        errors, result, estimator = self.errors, self._replayed, self.estimator
        step, name, partly = errors.step.largest, "fine", None
        path = work = math.nan
        doubts = [(MAX_STEP_ERROR, errors.unseen)]
        if result is not None and errors.unseen <= MAX_STEP_ERROR:  # half steps may have missed the same
            path, work = result.path, result.work
            doubts += [(MAX_PATH_ERROR, path), (MAX_WORK_ERROR, work)]
            ran = (estimator.now - self._first) * estimator.dt
            partly = result.seconds if result.seconds < 0.99 * ran else None
        if result is None or partly is not None:
            doubts.append((MAX_STEP_ERROR, step))
        over = [(bound, value) for bound, value in doubts if value > bound]
        if result is None and errors.count < 2:
            name = "unknown"
        elif (
            errors.count >= MIN_ERROR_COUNT and step > UNSTABLE and errors.unstable > MAX_UNSTABLE_SHARE
            and errors.unstable_steps >= MIN_UNSTABLE_STEPS and estimator.bounded and errors.unseen <= MAX_STEP_ERROR
        ):  # fmt: skip
            name, over = "diverged", [(MAX_STEP_ERROR, step)]
        elif over:
            name = "doubtful"
        finer = None
        if over and name != "unknown":
            share = min((0.5 * bound / value) ** (1.0 / estimator.order) for bound, value in over)
            if (
                result is not None
                and name == "doubtful"
                and (result.path > MAX_PATH_ERROR or result.work > MAX_WORK_ERROR)
            ):
                share = enough(result)
            parameter, value = estimator.finer
            finer = parameter, value * share
        place = "path" if estimator.base_moves else "joints"
        return Verdict(name, step, path, work, errors.count, finer, partly, place, result is None or result.sure)
