"""Parameters of a robot by name: known, finite, in range, or refused by name."""

from __future__ import annotations

import difflib
import math
from dataclasses import fields, replace
from typing import Any

from rtmms.errors import ModelError, UnknownNameError


def build(
    kind: Any, given: dict[str, Any], choices: dict[str, tuple[str, ...]], may_vanish: set[str], signed: set[str],
    most: dict[str, float] | None = None, *, robot: str = "",
) -> Any:  # fmt: skip
    """An instance of the dataclass `kind` from its defaults and `given`.

    choices     words that a parameter may be
    may_vanish  numbers that may be 0; signed: numbers of any sign; all others must be > 0
    most        the greatest size of numbers, where there is one
    robot       what messages call it; '' for the dataclass's own name
    A number whose default is None may be None, or the word 'none', as `rtmms list` prints it.
    Raises UnknownNameError or ModelError, naming robot and parameter.
    """
    known = {f.name: f.default for f in fields(kind)}
    robot = robot or kind.__name__.lower()
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise UnknownNameError(f"{robot} parameter", name, known)
        default = known[name]
        if name in choices:
            if value not in choices[name]:
                near = difflib.get_close_matches(str(value), choices[name], n=1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise ModelError(f"{robot}: {name} must be one of {', '.join(choices[name])}, got '{value}'{hint}")
            values[name] = value
        elif default is None and value in (None, "none"):
            values[name] = None
        elif default is None or isinstance(default, (int, float)):
            values[name] = number = _number(robot, name, value, isinstance(default, int))
            if name not in signed and (number < 0 or (number == 0 and name not in may_vanish)):
                bound = ">= 0" if name in may_vanish else "> 0"
                raise ModelError(f"{robot}: {name} must be {bound}, got {number}")
            if most is not None and abs(number) > most.get(name, math.inf):
                size = f"{most[name]:g} in size" if name in signed else f"{most[name]:g}"
                raise ModelError(f"{robot}: {name} must be <= {size}, got {number}")
        else:
            values[name] = value
    return replace(kind(), **values)


def step_of(robot: str, dt: Any, default: float) -> float:
    """s, the plant's step: `default` for None. ModelError where it is not a number, not finite or not > 0."""
    step: float = _number(robot, "dt", default if dt is None else dt, False)
    if step <= 0.0:
        raise ModelError(f"{robot}: dt must be > 0 s, got {dt}")
    return step


def _number(robot: str, name: str, value: Any, whole: bool) -> Any:
    if isinstance(value, bool):
        raise ModelError(f"{robot}: {name} must be a number, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{robot}: {name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ModelError(f"{robot}: {name} must be finite, got {value}")
    if whole and number != int(number):
        raise ModelError(f"{robot}: {name} must be a whole number, got {value}")
    return int(number) if whole else number
