"""Names of robots, outputs and actuators as parts of topics and keys: a plant or an FMU calls them as it likes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from rtmms.base.errors import ModelError

_KEPT = "-_.,:()[]=~!"
_LONGEST = 200


def part(name: str) -> str:
    """A name as one part of a topic: what parts or matches topics, or cannot be seen, is written as '_'."""
    return "".join(sign if sign.isalnum() or sign in _KEPT else "_" for sign in name[:_LONGEST]) or "_"


def robot_part(robot: str) -> str:
    """A robot's name, or the file's that it was made from."""
    return part(PurePath(robot).name)


def parts(names: Iterable[str], kind: str) -> dict[str, str]:
    """The part of a topic for each name; ModelError where two of them would be the same. kind: for the error."""
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(part(name), name)
        if other != name:
            raise ModelError(f"{kind}: '{other}' and '{name}' are both '{part(name)}' as a topic; select one of them")
        found[name] = part(name)
    return found
