"""Opening the files that a user, a log or a scenario names: regular files alone, never waited for, and of a limited
size.

Every module that reads such a file opens it here. A pipe would be waited for, a device may do anything when it is
opened, and a file without a limit takes all memory.
"""

from __future__ import annotations

import codecs
import os
import stat
import zipfile
from pathlib import Path
from typing import BinaryIO

from rtmms.errors import ModelError, shown

MIB = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def open_input(
    path: str | Path, *, place: str = "", expected: str = "the name of a file", max_bytes: int | None = None
) -> BinaryIO:
    """Open a file to read its bytes.

    Parameters
    ----------
    path : str or Path
        The file; ~ is not expanded.
    place : str, default ""
        What names the file, for the error: "--preset", "dbc:".
    expected : str
        What the file should be, for the error.
    max_bytes : int, optional
        Largest size of the file.

    Returns
    -------
    BinaryIO
        The open file. Its `name` is the path.

    Raises
    ------
    ModelError
        There is no such file, it is a folder, a pipe or a device, it may not be read, or it is larger than `max_bytes`.
    """
    where = _where(path, place)
    try:
        _refuse_other_than_file(os.stat(path), where, expected)  # opening a device may have effects
        descriptor = os.open(path, _FLAGS | getattr(os, "O_CLOEXEC", 0))
        try:
            found = os.fstat(descriptor)  # another file may have come to that name in between
            _refuse_other_than_file(found, where, expected)
            if max_bytes is not None and found.st_size > max_bytes:
                raise ModelError(f"{where}: has more than {_size(max_bytes)}; expected {expected}")
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as fault:
        raise unreadable(path, fault, place=place) from None
    except ValueError as fault:
        if isinstance(fault, ModelError):
            raise
        raise ModelError(f"{where}: expected {expected}, got a name that no file has") from None
    return open(descriptor, "rb")


def read_input(path: str | Path, *, max_bytes: int, place: str = "", expected: str = "the name of a file") -> bytes:
    """Read all bytes of a file; parameters and errors as of `open_input`."""
    with open_input(path, place=place, expected=expected, max_bytes=max_bytes) as file:
        try:
            found = file.read(max_bytes + 1)
        except OSError as fault:
            raise unreadable(path, fault, place=place) from None
    if len(found) > max_bytes:  # it grows, or its size is not known before it is read
        raise ModelError(f"{_where(path, place)}: has more than {_size(max_bytes)}; expected {expected}")
    return found


def read_input_text(path: str | Path, *, max_bytes: int, place: str = "", expected: str = "a text in UTF-8") -> str:
    """Read a text in UTF-8, with or without a byte order mark; parameters and errors as of `open_input`."""
    found = read_input(path, max_bytes=max_bytes, place=place, expected=expected)
    try:
        return found.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as fault:
        wide = found[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        got = "UTF-16" if wide else f"byte {found[fault.start]:#04x}"
        raise ModelError(f"{_where(path, place)}: expected text in UTF-8, got {got}") from None


def unreadable(path: str | Path, fault: OSError, *, place: str = "") -> ModelError:
    """Return the error for a file that cannot be opened or read."""
    why = "there is no such file" if isinstance(fault, FileNotFoundError) else fault.strerror or str(fault)
    return ModelError(f"{_where(path, place)}: {why}")


def _where(path: str | Path, place: str) -> str:
    """Return how an error names a file: on one line, whatever its name is."""
    return shown(f"{place} {path}".lstrip())


def _refuse_other_than_file(found: os.stat_result, where: str, expected: str) -> None:
    """ModelError for a folder, a pipe, a socket or a device."""
    if stat.S_ISDIR(found.st_mode):
        raise ModelError(f"{where}: is a folder; expected {expected}")
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{where}: is not a file; expected {expected}")


def _size(count: int) -> str:
    """Return a size as a person reads it."""
    return f"{count // MIB} MiB" if count >= MIB else f"{count:,} bytes"


MAX_UNPACKED_BYTES = 64 << 20
"""Of all arrays together, where these are packed; arrays that are stored as they are have the size of their file."""


def check_npz(file: BinaryIO, path: str | Path) -> None:
    """Raise ModelError for an archive (.npz) whose arrays are far larger than the file.

    Parameters
    ----------
    file
        The open file, which is left at its beginning. zipfile's own errors pass for what is no archive.
    path
        The name of the file, for the error.
    """
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(one.file_size for one in archive.infolist())
    file.seek(0)
    most = max(MAX_UNPACKED_BYTES, 2 * os.fstat(file.fileno()).st_size)
    if unpacked > most:
        raise ModelError(f"{path}: expected arrays of at most {most >> 20} MiB, got {unpacked >> 20} MiB unpacked")
