"""Do the tables of a page of docs/ have what a command prints now?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rtmms.view.tables import blocks

DOCS = Path(__file__).parents[2] / "docs"
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
ROUNDING_DIGITS = 1.01
"""Of the last digit: another machine may round to the neighbour."""
TINY = 1e-5
"""Numbers below it are rounding errors: of them only the verdict is compared."""


def disagreements(page: str, block: str, printed: str, only: Iterable[str] = ()) -> list[str]:
    """Lines of the page's block that are not in `printed` (a page too), up to the last digit; only those of names."""
    there, now = (_lines(text, block) for text in ((DOCS / page).read_text(encoding="utf-8"), printed))
    names = list(only) or list(there)
    wrong = [name for name in names if name not in there or name not in now]
    wrong += [name for name in names if name not in wrong and not _alike(there[name], now[name])]
    return wrong if only else wrong + [name for name in now if name not in there]


def _lines(page: str, block: str) -> dict[str, str]:
    """A table's lines by the cell that names them, without the one of this machine's time."""
    lines = [line for line in blocks(page)[block].splitlines() if line.startswith("| ") and "other machine" not in line]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    column = 1 if lines[0].startswith("| where |") else 0
    return {row[column]: " | ".join(row[:-1]) for row in cells}


def _alike(item: str, two: str) -> bool:
    if _NUMBER.sub("#", item) != _NUMBER.sub("#", two):
        return False
    return all(_close(a, b) for a, b in zip(_NUMBER.findall(item), _NUMBER.findall(two), strict=True))


def _close(a: str, b: str) -> bool:
    if a == b or max(abs(float(a)), abs(float(b))) < TINY:
        return True
    mantissa, _, exponent = a.partition("e")
    last = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(a) - float(b)) <= ROUNDING_DIGITS * last
