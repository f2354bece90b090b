"""rtmms run, rtmms serve: a plant, its controllers, a display, a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from rtmms.base.contract import TIMED
from rtmms.base.errors import ModelError
from rtmms.cli.option_types import Installed, given_options
from rtmms.cli.running.plan import command_options, plan
from rtmms.cli.running.several import robots_of_command
from rtmms.plant.loading import WORLD
from rtmms.scenario.run_options import run_options

# rtmms run: a plant, its controllers, a display, a report.


@click.command()
@click.argument("robots", type=Installed("rtmms.plants"), metavar="[ROBOT]...", nargs=-1)
@command_options("run")
@click.pass_context
def run(
    context: click.Context, /, robots: tuple[str, ...], controllers: tuple[str, ...], from_: str | None, **options: Any,
) -> int:  # fmt: skip
    """Run ROBOT with its controllers, each in a process of its own.

    ROBOT is a name of `rtmms list robots`, a FILE.urdf, FILE.xml (MJCF), FILE.fmu or FILE.py:NAME, or a scenario
    FILE.toml. Options on the command line replace those of a scenario.

    Several robots run on one clock: `rtmms run manta manta eel`, or with names `leader=manta follower=manta`. Without
    names they are manta_1, manta_2, and eel. --set manta_1.KEY=VALUE sets a parameter of one robot, and --controller
    NAME:robot=manta_1 assigns a controller to it.

    With --from a run goes on from a moment of a log (run --log), with its robot, which need not be named, and its
    parameters, sensors, seed, controllers, mode and rate, but for what is given: another controller, --set KEY=VALUE or
    a fault, --set fault.TARGET=WORD, from that moment on.
    """
    from rtmms.cli.running.session import Session

    robot = robots[0] if robots else None
    if from_ is not None:
        if len(robots) > 1:
            raise click.UsageError("--from: expected at most one ROBOT, as the log names the robots")
        return _from(context, from_, robot, controllers, options)
    if robot is None:
        raise click.UsageError("Missing argument 'ROBOT'.")
    if options["trust_log"]:
        raise click.UsageError("--trust-log: expected --from LOG@SECONDS with it")
    if len(robots) > 1 or "=" in robot:
        return _several(robots, controllers, options)
    if robot.endswith(".toml"):
        return _scripted(context, robot, controllers, options)
    from rtmms.cli.running.scenario import check_words

    asked = plan(robot, options, driving(controllers, None))
    check_words(asked.controllers, asked.bridges)
    return Session(asked).execute()


def _several(robots: tuple[str, ...], controllers: tuple[str, ...], options: dict[str, Any]) -> int:
    from rtmms.cli.running.scenario import check_words
    from rtmms.cli.running.session import Session

    asked = plan(WORLD, options, driving(controllers, None), robots_of_command(robots))
    check_words(asked.controllers, asked.bridges)
    return Session(asked).execute()


def driving(controllers: tuple[str, ...], unsaid: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the controllers of the command line; where it has none, `unsaid`.

    Parameters
    ----------
    controllers : tuple[str, ...]
        Words of the command line; 'none' for none.
    unsaid : tuple[str, ...] | None
        Words of the scenario, or None.

    Returns
    -------
    tuple[str, ...] | None
        Words of the controllers.

    Raises
    ------
    UsageError
        'none' has another word beside it.
    """
    if "none" not in controllers:
        return controllers or unsaid
    if len(controllers) > 1:
        raise click.UsageError("--controller none: expected no other --controller with it")
    return ()


def _from(
    context: click.Context, word: str, robot: str | None, controllers: tuple[str, ...], options: dict[str, Any]
) -> int:
    from rtmms.cli.running.branching import parent_run
    from rtmms.cli.running.scenario import check_words
    from rtmms.cli.running.session import Session

    robot, options, chosen = parent_run(word, robot, options, given_options(context), driving(controllers, None))
    asked = plan(robot, options, chosen)
    check_words(asked.controllers, asked.bridges)
    return Session(asked).execute()


def _scripted(context: click.Context, file: str, controllers: tuple[str, ...], option_values: dict[str, Any]) -> int:
    from rtmms.cli.running.one_case import check_table
    from rtmms.cli.running.scenario import check_peers, check_times, links_of, merge_options, scenario
    from rtmms.cli.running.session import Session

    result = scenario(file)
    typed = given_options(context)
    option_values = merge_options(result, option_values, typed)
    if "mode" in typed and option_values["mode"] not in TIMED:  # what the file has of its own mode's schedule
        options = [
            run_option for run_option in run_options().values() if run_option.timed and run_option.name not in typed
        ]
        option_values.update({option.name: option.default for option in options})
    check_times(result, option_values["duration"])
    check_peers(result, typed)
    try:
        faults = [name for event in result.events for name in event.values if name.startswith("fault.")]
        asked = plan(result.robot, option_values, driving(controllers, result.controllers), result.robots, faults)
        check_table(result, asked)
        parameters, links = {**result.parameters, **asked.parameters}, links_of(result, asked)
        return Session(replace(asked, parameters=parameters, links=links, scenario=result)).execute()
    except ModelError as fault:
        raise ModelError(result.located(str(fault))) from None


# rtmms serve: the plant alone, for controllers that others start.


@click.command()
@click.argument("robots", type=Installed("rtmms.plants"), metavar="ROBOT...", nargs=-1, required=True)
@command_options("serve")
def serve(robots: tuple[str, ...], **options: Any) -> int:
    """Serve ROBOT to controllers started elsewhere; several on one clock.

    In lockstep, step 0 waits for the first claim.
    """
    from rtmms.cli.running.scenario import check_words
    from rtmms.cli.running.session import Session

    several = len(robots) > 1 or "=" in robots[0]
    options = options | {"wait_for_claim": options["mode"] == "lockstep", "may_move": False, "served": True}
    asked = plan(WORLD, options, (), robots_of_command(robots)) if several else plan(robots[0], options)
    check_words((), asked.bridges)
    return Session(asked).execute()
