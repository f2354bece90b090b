"""rtmms serve: the plant alone, for controllers that others start."""

from __future__ import annotations

from typing import Any

import click

from rtmms.cli.running.plan import plan, simulation
from rtmms.cli.words import Number


@click.command()
@click.argument("robot")
@click.option("--duration", type=Number("s", zero=True), help="Simulated time (default unlimited).")
@simulation
@click.option("--exchange", metavar="ENDPOINT", help="Where peers say hello (default tcp://127.0.0.1:9870).")
@click.option("--step", metavar="ENDPOINT", help="Where states and commands go (default tcp://127.0.0.1:9871).")
@click.option("--telemetry", metavar="ENDPOINT", help="Where observers listen (default tcp://127.0.0.1:9872).")
def serve(robot: str, **words: Any) -> int:
    """Serve ROBOT to controllers started elsewhere. In lockstep, step 0 waits for the first claim."""
    from rtmms.cli.running.session import Session

    return Session(plan(robot, words | {"wait_for_claim": words["mode"] == "lockstep"})).execute()
