"""What stands in for a command that is not there: pure functions on the data of one miss, chosen by name.

A policy changes `Miss.command` in place for the actuators in `Miss.missing` and says whether the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rtmms.loop.kernels import memory as at
from rtmms.loop.kernels.stand_in import go_home, go_on, remember

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.loop.ports import Array, Flags
    from rtmms.plant import Channel

HOME_S = 1.0
"""Simulated time in which an actuator goes home from its farther limit; without limits: 1 unit a second."""

OLDEST_S = 0.5
"""Age of a held value, in s of wall time, after which every policy but abort turns into `home`."""


class Miss:
    """What a policy sees. Made once a run; the arrays are rewritten, never replaced, and lie in one piece of memory
    each kind, see rtmms.loop.kernels.memory.

    command   (n,) in: the values held so far; out: the values to apply
    missing   (n,) bool; actuators to stand in for
    slope     (n,) change of the command over the last step that had one; kept only for `extrapolate`
    neutral, lower, upper   (n,) of the actuators; -inf, inf where there is no limit
    home_step (n,) farthest that `home` may move in one step
    """

    __slots__ = (
        "command", "flags", "home_step", "instants", "lower", "missing", "neutral", "numbers", "previous", "slope",
        "upper", "words",
    )  # fmt: skip

    def __init__(self, actuators: Sequence[Channel], dt: float) -> None:
        n = len(actuators)
        self.numbers: Array = np.zeros((at.NUMBERS, n))
        self.instants: npt.NDArray[np.int64] = np.zeros((at.INSTANTS, n), dtype=np.int64)
        self.flags: npt.NDArray[np.uint8] = np.zeros((at.FLAGS, n), dtype=np.uint8)
        self.words: npt.NDArray[np.int64] = np.zeros(at.WORDS, dtype=np.int64)
        self.command, self.slope, self.neutral, self.previous, self.lower, self.upper, self.home_step = self.numbers
        self.missing: Flags = self.flags[at.MISSING].view(np.bool_)
        self.neutral[:] = [channel.neutral for channel in actuators]
        self.lower[:] = [-np.inf if c.lower is None else c.lower for c in actuators]
        self.upper[:] = [np.inf if c.upper is None else c.upper for c in actuators]
        span = np.maximum(self.upper - self.neutral, self.neutral - self.lower)
        self.home_step[:] = np.where(np.isfinite(span), span, 1.0) * (dt / HOME_S)
        self.command[:] = self.previous[:] = self.neutral

    def remember(self) -> None:
        """After a step that had its commands: keep its change, for `extrapolate`."""
        remember(self.numbers)


MissPolicy = Callable[[Miss], bool]


def hold(miss: Miss) -> bool:
    """Keep the last good value."""
    return True


def home(miss: Miss) -> bool:
    """Towards neutral, at the limited rate."""
    go_home(miss.numbers, miss.flags[at.MISSING], 1)
    return True


def extrapolate(miss: Miss) -> bool:
    """Go on with the last change a step, within the limits."""
    go_on(miss.numbers, miss.flags[at.MISSING])
    return True


def abort(miss: Miss) -> bool:
    """End the run."""
    return False


MISS_POLICIES: dict[str, MissPolicy] = {"hold": hold, "extrapolate": extrapolate, "home": home, "abort": abort}
CODES: dict[str, int] = {"hold": at.HOLD, "extrapolate": at.EXTRAPOLATE, "home": at.HOME, "abort": at.ABORT}
NAMES = ("", *CODES)
"""What compiled code calls them, and back."""
