"""Impaired links and expectations of a scenario, as a person types them."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.trust import called, split_word
from rtmms.base.typed import typed
from rtmms.loop.impairment import LONGEST_MS, Impairment

# Impaired links as a person types them: [[link]] tables of a scenario, and the words of --link.


KEYS = tuple(one.name for one in fields(Impairment) if one.name != "controller")
Fault = Callable[[int, str, str], ModelError]
"""Of a table's number, a key ('' for the table) and a text: the error that is raised."""


@cache
def _types() -> dict[str, Any]:
    from msgspec import Meta  # not with the command line

    ms, chance = Annotated[float, Meta(ge=0.0, le=LONGEST_MS)], Annotated[float, Meta(ge=0.0, le=1.0)]
    time, rate = Annotated[float, Meta(ge=0.0)], Annotated[float, Meta(gt=0.0, le=1e6)]
    return {
        "delay_ms": ms, "jitter_ms": ms, "loss": chance, "duplicate": chance, "reorder": chance, "rate_hz": rate,
        "from_s": time, "until_s": time,
    }  # fmt: skip


def as_word(link: Impairment) -> str:
    """'CONTROLLER:key=value,...', which `from_words` reads."""
    usual = Impairment(link.controller)
    said = [(key, getattr(link, key)) for key in KEYS if getattr(link, key) != getattr(usual, key)]
    return f"{link.controller}:" + ",".join(f"{key}={value!r}" for key, value in said or [("delay_ms", 0.0)])


def from_tables(tables: Sequence[Mapping[str, Any]], fault: Fault) -> tuple[Impairment, ...]:
    """One for each table. What `fault` makes of what is wrong is raised: key, what was got, what is expected."""
    found = tuple(_one(k, table, fault, words=False) for k, table in enumerate(tables))
    _refuse_overlaps(found, fault)
    return found


def from_words(words: Sequence[str]) -> tuple[Impairment, ...]:
    """Of 'CONTROLLER:key=value,...', as after --link. ModelError."""

    def fault(k: int, key: str, text: str) -> ModelError:
        return ModelError(f"--link {words[k]}: {text}")

    found = []
    for k, word in enumerate(words):
        name, rest = split_word(word)
        table: dict[str, Any] = {"controller": called(name)}
        for pair in filter(None, rest.split(",")):
            key, equals, text = pair.partition("=")
            if not equals or not text:
                raise fault(k, "", f"expected CONTROLLER:key=value,..., got '{pair}'")
            if key in table:
                raise fault(k, "", f"'{key}' is set twice")
            table[key.strip()] = text.strip()
        if not name or len(table) == 1:
            raise fault(k, "", f"expected CONTROLLER:key=value,... with some of {', '.join(KEYS)}")
        found.append(_one(k, table, fault, words=True))
    _refuse_overlaps(found, fault)
    return tuple(found)


def from_values(controller: str, values: Mapping[str, Any], over: Sequence[Impairment]) -> tuple[Impairment, ...]:
    """The links of a run in which these of a controller's differ from what `over` has. ModelError."""

    def fault(k: int, key: str, text: str) -> ModelError:
        return ModelError(f"link.{controller}: {text}")

    own = [one for one in over if one.controller == controller] or [Impairment(controller)]
    said = _one(0, {"controller": controller, **values}, fault, words=False)
    changed = [replace(one, **{key: getattr(said, key) for key in values}) for one in own]
    return (*(one for one in over if one.controller != controller), *changed)


def refuse_unknown(links: Iterable[Impairment], controllers: Iterable[str], fault: Fault) -> None:
    """That each is of a controller which the run has.  controllers  names on the wire"""
    names = tuple(controllers)
    for k, one in enumerate(links):
        if one.controller not in names:
            said = UnknownNameError("controller", one.controller, names) if names else "the run has no controller"
            raise fault(k, "controller", str(said))


def _one(k: int, table: Mapping[str, Any], fault: Fault, *, words: bool) -> Impairment:
    known = ["controller", *KEYS]
    for key in table:
        if key not in known:
            raise fault(k, key, str(UnknownNameError("key of link", key, known)))
    name = table.get("controller")
    if not isinstance(name, str) or not name:
        raise fault(k, "controller" if "controller" in table else "", "controller: expected the name of a controller")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key != "controller":
            try:
                values[key] = float(typed(key, value, _types()[key], words=words))
            except ModelError as wrong:
                raise fault(k, key, str(wrong)) from None
    found = Impairment(name, **values)
    if found.until_s is not None and found.until_s <= found.from_s:
        raise fault(k, "until_s", f"until_s: expected a time after from_s, {found.from_s:g} s, got {found.until_s:g}")
    return found


def _refuse_overlaps(links: Sequence[Impairment], fault: Fault) -> None:
    """ModelError where two say what a controller's link is at one time."""
    for k, one in enumerate(links):
        for other in links[:k]:
            if one.controller == other.controller and _overlap(one, other):
                raise fault(
                    k, "", f"two links of controller '{one.controller}' hold at t = {max(one.from_s, other.from_s):g} "
                    "s: expected times apart (from_s, until_s)",
                )  # fmt: skip


def _overlap(one: Impairment, other: Impairment) -> bool:
    first, second = sorted((one, other), key=lambda found: found.from_s)
    return first.until_s is None or second.from_s < first.until_s


# What must hold at the end of a run: names of its report, each with a comparison.


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_FORM = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*$")
_INDEX = re.compile(r"(.+)\[(-?\d+)\]$")


@dataclass(frozen=True)
class Expectation:
    """name of the report as 'mean_speed_m_s' (of its summary), 'exchange.misses' or 'final.position[2]'."""

    name: str
    comparison: str
    value: float | str

    @property
    def text(self) -> str:
        return f"{self.comparison} {self.value}"

    def holds(self, got: float | str | None) -> bool:
        """It does of this value; None: there is none."""
        alike = isinstance(got, str) == isinstance(self.value, str)
        return got is not None and alike and bool(_COMPARISONS[self.comparison](got, self.value))


@dataclass(frozen=True)
class Finding:
    """What was found of an expectation; got is None where the report has no such number."""

    name: str
    expected: str
    got: Any
    holds: bool
    instead: str = ""
    """Another name under which the report has such a value."""

    @property
    def sentence(self) -> str:
        if self.got is None:
            return f"expected {self.name} {self.expected}, but the report has no such value{self.instead}"
        return f"expected {self.name} {self.expected}, got {self.got:.6g}" if isinstance(self.got, float) else (
            f"expected {self.name} {self.expected}, got {self.got}"
        )  # fmt: skip


def expectation(name: str, text: Any) -> Expectation:
    """'<= 0.03' -> Expectation; ModelError for anything else."""
    form = _FORM.match(text) if isinstance(text, str) else None
    if form is None:
        known = ", ".join(_COMPARISONS)
        raise ModelError(f"expected a text as '<= 0.03' with one of {known}, got {text!r}")
    try:
        value: float | str = float(form[2])
    except ValueError:
        value = form[2]
        if form[1] not in ("==", "!="):
            raise ModelError(f"expected a number after {form[1]}, got '{value}'") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelError(f"expected a finite number after {form[1]}, got {value}")
    return Expectation(name, form[1], value)


def judge(expected: Iterable[Expectation], report: Mapping[str, Any]) -> list[Finding]:
    """Hold a report to what was expected of it. A value that is not there, or no number, does not hold."""
    found = []
    for one in expected:
        got = _value(report, one.name)
        instead = "" if got is not None else _instead(report, one.name)
        found.append(Finding(one.name, one.text, got, one.holds(got), instead))
    return found


def has(report: Mapping[str, Any], name: str) -> bool:
    """Whether a report has such a value."""
    return _value(report, name) is not None


def _instead(report: Mapping[str, Any], name: str) -> str:
    """A word on the name that was meant: the truth of a robot that is seen through sensors, or the nearest one."""
    head, dot, rest = name.partition(".")
    if dot and _value(report, f"{head}.truth.{rest}") is not None:
        return f"; seen through sensors it is {head}.truth.{rest}"
    bare = name if (index := _INDEX.match(name)) is None else index[1]
    known = [str(key) for key in report.get("summary") or {}]
    known += [f"final.{key}" for key in report.get("final") or {}]
    near = get_close_matches(bare, [one for one in known if one != bare], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _below(table: Any, name: str) -> Any:
    """What stands under a name with dots, where keys have dots too: final.depth.time is 'depth.time' of 'final'."""
    if not isinstance(table, Mapping):
        return None
    if name in table:
        return table[name]
    parts = name.split(".")
    for k in range(1, len(parts)):
        found = _below(table.get(".".join(parts[:k])), ".".join(parts[k:]))
        if found is not None:
            return found
    return None


def _value(report: Mapping[str, Any], name: str) -> float | str | None:
    """Of the summary first, then of the report itself, down its dots."""
    index, bare = _INDEX.match(name), name
    if index is not None:
        bare = index[1]
    summary = report.get("summary")
    found: Any = summary.get(bare) if isinstance(summary, Mapping) else None
    if found is None:
        found = _below(report, bare)
    if index is not None:
        at = int(index[2])
        found = found[at] if isinstance(found, list) and -len(found) <= at < len(found) else None
    if isinstance(found, (bool, list, Mapping)) or found is None:
        return None
    return found if isinstance(found, str) else float(found)
