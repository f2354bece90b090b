"""Expectations of a scenario: conditions at the end of a run, by names of its report, each with a comparison."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.loop.policies import Share, parse_limit

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_FORM = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*$")
_INDEX = re.compile(r"(.+)\[(-?\d+)\]$")


LIMITS = {"max_stale": "exchange.stale", "max_misses": "exchange.misses", "max_overruns": "schedule.overruns"}
"""Limits of a run that are also expectations, and the quantity of the report that each of them limits."""


@dataclass(frozen=True)
class Expectation:
    """Condition on a quantity of the report.

    Attributes
    ----------
    name : str
        As 'mean_speed_m_s' (of its summary), 'exchange.misses' or 'final.position[2]'; or of LIMITS.
    comparison : str
        As '<='.
    value : float | str
        Number or word to compare with.
    of_steps : bool, default False
        The value is a share of the steps, in %.

    Examples
    --------
    >>> from rtmms.scenario.expectations import expectation
    >>> one = expectation("mean_speed_m_s", ">= 0.3")
    >>> one.holds(0.4), one.text
    (True, '>= 0.3')
    """

    name: str
    comparison: str
    value: float | str
    of_steps: bool = False

    @property
    def text(self) -> str:
        """The condition without the name, as '<= 3'."""
        return f"{self.comparison} {self.value:g} %" if self.of_steps else f"{self.comparison} {self.value}"

    @property
    def source(self) -> str:
        """Name in the report."""
        return LIMITS.get(self.name, self.name)

    def read_value(self, report: Mapping[str, Any]) -> float | str | None:
        """Return the report's value.

        Parameters
        ----------
        report : Mapping[str, Any]
            Report of the run.

        Returns
        -------
        float | str | None
            None where there is none.
        """
        got = _value(report, self.source)
        if not self.of_steps or not isinstance(got, float):
            return got
        return 100.0 * got / report["steps"] if report.get("steps") else 0.0

    def holds(self, got: float | str | None) -> bool:
        """Return whether the condition holds for a value.

        Parameters
        ----------
        got : float | str | None
            The value; None: there is none.

        Returns
        -------
        bool
            False for None.
        """
        alike = isinstance(got, str) == isinstance(self.value, str)
        return got is not None and alike and bool(_COMPARISONS[self.comparison](got, self.value))


@dataclass(frozen=True)
class ExpectationResult:
    """Result of an expectation.

    Attributes
    ----------
    name : str
        Name of the quantity.
    expected : str
        The condition.
    got : Any
        Value of the report, None where it has no such number.
    holds : bool
        Whether the condition holds.
    instead : str, default ''
        Another name under which the report has such a value.

    Examples
    --------
    >>> from rtmms.scenario import ExpectationResult
    >>> ExpectationResult("mean_speed_m_s", ">= 0.3", 0.25, False).sentence
    'expected mean_speed_m_s >= 0.3, got 0.25'
    """

    name: str
    expected: str
    got: Any
    holds: bool
    instead: str = ""
    """Another name under which the report has such a value."""

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        if self.got is None:
            return f"expected {self.name} {self.expected}, but the report has no such value{self.instead}"
        return f"expected {self.name} {self.expected}, got {self.got:.6g}" if isinstance(self.got, float) else (
            f"expected {self.name} {self.expected}, got {self.got}"
        )  # fmt: skip


def expectation(name: str, text: Any) -> Expectation:
    """Read an expectation.

    Parameters
    ----------
    name : str
        Name of the quantity.
    text : Any
        '<= 0.03', and of LIMITS 3 or '0.1%'.

    Returns
    -------
    Expectation
        The expectation.

    Raises
    ------
    ModelError
        The text is something else.
    """
    if name in LIMITS:
        limit = parse_limit(str(text))
        share = isinstance(limit, Share)
        return Expectation(name, "<=", 100.0 * limit.value if isinstance(limit, Share) else float(limit), share)
    form = _FORM.match(text) if isinstance(text, str) else None
    if form is None:
        known = ", ".join(_COMPARISONS)
        raise ModelError(f"expected a text such as '<= 0.03' with one of {known}, got {text!r}")
    try:
        value: float | str = float(form[2])
    except ValueError:
        value = form[2]
        if form[1] not in ("==", "!="):
            raise ModelError(f"expected a number after {form[1]}, got '{value}'") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelError(f"expected a finite number after {form[1]}, got {value}")
    return Expectation(name, form[1], value)


def judge(expected: Iterable[Expectation], report: Mapping[str, Any]) -> list[ExpectationResult]:
    """Compare a report with the expectations; a missing value, or one that is no number, does not hold.

    Parameters
    ----------
    expected : Iterable[Expectation]
        The expectations.
    report : Mapping[str, Any]
        Report of the run.

    Returns
    -------
    list[ExpectationResult]
        One for each expectation.
    """
    result = []
    for item in expected:
        got = item.read_value(report)
        instead = "" if got is not None else _instead(report, item.name)
        result.append(ExpectationResult(item.name, item.text, got, item.holds(got), instead))
    return result


def has(report: Mapping[str, Any], name: str) -> bool:
    """Return whether a report has a value.

    Parameters
    ----------
    report : Mapping[str, Any]
        Report of the run.
    name : str
        Name of the quantity.

    Returns
    -------
    bool
        True where it has one.
    """
    return _value(report, name) is not None


def _instead(report: Mapping[str, Any], name: str) -> str:
    """Return a hint at the name that was meant: the truth of a robot with sensors, or the nearest name."""
    head, dot, remaining = name.partition(".")
    if dot and _value(report, f"{head}.truth.{remaining}") is not None:
        return f"; seen through sensors it is {head}.truth.{remaining}"
    bare = name if (index := _INDEX.match(name)) is None else index[1]
    known = [str(key) for key in report.get("summary") or {}]
    known += [f"final.{key}" for key in report.get("final") or {}]
    near = get_close_matches(bare, [item for item in known if item != bare], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _below(table: Any, name: str) -> Any:
    """Return the value of a name with dots, where keys have dots too: final.depth.time is 'depth.time' of 'final'."""
    if not isinstance(table, Mapping):
        return None
    if name in table:
        return table[name]
    parts = name.split(".")
    for k in range(1, len(parts)):
        result = _below(table.get(".".join(parts[:k])), ".".join(parts[k:]))
        if result is not None:
            return result
    return None


def _value(report: Mapping[str, Any], name: str) -> float | str | None:
    """Return a value of the summary, else of the report itself, by its name with dots."""
    index, bare = _INDEX.match(name), name
    if index is not None:
        bare = index[1]
    summary = report.get("summary")
    result: Any = summary.get(bare) if isinstance(summary, Mapping) else None
    if result is None:
        result = _below(report, bare)
    if index is not None:
        at = int(index[2])
        result = result[at] if isinstance(result, list) and -len(result) <= at < len(result) else None
    if isinstance(result, bool):
        return "true" if result else "false"
    if isinstance(result, (list, Mapping)) or result is None:
        return None
    return result if isinstance(result, str) else float(result)
