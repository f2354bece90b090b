"""A few of a plan's candidates for viewers: their paths, and these as a text short enough for a metric of a peer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SHOWN_CANDIDATES = 4
"""Candidates that are shown beside the plan."""
SHOWN_POINTS = 3
"""Points of a shown candidate after its start."""
MAX_TEXT = 128
"""Characters of a figure's text (docs/protocol.md)."""
_MAX_COORDINATE_M = 1e4
"""Largest reported coordinate, m."""


def places(samples: int) -> Any:
    """Return the indices of the samples of a path that are shown, evenly from after its start to its end.

    Parameters
    ----------
    samples : int
        Samples of the path.

    Returns
    -------
    Any
        (SHOWN_POINTS,) indices.
    """
    return np.round(np.linspace(0.0, samples - 1.0, SHOWN_POINTS + 1))[1:].astype(int)


def choose_candidates(costs: Sequence[float] | Array, share: float = 0.5) -> list[int]:
    """Return the candidates that are shown beside the best, evenly by their rank.

    Parameters
    ----------
    costs : Sequence[float] | Array
        Costs of the candidates; those that are no number are left out.
    share : float, default 0.5
        Share of the candidates up to which ranks count.

    Returns
    -------
    list[int]
        Indices.
    """
    order = [int(k) for k in np.argsort(costs, kind="stable") if np.isfinite(costs[k])]
    ranks = np.round(np.linspace(0.0, share * max(0, len(order) - 1), SHOWN_CANDIDATES + 1))[1:]
    return [order[k] for k in dict.fromkeys(ranks.astype(int).tolist()) if k]


def as_text(begin: Array, paths: Array) -> str:
    """Return paths as text: 'x,y,z x,y,z x,y,z;...', steps from point to point in whole cm, world.

    Where the text is too long it has the ends alone, then fewer paths.

    Parameters
    ----------
    begin : Array
        (3,) start of the first step, m.
    paths : Array
        (k, points, 3) paths, m.

    Returns
    -------
    str
        Text of at most MAX_TEXT characters.
    """
    paths = paths[
        np.isfinite(paths).all(axis=(1, 2)) & (np.abs(paths).max(axis=(1, 2), initial=0.0) < _MAX_COORDINATE_M)
    ]
    for subset in (paths, *(paths[:k, -1:] for k in range(len(paths), 0, -1))):
        text = ";".join(_steps(np.vstack([begin, path])) for path in subset)
        if len(text) <= MAX_TEXT:
            return text
    return ""


def _steps(path: Array) -> str:
    whole = np.round(100.0 * path).astype(int)
    return " ".join(",".join(str(x) for x in row) for row in np.diff(whole, axis=0).tolist())


def of_text(text: str, begin: Array) -> list[Array]:
    """Read the paths of a text by `as_text`.

    Parameters
    ----------
    text : str
        The text.
    begin : Array
        (3,) start of each path, m.

    Returns
    -------
    list[Array]
        (n, 3) m each; none where the text is malformed.
    """
    try:
        steps = [np.array([[float(x) for x in word.split(",")] for word in path.split()]) for path in text.split(";")]
    except ValueError:
        return []
    if any(
        step.ndim != 2 or step.shape[1] != 3 or not np.abs(step).max() < 100.0 * _MAX_COORDINATE_M for step in steps
    ):
        return []
    return [np.vstack([begin, begin + 0.01 * np.cumsum(step, axis=0)]) for step in steps]
