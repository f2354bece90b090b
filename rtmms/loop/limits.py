"""How many misses and overruns a run may have before it ends: limits as data, and the counts they are held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """What counts against the limits: bad steps after the grace; the rows of them end with a good step."""

    misses: int = 0
    misses_in_a_row: int = 0
    overruns: int = 0
    overruns_in_a_row: int = 0


@dataclass(slots=True)
class Grace:
    """The time from the start of a run in which neither limits nor `abort` act."""

    length_ns: int
    until_ns: int = 0

    def start(self, instant_ns: int) -> None:
        """The run counts from there."""
        self.until_ns = instant_ns + self.length_ns


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a run may have of each; None: any number."""

    misses: int | None = None
    misses_in_a_row: int | None = None
    overruns: int | None = None
    overruns_in_a_row: int | None = None

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
}
"""Of each limit: what it counts, and the option that sets it."""


def add(counts: Counts, missed: bool, overran: bool) -> None:
    """One step more; in place."""
    counts.misses += missed
    counts.misses_in_a_row = counts.misses_in_a_row + 1 if missed else 0
    counts.overruns += overran
    counts.overruns_in_a_row = counts.overruns_in_a_row + 1 if overran else 0


def exceeded(limits: Limits, counts: Counts) -> str:
    """Which limit is exceeded, as a sentence; '' while none is."""
    for name, (what, option) in WORDS.items():
        most, count = getattr(limits, name), getattr(counts, name)
        if most is not None and count > most:
            return f"{count} {what}, {most} allowed ({option})"
    return ""
