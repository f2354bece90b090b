"""Names of robots, outputs and actuators as parts of topics and keys, because plants and FMUs use any names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from rtmms.base.errors import ModelError

_ALLOWED_SIGNS = "-_.,:()[]=~!"
_MAX_NAME_LENGTH = 200


def part(name: str) -> str:
    """Return a name as one part of a topic.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str
        The name with '_' in place of characters that separate or match topics, or that are invisible.

    Examples
    --------
    >>> part("left/front #1")
    'left_front__1'
    """
    return "".join(sign if sign.isalnum() or sign in _ALLOWED_SIGNS else "_" for sign in name[:_MAX_NAME_LENGTH]) or "_"


def robot_part(robot: str) -> str:
    """Return a robot's name, or that of its file, as one part of a topic.

    Parameters
    ----------
    robot : str
        The robot.

    Returns
    -------
    str
        The part.
    """
    return part(PurePath(robot).name)


def parts(names: Iterable[str], kind: str) -> dict[str, str]:
    """Return the part of a topic for each name.

    Parameters
    ----------
    names : Iterable[str]
        The names.
    kind : str
        Kind of the names, for the error.

    Returns
    -------
    dict[str, str]
        Parts by name.

    Raises
    ------
    ModelError
        If two parts are equal.
    """
    result: dict[str, str] = {}
    used: dict[str, str] = {}
    for name in names:
        other = used.setdefault(part(name), name)
        if other != name:
            raise ModelError(
                f"{kind}: '{other}' and '{name}' have the same topic name '{part(name)}'; select one of them"
            )
        result[name] = part(name)
    return result
