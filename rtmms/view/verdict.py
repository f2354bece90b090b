"""Claims, the rows that they make, and verdicts.

A claim is a statement of a paper, or a property that our own results must have, with the range of numbers that confirms
it. With a number it becomes a row. The row computes its verdict from number and target at each access; nothing else
enters it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

AGREES = "agrees"
DIFFERS = "differs"
PICTURE = "picture only"
"""Verdict: the paper shows a curve and no number."""
OURS = "ours alone"
"""Verdict: the paper has no such number."""
OTHER_MACHINE = "other machine"
"""Verdict: the paper timed another machine."""


@dataclass(frozen=True, slots=True)
class Target:
    """Numbers that confirm a claim: least <= x <= max_value, never nan.

    Parameters
    ----------
    least : float, default -math.inf
        Lower bound.
    max_value : float, default math.inf
        Upper bound.
    beyond : bool, default False
        Whether `least` itself is excluded.

    Examples
    --------
    >>> about(2.0).range_text, about(2.0).holds(2.1)
    ('1.8 to 2.2', True)
    """

    least: float = -math.inf
    max_value: float = math.inf
    beyond: bool = False

    def holds(self, value: float) -> bool:
        """Return whether a number confirms the claim.

        Parameters
        ----------
        value : float
            The number.

        Returns
        -------
        bool
            True within the bounds, False for nan.
        """
        return self.least <= value <= self.max_value and not (self.beyond and value == self.least)

    @property
    def range_text(self) -> str:
        """Text of the range for a table."""
        if math.isinf(self.least):
            return f"at most {self.max_value:.4g}"
        if math.isinf(self.max_value):
            return f"{'above' if self.beyond else 'at least'} {self.least:.4g}"
        middle, half = 0.5 * (self.least + self.max_value), 0.5 * (self.max_value - self.least)
        tight = half < 1e-3 * abs(middle)
        digits = 2 + math.ceil(math.log10(abs(middle) / half)) if tight and half > 0.0 else 4
        return (
            f"{middle:.{min(max(digits, 4), 17)}g} +- {half:.1g}"
            if tight
            else f"{self.least:.4g} to {self.max_value:.4g}"
        )


def about(value: float, share: float = 0.1) -> Target:
    """Return the target within a share of a positive number.

    Parameters
    ----------
    value : float
        The number.
    share : float, default 0.1
        Share of it on either side.

    Returns
    -------
    Target
        The target.
    """
    return Target(value * (1.0 - share), value * (1.0 + share))


def at_most(value: float) -> Target:
    """Return the target of numbers up to a bound.

    Parameters
    ----------
    value : float
        The bound, included.

    Returns
    -------
    Target
        The target.
    """
    return Target(max_value=value)


def at_least(value: float) -> Target:
    """Return the target of numbers from a bound on.

    Parameters
    ----------
    value : float
        The bound, included.

    Returns
    -------
    Target
        The target.
    """
    return Target(least=value)


def above(value: float) -> Target:
    """Return the target of numbers above a bound.

    Parameters
    ----------
    value : float
        The bound, excluded.

    Returns
    -------
    Target
        The target.
    """
    return Target(least=value, beyond=True)


@dataclass(frozen=True, slots=True)
class Row:
    """A claim beside a number.

    Parameters
    ----------
    name : str
        Name of the compared quantity.
    ours : float
        Our number, which is judged.
    paper : float | str
        The paper's number or its text.
    unit : str, default ''
        Unit of both numbers.
    target : Target | None, optional
        Numbers at which ours agrees; None where there are none, with the reason in `unjudged`.
    remarks : tuple[str, ...], optional
        Sentences on the comparison.
    case : str, default ''
        Reading of the paper that gave the number; "" where there is only one.
    where : str, default ''
        Place in the paper.
    shown : str, default ''
        Printed form of our number, with its additions.
    unjudged : str, default PICTURE
        Verdict of a row without a target.
    must : bool, default False
        Whether the program is wrong where this row does not hold, whatever the paper states.

    Examples
    --------
    >>> Row("speed", 2.1, 2.0, "m/s", about(2.0)).verdict
    'agrees'
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
        """AGREES or DIFFERS, or `unjudged` without a target."""
        if self.target is None:
            return self.unjudged
        return AGREES if self.target.holds(self.ours) else DIFFERS

    @property
    def failed(self) -> bool:
        """Whether the row must hold and does not."""
        return self.must and self.verdict == DIFFERS

    def as_data(self) -> dict[str, Any]:
        """Return the row for JSON.

        Returns
        -------
        dict[str, Any]
            Entries by name. An absent bound and a number that is not finite are None.
        """
        target = self.target
        bounds: dict[str, Any] | None = None
        if target is not None:
            bounds = {"least": _finite(target.least), "most": _finite(target.max_value), "beyond": target.beyond}
        return {
            "name": self.name, "case": self.case, "where": self.where, "ours": _finite(self.ours), "shown": self.shown,
            "paper": self.paper, "unit": self.unit, "tolerance": bounds, "verdict": self.verdict,
            "must_hold": self.must, "remark": "; ".join(self.remarks),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about a number; see Row for the fields in common.

    Parameters
    ----------
    key : str
        Key of the number.
    name : str
        Name of the compared quantity.
    paper : float | str
        The paper's number or its text.
    unit : str, default ''
        Unit of both numbers.
    target : Target | None, optional
        Numbers that confirm the claim; None where there are none.
    form : str, default '.3g'
        Format of our number.
    note : str, default ''
        Sentence that is always among the remarks.
    why : str, default ''
        Sentence on our attempts, among the remarks where the number differs.
    where : str, default ''
        Place in the paper.
    unjudged : str, default PICTURE
        Verdict of a row without a target.
    must : bool, default False
        Whether the program is wrong where the claim does not hold.

    Examples
    --------
    >>> Claim("v", "speed", 2.0, "m/s", about(2.0)).row(2.1).shown
    '2.1'
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
        """Return the claim beside a number.

        Parameters
        ----------
        value : float
            Our number.
        case : str, default ''
            Reading of the paper that gave it.
        shown : str, default ''
            Printed form of the number; "" uses `form`.
        remark : str, default ''
            Sentence on this run; "" for none.

        Returns
        -------
        Row
            The row.
        """
        differs = self.target is not None and not self.target.holds(value)
        sentences = tuple(part for part in (self.note, remark, self.why if differs else "") if part)
        return Row(
            self.name, float(value), self.paper, self.unit, self.target, sentences, case,
            self.where, shown or ("none" if math.isnan(value) else f"{value:{self.form}}"), self.unjudged,
            self.must,
        )  # fmt: skip


def rows_of(claims: Iterable[Claim], numbers: Mapping[str, float], case: str = "") -> list[Row]:
    """Return a row for each claim.

    Parameters
    ----------
    claims : Iterable[Claim]
        The claims.
    numbers : Mapping[str, float]
        Our numbers by key.
    case : str, default ''
        Reading of the paper that gave them.

    Returns
    -------
    list[Row]
        The rows in the order of the claims.
    """
    return [claim.row(numbers[claim.key], case=case) for claim in claims]


def status(rows: Iterable[Row]) -> int:
    """Return the exit status of a command with these rows.

    Parameters
    ----------
    rows : Iterable[Row]
        The rows.

    Returns
    -------
    int
        1 where a row that must hold does not, else 0.
    """
    return int(any(row.failed for row in rows))


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
