"""Tables of parameters and of keys for documentation pages.

`rtmms bench tables` writes them from the declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from rtmms.base.parameters import parameters_of
from rtmms.plant.loading import builder


def parameters_table(
    kind: Any, about: str = "", names: Iterable[str] | None = None, typical: Mapping[str, Any] | None = None
) -> str:  # fmt: skip
    """Return a table with a row for each declared field of a dataclass.

    Its columns are default, unit, range, whether `set` may change the parameter, and a sentence. Empty columns are left
    out.

    Parameters
    ----------
    kind : Any
        The dataclass.
    about : str, default ''
        Title of the column of sentences.
    names : Iterable[str] | None, optional
        Fields of the table; None for all declared ones.
    typical : Mapping[str, Any] | None, optional
        Further values by name, for a column of their own.

    Returns
    -------
    str
        Table in Markdown.
    """
    lines, declared = [], parameters_of(kind)
    for field in fields(kind):
        if field.name not in (declared if names is None else names):
            continue
        parameter = declared[field.name]
        built = field.default_factory() if callable(field.default_factory) else field.default
        value = "required" if parameter.required else _value(built)
        others = ", ".join(word for word in parameter.choices if word != field.default)
        text = f"{value} ({others})" if others else value
        typical_text = _value(typical[field.name]) if typical and field.name in typical else ""
        live = "`set`" if parameter.live else ""
        lines.append(
            (f"`{field.name}`", text, typical_text, parameter.unit, parameter.range_text, live, parameter.about)
        )
    heads = ("parameter", "default (others)", "typical", "unit", "range", "while it runs", about)
    used = [k for k in range(len(heads)) if k in (0, 1, 6) or any(line[k] for line in lines)]
    cells = [[line[k].replace("|", "\\|") for k in used] for line in lines]
    return table([heads[k] for k in used], cells)


def robot_table(robot: str) -> str:
    """Return the table of the parameters of an installed robot.

    They are those of the dataclass in the module of the robot's `load`.

    Parameters
    ----------
    robot : str
        Name of the robot.

    Returns
    -------
    str
        Table in Markdown.
    """
    module = import_module(builder(robot).load().__module__)
    kinds = [var for var in vars(module).values() if is_dataclass(var) and parameters_of(var)]
    return parameters_table(kinds[0])


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Parameters
    ----------
    heads : Sequence[str]
        Titles of the columns.
    lines : Sequence[Sequence[str]]
        Cells of each row, one for each column.

    Returns
    -------
    str
        The table, one row a line.

    Examples
    --------
    >>> print(table(("name", "unit"), [("speed", "m/s")]), end="")
    | name | unit |
    |---|---|
    | speed | m/s |
    """
    rows = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    rows += [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join(rows) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value in ("", (), [], {}):
        return "none" if value is None else ""
    if is_dataclass(value):  # with parts: its numbers
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return ", ".join(f"{name} {part:g}" for name, part in parts.items() if isinstance(part, float))
    if isinstance(value, tuple | list):
        return ", ".join(_value(part) for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
