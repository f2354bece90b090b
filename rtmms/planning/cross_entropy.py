"""Cross-entropy: the mean and the spread of the next plan are those of the best quarter of the candidates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rtmms.planning.words import Words, within

Array = npt.NDArray[np.float64]

ELITE, FLOOR, SMOOTH, GROWS = 0.25, 0.3, 0.5, 1.15
"""Share of the candidates that count; least spread, in the words' scales; of the spread, how much stays; how it grows
again from plan to plan."""


class CrossEntropy:
    """A method: candidates about a mean, a new mean from their costs (Rubinstein 1999)."""

    name = "cem"

    def __init__(self, words: Words, seed: int) -> None:
        self.words, self._seed = words, seed
        self.clear()

    def clear(self) -> None:
        """As new: the same candidates come again."""
        self._rng = np.random.default_rng(self._seed)
        self._spread = np.ones(self.words.home.shape)

    def candidates(self, mean: Array, count: int) -> Array:
        """(count, rows, k): the mean itself, then the library's, then random ones. Half of the variance is common to
        all rows."""
        words, rng = self.words, self._rng
        rows, k = mean.shape
        noise = rng.normal(size=(count, rows, k))
        if rows > 1:
            noise = np.sqrt(0.5) * noise + np.sqrt(0.5) * rng.normal(size=(count, 1, k))
        found = within(words, mean + noise * self._spread * words.scale)
        found[0] = mean
        for j, plan in enumerate(words.library[: max(0, count // 8)], 1):
            found[j] = plan
        return found

    def mean(self, candidates: Array, costs: Array, before: Array) -> Array:
        """The plan that follows from the costs; those that failed are infinite."""
        order = np.argsort(costs, kind="stable")
        sound = int(np.isfinite(costs).sum())
        if not sound:
            return before
        best = int(order[0])
        if 1 <= best <= len(self.words.library[: max(0, len(candidates) // 8)]):
            own: Array = candidates[best].copy()
            return own
        some = candidates[order[: max(2, min(sound, int(ELITE * len(candidates))))]]
        spread = some.std(axis=0) / np.where(self.words.scale > 0.0, self.words.scale, np.inf)
        kept = SMOOTH * self._spread + (1.0 - SMOOTH) * 1.2 * spread
        self._spread = np.clip(GROWS * np.clip(kept, FLOOR, 1.0), FLOOR, 1.0)
        found: Array = some.mean(axis=0)
        return found
