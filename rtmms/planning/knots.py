"""Knots of the commands themselves, for any robot: straight lines between them, held after the last."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError
from rtmms.plant import Channel

Array = npt.NDArray[np.float64]

USUAL = 0.1
"""Of an actuator's range: by how much candidates differ."""


class Knots:
    """Words (rtmms.planning.words): the values of all actuators at `rows` times, evenly spaced over the horizon.

    actuators  with limits to both sides, else ModelError;  home (n,) or (rows, n) their values at first
    period_s   of a gait: beyond its end a plan goes on as it was a period before; 0: it stays
    mixing     (n, n) words that are not the commands themselves: commands = mixing words, within their limits
    """

    def __init__(
        self, actuators: tuple[Channel, ...], rows: int, horizon_s: float, home: Array, period_s: float = 0.0,
        mixing: Array | None = None,
    ) -> None:  # fmt: skip
        for one in actuators:
            if one.lower is None or one.upper is None or not np.isfinite([one.lower, one.upper]).all():
                raise ModelError(f"knots: actuator '{one.name}' has no limits: a plan needs them to both sides")
        self.names = tuple(one.name for one in actuators)
        self.lower = np.array([one.lower for one in actuators], dtype=np.float64)
        self.upper = np.array([one.upper for one in actuators], dtype=np.float64)
        self.home = np.array(np.broadcast_to(np.clip(home, self.lower, self.upper), (rows, len(actuators))))
        self._mixing, self._most = mixing, (self.lower, self.upper)
        if mixing is not None:
            inverse = np.linalg.inv(mixing)
            self.home = self.home @ inverse.T
            middle, half = (
                inverse @ (0.5 * (self.lower + self.upper)),
                np.abs(inverse) @ (0.5 * (self.upper - self.lower)),
            )
            self.lower, self.upper = middle - half, middle + half
        self.scale = USUAL * (self.upper - self.lower)
        self.library = (self.home,)
        self.at, self._period = np.linspace(0.0, horizon_s, rows), min(period_s, horizon_s)

    def start(self) -> Array:
        """See Words."""
        return np.zeros(0)

    def commands(self, plans: Array, state: Array, since: float, steps: int, dt: float) -> tuple[Array, Array]:
        """See Words."""
        times = since + dt * np.arange(1, steps + 1)
        if len(self.at) == 1:
            return self._mixed(np.repeat(plans, steps, axis=1)), state.copy()
        row = np.clip(np.searchsorted(self.at, times, side="right") - 1, 0, len(self.at) - 2)
        part = np.clip((times - self.at[row]) / (self.at[1] - self.at[0]), 0.0, 1.0)[None, :, None]
        found = plans[:, row] + part * (plans[:, row + 1] - plans[:, row])
        return self._mixed(np.ascontiguousarray(found)), state.copy()

    def _mixed(self, words: Array) -> Array:
        """Commands (p, steps, n) of words."""
        if self._mixing is None:
            return words
        return np.ascontiguousarray(np.clip(words @ self._mixing.T, *self._most))

    def shifted(self, plan: Array, by: float) -> Array:
        """See Words."""
        later = self.at + by
        if self._period > 0.0:
            beyond = np.maximum(later - self.at[-1], 0.0)
            later = later - self._period * np.ceil(beyond / self._period - 1e-9)
        later = np.minimum(later, self.at[-1])
        return np.array([np.interp(later, self.at, column) for column in plan.T]).T
