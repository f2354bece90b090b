"""Controllers by name: finding them, their parameters, and building one from the words of a command line."""

from __future__ import annotations

import inspect
import json
import math
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote, urlparse

from rtmms.errors import ModelError, UnknownNameError
from rtmms.user_file import is_file, load_named, path_of, split_word
from rtmms.wire.peer.controller import Controller

GROUP = "rtmms.controllers"
TURNS: Mapping[str, Any] = {"every": int, "delay": int | None, "between": str}
"""What any controller can be told beside its own parameters; see rtmms.Controller."""

OWN = "one of your own runs as FILE.py or FILE.py:CLASS, see controllers/template.py"

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True)
class Parameter:
    """A keyword of a controller's constructor: its type's name, and its default (None where it must be given)."""

    name: str
    kind: str
    default: Any
    required: bool


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
    """'gait:amplitude_deg=30,frequency_hz=0.5' -> name and words; ModelError where it is not of that form."""
    name, rest = split_word(spec)
    words: dict[str, str] = {}
    for part in rest.split(",") if rest else []:
        key, sign, value = part.partition("=")
        if not sign or not key.strip():
            raise ModelError(f"{kind} '{spec}': expected NAME:key=value,key=value; got '{part}'")
        if key.strip() in words:
            raise ModelError(f"{kind} '{spec}': '{key.strip()}' is given twice")
        words[key.strip()] = value.strip()
    if not name:
        raise ModelError(f"{kind} '{spec}': expected NAME or NAME:key=value,...; the name is missing")
    return name, words


def check_controller(name: str) -> None:
    """That there is one of that name, or a file; nothing is loaded. ModelError."""
    if is_file(name):
        path_of("controller", name)
    elif name not in (known := registered(GROUP)):
        raise UnknownNameError("controller", name, known, OWN)


def load_controller(name: str) -> type[Controller]:
    """The class behind a name, or in a file FILE.py[:NAME]; UnknownNameError, or ModelError where it cannot be loaded
    or is none."""
    if is_file(name):
        own: type[Controller] = load_named("controller", name, _controls, "a class with update(state)")
        return own
    check_controller(name)
    point, found = load("controller", GROUP, name)
    if not _controls(found):
        raise ModelError(
            f"controller '{name}': expected {point.value} to be a class with update(state), "
            f"got {type(found).__name__}{astray(point)}"
        )
    return found


def parameters(controller: type[Controller]) -> dict[str, Parameter]:
    """The keywords of its constructor. A class without type hints has parameters of the type of their defaults."""
    listed = {}
    for name, kind in _signature(controller).items():
        hint = _hint(kind)
        default = None if kind.default is inspect.Parameter.empty else kind.default
        listed[name] = Parameter(name, _spelled(hint), default, kind.default is inspect.Parameter.empty)
    return listed


def build(spec: str) -> Controller:
    """The controller of a command line's words; UnknownNameError and ModelError name the controller and the key.

    `every`, `delay` and `between` go with any controller, and stand in its attributes then."""
    name, words = split_spec(spec)
    found = load_controller(name)
    known = _signature(found)
    turns = {key: words.pop(key) for key in TURNS if key in words and key not in known}
    controller = construct(found, name, words)
    for key, word in turns.items():
        setattr(controller, key, _value(f"controller '{name}': {key}", word, TURNS[key]))
    return controller


def construct(controller: type[Controller], name: str, words: Mapping[str, str]) -> Controller:
    """An instance from words, each read as its parameter's type."""
    known = _signature(controller)
    values: dict[str, Any] = {}
    for key, word in words.items():
        if key not in known:
            attribute = hasattr(controller, key) and not callable(getattr(controller, key))
            hint = "an attribute of the class is a parameter in a @dataclass, with a type" if attribute else ""
            raise UnknownNameError(f"parameter of controller '{name}'", key, (*known, *TURNS), hint)
        values[key] = _value(f"controller '{name}': {key}", word, _hint(known[key]))
    missing = [key for key, kind in known.items() if kind.default is inspect.Parameter.empty and key not in values]
    if missing:
        raise ModelError(f"controller '{name}': needs {', '.join(missing)}")
    return controller(**values)


def _controls(found: object) -> TypeGuard[type[Controller]]:
    return isinstance(found, type) and callable(getattr(found, "update", None))


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


def _choices(hint: Any) -> tuple[Any, ...]:
    """float | None -> (float, NoneType)."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _spelled(hint: Any) -> str:
    return " | ".join("None" if one is type(None) else getattr(one, "__name__", str(one)) for one in _choices(hint))


def _value(place: str, word: str, hint: Any) -> Any:
    choices = _choices(hint)
    if type(None) in choices and word.lower() == "none":
        return None
    for one in (bool, int, float, str):  # the narrowest that fits
        if one not in choices:
            continue
        if one is bool and word.lower() in _WORDS:
            return _WORDS[word.lower()]
        if one is str:
            return word
        if one in (int, float):
            try:
                number = one(word)
            except ValueError:
                continue
            if math.isfinite(number):
                return number
    wanted = {"float": "a number", "int": "a whole number", "bool": "true or false"}
    named = " or ".join(wanted.get(one.__name__, one.__name__) for one in choices if one is not type(None))
    raise ModelError(f"{place}: expected {named}, got '{word}'")


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
        told = json.loads(origin)
        if told.get("dir_info", {}).get("editable"):
            roots.append(Path(unquote(urlparse(told["url"]).path)).resolve())
    return roots
