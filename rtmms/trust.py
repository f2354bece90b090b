"""Which files may run as code: those that only this user and root can have written, and that no library owns."""

from __future__ import annotations

import os
import site
import stat
import sysconfig
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rtmms.errors import ModelError


@dataclass(frozen=True)
class NamesFile:
    """Metadata of a parameter whose text names a file: `cert: Annotated[str, NamesFile("input")]`.

    Parameters
    ----------
    kind
        What the program does with the file. "code": it runs the file. "input": it reads the file. "output": it writes
        the file. "device": it opens a device of the machine, for example a serial port.
    """

    kind: Literal["code", "input", "output", "device"]


def file_parameters(hints: dict[str, Any]) -> dict[str, str]:
    """Return the parameters that name files, each with its kind.

    Parameters
    ----------
    hints
        Types of parameters by name, with their metadata (`typing.get_type_hints(..., include_extras=True)`).

    Returns
    -------
    dict
        Kind of file by parameter. A union or a tuple names a file where one of its parts does.
    """
    found = {name: _file_kind(hint) for name, hint in hints.items()}
    return {name: kind for name, kind in found.items() if kind}


def _file_kind(hint: Any) -> str:
    for one in getattr(hint, "__metadata__", ()):
        if isinstance(one, NamesFile):
            return one.kind
    return next((kind for part in typing.get_args(hint) if (kind := _file_kind(part))), "")


def exposed(path: Path | str) -> str:
    """Why others than this user and root can have written this file, link or folder; '' where they cannot.

    A group that is this user's alone counts as the user. FileNotFoundError where there is no such path.
    """
    if not hasattr(os, "geteuid"):
        return ""
    found = os.lstat(path)
    if found.st_uid not in (0, os.geteuid()):
        return f"'{path}' belongs to another user (uid {found.st_uid})"
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(found.st_mode) or sticky:
        return ""
    mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
    if found.st_mode & stat.S_IWOTH:
        return f"'{path}' can be written by everybody ({mode})"
    if found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid):
        return f"'{path}' can be written by a group (gid {found.st_gid}, {mode})"
    return ""


def exposed_way(path: Path) -> str:
    """As `exposed`, of a file and all folders on the way to it, in which it could be replaced."""
    place = path.resolve()
    return next((why for one in (place, *place.parents) if one.exists() and (why := exposed(one))), "")


def _own_group(gid: int) -> bool:
    """Whether nobody but this user and root is in a group: root's own, or one of the user's name without others."""
    if gid == 0:
        return True
    import grp
    import pwd

    try:
        group, name = grp.getgrgid(gid), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


def refuse_foreign_code(path: Path, place: str) -> None:
    """ModelError where others can have written a file that would run as code.

    place   what names the file, for the message. Nothing where there is no such file: who loads it says so
    """
    why = exposed_way(path) if path.is_file() else ""
    if why:
        raise ModelError(f"{place}, which would run as code: {why}; expected a file of yours alone")


def refuse_library(path: Path, place: str) -> None:
    """ModelError for a file of rtmms, of Python's standard library or of an installed package: it is no user's plant,
    controller or cost, whatever callables it has.  place: what names the file, for the message."""
    found = path.resolve()
    for folder, owner in _libraries():
        if found.is_relative_to(folder):
            raise ModelError(f"{place}: '{path}' belongs to {owner}; expected a file of your own")


def is_library(file: str) -> bool:
    """It is one of rtmms, of Python's standard library (frozen modules too), or of an installed package."""
    found = Path(file)
    return file.startswith("<") or any(found.is_relative_to(folder) for folder, _ in _libraries())


def _libraries() -> list[tuple[Path, str]]:
    paths = sysconfig.get_paths()
    installed = [paths["purelib"], paths["platlib"], site.getusersitepackages()]
    installed += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    standard = [paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)]
    return [
        (Path(__file__).resolve().parent, "rtmms"),
        *((Path(one).resolve(), "an installed package") for one in installed),
        *((Path(one).resolve(), "Python's standard library") for one in standard),
    ]
