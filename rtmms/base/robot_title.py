"""Titles of robots in figures and films."""

from __future__ import annotations

import re
from pathlib import Path

_FILES = (".py", ".urdf", ".xml", ".fmu")
_COMMON_NAMES = ("", "robot", "make")


def robot_title(robot: str, described_name: str = "") -> tuple[str, str]:
    """Return the title of a robot, and its file.

    Parameters
    ----------
    robot : str
        A name, a FILE.urdf, FILE.xml or FILE.fmu, or FILE.py:NAME.
    described_name : str, default ''
        Name in its description; empty for none.

    Returns
    -------
    tuple[str, str]
        Title and file. The title begins with a capital. The file has no folder; it is empty for a robot with a
        registered name.

    Examples
    --------
    >>> robot_title("quad_plus")
    ('Quad plus', '')
    """
    path, _, name = (robot, "", "") if robot.endswith(_FILES) else robot.rpartition(":")
    if not path:
        return _titled(robot), ""
    stem = re.sub(r"^\d+_", "", Path(path).stem)
    file = Path(path).name + (f":{name}" if name else "")
    return _titled(described_name or (stem if name in _COMMON_NAMES else name)), file


def _titled(name: str) -> str:
    return name.replace("_", " ").capitalize()
