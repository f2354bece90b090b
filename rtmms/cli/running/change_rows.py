"""Rows about changes of a run's parameters and state from outside: by `rtmms set`, by events, or by degradation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_ROWS = 8
"""Changes that a table names."""


def change_rows(changes: Sequence[Mapping[str, Any]], dt: float) -> list[tuple[str, str]]:
    """Return the changes of a run as rows of a table.

    Parameters
    ----------
    changes : Sequence[Mapping[str, Any]]
        The changes, as the report has them: `run`, `step`, `op`, `args`.
    dt : float
        Step, s.

    Returns
    -------
    list[tuple[str, str]]
        Time and change of the first MAX_ROWS changes, and the number of the others.

    Examples
    --------
    >>> change_rows([{"run": 0, "step": 500, "op": "set", "args": {"drag_coefficient": 2.0}}], 1e-3)
    [('0.5 s', 'drag_coefficient = 2.0')]
    """
    result = []
    for change in changes[:MAX_ROWS]:
        values = ", ".join(f"{name} = {value}" for name, value in (change.get("args") or {}).items())
        again = f" after reset {change['run']}" if change["run"] else ""
        result.append((f"{change['step'] * dt:.6g} s{again}", values or "another state (restore)"))
    if len(changes) > MAX_ROWS:
        result.append(("later", f"{len(changes) - MAX_ROWS} more changes"))
    return result
