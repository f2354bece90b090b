"""The pace of a run: what its mode, step, rate and deadline make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtmms.cli.running.plan import Plan
    from rtmms.loop.pace import Pace
    from rtmms.loop.statistics import Statistics


ROW_S = 50e-6
"""A row of the log, with the observation of the state that it holds: of the manta, p99.9."""


def pacing(
    plan: Plan, dt: float, p999_s: float, shortest_s: float, report: dict[str, Any], note: Callable[[list[str]], None]
) -> tuple[Pace, Statistics, float | None]:
    """The pace, its statistics, and the deadline in s after the start of a step (None where nobody waits on a clock).

    p999_s   of the plant's step, measured
    shortest_s   a wait that can be kept here, measured
    note     is told when the deadline is not what was asked for
    report   its `schedule` is told the period and the deadline
    ModelError when the deadline asked for cannot be kept.
    """
    from rtmms.loop.names import TIMED
    from rtmms.loop.pace import START_NS
    from rtmms.loop.paces.external import External
    from rtmms.loop.paces.free import Free
    from rtmms.loop.paces.lockstep import Lockstep
    from rtmms.loop.paces.realtime import Realtime
    from rtmms.loop.schedule import Schedule, deadline_s
    from rtmms.loop.statistics import Statistics

    # what follows the deadline beside the plant's step: waking up from the wait, and a row of the log
    p999_s += shortest_s + (ROW_S if plan.log is not None else 0.0)
    if plan.mode not in TIMED:
        return (Lockstep() if plan.mode == "lockstep" else Free()), Statistics(), None
    period = dt / plan.rate
    if plan.mode == "external":
        # as if the ticks came at the plant's own period; whoever sends them more quickly says --deadline
        deadline = max(plan.deadline, shortest_s) if plan.deadline else deadline_s(period, p999_s, None, shortest_s)
        _tell_raised(plan, deadline, shortest_s, note)
        report["schedule"].update(deadline_us=deadline * 1e6)
        return External(round(deadline * 1e9)), Statistics(deadline_us=deadline * 1e6), deadline
    deadline = deadline_s(period, p999_s, plan.deadline, shortest_s)
    _tell_raised(plan, deadline, shortest_s, note)
    report["schedule"].update(period_us=period * 1e6, deadline_us=deadline * 1e6)
    statistics = Statistics(period_us=period * 1e6, deadline_us=deadline * 1e6)
    return Realtime(Schedule(period * 1e9, round(deadline * 1e9)), START_NS), statistics, deadline


class Ticking:
    """Who ticks, as a person should know: without a ticker the run stands still.

    ticker   name of the live peer that ticks, '' for none
    """

    def __init__(self, ticker: Callable[[], str]) -> None:
        self._ticker, self._last = ticker, ""

    def news(self) -> list[str]:
        """A sentence when it changed."""
        before, self._last = self._last, self._ticker()
        if self._last == before:
            return []
        return [f"'{self._last}' ticks" if self._last else f"'{before}' ticks no more; steps wait for another"]


def _tell_raised(plan: Plan, deadline: float, shortest_s: float, note: Callable[[list[str]], None]) -> None:
    if plan.deadline is not None and deadline > plan.deadline:
        asked, shortest, got = plan.deadline * 1e6, shortest_s * 1e6, deadline * 1e6
        note([f"--deadline {asked:.3g} us is below what a wait takes here ({shortest:.3g} us): it is {got:.3g} us"])
