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
    from rtmms.plant.optional_protocols import HasLevels


# The policies of a run as data: chosen by name, with their limits.


@dataclass(slots=True)
class Counts:
    """Counts that the limits apply to: bad steps after the grace; a row of them ends with a good step.

    Parameters
    ----------
    misses, misses_in_a_row : int, default 0
        Steps with a missing command.
    overruns, overruns_in_a_row : int, default 0
        Steps that ended after their period.
    stale : int, default 0
        Steps with stale values.
    """

    misses: int = 0
    misses_in_a_row: int = 0
    overruns: int = 0
    overruns_in_a_row: int = 0
    stale: int = 0


@dataclass(slots=True)
class Grace:
    """Time from the start of a run in which neither limits nor `abort` act.

    Parameters
    ----------
    length_ns : int
        Its length, ns.
    until_ns : int, default 0
        Its end, CLOCK_MONOTONIC, ns.
    """

    length_ns: int
    until_ns: int = 0

    def start(self, instant_ns: int) -> None:
        """Begin the grace.

        Parameters
        ----------
        instant_ns : int
            Begin, CLOCK_MONOTONIC, ns.
        """
        self.until_ns = instant_ns + self.length_ns


@dataclass(frozen=True, slots=True)
class Share:
    """Share of the steps of a run.

    Parameters
    ----------
    value : float
        From 0 to 1.

    Examples
    --------
    >>> str(Share(0.001))
    '0.1 %'
    """

    value: float

    def __str__(self) -> str:
        """Return the share in percent."""
        return f"{100 * self.value:.6g} %"


def parse_limit(text: str) -> int | Share:
    """Return the limit of a text.

    Parameters
    ----------
    text : str
        A count of steps 'N', or a share of them 'P%'.

    Returns
    -------
    int | Share
        The count or the share.

    Raises
    ------
    ModelError
        If the text has another form.

    Examples
    --------
    >>> parse_limit("0.1%")
    Share(value=0.001)
    """
    number, percent, remaining = text.strip().partition("%")
    with suppress(ValueError):
        if percent and not remaining and 0.0 <= (share := float(number)) <= 100.0:
            return Share(share / 100.0)
        if not percent and 0 <= (count := int(number)) <= MAX_COUNT:
            return count
    raise ModelError(f"expected a count from 0 to {MAX_COUNT}, or a share from 0% to 100% such as 0.1%, got '{text}'")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None allows any number.

    A share is judged at the end of the run.

    Parameters
    ----------
    misses, misses_in_a_row : int | Share | None, optional
        Most steps with a missing command.
    overruns, overruns_in_a_row : int | Share | None, optional
        Most steps that end after their period.
    stale : int | Share | None, optional
        Most steps with stale values.
    """

    misses: int | Share | None = None
    misses_in_a_row: int | None = None
    overruns: int | Share | None = None
    overruns_in_a_row: int | None = None
    stale: int | Share | None = None

    @property
    def any(self) -> bool:
        """Whether there is a limit."""
        return any(getattr(self, name) is not None for name in LIMIT_WORDS)


NO_LIMITS = Limits()
LIMIT_WORDS = {
    "misses": ("misses", "--max-misses"),
    "misses_in_a_row": ("misses in a row", "--max-consecutive-misses"),
    "overruns": ("overruns", "--max-overruns"),
    "overruns_in_a_row": ("overruns in a row", "--max-consecutive-overruns"),
    "stale": ("stale steps", "--max-stale"),
}
"""Counted quantity of each limit, and the option that sets it."""


def add(counts: Counts, missed: bool, overran: bool, stale: bool = False) -> None:
    """Count a step, in place.

    Parameters
    ----------
    counts : Counts
        The counts.
    missed : bool
        Whether it missed.
    overran : bool
        Whether it overran.
    stale : bool, default False
        Whether it had stale values.
    """
    counts.stale += stale
    counts.misses += missed
    counts.misses_in_a_row = counts.misses_in_a_row + 1 if missed else 0
    counts.overruns += overran
    counts.overruns_in_a_row = counts.overruns_in_a_row + 1 if overran else 0


def limit_message(limits: Limits, counts: Counts) -> str:
    """Return a sentence about an exceeded count.

    Parameters
    ----------
    limits : Limits
        The limits.
    counts : Counts
        The counts.

    Returns
    -------
    str
        The sentence; empty if none is exceeded.
    """
    for name, (what, option) in LIMIT_WORDS.items():
        maximum, count = getattr(limits, name), getattr(counts, name)
        if isinstance(maximum, int) and count > maximum:
            return f"{count} {what}, {maximum} allowed ({option})"
    return ""


def exceeded_share(limits: Limits, counts: Counts, steps: int) -> str:
    """Return a sentence about an exceeded share at the end of a run.

    Parameters
    ----------
    limits : Limits
        The limits.
    counts : Counts
        The counts.
    steps : int
        Steps of the run.

    Returns
    -------
    str
        The sentence; empty if none is exceeded.
    """
    for name, (what, option) in LIMIT_WORDS.items():
        maximum, count = getattr(limits, name), getattr(counts, name)
        if isinstance(maximum, Share) and count > maximum.value * steps:
            return f"{count} {what} of {steps} steps ({Share(count / steps)}), {maximum} allowed ({option})"
    return ""


def skip(behind: float, catchup: int) -> float:
    """Drop whole periods, so that the next step starts on the old phase.

    Simulated time does not advance for them.

    Parameters
    ----------
    behind : float
        Periods by which the next step is overdue.
    catchup : int
        Unused.

    Returns
    -------
    float
        Periods to drop.
    """
    return math.ceil(behind)


def slip(behind: float, catchup: int) -> float:
    """Start the next step now: the schedule moves by the lost time.

    Parameters
    ----------
    behind : float
        Periods by which the next step is overdue.
    catchup : int
        Unused.

    Returns
    -------
    float
        Periods to drop.
    """
    return behind


def catch_up(behind: float, catchup: int) -> float:
    """Drop nothing up to `catchup` owed steps, which run back to back, and whole periods beyond.

    Parameters
    ----------
    behind : float
        Periods by which the next step is overdue.
    catchup : int
        Most steps to catch up.

    Returns
    -------
    float
        Periods to drop.
    """
    return max(0, math.ceil(behind) - catchup)


def abort(behind: float, catchup: int) -> float:
    """End the run.

    Parameters
    ----------
    behind : float
        Unused.
    catchup : int
        Unused.

    Returns
    -------
    float
        Infinity.
    """
    return math.inf


OVERRUN_POLICIES: Mapping[OverrunPolicy, Callable[[float, int], float]] = {
    OverrunPolicy.SKIP: skip, OverrunPolicy.SLIP: slip, OverrunPolicy.CATCHUP: catch_up, OverrunPolicy.ABORT: abort,
}  # fmt: skip
"""Functions of the policies.

They take the periods by which the next step is overdue, > 0, and the most steps to catch up. They return the periods to
drop; infinity ends the run.
"""

HOLD_TIMEOUT_S = 0.5
"""Age of a held value, s of wall time, from which every policy but abort goes home."""


@dataclass(frozen=True, slots=True)
class Policies:
    """Reactions of a run to a missing command, and to a step that took too long.

    Parameters
    ----------
    miss : str, default 'hold'
        Name of a MissPolicy.
    overrun : str, default 'skip'
        Name of an OverrunPolicy.
    hold_timeout_s : float, default HOLD_TIMEOUT_S
        Age of a held value from which `home` replaces `miss`, except for abort, s of wall time.
    catchup : int, default 5
        Most steps that `catchup` may owe.
    limits : Limits, default NO_LIMITS
        Most misses, overruns and stale steps, in all and in a row.
    grace_s : float, default 0.0
        Time from the start in which limits and `abort` do not act, s; `hold` and `skip` replace them.

    Raises
    ------
    UnknownNameError
        If there is no such policy; it lists similar names.
    ModelError
        If a number is out of range.

    Examples
    --------
    >>> Policies(miss="home").hold_timeout_s
    0.5
    """

    miss: str = "hold"
    overrun: str = "skip"
    hold_timeout_s: float = HOLD_TIMEOUT_S
    catchup: int = 5
    limits: Limits = NO_LIMITS
    grace_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the values."""
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
        for name in LIMIT_WORDS:
            maximum = getattr(self.limits, name)
            if isinstance(maximum, int) and maximum < 0:
                raise ModelError(f"policies: limits.{name} must be >= 0, got {maximum}")


# Changes of a plant to a cheaper variant of itself and back, by the load of the periods.


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of the governor: shares of a period, and times.

    Parameters
    ----------
    down : float, default 0.85
        A step that fills more than this share of its period counts 1.
    leak : float, default 0.05
        Each other step subtracts this from the count.
    max_count : float, default 3.0
        Count at which the plant goes a level down; an overrun counts 2. So one stall of the machine changes nothing.
    up : float, default 0.6
        Share below which the steps of `calm_s` must stay at the next better level, to go a level up.
    calm_s : float, default 1.0
        Time of calm steps before a level up, s.
    spared : float, default 0.005
        Share of the steps that may exceed `up`.
    settle_steps : int, default 10
        Steps after a change that are not judged.
    """

    down: float = 0.85
    leak: float = 0.05
    max_count: float = 3.0
    up: float = 0.6
    calm_s: float = 1.0
    spared: float = 0.005
    settle_steps: int = 10


class Governor:
    """Choice of the fidelity level by the time of each step; it allocates nothing in a step.

    Parameters
    ----------
    plant : HasLevels
        The plant with its `costs` (rtmms.plant.HasLevels).
    period_ns : float
        Period, ns.
    thresholds : Thresholds | None, optional
        Thresholds; None for the defaults.

    Attributes
    ----------
    changes : list of (int, int)
        Step and level of each change, the first MAX_CHANGES of them.
    steps : list of int
        Steps at each level.
    """

    MAX_CHANGES = 1000

    def __init__(self, plant: HasLevels, period_ns: float, thresholds: Thresholds | None = None) -> None:
        self._plant, self._period_ns = plant, period_ns
        item = thresholds or Thresholds()
        self._thresholds = item
        self._down_ns = item.down * period_ns
        self._calm_steps = max(1, round(item.calm_s * 1e9 / period_ns))
        self._spared = int(item.spared * self._calm_steps)
        self.steps = [0] * len(plant.costs)
        self.changes: list[tuple[int, int]] = []
        self.clear()

    @property
    def level(self) -> int:
        """Index of the active fidelity level (0 = full model)."""
        return self._plant.level

    def clear(self) -> None:
        """Reset the judgement, because the plant was reset."""
        self._pressure = 0.0
        self._calm = self._over = 0
        self._settle_steps = self._thresholds.settle_steps

    def look(self, busy_ns: int, plant_ns: int) -> int:
        """Judge a step, and return the next level.

        Parameters
        ----------
        busy_ns : int
            Time from the instant of the step to its end, ns.
        plant_ns : int
            Time of the plant's step in it, ns.

        Returns
        -------
        int
            Level of the following steps.
        """
        level = self._plant.level
        self.steps[level] += 1
        if self._settle_steps:
            self._settle_steps -= 1
            return level
        if busy_ns > self._down_ns:
            self._pressure += 2.0 if busy_ns > self._period_ns else 1.0
            if self._pressure >= self._thresholds.max_count and level + 1 < len(self.steps):
                return level + 1
        elif self._pressure:
            self._pressure = max(0.0, self._pressure - self._thresholds.leak)
        if level:
            costs = self._plant.costs
            more_ns = plant_ns * (costs[level - 1] / costs[level] - 1.0)
            self._calm += 1
            self._over += busy_ns + more_ns >= self._thresholds.up * self._period_ns
            if self._over > self._spared:
                self._calm = self._over = 0
            elif self._calm >= self._calm_steps:
                return level - 1
        return level

    def changed(self, step: int, level: int) -> None:
        """Record a change of the level.

        Parameters
        ----------
        step : int
            First step at the new level.
        level : int
            The new level.
        """
        if len(self.changes) < self.MAX_CHANGES:
            self.changes.append((step, level))
        self.clear()

    def report(self) -> dict[str, Any]:
        """Return the steps at each level, and the changes.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        return {"steps": list(self.steps), "changes": [list(change) for change in self.changes]}
