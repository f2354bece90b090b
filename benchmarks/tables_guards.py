"""Markdown of pages on the results of `rtmms bench guards`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .guards import MAX_FACTOR
from .tables_loop import table

STEPS = {"estimated": "an eighth of the steps", "hurried": "half of them, as after long runs"}
"""Step of the repetition by the kind of the estimate."""


def verdicts(result: Mapping[str, Any]) -> str:
    """Return the table of the verdicts of each robot and method.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Markdown.
    """
    kinds = {
        "cells": "cells", "fine": "fine", "doubtful": "doubtful", "error": "not finite", "diverged": "diverged",
        "refused": "refused", "unknown": "unknown", "no reference": "no reference", "silent wrongs": "silently wrong",
        "false refusals": "falsely refused", "doubted though right": "doubted though right",
    }  # fmt: skip
    rows = [
        [name, *(f"{counts[kind] or ''}" for kind in kinds)]
        for name, counts in {**result["methods"], "all": result["counts"]}.items()
    ]
    return table(["robot and method", *kinds.values()], rows)


def calibration(result: Mapping[str, Any]) -> str:
    """Return the table of reported errors over true ones.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Markdown.
    """
    quantiles = ("least", "2.5 %", "median", "97.5 %", "most")
    rows = [
        [f"{row['of']}, {STEPS[row['estimate']]}", f"{row['cells']}", *(f"{row[name]:.2g}" for name in quantiles),
         f"{100.0 * row['within']:.1f} %"]
        for row in result["calibration"]
    ]  # fmt: skip
    return table(["reported / true", "cells", *quantiles, f"within a factor of {MAX_FACTOR:g}"], rows)
