"""Timing of a run: policies for lateness, pace, deadline, and warnings where time cannot be kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError
from rtmms.loop.policies import LIMIT_WORDS
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import HasRobots

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtmms.cli.running.plan import Plan
    from rtmms.loop.pace import Pace
    from rtmms.loop.policies import Policies
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trial import StepTime
    from rtmms.plant.protocol import Plant


def limits(plan: Plan) -> dict[str, str]:
    """Return the requested limits, by the names of `rtmms.loop.policies.Limits`.

    Parameters
    ----------
    plan : Plan
        The plan.

    Returns
    -------
    dict[str, str]
        Texts by name.
    """
    asked = {
        "misses": plan.max_misses, "misses_in_a_row": plan.max_consecutive_misses,
        "overruns": plan.max_overruns, "overruns_in_a_row": plan.max_consecutive_overruns, "stale": plan.max_stale,
    }  # fmt: skip
    return {name: str(asked[name]) for name in LIMIT_WORDS if asked[name] is not None}


def policies(plan: Plan) -> Policies:
    """Return the policies for the loop.

    Parameters
    ----------
    plan : Plan
        The plan.

    Returns
    -------
    Policies
        The policies.
    """
    from rtmms.loop.policies import Limits, Policies, parse_limit

    limit_values: dict[str, Any] = {name: parse_limit(text) for name, text in limits(plan).items()}
    return Policies(
        miss=plan.on_miss, overrun=plan.on_overrun, hold_timeout_s=plan.hold_timeout, catchup=plan.catchup,
        limits=Limits(**limit_values), grace_s=plan.grace,
    )  # fmt: skip


def policies_as_data(plan: Plan) -> dict[str, Any]:
    """Return the policies for the log, with all their settings.

    Parameters
    ----------
    plan : Plan
        The plan.

    Returns
    -------
    dict[str, Any]
        Settings by name.
    """
    return {
        "miss": plan.on_miss, "overrun": plan.on_overrun, "hold_timeout_s": plan.hold_timeout, "catchup": plan.catchup,
        "limits": limits(plan), "grace_s": plan.grace,
    }  # fmt: skip


# --- The pace of a run: what its mode, step, rate and deadline make of it.

ROW_S = 50e-6
"""Time for a row of the log, with the observation of its state, s: of the manta, p99.9."""


def pacing(
    plan: Plan, dt: float, p999_s: float, shortest_s: float, report: dict[str, Any], note: Callable[[list[str]], None]
) -> tuple[Pace, Statistics, float | None]:
    """Return the pace, its statistics, and the deadline.

    Parameters
    ----------
    plan : Plan
        The plan.
    dt : float
        Step of the plant, s.
    p999_s : float
        p99.9 of the plant's step, measured, s.
    shortest_s : float
        Shortest wait that can be kept here, measured, s.
    report : dict[str, Any]
        Its `schedule` receives the period and the deadline.
    note : Callable[[list[str]], None]
        Receives a sentence when the deadline is not the requested one.

    Returns
    -------
    tuple[Pace, Statistics, float | None]
        The deadline is in s after the start of a step, None where nothing waits on a clock.

    Raises
    ------
    ModelError
        The requested deadline cannot be kept.
    """
    from rtmms.base.contract import TIMED
    from rtmms.loop.clock import Schedule, deadline_s
    from rtmms.loop.modes import START_NS, External, Free, Lockstep, Realtime
    from rtmms.loop.statistics import Statistics

    # what follows the deadline beside the plant's step: waking up from the wait, and a row of the log
    p999_s += shortest_s + (ROW_S if plan.log is not None else 0.0)
    if plan.mode not in TIMED:
        return (Lockstep() if plan.mode == "lockstep" else Free()), Statistics(), None
    period = dt / plan.rate
    if not _MIN_PERIOD_S <= period <= _MAX_PERIOD_S:
        raise ModelError(
            f"--rate {plan.rate:g}: expected a period of {_MIN_PERIOD_S:g} to {_MAX_PERIOD_S:g} s for a step "
            f"of {dt:g} s, got {period:g} s"
        )
    if plan.mode == "external":
        # as if the ticks came at the plant's own period; whoever sends them more quickly gives --deadline
        deadline = max(plan.deadline, shortest_s) if plan.deadline else deadline_s(period, p999_s, None, shortest_s)
        _report_raised(plan, deadline, shortest_s, note)
        report["schedule"].update(deadline_us=deadline * 1e6)
        return External(round(deadline * 1e9)), Statistics(deadline_us=deadline * 1e6), deadline
    deadline = deadline_s(period, p999_s, plan.deadline, shortest_s)
    _report_raised(plan, deadline, shortest_s, note)
    report["schedule"].update(period_us=period * 1e6, deadline_us=deadline * 1e6)
    statistics = Statistics(period_us=period * 1e6, deadline_us=deadline * 1e6)
    return Realtime(Schedule(period * 1e9, round(deadline * 1e9)), START_NS), statistics, deadline


_MIN_PERIOD_S = 1e-9
"""Period, s; within the two limits it is a whole number of ns of 64 bits."""
_MAX_PERIOD_S = 1e9


class Ticking:
    """Reports about the ticker, without which the run stops.

    Parameters
    ----------
    ticker : Callable[[], str]
        Returns the name of the live peer that ticks, '' for none.
    """

    def __init__(self, ticker: Callable[[], str]) -> None:
        self._ticker, self._last = ticker, ""

    def news(self) -> list[str]:
        """Return a sentence when the ticker changed.

        Returns
        -------
        list[str]
            Empty or one sentence.
        """
        before, self._last = self._last, self._ticker()
        if self._last == before:
            return []
        return [f"'{self._last}' ticks" if self._last else f"'{before}' ticks no more; steps wait for another"]


def _report_raised(plan: Plan, deadline: float, shortest_s: float, note: Callable[[list[str]], None]) -> None:
    if plan.deadline is not None and deadline > plan.deadline:
        asked, shortest, got = plan.deadline * 1e6, shortest_s * 1e6, deadline * 1e6
        note([f"--deadline {asked:.3g} us is below what a wait takes here ({shortest:.3g} us): it is {got:.3g} us"])


# --- Whether a run can keep its time, and whether it did: a line before it begins, and lines in its report.

MAX_LATE_SHARE = 0.01
"""Share of late steps above which a warning is printed."""

MIN_FRESH_SHARE = 0.9
"""Share of fresh answers below which a free run depends on the machine."""

MAX_FAILED_SHARE = 0.1
"""Share of a planner's failed candidates above which a warning is printed."""

_ROOM = 0.8
_HALF = 0.5


def warnings_before(plan: Plan, dt: float, p999_s: float) -> list[str]:
    """Return a warning where the plant's step alone takes the period or nearly so.

    Parameters
    ----------
    plan : Plan
        The plan.
    dt : float
        Step of the plant, s.
    p999_s : float
        p99.9 of a step and its observation, measured, s.

    Returns
    -------
    list[str]
        Empty or one sentence.
    """
    period = dt / plan.rate
    if plan.mode != "realtime" or p999_s <= _ROOM * period:
        return []
    return [
        f"warning: a step takes up to {1e6 * p999_s:.3g} us here (p99.9) of a period of {1e6 * period:.3g} us: many "
        f"will be late. --rate {_HALF * dt / p999_s:.2g} leaves half of each period, --mode free goes as fast as it can"
    ]


def step_time(plan: Plan, dt: float, plant: Plant, measured: StepTime, report: dict[str, Any]) -> list[str]:
    """Return a sentence on the time of a step where nothing bounds it, and put the measured time into the report.

    Parameters
    ----------
    plan : Plan
        The plan.
    dt : float
        Step of the plant, s.
    plant : Plant
        The plant.
    measured : StepTime
        Result of the trial before the run.
    report : dict[str, Any]
        Its `schedule` gets `trial_us`.

    Returns
    -------
    list[str]
        Empty or one sentence.
    """
    report["schedule"]["trial_us"] = {"p99": 1e6 * measured.p99_s, "p999": 1e6 * measured.p999_s}
    parts = plant.robots.values() if isinstance(plant, HasRobots) else [plant]
    reasons = dict.fromkeys(reason for part in parts if (reason := describe_plant(part).step_time_varies))
    if plan.mode != "realtime" or plan.quiet or not reasons:
        return []
    period = dt / plan.rate
    return [
        f"step: {1e6 * measured.p99_s:.3g} us (p99, measured at neutral commands) of a period of {1e6 * period:.4g} "
        f"us; {' and '.join(reasons)} can make a step longer: see timing_us.plant of the report"
    ]


def warnings_of(report: Mapping[str, Any]) -> list[str]:
    """Return warnings of a run that missed or overran more than MAX_LATE_SHARE of its steps.

    Parameters
    ----------
    report : Mapping[str, Any]
        The report.

    Returns
    -------
    list[str]
        Sentences.
    """
    steps = report["steps"]
    if not steps:
        return []
    lines = []
    misses, overruns = report["exchange"]["misses"], report["schedule"]["overruns"]
    skipped = report["schedule"]["skipped"]
    if misses > MAX_LATE_SHARE * steps:
        lines.append(f"{misses} of {steps} steps went without a command in time ({_percent(misses / steps)})")
    if overruns > MAX_LATE_SHARE * steps or skipped > MAX_LATE_SHARE * (steps + skipped):
        lines.append(f"{overruns} of {steps} steps ended late, {skipped} periods were skipped")
    refused = {
        reason: count for reason, count in report["exchange"]["rejected"].items() if count > MAX_LATE_SHARE * steps
    }
    if lines:
        causes = [(count, cause) for cause, count in report["schedule"]["causes"].items() if count]
        lines[-1] += f"; mostly {max(causes)[1]}" if causes else ""
    stale = report["exchange"].get("stale", 0)
    if stale > MAX_LATE_SHARE * steps:
        lines.append(f"{stale} of {steps} steps used a value that its sender calls too old ({_percent(stale / steps)})")
    reused = report["exchange"].get("reused", 0)
    every = max((peer["every"] for peer in report["exchange"]["peers"]), default=1)
    if report["mode"] == "free" and reused > (1.0 - MIN_FRESH_SHARE / every) * steps:
        lines.append(
            f"{reused} of {steps} steps used an earlier command ({_percent(reused / steps)}): --mode free does not "
            "wait for controllers, so a closed loop depends on this machine; --mode lockstep waits"
        )
    if refused:
        lines.append(
            "refused of what peers sent: " + ", ".join(f"{reason} {count}" for reason, count in refused.items())
        )
    for peer in report["exchange"]["peers"]:
        failed = peer.get("metrics", {}).get("failed")  # of one that plans (controllers/plan_figures.py)
        if isinstance(failed, float) and failed > MAX_FAILED_SHARE:
            lines.append(
                f"{peer['name']}: {_percent(failed)} of what its plans tried ended early or cost no number"
                + "; no plan was good, and it went on as it began" * (failed == 1.0)
            )
    lines += [f"output '{name}' is not finite at the end" for name, value in report["final"].items() if _broken(value)]
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _broken(value: Any) -> bool:
    return any(map(_broken, value)) if isinstance(value, list) else not math.isfinite(value)
