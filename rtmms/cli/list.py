"""rtmms list: the robots, controllers and bridges that are installed, ours and third parties' alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import UnknownNameError
from rtmms.base.parameters import parameter_values, parameters_of_plant
from rtmms.base.source_declarations import fact, first_line
from rtmms.base.terminal import print_json, print_text
from rtmms.base.trust import is_file
from rtmms.plant.description import describe_plant
from rtmms.plant.loading import builder

if TYPE_CHECKING:
    from rtmms.plant.protocol import Plant
    from rtmms.wire.peer.plugins import Parameter

KINDS = ("robots", "controllers", "bridges")
GROUPS = {"robots": "rtmms.plants", "controllers": "rtmms.controllers", "bridges": "rtmms.bridges"}
DECLARED = ("unit", "range", "about")
"""Keys of a parameter that only a declared one has."""
_WIDTH = 22


@click.command("list")
@click.argument("what", metavar="[robots|controllers|bridges|NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(what: str | None, as_json: bool) -> None:
    """Name the robots, controllers and bridges that can be run; of one, list what it has.

    Of a robot: actuators and outputs with their units and limits, its presets, and its parameters with their choices.
    """
    if what is None or what in KINDS:
        result = {
            kind: [_entry(kind, point) for point in _sorted(kind)] for kind in (KINDS if what is None else (what,))
        }
        if as_json:
            print_json(json.dumps(result))
        else:
            _print(result, briefly=what is None)
        return
    kinds = [kind for kind in ("controllers", "bridges") if what in entry_points_of(GROUPS[kind])]
    if kinds:
        entry = _entry(kinds[0], entry_points_of(GROUPS[kinds[0]])[what])
        if as_json:
            print_json(json.dumps(entry))
        else:
            _print({kinds[0]: [entry]}, briefly=False)
    elif what in entry_points_of(GROUPS["robots"]) or is_file(what) or "." in what:
        listed = _robot(what)
        if as_json:
            print_json(json.dumps(listed))
        else:
            _print_robot(listed)
    else:
        known = dict.fromkeys(name for kind in KINDS for name in entry_points_of(GROUPS[kind]))
        raise UnknownNameError("robot, controller or bridge", what, [*known, *KINDS])


def _print(result: Mapping[str, list[dict[str, Any]]], *, briefly: bool) -> None:
    for kind, entries in result.items():
        print_text(f"{kind}:" + ("" if entries else " none"))
        for entry in entries:
            about = entry.get("error") or entry.get("about") or entry["module"]
            drives = f"{', '.join(entry['robots'])}: " if entry.get("robots") else ""
            absent = "(not installed) " if briefly and entry.get("missing") else ""
            print_text(f"  {entry['name']:<16} {absent}{drives}{about}")
            if entry.get("missing") and not briefly:
                print_text(f"      {entry['missing']}")
            for parameter in [] if briefly else entry.get("parameters", []):
                default = "required" if parameter["required"] else f"default {parameter['default']}"
                live = ", settable while it runs" if parameter["name"] in entry.get("settable", ()) else ""
                unit, bounds, about = (parameter.get(key, "") for key in DECLARED)
                details = ", ".join(filter(None, (parameter["kind"], unit, default, bounds)))
                print_text(f"      {parameter['name']} ({details}{live})  {about}".rstrip())
    if briefly:
        print_text("rtmms list NAME prints the parameters, and for a robot also its actuators and outputs")


def _sorted(kind: str) -> list[EntryPoint]:
    return [point for _, point in sorted(entry_points_of(GROUPS[kind]).items())]


def _entry(kind: str, point: EntryPoint) -> dict[str, Any]:
    """Describe one plug-in. A robot is not loaded for this, as that would compile it."""
    entry: dict[str, Any] = {
        "name": point.name, "module": point.value, "distribution": point.dist.name if point.dist is not None else None,
    }  # fmt: skip
    if kind == "robots":
        return entry | {"about": first_line(point.module)}
    from rtmms.base.errors import ModelError

    try:
        result, known = _controller(point.name) if kind == "controllers" else _bridge(point.name)
    except ModelError as error:
        return entry | {"error": str(error)}
    entry["about"] = (result.__doc__ or "").strip().partition("\n")[0]
    entry["parameters"] = [
        {key: value for key, value in asdict(item).items() if value or key not in DECLARED} for item in known.values()
    ]
    if kind == "bridges":
        entry["missing"] = _missing(result, point.name)
    else:
        changeable: Any = getattr(result, "tunable_parameters", None) or getattr(result, "settable", ())
        entry["settable"] = list(changeable)
        entry["robots"] = list(result.robots) if hasattr(result, "robots") else []
    return entry


def _controller(name: str) -> tuple[type, Mapping[str, Parameter]]:
    from rtmms.wire.peer.plugins import load_controller, parameters

    controller = load_controller(name)
    return controller, parameters(controller)


def _bridge(name: str) -> tuple[type, Mapping[str, Parameter]]:
    from rtmms.bridging.config import load_bridge, parameters

    bridge = load_bridge(name)
    return bridge, parameters(bridge)


def _missing(bridge: type, name: str) -> str | None:
    """Return the packages to install before a bridge can run, None where all are there."""
    from rtmms.base.errors import ModelError
    from rtmms.bridging.bridge import refuse_without
    from rtmms.bridging.config import package_of

    try:
        refuse_without(bridge, name, package_of(name))
    except ModelError as error:
        return str(error)
    return None


# --- one robot --------------------------------------------------------------------------------------------------------


def _robot(name: str) -> dict[str, Any]:
    """Return the plant's description of itself; the plant is built for this."""
    import rtmms
    from rtmms.cli.running.process import brace
    from rtmms.wire.protocol.welcome import channel_map

    brace(name)
    plant = rtmms.plant.loading.build_plant(name)
    point = builder(name)
    about = first_line(point.module) if point.group == GROUPS["robots"] else _of_a_file(plant)
    settable = describe_plant(plant).settable or ()
    values = _values(plant)
    return {
        "robot": name, "about": about, "dt": plant.dt,
        "actuators": [channel_map(actuator) for actuator in plant.actuators],
        "limits": _limits(plant),
        "outputs": [channel_map(output) for output in plant.outputs],
        "presets": _declared(point, "PRESETS"), "choices": _choices(plant, point),
        "parameters": values, "settable": [item for item in settable if item in values] or list(settable),
        "described": _described(plant),
    }  # fmt: skip


def _of_a_file(plant: Plant) -> str:
    """Return a tree's bodies and joints, or the docstring of another plant's class."""
    from rtmms.mechanism.plant import TreePlant
    from rtmms.model.layout import BASE_FIXED, BASE_FREE

    if not isinstance(plant, TreePlant):
        return (type(plant).__doc__ or "").strip().partition("\n")[0]
    model = plant.model
    base = {BASE_FREE: "free", BASE_FIXED: "fixed"}.get(model.base_mode, "moved")
    bodies, joints = len(model.body_names), len(model.joint_names)
    return (
        f"{bodies} {'body' if bodies == 1 else 'bodies'}, {model.mass:.4g} kg, "
        f"{joints} {'joint' if joints == 1 else 'joints'}, {base} base"
    )


def _limits(plant: Plant) -> dict[str, dict[str, float]]:
    """Return limits beside the actuators' own: of joints by name, and of differences of two commands."""
    joints: dict[str, dict[str, float]] = dict(getattr(plant, "joint_limits", {}))
    names = [actuator.name for actuator in plant.actuators]
    for item in describe_plant(plant).coupled:
        limit = {"lower": -item.max_difference, "upper": item.max_difference, "obeyed": item.obeyed}
        joints[f"{names[item.first]} - {names[item.second]}"] = limit
    return joints


def _declared(point: EntryPoint, name: str) -> dict[str, Any]:
    """Return PRESETS or CHOICES of the module that has the robot's `load`, or of `parameters` beside it; {} without."""
    from rtmms.cli.running.report import to_json_types

    home = point.load().__module__
    package = home.rpartition(".")[0]
    for place in (home, *([f"{package}.parameters"] if package else [])):
        result = getattr(import_module(place), name, None) if find_spec(place) is not None else None
        if isinstance(result, Mapping):
            return dict(to_json_types(result))
    return {}


def _choices(plant: Plant, point: EntryPoint) -> dict[str, list[str]]:
    """Return the possible words of parameters by name, from the robot's parameters or the module's table."""
    listed = {**(fact(point.module, "CHOICES") or {}), **_declared(point, "CHOICES")}
    result = {name: list(choices) for name, choices in listed.items()}
    return result | {
        name: list(parameter.choices) for name, parameter in parameters_of_plant(plant).items() if parameter.choices
    }


def _described(plant: Plant) -> dict[str, dict[str, str]]:
    """Return unit, range and sentence of each declared parameter."""
    declarations = parameters_of_plant(plant)
    return {
        name: {"unit": item.unit, "range": item.range_text, "about": item.about} for name, item in declarations.items()
    }


def _values(plant: Plant) -> dict[str, Any]:
    """Return parameters by name, for JSON."""
    from rtmms.cli.running.report import to_json_types

    return dict(to_json_types(parameter_values(plant)))


def _print_robot(listed: dict[str, Any]) -> None:
    print_text(f"{listed['robot']}: {listed['about']}")
    print_text(f"step {listed['dt']:g} s (--dt)")
    for kind in ("actuators", "outputs"):
        print_text(f"{kind}:" + ("" if listed[kind] else " none"))
        for channel in listed[kind]:
            print_text(f"  {channel['name']:<{_WIDTH}} {_details_of(channel)}".rstrip())
    if listed["limits"]:
        print_text("limits that hold for all commands:")
    for name, limit in listed["limits"].items():
        print_text(f"  {name:<{_WIDTH}} {_limit_text(limit)}")
    if listed["presets"]:
        print_text("presets (--preset NAME):")
    for name, values in listed["presets"].items():
        settings = ", ".join(f"{name}={_short(value)}" for name, value in values.items()) or "as it is"
        print_text(f"  {name:<{_WIDTH}} {settings}")
    for title, names in (
        ("parameters that may change while it runs (rtmms set NAME=VALUE):", listed["settable"]),
        ("parameters (--set NAME=VALUE):", [item for item in listed["parameters"] if item not in listed["settable"]]),
    ):
        if names:
            print_text(title)
        for name in names:
            choices = [word for word in listed["choices"].get(name, ()) if word != listed["parameters"].get(name)]
            description = listed["described"].get(name, {})
            parts = [f"{_short(listed['parameters'].get(name))} {description.get('unit', '')}".rstrip()]
            parts += (
                [f"(or {', '.join(choices)})"]
                if choices
                else [f"({description['range']})"]
                if description.get("range")
                else []
            )
            print_text(f"  {name:<{_WIDTH}} {'  '.join([*parts, description.get('about', '')])}".rstrip())


def _details_of(channel: Mapping[str, Any]) -> str:
    """Return unit, shape, frame and limits of a channel."""
    parts = [channel["unit"] or "-"]
    if channel["shape"]:
        parts.append("x".join(map(str, channel["shape"])))
    if channel["frame"]:
        parts.append(channel["frame"])
    if channel["lower"] is not None or channel["upper"] is not None:
        lower, upper = (f"{item:g}" if item is not None else "-" for item in (channel["lower"], channel["upper"]))
        parts.append(f"from {lower} to {upper}")
    return ", ".join(parts)


def _limit_text(limit: Mapping[str, float]) -> str:
    parts = []
    if "lower" in limit or "upper" in limit:
        lower, upper = (f"{limit[item]:g}" if item in limit else "-" for item in ("lower", "upper"))
        parts.append(f"from {lower} to {upper}")
    parts += [f"{word} at most {limit[word]:g}" for word in ("velocity", "effort") if word in limit]
    if "obeyed" in limit:
        parts.append(f"obeyed as it is within {limit['obeyed']:g}, saturates smoothly beyond")
    return ", ".join(parts)


def _short(value: Any) -> str:
    text = (
        "none"
        if value is None
        else json.dumps(value, separators=(",", ":"))
        if isinstance(value, (list, dict, bool))
        else str(value)
    )
    return text if len(text) <= 60 else text[:57] + "..."
