"""Case of a study from a run's options: those that determine the numbers, or an error that names the option.

`rtmms sweep` and `rtmms envelope` read a scenario here. The declaration of an option (rtmms.scenario.run_options)
states whether a study carries it; a new option is refused where it differs from its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError
from rtmms.base.terminal import print_text
from rtmms.scenario.run_options import Option, StudyUse, run_options

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.scenario import Scenario
    from rtmms.studies.sweep_study import Base


def why_not(option: Option, value: Any) -> str:
    """Return why a study does not carry an option of `run` with this value of a scenario.

    Parameters
    ----------
    option : Option
        The option.
    value : Any
        Its value.

    Returns
    -------
    str
        '' where a study carries it.
    """
    if option.study is not StudyUse.REFUSED or value == ("lockstep" if option.name == "mode" else option.default):
        return ""
    return option.reason


def scenario_case(what: str, controllers: tuple[str, ...] | None, typed: Mapping[str, Any]) -> tuple[Base, Scenario]:
    """Read a scenario as one case of a study.

    Parameters
    ----------
    what : str
        The file.
    controllers : tuple[str, ...] | None
        Controllers of the command line; None where it names none.
    typed : Mapping[str, Any]
        Options of the command line, which replace those of the scenario.

    Returns
    -------
    tuple[Base, Scenario]
        The case, and the scenario.

    Raises
    ------
    ModelError
        An entry is wrong, or a study does not carry it; the message has file and line.
    """
    from rtmms.cli.running.plan import plan
    from rtmms.cli.running.scenario import check_peers, check_times, links_of, merge_options, scenario

    result, options = scenario(what), run_options()
    if result.bridges:
        raise result.fault(f"[[bridge]]: {options['bridges'].reason}", "bridge", 0)
    for name, value in result.options.items():
        reason = why_not(options[name], value)
        if reason and name not in typed:
            raise result.fault(f"{name}: {reason}", name)
    _name_left_out(result)
    option_values = merge_options(result, {**defaults(), **typed}, typed)
    option_values |= {
        name: option.default for name, option in options.items() if option.study in (StudyUse.FILE, StudyUse.MACHINE)
    }
    option_values["mode"] = "lockstep"
    check_times(result, float(option_values["duration"]))
    check_peers(result)
    faults = [name for event in result.events for name in event.values if name.startswith("fault.")]
    try:
        chosen = result.controllers if controllers is None else controllers
        asked = plan(result.robot, option_values, chosen, result.robots, faults)
        links = links_of(result, asked)
    except ModelError as fault:
        raise ModelError(result.located(str(fault))) from None
    base = case_of(replace(asked, parameters={**result.parameters, **asked.parameters}))
    return replace(base, over=dict(result.sensors), events=result.events, links=links, where=str(result.path)), result


def robot_case(robot: str, controllers: tuple[str, ...] | None, typed: Mapping[str, Any]) -> Base:
    """Read a robot and the words of a command line as one case of a study.

    Parameters
    ----------
    robot : str
        The robot.
    controllers : tuple[str, ...] | None
        Controllers of the command line; None where it names none.
    typed : Mapping[str, Any]
        Options of the command line.

    Returns
    -------
    Base
        The case.

    Raises
    ------
    ModelError
        A word is wrong.
    """
    from rtmms.cli.running.plan import plan

    return case_of(plan(robot, {**defaults(), **typed, "mode": "lockstep"}, controllers))


def defaults() -> dict[str, Any]:
    """Return the options of `run` that a plan has, each with its default.

    Returns
    -------
    dict[str, Any]
        Defaults by name.
    """
    return {name: run_option.default for name, run_option in run_options().items() if name != "controllers"}


def case_of(asked: Plan) -> Base:
    """Return the case of a study from the plan of one run.

    Parameters
    ----------
    asked : Plan
        The plan.

    Returns
    -------
    Base
        The case.
    """
    from rtmms.studies.sweep_study import Base

    options = {
        run_option.field: getattr(asked, run_option.field)
        for run_option in run_options().values()
        if run_option.study is StudyUse.CARRIED
    }
    return Base(asked.robot, **options)


def check_table(scenario: Scenario, asked: Plan) -> None:
    """Check the table [sweep] of a scenario, which a single run does not use.

    Parameters
    ----------
    scenario : Scenario
        The scenario.
    asked : Plan
        The plan of the run.

    Raises
    ------
    ModelError
        The table is wrong.
    """
    if scenario.sweep:
        from rtmms.studies.sweep_study import read_study

        over = () if scenario.sweep.get("over") else ("seed=0,1",)  # what differs may stand on the command line
        read_study(str(scenario.path), case_of(asked), scenario.sweep, over, None, None, ())


def _name_left_out(scenario: Scenario) -> None:
    """Print which files of a single run the study does not write."""
    names = [
        run_option.name
        for run_option in run_options().values()
        if run_option.study is StudyUse.FILE and run_option.name in scenario.options
    ]
    if names:
        print_text(
            f"rtmms: {scenario.path}: {', '.join(names)}: ignored, as only single runs write these files, not studies",
            err=True,
        )
