"""What the schedule does when a step ended after its period: pure functions on how far behind it is."""

from __future__ import annotations

import math
from collections.abc import Callable

OverrunPolicy = Callable[[float, int], float]
"""(periods the next step is overdue, > 0; most steps to catch up) -> periods to drop; infinity ends the run."""


def skip(behind: float, catchup: int) -> float:
    """Drop whole periods, so that the next step starts on the old phase; simulated time does not advance for them."""
    return math.ceil(behind)


def slip(behind: float, catchup: int) -> float:
    """Start the next step now: the schedule moves by what was lost."""
    return behind


def catch_up(behind: float, catchup: int) -> float:
    """Drop nothing while at most `catchup` steps are owed (run back to back), else the whole periods beyond."""
    return max(0, math.ceil(behind) - catchup)


def abort(behind: float, catchup: int) -> float:
    """End the run."""
    return math.inf


OVERRUN_POLICIES: dict[str, OverrunPolicy] = {"skip": skip, "slip": slip, "catchup": catch_up, "abort": abort}
