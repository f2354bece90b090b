"""What a plan is made of, as methods see it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Words(Protocol):
    """Numbers (rows, k) that make the commands of a horizon.

    home    (rows, k) where a plan begins;  scale (k,) by how much candidates differ, 0 for what is fixed
    lower, upper  (k,)
    library plans that are always among the candidates
    names   of the k numbers
    """

    home: Array
    scale: Array
    lower: Array
    upper: Array

    @property
    def library(self) -> tuple[Array, ...]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def start(self) -> Array:
        """What the commands of a plan go on from, at rest."""

    def commands(self, plans: Array, state: Array, since: float, steps: int, dt: float) -> tuple[Array, Array]:
        """(plans, steps, actuators), each at the end of its step, and the state at the end of the first plan's.

        plans  (p, rows, k);  state  as of `start`; stays;  since  s, how long the plans have been in use"""

    def shifted(self, plan: Array, by: float) -> Array:
        """The same plan, as one that begins `by` s later."""


def within(words: Words, plans: Array) -> Array:
    found: Any = np.clip(plans, words.lower, words.upper)
    return found  # type: ignore[no-any-return]


def shifted_rows(plan: Array, span: float, by: float) -> Array:
    """Targets `span` s apart as they are `by` s later; the last one stays."""
    if len(plan) == 1:
        return plan.copy()
    at = np.arange(len(plan)) * span
    return np.array([np.interp(np.minimum(at + by, at[-1]), at, column) for column in plan.T]).T
