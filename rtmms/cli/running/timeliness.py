"""Whether a run can keep its time, and whether it did: a line before it begins, and lines in its report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan

SHARE = 0.01
"""Of the steps: more that were late than that is worth a word."""

_ROOM = 0.8
_HALF = 0.5


def at_start(plan: Plan, dt: float, p999_s: float) -> list[str]:
    """A warning where the plant's step alone takes the period or nearly so.  p999_s: of a step and its observation,
    measured."""
    period = dt / plan.rate
    if plan.mode != "realtime" or p999_s <= _ROOM * period:
        return []
    return [
        f"warning: a step takes up to {1e6 * p999_s:.3g} us here (p99.9) of a period of {1e6 * period:.3g} us: many "
        f"will be late. --rate {_HALF * dt / p999_s:.2g} leaves half of each period, --mode free goes as fast as it can"
    ]


def of_report(report: Mapping[str, Any]) -> list[str]:
    """Warnings of a run that missed or overran more than SHARE of its steps."""
    steps = report["steps"]
    if not steps:
        return []
    lines = []
    misses, overruns = report["exchange"]["misses"], report["schedule"]["overruns"]
    skipped = report["schedule"]["skipped"]
    if misses > SHARE * steps:
        lines.append(f"{misses} of {steps} steps went without a command in time ({_percent(misses / steps)})")
    if overruns > SHARE * steps or skipped > SHARE * (steps + skipped):
        lines.append(f"{overruns} of {steps} steps ended late, {skipped} periods were skipped")
    refused = {reason: count for reason, count in report["exchange"]["rejected"].items() if count > SHARE * steps}
    if lines:
        causes = [(count, cause) for cause, count in report["schedule"]["blame"].items() if count]
        lines[-1] += f"; mostly {max(causes)[1]}" if causes else ""
    if refused:
        lines.append(
            "refused of what peers said: " + ", ".join(f"{reason} {count}" for reason, count in refused.items())
        )
    lines += [f"output '{name}' is not finite at the end" for name, value in report["final"].items() if _broken(value)]
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _broken(value: Any) -> bool:
    return any(map(_broken, value)) if isinstance(value, list) else not math.isfinite(value)
