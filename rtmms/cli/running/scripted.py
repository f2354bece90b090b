"""A scenario file as the words of a command line: what stands on the line itself wins."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from rtmms.cli.words import Number
from rtmms.errors import ModelError, UnknownNameError
from rtmms.loop.agenda import Agenda, Due
from rtmms.plant import Plant, Tunable
from rtmms.scenario import Event, Scenario, read
from rtmms.user_file import called, split_word


def scenario(path: str, command: click.Command) -> Scenario:
    """The scenario in the file, its options held to those of `run`. ModelError with file and line."""
    known = {param.name: param for param in command.params if param.name is not None and param.name != "robot"}
    found = read(Path(path), known)
    for name, value in found.options.items():
        _check(found, name, value, known[name])
    _check_events(found)
    return found


def merged(found: Scenario, words: dict[str, Any], typed: Collection[str], command: click.Command) -> dict[str, Any]:
    """The words of a run: of the scenario, but for those that were typed.  typed: names of options on the line."""
    known = {param.name: param for param in command.params if param.name is not None}
    out = dict(words)
    for name, value in found.options.items():
        if name not in typed:
            out[name] = value if isinstance(value, bool) else known[name].type.convert(str(value), known[name], None)
    if not words.get("bridges"):
        out["bridges"] = found.bridges
    return out


def check_times(found: Scenario, duration: float | None) -> None:
    """That each event comes before the end; ModelError."""
    for event in found.events:
        if duration is not None and event.at_s >= duration:
            place = f"{found.path}:{event.line}: event at {event.at_s:g} s"
            raise ModelError(f"{place}: expected a time before the end, {duration:g} s")


def agenda(events: tuple[Event, ...], plant: Plant, controllers: tuple[str, ...], where: str) -> Agenda:
    """What the events set, at the step that begins nearest to their time; ModelError for what the plant has not."""
    from rtmms.cli.running.beforehand import check_plant_event

    acts, known = [], plant.settable if isinstance(plant, Tunable) else None
    for event in events:
        owners: dict[str, dict[str, Any]] = {}
        for name, value in event.values.items():
            owners.setdefault(_owner(name, controllers), {})[name] = value
        step, told = round(event.at_s / plant.dt), f"{where}:{event.line}: event at {event.at_s:g} s"
        for name, value in owners.get("", {}).items():
            if name.startswith("fault."):
                _check_fault(name, value, plant, told)
            elif known is None or name in known:
                try:
                    check_plant_event(name, value, plant)
                except ModelError as fault:
                    raise ModelError(f"{told}: {fault}") from None
            if known is not None and name not in known:
                raise ModelError(f"{told}: {UnknownNameError('parameter that can change while it runs', name, known)}")
        acts += [Due(step, owner, values, told) for owner, values in owners.items()]
    return Agenda(acts)


def _check_fault(name: str, value: Any, plant: Plant, told: str) -> None:
    """That the word is a fault of that sensor, actuator or fin; ModelError."""
    from rtmms.sensing.faults import check_fault

    try:
        check_fault(name.removeprefix("fault."), value, plant)
    except ModelError as fault:
        raise ModelError(f"{told}: {fault}") from None


def _owner(name: str, controllers: tuple[str, ...]) -> str:
    first = name.partition(".")[0]
    return first if first in _called(controllers) else ""


def _called(controllers: tuple[str, ...]) -> list[str]:
    return [called(split_word(word)[0]) for word in controllers]


def _check(found: Scenario, name: str, value: Any, param: click.Parameter) -> None:
    flag = isinstance(param, click.Option) and param.is_flag
    numeric = isinstance(param.type, (Number, click.IntRange))
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if flag:
        right, expected = isinstance(value, bool), "true or false"
    elif numeric:
        right, expected = number, "a number"
    else:
        right, expected = isinstance(value, str) or (name == "priority" and number), "a text"
    if not right:
        raise found.fault(f"{name}: expected {expected}, got {value!r}", name)
    if not flag:
        try:
            param.type.convert(str(value), param, None)
        except click.BadParameter as fault:
            raise found.fault(f"{name}: {fault.message}", name) from None


def _check_events(found: Scenario) -> None:
    names = _called(found.controllers or ())
    for event in found.events:
        place = f"{found.path}:{event.line}: event at {event.at_s:g} s"
        for name in event.values:
            owner, dot, _ = name.partition(".")
            if dot and owner not in names and owner != "fault":
                raise ModelError(f"{place}: {UnknownNameError('controller', owner, names)}")
