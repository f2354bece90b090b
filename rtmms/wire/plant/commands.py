"""A command checked as a whole before any of it counts: it is taken whole or refused whole. No socket here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from rtmms.errors import UnknownNameError
from rtmms.wire.protocol.messages import AHEAD_STEPS, Reason, Refused, shown

_HINTS_AMONG = 64
_HINT_LENGTH = 40


def read_head(newest: int, message: Mapping[str, Any]) -> tuple[int, int, dict[str, Any]]:
    """seq, step and values of a command; Refused if they are not what they should be,
    or if seq does not rise above the newest."""
    seq, step, values = message.get("seq"), message.get("step"), message.get("values")
    if type(seq) is not int or type(step) is not int or type(values) is not dict:
        raise Refused(Reason.WRONG_TYPE, "command: expected whole numbers seq and step, and a map values")
    if not newest < seq < 1 << 63:
        raise Refused(Reason.SEQ, f"command: seq must rise; newest {newest}, got {shown(seq)}")
    return seq, step, values


def check_step(step: int, now: int, behind: int, delay: int = 0) -> int:
    """How far ahead of the present step it is (negative: behind); Refused where it is too far off.

    delay   steps from a state to the one that the peer's command for it is for
    """
    ahead, most = step - now, max(AHEAD_STEPS, delay)
    if ahead > most:
        raise Refused(Reason.TOO_EARLY, f"command: step {shown(step)} is more than {most} ahead of now")
    if -ahead > behind:
        raise Refused(Reason.TOO_LATE, f"command: step {step} is more than {behind} behind now")
    return ahead


def check_values(index: Mapping[str, int], values: dict[str, Any], warm: bool, known: Callable[[str], bool]) -> None:
    """Finite numbers for actuators of the peer's (index), made floats in place; Refused otherwise, or before the
    warm-up is done."""
    for name, value in values.items():
        if name not in index:
            _refuse_name(name, known)
        if type(value) is not float:
            if type(value) is not int:
                raise Refused(Reason.WRONG_TYPE, f"command: {name}: expected a number, got {shown(value)}")
            value = values[name] = float(value)  # msgpack's whole numbers have at most 64 bits
        if not isfinite(value):
            raise Refused(Reason.NOT_FINITE, f"command: {name}: expected a finite number, got {value}")
    if not index:
        raise Refused(Reason.NOT_CLAIMED, "command: you claimed no actuator")
    if not warm:
        raise Refused(Reason.TOO_EARLY, "command: answer the warm-up states first")


def _refuse_name(name: object, known: Callable[[str], bool]) -> None:
    if type(name) is str and known(name):
        raise Refused(Reason.NOT_CLAIMED, f"command: actuator '{name}' is not among those you claimed")
    unknown = name if type(name) is str and len(name) <= _HINT_LENGTH else ""
    raise Refused(Reason.UNKNOWN_ACTUATOR, f"command: there is no actuator {shown(name)}", unknown)


def with_hint(text: str, unknown: str, names: Sequence[str]) -> str:
    """The text of an error with near misses. They take some 100 us to find: in the slack, when it is sent."""
    if not unknown or len(names) > _HINTS_AMONG:
        return text
    return f"{text}; {str(UnknownNameError('actuator', unknown, names)).partition('; ')[2]}"
