"""What a run does about lateness, from its words: options, policies, and what the report says of the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rtmms.cli.words import Near, Number, options
from rtmms.loop.limits import WORDS
from rtmms.loop.names import MISS, OVERRUN

if TYPE_CHECKING:
    from rtmms.cli.plan import Plan
    from rtmms.loop.policies import Policies

_COUNT = click.IntRange(min=0)

lateness = options(
    click.option("--on-miss", type=Near("miss policy", MISS), default="hold", help="Stands in for a missing command."),
    click.option("--on-overrun", type=Near("overrun policy", OVERRUN), default="skip",
                 help="What the schedule does when a step took longer than its period."),
    click.option("--oldest", type=Number("s"), default=0.5, help="Age at which a held value goes home (default 0.5)."),
    click.option("--catchup", type=click.IntRange(min=1), default=5, help="Most steps catchup may owe (default 5)."),
    click.option("--max-misses", type=_COUNT, metavar="N", help="End the run at more misses than that."),
    click.option("--max-consecutive-misses", type=_COUNT, metavar="N", help="The same, in a row."),
    click.option("--max-overruns", type=_COUNT, metavar="N", help="End the run at more overruns than that."),
    click.option("--max-consecutive-overruns", type=_COUNT, metavar="N", help="The same, in a row."),
    click.option("--grace", type=Number("s", zero=True), default=0.0,
                 help="Time from the start in which neither the limits nor abort act (default 0)."),
)  # fmt: skip


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
