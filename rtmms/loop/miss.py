"""What stands in for a command that is not there: pure functions on the data of one miss, chosen by name.

A policy changes `Miss.command` in place for the actuators in `Miss.missing` and says whether the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rtmms.loop.ports import Array, Flags
    from rtmms.plant import Channel

HOME_S = 1.0
"""Simulated time in which an actuator goes home from its farther limit; without limits: 1 unit a second."""

OLDEST_S = 0.5
"""Age of a held value, in s of wall time, after which every policy but abort turns into `home`."""


class Miss:
    """What a policy sees. Made once a run; the arrays are rewritten, never replaced.

    command   (n,) in: the values held so far; out: the values to apply
    missing   (n,) bool; actuators to stand in for
    slope     (n,) change of the command over the last step that had one; kept only for `extrapolate`
    neutral, lower, upper   (n,) of the actuators; -inf, inf where there is no limit
    home_step (n,) farthest that `home` may move in one step
    """

    __slots__ = ("command", "home_step", "lower", "missing", "neutral", "previous", "scratch", "slope", "upper")

    def __init__(self, actuators: Sequence[Channel], dt: float) -> None:
        n = len(actuators)
        self.neutral: Array = np.array([channel.neutral for channel in actuators], dtype=np.float64)
        self.lower: Array = np.array([-np.inf if c.lower is None else c.lower for c in actuators], dtype=np.float64)
        self.upper: Array = np.array([np.inf if c.upper is None else c.upper for c in actuators], dtype=np.float64)
        span = np.maximum(self.upper - self.neutral, self.neutral - self.lower)
        self.home_step: Array = np.where(np.isfinite(span), span, 1.0) * (dt / HOME_S)
        self.command: Array = self.neutral.copy()
        self.missing: Flags = np.zeros(n, dtype=np.bool_)
        self.slope: Array = np.zeros(n)
        self.previous: Array = self.neutral.copy()
        self.scratch: Array = np.zeros(n)

    def remember(self) -> None:
        """After a step that had its commands: keep its change, for `extrapolate`."""
        np.subtract(self.command, self.previous, out=self.slope)
        self.previous[:] = self.command


MissPolicy = Callable[[Miss], bool]


def hold(miss: Miss) -> bool:
    """Keep the last good value."""
    return True


def home(miss: Miss) -> bool:
    """Towards neutral, at the limited rate."""
    move = miss.scratch
    np.subtract(miss.neutral, miss.command, out=move)
    np.minimum(move, miss.home_step, out=move)
    np.maximum(move, -miss.home_step, out=move)
    np.add(miss.command, move, out=miss.command, where=miss.missing)
    return True


def extrapolate(miss: Miss) -> bool:
    """Go on with the last change a step, within the limits."""
    np.add(miss.command, miss.slope, out=miss.command, where=miss.missing)
    np.minimum(miss.command, miss.upper, out=miss.command)
    np.maximum(miss.command, miss.lower, out=miss.command)
    miss.previous[:] = miss.command  # so that the first good command after it is not read as one great change
    return True


def abort(miss: Miss) -> bool:
    """End the run."""
    return False


MISS_POLICIES: dict[str, MissPolicy] = {"hold": hold, "extrapolate": extrapolate, "home": home, "abort": abort}
