"""Values of a person in their declared types: text of a command line, values of a TOML file, keywords.

msgspec reads single values and checks their range (`Annotated[float, Meta(ge=0, le=1)]`). This module adds texts that
people use instead of JSON's, lists and tables as text, and messages. A message has the place, the expected and the
given value.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

from rtmms.base.errors import ModelError

BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
NAMES: dict[Any, str] = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
SEPARATOR = "+"
"""Separator of a list's entries in a text, because the comma separates keys."""
MAX_TEXT_LENGTH = 60

Part = Callable[[str, Any, Any], Any]


def without_numpy(value: Any) -> Any:
    """Return a number or an array of numpy's as Python's number or list, and any other value itself.

    Parameters
    ----------
    value : Any
        The value.

    Returns
    -------
    Any
        The same value; numpy is not imported for it.
    """
    return value.tolist() if hasattr(value, "dtype") and hasattr(value, "tolist") else value


def convert_value(place: str, value: Any, hint: Any, *, from_text: bool = False, part: Part | None = None) -> Any:
    """Return a value in a type.

    Parameters
    ----------
    place : str
        Source of the value, for messages: "bridge 'udp': port".
    value : Any
        The value.
    hint : Any
        float, int, bool, str, Literal, a union, tuple[X, ...], tuple[X, X, X] or dict[str, X], each possibly Annotated
        with a range (msgspec.Meta).
    from_text : bool, default False
        Whether it is text, as on a command line: numbers are read from it, and '+' separates lists and tables.
    part : Part | None, optional
        Function of place, value and dataclass that reads a table as a dataclass.

    Returns
    -------
    Any
        The value in its type.

    Raises
    ------
    ModelError
        If it does not fit, or is not finite. The message has the place, the expected and the given value.

    Examples
    --------
    >>> convert_value("port", "8+9", tuple[int, ...], from_text=True)
    (8, 9)
    """
    value = without_numpy(value)
    bare, inner = _bare(hint), typing.get_args(_bare(hint))
    origin = typing.get_origin(bare)
    if origin in (typing.Union, types.UnionType):
        return _union(place, value, inner, from_text, part)
    if origin is Literal:
        return _choice(place, value, inner, from_text)
    if origin is tuple:
        return _sequence(place, value, inner, from_text, part)
    if origin is dict:
        return {
            key: convert_value(f"{place}.{key}", item, inner[1], from_text=from_text, part=part)
            for key, item in _table(place, value, inner[1], from_text).items()
        }
    if dataclasses.is_dataclass(bare) and part is not None:
        return part(place, value, bare)
    return _convert_scalar(place, value, hint, bare, from_text)


def type_text(hint: Any) -> str:
    """Return a type as a person reads it: 'float | None', 'list of str', 'none|mean|lowpass'.

    Parameters
    ----------
    hint : Any
        The type.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> type_text(tuple[str, ...])
    'list of str'
    """
    hint = _bare(hint)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "|".join(map(str, inner))
    if origin is tuple:
        return f"list of {type_text(inner[0])}" if _any_length(inner) else f"list of {len(inner)} {type_text(inner[0])}"
    if origin is dict:
        return f"table of {type_text(inner[1])}"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(type_text(item) for item in inner)
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))


def expectation_text(hint: Any) -> str:
    """Return the expected value of a type with its range: 'a number from 0 to 90', 'a whole number > 0'.

    Parameters
    ----------
    hint : Any
        The type.

    Returns
    -------
    str
        The text.
    """
    low, high = _bound(hint, "ge", "gt"), _bound(hint, "le", "lt")
    name = NAMES.get(_bare(hint), type_text(hint))
    if low is not None and high is not None and low[0] + high[0] == ">=<=":
        return f"{name} from {low[1]:g} to {high[1]:g}"
    ends = " and ".join(f"{sign} {number:g}" for sign, number in filter(None, (low, high)))
    return f"{name} {ends}" if ends else name


def value_text(value: Any) -> str:
    """Return a value as short text for a message.

    Parameters
    ----------
    value : Any
        The value.

    Returns
    -------
    str
        At most MAX_TEXT_LENGTH characters.
    """
    text = repr(value)
    return text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 3] + "..."


def _bare(hint: Any) -> Any:
    """Return a type without its Annotated."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _bound(hint: Any, with_it: str, without: str) -> tuple[str, float] | None:
    """Return sign and number of a range's end."""
    import msgspec  # not with `import rtmms`

    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    for meta in typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ():
        for key in (with_it, without):
            if isinstance(meta, msgspec.Meta) and getattr(meta, key) is not None:
                return signs[key], getattr(meta, key)
    return None


def _convert_scalar(place: str, value: Any, hint: Any, bare: Any, from_text: bool) -> Any:
    import msgspec  # not with `import rtmms`

    if from_text and bare is bool:
        value = BOOLEANS.get(str(value).lower(), value)
    if not from_text and bare is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a channel may be a number
    try:
        result = msgspec.convert(value, hint, strict=not from_text or not isinstance(value, str))
    except msgspec.ValidationError:
        result = None
    if result is None or (isinstance(result, float) and not math.isfinite(result)):
        got = (
            f"'{value}'" if from_text or (isinstance(value, float) and not math.isfinite(value)) else value_text(value)
        )
        raise ModelError(f"{place}: expected {expectation_text(hint)}, got {got}")
    return result


def _union(place: str, value: Any, kinds: tuple[Any, ...], from_text: bool, part: Part | None) -> Any:
    """Return a value in the narrowest of several types that fits."""
    if type(None) in kinds and (value is None or (from_text and str(value).lower() == "none")):
        return None
    narrow = (bool, int, float, str)
    others = [kind for kind in kinds if kind is not type(None)]
    others.sort(key=lambda item: narrow.index(_bare(item)) if _bare(item) in narrow else -1)
    for other in others[:-1]:
        try:
            return convert_value(place, value, other, from_text=from_text, part=part)
        except ModelError:
            continue
    try:
        return convert_value(place, value, others[-1], from_text=from_text, part=part)
    except ModelError:
        if len(others) == 1 or any(_bare(item) not in narrow for item in others):
            raise
        raise ModelError(f"{place}: expected {' or '.join(map(expectation_text, others))}, got '{value}'") from None


def _choice(place: str, value: Any, known: tuple[Any, ...], from_text: bool) -> Any:
    result = {str(item): item for item in known}.get(value, value) if from_text and isinstance(value, str) else value
    if type(result) in {type(item) for item in known} and result in known:
        return result
    near = difflib.get_close_matches(str(value), map(str, known), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ModelError(f"{place}: expected one of {', '.join(map(str, known))}; got {value_text(value)}{hint}")


def _any_length(inner: tuple[Any, ...]) -> bool:
    return len(inner) == 2 and inner[1] is Ellipsis


def _sequence(place: str, value: Any, inner: tuple[Any, ...], from_text: bool, part: Part | None) -> tuple[Any, ...]:
    if from_text:
        value = [part for part in value.split(SEPARATOR) if part]
    if not isinstance(value, (list, tuple)):
        raise ModelError(f"{place}: expected a list of {type_text(inner[0])}, got {value_text(value)}")
    if not _any_length(inner) and len(value) != len(inner):
        raise ModelError(f"{place}: expected a list of {len(inner)} {type_text(inner[0])}, got {value_text(value)}")
    if from_text:
        return tuple(convert_value(place, item, inner[0], from_text=True, part=part) for item in value)
    return tuple(convert_value(f"{place}[{i}]", item, inner[0], part=part) for i, item in enumerate(value))


def _table(place: str, value: Any, inner: Any, from_text: bool) -> Mapping[str, Any]:
    if from_text:
        pairs = [part.partition("=") for part in value.split(SEPARATOR) if part]
        for key, sign, _ in pairs:
            if not sign:
                raise ModelError(f"{place}: expected KEY=VALUE, separated by '{SEPARATOR}', got '{key}'")
        return {key: text for key, _, text in pairs}
    if not isinstance(value, dict):
        raise ModelError(f"{place}: expected a table of {type_text(inner)}, got {value_text(value)}")
    return value
