"""rtmms serve: the plant alone, for controllers that others start."""

from __future__ import annotations

from typing import Any

import click

from rtmms.cli.running.plan import command_options, plan
from rtmms.cli.running.several import numbered
from rtmms.cli.words import Installed
from rtmms.plant import WORLD


@click.command()
@click.argument("robots", type=Installed("rtmms.plants"), metavar="ROBOT...", nargs=-1, required=True)
@command_options("serve")
def serve(robots: tuple[str, ...], **words: Any) -> int:
    """Serve ROBOT to controllers started elsewhere; several on one clock. In lockstep, step 0 waits for the first
    claim."""
    from rtmms.cli.running.scenario import check_words
    from rtmms.cli.running.session import Session

    several = len(robots) > 1 or "=" in robots[0]
    words = words | {"wait_for_claim": words["mode"] == "lockstep", "may_move": False, "served": True}
    asked = plan(WORLD, words, (), numbered(robots)) if several else plan(robots[0], words)
    check_words((), asked.bridges)
    return Session(asked).execute()
