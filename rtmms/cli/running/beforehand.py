"""What a scenario has wrong, told before it runs: its peers' parameters, what its events set, what it expects."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from rtmms.cli.running.final import add_outcome
from rtmms.errors import ModelError, UnknownNameError
from rtmms.loop.loop import Outcome
from rtmms.loop.statistics import Statistics
from rtmms.loop.tracking import CROSS, QUANTITIES
from rtmms.plant import Described, Plant, Summarised, bare
from rtmms.scenario import Scenario
from rtmms.scenario.expect import has
from rtmms.user_file import called, is_file, split_word

LATER = ("accuracy", "realtime", "witness", "memory", "log", "warnings", "figure", "machine", "events", "expect")
"""Of a report, what is known at its end only."""


def check_peers(found: Scenario) -> None:
    """Each controller and bridge with its parameters, and each controller with what events set; those in files of a
    user's own are only looked for. ModelError with file and line."""
    from rtmms.bridging.config import construct as make_bridge
    from rtmms.bridging.plugins import load_bridge
    from rtmms.wire.peer.plugins import build, check_controller

    made: dict[str, Any] = {}
    for k, word in enumerate(found.controllers or ()):
        name = split_word(word)[0]
        try:
            check_controller(name)
            if not is_file(name):
                made.setdefault(called(name), build(word))
        except ModelError as fault:
            raise _located(found, "controller", k, fault) from None
    for k, word in enumerate(found.bridges):
        name, words = split_words(word)
        try:
            make_bridge(load_bridge(name), "bridge", name, words)
        except ModelError as fault:
            raise _located(found, "bridge", k, fault) from None
    for event in found.events:
        for name, value in event.values.items():
            owner, _, key = name.partition(".")
            if owner in made:
                told = _refused(made[owner], owner, key, value)
                if told:
                    raise ModelError(f"{found.path}:{event.line}: event at {event.at_s:g} s: {told}")


def split_words(spec: str) -> tuple[str, dict[str, str]]:
    """The name and the parameters of a bridge's words."""
    from rtmms.wire.peer.plugins import split_spec

    return split_spec(spec, "bridge")


def _refused(controller: Any, owner: str, key: str, value: Any) -> str:
    """Why it would not take the value, '' where it does: then it has it."""
    from rtmms.wire.peer.settable import Settable

    known = tuple(controller.settable)
    if key not in known:
        return str(UnknownNameError(f"parameter of {owner} that can change while it runs", key, known))
    own = Settable({name: getattr(controller, name) for name in known}, controller.change)
    try:
        answer = own.take({"values": {key: value}})
    except Exception:  # it wants to have been started for that: then it judges when the time has come
        return ""
    return "" if answer["ok"] else str(answer["error"])


def _located(found: Scenario, kind: str, k: int, fault: ModelError) -> ModelError:
    """With the line of the key that the text names, or of the table."""
    text = str(fault)
    keys = [str(place[2]) for place in found.places if place[:2] == (kind, k) and len(place) == 3]
    named = [key for key in keys if key not in ("name", "file") and re.search(rf"\b{re.escape(key)}\b", text)]
    whole = [key for key in keys if key in ("name", "file")]
    return found.fault(text, kind, k, *(named or whole)[:1])


def check_plant_event(name: str, value: Any, plant: Plant) -> None:
    """That a value can be one of a parameter of the plant, as far as its description tells. ModelError."""
    own = bare(plant)
    parameters = own.parameters if isinstance(own, Described) else None
    if dataclasses.is_dataclass(parameters) and not isinstance(parameters, type) and name in _fields(parameters):
        dataclasses.replace(parameters, **{name: value})


def _fields(parameters: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(parameters)}


def check_expectations(found: Scenario, plant: Plant, report: Mapping[str, Any]) -> None:
    """That the report will have each name that is expected of it; near misses are told. ModelError with file and line.

    report   as it is before the run
    """
    seen = {name: np.asarray(value, dtype=np.float64) for name, value in plant.observe().items()}
    soon: dict[str, Any] = {"schedule": {}, "tracking": {}}
    add_outcome(soon, Outcome("", "", 0, 0.0, 0.0, seen), Statistics(), {})
    soon["tracking"] = {
        name: dict.fromkeys(("rms", "max", "mean", "settled_s"), 0.0) for name in (*QUANTITIES, CROSS)
    }  # fmt: skip
    parts = ("position_m", "velocity_m_s", "attitude_deg")
    soon["estimate"] = {name: {"rms": 0.0, "nees": 0.0} for name in parts}
    summary = _summary(plant, seen)
    soon["summary"] = dict.fromkeys(summary or (), 0.0)
    soon = _filled(soon)
    heads = {*soon, *report, *LATER}
    for one in found.expect:
        head, dot, _ = one.name.partition(".")
        later = (head in heads and head not in soon) if dot else (one.name in heads or summary is None)
        if later or has(soon, one.name) or (head == "schedule" and dot):
            continue
        near = get_close_matches(one.name.partition("[")[0], sorted(_names(soon)), 3)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise found.fault(f"expect: the report will have no '{one.name}'{meant}", "expect", one.name)


def _summary(plant: Plant, seen: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of the plant's summary, from a moment at rest; None where it cannot be asked."""
    if not isinstance(plant, Summarised):
        return ()
    time = np.arange(16, dtype=np.float64) * plant.dt
    try:
        return tuple(plant.summarise(time, {name: np.stack([seen[name]] * 16) for name in plant.trace_outputs}))
    except Exception:  # a plant of a user's own may need a motion
        return None


def _filled(table: Mapping[str, Any]) -> dict[str, Any]:
    """With numbers for what is not known yet."""
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
