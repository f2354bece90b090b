"""Model predictive path integral control: the mean of all candidates, weighed by exp(-cost / temperature)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rtmms.planning.cross_entropy import CrossEntropy

Array = npt.NDArray[np.float64]

TEMPERATURE = 0.3
"""Of the distance from the best cost to the median."""


class Mppi(CrossEntropy):
    """A method as CrossEntropy, with another mean and a spread that stays (Williams, Aldrich and Theodorou 2017)."""

    name = "mppi"

    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """The plan that follows from the costs."""
        sound = np.isfinite(costs)
        if not sound.any():
            return before
        found, least = costs[sound], float(costs[sound].min())
        heat = TEMPERATURE * max(float(np.median(found)) - least, 1e-12)
        weights = np.exp(-(found - least) / heat)
        mixed: Array = np.einsum("n,nrk->rk", weights / weights.sum(), candidates[sound])
        return mixed
