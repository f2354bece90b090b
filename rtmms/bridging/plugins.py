"""Bridges by name: finding them, their parameters, and building one from the words of a command line."""

from __future__ import annotations

import dataclasses
import typing
from importlib.metadata import EntryPoint
from typing import Any, TypeGuard

from rtmms.bridging.bridge import Bridge, refuse_without
from rtmms.bridging.config import construct, hints
from rtmms.errors import ModelError, UnknownNameError
from rtmms.parameters import parameters_of
from rtmms.trust import file_parameters
from rtmms.typed import spelled
from rtmms.user_file import is_file, load_named, path_of
from rtmms.wire.peer.plugins import Parameter, astray, load, registered, split_spec

GROUP = "rtmms.bridges"
OWN = "one of your own runs as FILE.py or FILE.py:CLASS, see bridges/template.py"
_EXPECTED = "a dataclass derived from rtmms.Bridge"


def bridges() -> dict[str, EntryPoint]:
    """The entry points of group rtmms.bridges by name: ours and third parties' alike."""
    return registered(GROUP)


def check_bridge(name: str) -> None:
    """That there is one of that name, or a file; nothing is loaded. ModelError."""
    if is_file(name):
        path_of("bridge", name)
    elif name not in (known := registered(GROUP)):
        raise UnknownNameError("bridge", name, known, OWN)


def load_bridge(name: str) -> type[Bridge]:
    """The class behind a name, or in a file FILE.py[:CLASS]; UnknownNameError, or ModelError where it cannot be loaded
    or is none."""
    if is_file(name):
        own: type[Bridge] = load_named("bridge", name, _bridges, _EXPECTED)
        return own
    check_bridge(name)
    point, found = load("bridge", GROUP, name)
    if not _bridges(found):
        raise ModelError(
            f"bridge '{name}': expected {point.value} to be {_EXPECTED}, "
            f"got {getattr(found, '__name__', type(found).__name__)}{astray(point)}"
        )
    return found


def _bridges(found: object) -> TypeGuard[type[Bridge]]:
    return isinstance(found, type) and issubclass(found, Bridge) and dataclasses.is_dataclass(found)


def build_bridge(spec: str) -> Bridge:
    """The bridge of a command line's words, its libraries looked for; the error names the bridge, the file, the key."""
    name, words = split_spec(spec, "bridge")
    found = load_bridge(name)
    refuse_without(found, name, package_of(name))
    return construct(found, "bridge", name, words)


def package_of(name: str) -> str:
    """The distribution that registered a bridge."""
    point = registered(GROUP).get(name)
    return point.dist.name if point is not None and point.dist is not None else "rtmms"


def bridge_files(bridge: type[Bridge]) -> dict[str, str]:
    """Return the parameters of a bridge that name files, each with its kind (`rtmms.trust.NamesFile`)."""
    return file_parameters(typing.get_type_hints(bridge, include_extras=True)) | {"config": "input"}


def parameters(bridge: type[Bridge]) -> dict[str, Parameter]:
    """Its own parameters first, then those of every bridge, and `config`."""
    known = hints(bridge)
    shared = set(hints(Bridge))
    listed: dict[str, Parameter] = {}
    for one in sorted((one for one in dataclasses.fields(bridge) if one.init), key=lambda one: one.name in shared):
        default: Any = None if one.default is dataclasses.MISSING else one.default
        made = one.default_factory is not dataclasses.MISSING
        required = one.default is dataclasses.MISSING and not made
        if one.default_factory is not dataclasses.MISSING:
            default = one.default_factory()
        if dataclasses.is_dataclass(default) and not isinstance(default, type):
            default = dataclasses.asdict(default)
        own = Parameter(one.name, spelled(known[one.name]), default, required)
        listed[one.name] = own.declared(parameters_of(bridge).get(one.name))
    listed["config"] = Parameter("config", "FILE.toml", None, False)
    return listed
