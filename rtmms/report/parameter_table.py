"""Tables of a robot's parameters for its page, which `rtmms bench tables` writes from their declarations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from rtmms.base.parameters import parameters_of
from rtmms.plant.protocol import builder


def parameters_table(kind: Any, about: str = "") -> str:
    """Return every parameter of a dataclass with default, unit, range, whether `set` may change it, and sentence.

    Parameters
    ----------
    kind
        The dataclass.
    about
        Title of the column of sentences.
    """
    lines = []
    declared = parameters_of(kind)
    for one in fields(kind):
        own = declared[one.name]
        value = _value(one.default)
        others = ", ".join(word for word in own.choices if word != one.default)
        text = f"{value} ({others})" if others else value
        lines.append((f"`{one.name}`", text, own.unit, own.range_text, "`set`" if own.live else "", own.about))
    return table(("parameter", "default (others)", "unit", "range", "while it runs", about), lines)


def robot_table(robot: str) -> str:
    """Return the table of an installed robot, of the dataclass of parameters in the module of its `load`."""
    module = import_module(builder(robot).load().__module__)
    kinds = [one for one in vars(module).values() if is_dataclass(one) and parameters_of(one)]
    return parameters_table(kinds[0])


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    rows += [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join(rows) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(_value(part) for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
