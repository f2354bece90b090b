"""Provide the methods for a step of body and fins as tables for kernels: rtmms.mechanism.methods, row by row.

A stage may depend on the stage before it alone, so that no stage's rates need be stored. Rods and supports are known at
the start, the middle and the end of a step, so these are the nodes. (Of order 3 no such method has three stages.)
"""

from __future__ import annotations

import numpy as np

from rtmms.mechanism import methods
from rtmms.mechanism.methods import RK4, ROS2, Tableau

METHODS: dict[str, Tableau] = {"implicit": ROS2, "rk4": RK4}
ORDERS = {"implicit": 2, "rk4": 4}
STABILITY = {"implicit": None, "rk4": methods.METHODS["rk4"].stability}
"""Bound of |lambda| dt within which each is stable, None where there is none."""


def _table(rows: list[tuple[float, ...]]) -> np.ndarray:
    out = np.zeros((len(rows), max(len(row) for row in rows)))
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def _checked(tableau: Tableau) -> Tableau:
    before = np.tri(len(tableau.c), k=-1) - np.tri(len(tableau.c), k=-2)
    leads = [float(tableau.matrix[i, i - 1]) for i in range(1, len(tableau.c))]
    if np.any(tableau.matrix * (1.0 - before)) or tableau.c[0] != 0.0 or list(tableau.c[1:]) != leads:
        raise ValueError(
            "tableau: expected stages that each depend only on the one before (c_i = a_(i,i-1)), and a first stage "
            "with c = 0"
        )
    if not set(tableau.c[1:]) <= {0.5, 1.0}:
        raise ValueError("tableau: expected stages at the middle or the end of the step, where the rods are computed")
    return tableau


_ALL = [_checked(tableau) for tableau in METHODS.values()]
STAGES = np.array([len(t.c) for t in _ALL])
NODES = _table([t.c for t in _ALL])
LEADS = _table([(0.0, *(float(t.matrix[i, i - 1]) for i in range(1, len(t.c)))) for t in _ALL])
WEIGHTS = _table([t.b for t in _ALL])
OVER = np.array([t.over for t in _ALL])
RECALLS = _table([t.recall or (0.0,) * len(t.c) for t in _ALL])
GAMMAS = np.array([t.gamma for t in _ALL])
HALVES = np.array([0.5 in t.c for t in _ALL])
EVEN = np.array([len(set(t.b)) == 1 for t in _ALL])
"""Whether all weights are equal: sums are then weighted once at the end."""
CURVED = np.array([ORDERS[name] > 2 for name in METHODS])
"""Whether the order is three or more, where the curvature of the group counts (Munthe-Kaas)."""
