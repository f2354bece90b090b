"""Values that a declaration excludes, for tests of refusals that follow from declarations."""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator
from typing import Any

from rtmms.base.parameters import Parameter


def wrong_values(declared: Parameter) -> Iterator[Any]:
    """Yield values of other types, other words, and numbers out of the range, as a file may have them."""
    bare = declared.bare
    if declared.choices:
        yield from (f"{declared.choices[0]}x", 3)
    elif bare is bool:
        yield from ("maybe", 3, [1])
    elif bare in (int, float):
        yield from ("x", True, [1.0], math.nan, math.inf, *_beyond(declared))
        if bare is int:
            yield 1.5
    elif bare is str:
        yield from ([1], {"a": 1}, *([""] if declared.required else []))
    elif bare in (list, dict, list | dict):
        yield from ("x", 3)
    elif typing.get_origin(bare) is tuple:
        yield from (3, {"a": 1})
        if declared.kind is float:
            length = 1 if typing.get_args(bare)[-1] is Ellipsis else len(typing.get_args(bare))
            yield from ([item] * length for item in ("x", math.nan, *_beyond(declared)))
            if typing.get_args(bare)[-1] is not Ellipsis:
                yield [1.0] * (length + 1)
    elif typing.get_origin(bare) is dict:
        yield from (3, [1])
    else:  # a type that reads itself: nothing that it can be
        yield 3.5


def _beyond(declared: Parameter) -> Iterator[float]:
    """Yield numbers outside the range."""
    low, high = declared.low, declared.le
    if low is not None:
        yield low - 1
        if declared.strict:
            yield low
    if high is not None:
        yield 2 * high + 1
