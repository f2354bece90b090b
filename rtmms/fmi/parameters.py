"""Values given for an FMU's parameters, checked against what the FMU says of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.fmi.description import limits

_REAL = ("Float64", "Float32", "Real")


def parameter_value(path: str, name: str, variable: Any, given: Any) -> float:
    """The value as a number; ModelError naming file, parameter, what was got, and its type and limits.

    Flags take true, false, 1 and 0; enumerations the name of an item or its number; whole numbers nothing between.
    """
    number = _number(variable, given)
    if number is None or not _fits(variable, number):
        raise ModelError(f"{path}: {name}: expected {_expected(variable)}, got {given!r}")
    return number


def _number(variable: Any, given: Any) -> float | None:
    if variable.type == "Enumeration" and isinstance(given, str):
        return next((float(item.value) for item in _items(variable) if item.name == given), None)
    if not isinstance(given, bool | int | float | np.number | np.bool_):
        return None
    if isinstance(given, bool | np.bool_) and variable.type != "Boolean":
        return None
    try:
        number = float(given)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _fits(variable: Any, number: float) -> bool:
    kind = variable.type
    if kind == "Boolean":
        return number in (0.0, 1.0)
    if kind not in _REAL and number != math.floor(number):
        return False
    if kind == "Enumeration" and _items(variable):
        return number in {float(item.value) for item in _items(variable)}
    lower, upper = _range(variable)
    return (lower is None or number >= lower) and (upper is None or number <= upper)


def _range(variable: Any) -> tuple[float | None, float | None]:
    """Its limits, at the most those of its type."""
    lower, upper = limits(variable)
    kind = {"Integer": "int32", "Enumeration": "int32"}.get(variable.type, variable.type.lower())
    if kind.startswith(("int", "uint")):
        # float64 holds 2^53 and what is below of 64 bits; the last one of them is 2^63 - 1024
        bounds = np.iinfo(kind)
        lower = float(bounds.min) if lower is None else max(lower, float(bounds.min))
        most = math.nextafter(2.0**bounds.bits, 0.0) if bounds.min == 0 else math.nextafter(-float(bounds.min), 0.0)
        most = float(bounds.max) if bounds.bits <= 32 else most
        upper = most if upper is None else min(upper, most)
    return lower, upper


def _items(variable: Any) -> list[Any]:
    return list(getattr(variable.declaredType, "items", None) or [])


def _expected(variable: Any) -> str:
    kind = variable.type
    if kind == "Boolean":
        return "true or false"
    if kind == "Enumeration" and _items(variable):
        return "one of " + ", ".join(f"{item.name} ({item.value})" for item in _items(variable))
    lower, upper = limits(variable) if kind in _REAL else _range(variable)
    noun = "a number" if kind in _REAL else "a whole number"
    if lower is not None and upper is not None:
        return f"{noun} from {lower:.17g} to {upper:.17g}"
    if lower is not None or upper is not None:
        return f"{noun} >= {lower:.17g}" if lower is not None else f"{noun} <= {upper:.17g}"
    return "a finite number"
