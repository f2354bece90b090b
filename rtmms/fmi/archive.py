"""Unpacking of an FMU into a temporary folder, within limits, whole or not at all; and removal of abandoned folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import sys
import tempfile
import zipfile
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import BinaryIO

from rtmms.base.errors import ModelError
from rtmms.base.files import open_input
from rtmms.base.install import install_command

MAX_UNPACKED_BYTES = 2 << 30
MAX_ENTRIES = 50_000
PREFIX = "rtmms-fmu-"
_CHUNK = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MAX_DIRECTORY_BYTES = 16 << 20
"""Largest list of files, which zipfile reads whole, bytes."""
_END_OF_DIRECTORY = b"PK\x05\x06"


class UnpackedFmu:
    """Folder that an FMU was unpacked into. `remove` deletes it; the next process deletes that of a crashed one.

    The folder's name has our process id, and the folder itself a lock until the process ends.

    Parameters
    ----------
    path : str
        The FMU.

    Raises
    ------
    ModelError
        The file is no FMU; the message names it, and nothing is left.
    """

    def __init__(self, path: str) -> None:
        """Unpack an FMU, or raise ModelError with the file and what is wrong with it, with nothing left."""
        remove_abandoned()
        folder: str | None = None
        self._lock: int | None = None
        try:
            folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
            self.folder = Path(folder).resolve()
            self._lock = _locked(self.folder)
            with open_input(path, expected="an FMU") as file:
                _refuse_many_entries(file, path)
                with zipfile.ZipFile(file) as archive:
                    _unpack(archive, self.folder, path)
        except BaseException as fault:
            if folder is not None:
                self.remove()
            if isinstance(fault, ModelError) or not isinstance(fault, Exception):
                raise
            # zipfile and the decompressors raise whatever they meet: BadZipFile, zlib.error, EOFError, RuntimeError ...
            reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault) or repr(fault)
            raise ModelError(f"{path}: not an FMU: it cannot be unpacked: {reason}") from None

    def remove(self) -> None:
        """Remove the folder; a second call does nothing."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _refuse_many_entries(file: BinaryIO, path: str) -> None:
    """Raise ModelError where the list of files is too long: zipfile makes an object of each entry before we read it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 22))
    end = file.read()
    at = end.rfind(_END_OF_DIRECTORY)
    if at < 0 or len(end) < at + 22:
        return  # zipfile reports that it is no archive
    entries, length = struct.unpack_from("<HI", end, at + 10)
    wide = end.rfind(b"PK\x06\x06", 0, at)
    if wide >= 0 and len(end) >= wide + 56:
        entries, length = struct.unpack_from("<QQ", end, wide + 32)
    if min(length, size) > _MAX_DIRECTORY_BYTES:  # zipfile believes the length, not the count
        raise ModelError(
            f"{path}: expected at most {MAX_ENTRIES} files in an FMU, got a list of {length} bytes for {entries}"
        )


def _unpack(archive: zipfile.ZipFile, folder: Path, path: str) -> None:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise ModelError(f"{path}: expected at most {MAX_ENTRIES} files in an FMU, got {len(entries)}")
    packed_otherwise = next((entry for entry in entries if entry.compress_type not in _METHODS), None)
    if packed_otherwise is not None:  # FMI has these two; others allocate what they announce
        raise ModelError(
            f"{path}: not an FMU: expected ZIP entries that are stored or deflated, got another compression in "
            f"{packed_otherwise.filename!r:.200}"
        )
    left = MAX_UNPACKED_BYTES
    if (
        sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES
    ):  # before anything is written: zipfile gives no more
        raise _too_large(path, max(entries, key=lambda entry: entry.file_size).filename)
    for entry in entries:
        target = folder / _within(entry.filename, path)
        if entry.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # what comes out is counted, not what the entry declares; a link is written as the text that it is
        with archive.open(entry) as packed, target.open("wb") as file:
            while chunk := packed.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise _too_large(path, entry.filename)
                file.write(chunk)


def _too_large(path: str, name: str) -> ModelError:
    limit_text = f"{MAX_UNPACKED_BYTES / (1 << 30):g} GiB"
    return ModelError(f"{path}: expected an FMU of at most {limit_text} unpacked, got more (at {name!r:.200})")


def _within(name: str, path: str) -> PurePosixPath:
    """Return a file's place in the folder; raise ModelError for one outside, on any system."""
    place = PurePosixPath(name)
    if not name or "\\" in name or ":" in name or "\0" in name or place.is_absolute() or ".." in place.parts:
        raise ModelError(f"{path}: not an FMU: expected names of files below its own folder, got {name!r}")
    return place


# --- after a crash ----------------------------------------------------------------------------------------------------


def remove_abandoned() -> None:
    """Remove folders of FMUs whose process ended without removing them."""
    if sys.platform == "win32":  # no locks on folders
        return
    with contextlib.suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
            pid = folder.name.removeprefix(PREFIX).partition("-")[0]
            if pid.isdecimal() and not _alive(int(pid)) and not folder.is_symlink():
                lock = _locked(folder)  # the number may be that of a process which we do not see, as in a container
                if lock is not None:
                    if os.fstat(lock).st_uid == os.getuid():
                        shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _locked(folder: Path) -> int | None:
    """Return a descriptor that has the folder's lock; None where another process has it, or it is not available."""
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor: int | None = None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


# The libraries that FMI needs, and what to do where they are not installed.


def import_library(library: str, what: str) -> ModuleType:
    """Return a library by its import name.

    Parameters
    ----------
    library : str
        Name of the library.
    what : str
        Thing that needs it, for the error.

    Returns
    -------
    ModuleType
        The module.

    Raises
    ------
    ModelError
        It is missing; the message names the extra.
    """
    try:
        return import_module(library)
    except ImportError as fault:
        raise ModelError(f"{what} needs {library} ({fault}): {install_command('fmi')}") from None
