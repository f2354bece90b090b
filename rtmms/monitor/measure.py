"""What one doubled step tells, and what many of them come to.

A step of dt from a state, and two of dt / 2 from the same state under the same command, end apart by d; the local error
of the step is d / (1 - 2^-p) for a method of order p. Two things are made of it:

step    the size of d against the size of what changes within a step: does the step resolve the motion at all?
path    how far off d puts the robot. The mean of d acts as a force that is not there: a velocity that grows by a each
        second and that the water damps within tau: after T it has led tau (T - tau (1 - e^{-T / tau})) a astray.
        tau is seen from how a small perturbation of the velocity fades. The attitude drifts in the same manner, which
        turns the way: off by a share LED_ASTRAY of that angle times how far the robot came from its start.

A mean of few may be small by chance, so its standard error counts with it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rtmms.plant import HasPrescribedJoints, Kept, Twin
from rtmms.spatial import Array

STILL_M_S2 = 1e-6
"""m/s2: what changes less than this counts as at rest."""
SHORTEST = 0.1
"""Of `Twin.length`: a way that is shorter counts as that long."""
LED_ASTRAY = 1.0 / 6.0
"""Of an attitude's error at the end, what it has turned the way by: a third where it grew with the square of time about
an axis across the way, and half of that, as axes are any and ways bend; chosen on the grid of `rtmms bench guards`."""
PROBE = 1e-4


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
    """Differences of kept states, in memory of their own: twist (6,), turns times `length`; joints; way (3,), world;
    turn (3,) rad, body, as far as it was asked for."""

    def __init__(self, twin: Twin) -> None:
        self.twist, self.joints = np.zeros(6), np.zeros(twin.state.joints.shape)
        self.way, self.turn = np.zeros(3), np.zeros(3)
        self._length = twin.length

    def between(self, a: Kept, b: Kept) -> None:
        """b - a."""
        np.subtract(b.twist, a.twist, out=self.twist)
        self.twist[3:] *= self._length
        np.subtract(b.joints, a.joints, out=self.joints)
        np.subtract(b.position, a.position, out=self.way)

    def squares(self) -> tuple[float, float]:
        """Of the twist and of the joints."""
        twist, joints = self.twist, self.joints.ravel()
        return float(twist @ twist), float(joints @ joints)


def turned(quaternion: Array, vector: Array) -> tuple[float, float, float]:
    """A body's vector (3,) in the world: plain numbers, which cost less here than arrays of three."""
    w, x, y, z = quaternion.tolist()
    a, b, c = vector.tolist()
    p, q, r = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)  # v' = v + w t + u x t, t = 2 u x v
    return a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p


def swung(a: Array, b: Array, out: Array) -> None:
    """out (3,) rad, body: the small turn from quaternion a to b."""
    w, x, y, z = a.tolist()
    p, q, r, s = b.tolist()
    out[0] = 2.0 * (w * q - x * p - y * s + z * r)
    out[1] = 2.0 * (w * r + x * s - y * p - z * q)
    out[2] = 2.0 * (w * s - x * r + y * q - z * p)


class Mean:
    """A weighted mean of vectors of three, and how far chance may have put it off."""

    def __init__(self) -> None:
        self.sum, self.square, self.weight, self.weights2 = (0.0, 0.0, 0.0), 0.0, 0.0, 0.0

    def add(self, vector: tuple[float, float, float], weight: float) -> None:
        (a, b, c), (x, y, z) = self.sum, vector
        self.sum = a + weight * x, b + weight * y, c + weight * z
        self.square += weight * (x * x + y * y + z * z)
        self.weight += weight
        self.weights2 += weight * weight

    @property
    def size(self) -> float:
        """Of the mean and its standard error together: sqrt(mean^2 + s^2 / n)."""
        if not self.weight:
            return 0.0
        mean = math.hypot(*self.sum) / self.weight
        mean2 = mean * mean  # infinite where ** would raise
        share = min(self.weights2 / self.weight**2, 0.5)  # 1 / n for equal weights
        return math.sqrt(mean2 + max(0.0, self.square / self.weight - mean2) * share / (1.0 - share))


class Errors:
    """What the doubled steps of a run come to.

    count   of them;  sharpen  1 / (1 - 2^-p), p the method's order
    """

    def __init__(self, twin: Twin) -> None:
        self.twin, self.sharpen = twin, 1.0 / (1.0 - 0.5**twin.order)
        self._apart, self._change = Vectors(twin), Vectors(twin)
        self._given = twin if isinstance(twin, HasPrescribedJoints) else None
        self.clear()

    def clear(self) -> None:
        """Back to nothing."""
        self.count = 0
        self._twist, self._joints = [0.0, 0.0], [0.0, 0.0]
        self._push, self._shift, self._work, self._spin, self._swing = Mean(), Mean(), Mean(), Mean(), Mean()
        self._way = self._weight = self._done = self._moved = 0.0
        self._fading, self._faded = 0.0, 0
        self._gone, self._farthest = (0.0, 0.0, 0.0), 0.0

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
            apart.twist[:], apart.way[:], apart.turn[:] = change.twist, change.way, 0.0
        else:
            swung(halves.quaternion, end.quaternion, apart.turn)
            if self._given is not None:
                bent += self._given.unseen(begin, end) / self.sharpen**2
        self.count += 1
        self._weight += weight
        self._twist[0] += weight * off
        self._twist[1] += weight * twist
        self._joints[0] += weight * bent
        self._joints[1] += weight * joints
        self._push.add(turned(end.quaternion, apart.twist[:3]), weight)
        self._spin.add(turned(end.quaternion, apart.twist[3:]), weight)
        self._swing.add(turned(end.quaternion, apart.turn), weight)
        x, y, z = apart.way.tolist()
        self._shift.add((x, y, z), weight)
        u, v, w = change.way.tolist()
        self._way += weight * math.hypot(u, v, w)
        x, y, z = self._gone
        self._gone = x + weight * u, y + weight * v, z + weight * w
        self._farthest = max(self._farthest, math.hypot(*self._gone))
        if end.work is not None and halves.work is not None and begin.work is not None and sound:
            done = float(halves.work[0] - begin.work[0])
            self._work.add((float(end.work[0] - halves.work[0]), 0.0, 0.0), weight)
            self._done += weight * done
            self._moved += weight * abs(done)
        return StepError(math.sqrt(off / twist), math.sqrt(bent / joints))

    def fade(self, before: float, after: float) -> None:
        """A perturbation of the velocity was `before` m/s, and a step later `after` along itself."""
        if before > 0.0 and math.isfinite(after):
            self._fading += 1.0 - min(after / before, 1.0)
            self._faded += 1

    @property
    def memory(self) -> float:
        """s, within which the water forgets an error of the velocity; inf where it does not."""
        fading = self._fading / self._faded if self._faded else 0.0
        return self.twin.dt / fading if fading > 0.0 else math.inf

    @property
    def step(self) -> StepError:
        """Root mean squares over those of the changes, sharpened."""
        ratios = [math.sqrt(a / b) if b > 0.0 else 0.0 for a, b in (self._twist, self._joints)]
        return StepError(*(self.sharpen * ratio for ratio in ratios))

    def path(self) -> float:
        """Of the way travelled so far, a fraction: how far off its end is thought to be."""
        time = self._weight * self.twin.dt
        if not self.twin.base_moves or time <= 0.0:
            return 0.0
        dt, tau = self.twin.dt, self.memory
        x = time / tau
        grown = 0.5 * time * time if x < 1e-3 else tau * (time - tau * -math.expm1(-x))
        off = self.sharpen * (self._push.size / dt * grown + self._shift.size / dt * time)
        turn = self.sharpen * (self._spin.size / self.twin.length / dt * grown + self._swing.size / dt * time)
        steps = time / dt / self._weight
        off += LED_ASTRAY * min(turn, 2.0) * self._farthest * steps
        return off / max(self._way * steps, SHORTEST * self.twin.length)

    @property
    def work(self) -> float:
        """Of the work done, a fraction that is not there."""
        done = max(abs(self._done), 0.02 * self._moved) / self._weight if self._weight else 0.0
        return self.sharpen * self._work.size / done if done > 0.0 else 0.0


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
