"""What one doubled step tells, and what many of them come to.

A step of dt from a state, and two of dt / 2 from the same state under the same command, end apart by d; the local error
of the step is d / (1 - 2^-p) for a method of order p. Its size against that of what changes within a step says whether
the step resolves the motion at all. Where errors lead the robot to is not to be seen in single steps: see replay.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rtmms.plant import HasPrescribedJoints, Kept, Twin
from rtmms.spatial import Array

UNSTABLE = 0.25
"""A step's error beyond which it is none of a method within its range."""
STILL_M_S2 = 1e-6
"""m/s2: what changes less than this counts as at rest."""


class StepError(NamedTuple):
    """Fractions: of what changes within a step, of the velocity (turns counted by `Twin.length`) and of the joints.

    0.01 is 1 %; 1 where the half steps failed. Multiplied by 1 / (1 - 2^-p): the error of the step itself.
    """

    velocity: float
    joints: float

    @property
    def largest(self) -> float:
        return max(self)


class Vectors:
    """Differences of kept states, in memory of their own: twist (6,), turns times `length`; joints."""

    def __init__(self, twin: Twin) -> None:
        self.twist, self.joints = np.zeros(6), np.zeros(twin.state.joints.shape)
        self._length = twin.length

    def between(self, a: Kept, b: Kept) -> None:
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

    def __init__(self, twin: Twin) -> None:
        self.twin, self.sharpen = twin, 1.0 / (1.0 - 0.5**twin.order)
        self._apart, self._change = Vectors(twin), Vectors(twin)
        self._given = twin if isinstance(twin, HasPrescribedJoints) else None
        self.clear()

    def clear(self) -> None:
        """Back to nothing."""
        self.count = 0
        self._twist, self._joints, self._unseen = [0.0, 0.0], [0.0, 0.0], 0.0
        self._weights, self._unstable, self.unstable_steps = 0.0, 0.0, 0

    def add(self, begin: Kept, end: Kept, halves: Kept, sound: bool, weight: float) -> StepError:
        """One doubled step: where both began, where the plant went, where the half steps went if they were
        sound. It stands for `weight` steps. What the stages did not see of a given motion counts as an error of the
        joints, though they stand right at the end: bodies and work have missed it, and half steps may have too."""
        apart, change, dt = self._apart, self._change, self.twin.dt
        change.between(begin, end)
        twist, joints = change.squares()
        apart.between(halves, end)
        off, bent = apart.squares()
        floor = (STILL_M_S2 * dt) ** 2
        twist, joints = max(twist, floor), max(joints, floor * dt * dt)
        if not math.isfinite(twist + joints):
            return StepError(1.0, 1.0)  # the plant itself is about to leave the numbers, and will say so
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


def step_error(twin: Twin, command: Array) -> StepError:
    """Of one step from the plant's present state with a command held; the plant stays as it is."""
    errors, begin, end = Errors(twin), twin.room(), twin.room()
    twin.keep(begin)
    twin.start(begin, halves=False)
    sound = twin.step(command, halves=False)
    end.all[:] = twin.state.all
    twin.start(begin, halves=True)
    sound = sound and twin.step(command, halves=True) and twin.step(command, halves=True)
    found = errors.add(begin, end, twin.state, sound, 1.0)
    return StepError(*(errors.sharpen * part if sound else 1.0 for part in found))
