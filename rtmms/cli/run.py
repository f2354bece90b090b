"""rtmms run: a plant, its controllers, a display, a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rtmms.cli.running.plan import plan, simulation
from rtmms.cli.words import Number


@click.command()
@click.argument("robot")
@click.option("--controller", "controllers", multiple=True, metavar="NAME[:KEY=VALUE,...]",
              help="A controller, each in a process of its own; may be repeated; 'none' for none.")  # fmt: skip
@click.option("--duration", type=Number("s"), default=20.0, help="Simulated time (default 20).")
@simulation
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Draw the run.")
@click.option("--trace", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.npz",
              help="Keep every step's command, for rtmms replay.")  # fmt: skip
def run(robot: str, controllers: tuple[str, ...], **words: Any) -> int:
    """Run ROBOT with its controllers, each in a process of its own."""
    from rtmms.cli.running.session import Session

    if "none" in controllers:
        if len(controllers) > 1:
            raise click.UsageError("--controller none: stands alone")
        return Session(plan(robot, words, ())).execute()
    return Session(plan(robot, words, controllers or None)).execute()
