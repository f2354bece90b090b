"""Predictive sampling: the best candidate is the plan (Howell et al. 2022)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rtmms.planning.cross_entropy import CrossEntropy

Array = npt.NDArray[np.float64]


class PredictiveSampling(CrossEntropy):
    """A method as CrossEntropy, without any mean."""

    name = "ps"

    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """The plan that follows from the costs."""
        best = int(np.argmin(costs))
        return candidates[best].copy() if np.isfinite(costs[best]) else before
