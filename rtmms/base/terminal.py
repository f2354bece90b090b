"""The one place that prints: foreign text can neither move the cursor nor set colours.

Foreign text comes from peers, logs, files and plug-ins.
`print_text` spells out control characters in all that it prints, and keeps line ends, which are ours. A foreign value
passes through `safe_text` first, which spells out line ends as well. So it cannot pretend to be a line of its own.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rtmms.base.errors import RtmmsError, safe_text

if TYPE_CHECKING:
    from rich.console import Console  # noqa: TID251

_closed = False


def print_text(text: object = "", *, err: bool = False) -> None:
    """Print one or several lines.

    Parameters
    ----------
    text : object, default ''
        The text.
    err : bool, default False
        Whether to print to standard error, at once.
    """
    lines = "\n".join(safe_text(line, keep="\t") for line in str(text).split("\n"))
    print(lines, file=sys.stderr if err else sys.stdout, flush=True)


def print_json(text: str) -> None:
    """Print a JSON object to standard output.

    Parameters
    ----------
    text : str
        The object.

    Raises
    ------
    RtmmsError
        If standard output was closed before the program began.
    """
    if _closed:
        raise RtmmsError("--json: expected an open standard output for the JSON object, got a closed one")
    print_text(text)


def stdout_is_closed() -> None:
    """Record that standard output was closed when the program began, so that its text is lost."""
    global _closed
    _closed = True


def console(*, err: bool = False, width: int | None = None) -> Console:
    """Return rich's console for tables, bars and live displays; foreign text passes through `cell` or `safe_text`.

    Parameters
    ----------
    err : bool, default False
        Whether it prints to standard error.
    width : int | None, optional
        Columns; None: those of the terminal.

    Returns
    -------
    Console
        The console.
    """
    from rich.console import Console  # noqa: TID251

    return Console(stderr=err, width=width, highlight=False)


def cell(value: object) -> str:
    """Return foreign text for rich, without control characters and markup.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    str
        The text.
    """
    from rich.markup import escape

    return escape(safe_text(value))
