"""rtmms run: a plant, its controllers, a display, a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rtmms.cli.running.plan import plan, simulation
from rtmms.cli.running.several import numbered
from rtmms.cli.words import Installed, Number
from rtmms.contract import TIMED
from rtmms.errors import ModelError
from rtmms.plant import WORLD


@click.command()
@click.argument("robots", type=Installed("rtmms.plants"), metavar="[ROBOT]...", nargs=-1)
@click.option(
    "--from",
    "from_",
    metavar="LOG@SECONDS",
    help="Go on from that moment of a log; what is not said stays as in the log. --set acts at that moment.",
)
@click.option("--trust-log", is_flag=True, help="Run the files that the log of --from names.")
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
def run(
    context: click.Context, /, robots: tuple[str, ...], controllers: tuple[str, ...], from_: str | None,
    trust_log: bool, **words: Any,
) -> int:  # fmt: skip
    """Run ROBOT with its controllers, each in a process of its own.

    ROBOT is a name of `rtmms list robots`, a FILE.urdf, FILE.fmu or FILE.py:NAME, or a scenario FILE.toml. Options on
    the command line replace those of a scenario.

    Several robots run on one clock: `rtmms run manta manta eel`, or with names `leader=manta follower=manta`; else they
    are called one, two, three. --set one.KEY=VALUE is for one of them, --controller NAME:robot=one likewise.

    With --from a run goes on from a moment of a log (run --log), with its robot, which need not be named, and its
    parameters, sensors, seed, controllers, mode and rate, but for what is said: another controller, --set KEY=VALUE or
    a fault, --set fault.TARGET=WORD, from that moment on.
    """
    from rtmms.cli.running.session import Session

    robot = robots[0] if robots else None
    if from_ is not None:
        if len(robots) > 1:
            raise click.UsageError("--from: the log says which robots there are")
        return _from(context, from_, robot, controllers, words | {"trust_log": trust_log})
    if robot is None:
        raise click.UsageError("Missing argument 'ROBOT'.")
    if trust_log:
        raise click.UsageError("--trust-log: expected --from LOG@SECONDS beside it")
    if len(robots) > 1 or "=" in robot:
        return _several(robots, controllers, words)
    if robot.endswith(".toml"):
        return _scripted(context, robot, controllers, words)
    from rtmms.cli.running.scenario import check_words

    asked = plan(robot, words, _driving(controllers, None))
    check_words(asked.controllers, asked.bridges)
    return Session(asked).execute()


def _several(robots: tuple[str, ...], controllers: tuple[str, ...], words: dict[str, Any]) -> int:
    from rtmms.cli.running.scenario import check_words
    from rtmms.cli.running.session import Session

    asked = plan(WORLD, words, _driving(controllers, None), numbered(robots))
    check_words(asked.controllers, asked.bridges)
    return Session(asked).execute()


def _driving(controllers: tuple[str, ...], unsaid: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Those of the command line; where it says nothing, `unsaid`."""
    if "none" not in controllers:
        return controllers or unsaid
    if len(controllers) > 1:
        raise click.UsageError("--controller none: stands alone")
    return ()


def _from(
    context: click.Context, word: str, robot: str | None, controllers: tuple[str, ...], words: dict[str, Any]
) -> int:
    from rtmms.cli.running.branching import parent
    from rtmms.cli.running.scenario import check_words
    from rtmms.cli.running.session import Session

    robot, words, chosen = parent(word, robot, words, _typed(context), _driving(controllers, None))
    asked = plan(robot, words, chosen)
    check_words(asked.controllers, asked.bridges)
    return Session(asked).execute()


def _typed(context: click.Context) -> set[str]:
    """Names of the options on the command line."""
    source = click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is source}


def _scripted(context: click.Context, file: str, controllers: tuple[str, ...], words: dict[str, Any]) -> int:
    from rtmms.cli.running.one_case import check_table
    from rtmms.cli.running.scenario import check_peers, check_times, links_of, merged, scenario
    from rtmms.cli.running.session import Session

    found = scenario(file, context.command)
    typed = _typed(context)
    words = merged(found, words, typed, context.command)
    if "mode" in typed and words["mode"] not in TIMED:  # what the file says of its own mode's schedule
        words.update({name: usual for name, usual in (("rate", 1.0), ("deadline", None)) if name not in typed})
    check_times(found, words["duration"])
    check_peers(found, typed)
    try:
        faults = [name for event in found.events for name in event.values if name.startswith("fault.")]
        asked = plan(found.robot, words, _driving(controllers, found.controllers), found.robots, faults)
        check_table(found, asked)
        parameters, links = {**found.parameters, **asked.parameters}, links_of(found, asked)
        return Session(replace(asked, parameters=parameters, links=links, scenario=found)).execute()
    except ModelError as fault:
        raise ModelError(found.located(str(fault))) from None
