"""Files that determine the rows of a study: those that its arguments name, and those that building a case opens.

Each file counts by its hash. The hashes are part of the study's key, so a table never has rows of two contents.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.util import find_spec, source_from_cache
from typing import Any

from rtmms.base.errors import RtmmsError
from rtmms.base.trust import is_library

SYSTEM = (
    "/proc/", "/sys/", "/dev/", "/etc/", "/usr/share/", "/usr/lib/", "/usr/lib64/", "/usr/local/share/",
    "/usr/local/lib/",
)  # fmt: skip
"""Folders whose files describe the machine, not the study; a file there that the study's arguments name counts."""

UNPACKED = ("rtmms-fmu-", "rtmms-kernels-")
"""First letters of folders for temporary files in which rtmms unpacks FMUs and compiled kernels."""

PACKAGES = ("rtmms_controllers", "rtmms_bridges", "rtmms_benchmarks")
"""Packages of this distribution beside rtmms: their version counts."""

OPENED = {"open": 0, "sqlite3.connect": 0, "ctypes.dlopen": 0}
"""Audit events of Python that open a file, and the place of the file's name among their arguments."""

SETTLED_NS = 1_000_000_000
"""Age from which the time stamps of a file show a later change for certain, whatever the clock of the file system."""

_listening: list[dict[str, str]] = []
_foreign: set[str] = set()
_sources: dict[str, str] = {}
"""Hash of each Python file of the user, at the last time that this process opened it."""
_recording: list[bool] = []
_ours = threading.local()
"""Whether this thread opens files for its own purposes now."""
_hashes: dict[str, tuple[tuple[int, ...], str]] = {}


@contextmanager
def recorded_modules() -> Iterator[None]:
    """Record the state of each module at its import, within the block, which is a whole command.

    Modules that are imported before do not belong to the study.

    Yields
    ------
    None
        Nothing.
    """
    _foreign.clear()
    _foreign.update(sys.modules)
    _hook()
    _recording.append(True)
    try:
        yield
    finally:
        _recording.pop()


@contextmanager
def opened_files(names: dict[str, str]) -> Iterator[None]:
    """Add each file of the user that Python opens to read to `names`, with its hash, within the block.

    The hash is taken before the file is opened for the first time. A file that changes later has another one.

    Parameters
    ----------
    names : dict[str, str]
        Hashes by name, filled.

    Yields
    ------
    None
        Nothing.
    """
    _hook()
    _listening.append(names)
    try:
        yield
    finally:
        _listening[:] = [item for item in _listening if item is not names]


@cache
def _hook() -> None:
    """Install the audit hook, once a process: Python cannot remove one."""
    _own_places()  # not within the hook
    sys.addaudithook(_note)


def _note(event: str, values: tuple[Any, ...]) -> None:
    if event not in OPENED or not (_listening or _recording) or getattr(_ours, "opening", False):
        return
    name = values[OPENED[event]]
    if not isinstance(name, str | bytes | os.PathLike):
        return
    if event == "open" and isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR):
        return
    _ours.opening = True
    try:
        _add(_source(os.path.abspath(os.fsdecode(name))))
    except (OSError, ValueError):
        return
    finally:
        _ours.opening = False


def _add(name: str) -> None:
    python = name.endswith(".py")
    if not python and all(name in names for names in _listening):
        return
    if not _counts(name) or not (result := hash_of(name)):
        return
    if python:
        _sources[name] = result
    for names in _listening:
        names.setdefault(name, result)


def input_files(arguments: Any, opened: Mapping[str, str]) -> dict[str, str]:
    """Hash each file that determines a study's rows.

    Parameters
    ----------
    arguments : Any
        The study: all texts in it that name a file count, also those that a C library opens.
    opened : Mapping[str, str]
        Names and hashes of `opened_files`. The files of libraries, of the machine and of caches are not among them.

    Returns
    -------
    dict[str, str]
        SHA-256 by name; the name is relative for a file below the working directory. For a module it is the hash at its
        import, for an opened file the hash at its reading.
    """
    result = {name: hash_of(name) for name in _named(arguments)} | dict(opened)
    result |= {name: _sources.get(name) or hash_of(name) for name in _modules()}
    return {_shown(name): result[name] for name in sorted(result) if result[name]}


def refuse_stale_modules() -> None:
    """Refuse to run where a module of the user differs from its file.

    Raises
    ------
    RtmmsError
        A file has changed after its import.
    """
    for name in _modules():
        if name in _sources and hash_of(name) != _sources[name]:
            raise RtmmsError(
                f"{_shown(name)}: this file changed after it was imported; run the same command again to "
                "start anew (restart the workers of a cluster first)"
            )


def changed_file(inputs: Mapping[str, str]) -> str:
    """Return the name of a file that has another content than `inputs` has.

    Parameters
    ----------
    inputs : Mapping[str, str]
        SHA-256 by name.

    Returns
    -------
    str
        '' for none.
    """
    return next((name for name, digest in inputs.items() if hash_of(os.path.abspath(name)) != digest), "")


def refuse_changed(inputs: Mapping[str, str]) -> None:
    """Refuse to run where a file has another content than `inputs` has.

    Parameters
    ----------
    inputs : Mapping[str, str]
        SHA-256 by name.

    Raises
    ------
    RtmmsError
        A file has changed.
    """
    name = changed_file(inputs)
    if name:
        raise RtmmsError(f"{name}: this file changed while the study ran; run the same command again to start anew")


def hash_of(name: str) -> str:
    """Return the SHA-256 of a file.

    Parameters
    ----------
    name : str
        The file.

    Returns
    -------
    str
        '' where there is no such readable file.
    """
    before, _ours.opening = getattr(_ours, "opening", False), True
    try:
        return _hash_of(name)
    finally:
        _ours.opening = before


def _hash_of(name: str) -> str:
    try:
        descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return ""
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        return ""
    with os.fdopen(descriptor, "rb") as file:
        mark = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        before = _hashes.get(name)
        if before is not None and before[0] == mark:
            return before[1]
        try:
            result = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return ""
    if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED_NS:
        _hashes[name] = mark, result
    return result


def _source(name: str) -> str:
    """Return the source file for compiled code that Python stores of it."""
    if not name.endswith(".pyc"):
        return name
    try:
        return source_from_cache(name)
    except (ValueError, NotImplementedError):
        return name


def _modules() -> set[str]:
    """Return the files of the user's modules that were imported since the command began.

    Python does not open them again.
    """
    result = set()
    for name, module in list(sys.modules.items()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        known = name in _foreign or name in ("__main__", "__mp_main__")
        if not known and isinstance(origin, str) and os.path.isabs(origin) and _counts(_source(origin)):
            result.add(_source(origin))
    return result


@cache
def _counts(name: str) -> bool:
    """Return whether an opened file is the user's."""
    place = os.path.realpath(name)
    if place.startswith((*SYSTEM, *_own_places())) or f"{os.sep}__pycache__{os.sep}" in place:
        return False
    return not is_library(place)


@cache
def _own_places() -> tuple[str, ...]:
    """Return the first letters of files that belong to this distribution, to its environment or to caches."""
    from platformdirs import user_cache_dir

    folders = [user_cache_dir(), os.environ.get("NUMBA_CACHE_DIR", "")]
    for name in PACKAGES:
        spec = find_spec(name)
        folders += [] if spec is None else spec.submodule_search_locations or []
    for prefix in {sys.prefix, sys.base_prefix}:
        folders += [os.path.join(prefix, item) for item in ("bin", "lib", "share", "etc", "include")]
    temporary = os.path.realpath(tempfile.gettempdir())
    return (
        *(os.path.join(os.path.realpath(folder), "") for folder in folders if folder),
        *(os.path.join(temporary, item) for item in UNPACKED),
    )


def _named(arguments: Any) -> set[str]:
    """Return the files that the arguments name: a whole text, or a part of it as in 'shape:file=g.csv'."""
    result: set[str] = set()
    for text in set(_texts(arguments)):
        for part in {text, *re.split(r"[,=:]", text)}:
            try:
                path = os.path.abspath(os.path.expanduser(part.strip()))
                if part.strip() and os.path.isfile(path):
                    result.add(path)
            except (OSError, ValueError):
                continue
    return result


def _texts(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, str | os.PathLike):
        yield str(arguments)
    elif isinstance(arguments, Mapping):
        for key, value in arguments.items():
            yield from _texts(key)
            yield from _texts(value)
    elif is_dataclass(arguments) and not isinstance(arguments, type):
        for item in fields(arguments):
            yield from _texts(getattr(arguments, item.name))
    elif isinstance(arguments, Iterable) and not isinstance(arguments, bytes):
        for item in arguments:
            yield from _texts(item)


def _shown(name: str) -> str:
    """Return a relative name for a file below the working directory, as workers elsewhere may have their own."""
    result = os.path.relpath(name) if os.path.splitdrive(name)[0] == os.path.splitdrive(os.getcwd())[0] else name
    return name if result.startswith(os.pardir) else result
