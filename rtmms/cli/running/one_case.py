"""What a case of a study takes of a run's options: all that decides the numbers, or an error that names the option.

`rtmms sweep` and `rtmms envelope` read a scenario here. An option of `run` that stands in none of the tables below is
refused where it differs from its default: a new option is refused until it is carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from rtmms.errors import ModelError
from rtmms.terminal import print_text

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.scenario import Scenario
    from rtmms.sweep.study import Base

CARRIED = (
    "robots", "controllers", "links", "duration", "dt", "coupling", "set_", "preset", "sensors", "seed", "estimate",
    "tracking_from",
)  # fmt: skip
"""Options that decide the numbers of a case, by the names that click has for them."""

OF_THE_MACHINE = (
    "priority", "affinity", "keys", "exchange", "step", "telemetry", "telemetry_hz", "as_json", "quiet", "force",
)  # fmt: skip
"""Options that cannot change the numbers of a run in lockstep: cores, endpoints, and what is printed."""

OF_ONE_RUN = ("log", "trace", "figure")
"""Files of a single run, which a study does not write: a sentence says so."""

LOCKSTEP = "a case runs in lockstep, without a schedule"
REASONS: Mapping[str, str] = {
    "mode": "a case runs in lockstep; expected mode = \"lockstep\", or no mode",
    "bridges": "a study has no peers but its controllers; leave it out",
    "view": "a study has no peers but its controllers; leave it out",
    "degrade": f"{LOCKSTEP}: the plant stays as it is; leave it out",
    "peer_failure": "a controller that fails makes a row that says so; leave it out",
    **dict.fromkeys(("rate", "deadline", "on_overrun", "catchup", "max_overruns", "max_consecutive_overruns"),
                    f"{LOCKSTEP}, and no step overruns; leave it out"),
    **dict.fromkeys(("on_miss", "hold_timeout", "max_misses", "max_consecutive_misses", "grace"),
                    f"{LOCKSTEP}, and no command is missed; leave it out"),
}  # fmt: skip
"""Why a study does not carry an option, and what to do."""


def why_not(name: str, value: Any, default: Any) -> str:
    """Return why a study does not carry an option of `run` with this value, '' where it does.

    Parameters
    ----------
    name
        As click has it.
    value
        As the scenario has it.
    default
        The option's own.
    """
    if name in (*CARRIED, *OF_THE_MACHINE, *OF_ONE_RUN):
        return ""
    if value == ("lockstep" if name == "mode" else default):
        return ""
    return REASONS.get(name, "a study does not carry this option of `rtmms run`; leave it out")


def scenario_case(
    what: str, command: click.Command, controllers: tuple[str, ...] | None, typed: Mapping[str, Any]
) -> tuple[Base, Scenario]:
    """Read a scenario as one case of a study.

    Parameters
    ----------
    what
        The file.
    command
        `rtmms run`, whose options a scenario has.
    controllers
        Those of the command line; None where it names none.
    typed
        Options of the command line, which replace those of the scenario.

    Raises
    ------
    ModelError
        With file and line: what is wrong, or what a study does not carry.
    """
    from rtmms.cli.running.plan import plan
    from rtmms.cli.running.scenario import check_peers, check_times, links_of, merged, scenario

    found = scenario(what, command)
    usual = defaults(command)
    if found.bridges:
        raise found.fault(f"[[bridge]]: {REASONS['bridges']}", "bridge", 0)
    for name, value in found.options.items():
        reason = why_not(name, value, usual[name])
        if reason and name not in typed:
            raise found.fault(f"{name}: {reason}", name)
    _name_left_out(found)
    words = merged(found, {**usual, **typed}, typed, command)
    words |= {name: usual[name] for name in (*OF_ONE_RUN, *OF_THE_MACHINE)}
    words["mode"] = "lockstep"
    check_times(found, float(words["duration"]))
    check_peers(found)
    faults = [name for event in found.events for name in event.values if name.startswith("fault.")]
    try:
        chosen = found.controllers if controllers is None else controllers
        asked = plan(found.robot, words, chosen, found.robots, faults)
        links = links_of(found, asked)
    except ModelError as fault:
        raise ModelError(found.located(str(fault))) from None
    base = case_of(replace(asked, parameters={**found.parameters, **asked.parameters}))
    return replace(base, over=dict(found.sensors), events=found.events, links=links, where=str(found.path)), found


def robot_case(
    robot: str, command: click.Command, controllers: tuple[str, ...] | None, typed: Mapping[str, Any]
) -> Base:
    """Read a robot and the words of a command line as one case of a study. ModelError for what is wrong."""
    from rtmms.cli.running.plan import plan

    return case_of(plan(robot, {**defaults(command), **typed, "mode": "lockstep"}, controllers))


def defaults(command: click.Command) -> dict[str, Any]:
    """Return the options of `run` that a plan has, each with its default."""
    found = command.make_context("run", [], resilient_parsing=True).params
    return {name: value for name, value in found.items() if name not in ("robots", "controllers", "from_", "trust_log")}


def case_of(asked: Plan) -> Base:
    """Return what each run of a study is, of the plan of one run."""
    from rtmms.sweep.study import Base

    return Base(
        asked.robot, asked.controllers, asked.load_parameters(), asked.preset, asked.dt, asked.duration or 20.0,
        asked.seed, asked.sensors, {}, (), asked.estimate, asked.tracking_from, links=asked.links,
    )  # fmt: skip


def check_table(found: Scenario, asked: Plan) -> None:
    """Hold the table [sweep] of a scenario to what `rtmms sweep` takes; a single run does not use it. ModelError."""
    if found.sweep:
        from rtmms.sweep.study import read_study

        over = () if found.sweep.get("over") else ("seed=0,1",)  # what differs may stand on the command line
        read_study(str(found.path), case_of(asked), found.sweep, over, None, None, ())


def _name_left_out(found: Scenario) -> None:
    """Say which files of a single run the study does not write."""
    names = [name for name in OF_ONE_RUN if name in found.options]
    if names:
        print_text(f"rtmms: {found.path}: {', '.join(names)}: of a single run; the study does not write it", err=True)
