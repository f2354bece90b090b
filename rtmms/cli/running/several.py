"""Several robots on one clock, from a command line or a scenario: their controllers and their parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.source_declarations import fact
from rtmms.base.terminal import print_text
from rtmms.base.trust import is_file, named_robot, split_word
from rtmms.cli.option_types import check_choice
from rtmms.plant.loading import builder
from rtmms.scenario.reading import MAX_TABLE_ENTRIES
from rtmms.wire.peer.plugins import check_controller, check_robot, declared_robots

MAX_ROBOTS = MAX_TABLE_ENTRIES["robot"]
SPACING_M = 2.0
"""Distance between robots without a given place, m."""
MAX_KIND_LENGTH = 24
"""Characters of a default name before its number; a name has at most 32."""
OLD_NAMES = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
"""Default names of version 0.2 in the order of the robots; the command line accepts them for one minor version."""


def robots_of_command(arguments: Sequence[str]) -> list[dict[str, Any]]:
    """Return the robots of a command line.

    Those without a name have the name of their kind, with a number if there are several (`named`). They begin side by
    side, SPACING_M along y, the first at its own place.

    Parameters
    ----------
    arguments : Sequence[str]
        'manta' or 'leader=manta' each.

    Returns
    -------
    list[dict[str, Any]]
        A table for each.
    """
    result: list[dict[str, Any]] = []
    for k, word in enumerate(arguments):
        name, sign, robot = word.partition("=")
        result.append({"name": name, "robot": robot} if sign else {"robot": word})
        if k:
            result[-1]["aside_m"] = SPACING_M * k
    return named(result)


def named(robots: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tables of robots with a name in each.

    The default name of the only eel of a run is eel, those of two mantas are manta_1 and manta_2.

    Parameters
    ----------
    robots : Sequence[Mapping[str, Any]]
        A table for each robot; `name` is optional.

    Returns
    -------
    list[dict[str, Any]]
        The tables.
    """
    kinds = ["" if robot.get("name") else _kind(str(robot["robot"])) for robot in robots]
    names = [
        robot.get("name") or (f"{kind}_{kinds[: k + 1].count(kind)}" if kinds.count(kind) > 1 else kind)
        for k, (robot, kind) in enumerate(zip(robots, kinds, strict=True))
    ]
    return [{**robot, "name": name} for robot, name in zip(robots, names, strict=True)]


def _old_names(robots: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of robots that have their default name by their default name of version 0.2."""
    return {
        OLD_NAMES[k] if k < len(OLD_NAMES) else f"r{k + 1}": str(robot["name"]) for k, robot in enumerate(robots)
        if re.fullmatch(rf"{_kind(str(robot['robot']))}(_\d+)?", str(robot["name"]))
    }  # fmt: skip


def _kind(robot: str) -> str:
    """Return the part of a default name before the number: 'arm' of 'models/arm.urdf' and of 'mine.py:arm'."""
    name = robot.rpartition(":")[2] if ".py:" in robot else Path(robot).stem
    return re.sub(r"\W+", "_", name, flags=re.ASCII).lstrip("_0123456789")[:MAX_KIND_LENGTH] or "robot"


def with_present_names(robots: Sequence[Mapping[str, Any]], texts: Sequence[str], separator: str) -> list[str]:
    """Return words of the command line with the present names of robots; an old default name prints a warning.

    Parameters
    ----------
    robots : Sequence[Mapping[str, Any]]
        Tables of the robots (`named`).
    texts : Sequence[str]
        Words in which a robot's name may be.
    separator : str
        Pattern around the name: '{}.' at the begin of a word, or 'robot={}'.

    Returns
    -------
    list[str]
        The words.
    """
    present = {str(robot["name"]) for robot in robots}
    result = list(texts)
    for old, new in _old_names(robots).items():
        begin, _, end = separator.partition("{}")
        pattern = re.compile(rf"{begin or '^'}{old}{re.escape(end) or '(?=,|$)'}")
        if old in present or not any(pattern.search(word) for word in result):
            continue
        text = f"rtmms: robot {old} is {new} now; the next version removes the old name, or write {old}=ROBOT"
        print_text(text, err=True)
        result = [pattern.sub(f"{begin}{new}{end}", word) for word in result]
    return result


def shared_out(
    robots: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of the world: its robots, each with the values for it alone and for all.

    Parameters
    ----------
    robots : Sequence[Mapping[str, Any]]
        Tables of the robots.
    parameters : Mapping[str, Any]
        As --set has them: NAME.parameter of one robot, parameter of all.
    options : Mapping[str, Any]
        Options by name.

    Returns
    -------
    dict[str, Any]
        Parameters by name.

    Raises
    ------
    ModelError
        The number of robots, the preset or a name is wrong.
    """
    if not 0 < len(robots) <= MAX_ROBOTS:
        raise ModelError(f"expected 1 to {MAX_ROBOTS} robots, got {len(robots)}")
    if options.get("preset") is not None:
        raise ModelError("--preset: with several robots, expected preset = in each [[robot]] of a scenario")
    built = [{"profile": options.get("sensors", "ideal"), **robot} for robot in robots]
    names = [str(entry["name"]) for entry in built]
    for item in built:
        builder(item["robot"])
        check_choice(item["robot"], "coupling", options.get("coupling"))
        item["estimate"] = bool(item.get("estimate", options.get("estimate", False)))
        item["parameters"] = dict(item.get("parameters", {}))
        if options.get("coupling") is not None:
            item["parameters"].setdefault("coupling", options["coupling"])
    for_all: dict[str, Any] = {}
    keys = with_present_names(robots, list(parameters), "{}.")
    for key, value in zip(keys, parameters.values(), strict=True):
        owner, dot, parameter = key.partition(".")
        if not dot:
            for_all[key] = value
        elif owner in names:
            built[names.index(owner)]["parameters"][parameter] = value
        else:
            raise ModelError(f"--set {key}={value}: {UnknownNameError('robot', owner, names)}")
    return {"robots": built, **for_all}


def drivers(robots: Sequence[Mapping[str, Any]], controllers: Iterable[str] | None) -> tuple[str, ...]:
    """Return the words of controllers, one for each robot that it is for.

    An installed controller without a named robot drives each robot that it is written for; a user's own file gets all.

    Parameters
    ----------
    robots : Sequence[Mapping[str, Any]]
        Tables of the robots.
    controllers : Iterable[str] | None
        As they were given; None: each robot's usual one.

    Returns
    -------
    tuple[str, ...]
        Words, each with its robot.

    Raises
    ------
    ModelError
        There is no such robot, or a controller drives none of them.
    """
    kinds = {str(robot["name"]): str(robot["robot"]) for robot in robots}
    if controllers is None:
        result = [(name, fact(builder(kind).module, "CONTROLLER")) for name, kind in kinds.items()]
        return tuple(_for(str(word), name) for name, word in result if isinstance(word, str))
    built: list[str] = []
    for word in with_present_names(robots, tuple(controllers), "robot={}"):
        name, _ = split_word(word)
        check_controller(name)
        robot = named_robot(word)
        if robot:
            if robot not in kinds:
                raise ModelError(f"controller '{word}': robot: {UnknownNameError('robot', robot, kinds)}")
            check_robot(name, kinds[robot])
            built.append(word)
        elif is_file(name):
            built.append(word)
        else:
            fitting = [
                item for item, kind in kinds.items() if not declared_robots(name) or kind in declared_robots(name)
            ]
            if not fitting:
                here = ", ".join(sorted(set(kinds.values())))
                raise ModelError(
                    f"controller '{name}' drives {', '.join(declared_robots(name))}; none of them is among the "
                    f"robots of this run: {here}"
                )
            built += [_for(word, item) for item in fitting]
    return tuple(built)


def _for(word: str, robot: str) -> str:
    name, remaining = split_word(word)
    return f"{name}:{remaining},robot={robot}" if remaining else f"{name}:robot={robot}"


def failing(robots: Sequence[dict[str, Any]], faults: Iterable[str]) -> None:
    """Mark the robots in which something is to fail.

    Parameters
    ----------
    robots : Sequence[dict[str, Any]]
        Tables of the robots, changed in place.
    faults : Iterable[str]
        'fault.NAME.part', as events set them.
    """
    for name in faults:
        owner = name.removeprefix("fault.").partition(".")[0]
        for robot in robots:
            if robot["name"] == owner:
                robot["faults"] = True
