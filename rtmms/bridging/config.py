"""Bridges by name, from text or from a TOML file: every value is read as its parameter's type."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.base.parameters import parameters_of
from rtmms.base.terminal import print_text
from rtmms.base.toml_file import read_toml
from rtmms.base.trust import file_parameters, is_file, load_named, path_of
from rtmms.base.value_conversion import convert_value, type_text, value_text
from rtmms.bridging.bridge import Bridge, Requirements, refuse_without
from rtmms.wire.peer.plugins import Parameter, astray, load, split_spec

# A bridge from words or from a TOML file: every value read as its parameter's type, every error naming its place.


T = TypeVar("T")


def construct(cls: type[T], kind: str, name: str, options: Mapping[str, str]) -> T:
    """Return an instance of a dataclass from 'key=value' arguments.

    The key `config` names a TOML file; the other arguments replace its values.

    Parameters
    ----------
    cls : type[T]
        The dataclass.
    kind, name : str
        For errors: 'bridge', 'udp'.
    options : Mapping[str, str]
        Arguments as text by key.

    Returns
    -------
    T
        The instance.

    Raises
    ------
    ModelError
        If a value is invalid. It names the file, the key, the expected and the given value.
    UnknownNameError
        If there is no such key.
    """
    options = dict(options)
    path = options.pop("config", None)
    table = {} if path is None else read_toml(path)
    known = hints(cls)
    options, table = (_current(f"{kind} '{name}'", item, known) for item in (options, table))
    return _build_instance(cls, f"{kind} '{name}'", "" if path is None else path, table, options)


OLD_KEYS: Mapping[str, str] = {"words": "parameter_channels"}
"""Old names of parameters of bridges, which work for one minor version."""


def _current(owner: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the present names of parameters; an old name prints a sentence."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        head, dot, remaining = key.partition(".")
        new = OLD_KEYS.get(head, "")
        if new in known and head not in known:
            print_text(f"rtmms: {owner}: {head} is {new} now; the next version removes the old name", err=True)
            key = new + dot + remaining
        result[key] = value
    return result


def hints(cls: type) -> dict[str, Any]:
    """Return the types of a dataclass's parameters.

    Parameters
    ----------
    cls : type
        The dataclass.

    Returns
    -------
    dict[str, Any]
        Types by name.
    """
    known = typing.get_type_hints(cls)
    return {field.name: known[field.name] for field in dataclasses.fields(cls) if field.init}


def _build_instance(
    cls: type[T], owner: str, file: str, table: Mapping[str, Any], options: Mapping[str, str], base: Any = None
) -> T:
    """Return an instance of a dataclass; arguments with a dot belong to a part that is a dataclass itself.

    Other values are as in `base`.
    """
    known = hints(cls)
    in_file = f"{file}: " if file else ""
    for key in table:
        if key not in known:
            raise ModelError(f"{owner}: {in_file}{UnknownNameError('key', key, known)}")
    values: dict[str, Any] = {}
    parts: dict[str, dict[str, str]] = {}
    for key, word in options.items():
        head, dot, remaining = key.partition(".")
        if head not in known:
            raise UnknownNameError(f"parameter of {owner}", head, known)
        if dot:
            if _part_type(known[head]) is None:
                raise ModelError(f"{owner}: {key}: '{head}' is not a table, so it has no keys")
            parts.setdefault(head, {})[remaining] = word
        else:
            values[head] = from_word(f"{owner}: {key}", word, known[head])
    for key, value in table.items():
        if key in values or key in parts:
            continue
        values[key] = from_toml(f"{owner}: {in_file}{key}", value, known[key], _default(cls, key))
    for head, inner in parts.items():
        inside = table.get(head, {})
        if not isinstance(inside, dict):
            raise ModelError(f"{owner}: {in_file}{head}: expected a table, got {value_text(inside)}")
        values[head] = _build_instance(
            _part_type(known[head]), f"{owner}: {head}", file, inside, inner, _default(cls, head)
        )
    built: T = _called(cls, f"{owner}: {in_file}", values, base)
    return built


def _part_type(hint: Any) -> Any:
    """Return the dataclass that a parameter is, or may be (X | None); None if there is none."""
    inner = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return next((item for item in inner if dataclasses.is_dataclass(item)), None)


def _default(cls: Any, key: str) -> Any:
    """Return the default of a field; None if it has none."""
    item = next(field for field in dataclasses.fields(cls) if field.name == key)
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return None if item.default is dataclasses.MISSING else item.default


def _called(cls: Any, place: str, values: Mapping[str, Any], base: Any) -> Any:
    """Return an instance with these values, and the others as in `base` (of the same type; else the defaults).

    The class's own errors are reported with their place.
    """
    missing = [
        field.name for field in dataclasses.fields(cls)
        if field.init and field.name not in values
        and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]  # fmt: skip
    try:
        if type(base) is cls:
            return dataclasses.replace(base, **values)
        if missing:
            raise ModelError(f"needs {', '.join(missing)}")
        return cls(**values)
    except ModelError as fault:
        raise ModelError(f"{place}{fault}") from None


def from_word(place: str, word: str, hint: Any) -> Any:
    """Return a text of the command line in a type.

    Parameters
    ----------
    place : str
        Source of the text, for errors.
    word : str
        The text.
    hint : Any
        The type.

    Returns
    -------
    Any
        The value.

    Raises
    ------
    ModelError
        If the text does not fit.
    """
    return convert_value(place, word, hint, from_text=True, part=_part_from_word)


def from_toml(place: str, value: Any, hint: Any, base: Any = None) -> Any:
    """Return a value of a TOML file in a type.

    Parameters
    ----------
    place : str
        Source of the value, for errors.
    value : Any
        The value.
    hint : Any
        The type.
    base : Any, optional
        Instance with the other values of a parameter that is a dataclass.

    Returns
    -------
    Any
        The value.

    Raises
    ------
    ModelError
        If the value does not fit.
    """
    return convert_value(place, value, hint, part=lambda at, table, kind: _part_from_toml(at, table, kind, base))


def _part_from_word(place: str, word: str, hint: Any) -> Any:
    if (worded := _worded(hint)) is None:
        raise ModelError(
            f"{place}: expected a table, got a single value; give the table in a file (config=FILE.toml), or as "
            f"{_key(place)}.KEY=VALUE"
        )
    return _from_its_word(worded, word, place)


def _part_from_toml(place: str, value: Any, hint: Any, base: Any) -> Any:
    if isinstance(value, str) and (worded := _worded(hint)) is not None:
        return _from_its_word(worded, value, place)
    if not isinstance(value, dict):
        raise ModelError(f"{place}: expected a table, got {value_text(value)}")
    return _part(place, hint, value, base)


def _key(place: str) -> str:
    """Return the key of a place."""
    return place.rpartition(": ")[2]


@runtime_checkable
class HasTextForm(Protocol):
    """Class of parameters that can be written as one text on the command line."""

    def from_word(self, word: str, place: str) -> Any:
        """Return an instance.

        Parameters
        ----------
        word : str
            The text.
        place : str
            Source of the text, for the error.

        Returns
        -------
        Any
            The instance.

        Raises
        ------
        ModelError
            If the text does not fit; it names the place.
        """


def _worded(hint: object) -> HasTextForm | None:
    return hint if isinstance(hint, HasTextForm) else None


def _from_its_word(hint: HasTextForm, word: str, place: str) -> Any:
    try:
        return hint.from_word(word, place)
    except ModelError as fault:
        if place in str(fault):
            raise
        raise ModelError(f"{place}: {fault}") from None


def _part(place: str, cls: Any, table: Mapping[str, Any], base: Any) -> Any:
    known = hints(cls)
    for key in table:
        if key not in known:
            raise ModelError(f"{place}: {UnknownNameError('key', key, known)}")
    values = {
        key: from_toml(f"{place}.{key}", value, known[key], getattr(base, key, None)) for key, value in table.items()
    }
    return _called(cls, f"{place}: ", values, base)


# Bridges by name: finding them, their parameters, and building one from the words of a command line.


GROUP = "rtmms.bridges"
OWN_FILE = "one of your own runs as FILE.py or FILE.py:CLASS, see bridges/template.py"
_EXPECTED = "a dataclass derived from rtmms.Bridge, with on_state(state)"


def bridges() -> dict[str, EntryPoint]:
    """Return the entry points of group rtmms.bridges, ours and third parties' alike.

    Returns
    -------
    dict[str, EntryPoint]
        Entry points by name.
    """
    return entry_points_of(GROUP)


def check_bridge(name: str) -> None:
    """Raise an error unless a bridge or a file has this name; nothing is loaded.

    Parameters
    ----------
    name : str
        Name of a bridge, or FILE.py[:CLASS].

    Raises
    ------
    ModelError
        If there is no such file.
    UnknownNameError
        If there is no such bridge.
    """
    if is_file(name):
        path_of("bridge", name)
    elif name not in (known := entry_points_of(GROUP)):
        raise UnknownNameError("bridge", name, known, OWN_FILE)


def load_bridge(name: str) -> type[Bridge]:
    """Return the class of a bridge.

    Parameters
    ----------
    name : str
        Name of a bridge, or FILE.py[:CLASS].

    Returns
    -------
    type[Bridge]
        The class.

    Raises
    ------
    UnknownNameError
        If there is no such bridge.
    ModelError
        If it cannot be loaded or is no bridge.
    """
    if is_file(name):
        bridge_class: type[Bridge] = load_named("bridge", name, _bridges, _EXPECTED)
        return bridge_class
    check_bridge(name)
    point, result = load("bridge", GROUP, name)
    if not _bridges(result):
        raise ModelError(
            f"bridge '{name}': expected {point.value} to be {_EXPECTED}, "
            f"got {getattr(result, '__name__', type(result).__name__)}{astray(point)}"
        )
    return result


def _bridges(candidate: object) -> TypeGuard[type[Bridge]]:
    if not (isinstance(candidate, type) and issubclass(candidate, Bridge) and dataclasses.is_dataclass(candidate)):
        return False
    return candidate.on_state is not Bridge.on_state


def build_bridge(spec: str) -> Bridge:
    """Return the bridge of a command line, after a check of its libraries.

    Parameters
    ----------
    spec : str
        NAME:key=value,...

    Returns
    -------
    Bridge
        The bridge.

    Raises
    ------
    ModelError
        If it cannot be built; it names the bridge, the file and the key.
    """
    name, options = split_spec(spec, "bridge")
    bridge = load_bridge(name)
    refuse_without(bridge, name, package_of(name))
    return construct(bridge, "bridge", name, options)


def requirements_of(specs: Iterable[str]) -> dict[str, Requirements]:
    """Return the requirements of bridges on a run.

    A bridge that cannot be built is left out: its own process reports why.

    Parameters
    ----------
    specs : Iterable[str]
        NAME:key=value,... of each bridge.

    Returns
    -------
    dict[str, Requirements]
        Requirements by name, of bridges that have some.
    """
    result = {}
    for spec in specs:
        with suppress(RtmmsError):
            name, options = split_spec(spec, "bridge")
            kind = load_bridge(name)
            if kind.requirements is not Bridge.requirements:
                result[name] = construct(kind, "bridge", name, options).requirements()
    return {name: item for name, item in result.items() if item != Requirements()}


def package_of(name: str) -> str:
    """Return the distribution that registered a bridge.

    Parameters
    ----------
    name : str
        Name of the bridge.

    Returns
    -------
    str
        Name of the distribution.
    """
    point = entry_points_of(GROUP).get(name)
    return point.dist.name if point is not None and point.dist is not None else "rtmms"


def bridge_files(bridge: type[Bridge]) -> dict[str, str]:
    """Return the parameters of a bridge that name files, each with its kind (`rtmms.base.trust.NamesFile`).

    Parameters
    ----------
    bridge : type[Bridge]
        The class.

    Returns
    -------
    dict[str, str]
        Kinds by name.
    """
    return file_parameters(typing.get_type_hints(bridge, include_extras=True)) | {"config": "input"}


def parameters(bridge: type[Bridge]) -> dict[str, Parameter]:
    """Return the parameters of a bridge: its own first, then those of every bridge, and `config`.

    Parameters
    ----------
    bridge : type[Bridge]
        The class.

    Returns
    -------
    dict[str, Parameter]
        Parameters by name.
    """
    known = hints(bridge)
    shared = set(hints(Bridge))
    listed: dict[str, Parameter] = {}
    for item in sorted(
        (field for field in dataclasses.fields(bridge) if field.init), key=lambda entry: entry.name in shared
    ):
        default: Any = None if item.default is dataclasses.MISSING else item.default
        has_factory = item.default_factory is not dataclasses.MISSING
        required = item.default is dataclasses.MISSING and not has_factory
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        if dataclasses.is_dataclass(default) and not isinstance(default, type):
            default = dataclasses.asdict(default)
        parameter = Parameter(item.name, type_text(known[item.name]), default, required)
        listed[item.name] = parameter.declared(parameters_of(bridge).get(item.name))
    listed["config"] = Parameter("config", "FILE.toml", None, False)
    return listed
