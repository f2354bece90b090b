"""What a peer sent, read without trust: any fault is a Refusal with a short reason, nothing else is ever raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any, NoReturn

LONGEST = 65536
Fuzzed = tuple[Callable[[bytes], object], list[bytes]]
"""What a function of the entry points rtmms.parsers returns: the code to try and some valid samples."""


class Refusal(ValueError):
    """A message that is not taken. reason: one word, for the counters; the text is for a person."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def read_json(data: bytes, longest: int = LONGEST) -> Any:
    """A JSON document of at most so many bytes; Refusal (oversize, garbled, not_finite)."""
    if len(data) > longest:
        raise Refusal("oversize", f"a message may have {longest} bytes, got {len(data)}")
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except Refusal:
        raise
    except (ValueError, RecursionError):  # also text that is no text, and whole numbers of thousands of digits
        raise Refusal("garbled", "not JSON") from None


def finite(value: Any, place: str) -> float:
    """A finite number; Refusal (wrong_type, not_finite) naming the place."""
    if type(value) not in (int, float):
        raise Refusal("wrong_type", f"{place}: expected a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise Refusal("not_finite", f"{place}: too large") from None
    if not isfinite(number):
        raise Refusal("not_finite", f"{place}: expected a finite number")
    return number


def numbers(value: Any, place: str, most: int = 1024) -> dict[str, float]:
    """A map of names to finite numbers; Refusal."""
    if not isinstance(value, dict) or len(value) > most:
        raise Refusal("wrong_type", f"{place}: expected an object of at most {most} numbers")
    return {str(name): finite(number, place) for name, number in value.items()}


def values_in(message: Any) -> dict[str, float]:
    """{"values": {name: number}}, as commands are written where nothing else says how; Refusal for anything else."""
    return numbers(message.get("values") if isinstance(message, dict) else None, "values")


def fuzz(parse: Callable[[bytes], object]) -> Callable[[bytes], str]:
    """A parser as the fuzz tests want it: a Refusal is an outcome, whatever else it raises is a finding."""

    def read(data: bytes) -> str:
        try:
            parse(data)
        except Refusal as refusal:
            return refusal.reason
        return "taken"

    return read


def _refuse_constant(word: str) -> NoReturn:
    raise Refusal("not_finite", f"{word} is not a finite number")
