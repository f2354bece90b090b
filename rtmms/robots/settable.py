"""Parameters that may change while a plant runs: those that change values in arrays, but no size, channel or state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rtmms.errors import ModelError, UnknownNameError


def refuse_fixed(robot: str, given: Mapping[str, Any], settable: Iterable[str], known: Iterable[str]) -> None:
    """UnknownNameError for a parameter that there is none of, ModelError for one that stays as it was built, or where
    nothing is given; each says what may change."""
    settable, known = tuple(settable), tuple(known)
    if not given:
        raise ModelError(f"set: expected parameter = value, got nothing; what can change: {', '.join(settable)}")
    for name in given:
        if name not in known:
            raise UnknownNameError(f"{robot} parameter", name, known)
        if name not in settable:
            raise ModelError(
                f"set: {robot}: {name} stays as it was built; what can change while it runs: {', '.join(settable)}"
            )
