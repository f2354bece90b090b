"""A verdict is a number held against a target, and nothing else: claims, the rows that they make, and their words.

A claim is what a paper states, or what must hold of our own, with the range of numbers that confirms it. With a number
it becomes a row; the row's verdict is computed from the two each time it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

AGREES, DIFFERS = "agrees", "differs"
PICTURE, OURS, OTHER_MACHINE = "picture only", "ours alone", "other machine"
"""Words where there is nothing to hold a number against: the paper shows a curve, has no number, or timed another
machine."""


@dataclass(frozen=True, slots=True)
class Target:
    """The numbers that bear a claim out: least <= x <= most, without `least` itself if `beyond`; never nan."""

    least: float = -math.inf
    most: float = math.inf
    beyond: bool = False

    def holds(self, value: float) -> bool:
        """False for nan."""
        return self.least <= value <= self.most and not (self.beyond and value == self.least)

    @property
    def words(self) -> str:
        """For a table."""
        if math.isinf(self.least):
            return f"at most {self.most:.4g}"
        if math.isinf(self.most):
            return f"{'above' if self.beyond else 'at least'} {self.least:.4g}"
        middle, half = 0.5 * (self.least + self.most), 0.5 * (self.most - self.least)
        tight = half < 1e-3 * abs(middle)
        digits = 2 + math.ceil(math.log10(abs(middle) / half)) if tight and half > 0.0 else 4
        return (
            f"{middle:.{min(max(digits, 4), 17)}g} +- {half:.1g}" if tight else f"{self.least:.4g} to {self.most:.4g}"
        )


def about(value: float, share: float = 0.1) -> Target:
    """Within a share of a positive number: 10 % by default."""
    return Target(value * (1.0 - share), value * (1.0 + share))


def at_most(value: float) -> Target:
    return Target(most=value)


def at_least(value: float) -> Target:
    return Target(least=value)


def above(value: float) -> Target:
    return Target(least=value, beyond=True)


@dataclass(frozen=True, slots=True)
class Row:
    """A claim beside a number.

    name     what is compared; case: of which reading, '' where there is one only; where: in the paper
    ours     the number that is judged; shown: how it is printed, with what belongs to it
    paper    its number or its words; unit: of both
    target   what ours must be to agree, None where there is none: `unjudged` then has the reason
    remarks  sentences
    must     the program is wrong where this row does not hold, whatever the paper states
    """

    name: str
    ours: float
    paper: float | str
    unit: str = ""
    target: Target | None = None
    remarks: tuple[str, ...] = ()
    case: str = ""
    where: str = ""
    shown: str = ""
    unjudged: str = PICTURE
    must: bool = False

    @property
    def verdict(self) -> str:
        if self.target is None:
            return self.unjudged
        return AGREES if self.target.holds(self.ours) else DIFFERS

    @property
    def failed(self) -> bool:
        """It must hold and does not."""
        return self.must and self.verdict == DIFFERS

    def as_data(self) -> dict[str, Any]:
        """For JSON; a bound that is not there, and a number that is none, is null."""
        target = self.target
        bounds: dict[str, Any] | None = None
        if target is not None:
            bounds = {"least": _finite(target.least), "most": _finite(target.most), "beyond": target.beyond}
        return {
            "name": self.name, "case": self.case, "where": self.where, "ours": _finite(self.ours), "shown": self.shown,
            "paper": self.paper, "unit": self.unit, "tolerance": bounds, "verdict": self.verdict,
            "must_hold": self.must, "remark": "; ".join(self.remarks),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed of the number of that key; see Row for the rest.

    form   how many digits the number has
    note   a sentence that belongs to it always; why: one on what was tried where it differs
    """

    key: str
    name: str
    paper: float | str
    unit: str = ""
    target: Target | None = None
    form: str = ".3g"
    note: str = ""
    why: str = ""
    where: str = ""
    unjudged: str = PICTURE
    must: bool = False

    def row(self, value: float, *, case: str = "", shown: str = "", remark: str = "") -> Row:
        """The claim beside a number; shown and remark where they hang on the run."""
        differs = self.target is not None and not self.target.holds(value)
        sentences = tuple(part for part in (self.note, remark, self.why if differs else "") if part)
        return Row(
            self.name, float(value), self.paper, self.unit, self.target, sentences, case,
            self.where, shown or ("none" if math.isnan(value) else f"{value:{self.form}}"), self.unjudged,
            self.must,
        )  # fmt: skip


def rows_of(claims: Iterable[Claim], numbers: Mapping[str, float], case: str = "") -> list[Row]:
    """A row for each claim."""
    return [claim.row(numbers[claim.key], case=case) for claim in claims]


def status(rows: Iterable[Row]) -> int:
    """Exit status: 1 where a row that must hold does not."""
    return int(any(row.failed for row in rows))


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
