"""The monitor of a run: steps taken again in two halves, and what many of them come to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rtmms.base.spatial import Array
from rtmms.plant.protocol import HasPrescribedJoints, SavedState, StepErrorEstimator
from rtmms.plant.replay import PARTS, Replayed, replay

# The error that one doubled step shows, and the sum of many of them.
#
# A step of dt from a state, and two of dt / 2 from the same state under the same command, end apart by d; the local
# error
# of the step is d / (1 - 2^-p) for a method of order p. Its size against that of what changes within a step shows
# whether
# the step resolves the motion at all. Where errors lead the robot to is not to be seen in single steps: see replay.py.


UNSTABLE = 0.25
"""A step's error beyond which it is none of a method within its range."""
STILL_M_S2 = 1e-6
"""m/s2: what changes less than this counts as at rest."""


class StepError(NamedTuple):
    """Fractions of what changes within a step, of the velocity and of the joints.

    Turns count by `StepErrorEstimator.length`.

    0.01 is 1 %; 1 where the half steps failed. Multiplied by 1 / (1 - 2^-p): the error of the step itself.
    """

    velocity: float
    joints: float

    @property
    def largest(self) -> float:
        return max(self)


class Vectors:
    """Differences of kept states, in memory of their own: twist (6,), turns times `length`; joints."""

    def __init__(self, estimator: StepErrorEstimator) -> None:
        self.twist, self.joints = np.zeros(6), np.zeros(estimator.state.joints.shape)
        self._length = estimator.length

    def between(self, a: SavedState, b: SavedState) -> None:
        """b - a."""
        np.subtract(b.twist, a.twist, out=self.twist)
        self.twist[3:] *= self._length
        np.subtract(b.joints, a.joints, out=self.joints)

    def squares(self) -> tuple[float, float]:
        """Of the twist and of the joints."""
        twist, joints = self.twist, self.joints.ravel()
        return float(twist @ twist), float(joints @ joints)


class Errors:
    """What the doubled steps of a run come to.

    count   of them;  sharpen  1 / (1 - 2^-p), p the method's order;  unstable_steps  with an error beyond UNSTABLE
    """

    def __init__(self, estimator: StepErrorEstimator) -> None:
        self.estimator, self.sharpen = estimator, 1.0 / (1.0 - 0.5**estimator.order)
        self._apart, self._change = Vectors(estimator), Vectors(estimator)
        self._given = estimator if isinstance(estimator, HasPrescribedJoints) else None
        self.clear()

    def clear(self) -> None:
        """Back to nothing."""
        self.count = 0
        self._twist, self._joints, self._unseen = [0.0, 0.0], [0.0, 0.0], 0.0
        self._weights, self._unstable, self.unstable_steps = 0.0, 0.0, 0

    def add(self, begin: SavedState, end: SavedState, halves: SavedState, sound: bool, weight: float) -> StepError:
        """One doubled step: where both began, where the plant went, where the half steps went if they were
        sound. It stands for `weight` steps. What the stages did not see of a given motion counts as an error of the
        joints, though they stand right at the end: bodies and work have missed it, and half steps may have too."""
        apart, change, dt = self._apart, self._change, self.estimator.dt
        change.between(begin, end)
        twist, joints = change.squares()
        apart.between(halves, end)
        off, bent = apart.squares()
        floor = (STILL_M_S2 * dt) ** 2
        twist, joints = max(twist, floor), max(joints, floor * dt * dt)
        if not math.isfinite(twist + joints):
            return StepError(1.0, 1.0)  # the plant itself is about to leave the numbers, and will report it
        if not (sound and math.isfinite(off + bent)):
            off, bent = twist, joints
        elif self._given is not None:
            unseen = self._given.unseen(begin, end)
            self._unseen += weight * unseen
            bent += unseen / self.sharpen**2
        self.count += 1
        self._twist[0] += weight * off
        self._twist[1] += weight * twist
        self._joints[0] += weight * bent
        self._joints[1] += weight * joints
        found = StepError(math.sqrt(off / twist), math.sqrt(bent / joints))
        self._weights += weight
        if self.sharpen * found.largest > UNSTABLE:
            self._unstable += weight
            self.unstable_steps += 1
        return found

    @property
    def step(self) -> StepError:
        """Root mean squares over those of the changes, sharpened."""
        ratios = [math.sqrt(a / b) if b > 0.0 else 0.0 for a, b in (self._twist, self._joints)]
        return StepError(*(min(self.sharpen * ratio, 1.0) for ratio in ratios))

    @property
    def unstable(self) -> float:
        """Share of the steps whose error is beyond UNSTABLE. An impact is in few steps, an instability in many."""
        return self._unstable / self._weights if self._weights > 0.0 else 0.0

    @property
    def unseen(self) -> float:
        """Of a given motion, root mean square, as a fraction of how far the joints went: what no stage saw."""
        return math.sqrt(self._unseen / self._joints[1]) if self._joints[1] > 0.0 else 0.0


def step_error(estimator: StepErrorEstimator, command: Array) -> StepError:
    """Of one step from the plant's present state with a command held; the plant stays as it is."""
    errors, begin, end = Errors(estimator), estimator.room(), estimator.room()
    estimator.keep(begin)
    estimator.start(begin, halves=False)
    sound = estimator.step(command, halves=False)
    end.all[:] = estimator.state.all
    estimator.start(begin, halves=True)
    sound = sound and estimator.step(command, halves=True) and estimator.step(command, halves=True)
    found = errors.add(begin, end, estimator.state, sound, 1.0)
    return StepError(*(errors.sharpen * part if sound else 1.0 for part in found))


# The monitor of a run: on some of its steps, in pieces between steps, it takes the step again in two halves; at the
# end of the run it takes the run again, from its commands.
#
# Before the first step and after others it is asked to `look`, and returns when the next look is due. A look costs
# about one step of the plant. Looks of one measurement, at the ends of successive steps:
#
# 0  the state is kept: the step to come begins there
# 1  the step's end and command are kept; its first half is taken
# 2  the step's second half; what lies between the ends is counted
#
# Steps alone show, while the run goes, whether it has left the range of its method. What they lead to is measured when
# it
# has ended (`conclude`): whoever steps the plant writes the commands into `tape`.
#
# The verdict: fine; doubtful, where the path is off by more than 1 % of itself, the work by more than 5 %, or joints
# that
# are given their motion go a tenth of it unseen; diverged, where many steps are off by a quarter of what changes within
# them, and by a method that is stable up to a bound only: it has left its range. Before the run has ended, or beyond
# what
# there was time to take again, steps that are off by more than a tenth are doubted.


DENSE = 12
"""Measurements one after the other at the start; then the gap grows by GROW steps each time, up to GAP."""
GROW, GAP = 4, 145
ENOUGH = 45
"""Measurements before steps alone are doubted while the run goes."""
SOME = 20
"""Before it is stopped."""
GOLDEN = 0.6180339887498949
PATH, WORK, STEP = 0.01, 0.05, 0.1
"""What is doubted."""
BOUNDS = {"path": PATH, "work": WORK}
MANY, AFEW = 0.05, 4
"""Share and number of unstable steps from which on a run is stopped, by a method that is stable up to a bound only. In
the grid of guards instabilities made 26 % or more of the steps unstable, an impact one step, 0.8 % of them."""
PATIENCE_S = 2.0
"""Wall time for taking a run again, unless more is given."""
TAPE_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the monitor thinks of a run.

    verdict     'fine', 'doubtful', 'diverged', or 'unknown' while there is too little to judge by
    step, path, work   fractions, see rtmms.plant.monitor and replay; path and work nan where they were not measured
    measured    doubled steps
    finer       the parameter that would shorten the step, and the longest that would do, s; None where all is fine
    seconds     simulated, of the beginning that path and work are of; None: all of the run
    place       what `path` is of
    sure        path and work are upper bounds, see rtmms.plant.replay.Replayed
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
        """For a person, where there is doubt; else ''."""
        if self.verdict == "unknown":
            return "accuracy: unknown: there were too few steps, or no time between them, to measure it"
        if self.finer is None:
            return ""
        name, value = self.finer
        return f"accuracy: {self.worst}: use {name} <= {value:.2g} s"

    @property
    def worst(self) -> str:
        """One number: what is wrong most, measured by what is doubted."""
        if self.verdict == "diverged":
            return f"the steps are off by {_percent(self.step)}, as the method's own instability does it"
        over = "" if self.seconds is None else f" over the first {self.seconds:.3g} s"
        causes = []
        if math.isfinite(self.path):
            what = "path is off by" if self.place == "path" else "joints are off by"
            whose = "its length" if self.place == "path" else "their way"
            causes = [(self.path / PATH, f"the {what} {_most(self.path, self.sure)} of {whose}{over}"),
                    (self.work / WORK, f"the work is off by {_most(self.work, self.sure)}{over}")]  # fmt: skip
        if not causes or (self.verdict == "doubtful" and max(causes)[0] <= 1.0):
            causes = [(0.0, f"the steps are off by {_percent(self.step)} of what changes within them")]
        return max(causes)[1]


def _most(fraction: float, sure: bool) -> str:
    return f"{'at most' if sure else 'about'} {_percent(fraction)}" if fraction <= 1.0 else _percent(fraction)


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.2g} %" if fraction < 0.995 else "100 %" if fraction <= 1.0 else "more than 100 %"


def enough(found: Replayed) -> float:
    """The share of its steps in which a run would be off by half of what is doubted: between those that were tried, and
    beyond the shortest by first order."""
    tried = [(n, max(path / PATH, work / WORK)) for n, path, work in ((1, found.path, found.work), *found.shorter)]
    for (n, off), (m, less) in pairwise(tried):
        if less <= 0.5:
            return float((n / m) ** (math.log(2.0 * off) / math.log(off / less)) / n) if off > less else 1.0 / m
    n, off = tried[-1]
    return 0.5 / (n * off)


class Monitor:
    """Of a plant that stands where its run begins.

    tape        (rows, n) commands of the first steps: row k is of step k, written by whoever steps the plant
    longest_ns  a look has taken about that: it falls slowly, so that one long look does not end the looking
    hopeless    the run has diverged, though its numbers are finite
    """

    def __init__(self, estimator: StepErrorEstimator, tape: Array | None = None) -> None:
        self.estimator, self.errors = estimator, Errors(estimator)
        self.tape = np.zeros((0, 0)) if tape is None else tape
        self._begin, self._end, self._start = estimator.room(), estimator.room(), estimator.room()
        self._command, self._at = np.zeros(0), 0
        self.longest_ns = 0
        self.clear()

    def clear(self) -> None:
        """The plant was reset."""
        self.errors.clear()
        self._piece, self._sound, self._gap, self._due, self._by_hand = 0, True, 1, 0, 0
        self.hopeless, self._begun = False, False
        self._begin_here(0)

    def _begin_here(self, row: int) -> None:
        """What is taken again begins at the present state, with this row of the tape."""
        self._replayed: Replayed | None = None
        self._first, self._row = self.estimator.now, row
        self.estimator.keep(self._start)

    def forget(self, step: int | None = None) -> None:
        """The state or a parameter was changed from outside before this step (None: the next, of steps by hand): the
        measurement under way is none, and what is taken again begins here."""
        self._piece, self._begun = 0, True
        self._begin_here(self._by_hand if step is None else step)

    def took(self, ns: int) -> None:
        """A look took so long."""
        self.longest_ns = max(ns, self.longest_ns - self.longest_ns // 16)

    def after(self, command: Array) -> None:
        """A step was taken with `command`: for whoever steps the plant by hand, in place of `look` and `tape`."""
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
        """The next piece, after a step with `command`. Returns after how many steps it wants to be asked again."""
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
        """Steps until the next measurement: uneven, so that it keeps no time with the gait."""
        count = self.errors.count
        if count < DENSE:
            return 1
        widest = min(GAP, GROW * (count - DENSE + 1))
        return max(1, round(widest * (0.5 + (count * GOLDEN) % 1.0)))

    def conclude(self, seconds: float = PATIENCE_S, most: int = PARTS[0]) -> Verdict:
        """The run has ended: take it again from its commands, as far as so many seconds of wall time reach, in at most
        so many parts of a step, and judge. The plant stays as it is."""
        self.estimator.keep(self._end)
        steps = self.estimator.now - self._first
        commands = self.tape[self._row :][:steps]
        end = self._end if len(commands) == steps else None
        whole = not self._by_hand or self._by_hand - self._row == steps  # else put elsewhere, without a request
        self._replayed = None
        if whole and len(commands):
            self._replayed = replay(self.estimator, self._start, end, commands, seconds, most, (PATH, WORK))
        return self.verdict

    @property
    def settled(self) -> bool:
        """Enough was measured to speak up while the run goes on."""
        return self.errors.count >= ENOUGH

    @property
    def verdict(self) -> Verdict:
        """Of the run so far."""
        errors, found, estimator = self.errors, self._replayed, self.estimator
        step, name, partly = errors.step.largest, "fine", None
        path = work = math.nan
        doubts = [(STEP, errors.unseen)]
        if found is not None and errors.unseen <= STEP:  # half steps may have missed the same
            path, work = found.path, found.work
            doubts += [(PATH, path), (WORK, work)]
            ran = (estimator.now - self._first) * estimator.dt
            partly = found.seconds if found.seconds < 0.99 * ran else None
        if found is None or partly is not None:
            doubts.append((STEP, step))
        over = [(bound, value) for bound, value in doubts if value > bound]
        if found is None and errors.count < 2:
            name = "unknown"
        elif (
            errors.count >= SOME and step > UNSTABLE and errors.unstable > MANY and errors.unstable_steps >= AFEW
            and estimator.bounded and errors.unseen <= STEP
        ):  # fmt: skip
            name, over = "diverged", [(STEP, step)]
        elif over:
            name = "doubtful"
        finer = None
        if over and name != "unknown":
            share = min((0.5 * bound / value) ** (1.0 / estimator.order) for bound, value in over)
            if found is not None and name == "doubtful" and (found.path > PATH or found.work > WORK):
                share = enough(found)
            parameter, value = estimator.finer
            finer = parameter, value * share
        place = "path" if estimator.base_moves else "joints"
        return Verdict(name, step, path, work, errors.count, finer, partly, place, found is None or found.sure)
