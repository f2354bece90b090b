"""For mkdocstrings (griffe): the columns of our docstrings, 'name   what it is', become lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

ITEM = re.compile(r"^(?P<names>[\w*`'\"\[({.][^\s](?:[^\s;]| (?! )){0,58}|\w)(?<!\.)\s{2,}(?P<text>\S.*)$")
PART = re.compile(r";\s{2,}(?=[\w, .]{1,40}\s{2,}\S)")
NAME = re.compile(r"\w+")
NAMES = re.compile(r"\w+(?:, \w+)*")


def formatted(text: str) -> str:
    """Markdown of a docstring: paragraphs as they are, lines of two columns as items of a list with what goes on below.

    Items that share a line ('a   what;  b   what') part; a line of names alone goes with the indented line below it.
    """
    found: list[str] = []
    column = 0  # where the second one begins, 0 outside of a list
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if column and NAME.fullmatch(line[:column].strip()) and line[column - 1 : column] == " " != line[column]:
            line = f"{line[:column].strip()}  {line[column:]}"  # a name that fills its column
        item = ITEM.match(line)
        if item is not None:
            found += [""] * (not column and bool(found) and bool(found[-1]))
            for part in _parts(line):
                names, told = re.split(r"\s{2,}", part, maxsplit=1)
                found.append(f"- `{names.strip('`')}` {told}")
            column = column or item.start("text")
        elif NAMES.fullmatch(line) and below.startswith("    "):
            found += [""] * (not column and bool(found) and bool(found[-1]))
            found.append(f"- `{line.strip()}`")
            column = column or len(below) - len(below.lstrip())
        elif column and line.startswith(" "):
            found[-1] += " " + line.strip()
        else:
            found += [""] * (column > 0 and bool(line))
            found.append(line)
            column = 0
    return "\n".join(found)


def _parts(line: str) -> list[str]:
    """Items of a line; what has no second column belongs to the one before."""
    found: list[str] = []
    for part in (part.strip() for part in PART.split(line)):
        if (found and not re.search(r"\s{2,}", part)) or (found and not re.search(r"\s{2,}", found[-1])):
            found[-1] += f"; {part}"
        else:
            found.append(part)
    return found


class Columns(griffe.Extension):
    """Rewrites each docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = formatted(obj.docstring.value)
