"""rtmms serve: the plant alone, for controllers that others start."""

from __future__ import annotations

from typing import Any

import click

from rtmms.cli.running.plan import plan, simulation
from rtmms.cli.words import Installed, Number


@click.command()
@click.argument("robot", type=Installed("rtmms.plants"))
@click.option("--duration", type=Number("s"), help="Simulated time (default unlimited).")
@simulation
def serve(robot: str, **words: Any) -> int:
    """Serve ROBOT to controllers started elsewhere. In lockstep, step 0 waits for the first claim."""
    from rtmms.cli.running.scenario import check_words
    from rtmms.cli.running.session import Session

    asked = plan(robot, words | {"wait_for_claim": words["mode"] == "lockstep", "may_move": False, "served": True})
    check_words((), asked.bridges)
    return Session(asked).execute()
