"""What a run does about lateness, from its plan: policies for the loop, and what a log says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmms.loop.limits import WORDS

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.policies import Policies


def limits(plan: Plan) -> dict[str, int]:
    """The limits that were asked for, by the names of `rtmms.loop.limits.Limits`."""
    asked = {
        "misses": plan.max_misses, "misses_in_a_row": plan.max_consecutive_misses,
        "overruns": plan.max_overruns, "overruns_in_a_row": plan.max_consecutive_overruns,
    }  # fmt: skip
    return {name: asked[name] for name in WORDS if asked[name] is not None}  # type: ignore[misc]


def policies(plan: Plan) -> Policies:
    """As data for the loop."""
    from rtmms.loop.limits import Limits
    from rtmms.loop.policies import Policies

    return Policies(
        miss=plan.on_miss, overrun=plan.on_overrun, oldest_s=plan.oldest, catchup=plan.catchup,
        limits=Limits(**limits(plan)), grace_s=plan.grace,
    )  # fmt: skip


def told(plan: Plan) -> dict[str, Any]:
    """For the log: the policies with everything that was asked of them."""
    return {
        "miss": plan.on_miss, "overrun": plan.on_overrun, "oldest_s": plan.oldest, "catchup": plan.catchup,
        "limits": limits(plan), "grace_s": plan.grace,
    }  # fmt: skip
