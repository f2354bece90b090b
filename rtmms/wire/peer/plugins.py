"""Controllers by name: finding them, their parameters, and building one from the words of a command line."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote, urlparse

from rtmms.base.declared import literal, parsed, source
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter as Declaration
from rtmms.base.parameters import parameters_of
from rtmms.base.trust import file_parameters, is_file, load_named, refuse_script, split_word
from rtmms.base.typed import spelled, typed
from rtmms.wire.peer.controller import COMMON, Controller


def check_robot(name: str, robot: str) -> None:
    """ModelError where controller `name` is written for other robots than `robot`, and some other is for that one.

    A robot that no installed controller is written for is a user's own, and may share actuators with one of ours."""
    own = declared(name)
    if not own or robot in own:
        return
    fitting = sorted(other for other in controllers() if robot in declared(other))
    if fitting:
        raise ModelError(
            f"controller '{name}' drives {', '.join(own)}, not {robot}; controllers of {robot}: {', '.join(fitting)}"
        )


def declared(name: str) -> tuple[str, ...]:
    """Of an installed controller or FILE.py[:CLASS]; () where it names none, or its source cannot be read."""
    if is_file(name):
        file, _, wanted = name.rpartition(":") if not name.endswith(".py") else (name, "", "")
    else:
        point = controllers().get(name)
        if point is None:
            return ()
        file, wanted = source(point.module), point.attr
    tree = parsed(file)
    if tree is None:
        return ()
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if not wanted:
        classes = [node for node in classes if any(isinstance(part, ast.FunctionDef) and part.name == "update"
                                                   for part in node.body)]  # fmt: skip
    found = [node for node in classes if node.name == (wanted or node.name)]
    robots = literal(found[0].body, "robots") if len(found) == 1 else None
    if not isinstance(robots, (tuple, list)) or not all(isinstance(one, str) for one in robots):
        return ()
    return tuple(robots)


GROUP = "rtmms.controllers"

OWN = "one of your own runs as FILE.py or FILE.py:CLASS, see controllers/template.py"


@dataclass(frozen=True)
class Parameter:
    """A keyword of a controller's constructor: its type's name, and its default (None where it must be given); what is
    declared of it (rtmms.base.parameters)."""

    name: str
    kind: str
    default: Any
    required: bool
    unit: str = ""
    range: str = ""
    about: str = ""

    def declared(self, one: Declaration | None) -> Parameter:
        """The same, with what a declaration has."""
        if one is None:
            return self
        kind = "|".join(one.choices) if one.choices else self.kind
        return replace(self, kind=kind, unit=one.unit, range=one.range_text, about=one.about)


def registered(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name: ours and third parties' alike."""
    return {point.name: point for point in entry_points(group=group)}


def load(kind: str, group: str, name: str) -> tuple[EntryPoint, Any]:
    """What is registered under a name; UnknownNameError, or ModelError where it cannot be loaded."""
    known = registered(group)
    if name not in known:
        raise UnknownNameError(kind, name, known)
    point = known[name]
    try:
        return point, point.load()
    except Exception as fault:  # whatever a stranger's module does when it is imported
        what = str(fault) if isinstance(fault, ImportError) else f"{type(fault).__name__}: {fault}"
        raise ModelError(f"{kind} '{name}': cannot load {point.value}: {what}{astray(point)}") from fault


def loaded_elsewhere(group: str, name: str) -> str:
    """The file it was loaded from, where that is not of the distribution that registered it; else ''."""
    point = registered(group).get(name)
    return astray(point).strip() if point is not None else ""


def controllers() -> dict[str, EntryPoint]:
    """The entry points of group rtmms.controllers by name."""
    return registered(GROUP)


def split_spec(spec: str, kind: str = "controller") -> tuple[str, dict[str, str]]:
    """'gait:amplitude_deg=30,frequency_hz=0.5' -> name and words; ModelError where it is not of that form.

    'gait:FILE.toml,frequency_hz=0.5' takes words from a file first, KEY = VALUE in each line; those on the line win."""
    name, rest = split_word(spec)
    words: dict[str, str] = {}
    parts = rest.split(",") if rest else []
    written = _written(spec, parts.pop(0)) if parts and "=" not in parts[0] and parts[0].endswith(".toml") else {}
    for part in parts:
        key, sign, value = part.partition("=")
        if not sign or not key.strip():
            raise ModelError(f"{kind} '{spec}': expected NAME:key=value,key=value; got '{part}'")
        if key.strip() in words:
            raise ModelError(f"{kind} '{spec}': '{key.strip()}' is given twice")
        words[key.strip()] = value.strip()
    if not name:
        raise ModelError(f"{kind} '{spec}': expected NAME or NAME:key=value,...; the name is missing")
    return name, written | words


def _written(spec: str, file: str) -> dict[str, str]:
    """The words of a file; ModelError where it has other than numbers, texts, true and false."""
    from rtmms.base.toml_file import read_toml

    found = read_toml(file)
    for key, value in found.items():
        if not isinstance(value, bool | int | float | str):
            raise ModelError(f"controller '{spec}': {file}: {key}: expected a number or a text, got {value!r:.60}")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in found.items()}


_EXPECTED = "a class with update(state)"
_SCRIPT = "start it with python in a process of its own, where it calls rtmms.connect while `rtmms serve` runs"


def check_controller(name: str) -> None:
    """That there is one of that name, or a file; nothing is loaded. ModelError."""
    if is_file(name):
        refuse_script("controller", name, f"write {_EXPECTED}, or {_SCRIPT}")
    elif name not in (known := registered(GROUP)):
        raise UnknownNameError("controller", name, known, OWN)


def load_controller(name: str) -> type[Controller]:
    """The class behind a name, or in a file FILE.py[:NAME]; UnknownNameError, or ModelError where it cannot be loaded
    or is none."""
    check_controller(name)
    if is_file(name):
        own: type[Controller] = load_named("controller", name, _controls, _EXPECTED)
        return own
    point, found = load("controller", GROUP, name)
    if not _controls(found):
        raise ModelError(
            f"controller '{name}': expected {point.value} to be a class with update(state), "
            f"got {f'class {found.__name__}' if isinstance(found, type) else type(found).__name__}{astray(point)}"
        )
    return found


def parameters(controller: type[Controller]) -> dict[str, Parameter]:
    """The keywords of its constructor. A class without type hints has parameters of the type of their defaults."""
    listed = {}
    for name, kind in _signature(controller).items():
        hint = _hint(kind)
        default = None if kind.default is inspect.Parameter.empty else kind.default
        made = Parameter(name, spelled(hint), default, kind.default is inspect.Parameter.empty)
        listed[name] = made.declared(parameters_of(controller).get(name))
    return listed


def controller_files(controller: type[Controller]) -> dict[str, str]:
    """Return the parameters of a controller that name files, each with its kind (`rtmms.base.trust.NamesFile`)."""
    return file_parameters({name: _hint(kind) for name, kind in _signature(controller).items()})


def build(spec: str, loaded: type[Controller] | None = None) -> Controller:
    """The controller of a command line's words; UnknownNameError and ModelError name the controller and the key.

    `every`, `delay` and `interpolation` go with any controller, and stand in its attributes then.
    loaded  its class, where it is known: to find and import it takes milliseconds"""
    name, words = split_spec(spec)
    found = loaded if loaded is not None else load_controller(name)
    known = _signature(found)
    turns = {key: words.pop(key) for key in COMMON if key in words and key not in known}
    controller = construct(found, name, words)
    for key, word in turns.items():
        setattr(controller, key, typed(f"controller '{name}': {key}", word, COMMON[key], words=True))
    return controller


def construct(controller: type[Controller], name: str, words: Mapping[str, str]) -> Controller:
    """An instance from words, each read as its parameter's type."""
    known = _signature(controller)
    values: dict[str, Any] = {}
    for key, word in words.items():
        if key not in known:
            attribute = hasattr(controller, key) and not callable(getattr(controller, key))
            hint = "an attribute of the class is a parameter in a @dataclass, with a type" if attribute else ""
            raise UnknownNameError(f"parameter of controller '{name}'", key, (*known, *COMMON), hint)
        values[key] = typed(f"controller '{name}': {key}", word, _hint(known[key]), words=True)
    missing = [key for key, kind in known.items() if kind.default is inspect.Parameter.empty and key not in values]
    if missing:
        raise ModelError(f"controller '{name}': needs {', '.join(missing)}")
    return controller(**values)


def _controls(found: object) -> TypeGuard[type[Controller]]:
    update = getattr(found, "update", None)
    return isinstance(found, type) and callable(update) and update is not Controller.update


def _signature(controller: type[Controller]) -> dict[str, inspect.Parameter]:
    try:
        found = inspect.signature(controller, eval_str=True)
    except NameError:  # a hint that only a type checker can read
        found = inspect.signature(controller)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: kind for name, kind in found.parameters.items() if kind.kind in named}


def _hint(kind: inspect.Parameter) -> Any:
    if kind.annotation is not inspect.Parameter.empty:
        return kind.annotation
    return type(kind.default) if kind.default not in (None, inspect.Parameter.empty) else str


def astray(point: EntryPoint) -> str:
    """' (loaded from FILE)' where the module is a file outside the distribution: a user's own folder of that name."""
    module = sys.modules.get(point.module)
    file = getattr(module, "__file__", None)
    if module is None:  # it did not load: what of its name did?
        file = getattr(sys.modules.get(point.module.partition(".")[0]), "__file__", None)
    if file is None or point.dist is None:
        return ""
    where = Path(file).resolve()
    if any(where.is_relative_to(root) for root in _roots(point.dist)):
        return ""
    return f" (loaded from {where}, which is not part of {point.dist.name}; is there a folder of that name here?)"


def _roots(distribution: Distribution) -> list[Path]:
    """Where a distribution's files lie: its site directory, and its source tree if it was installed to be edited."""
    roots = [Path(str(distribution.locate_file(""))).resolve()]
    origin = distribution.read_text("direct_url.json")
    if origin:
        fields = json.loads(origin)
        if fields.get("dir_info", {}).get("editable"):
            roots.append(Path(unquote(urlparse(fields["url"]).path)).resolve())
    return roots
