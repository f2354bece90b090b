"""rtmms list: the robots, controllers and bridges that are installed, ours and third parties' alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import click

from rtmms.cli.words import Near, plugins

if TYPE_CHECKING:
    from rtmms.wire.peer.plugins import Parameter

KINDS = ("robots", "controllers", "bridges")
GROUPS = {"robots": "rtmms.plants", "controllers": "rtmms.controllers", "bridges": "rtmms.bridges"}


@click.command("list")
@click.argument("kind", type=Near("kind", KINDS), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(kind: str | None, as_json: bool) -> None:
    """Name the robots, controllers and bridges that can be run."""
    found = {one: [_entry(one, point) for point in _sorted(one)] for one in (KINDS if kind is None else (kind,))}
    if as_json:
        click.echo(json.dumps(found))
        return
    for one, entries in found.items():
        click.echo(f"{one}:" + ("" if entries else " none"))
        for entry in entries:
            about = entry.get("error") or entry.get("about") or entry["module"]
            click.echo(f"  {entry['name']:<12} {about}")
            if entry.get("missing"):
                click.echo(f"      {entry['missing']}")
            for parameter in entry.get("parameters", []):
                default = "required" if parameter["required"] else f"default {parameter['default']}"
                click.echo(f"      {parameter['name']} ({parameter['kind']}, {default})")


def _sorted(kind: str) -> list[EntryPoint]:
    return [point for _, point in sorted(plugins(GROUPS[kind]).items())]


def _entry(kind: str, point: EntryPoint) -> dict[str, Any]:
    """One plug-in. A robot is not loaded for this: that would compile it."""
    entry: dict[str, Any] = {
        "name": point.name, "module": point.value, "distribution": point.dist.name if point.dist is not None else None,
    }  # fmt: skip
    if kind == "robots":
        return entry
    from rtmms.errors import ModelError

    try:
        found, known = _controller(point.name) if kind == "controllers" else _bridge(point.name)
    except ModelError as error:
        return entry | {"error": str(error)}
    entry["about"] = (found.__doc__ or "").strip().partition("\n")[0]
    entry["parameters"] = [
        {"name": one.name, "kind": one.kind, "default": one.default, "required": one.required} for one in known.values()
    ]
    if kind == "bridges":
        entry["missing"] = _missing(found, point.name)
    return entry


def _controller(name: str) -> tuple[type, Mapping[str, Parameter]]:
    from rtmms.wire.peer.plugins import load_controller, parameters

    found = load_controller(name)
    return found, parameters(found)


def _bridge(name: str) -> tuple[type, Mapping[str, Parameter]]:
    from rtmms.bridging.plugins import load_bridge, parameters

    found = load_bridge(name)
    return found, parameters(found)


def _missing(bridge: type, name: str) -> str | None:
    """What to install before it can be run, None where all is there."""
    from rtmms.bridging.bridge import refuse_without
    from rtmms.bridging.plugins import package_of
    from rtmms.errors import ModelError

    try:
        refuse_without(bridge, name, package_of(name))
    except ModelError as error:
        return str(error)
    return None
