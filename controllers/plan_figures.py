"""Figures of a controller that plans: the attributes that its `metrics` name, and a line at the end."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtmms.planning.planner import Plan

_POINTS = 5
"""Points of a planned motion in reports."""


class PlanFigures:
    """Base class of a controller that plans.

    A subclass sets `_plans` (all plans), `_late` (ticks without a new one), `_tries` (largest number of candidates or
    iterations of a plan), `_since` (time that the plan has been in use, s), `_tick_s` (from plan to plan, s),
    `_spent_s` (processor time, s), and `_begun` and `_time` (of the run's first state and of the last one, s).
    """

    _plans: list[Plan]
    _late: int
    _tries: int
    _since: float
    _tick_s: float
    _spent_s: float
    _begun: float
    _time: float

    @property
    def plans(self) -> int:
        """Number of plans."""
        return len(self._plans)

    @property
    def late_plans(self) -> int:
        """Ticks without a new plan."""
        return self._late

    @property
    def plan_age_s(self) -> float:
        """Time since the state from which the plan in use was made, s."""
        return round(self._since + self._tick_s, 4)

    @property
    def plan_ms(self) -> float | None:
        """Duration of the last plan's computation, ms."""
        return round(1e3 * self._plans[-1].seconds, 2) if self._plans else None

    @property
    def planned_motion(self) -> str:
        """Positions of the robot in the last plan over its horizon, m, world: a few points, for viewers."""
        good = self._plans[-1].path if self._plans and self._plans[-1].good else ()
        if not len(good):
            return ""
        last, count = len(good) - 1, min(len(good), _POINTS)
        rows = [good[round(k * last / max(count - 1, 1))] for k in range(count)]
        return " ".join(",".join(f"{x:.2f}" for x in row) for row in rows)

    @property
    def planned_samples(self) -> str:
        """Other candidates of the last plan, for viewers, see rtmms.planning.shown_candidates."""
        from rtmms.planning.shown_candidates import as_text

        last = self._plans[-1] if self._plans and self._plans[-1].good else None
        return as_text(last.path[0], last.shown) if last is not None and len(last.path) else ""

    @property
    def core(self) -> float:
        """Share of a core that planning has used since the start, of one thread."""
        return round(self._spent_s / max(self._time - self._begun, self._tick_s), 4) if self._plans else 0.0

    @property
    def tried(self) -> float:
        """Share of the candidates that were tried, of all plans."""
        return round(self._share(sum(plan.finished for plan in self._plans)), 4)

    @property
    def iterations_a_plan(self) -> float:
        """Mean iterations of a plan, for methods that improve a plan step by step: at most `iterations`."""
        return round(sum(plan.iterations for plan in self._plans) / max(1, len(self._plans)), 2)

    @property
    def failed(self) -> float:
        """Share of the candidates that ended early or whose cost is no number."""
        return round(self._share(sum(plan.failed for plan in self._plans)), 4)

    @property
    def failed_plans(self) -> int:
        """Plans of which no candidate had a cost that is a number."""
        return sum(not plan.good for plan in self._plans)

    @property
    def least_cost(self) -> float | None:
        """Least cost of the last plan's candidates."""
        return finite(self._plans[-1].least) if self._plans else None

    @property
    def spread_of_costs(self) -> float | None:
        """Median less the least cost of the last plan's candidates: 0 means that no command changes the task."""
        return finite(self._plans[-1].spread) if self._plans else None

    def _share(self, count: int) -> float:
        return count / max(1, self._tries * len(self._plans))


def summary(plans: list[Plan], late: int, tries: int, iterating: bool = False) -> str:
    """Return a line about a run's plans, for a person.

    Parameters
    ----------
    plans : list[Plan]
        All plans.
    late : int
        Ticks without a new plan.
    tries : int
        Candidates of a plan.
    iterating : bool, default False
        Whether a plan is made by iterations.

    Returns
    -------
    str
        The line.
    """
    seconds = sorted(plan.seconds for plan in plans)
    finished = sum(plan.finished for plan in plans)
    failed = sum(plan.failed for plan in plans)
    spread = sorted(plan.spread for plan in plans if plan.spread == plan.spread)
    parts = [
        f"{len(plans)} plans, {1e3 * seconds[len(seconds) // 2]:.0f} ms in the median, {1e3 * seconds[-1]:.0f} at most",
        f"{sum(plan.iterations for plan in plans) / len(plans):.2f} iterations a plan, {failed} plans begun anew"
        if iterating
        else f"{finished / max(1, tries * len(plans)):.1%} of the candidates tried, {failed} failed",
        f"{late} late",
    ]
    if spread:
        parts.append(f"spread of costs {spread[len(spread) // 2]:.2g} in the median")
    return "; ".join(parts)


def finite(value: float) -> float | None:
    """Return a number rounded to four digits, or None where it is not finite.

    Parameters
    ----------
    value : float
        Any number.

    Returns
    -------
    float | None
        The number or None.
    """
    return float(f"{value:.4g}") if isfinite(value) else None
