"""What figures and films call a robot."""

from __future__ import annotations

import re
from pathlib import Path

_FILES = (".py", ".urdf", ".xml", ".fmu")
_USUAL = ("", "robot", "make")


def robot_title(robot: str, own: str = "") -> tuple[str, str]:
    """Return the title of a robot, and the file that it is from.

    Parameters
    ----------
    robot : str
        A name, a FILE.urdf, FILE.xml or FILE.fmu, or FILE.py:NAME.
    own : str
        The name that its description has; '' for none.

    Returns
    -------
    title, file : str
        The title begins with a capital. The file has no folder; '' for a robot that is known by its name.
    """
    path, _, name = (robot, "", "") if robot.endswith(_FILES) else robot.rpartition(":")
    if not path:
        return _titled(robot), ""
    stem = re.sub(r"^\d+_", "", Path(path).stem)
    file = Path(path).name + (f":{name}" if name else "")
    return _titled(own or (stem if name in _USUAL else name)), file


def _titled(name: str) -> str:
    return name.replace("_", " ").capitalize()
