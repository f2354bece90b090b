"""A few of a plan's candidates for viewers: their paths, and these as a text short enough for a figure of a peer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

PATHS, POINTS = 4, 3
"""Candidates that are shown beside the plan, and points of each after its beginning."""
LONGEST = 128
"""Characters of a figure's text (docs/protocol.md)."""
_FARTHEST = 1e4
"""m, of what is told."""


def places(samples: int) -> Any:
    """Which samples of a path are shown, evenly from after its beginning to its end."""
    return np.round(np.linspace(0.0, samples - 1.0, POINTS + 1))[1:].astype(int)


def chosen(costs: Sequence[float] | Array, share: float = 0.5) -> list[int]:
    """Candidates beside the best, evenly by their rank from it to the one that `share` of them are better than; none
    that cost no number."""
    order = [int(k) for k in np.argsort(costs, kind="stable") if np.isfinite(costs[k])]
    ranks = np.round(np.linspace(0.0, share * max(0, len(order) - 1), PATHS + 1))[1:]
    return [order[k] for k in dict.fromkeys(ranks.astype(int).tolist()) if k]


def as_text(begin: Array, paths: Array) -> str:
    """'x,y,z x,y,z x,y,z;...': steps from point to point in whole cm, world, the first from `begin`, m.

    paths   (k, points, 3) m. The ends alone, then fewer paths, where these are too many characters."""
    paths = paths[np.isfinite(paths).all(axis=(1, 2)) & (np.abs(paths).max(axis=(1, 2), initial=0.0) < _FARTHEST)]
    for some in (paths, *(paths[:k, -1:] for k in range(len(paths), 0, -1))):
        words = ";".join(_steps(np.vstack([begin, path])) for path in some)
        if len(words) <= LONGEST:
            return words
    return ""


def _steps(path: Array) -> str:
    whole = np.round(100.0 * path).astype(int)
    return " ".join(",".join(str(x) for x in row) for row in np.diff(whole, axis=0).tolist())


def of_text(words: str, begin: Array) -> list[Array]:
    """The paths of such a text, (n, 3) m, each from `begin` on; none where it is no such text."""
    try:
        steps = [np.array([[float(x) for x in word.split(",")] for word in path.split()]) for path in words.split(";")]
    except ValueError:
        return []
    if any(one.ndim != 2 or one.shape[1] != 3 or not np.abs(one).max() < 100.0 * _FARTHEST for one in steps):
        return []
    return [np.vstack([begin, begin + 0.01 * np.cumsum(one, axis=0)]) for one in steps]
