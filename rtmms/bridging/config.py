"""A bridge from words or from a TOML file: every value read as its parameter's type, every error naming its place."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from rtmms.errors import ModelError, UnknownNameError
from rtmms.toml_file import read_toml

T = TypeVar("T")
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_NAMES: dict[Any, str] = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
APART = "+"
"""Between the entries of a list in a word, where the comma parts one key from the next."""


def construct(cls: type[T], kind: str, name: str, words: Mapping[str, str]) -> T:
    """An instance of a dataclass from 'key=value' words; the key `config` names a TOML file, over which words win.

    kind, name   for errors: 'bridge', 'udp'
    ModelError or UnknownNameError naming the file, the key, what was got and what is expected.
    """
    words = dict(words)
    path = words.pop("config", None)
    table = {} if path is None else read_toml(path)
    return _made(cls, f"{kind} '{name}'", "" if path is None else path, table, words)


def hints(cls: type) -> dict[str, Any]:
    """The parameters of a dataclass by name, with their types."""
    known = typing.get_type_hints(cls)
    return {one.name: known[one.name] for one in dataclasses.fields(cls) if one.init}


def spelled(hint: Any) -> str:
    """A type as a person reads it: 'float | None', 'list of str', 'none|mean|lowpass'."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "|".join(map(str, inner))
    if origin is tuple:
        return f"list of {spelled(inner[0])}"
    if origin is dict:
        return f"table of {spelled(inner[1])}"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(spelled(one) for one in inner)
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))


def _made(
    cls: type[T], owner: str, file: str, table: Mapping[str, Any], words: Mapping[str, str], base: Any = None
) -> T:
    """One dataclass; words with a dot belong to a part of it that is one itself. What is not given is as in `base`."""
    known = hints(cls)
    in_file = f"{file}: " if file else ""
    for key in table:
        if key not in known:
            raise ModelError(f"{owner}: {in_file}{UnknownNameError('key', key, known)}")
    values: dict[str, Any] = {}
    parts: dict[str, dict[str, str]] = {}
    for key, word in words.items():
        head, dot, rest = key.partition(".")
        if head not in known:
            raise UnknownNameError(f"parameter of {owner}", head, known)
        if dot:
            if _part_type(known[head]) is None:
                raise ModelError(f"{owner}: {key}: '{head}' has no parts")
            parts.setdefault(head, {})[rest] = word
        else:
            values[head] = from_word(f"{owner}: {key}", word, known[head])
    for key, value in table.items():
        if key in values or key in parts:
            continue
        values[key] = from_toml(f"{owner}: {in_file}{key}", value, known[key], _default(cls, key))
    for head, inner in parts.items():
        inside = table.get(head, {})
        if not isinstance(inside, dict):
            raise ModelError(f"{owner}: {in_file}{head}: expected a table, got {_shown(inside)}")
        values[head] = _made(_part_type(known[head]), f"{owner}: {head}", file, inside, inner, _default(cls, head))
    made: T = _called(cls, f"{owner}: {in_file}", values, base)
    return made


def _part_type(hint: Any) -> Any:
    """The dataclass that a parameter is, or may be (X | None); None where it is none."""
    inner = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return next((one for one in inner if dataclasses.is_dataclass(one)), None)


def _default(cls: Any, key: str) -> Any:
    """Of a field; None where it has none."""
    one = next(one for one in dataclasses.fields(cls) if one.name == key)
    if one.default_factory is not dataclasses.MISSING:
        return one.default_factory()
    return None if one.default is dataclasses.MISSING else one.default


def _called(cls: Any, place: str, values: Mapping[str, Any], base: Any) -> Any:
    """With these values, and the others as in `base` (of the same type; else the defaults). What the class itself finds
    wrong is told with the place it was given at."""
    missing = [
        one.name for one in dataclasses.fields(cls)
        if one.init and one.name not in values
        and one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
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
    """A word of the command line as a type. Lists are parted by '+', tables are KEY=VALUE parted by '+'."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if type(None) in inner and word.lower() == "none":
            return None
        others = [one for one in inner if one is not type(None)]
        return _first(place, word, others, from_word)
    if origin is Literal:
        return _choice(place, word, inner, {str(one): one for one in inner}.get(word, word))
    if origin is tuple:
        return tuple(from_word(place, part, inner[0]) for part in word.split(APART) if part)
    if origin is dict:
        pairs = [part.partition("=") for part in word.split(APART) if part]
        for key, sign, _ in pairs:
            if not sign:
                raise ModelError(f"{place}: expected KEY=VALUE, parted by '{APART}'; got '{key}'")
        return {key: from_word(f"{place}.{key}", value, inner[1]) for key, _, value in pairs}
    if dataclasses.is_dataclass(hint):
        if (worded := _worded(hint)) is None:
            raise ModelError(f"{place}: can only be given in a file (config=FILE.toml), or as {_key(place)}.KEY=VALUE")
        return _from_its_word(worded, word, place)
    if hint is bool and word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if hint in (int, float):
        try:
            return _finite(place, hint(word), hint, word)
        except ValueError:
            pass
    elif hint is str:
        return word
    raise ModelError(f"{place}: expected {_NAMES.get(hint, hint)}, got '{word}'")


def _key(place: str) -> str:
    """The key alone, of where something was given."""
    return place.rpartition(": ")[2]


@runtime_checkable
class Worded(Protocol):
    """A class of parameters that can be written as one word on the command line."""

    def from_word(self, word: str, place: str) -> Any:
        """An instance; ModelError, naming the place."""


def _worded(hint: object) -> Worded | None:
    return hint if isinstance(hint, Worded) else None


def _from_its_word(hint: Worded, word: str, place: str) -> Any:
    try:
        return hint.from_word(word, place)
    except ModelError as fault:
        if place in str(fault):
            raise
        raise ModelError(f"{place}: {fault}") from None


def from_toml(place: str, value: Any, hint: Any, base: Any = None) -> Any:
    """A value of a TOML file as a type. TOML has types of its own: text is no number here. base: as in _made."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _first(place, value, [one for one in inner if one is not type(None)], from_toml)
    if origin is Literal:
        return _choice(place, value, inner, value)
    if origin is tuple:
        if not isinstance(value, list):
            raise ModelError(f"{place}: expected a list of {spelled(inner[0])}, got {_shown(value)}")
        return tuple(from_toml(f"{place}[{i}]", one, inner[0]) for i, one in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ModelError(f"{place}: expected a table of {spelled(inner[1])}, got {_shown(value)}")
        return {key: from_toml(f"{place}.{key}", one, inner[1]) for key, one in value.items()}
    if dataclasses.is_dataclass(hint):
        if isinstance(value, str) and (worded := _worded(hint)) is not None:
            return _from_its_word(worded, value, place)
        if not isinstance(value, dict):
            raise ModelError(f"{place}: expected a table, got {_shown(value)}")
        return _part(place, hint, value, base)
    if hint is float and type(value) in (int, float):
        return _finite(place, float(value), float, value)
    if hint is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a channel may be a number
    if type(value) is hint:
        return value
    raise ModelError(f"{place}: expected {_NAMES.get(hint, spelled(hint))}, got {_shown(value)}")


def _part(place: str, cls: Any, table: Mapping[str, Any], base: Any) -> Any:
    known = hints(cls)
    for key in table:
        if key not in known:
            raise ModelError(f"{place}: {UnknownNameError('key', key, known)}")
    values = {
        key: from_toml(f"{place}.{key}", value, known[key], getattr(base, key, None)) for key, value in table.items()
    }
    return _called(cls, f"{place}: ", values, base)


def _first(place: str, value: Any, choices: list[Any], read: Any) -> Any:
    """The first of several types that fits."""
    for one in choices[:-1]:
        try:
            return read(place, value, one)
        except ModelError:
            continue
    return read(place, value, choices[-1])


def _choice(place: str, value: Any, known: tuple[Any, ...], found: Any) -> Any:
    if found in known and type(found) in {type(one) for one in known}:
        return found
    raise ModelError(f"{place}: expected one of {', '.join(map(str, known))}; got {_shown(value)}")


def _finite(place: str, number: Any, hint: Any, given: Any) -> Any:
    if not math.isfinite(number):
        raise ModelError(f"{place}: expected {_NAMES[hint]}, got '{given}'")
    return number


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
