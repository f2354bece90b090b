"""rtmms run: a plant, its controllers, a display, a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rtmms.cli.running.plan import plan, simulation
from rtmms.cli.words import Installed, Number
from rtmms.errors import ModelError


@click.command()
@click.argument("robot", type=Installed("rtmms.plants"))
@click.option("--controller", "controllers", multiple=True, type=Installed("rtmms.controllers"),
              metavar="NAME[:KEY=VALUE,...]",
              help="A controller, each in a process of its own; may be repeated; 'none' for none.")  # fmt: skip
@click.option("--duration", type=Number("s"), default=20.0, help="Simulated time (default 20).")
@simulation
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Draw the run.")
@click.option("--trace", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.npz",
              help="Keep every step's command, for rtmms replay.")  # fmt: skip
@click.option("--estimate", is_flag=True, help="Run the estimator beside the plant; the report says how wrong it was.")
@click.option("--tracking-from", type=Number("s", zero=True), default=0.0,
              help="Simulated time from which distances from set-points count (default 0).")  # fmt: skip
@click.pass_context
def run(context: click.Context, /, robot: str, controllers: tuple[str, ...], **words: Any) -> int:
    """Run ROBOT with its controllers, each in a process of its own.

    ROBOT is a name of `rtmms list robots`, a FILE.urdf, FILE.fmu or FILE.py:NAME, or a scenario FILE.toml. Options on
    the command line replace those of a scenario.
    """
    from rtmms.cli.running.session import Session

    if robot.endswith(".toml"):
        return _scripted(context, robot, controllers, words)
    from rtmms.cli.running.scenario import check_words

    asked = plan(robot, words, _driving(controllers, None))
    check_words(asked.controllers, asked.bridges)
    return Session(asked).execute()


def _driving(controllers: tuple[str, ...], unsaid: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Those of the command line; where it says nothing, `unsaid`."""
    if "none" not in controllers:
        return controllers or unsaid
    if len(controllers) > 1:
        raise click.UsageError("--controller none: stands alone")
    return ()


def _scripted(context: click.Context, file: str, controllers: tuple[str, ...], words: dict[str, Any]) -> int:
    from rtmms.cli.running.scenario import check_peers, check_times, merged, scenario
    from rtmms.cli.running.session import Session

    found = scenario(file, context.command)
    source = click.core.ParameterSource.COMMANDLINE
    typed = {name for name in context.params if context.get_parameter_source(name) is source}
    words = merged(found, words, typed, context.command)
    check_times(found, words["duration"])
    check_peers(found)
    try:
        asked = plan(found.robot, words, _driving(controllers, found.controllers))
        parameters = {**found.parameters, **asked.parameters}
        return Session(replace(asked, parameters=parameters, scenario=found)).execute()
    except ModelError as fault:
        raise ModelError(found.located(str(fault))) from None
