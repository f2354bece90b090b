"""Impaired links from a person's text: [[link]] tables of a scenario, and the words of --link."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import parameters_of, read_table
from rtmms.base.trust import plugin_name, split_word
from rtmms.loop.impairment import Impairment

KEYS = tuple(name for name in parameters_of(Impairment) if name != "controller")
Fault = Callable[[int, str, str], ModelError]
"""Function of a table's number, a key ('' for the table) and a text that returns the error to raise."""


def as_word(link: Impairment) -> str:
    """Return a link as text, which `from_words` reads.

    Parameters
    ----------
    link : Impairment
        The link.

    Returns
    -------
    str
        'CONTROLLER:key=value,...'.
    """
    default = Impairment(link.controller)
    pairs = [(key, getattr(link, key)) for key in KEYS if getattr(link, key) != getattr(default, key)]
    return f"{link.controller}:" + ",".join(f"{key}={value!r}" for key, value in pairs or [("delay_ms", 0.0)])


def from_tables(tables: Sequence[Mapping[str, Any]], fault: Fault) -> tuple[Impairment, ...]:
    """Read links from tables.

    Parameters
    ----------
    tables : Sequence[Mapping[str, Any]]
        Tables [[link]].
    fault : Fault
        Makes the error of a wrong key: what was got, what is expected.

    Returns
    -------
    tuple[Impairment, ...]
        One for each table.
    """
    result = tuple(_read_impairment(k, table, fault, from_text=False) for k, table in enumerate(tables))
    _refuse_overlaps(result, fault)
    return result


def from_words(link_texts: Sequence[str]) -> tuple[Impairment, ...]:
    """Read links from the words after --link.

    Parameters
    ----------
    link_texts : Sequence[str]
        'CONTROLLER:key=value,...' each.

    Returns
    -------
    tuple[Impairment, ...]
        One for each word.

    Raises
    ------
    ModelError
        A word is wrong; the message has it.
    """

    def fault(k: int, key: str, text: str) -> ModelError:
        return ModelError(f"--link {link_texts[k]}: {text}")

    result = []
    for k, word in enumerate(link_texts):
        name, remaining = split_word(word)
        table: dict[str, Any] = {"controller": plugin_name(name)}
        for pair in filter(None, remaining.split(",")):
            key, equals, text = pair.partition("=")
            if not equals or not text:
                raise fault(k, "", f"expected CONTROLLER:key=value,..., got '{pair}'")
            if key in table:
                raise fault(k, "", f"'{key}' is set twice")
            table[key.strip()] = text.strip()
        if not name or len(table) == 1:
            raise fault(k, "", f"expected CONTROLLER:key=value,... with some of {', '.join(KEYS)}")
        result.append(_read_impairment(k, table, fault, from_text=True))
    _refuse_overlaps(result, fault)
    return tuple(result)


def from_values(controller: str, values: Mapping[str, Any], over: Sequence[Impairment]) -> tuple[Impairment, ...]:
    """Return the links of a run in which some values of a controller's differ.

    Parameters
    ----------
    controller : str
        Name of the controller.
    values : Mapping[str, Any]
        New values by key.
    over : Sequence[Impairment]
        Links of the run.

    Returns
    -------
    tuple[Impairment, ...]
        All links.

    Raises
    ------
    ModelError
        A value is impossible.
    """

    def fault(k: int, key: str, text: str) -> ModelError:
        return ModelError(f"link.{controller}: {text}")

    impairments = [item for item in over if item.controller == controller] or [Impairment(controller)]
    stated = _read_impairment(0, {"controller": controller, **values}, fault, from_text=False)
    changed = [replace(item, **{key: getattr(stated, key) for key in values}) for item in impairments]
    return (*(item for item in over if item.controller != controller), *changed)


def refuse_unknown(links: Iterable[Impairment], controllers: Iterable[str], fault: Fault) -> None:
    """Refuse links of controllers that the run does not have.

    Parameters
    ----------
    links : Iterable[Impairment]
        The links.
    controllers : Iterable[str]
        Names on the wire.
    fault : Fault
        Makes the error.

    Raises
    ------
    ModelError
        A link is of another controller.
    """
    names = tuple(controllers)
    for k, link in enumerate(links):
        if link.controller not in names:
            message = UnknownNameError("controller", link.controller, names) if names else "the run has no controller"
            raise fault(k, "controller", str(message))


def _read_impairment(k: int, table: Mapping[str, Any], fault: Fault, *, from_text: bool) -> Impairment:
    result = Impairment(
        **read_table(Impairment, table, "link", lambda key, text: fault(k, key, text), from_text=from_text)
    )  # fmt: skip
    if result.until_s is not None and result.until_s <= result.from_s:
        raise fault(k, "until_s", f"until_s: expected a time after from_s, {result.from_s:g} s, got {result.until_s:g}")
    return result


def _refuse_overlaps(links: Sequence[Impairment], fault: Fault) -> None:
    """Raise ModelError where two entries declare a controller's link at one time."""
    for k, link in enumerate(links):
        for other in links[:k]:
            if link.controller == other.controller and _overlap(link, other):
                raise fault(
                    k,
                    "",
                    f"two links of controller '{link.controller}' overlap at t = {max(link.from_s, other.from_s):g} s: "
                    "expected separate times (from_s, until_s)",
                )


def _overlap(impairment: Impairment, other: Impairment) -> bool:
    first, second = sorted((impairment, other), key=lambda link: link.from_s)
    return first.until_s is None or second.from_s < first.until_s
