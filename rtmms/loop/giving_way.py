"""When a plant changes to a cheaper variant of itself, and when back: from how full the periods are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmms.plant import Levelled


@dataclass(frozen=True)
class Thresholds:
    """Shares of a period, and times.

    down     a step that fills more than this of its period counts 1, one that overran 2, and each other step takes
             `leak` away: at `most` the plant goes a level down. So one stall of the machine changes nothing
    up       back where the steps of `calm_s` would have filled less than this with the next better level, but for a
             share of `spared`
    rest     so many steps after a change are not judged
    """

    down: float = 0.85
    leak: float = 0.05
    most: float = 3.0
    up: float = 0.6
    calm_s: float = 1.0
    spared: float = 0.005
    rest: int = 10


class Governor:
    """Looks at each step's time, and says which level is next. It allocates nothing in a step.

    plant        that steps, with its `costs` (rtmms.plant.Levelled)
    changes      (step, level) of each change, the first MOST of them;  steps  at each level
    """

    MOST = 1000

    def __init__(self, plant: Levelled, period_ns: float, thresholds: Thresholds | None = None) -> None:
        self._plant, self._period_ns = plant, period_ns
        one = thresholds or Thresholds()
        self._one = one
        self._down_ns = one.down * period_ns
        self._calm_steps = max(1, round(one.calm_s * 1e9 / period_ns))
        self._spared = int(one.spared * self._calm_steps)
        self.steps = [0] * len(plant.costs)
        self.changes: list[tuple[int, int]] = []
        self.clear()

    @property
    def level(self) -> int:
        """That steps now."""
        return self._plant.level

    def clear(self) -> None:
        """The plant was reset."""
        self._pressure = 0.0
        self._calm = self._over = 0
        self._rest = self._one.rest

    def look(self, busy_ns: int, plant_ns: int) -> int:
        """A step took so long, from its instant to its end, plant_ns of it in the plant's step; the level that is to
        step from now on."""
        level = self._plant.level
        self.steps[level] += 1
        if self._rest:
            self._rest -= 1
            return level
        if busy_ns > self._down_ns:
            self._pressure += 2.0 if busy_ns > self._period_ns else 1.0
            if self._pressure >= self._one.most and level + 1 < len(self.steps):
                return level + 1
        elif self._pressure:
            self._pressure = max(0.0, self._pressure - self._one.leak)
        if level:
            costs = self._plant.costs
            more_ns = plant_ns * (costs[level - 1] / costs[level] - 1.0)
            self._calm += 1
            self._over += busy_ns + more_ns >= self._one.up * self._period_ns
            if self._over > self._spared:
                self._calm = self._over = 0
            elif self._calm >= self._calm_steps:
                return level - 1
        return level

    def changed(self, step: int, level: int) -> None:
        """From that step on."""
        if len(self.changes) < self.MOST:
            self.changes.append((step, level))
        self.clear()

    def report(self) -> dict[str, Any]:
        return {"steps": list(self.steps), "changes": [list(one) for one in self.changes]}
