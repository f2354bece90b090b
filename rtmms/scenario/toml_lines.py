"""Line of a key in a TOML file, for errors: tomllib does not report it."""

from __future__ import annotations

import re
from collections import Counter

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")


def lines(text: str) -> dict[Path, int]:
    """Return the line of each table and key, from 1 on.

    The keys of an inline table, and the content of a string over several lines, have the line of the outer key.

    Parameters
    ----------
    text : str
        The file's text.

    Returns
    -------
    dict[Path, int]
        By path, as ('controller', 1, 'name').

    Examples
    --------
    >>> from rtmms.scenario.toml_lines import lines
    >>> lines("robot = 'manta'")[("robot",)]
    1
    """
    result: dict[Path, int] = {(): 1}
    counted: Counter[Path] = Counter()
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header is not None:
            table = _parts(header[2])
            if header[1] == "[[":
                counted[table] += 1
                table = (*table, counted[table] - 1)
            result.setdefault(table, number)
        elif key is not None:
            path = table
            for part in _parts(key[1]):
                path = (*path, part)
                result.setdefault(path, number)
    return result


def line_of(line_numbers: dict[Path, int], path: Path) -> int:
    """Return the line of a path, or of its nearest outer key.

    Parameters
    ----------
    line_numbers : dict[Path, int]
        Lines by path.
    path : Path
        The path.

    Returns
    -------
    int
        From 1 on.
    """
    while path and path not in line_numbers:
        path = path[:-1]
    return line_numbers[path]


def _parts(dotted: str) -> Path:
    return tuple(next(part for part in match.groups() if part is not None) for match in _PART.finditer(dotted))
