"""Which of the things that differ a column depends on: first-order indices of its variance."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.sweep.study import Study
from rtmms.sweep.table import numbers

if TYPE_CHECKING:
    import pyarrow as pa

FEWEST = 64
"""Samples below which indices are noise."""


def first_order(study: Study, table: pa.Table, columns: tuple[str, ...]) -> dict[str, dict[str, float]] | None:
    """{column: {key: share of the variance that the mean over all others explains}}.

    Of a grid it is var(mean over the others) / var, exact. Of samples it is estimated by RBD-FAST (Tarantola 2006,
    SALib), whose bias is some 6 keys / samples. None where there are too few samples, or SALib is missing. Runs that
    failed do not count.
    """
    keys = [axis.key for axis in study.axes]
    values = numbers(table, columns)
    if study.method == "grid":
        cases = study.cases()
        return {name: _of_grid(keys, cases, values[:, k]) for k, name in enumerate(columns)}
    if any(axis.values and not all(isinstance(one, (int, float)) for one in axis.values) for axis in study.axes):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from SALib.analyze import rbd_fast
    except ImportError:
        return None
    given = numbers(table, keys)
    found = {}
    for k, name in enumerate(columns):
        good = np.isfinite(values[:, k])
        if good.sum() < FEWEST or np.ptp(values[good, k]) == 0.0:
            continue
        x = given[good]
        problem = {"num_vars": len(keys), "names": keys, "bounds": [[*np.array([c.min(), c.max()])] for c in x.T]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = rbd_fast.analyze(problem, x, values[good, k], num_resamples=2, seed=0)
        found[name] = {key: float(one) for key, one in zip(keys, told["S1"], strict=True)}
    return found or None


def _of_grid(keys: list[str], cases: list[tuple[Any, ...]], values: Any) -> dict[str, float]:
    good = np.isfinite(values)
    whole = float(np.var(values[good])) if good.any() else 0.0
    found = {}
    for k, key in enumerate(keys):
        groups: dict[Any, list[float]] = {}
        for case, value in zip(cases, values, strict=True):
            if np.isfinite(value):
                groups.setdefault(case[k], []).append(value)
        means = np.array([np.mean(one) for one in groups.values()])
        weights = np.array([len(one) for one in groups.values()], dtype=float)
        if whole > 0.0 and weights.size:
            mean = np.average(means, weights=weights)
            found[key] = float(np.average((means - mean) ** 2, weights=weights) / whole)
        else:
            found[key] = 0.0
    return found
