"""Scenario file as the words of a command line, and its checks before the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.local_addresses import refuse_endpoint
from rtmms.base.trust import is_file, owner_of, peer_name, permit_below, split_word
from rtmms.cli.option_types import type_of
from rtmms.cli.running.report import add_outcome, begins, by_robot
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import HasRobots
from rtmms.plant.protocol import Plant
from rtmms.scenario import Scenario, read
from rtmms.scenario.expectations import has
from rtmms.scenario.links import refuse_unknown
from rtmms.scenario.plant import called_names, own_controllers
from rtmms.scenario.run_options import Option, run_options

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.impairment import Impairment


def scenario(path: str) -> Scenario:
    """Read a scenario, and check its options as those of `run`.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    Scenario
        The scenario.

    Raises
    ------
    ModelError
        With file and line.
    """
    result = read(Path(path))
    permit_below(Path(path).expanduser().parent)
    for name, value in result.options.items():
        _check(result, run_options()[name], value)
    _check_events(result)
    return result


def merge_options(scenario_data: Scenario, options: dict[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """Return the words of a run: those of the scenario, except for typed ones.

    Parameters
    ----------
    scenario_data : Scenario
        The scenario.
    options : dict[str, Any]
        Words of the command line.
    typed : Collection[str]
        Names of the options on the command line.

    Returns
    -------
    dict[str, Any]
        Words by name.
    """
    out = dict(options)
    for name, value in scenario_data.options.items():
        if name not in typed:
            out[name] = (
                value if isinstance(value, bool) else type_of(run_options()[name]).convert(str(value), None, None)
            )
    if not options.get("bridges"):
        out["bridges"] = scenario_data.bridges
    return out


def links_of(scenario_data: Scenario, asked: Plan) -> tuple[Impairment, ...]:
    """Return the impaired links of the run: the scenario's, except for controllers whose links the command line has.

    Parameters
    ----------
    scenario_data : Scenario
        The scenario.
    asked : Plan
        The plan.

    Returns
    -------
    tuple[Impairment, ...]
        The links.

    Raises
    ------
    ModelError
        A controller does not belong to the run; with file and line.
    """
    refuse_unknown(
        scenario_data.links, called_names(asked.controllers),
        lambda k, key, text: scenario_data.fault(f"link: {key}: {text}", "link", k, key),
    )  # fmt: skip
    typed = {link.controller for link in asked.links}
    return (*asked.links, *(link for link in scenario_data.links if link.controller not in typed))


def check_times(scenario_data: Scenario, duration: float | None) -> None:
    """Check that each event comes before the end.

    Parameters
    ----------
    scenario_data : Scenario
        The scenario.
    duration : float | None
        Simulated time, s; None: no end.

    Raises
    ------
    ModelError
        An event does not.
    """
    for event in scenario_data.events:
        if duration is not None and event.at_s >= duration:
            place = f"{scenario_data.path}:{event.line}: event at {event.at_s:g} s"
            raise ModelError(f"{place}: expected a time before the end of the run, {duration:g} s")


def _check(scenario_data: Scenario, option: Option, value: Any) -> None:
    """Raise ModelError with file and line for a wrong value of an option, or one that a scenario may not have."""
    name, kind = option.file_key, option.value_type
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is bool:
        right, expected = isinstance(value, bool), "true or false"
    elif kind is int:
        right, expected = isinstance(value, int) and number, "a whole number"
    elif kind is float:
        right, expected = number, "a number"
    else:
        right, expected = isinstance(value, str) or ((option.number or option.limit) and number), "a text"
    if not right:
        raise scenario_data.fault(f"{name}: expected {expected}, got {value!r}", name)
    try:
        if kind is not bool:
            type_of(option).convert(str(value), None, None)
        if option.is_endpoint:
            refuse_endpoint(name, str(value))
    except click.BadParameter as fault:
        raise scenario_data.fault(f"{name}: {fault.message}", name) from None
    except ModelError as fault:
        raise scenario_data.fault(str(fault), name) from None


def _drivers(scenario_data: Scenario) -> tuple[str, ...]:
    """Return the scenario's controllers, or the robot's own where it names none."""
    if scenario_data.controllers is None and not scenario_data.robots:
        return own_controllers(scenario_data.robot)
    return tuple(scenario_data.controllers or ())


def _check_events(scenario_data: Scenario) -> None:
    if not scenario_data.events:
        return
    names = called_names(_drivers(scenario_data))
    for event in scenario_data.events:
        place = f"{scenario_data.path}:{event.line}: event at {event.at_s:g} s"
        for name in event.values:
            owner, dot, _ = name.partition(".")
            robots = [robot["name"] for robot in scenario_data.robots]
            if dot and not owner_of(name, [*names, *robots]) and owner != "fault":
                raise ModelError(f"{place}: {UnknownNameError('controller', owner, names)}")


# --- What is wrong in a scenario, reported before it runs: its peers' parameters, what its events set, what it expects.

LATER = (
    "accuracy",
    "realtime",
    "stall_detector",
    "witness",
    "memory",
    "log",
    "warnings",
    "figure",
    "machine",
    "events",
    "expect",
)
"""Parts of a report that are known at its end only."""


def check_words(
    controllers: Iterable[str], bridges: Iterable[str],
    refused: Callable[[str, int, ModelError], ModelError] = lambda kind, k, fault: fault,
    judge: Callable[[Any, Mapping[str, str], str], None] = lambda built, files, word: None,
) -> dict[str, Any]:  # fmt: skip
    """Build each controller and bridge with its parameters, before anything is started.

    Those in a user's own files are only looked up.

    Parameters
    ----------
    controllers, bridges : Iterable[str]
        Words.
    refused : Callable[[str, int, ModelError], ModelError], optional
        Makes the error from kind, number and fault.
    judge : Callable[[Any, Mapping[str, str], str], None], optional
        Raises ModelError for a plug-in, from its files (with their kinds) and its words.

    Returns
    -------
    dict[str, Any]
        Controllers by name.

    Raises
    ------
    ModelError
        A word is wrong, or a controller is given twice.
    """
    from rtmms.bridging.config import bridge_files, check_bridge, load_bridge
    from rtmms.bridging.config import construct as make_bridge
    from rtmms.wire.peer.plugins import build, check_controller, controller_files

    built: dict[str, Any] = {}
    for k, word in enumerate(controllers):
        name = split_word(word)[0]
        try:
            check_controller(name)
            if not is_file(name):
                called, item = peer_name(word), build(word)
                judge(item, controller_files(type(item)), word)
                if called in built and item.claim and item.claim == built[called].claim:
                    raise ModelError(f"controller '{called}' is given twice, and both drive {', '.join(item.claim)}")
                built.setdefault(called, item)
        except ModelError as fault:
            raise refused("controller", k, fault) from None
        except Exception:  # of its own code: its own process reports it, with its lines
            continue
    for k, word in enumerate(bridges):
        name, options = split_words(word)
        try:
            check_bridge(name)
            if not is_file(name):
                made_bridge = make_bridge(load_bridge(name), "bridge", name, options)
                judge(made_bridge, bridge_files(type(made_bridge)), word)
        except ModelError as fault:
            raise refused("bridge", k, fault) from None
        except Exception:
            continue
    return built


def check_peers(scenario_data: Scenario, typed: Collection[str] = ()) -> None:
    """Check the scenario's controllers and bridges, and each controller with the values that events set.

    Parameters
    ----------
    scenario_data : Scenario
        The scenario.
    typed : Collection[str], default ()
        Options on the command line: where they name the bridges or controllers, those of the scenario do not run.

    Raises
    ------
    ModelError
        With file and line.
    """
    folders = (Path.cwd().resolve(), scenario_data.path.resolve().parent)

    def judge(created: Any, files: Mapping[str, str], word: str) -> None:
        if ("bridges" if _is_bridge(created) else "controllers") not in typed:
            _judge_foreign(created, files, word, folders)

    built = check_words(
        _drivers(scenario_data),
        scenario_data.bridges,
        lambda kind, k, fault: _located(scenario_data, kind, k, fault),
        judge,
    )
    for event in scenario_data.events:
        for name, value in event.values.items():
            owner = owner_of(name, built)
            if owner:
                refusal = _refused(built[owner], owner, name.removeprefix(owner + "."), value)
                if refusal:
                    raise ModelError(f"{scenario_data.path}:{event.line}: event at {event.at_s:g} s: {refusal}")


def _is_bridge(built: Any) -> bool:
    from rtmms.bridging.bridge import Bridge

    return isinstance(built, Bridge)


def _judge_foreign(built: Any, files: Mapping[str, str], word: str, folders: Collection[Path]) -> None:
    """Raise ModelError for a scenario's bridge or controller that reaches beyond this machine.

    It is also raised for one that names data outside the folders that a scenario may use. Values of its own file
    (`config=FILE.toml`) count, too: they are in the built plug-in. Files of code are checked at their opening.
    """
    option = "--bridge" if _is_bridge(built) else "--controller"
    for key, text in built.beyond().items() if _is_bridge(built) else ():
        raise ModelError(
            f"{key}: expected a value that reaches no other machine, as in every scenario, got '{text}'; give it on "
            f"the command line ({option})"
        )
    options = dict(part.partition("=")[::2] for part in word.partition(":")[2].split(","))
    for key, kind in files.items():
        file = options.get("config", "") if key == "config" else getattr(built, key, "")
        if not isinstance(file, str) or not file or kind in ("device", "code"):
            continue
        path = (Path.cwd() / file).resolve()
        if file.startswith("~") or not any(path.is_relative_to(folder) for folder in folders):
            raise ModelError(
                f"{key}: expected a file in the folder that the scenario runs in, or below it, got '{file}'; name "
                f"other files on the command line ({option})"
            )


def split_words(spec: str) -> tuple[str, dict[str, str]]:
    """Split the words of a bridge into its name and its parameters.

    Parameters
    ----------
    spec : str
        The words.

    Returns
    -------
    tuple[str, dict[str, str]]
        Name and parameters.
    """
    from rtmms.wire.peer.plugins import split_spec

    return split_spec(spec, "bridge")


def _refused(controller: Any, owner: str, key: str, value: Any) -> str:
    """Return why a controller does not accept a value, '' where it does; it has the value then."""
    from rtmms.wire.peer.attachment import TunableParameters
    from rtmms.wire.peer.controller import declaration_of

    known = tuple(declaration_of(controller, "tunable_parameters"))
    if key not in known:
        return str(UnknownNameError(f"parameter of {owner} that can change while it runs", key, known))
    tunable = TunableParameters({name: getattr(controller, name) for name in known}, controller.change)
    try:
        answer = tunable.take({"values": {key: value}})
    except Exception:  # it wants to have been started for that: then it judges when the time has come
        return ""
    return "" if answer["ok"] else str(answer["error"])


def _located(scenario_data: Scenario, kind: str, k: int, fault: ModelError) -> ModelError:
    """Return the fault with the line of the key that the text names, or of the table."""
    text = str(fault)
    keys = [str(place[2]) for place in scenario_data.places if place[:2] == (kind, k) and len(place) == 3]
    named = [key for key in keys if key not in ("name", "file") and re.search(rf"\b{re.escape(key)}\b", text)]
    whole = [key for key in keys if key in ("name", "file")]
    return scenario_data.fault(text, kind, k, *(named or whole)[:1])


def check_expectations(scenario_data: Scenario, plant: Plant, report: Mapping[str, Any]) -> None:
    """Check that the report will have each expected name; near misses are listed.

    Parameters
    ----------
    scenario_data : Scenario
        The scenario.
    plant : Plant
        The plant.
    report : Mapping[str, Any]
        The report before the run.

    Raises
    ------
    ModelError
        With file and line.
    """
    import numpy as np

    from rtmms.loop.impairment import impaired_links
    from rtmms.loop.loop import Outcome
    from rtmms.loop.statistics import Statistics
    from rtmms.loop.trace import CROSS, QUANTITIES

    observed = {name: np.asarray(value, dtype=np.float64) for name, value in plant.observe().items()}
    soon: dict[str, Any] = {"schedule": {}, "tracking": {}}
    links = {
        name: impaired_link.report() for name, impaired_link in impaired_links(scenario_data.links, plant.dt, 0).items()
    }
    add_outcome(soon, Outcome("", "", 0, 0.0, 0.0, observed), Statistics(), {"links": links})
    owners = [f"{name}." for name in plant.robots] if isinstance(plant, HasRobots) else [""]
    soon["tracking"] = {
        owner + name: dict.fromkeys(("rms", "max", "mean", "settled_s"), 0.0)
        for owner in owners for name in (*QUANTITIES, CROSS)
    }  # fmt: skip
    parts = ("position_m", "velocity_m_s", "attitude_deg")
    soon["estimate"] = {name: {"rms": 0.0, "nees": 0.0} for name in parts}
    summary = _summary(plant, observed)
    soon["summary"] = dict.fromkeys(summary or (), 0.0)
    if isinstance(plant, HasRobots):
        soon["robots"] = by_robot(soon, plant, begins(plant))
    soon = _filled(soon)
    heads = {*soon, *report, *LATER}
    for item in scenario_data.expect:
        head, dot, _ = item.source.partition(".")
        later = (head in heads and head not in soon) if dot else (item.source in heads or summary is None)
        if later or has(soon, item.source) or (head == "schedule" and dot):
            continue
        if has(soon, f"{item.source}[0]"):
            raise scenario_data.fault(
                f"expect: '{item.source}' has several numbers; expected one of them, such as {item.source}[0]",
                "expect", item.name,
            )  # fmt: skip
        near = get_close_matches(item.source.partition("[")[0], sorted(_names(soon)), 3)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise scenario_data.fault(f"expect: the report will have no '{item.source}'{meant}", "expect", item.name)


def _summary(plant: Plant, observed: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the names of the plant's summary, from a moment at rest; None where it cannot be computed."""
    about = describe_plant(plant)
    if about.summarise is None:
        return ()
    import numpy as np

    time = np.arange(16, dtype=np.float64) * plant.dt
    try:
        return tuple(about.summarise(time, {name: np.stack([observed[name]] * 16) for name in about.trace_outputs}))
    except Exception:  # a plant of a user's own may need a motion
        return None


def _filled(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with numbers for unknown values."""
    return {
        str(key): _filled(value) if isinstance(value, Mapping) else 0.0 if value is None else value
        for key, value in table.items()
    }


def _names(table: Mapping[str, Any], before: str = "") -> Iterable[str]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _names(value, "" if key == "summary" else f"{before}{key}.")
        else:
            yield before + str(key)
