"""Policies of a run as data, and the governor that changes the fidelity level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import MAX_COUNT, MISS_WORDS, OVERRUN_WORDS, OverrunPolicy
from rtmms.base.errors import ModelError, UnknownNameError

if TYPE_CHECKING:
    from rtmms.plant.protocol import Levelled


# The policies of a run as data: chosen by name, with their limits.


@dataclass(slots=True)
class Counts:
    """What counts against the limits: bad steps after the grace; the rows of them end with a good step."""

    misses: int = 0
    misses_in_a_row: int = 0
    overruns: int = 0
    overruns_in_a_row: int = 0
    stale: int = 0


@dataclass(slots=True)
class Grace:
    """The time from the start of a run in which neither limits nor `abort` act."""

    length_ns: int
    until_ns: int = 0

    def start(self, instant_ns: int) -> None:
        """The run counts from there."""
        self.until_ns = instant_ns + self.length_ns


@dataclass(frozen=True, slots=True)
class Share:
    """Share of the steps of a run, from 0 to 1."""

    value: float

    def __str__(self) -> str:
        return f"{100 * self.value:.6g} %"


def parse_limit(text: str) -> int | Share:
    """Return the limit that a text states: a count of steps 'N', or a share of them 'P%'. Raises ModelError."""
    number, percent, rest = text.strip().partition("%")
    with suppress(ValueError):
        if percent and not rest and 0.0 <= (share := float(number)) <= 100.0:
            return Share(share / 100.0)
        if not percent and 0 <= (count := int(number)) <= MAX_COUNT:
            return count
    raise ModelError(f"expected a count from 0 to {MAX_COUNT}, or a share from 0% to 100% such as 0.1%, got '{text}'")


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a run may have of each; None: any number. A share is judged at the end of the run."""

    misses: int | Share | None = None
    misses_in_a_row: int | None = None
    overruns: int | Share | None = None
    overruns_in_a_row: int | None = None
    stale: int | Share | None = None

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return any(getattr(self, name) is not None for name in WORDS)


NO_LIMITS = Limits()
WORDS = {
    "misses": ("misses", "--max-misses"),
    "misses_in_a_row": ("misses in a row", "--max-consecutive-misses"),
    "overruns": ("overruns", "--max-overruns"),
    "overruns_in_a_row": ("overruns in a row", "--max-consecutive-overruns"),
    "stale": ("stale steps", "--max-stale"),
}
"""Of each limit: what it counts, and the option that sets it."""


def add(counts: Counts, missed: bool, overran: bool, stale: bool = False) -> None:
    """One step more; in place."""
    counts.stale += stale
    counts.misses += missed
    counts.misses_in_a_row = counts.misses_in_a_row + 1 if missed else 0
    counts.overruns += overran
    counts.overruns_in_a_row = counts.overruns_in_a_row + 1 if overran else 0


def exceeded(limits: Limits, counts: Counts) -> str:
    """Which limit is exceeded, as a sentence; '' while none is."""
    for name, (what, option) in WORDS.items():
        most, count = getattr(limits, name), getattr(counts, name)
        if isinstance(most, int) and count > most:
            return f"{count} {what}, {most} allowed ({option})"
    return ""


def exceeded_share(limits: Limits, counts: Counts, steps: int) -> str:
    """Which share is exceeded at the end of a run of so many steps, as a sentence; '' for none."""
    for name, (what, option) in WORDS.items():
        most, count = getattr(limits, name), getattr(counts, name)
        if isinstance(most, Share) and count > most.value * steps:
            return f"{count} {what} of {steps} steps ({Share(count / steps)}), {most} allowed ({option})"
    return ""


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


OVERRUN_POLICIES: Mapping[OverrunPolicy, Callable[[float, int], float]] = {
    OverrunPolicy.SKIP: skip, OverrunPolicy.SLIP: slip, OverrunPolicy.CATCHUP: catch_up, OverrunPolicy.ABORT: abort,
}  # fmt: skip
"""(periods the next step is overdue, > 0; most steps to catch up) -> periods to drop; infinity ends the run."""

HOLD_TIMEOUT_S = 0.5
"""Age of a held value, in s of wall time, after which every policy but abort turns into `home`."""


@dataclass(frozen=True, slots=True)
class Policies:
    """What a run does about a missing command and about a step that took too long.

    miss      a word of MissPolicy
    overrun   a word of OverrunPolicy
    hold_timeout_s  age of a held value after which `home` stands in, whatever `miss` is (abort excepted)
    catchup   most steps that `catchup` may owe
    limits    most misses, overruns and stale steps, in all and in a row
    grace_s   time from the start in which neither limits nor `abort` act: `hold` and `skip` stand in for it
    Raises UnknownNameError with the near misses, or ModelError.
    """

    miss: str = "hold"
    overrun: str = "skip"
    hold_timeout_s: float = HOLD_TIMEOUT_S
    catchup: int = 5
    limits: Limits = NO_LIMITS
    grace_s: float = 0.0

    def __post_init__(self) -> None:
        if self.miss not in MISS_WORDS[1:]:
            raise UnknownNameError("miss policy", self.miss, MISS_WORDS[1:])
        if self.overrun not in OVERRUN_WORDS:
            raise UnknownNameError("overrun policy", self.overrun, OVERRUN_WORDS)
        if not self.hold_timeout_s > 0:
            raise ModelError(f"policies: hold_timeout_s must be > 0 s, got {self.hold_timeout_s:g}")
        if self.catchup < 1:
            raise ModelError(f"policies: catchup must be at least 1 step, got {self.catchup}")
        if not 0 <= self.grace_s < math.inf:
            raise ModelError(f"policies: grace_s must be >= 0 s, got {self.grace_s:g}")
        for name in WORDS:
            most = getattr(self.limits, name)
            if isinstance(most, int) and most < 0:
                raise ModelError(f"policies: limits.{name} must be >= 0, got {most}")


# When a plant changes to a cheaper variant of itself, and when back: from how full the periods are.


@dataclass(frozen=True)
class Thresholds:
    """Shares of a period, and times.

    down     a step that fills more than this of its period counts 1, one that overran 2, and each other step takes
             `leak` away: at `most` the plant goes a level down. So one stall of the machine changes nothing
    up       back where the steps of `calm_s` would have filled less than this with the next better level, but for a
             share of `spared`
    rest     so many steps after a change are not judged
    """

    down: float = 0.85
    leak: float = 0.05
    most: float = 3.0
    up: float = 0.6
    calm_s: float = 1.0
    spared: float = 0.005
    rest: int = 10


class Governor:
    """Looks at each step's time, and returns which level is next. It allocates nothing in a step.

    plant        that steps, with its `costs` (rtmms.plant.protocol.Levelled)
    changes      (step, level) of each change, the first MOST of them;  steps  at each level
    """

    MOST = 1000

    def __init__(self, plant: Levelled, period_ns: float, thresholds: Thresholds | None = None) -> None:
        self._plant, self._period_ns = plant, period_ns
        one = thresholds or Thresholds()
        self._one = one
        self._down_ns = one.down * period_ns
        self._calm_steps = max(1, round(one.calm_s * 1e9 / period_ns))
        self._spared = int(one.spared * self._calm_steps)
        self.steps = [0] * len(plant.costs)
        self.changes: list[tuple[int, int]] = []
        self.clear()

    @property
    def level(self) -> int:
        """That steps now."""
        return self._plant.level

    def clear(self) -> None:
        """The plant was reset."""
        self._pressure = 0.0
        self._calm = self._over = 0
        self._rest = self._one.rest

    def look(self, busy_ns: int, plant_ns: int) -> int:
        """A step took so long, from its instant to its end, plant_ns of it in the plant's step; the level that is to
        step from now on."""
        level = self._plant.level
        self.steps[level] += 1
        if self._rest:
            self._rest -= 1
            return level
        if busy_ns > self._down_ns:
            self._pressure += 2.0 if busy_ns > self._period_ns else 1.0
            if self._pressure >= self._one.most and level + 1 < len(self.steps):
                return level + 1
        elif self._pressure:
            self._pressure = max(0.0, self._pressure - self._one.leak)
        if level:
            costs = self._plant.costs
            more_ns = plant_ns * (costs[level - 1] / costs[level] - 1.0)
            self._calm += 1
            self._over += busy_ns + more_ns >= self._one.up * self._period_ns
            if self._over > self._spared:
                self._calm = self._over = 0
            elif self._calm >= self._calm_steps:
                return level - 1
        return level

    def changed(self, step: int, level: int) -> None:
        """From that step on."""
        if len(self.changes) < self.MOST:
            self.changes.append((step, level))
        self.clear()

    def report(self) -> dict[str, Any]:
        return {"steps": list(self.steps), "changes": [list(one) for one in self.changes]}
