"""The one place that prints. Text of others (peers, logs, files, plug-ins) can neither move the cursor nor set colours.

`print_text` spells out control characters in all that it prints, and keeps line ends, which are ours. A value of others
goes through `shown` first, which spells out line ends as well, so that it cannot pretend to be a line of its own.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rtmms.base.errors import RtmmsError, shown

if TYPE_CHECKING:
    from rich.console import Console  # noqa: TID251

__all__ = ["cell", "console", "print_json", "print_text", "stdout_is_closed"]

_closed = False


def print_text(text: object = "", *, err: bool = False) -> None:
    """Print a line, or several; err: to standard error, at once."""
    lines = "\n".join(shown(line, keep="\t") for line in str(text).split("\n"))
    print(lines, file=sys.stderr if err else sys.stdout, flush=True)


def print_json(text: str) -> None:
    """Print an object, as JSON, to standard output; RtmmsError where that was closed before we began."""
    if _closed:
        raise RtmmsError("standard output is closed: expected somewhere to print the JSON object")
    print_text(text)


def stdout_is_closed() -> None:
    """Standard output was closed when the program began: what is printed there goes nowhere."""
    global _closed
    _closed = True


def console(*, err: bool = False, width: int | None = None) -> Console:
    """rich's, for tables, bars and live displays. What is put into it of others goes through `cell` or `shown`."""
    from rich.console import Console  # noqa: TID251

    return Console(stderr=err, width=width, highlight=False)


def cell(value: object) -> str:
    """Text of others for rich: without control characters, and without markup."""
    from rich.markup import escape

    return escape(shown(value))
